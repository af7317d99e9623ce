//! [`Shelves`] in PostgreSQL.

use std::io;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio_postgres::types::ToSql;

use super::records::Transaction;
use super::{Store, StoreError};
use crate::store::shelves::Days;
use crate::store::{Allowance, Item, ItemKind, Records as _, Shelves};

const KEEP: &str = "insert into shelf (kind, scope, key, body, expires) \
    values ($1, $2, $3, $4, now() + $5::float8 * interval '1 second') \
    on conflict (kind, scope, key) do update set body = excluded.body, expires = excluded.expires, created = now()";

const FETCH: &str =
    "select body from shelf where kind = $1 and scope = $2 and key = $3 and expires > now()";

const CHARGE: &str = "insert into allowance as known (key, period, used, granted, ends) \
    values ($1, $2, $3, 0, now() + $4::float8 * interval '1 second') \
    on conflict (key, period) do update set used = known.used + excluded.used";

const COUNTED: &str = "select body from usage where day = $1::text::date";

const COUNT: &str = "insert into usage (day, body) values ($1::text::date, $2) \
    on conflict (day) do update set body = excluded.body, changed = now()";

const COUNTS: &str = "select day::text, body from usage where $1::text is null or day >= $1::text::date order by day";

impl Store {
    async fn begin_count(&self, day: &str) -> Result<(Transaction, Option<Vec<u8>>), StoreError> {
        let transaction = Transaction::begin(self).await?;
        let connection = transaction.connection();
        let lock = "select pg_advisory_xact_lock(hashtextextended($1, 2))";
        self.limited(connection.execute(lock, &[&day])).await?;
        let row = self.limited(connection.query_opt(COUNTED, &[&day])).await?;
        Ok((transaction, row.map(|row| row.get(0))))
    }

    async fn end_count(
        &self,
        day: &str,
        transaction: Transaction,
        body: Vec<u8>,
    ) -> Result<(), StoreError> {
        let connection = transaction.connection();
        self.limited(connection.execute(COUNT, &[&day, &body]))
            .await?;
        transaction.commit(self).await
    }
}

impl Shelves for Store {
    fn keep(&self, item: Item, body: &[u8], lifetime: Duration) -> io::Result<()> {
        let sealed = self.seal(&item.context(), body);
        let store = self.clone();
        let seconds = lifetime.as_secs_f64();
        Ok(self.wait(async move {
            let Item { kind, scope, key } = item;
            let parameters: [&(dyn ToSql + Sync); 5] =
                [&kind.name(), &scope, &key, &sealed, &seconds];
            store.execute(KEEP, &parameters).await.map(drop)
        })?)
    }

    fn fetch(&self, item: Item) -> io::Result<Option<Vec<u8>>> {
        let (store, asked) = (self.clone(), item.clone());
        let row = self.wait(async move {
            let Item { kind, scope, key } = asked;
            store.query_opt(FETCH, &[&kind.name(), &scope, &key]).await
        })?;
        let sealed: Option<Vec<u8>> = row.map(|row| row.get(0));
        Ok(sealed.and_then(|sealed| self.open(&item.context(), &sealed)))
    }

    fn keys_of(&self, kind: ItemKind) -> io::Result<Vec<String>> {
        let store = self.clone();
        let keys =
            "select key from shelf where kind = $1 and scope = '' and expires > now() order by key";
        let rows = self.wait(async move { store.query(keys, &[&kind.name()]).await })?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    fn count(
        &self,
        day: &str,
        merge: &mut dyn FnMut(Option<Vec<u8>>) -> Vec<u8>,
    ) -> io::Result<()> {
        let (store, of) = (self.clone(), day.to_owned());
        let (transaction, body) = self.wait(async move { store.begin_count(&of).await })?;
        let body = merge(body);
        let (store, of) = (self.clone(), day.to_owned());
        Ok(self.wait(async move { store.end_count(&of, transaction, body).await })?)
    }

    fn counts(&self, since: Option<&str>) -> io::Result<Days> {
        let (store, since) = (self.clone(), since.map(str::to_owned));
        let rows = self.wait(async move { store.query(COUNTS, &[&since]).await })?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    fn charge(&self, used: Allowance) -> BoxFuture<'_, io::Result<()>> {
        async move {
            let amount = i64::try_from(used.wanted).unwrap_or(i64::MAX);
            let ends = used.ends.as_secs_f64();
            let parameters: [&(dyn ToSql + Sync); 4] = [&used.key, &used.period, &amount, &ends];
            self.execute(CHARGE, &parameters).await?;
            Ok(())
        }
        .boxed()
    }
}
