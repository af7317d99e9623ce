//! The schema of the store: numbered migrations in the program, each with a way back.
//!
//! A migration says which programs still work after it. So replicas of the version before go on while new ones begin, and an older program
//! refuses a store that it would damage.

use tokio_postgres::Transaction;

use super::{Store, StoreError};

/// A migration.
struct Migration {
    version: i32,
    /// The latest schema that a program must know to use the store after it.
    oldest: i32,
    up: &'static str,
    down: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        oldest: 1,
        up: include_str!("migrations/0001.up.sql"),
        down: include_str!("migrations/0001.down.sql"),
    },
    Migration {
        version: 2,
        oldest: 1,
        up: include_str!("migrations/0002.up.sql"),
        down: include_str!("migrations/0002.down.sql"),
    },
    Migration {
        version: 3,
        oldest: 1,
        up: include_str!("migrations/0003.up.sql"),
        down: include_str!("migrations/0003.down.sql"),
    },
    Migration {
        version: 4,
        oldest: 1,
        up: include_str!("migrations/0004.up.sql"),
        down: include_str!("migrations/0004.down.sql"),
    },
];

/// The schema that this program knows.
pub(crate) const LATEST: i32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// Any number: the lock under which migrations run.
const LOCK: i64 = 0x6d63_707a_6970_0001;

/// The schema of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schema {
    /// Its number; 0 for an empty store.
    pub(crate) version: i32,
    /// The schema that a program must know to use it.
    pub(crate) oldest: i32,
}

impl Store {
    /// The schema of the store.
    ///
    /// # Errors
    /// When PostgreSQL does not answer.
    pub(crate) async fn schema(&self) -> Result<Schema, StoreError> {
        let there = self.query("select to_regclass('migration') is not null", &[]);
        let there = there.await?;
        if !there.first().is_some_and(|row| row.get(0)) {
            return Ok(Schema {
                version: 0,
                oldest: 0,
            });
        }
        let rows = self.query(READ, &[]).await?;
        Ok(schema_of(rows.first()))
    }

    /// Brings the store to the schema `to`, by default the latest of this program; a lower one goes back and loses what it has no room for.
    /// Returns the schemas before and after.
    ///
    /// # Errors
    /// When a migration fails, which leaves the store as it was, or the store is for a newer program.
    pub(crate) async fn migrate(&self, to: Option<i32>) -> Result<(Schema, Schema), StoreError> {
        let mut connection = self.connection().await?;
        let transaction = connection.transaction().await?;
        // It may wait for another replica's migration, and take its time.
        transaction.batch_execute(PATIENCE).await?;
        transaction
            .execute("select pg_advisory_xact_lock($1)", &[&LOCK])
            .await?;
        transaction.batch_execute(TABLE).await?;
        let before = schema_of(transaction.query_opt(READ, &[]).await?.as_ref());
        if before.oldest > LATEST {
            return Err(StoreError::Newer {
                found: before.version,
                oldest: before.oldest,
                known: LATEST,
            });
        }
        let wanted = to.unwrap_or(LATEST.max(before.version));
        if before.version > LATEST && wanted == before.version {
            // A newer replica has begun; this one goes on with what it knows.
            return Ok((before, before));
        }
        if !(0..=LATEST).contains(&wanted) || before.version > LATEST {
            return Err(StoreError::NoSchema {
                wanted,
                known: LATEST,
            });
        }
        step(&transaction, before.version, wanted).await?;
        let after = schema_of(transaction.query_opt(READ, &[]).await?.as_ref());
        transaction.commit().await?;
        Ok((before, after))
    }
}

const PATIENCE: &str = "set local statement_timeout = '10min'; set local lock_timeout = '10min'; \
    set local idle_in_transaction_session_timeout = 0";

const TABLE: &str = "create table if not exists migration (\
    version int primary key, oldest int not null, program text not null, applied timestamptz not null default now())";

const READ: &str = "select coalesce(max(version), 0), coalesce(max(oldest), 0) from migration";

fn schema_of(row: Option<&tokio_postgres::Row>) -> Schema {
    let number = |index| row.map_or(0, |row| row.get(index));
    Schema {
        version: number(0),
        oldest: number(1),
    }
}

/// Runs the migrations between two schemas.
async fn step(transaction: &Transaction<'_>, from: i32, to: i32) -> Result<(), StoreError> {
    let failed = |version| {
        move |error: tokio_postgres::Error| StoreError::Migration {
            version,
            problem: match StoreError::from(error) {
                StoreError::Refused(text) => text,
                other => other.to_string(),
            },
        }
    };
    for one in MIGRATIONS
        .iter()
        .filter(|one| one.version > from && one.version <= to)
    {
        let failed = failed(one.version);
        transaction.batch_execute(one.up).await.map_err(&failed)?;
        let program = env!("CARGO_PKG_VERSION");
        let row = "insert into migration (version, oldest, program) values ($1, $2, $3)";
        transaction
            .execute(row, &[&one.version, &one.oldest, &program])
            .await
            .map_err(&failed)?;
    }
    for one in MIGRATIONS
        .iter()
        .rev()
        .filter(|one| one.version > to && one.version <= from)
    {
        let failed = failed(one.version - 1);
        transaction.batch_execute(one.down).await.map_err(&failed)?;
        transaction
            .execute("delete from migration where version = $1", &[&one.version])
            .await
            .map_err(&failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_numbered_from_one_and_the_version_before_still_works() {
        for (index, one) in MIGRATIONS.iter().enumerate() {
            assert_eq!(usize::try_from(one.version).unwrap(), index + 1);
            let before = one.version.max(2) - 1;
            assert!(
                one.oldest <= before,
                "schema {} breaks a rolling upgrade",
                one.version
            );
        }
    }
}
