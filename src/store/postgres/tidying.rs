//! Removes what has ended, and what is too much.
//!
//! One replica at a time does it, in parts. Its statements have a time limit of their own, and do not count as an outage: much may have
//! gathered, and what cannot be removed now is removed later.

use std::sync::Arc;
use std::time::Duration;

use super::records::Transaction;
use super::{Store, StoreError};

/// The time between two removals, and that before the first one.
const PAUSE: Duration = Duration::from_secs(60);
const FIRST: Duration = Duration::from_secs(5);

/// Keeps other replicas from the same work for a transaction.
const ALONE: &str = "select pg_try_advisory_xact_lock(hashtextextended('mcpzip tidy', 3))";

/// The time limit of a statement, at PostgreSQL and here.
const LIMIT: &str = "set local statement_timeout = '30s'; set local lock_timeout = '1s'";
const GIVEN_UP: Duration = Duration::from_secs(35);

/// The most rows that one statement removes, and the most statements of one kind in a row. Rows of the shelf have up to 8 MB; finding those that
/// are too much reads all of them.
const PART: u64 = 200;
const PART_OF_SHELF: u64 = 50;
const PART_OF_EXCESS: u64 = 2000;
const PARTS: usize = 500;

/// The tables with rows that end, and the conditions. For a day, clients get to know that a server's process is another one than before. Days of
/// statistics go after 400 days, and approvals after an hour, as each is valid for ten minutes.
const ENDED: [(&str, &str); 9] = [
    ("shelf", "expires < now()"),
    ("answer", "expires < now()"),
    ("session", "expires < now()"),
    ("ticket", "expires < now()"),
    ("allowance", "ends < now() - interval '1 hour'"),
    (
        "record",
        "body is null and changed < now() - interval '1 day' or kind = 'approvals' and changed < now() - interval '1 hour'",
    ),
    ("home", "until < now() - interval '1 day'"),
    (
        "login",
        "body is null and changed < now() - interval '1 day' and coalesce(renew_until < now(), true)",
    ),
    ("usage", "day < current_date - 400"),
];

/// The oldest items of the shelf above 256 MB of the results of one owner, 4 GB of all results, and 1 GB of each other kind. The scope of a
/// result begins with its owner.
const TOO_MUCH: &str = "select ctid from ( \
        select ctid, kind, \
        sum(length(body)) over (partition by kind order by created desc, key) as of_kind, \
        sum(length(body)) over (partition by kind, split_part(scope, '.', 1) order by created desc, key) as of_owner from shelf \
    ) as known where known.of_kind > (case known.kind when 'result' then 4 else 1 end) * 1073741824::bigint \
        or known.kind = 'result' and known.of_owner > 268435456";

impl Store {
    /// Removes what has ended from time to time, for as long as the store is open.
    pub(super) fn tidy(&self) {
        let inner = Arc::downgrade(&self.0);
        self.spawn(async move {
            let (mut pause, mut has_failed) = (FIRST, false);
            loop {
                tokio::time::sleep(pause).await;
                pause = PAUSE;
                let Some(store) = inner.upgrade().map(Store) else {
                    return;
                };
                match store.remove_ended().await {
                    Ok(()) => has_failed = false,
                    Err(error) if has_failed || !matches!(error, StoreError::Slow) && error.is_unavailable() => {
                        tracing::debug!(%error, "the store is not tidied now");
                    }
                    Err(error) => {
                        has_failed = true;
                        tracing::warn!(%error, "what has ended cannot be removed from the store, which grows");
                    }
                }
            }
        });
    }

    /// One table that cannot be tidied does not keep the others from it. The first failure is returned.
    async fn remove_ended(&self) -> Result<(), StoreError> {
        let ended = ENDED.map(|(table, condition)| {
            let part = if table == "shelf" {
                PART_OF_SHELF
            } else {
                PART
            };
            let rows = format!("select ctid from {table} where {condition} limit {part}");
            let statement =
                format!("delete from {table} where ctid = any (array({rows})) and ({condition})");
            (statement, part)
        });
        let excess = format!(
            "delete from shelf where ctid = any (array({TOO_MUCH} limit {PART_OF_EXCESS}))"
        );
        let mut failure = Ok(());
        for (statement, part) in ended.into_iter().chain([(excess, PART_OF_EXCESS)]) {
            for _ in 0..PARTS {
                match self.patiently(&statement).await {
                    Ok(Some(removed)) if removed == part => {}
                    Ok(_) => break,
                    Err(error) => {
                        failure = failure.and(Err(error));
                        break;
                    }
                }
            }
        }
        failure
    }

    /// The number of rows that a statement has removed; `None` if another replica removes some.
    async fn patiently(&self, statement: &str) -> Result<Option<u64>, StoreError> {
        let transaction = Transaction::begin(self).await?;
        let removing = async {
            let connection = transaction.connection();
            connection.batch_execute(LIMIT).await?;
            match connection.query_one(ALONE, &[]).await?.get(0) {
                true => connection.execute(statement, &[]).await.map(Some),
                false => Ok(None),
            }
        };
        let removed = tokio::time::timeout(GIVEN_UP, removing).await;
        let removed = removed.map_err(|_| StoreError::Slow)??;
        transaction.commit(self).await?;
        Ok(removed)
    }
}
