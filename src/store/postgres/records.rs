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
use tokio::sync::OwnedMutexGuard;
use tokio::sync::broadcast::error::RecvError;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::notifications::NOTIFY;
use super::replicas::REPLICA;
use super::{Inner, LIMIT, Signal, Store, StoreError};
use crate::secret::{Secret, random_bytes};
use crate::store::{
    Allowance, AuditLine, AuditTaken, Change, Kind, Lease, OneChange, Records, Table,
};

/// The topic of messages about records; the payload is the kind.
pub(super) const RECORD: &str = "record";

/// The topic of messages about logins; the payload is the key.
const LOGIN: &str = "login";

/// How long a mirror counts while the store cannot be reached: a revocation may be unknown for as long.
const BLIND: Duration = Duration::from_secs(5 * 60);

/// The time between two attempts to read changes that could not be read.
const RETRY: Duration = Duration::from_secs(1);

/// The time after which a kind is read without a notification, so that nothing depends on one alone.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// How long a replica waits for the lease of a login, and the longest that it waits without looking.
const PATIENCE: Duration = Duration::from_secs(45);
const LOOK: Duration = Duration::from_millis(250);

/// The shortest time between two reads that unknown credentials cause.
const REFRESH: Duration = Duration::from_millis(100);

/// A replica's copy of the records of one kind.
#[derive(Debug)]
struct Mirror {
    number: i64,
    /// The table to which the number belongs: the schema may have been removed and created again.
    epoch: u32,
    stamp: u64,
    table: Arc<Table>,
    /// When the last read that succeeded was begun: all changes before that are known.
    read: Instant,
    /// When numbers last became doubtful, because the database may be another one than before.
    doubted: Option<Instant>,
}

impl Mirror {
    fn is_doubtful(&self) -> bool {
        self.doubted.is_some_and(|at| at >= self.read)
    }

    fn is_blind(&self) -> bool {
        self.read.elapsed() > BLIND
    }

    /// The number after which changes are read; 0 if all must be read: removed records stay for a day only.
    fn last(&self) -> i64 {
        match self.is_doubtful() || self.is_blind() {
            true => 0,
            false => self.number,
        }
    }
}

/// A lock within this process.
type Turns = Arc<tokio::sync::Mutex<()>>;

/// A replica's copies of records, by kind.
#[derive(Debug, Default)]
pub(super) struct Mirrors {
    /// One change of a kind at a time, so that those that wait do not take all connections.
    changing: Mutex<BTreeMap<Kind, Turns>>,
    kinds: Mutex<BTreeMap<Kind, Mirror>>,
    /// One reader at a time, so that an older answer never replaces a newer one.
    reading: tokio::sync::Mutex<()>,
}

impl Mirrors {
    async fn turn(&self, kind: Kind) -> Result<OwnedMutexGuard<()>, StoreError> {
        let turns = self.changing.lock().entry(kind).or_default().clone();
        let turn = tokio::time::timeout(LIMIT, turns.lock_owned()).await;
        turn.map_err(|_| StoreError::Busy)
    }

    fn known(&self) -> Vec<Kind> {
        self.kinds.lock().keys().copied().collect()
    }

    /// The database may be another one than before.
    fn doubt(&self) {
        let mut kinds = self.kinds.lock();
        for mirror in kinds.values_mut() {
            mirror.doubted = Some(Instant::now());
        }
    }
}

/// The changes of a kind after a number of an epoch. All of another epoch, and all if every number is lower: the records may be those of a
/// copy. There is one row at least, without a key if nothing has changed.
const CHANGES: &str = "select change.key, change.body, change.number, here.epoch, here.since \
    from (select epoch, case when epoch = $3 and latest >= $2::bigint then $2::bigint else 0 end as since from \
    (select to_regclass('record')::oid as epoch, (select max(number) from record where kind = $1) as latest) as known) as here \
    left join record as change on change.kind = $1 and change.number > here.since order by change.number";

const ONE: &str = "select (select body from record where kind = $1 and key = $2), \
    extract(epoch from clock_timestamp())::bigint";

/// Waits until no other replica changes records of a kind, and keeps them from it for the transaction.
pub(super) const LOCK: &str =
    "select pg_advisory_xact_lock(hashtextextended('mcpzip record ' || $1::text, 0))";

const WRITE: &str = "insert into record (kind, key, body) values ($1, $2, $3) \
    on conflict (kind, key) do update set body = excluded.body, number = nextval('change_number'), changed = now()";

/// A share is at most the rest of the limit divided by the number of replicas, and at least one call while any is left.
const ALLOW: &str = "insert into allowance as known (key, period, used, granted, ends) \
    values ($1, $2, least($4::bigint, $3::bigint), least($4::bigint, $3::bigint), now() + $6::float8 * interval '1 second') \
    on conflict (key, period) do update set \
    used = known.used + least($4::bigint, (greatest($3::bigint - known.used, 0) + $5::bigint - 1) / $5::bigint), \
    granted = least($4::bigint, (greatest($3::bigint - known.used, 0) + $5::bigint - 1) / $5::bigint) \
    where known.used < $3::bigint returning granted";

/// Writes lines, unless others are at their places. Returns the number of those that were written and of those that were there, whether
/// others are at their places, and whether the line before the first one, of the day `$5`, is missing.
const WRITE_AUDIT: &str = "with new as (select day::date, chain, place, line \
    from unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) as new (day, chain, place, line)), \
    there as (select audit.line = new.line as is_same from new join audit using (day, chain, place)), \
    written as (insert into audit (day, chain, place, line) select day, chain, place, line from new \
    where not exists (select from there where not is_same) on conflict do nothing returning 1) \
    select (select count(*) from written), (select count(*) from there), \
    exists (select from there where not is_same), \
    exists (select from (select chain, min(place) as place from new group by chain) as first \
    where $5::text is not null and place > 1 and not exists (select from audit \
    where audit.day = $5::text::date and audit.chain = first.chain and audit.place = first.place - 1))";

/// A connection with a transaction that is open. Dropped, the connection is closed, which ends the transaction.
pub(super) struct Transaction(Option<Object>);

/// A change of a kind that has begun, and its turn among those of this process.
type Changing = (Transaction, OwnedMutexGuard<()>);

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
            let (mut tried, mut looked) = (Instant::now(), Instant::now());
            loop {
                let received = tokio::time::timeout(RETRY, signals.recv()).await;
                let Some(store) = store_of(&inner) else {
                    return;
                };
                let mirrors = &store.0.mirrors;
                let mut is_due = tried.elapsed() >= RETRY;
                match received {
                    Ok(Ok(Signal::Message { topic, payload, .. })) => {
                        if topic == RECORD {
                            behind.extend(Kind::parse(&payload));
                            is_due = true;
                        } else if topic == REPLICA
                            && let Err(error) = store.replicas().await
                        {
                            tracing::debug!(%error, "a new replica is known later");
                        }
                    }
                    Ok(Ok(Signal::Reread) | Err(RecvError::Lagged(_))) => {
                        mirrors.doubt();
                        behind.extend(mirrors.known());
                        is_due = true;
                    }
                    Ok(Err(RecvError::Closed)) => return,
                    Err(_) => {}
                }
                if looked.elapsed() >= LOOK_AGAIN {
                    looked = Instant::now();
                    behind.extend(mirrors.known());
                }
                if is_due {
                    tried = Instant::now();
                    for kind in std::mem::take(&mut behind) {
                        if mirrors.known().contains(&kind)
                            && let Err(error) = store.read_changes(kind, tried).await
                        {
                            tracing::debug!(%error, "changes are read later");
                            behind.insert(kind);
                        }
                    }
                }
            }
        });
    }

    /// Reads the changes of a kind into the mirror, unless another reader has begun to do so since `asked`.
    async fn read_changes(&self, kind: Kind, asked: Instant) -> Result<(), StoreError> {
        let mirrors = &self.0.mirrors;
        let _turn = mirrors.reading.lock().await;
        let begun = Instant::now();
        let (from, known) = match mirrors.kinds.lock().get(&kind) {
            Some(mirror) if mirror.read >= asked && !mirror.is_doubtful() => return Ok(()),
            mirror => mirror.map_or((0, 0), |mirror| (mirror.last(), mirror.epoch)),
        };
        let parameters: [&(dyn ToSql + Sync); 3] = [&kind.name(), &from, &known];
        let rows = self.query(CHANGES, &parameters).await?;
        let epoch = rows.first().map_or(known, |row| row.get(3));
        let is_whole = are_whole(&rows);
        let mut kinds = mirrors.kinds.lock();
        let mirror = kinds.entry(kind).or_insert_with(|| Mirror {
            number: 0,
            epoch,
            // Another one than that of a kind that was never read.
            stamp: 1,
            table: Arc::default(),
            read: begun,
            doubted: None,
        });
        mirror.read = begun;
        let is_change = |row: &Row| row.get::<_, Option<&str>>(0).is_some();
        if !is_whole && !rows.iter().any(is_change) {
            return Ok(());
        }
        let (mut number, mut table) = match is_whole {
            // In a database that was restored, numbers are lower than before.
            true => (0, Table::new()),
            false => (from, Table::clone(&mirror.table)),
        };
        for row in &rows {
            number = number.max(apply(&mut table, row));
        }
        (mirror.number, mirror.epoch) = (number, epoch);
        if table != *mirror.table {
            mirror.table = Arc::new(table);
            mirror.stamp += 1;
        }
        Ok(())
    }

    /// Begins a change of a kind: its lock.
    async fn lock(&self, kind: Kind) -> Result<Changing, StoreError> {
        let turn = self.0.mirrors.turn(kind).await?;
        let transaction = Transaction::begin(self).await?;
        let connection = transaction.connection();
        self.limited(connection.execute(LOCK, &[&kind.name()]))
            .await?;
        Ok((transaction, turn))
    }

    /// Begins a change of one record: its body, and the time in seconds since 1970.
    async fn begin_change_of(
        &self,
        kind: Kind,
        key: &str,
    ) -> Result<(Changing, Option<Vec<u8>>, u64), StoreError> {
        let (transaction, turn) = self.lock(kind).await?;
        let connection = transaction.connection();
        let parameters: [&(dyn ToSql + Sync); 2] = [&kind.name(), &key];
        let row = self.limited(connection.query_one(ONE, &parameters)).await?;
        let now: i64 = row.get(1);
        Ok(((transaction, turn), row.get(0), now.unsigned_abs()))
    }

    /// Begins a change of a kind, with its records as they are.
    async fn begin_change(&self, kind: Kind) -> Result<(Changing, Table), StoreError> {
        let (transaction, turn) = self.lock(kind).await?;
        let connection = transaction.connection();
        let (from, known, table) = {
            let kinds = self.0.mirrors.kinds.lock();
            match kinds.get(&kind) {
                None => (0, 0, Arc::default()),
                Some(mirror) => (mirror.last(), mirror.epoch, mirror.table.clone()),
            }
        };
        let parameters: [&(dyn ToSql + Sync); 3] = [&kind.name(), &from, &known];
        let rows = self.limited(connection.query(CHANGES, &parameters)).await?;
        let mut table = match are_whole(&rows) {
            true => Table::new(),
            false => Table::clone(&table),
        };
        for row in &rows {
            apply(&mut table, row);
        }
        Ok(((transaction, turn), table))
    }

    async fn end_change(
        &self,
        kind: Kind,
        (transaction, _turn): Changing,
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
        // With the change, so that neither comes without the other.
        let message = self.message(RECORD, kind.name());
        self.limited(connection.execute(NOTIFY, &[&message]))
            .await?;
        transaction.commit(self).await?;
        if let Err(error) = self.read_changes(kind, Instant::now()).await {
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

/// Whether the rows of [`CHANGES`] are all records of their kind.
fn are_whole(rows: &[Row]) -> bool {
    rows.first().is_none_or(|row| row.get::<_, i64>(4) == 0)
}

/// Applies a row of [`CHANGES`]. Returns its number, which is 0 for the row without a change.
fn apply(table: &mut Table, row: &Row) -> i64 {
    let Some(key) = row.get::<_, Option<String>>(0) else {
        return 0;
    };
    match row.get::<_, Option<Vec<u8>>>(1) {
        Some(body) => table.insert(key, body.into()),
        None => table.remove(&key),
    };
    row.get(2)
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::Slow | StoreError::Busy => io::ErrorKind::TimedOut,
            error if error.is_unavailable() => io::ErrorKind::NotConnected,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl Records for Store {
    fn stamp(&self, kind: Kind) -> u64 {
        let kinds = self.0.mirrors.kinds.lock();
        kinds
            .get(&kind)
            .map_or(0, |mirror| match mirror.is_blind() {
                false => mirror.stamp,
                true => u64::MAX,
            })
    }

    fn all(&self, kind: Kind) -> io::Result<Arc<Table>> {
        let known = || {
            let kinds = self.0.mirrors.kinds.lock();
            let mirror = kinds.get(&kind)?;
            // No attempt is made for a known kind: the one who asks may be a call.
            Some(match mirror.is_blind() {
                false => Ok(mirror.table.clone()),
                true => Err(io::Error::new(
                    io::ErrorKind::NotConnected,
                    "the store has not answered for five minutes, so that revocations may be unknown",
                )),
            })
        };
        if let Some(known) = known() {
            return known;
        }
        let (store, asked) = (self.clone(), Instant::now());
        self.wait(async move { store.read_changes(kind, asked).await })?;
        known().unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))
    }

    fn refresh(&self, kind: Kind) -> BoxFuture<'_, io::Result<()>> {
        async move {
            let asked = Instant::now();
            let last = self.0.mirrors.kinds.lock().get(&kind).map(|one| one.read);
            // The last read may have begun before the change that is looked for. All who ask meanwhile share the next one.
            if let Some(rest) = last.and_then(|last| REFRESH.checked_sub(last.elapsed())) {
                tokio::time::sleep(rest).await;
            }
            Ok(self.read_changes(kind, asked).await?)
        }
        .boxed()
    }

    fn change(&self, kind: Kind, change: &mut dyn FnMut(&Table) -> Vec<Change>) -> io::Result<()> {
        let store = self.clone();
        let (changing, table) = self.wait(async move { store.begin_change(kind).await })?;
        let changes = change(&table);
        let store = self.clone();
        Ok(self.wait(async move { store.end_change(kind, changing, changes).await })?)
    }

    fn change_one(&self, kind: Kind, key: &str, change: &mut OneChange<'_>) -> io::Result<()> {
        let (store, name) = (self.clone(), key.to_owned());
        let (changing, body, now) =
            self.wait(async move { store.begin_change_of(kind, &name).await })?;
        let changes = change(body.as_deref(), now).into_iter().collect();
        let store = self.clone();
        Ok(self.wait(async move { store.end_change(kind, changing, changes).await })?)
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

    fn is_old(&self, sealed: &[u8]) -> bool {
        let sealed = std::str::from_utf8(sealed);
        sealed.is_ok_and(|sealed| self.keys().is_old(sealed))
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

    fn write_audit(
        &self,
        lines: Vec<AuditLine>,
        before: Option<String>,
    ) -> BoxFuture<'_, io::Result<AuditTaken>> {
        async move {
            let (mut chains, mut places, mut days, mut texts) = (vec![], vec![], vec![], vec![]);
            for line in lines {
                chains.push(line.chain);
                places.push(line.place);
                days.push(line.day);
                texts.push(line.text);
            }
            let count = texts.len();
            let rows = self
                .query(WRITE_AUDIT, &[&days, &chains, &places, &texts, &before])
                .await?;
            let row = rows.first().ok_or(io::ErrorKind::UnexpectedEof)?;
            let (written, same): (i64, i64) = (row.get(0), row.get(1));
            Ok(match (row.get(2), row.get(3)) {
                (true, _) => AuditTaken::Foreign,
                (false, _) if usize::try_from(written + same) != Ok(count) => AuditTaken::Again,
                (false, true) => AuditTaken::Gap,
                (false, false) => AuditTaken::All,
            })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_counts_for_five_minutes_after_the_last_read_that_succeeded() {
        let now = Instant::now();
        let mut mirror = Mirror {
            number: 7,
            epoch: 1,
            stamp: 1,
            table: Arc::default(),
            read: now,
            doubted: None,
        };
        assert!(!mirror.is_blind() && mirror.last() == 7);
        // A connection that was made again: numbers may be those of another database.
        mirror.doubted = Some(now);
        assert_eq!(mirror.last(), 0);
        mirror.read = now + Duration::from_millis(1);
        assert_eq!(mirror.last(), 7);
        let Some(long_ago) = now.checked_sub(BLIND + Duration::from_secs(1)) else {
            return;
        };
        mirror.read = long_ago;
        assert!(mirror.is_blind() && mirror.last() == 0);
    }
}
