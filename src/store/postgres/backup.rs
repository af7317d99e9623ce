//! Copies of what must last: one line of JSON for each record. Secrets stay sealed, so a copy needs the keys of the store to be of use.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::notifications::NOTIFY;
use super::records::{LOCK, RECORD};
use super::{Store, StoreError};
use crate::store::{Kind, Table};

/// The version of the form.
const VERSION: u32 = 1;

/// The schema from which on there are shelves and statistics.
const SHELVES: i32 = 2;

/// A line of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Copied {
    /// The first line.
    Store {
        /// The version of the form.
        version: u32,
    },
    /// A record.
    Record {
        /// The kind of the record.
        kind: String,
        /// The record's key.
        key: String,
        /// Its body in base64.
        body: String,
    },
    /// A login.
    Login {
        /// The login's key.
        key: String,
        /// Its body in base64.
        body: String,
    },
    /// The statistics of a day.
    Usage {
        /// The day.
        day: String,
        /// Its counts in base64.
        body: String,
    },
    /// The last line.
    End {
        /// The number of lines between the first and this one.
        count: usize,
    },
}

/// The table of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Record(Kind),
    Login,
    Usage,
}

/// A line with its key, which is the day of statistics, and its body.
type Line = (Part, String, Vec<u8>);

/// The content of a store, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Contents {
    /// The number of records of each kind.
    pub(crate) records: BTreeMap<String, i64>,
    /// The number of logins.
    pub(crate) logins: i64,
    /// The number of lines of audit logs.
    pub(crate) audit_lines: i64,
    /// The number of keys and logins that need the key before the current one.
    pub(crate) sealed_with_previous_key: i64,
    /// The number of keys and logins that no key here opens.
    pub(crate) sealed_with_unknown_key: i64,
    /// The number of stored results, of lists and the like, by kind.
    pub(crate) kept: BTreeMap<String, i64>,
    /// The number of days with statistics.
    pub(crate) usage_days: i64,
}

/// Secrets by the ids of their keys, which sealed values have in plain text.
const SEALED: &str = "with sealed as (select body from record where kind = 'identity-keys' and body is not null \
    union all select body from login where body is not null \
    union all select convert_to(value, 'UTF8') from meta where name = 'key'), \
    known as (select position($1::bytea in body) > 0 as is_new, position($2::bytea in body) > 0 as is_old from sealed) \
    select count(*) filter (where is_old and not is_new), count(*) filter (where not is_old and not is_new) from known";

impl Store {
    /// The content of the store.
    ///
    /// # Errors
    /// When PostgreSQL does not answer.
    pub(crate) async fn contents(&self) -> Result<Contents, StoreError> {
        let kinds = "select kind, count(*) from record where body is not null group by kind";
        let records = self.query(kinds, &[]).await?;
        let logins = "select count(*) from login where body is not null";
        let logins = self.query_opt(logins, &[]).await?;
        // An estimate: counting all lines could take long.
        let lines =
            "select greatest(reltuples, 0)::bigint from pg_class where oid = 'audit'::regclass";
        let lines = self.query_opt(lines, &[]).await?;
        let (current, previous) = self.keys().ids();
        // No sealed value has a zero byte.
        let previous = previous.unwrap_or("\0");
        let (current, previous) = (current.as_bytes(), previous.as_bytes());
        let sealed = self.query_opt(SEALED, &[&current, &previous]).await?;
        let count = |at| sealed.as_ref().map_or(0, |row| row.get(at));
        let number = |row: Option<tokio_postgres::Row>| row.map_or(0, |row| row.get(0));
        let (mut kept, mut usage_days) = (BTreeMap::new(), 0);
        if self.schema().await?.version >= SHELVES {
            let kinds = "select kind, count(*) from shelf where expires > now() group by kind";
            let rows = self.query(kinds, &[]).await?;
            kept = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
            usage_days = number(self.query_opt("select count(*) from usage", &[]).await?);
        }
        Ok(Contents {
            kept,
            usage_days,
            records: records.iter().map(|row| (row.get(0), row.get(1))).collect(),
            logins: number(logins),
            audit_lines: number(lines),
            sealed_with_previous_key: count(0),
            sealed_with_unknown_key: count(1),
        })
    }

    /// A copy of the records, logins and statistics, without what ends soon, what can be made again, and audit logs.
    ///
    /// # Errors
    /// When PostgreSQL does not answer.
    pub(crate) async fn export(&self) -> Result<Vec<Copied>, StoreError> {
        let mut all = vec![Copied::Store { version: VERSION }];
        let records = "select kind, key, body from record where body is not null and kind <> 'approvals' order by kind, key";
        for row in self.query(records, &[]).await? {
            all.push(Copied::Record {
                kind: row.get(0),
                key: row.get(1),
                body: STANDARD.encode(row.get::<_, Vec<u8>>(2)),
            });
        }
        let logins = "select key, body from login where body is not null order by key";
        for row in self.query(logins, &[]).await? {
            all.push(Copied::Login {
                key: row.get(0),
                body: STANDARD.encode(row.get::<_, Vec<u8>>(1)),
            });
        }
        if self.schema().await?.version >= SHELVES {
            let days = "select day::text, body from usage order by day";
            for row in self.query(days, &[]).await? {
                all.push(Copied::Usage {
                    day: row.get(0),
                    body: STANDARD.encode(row.get::<_, Vec<u8>>(1)),
                });
            }
        }
        all.push(Copied::End {
            count: all.len() - 1,
        });
        Ok(all)
    }

    /// The records and logins of a copy, if a store can use all of them.
    fn checked(&self, copy: Vec<Copied>) -> Result<Vec<Line>, StoreError> {
        let mut lines = copy.into_iter();
        match lines.next() {
            Some(Copied::Store { version: VERSION }) => {}
            Some(Copied::Store { .. }) => {
                return Err(unusable("another version of mcpzip wrote it"));
            }
            _ => return Err(unusable("it does not begin as a copy of a store")),
        }
        let mut checked = Vec::new();
        let mut is_whole = false;
        for line in lines {
            if is_whole {
                return Err(unusable("it goes on after its end"));
            }
            let (part, key, body) = match line {
                Copied::Store { .. } => return Err(unusable("it has two beginnings")),
                Copied::End { count } if count == checked.len() => {
                    is_whole = true;
                    continue;
                }
                Copied::End { .. } => return Err(unusable("it has lost lines")),
                Copied::Record { kind, key, body } => match Kind::parse(&kind) {
                    Some(kind) => (Part::Record(kind), key, body),
                    None => {
                        return Err(unusable("it has a kind of records that is not known here"));
                    }
                },
                Copied::Login { key, body } => (Part::Login, key, body),
                Copied::Usage { day, body } => (Part::Usage, day, body),
            };
            let Ok(body) = STANDARD.decode(body) else {
                return Err(unusable("a body is not base64"));
            };
            let is_sealed = matches!(part, Part::Login | Part::Record(Kind::IdentityKeys));
            if is_sealed && !self.keys().have_sealed(&body) {
                return Err(unusable(
                    "its secrets were sealed with another key: set that as `MCPZIP_STORE_KEY_PREVIOUS`",
                ));
            }
            checked.push((part, key, body));
        }
        match is_whole {
            true => Ok(checked),
            false => Err(unusable("its end is missing, so it is not whole")),
        }
    }

    /// Puts a copy into the store, in one transaction. `check` looks at its tokens and people. Returns the number of records and logins.
    ///
    /// # Errors
    /// When the store has any already, unless they are replaced; when the copy cannot be read, or PostgreSQL does not answer.
    pub(crate) async fn import(
        &self,
        copy: Vec<Copied>,
        replaces: bool,
        check: impl FnOnce(&Table) -> Result<(), String>,
    ) -> Result<usize, StoreError> {
        let lines = self.checked(copy)?;
        let of_identities = lines
            .iter()
            .filter(|(part, ..)| *part == Part::Record(Kind::Identity));
        let of_identities = of_identities.map(|(_, key, body)| (key.clone(), Arc::from(&body[..])));
        check(&of_identities.collect()).map_err(|problem| unusable(&problem))?;
        let mut connection = self.connection().await?;
        let transaction = connection.transaction().await?;
        // As a change does: numbers are in the order of commits.
        for kind in Kind::ALL {
            transaction.execute(LOCK, &[&kind.name()]).await?;
        }
        let there = "select exists (select from record where body is not null) or exists (select from login) or exists (select from usage)";
        let is_there: bool = transaction.query_one(there, &[]).await?.get(0);
        if is_there && !replaces {
            return Err(unusable(
                "the store has records already; `--replace` removes them",
            ));
        }
        // Replicas learn of a removed record by its number.
        transaction
            .batch_execute(
                "update record set body = null, number = nextval('change_number'), changed = now(); delete from login; delete from usage",
            )
            .await?;
        for (part, key, body) in &lines {
            match part {
                Part::Record(kind) => {
                    let write = "insert into record (kind, key, body) values ($1, $2, $3) on conflict (kind, key) do update \
                        set body = excluded.body, number = nextval('change_number'), changed = now()";
                    transaction
                        .execute(write, &[&kind.name(), key, body])
                        .await?;
                }
                Part::Login => {
                    let write = "insert into login (key, body) values ($1, $2)";
                    transaction.execute(write, &[key, body]).await?;
                }
                Part::Usage => {
                    let write = "insert into usage (day, body) values ($1::text::date, $2)";
                    transaction.execute(write, &[key, body]).await?;
                }
            }
        }
        for kind in Kind::ALL {
            let message = self.message(RECORD, kind.name());
            transaction.execute(NOTIFY, &[&message]).await?;
        }
        transaction.commit().await?;
        Ok(lines.len())
    }
}

fn unusable(problem: &str) -> StoreError {
    StoreError::Copy(problem.to_owned())
}
