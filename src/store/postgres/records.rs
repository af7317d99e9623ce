//! [`Records`] in PostgreSQL.
//!
//! Each replica keeps a mirror of every kind that it has read. A change has a number within its kind, under the kind's lock, so that a
//! replica reads what is newer than the last number that it knows. A notification says which kind has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use deadpool_postgres::Object;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;
use tokio_postgres::types::ToSql;

use super::{Inner, Signal, Store, StoreError};
use crate::secret::{Secret, random_bytes};
use crate::store::{Allowance, AuditLine, Change, Kind, Lease, Records, Table};

/// The topic of messages about records; the payload is the kind.
const RECORD: &str = "record";

/// The topic of messages about logins; the payload is the key.
const LOGIN: &str = "login";

/// How long a mirror counts while the store cannot be reached: a revocation may be unknown for as long.
const BLIND: Duration = Duration::from_secs(5 * 60);

/// The time between two attempts to read changes that could not be read.
const RETRY: Duration = Duration::from_secs(1);

/// The time between two removals of what has ended.
const TIDY: Duration = Duration::from_secs(60);

/// How long a replica waits for the lease of a login, and the longest that it waits without looking.
const PATIENCE: Duration = Duration::from_secs(45);
const LOOK: Duration = Duration::from_millis(250);

/// The shortest time between two refreshes that unknown credentials cause.
const REFRESH: Duration = Duration::from_millis(100);

/// What a replica knows of a kind.
#[derive(Debug, Default)]
struct Mirror {
    number: i64,
    stamp: u64,
    table: Arc<Table>,
    refreshed: Option<Instant>,
}

/// What a replica knows.
#[derive(Debug)]
pub(super) struct Mirrors {
    kinds: Mutex<BTreeMap<Kind, Mirror>>,
    /// One reader at a time, so that an older answer never replaces a newer one.
    reading: tokio::sync::Mutex<()>,
    /// The time at which notifications were last known to arrive.
    heard: Mutex<Instant>,
}

impl Default for Mirrors {
    fn default() -> Self {
        Self {
            kinds: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            heard: Mutex::new(Instant::now()),
        }
    }
}

impl Mirrors {
    /// Notifications arrive now.
    pub(super) fn hears(&self) {
        *self.heard.lock() = Instant::now();
    }

    fn is_blind(&self) -> bool {
        self.heard.lock().elapsed() > BLIND
    }
}

const CHANGES: &str =
    "select key, body, number from record where kind = $1 and number > $2 order by number";

const WRITE: &str = "insert into record (kind, key, body) values ($1, $2, $3) \
    on conflict (kind, key) do update set body = excluded.body, number = nextval('change_number'), changed = now()";

/// A share is at most the rest of the limit divided by the number of replicas, and at least one call while any is left.
const ALLOW: &str = "insert into allowance as known (key, period, used, granted, ends) \
    values ($1, $2, least($4::bigint, $3::bigint), least($4::bigint, $3::bigint), now() + $6::float8 * interval '1 second') \
    on conflict (key, period) do update set \
    used = known.used + least($4::bigint, (greatest($3::bigint - known.used, 0) + $5::bigint - 1) / $5::bigint), \
    granted = least($4::bigint, (greatest($3::bigint - known.used, 0) + $5::bigint - 1) / $5::bigint) \
    where known.used < $3::bigint returning granted";

/// A connection with a transaction that is open. Dropped, the connection is closed, which ends the transaction.
pub(super) struct Transaction(Option<Object>);

impl Transaction {
    pub(super) async fn begin(store: &Store) -> Result<Self, StoreError> {
        let connection = store.connection().await?;
        store.limited(connection.batch_execute("begin")).await?;
        Ok(Self(Some(connection)))
    }

    pub(super) fn connection(&self) -> &Object {
        self.0.as_ref().expect("it is there until the end")
    }

    pub(super) async fn commit(mut self, store: &Store) -> Result<(), StoreError> {
        store
            .limited(self.connection().batch_execute("commit"))
            .await?;
        // Back to the pool.
        drop(self.0.take());
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(Object::take(connection));
        }
    }
}

impl Store {
    /// Begins to follow the changes of other replicas.
    pub(super) fn follow(&self) {
        let (inner, mut signals) = (Arc::downgrade(&self.0), self.notifications());
        self.spawn(async move {
            let mut behind = BTreeSet::new();
            let mut tidied = Instant::now();
            loop {
                let received = tokio::time::timeout(RETRY, signals.recv()).await;
                let Some(store) = store_of(&inner) else {
                    return;
                };
                match received {
                    Ok(Ok(Signal::Message { topic, payload, .. })) if topic == RECORD => {
                        behind.extend(Kind::parse(&payload).map(|kind| (kind, false)));
                    }
                    Ok(Ok(Signal::Message { .. })) => continue,
                    Ok(Ok(Signal::Reread) | Err(RecvError::Lagged(_))) => {
                        let known = store.0.mirrors.kinds.lock();
                        behind.extend(known.keys().map(|kind| (*kind, true)));
                    }
                    Ok(Err(RecvError::Closed)) => return,
                    Err(_) => {}
                }
                for (kind, is_whole) in std::mem::take(&mut behind) {
                    let is_known = store.0.mirrors.kinds.lock().contains_key(&kind);
                    if is_known && store.read_changes(kind, is_whole).await.is_err() {
                        behind.insert((kind, is_whole));
                    }
                }
                if tidied.elapsed() > TIDY {
                    tidied = Instant::now();
                    store.tidy().await;
                }
            }
        });
    }

    /// Removes what has ended.
    async fn tidy(&self) {
        for statement in [
            "delete from ticket where expires < now()",
            "delete from allowance where ends < now() - interval '1 hour'",
            "delete from record where body is null and changed < now() - interval '1 day'",
        ] {
            if let Err(error) = self.execute(statement, &[]).await {
                tracing::debug!(%error, "the store is not tidied now");
                return;
            }
        }
    }

    /// Reads the changes of a kind into the mirror; all records if `is_whole`.
    async fn read_changes(&self, kind: Kind, is_whole: bool) -> Result<(), StoreError> {
        let mirrors = &self.0.mirrors;
        let _turn = mirrors.reading.lock().await;
        let known = mirrors.kinds.lock().get(&kind).map(|mirror| mirror.number);
        let from = known.filter(|_| !is_whole).unwrap_or(0);
        let rows = self.query(CHANGES, &[&kind.name(), &from]).await?;
        let mut kinds = mirrors.kinds.lock();
        let mirror = kinds.entry(kind).or_default();
        mirror.refreshed = Some(Instant::now());
        if rows.is_empty() && known.is_some() && !is_whole {
            return Ok(());
        }
        let mut table = match is_whole {
            true => Table::new(),
            false => Table::clone(&mirror.table),
        };
        for row in &rows {
            apply(&mut table, row.get(0), row.get(1));
            mirror.number = mirror.number.max(row.get(2));
        }
        if table != *mirror.table || known.is_none() {
            mirror.table = Arc::new(table);
            mirror.stamp += 1;
        }
        Ok(())
    }

    /// Begins a change of a kind: its lock, and its records as they are.
    async fn begin_change(&self, kind: Kind) -> Result<(Transaction, Table), StoreError> {
        let transaction = Transaction::begin(self).await?;
        let connection = transaction.connection();
        let lock = "select pg_advisory_xact_lock(hashtextextended($1, 0))";
        let name = format!("mcpzip record {}", kind.name());
        self.limited(connection.execute(lock, &[&name])).await?;
        let (from, mut table) = {
            let kinds = self.0.mirrors.kinds.lock();
            let mirror = kinds.get(&kind);
            mirror.map_or((0, Table::new()), |mirror| {
                (mirror.number, Table::clone(&mirror.table))
            })
        };
        let name = kind.name();
        let parameters: [&(dyn ToSql + Sync); 2] = [&name, &from];
        let rows = self.limited(connection.query(CHANGES, &parameters)).await?;
        for row in rows {
            apply(&mut table, row.get(0), row.get(1));
        }
        Ok((transaction, table))
    }

    async fn end_change(
        &self,
        kind: Kind,
        transaction: Transaction,
        changes: Vec<Change>,
    ) -> Result<(), StoreError> {
        if changes.is_empty() {
            return transaction.commit(self).await;
        }
        let connection = transaction.connection();
        let statement = self.limited(connection.prepare_cached(WRITE)).await?;
        for (key, body) in &changes {
            self.limited(connection.execute(&statement, &[&kind.name(), key, body]))
                .await?;
        }
        transaction.commit(self).await?;
        // It is committed: other replicas learn of it at the latest when they listen again.
        if let Err(error) = self.notify(RECORD, kind.name()).await {
            tracing::debug!(%error, "other replicas learn of a change later");
        }
        if let Err(error) = self.read_changes(kind, false).await {
            tracing::debug!(%error, "a change of this replica is read later");
        }
        Ok(())
    }

    async fn begin_swap(
        &self,
        kind: &'static str,
        key: &str,
    ) -> Result<(Transaction, Option<Vec<u8>>), StoreError> {
        let transaction = Transaction::begin(self).await?;
        let connection = transaction.connection();
        let lock = "select pg_advisory_xact_lock(hashtextextended($1, 1))";
        let name = format!("{kind} {key}");
        self.limited(connection.execute(lock, &[&name])).await?;
        let read = "select body from ticket where kind = $1 and key = $2 and expires > now()";
        let parameters: [&(dyn ToSql + Sync); 2] = [&kind, &key];
        let row = self
            .limited(connection.query_opt(read, &parameters))
            .await?;
        let body = row.map(|row| row.get(0));
        Ok((transaction, body))
    }

    async fn end_swap(
        &self,
        kind: &'static str,
        key: &str,
        lifetime: Duration,
        transaction: Transaction,
        body: Option<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let connection = transaction.connection();
        match body {
            None => {
                let remove = "delete from ticket where kind = $1 and key = $2";
                self.limited(connection.execute(remove, &[&kind, &key]))
                    .await?;
            }
            Some(body) => {
                let write = "insert into ticket (kind, key, body, expires) \
                    values ($1, $2, $3, now() + $4 * interval '1 second') \
                    on conflict (kind, key) do update set body = excluded.body, expires = excluded.expires";
                let seconds = lifetime.as_secs_f64();
                self.limited(connection.execute(write, &[&kind, &key, &body, &seconds]))
                    .await?;
            }
        }
        transaction.commit(self).await
    }

    async fn lease(&self, key: &str) -> Result<Lease, StoreError> {
        let fence = HEXLOWER.encode(&random_bytes::<8>());
        let give = "insert into login (key, renewer, renew_until) values ($1, $2, now() + interval '40 seconds') \
            on conflict (key) do update set renewer = excluded.renewer, renew_until = excluded.renew_until \
            where login.renew_until is null or login.renew_until < now()";
        let until = Instant::now() + PATIENCE;
        let mut signals = self.notifications();
        loop {
            if self.execute(give, &[&key, &fence]).await? > 0 {
                return Ok(Lease {
                    key: key.to_owned(),
                    fence,
                });
            }
            if Instant::now() > until {
                return Err(StoreError::Slow);
            }
            let is_free = async {
                loop {
                    match signals.recv().await {
                        Ok(Signal::Message { topic, payload, .. })
                            if topic == LOGIN && payload == key =>
                        {
                            return;
                        }
                        Err(RecvError::Closed) => std::future::pending().await,
                        _ => {}
                    }
                }
            };
            // The message may be lost: the row counts.
            let _ = tokio::time::timeout(LOOK, is_free).await;
        }
    }
}

fn store_of(inner: &Weak<Inner>) -> Option<Store> {
    inner.upgrade().map(Store)
}

fn apply(table: &mut Table, key: String, body: Option<Vec<u8>>) {
    match body {
        Some(body) => table.insert(key, body.into()),
        None => table.remove(&key),
    };
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::Slow => io::ErrorKind::TimedOut,
            error if error.is_unavailable() => io::ErrorKind::NotConnected,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl Records for Store {
    fn stamp(&self, kind: Kind) -> u64 {
        if self.0.mirrors.is_blind() {
            return u64::MAX;
        }
        let kinds = self.0.mirrors.kinds.lock();
        kinds.get(&kind).map_or(0, |mirror| mirror.stamp)
    }

    fn all(&self, kind: Kind) -> io::Result<Arc<Table>> {
        let known = || {
            let kinds = self.0.mirrors.kinds.lock();
            kinds.get(&kind).map(|mirror| mirror.table.clone())
        };
        if let Some(table) = known() {
            // No attempt is made here: the one who asks may be a call.
            return match self.0.mirrors.is_blind() {
                false => Ok(table),
                true => Err(io::Error::new(
                    io::ErrorKind::NotConnected,
                    "the store has not answered for five minutes, so that revocations may be unknown",
                )),
            };
        }
        let store = self.clone();
        self.wait(async move { store.read_changes(kind, false).await })?;
        known().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn refresh(&self, kind: Kind) -> BoxFuture<'_, ()> {
        async move {
            let is_fresh = {
                let kinds = self.0.mirrors.kinds.lock();
                let refreshed = kinds.get(&kind).and_then(|mirror| mirror.refreshed);
                refreshed.is_some_and(|at| at.elapsed() < REFRESH)
            };
            if !is_fresh && let Err(error) = self.read_changes(kind, false).await {
                tracing::debug!(%error, "the store is not read now");
            }
        }
        .boxed()
    }

    fn change(&self, kind: Kind, change: &mut dyn FnMut(&Table) -> Vec<Change>) -> io::Result<()> {
        let store = self.clone();
        let (transaction, table) = self.wait(async move { store.begin_change(kind).await })?;
        let changes = change(&table);
        let store = self.clone();
        Ok(self.wait(async move { store.end_change(kind, transaction, changes).await })?)
    }

    fn swap(
        &self,
        kind: &'static str,
        key: &str,
        lifetime: Duration,
        swap: &mut dyn FnMut(Option<Vec<u8>>) -> Option<Vec<u8>>,
    ) -> io::Result<()> {
        let (store, name) = (self.clone(), key.to_owned());
        let (transaction, body) = self.wait(async move { store.begin_swap(kind, &name).await })?;
        let body = swap(body);
        let (store, name) = (self.clone(), key.to_owned());
        Ok(self.wait(async move {
            store
                .end_swap(kind, &name, lifetime, transaction, body)
                .await
        })?)
    }

    fn seal(&self, context: &str, plain: &[u8]) -> Vec<u8> {
        self.keys().seal(context, plain).into_bytes()
    }

    fn open(&self, context: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        self.keys().open(context, std::str::from_utf8(sealed).ok()?)
    }

    fn keys(&self) -> Secret<String> {
        let keys = self.0.keys.all().map(|key| key.to_text().expose().clone());
        Secret::new(keys.collect::<Vec<_>>().join(","))
    }

    fn load_login<'a>(&'a self, key: &'a str) -> BoxFuture<'a, io::Result<Option<Vec<u8>>>> {
        async move {
            let read = "select body from login where key = $1";
            let row = self.query_opt(read, &[&key]).await?;
            Ok(row.and_then(|row| row.get(0)))
        }
        .boxed()
    }

    fn logins(&self) -> BoxFuture<'_, io::Result<super::super::Bodies>> {
        async move {
            let read = "select key, body from login where body is not null order by key";
            let rows = self.query(read, &[]).await?;
            Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
        }
        .boxed()
    }

    fn lease_login<'a>(&'a self, key: &'a str) -> BoxFuture<'a, io::Result<Lease>> {
        async move { Ok(self.lease(key).await?) }.boxed()
    }

    fn save_login<'a>(
        &'a self,
        lease: &'a Lease,
        body: Option<Vec<u8>>,
    ) -> BoxFuture<'a, io::Result<()>> {
        async move {
            let save = "update login set body = $3, version = version + 1, changed = now() \
                where key = $1 and renewer = $2";
            let parameters: [&(dyn ToSql + Sync); 3] = [&lease.key, &lease.fence, &body];
            if self.execute(save, &parameters).await? == 0 {
                let text =
                    "another replica has the login now, as this one took too long to change it";
                return Err(io::Error::other(text));
            }
            Ok(())
        }
        .boxed()
    }

    fn release_login(&self, lease: Lease) {
        let inner = Arc::downgrade(&self.0);
        self.spawn(async move {
            let Some(store) = store_of(&inner) else {
                return;
            };
            let release = "update login set renewer = null, renew_until = null \
                where key = $1 and renewer = $2";
            let released = store.execute(release, &[&lease.key, &lease.fence]).await;
            // Without it, the lease ends after its time.
            if released.is_ok() {
                let _ = store.notify(LOGIN, &lease.key).await;
            }
        });
    }

    fn allow(&self, allowance: Allowance) -> BoxFuture<'_, io::Result<u64>> {
        async move {
            let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            let (most, wanted) = (number(allowance.most), number(allowance.wanted));
            let replicas = i64::try_from(self.known_replicas().len())
                .unwrap_or(1)
                .max(1);
            let ends = allowance.ends.as_secs_f64();
            let parameters: [&(dyn ToSql + Sync); 6] = [
                &allowance.key,
                &allowance.period,
                &most,
                &wanted,
                &replicas,
                &ends,
            ];
            let row = self.query_opt(ALLOW, &parameters).await?;
            let granted = row.map_or(0, |row| row.get::<_, i64>(0));
            Ok(granted.unsigned_abs())
        }
        .boxed()
    }

    fn write_audit(&self, lines: Vec<AuditLine>) -> BoxFuture<'_, io::Result<()>> {
        async move {
            let (mut chains, mut places, mut days, mut texts) = (vec![], vec![], vec![], vec![]);
            for line in lines {
                chains.push(line.chain);
                places.push(line.place);
                days.push(line.day);
                texts.push(line.text);
            }
            let write = "insert into audit (day, chain, place, line) \
                select day::date, chain, place, line from unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) \
                as new (day, chain, place, line) on conflict do nothing";
            self.execute(write, &[&days, &chains, &places, &texts])
                .await?;
            Ok(())
        }
        .boxed()
    }

    fn fault(&self) -> Option<String> {
        Store::fault(self)
    }

    fn migrated(&self) -> Option<(i32, i32)> {
        self.0.migrated.get().copied()
    }

    fn database(&self) -> Option<&Store> {
        Some(self)
    }
}
