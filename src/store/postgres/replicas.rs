//! The replicas that serve clients, and whether they live.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;

use super::{Store, StoreError};
use crate::secret::random_bytes;

/// The time between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// The topic of messages about replicas that have come.
pub(super) const REPLICA: &str = "replica";

/// The id of a replica: 16 hexadecimal digits, new with each start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ReplicaId(Arc<str>);

/// A replica that lives.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Replica {
    /// The replica's id.
    pub(crate) id: ReplicaId,
    /// The URL by which other replicas reach it.
    pub(crate) peer_url: String,
    /// The version of the replica's program.
    pub(crate) build: String,
    /// Whether it reaches itself at its URL; `None` if that is not known yet.
    pub(crate) reached: Option<bool>,
    /// The age of its last sign of life, in seconds.
    pub(crate) age: f64,
}

/// Processes of a server that runs at one replica for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacedAt {
    /// The server.
    pub(crate) server: String,
    /// The URL of the replica.
    pub(crate) peer_url: String,
    /// The number of its processes there: one for each person, or for all.
    pub(crate) processes: i64,
}

impl Replica {
    /// The fault of a replica that does not reach itself at its URL.
    #[must_use]
    pub(crate) fn fault(&self) -> Option<&'static str> {
        (self.reached == Some(false))
            .then_some("it does not reach itself there, so set its `http.peer` to its own URL")
    }
}

impl ReplicaId {
    /// A new id.
    pub(super) fn random() -> Self {
        Self(HEXLOWER.encode(&random_bytes::<8>()).into())
    }

    /// Reads an id. `None` if it is none.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 16 && text.bytes().all(is_digit)).then(|| Self(text.into()))
    }

    /// The id as text.
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

const BEAT: &str = "insert into replica (id, peer_url, build, reached) values ($1, $2, $3, $4) \
    on conflict (id) do update set heartbeat = now(), peer_url = excluded.peer_url, reached = excluded.reached";

/// A replica without a sign of life for 10 seconds is dead; its row goes after a minute. The schema before has no column `reached`.
const ALIVE: &str = "select id, peer_url, build, extract(epoch from now() - heartbeat)::float8, \
    (to_jsonb(replica) ->> 'reached')::boolean from replica \
    where heartbeat > now() - interval '10 seconds' order by id";

/// The processes of servers that run at one replica: those of all people together. The turns of replicas are leases, too.
const PLACED: &str = "select split_part(home.server, ' ', 1), replica.peer_url, count(*) from home \
    join replica on replica.id = home.replica where home.until > now() and home.session <> 'turn' \
    group by 1, 2 order by 1, 2";

/// A replica that has ended, and whose address this one has now.
const FOLLOW: &str = "delete from replica where peer_url = $1 and id <> $2";

const BURY: &str = "delete from replica where heartbeat < now() - interval '1 minute'";

impl Store {
    /// The id of this replica.
    #[must_use]
    pub(crate) fn id(&self) -> &ReplicaId {
        &self.0.id
    }

    /// Enters this replica and keeps it alive while the store is open. Others reach it at `peer_url`.
    ///
    /// # Errors
    /// When PostgreSQL does not answer.
    pub(crate) async fn announce(&self, peer_url: &str, build: &str) -> Result<(), StoreError> {
        let own = self.id().as_str();
        self.execute(FOLLOW, &[&peer_url, &own]).await?;
        self.beat(peer_url, build).await?;
        self.appear().await;
        let inner = Arc::downgrade(&self.0);
        let (peer_url, build) = (peer_url.to_owned(), build.to_owned());
        self.spawn(async move {
            let mut beaten = Instant::now();
            loop {
                tokio::time::sleep(HEARTBEAT).await;
                let Some(store) = inner.upgrade().map(Store) else {
                    return;
                };
                if store.0.has_retired.load(Ordering::Relaxed) {
                    return;
                }
                match store.beat(&peer_url, &build).await {
                    Ok(()) => {
                        if beaten.elapsed() > HEARTBEAT * 4 {
                            // Others may have taken it for dead.
                            store.appear().await;
                        }
                        beaten = Instant::now();
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the store has no sign of life of this replica");
                    }
                }
            }
        });
        Ok(())
    }

    /// Notes whether this replica reaches itself at its URL, with the next sign of life.
    pub(crate) fn note_reached(&self, is_reached: bool) {
        *self.0.reached.write() = Some(is_reached);
    }

    /// Has the others read at once who lives, instead of at their next sign of life.
    async fn appear(&self) {
        if let Err(error) = self.notify(REPLICA, "").await {
            tracing::debug!(%error, "other replicas learn of this one later");
        }
    }

    async fn beat(&self, peer_url: &str, build: &str) -> Result<(), StoreError> {
        let reached = *self.0.reached.read();
        self.execute(BEAT, &[&self.id().as_str(), &peer_url, &build, &reached])
            .await?;
        self.execute(BURY, &[]).await?;
        self.replicas().await?;
        Ok(())
    }

    /// The replicas that live now, this one included, by id.
    ///
    /// # Errors
    /// When PostgreSQL does not answer.
    pub(crate) async fn replicas(&self) -> Result<Arc<[Replica]>, StoreError> {
        let rows = self.query(ALIVE, &[]).await?;
        let replicas = rows.iter().filter_map(|row| {
            Some(Replica {
                id: ReplicaId::parse(row.get(0))?,
                peer_url: row.get(1),
                build: row.get(2),
                age: row.get(3),
                reached: row.get(4),
            })
        });
        let replicas: Arc<[Replica]> = replicas.collect();
        *self.0.alive.write() = replicas.clone();
        Ok(replicas)
    }

    /// The replicas at which servers run that have one process for all.
    ///
    /// # Errors
    /// When PostgreSQL does not answer.
    pub(crate) async fn placed(&self) -> Result<Vec<PlacedAt>, StoreError> {
        let rows = self.query(PLACED, &[]).await?;
        let placed = rows.iter().map(|row| PlacedAt {
            server: row.get(0),
            peer_url: row.get(1),
            processes: row.get(2),
        });
        Ok(placed.collect())
    }

    /// The replicas that lived at the last heartbeat, without asking PostgreSQL.
    #[must_use]
    pub(crate) fn known_replicas(&self) -> Arc<[Replica]> {
        self.0.alive.read().clone()
    }

    /// Removes this replica, which has ended its work.
    ///
    /// # Errors
    /// When PostgreSQL does not answer.
    pub(crate) async fn retire(&self) -> Result<(), StoreError> {
        self.0.has_retired.store(true, Ordering::Relaxed);
        self.execute("delete from replica where id = $1", &[&self.id().as_str()])
            .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_sixteen_digits() {
        let id = ReplicaId::random();
        assert_eq!(ReplicaId::parse(id.as_str()), Some(id));
        for text in ["", "0123", "0123456789abcdeg", "0123456789ABCDEF"] {
            assert_eq!(ReplicaId::parse(text), None, "{text}");
        }
    }
}
