//! The store on PostgreSQL, as replicas use it.

use std::time::Duration;

use bytes::Bytes;
use data_encoding::HEXLOWER_PERMISSIVE;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use super::{Answer, Backing, Event, Home, IdentityHash, LeaseKey, Unavailable};
use crate::secret::random_bytes;
use crate::shutdown::Tasks;
use crate::store::{ReplicaId, Signal, Store, StoreError};

/// Events that wait for their reader; one that falls behind reads everything again.
const WAITING: usize = 1024;

const SESSIONS: &str =
    "select hash, body, ended from session where hash = any($1) and expires > now()";
const SESSION: &str = "select body, ended from session where hash = $1 and expires > now()";
const ADD: &str = "insert into session (hash, body, expires, owner) values ($1, $2, to_timestamp($3::float8), $4) \
    on conflict (hash) do nothing";
const CHANGE: &str = "update session set body = $2 where hash = $1 and body = $3 and not ended";
const END: &str = "insert into session (hash, body, ended, expires, owner) values ($1, '', true, to_timestamp($2::float8), $3) \
    on conflict (hash) do update set body = '', ended = true";

/// The most rows of an identity, and their most bytes: the sessions that were opened first lose theirs.
const MOST_ROWS: i64 = 4096;
const MOST_BYTES: i64 = 16 * 1024 * 1024;
const TRIM: &str = "delete from session where hash in (select hash from session where hash = any (array(select hash from \
    (select hash, row_number() over newest as place, sum(octet_length(body)) over newest as size \
    from session where owner = $1 window newest as (order by expires desc, hash)) as own where place > $2 or size > $3)) \
    for update skip locked)";

/// So many of 256 writes look for rows that are too many.
const SELDOM: u8 = 16;

const KEEP: &str = "insert into answer (stream, sequence, owner, body, expires) \
    select $1, number, $2, body, now() + $5::float8 * interval '1 second' from unnest($3::bigint[], $4::bytea[]) as event (number, body) \
    on conflict do nothing";
const KEPT: &str = "select sequence, body from answer where stream = $1 and owner = $2 and sequence > $3 and expires > now() \
    order by sequence";

const TAKE: &str = "insert into home (session, server, replica, sealed, until) values ($1, $2, $3, '1', now() + $4::float8 * interval '1 second') \
    on conflict (session, server) do update \
    set replica = excluded.replica, sealed = (home.sealed::bigint + 1)::text, until = excluded.until where home.until < now() \
    returning sealed::bigint";
const HOME: &str = "select replica, sealed::bigint, greatest(extract(epoch from until - now()), 0)::float8 from home \
    where session = $1 and server = $2";
const HOLD: &str = "update home set until = now() + $5::float8 * interval '1 second' \
    from unnest($1::bytea[], $2::text[], $3::bigint[]) as held (session, server, fence) \
    where home.session = held.session and home.server = held.server and home.sealed = held.fence::text and home.replica = $4 \
    returning home.session, home.server";
const LEAVE: &str = "update home set until = now() - interval '1 millisecond' where session = $1 and server = $2 and replica = $3 and sealed = $4";
const FORGET: &str =
    "delete from home where session = $1 and server = $2 and replica = $3 and sealed = $4";

/// A store on PostgreSQL.
#[derive(Debug)]
pub(super) struct OnPostgres {
    pub(super) store: Store,
    pub(super) tasks: Tasks,
}

impl From<StoreError> for Unavailable {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

impl Backing for OnPostgres {
    fn id(&self) -> &str {
        self.store.id().as_str()
    }

    fn note_reached(&self, is_reached: bool) {
        self.store.note_reached(is_reached);
    }

    fn peer(&self, replica: &str) -> Option<String> {
        let id = ReplicaId::parse(replica)?;
        let known = self.store.known_replicas();
        let replica = known.iter().find(|known| known.id == id)?;
        Some(replica.peer_url.clone())
    }

    fn retire(&self) -> Answer<()> {
        let store = self.store.clone();
        Box::pin(async move { Ok(store.retire().await?) })
    }

    fn notify(&self, topic: &'static str, payload: String) -> Answer<()> {
        let store = self.store.clone();
        Box::pin(async move { Ok(store.notify(topic, &payload).await?) })
    }

    fn events(&self) -> mpsc::Receiver<Event> {
        let (events, receiver) = mpsc::channel(WAITING);
        let mut signals = self.store.notifications();
        let tasks = self.tasks.clone();
        self.tasks.spawn(async move {
            loop {
                let signal = tokio::select! {
                    signal = signals.recv() => signal,
                    () = tasks.stopped() => return,
                };
                let event = match signal {
                    Ok(Signal::Message {
                        topic,
                        sender,
                        payload,
                    }) => Event::Message {
                        topic,
                        sender: sender.as_str().to_owned(),
                        payload,
                    },
                    Ok(Signal::Reread) | Err(RecvError::Lagged(_)) => Event::Reread,
                    Err(RecvError::Closed) => return,
                };
                if events.send(event).await.is_err() {
                    return;
                }
            }
        });
        receiver
    }

    fn sessions(&self, names: Vec<String>) -> Answer<Vec<(String, Vec<u8>, bool)>> {
        let store = self.store.clone();
        Box::pin(async move {
            let hashes: Vec<Vec<u8>> = names.iter().map(|name| bytes(name)).collect();
            let rows = store.query(SESSIONS, &[&hashes]).await?;
            let rows = rows.iter().map(|row| {
                let hash: &[u8] = row.get(0);
                (HEXLOWER_PERMISSIVE.encode(hash), row.get(1), row.get(2))
            });
            Ok(rows.collect())
        })
    }

    fn session(&self, name: String) -> Answer<Option<(Vec<u8>, bool)>> {
        let store = self.store.clone();
        Box::pin(async move {
            let row = store.query_opt(SESSION, &[&bytes(&name)]).await?;
            Ok(row.map(|row| (row.get(0), row.get(1))))
        })
    }

    fn write_session(
        &self,
        (owner, name): (IdentityHash, String),
        before: Option<Vec<u8>>,
        body: Vec<u8>,
        expires: u64,
    ) -> Answer<bool> {
        let store = self.store.clone();
        Box::pin(async move {
            let hash = bytes(&name);
            let written = match before {
                None => {
                    store
                        .execute(ADD, &[&hash, &body, &seconds(expires), &&owner[..]])
                        .await?
                }
                Some(before) => store.execute(CHANGE, &[&hash, &body, &before]).await?,
            };
            trim(&store, &owner).await;
            Ok(written > 0)
        })
    }

    fn end_session(&self, owner: IdentityHash, name: String, expires: u64) -> Answer<()> {
        let store = self.store.clone();
        Box::pin(async move {
            store
                .execute(END, &[&bytes(&name), &seconds(expires), &&owner[..]])
                .await?;
            trim(&store, &owner).await;
            Ok(())
        })
    }

    fn keep_answer(
        &self,
        session: String,
        stream: String,
        events: Vec<(u64, Bytes)>,
        kept: Duration,
    ) -> Answer<()> {
        let store = self.store.clone();
        Box::pin(async move {
            let (numbers, bodies): (Vec<i64>, Vec<Vec<u8>>) = events
                .into_iter()
                .map(|(number, body)| (i64::try_from(number).unwrap_or(i64::MAX), body.to_vec()))
                .unzip();
            let owner = bytes(&session);
            let kept = kept.as_secs_f64();
            store
                .execute(KEEP, &[&stream, &owner, &numbers, &bodies, &kept])
                .await?;
            Ok(())
        })
    }

    fn take_home(&self, place: LeaseKey, lasting: Duration) -> Answer<Home> {
        let store = self.store.clone();
        Box::pin(async move {
            let own = store.id().as_str();
            let seconds = lasting.as_secs_f64();
            // Between the two statements, the row may go.
            for _ in 0..4 {
                let taken = store
                    .query_opt(TAKE, &[&place.owner, &place.name, &own, &seconds])
                    .await?;
                if let Some(row) = taken {
                    return Ok(Home {
                        replica: own.to_owned(),
                        fence: row.get::<_, i64>(0).unsigned_abs(),
                        left: lasting,
                        is_new: true,
                    });
                }
                let held = store.query_opt(HOME, &[&place.owner, &place.name]).await?;
                if let Some(row) = held {
                    return Ok(Home {
                        replica: row.get(0),
                        fence: row.get::<_, i64>(1).unsigned_abs(),
                        left: Duration::try_from_secs_f64(row.get(2)).unwrap_or_default(),
                        is_new: false,
                    });
                }
            }
            Err(Unavailable("the lease changes all the time".to_owned()))
        })
    }

    fn keep_homes(&self, leases: Vec<(LeaseKey, u64)>, lasting: Duration) -> Answer<Vec<LeaseKey>> {
        let store = self.store.clone();
        Box::pin(async move {
            let (mut owners, mut names, mut fences) = (vec![], vec![], vec![]);
            for (place, fence) in leases {
                owners.push(place.owner);
                names.push(place.name);
                fences.push(i64::try_from(fence).unwrap_or(i64::MAX));
            }
            let (own, seconds) = (store.id().as_str(), lasting.as_secs_f64());
            let rows = store
                .query(HOLD, &[&owners, &names, &fences, &own, &seconds])
                .await?;
            let places = rows.iter().map(|row| LeaseKey {
                owner: row.get(0),
                name: row.get(1),
            });
            Ok(places.collect())
        })
    }

    fn leave_home(&self, place: LeaseKey, fence: u64, is_over: bool) -> Answer<()> {
        let store = self.store.clone();
        Box::pin(async move {
            let statement = if is_over { FORGET } else { LEAVE };
            let (own, fence) = (store.id().as_str(), fence.to_string());
            store
                .execute(statement, &[&place.owner, &place.name, &own, &fence])
                .await?;
            Ok(())
        })
    }

    fn kept_answer(
        &self,
        session: String,
        stream: String,
        number: u64,
    ) -> Answer<Vec<(u64, Bytes)>> {
        let store = self.store.clone();
        Box::pin(async move {
            let behind = i64::try_from(number).unwrap_or(i64::MAX);
            let rows = store
                .query(KEPT, &[&stream, &bytes(&session), &behind])
                .await?;
            let events = rows.iter().map(|row| {
                let (number, body): (i64, Vec<u8>) = (row.get(0), row.get(1));
                (u64::try_from(number).unwrap_or(0), Bytes::from(body))
            });
            Ok(events.collect())
        })
    }
}

/// Removes the rows of an identity that are too many, now and then.
async fn trim(store: &Store, owner: &IdentityHash) {
    if random_bytes::<1>()[0] >= SELDOM {
        return;
    }
    match store
        .execute(TRIM, &[&&owner[..], &MOST_ROWS, &MOST_BYTES])
        .await
    {
        Ok(0) => {}
        Ok(count) => tracing::warn!(
            count,
            "the oldest sessions of an identity leave the store, because it has too many"
        ),
        Err(error) => tracing::debug!(%error, "the sessions of an identity are counted later"),
    }
}

/// The hash in the name of a session.
fn bytes(name: &str) -> Vec<u8> {
    HEXLOWER_PERMISSIVE
        .decode(name.as_bytes())
        .unwrap_or_default()
}

/// Seconds as PostgreSQL takes them.
#[expect(
    clippy::cast_precision_loss,
    reason = "the seconds since 1970 need 31 bits"
)]
fn seconds(since: u64) -> f64 {
    since as f64
}
