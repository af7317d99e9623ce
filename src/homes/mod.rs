//! Servers that run at one of several replicas (`"placement": "one"`): the leases by which replicas have them, and the connections of the
//! other replicas.
//!
//! The first replica that needs such a server takes a numbered lease of it in the store, starts it, and renews the lease. The others
//! connect to it by letters. A replica that cannot renew a lease ends the process before another one can take it. `upstream/placed/`
//! has the process.
//!
//! *Never*: reads a message; runs a process without a lease.

mod tunnel;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use crate::replicas::{Content, LeaseKey, Replicas, Tunnel};
use crate::secret::random_bytes;
use crate::shutdown::Tasks;
use crate::tool::ServerName;
use crate::upstream::{Attached, Homes, Placed, Pool, Wanted};
pub(crate) use tunnel::{FIRST_ID, MOVED, Outflow};
use tunnel::{Inflows, Remote};

/// How long a process that takes no more calls stays for those that were sent before the others knew.
const ON_THE_WAY: Duration = Duration::from_millis(500);

/// The time between two prolongations of leases.
const PROLONG: Duration = Duration::from_secs(3);

/// The time between two looks at the leases.
const LOOK: Duration = Duration::from_secs(1);

/// The age of a lease at which its process is ended: before another replica can take it, with the time that a process has for its end.
const STALE: Duration = Duration::from_secs(12);

/// The pause before the next attempt to reach a server, which doubles up to the second one.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause while a lease runs out whose replica is gone.
const GONE: Duration = Duration::from_secs(5);

/// How long another replica may take to answer a request for a connection.
const ATTACHING: Duration = Duration::from_secs(5);

/// The way to servers that run at one replica, as one of the replicas has it. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct HomesOfReplicas(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    replicas: Arc<Replicas>,
    /// The pool of the whole configuration, which starts the processes. It has a reference to this.
    pool: Weak<Pool>,
    tasks: Tasks,
    own: Mutex<HashMap<Wanted, Own>>,
    inflows: Inflows,
    /// Cancelled when this replica is about to end.
    leaving: CancellationToken,
}

/// A server of which this replica has the lease.
#[derive(Debug)]
struct Own {
    fence: u64,
    /// When the lease was taken or prolonged, at the latest.
    prolonged: Instant,
    /// Cancelled when the lease is lost.
    lost: CancellationToken,
    /// `None` until it has started.
    process: Option<Arc<Placed>>,
}

/// The outcome of an attempt to reach a server.
enum Attempt {
    Attached(Attached),
    /// It starts or ends, or its replica is not reached.
    Later,
    /// Its replica is gone; the lease has this time left.
    Gone(Duration),
}

impl Homes for HomesOfReplicas {
    fn attach(&self, wanted: Wanted) -> BoxFuture<'_, Result<Attached, String>> {
        async move {
            let mut pause = PAUSE;
            loop {
                match self.attempt(&wanted).await? {
                    Attempt::Attached(attached) => return Ok(attached),
                    Attempt::Gone(left) => tokio::time::sleep(left.clamp(PAUSE, GONE)).await,
                    Attempt::Later => {
                        tokio::time::sleep(pause).await;
                        pause = LONGEST_PAUSE.min(pause * 2);
                    }
                }
            }
        }
        .boxed()
    }
}

impl HomesOfReplicas {
    /// The homes of this replica; `pool` starts servers.
    pub(crate) fn new(replicas: Arc<Replicas>, pool: &Arc<Pool>, tasks: &Tasks) -> Self {
        let homes = Self(Arc::new(Shared {
            replicas,
            pool: Arc::downgrade(pool),
            tasks: tasks.clone(),
            own: Mutex::default(),
            inflows: Inflows::default(),
            leaving: CancellationToken::new(),
        }));
        let stop = tasks.stop();
        tasks.spawn(
            stop.clone()
                .run_until_cancelled_owned(homes.clone().prolong()),
        );
        tasks.spawn(
            stop.clone()
                .run_until_cancelled_owned(homes.clone().expire()),
        );
        homes
    }

    /// Ends the servers here, which take no more requests, when those in flight are answered, so that they start at other replicas. Resolves when
    /// they have ended.
    pub(crate) async fn leave(&self) {
        self.0.leaving.cancel();
        while !self.0.own.lock().is_empty() {
            tokio::time::sleep(PAUSE / 4).await;
        }
    }

    /// Opens a connection of another replica to a process here, with the first id of its requests, and the age of a process that has lost
    /// its state. `None` if the process is not, or not yet, or no longer here.
    pub(crate) fn open(&self, tunnel: &Tunnel) -> Option<(Outflow, u64, Option<Duration>)> {
        let wanted = Wanted {
            server: ServerName::new(&tunnel.server).ok()?,
            entry: tunnel.entry.clone(),
            person: tunnel.person.clone(),
        };
        let (process, fence) = self.process(&wanted)?;
        if fence != tunnel.fence {
            return None;
        }
        let ((reader, writer), first_id) = self.0.pool.upgrade()?.attach_placed(&process)?;
        let inflow = self.0.inflows.add(tunnel.name.clone(), writer);
        let moved = moved(&process, fence);
        Some((Outflow::new(reader, inflow), first_id, moved))
    }

    /// Takes the next piece of a connection of another replica. Returns whether it has a place.
    pub(crate) async fn take_piece(&self, tunnel: &str, number: u64, body: &[u8]) -> bool {
        self.0.inflows.write(tunnel, number, body).await
    }

    /// The process of a server here, with the fence of its lease.
    fn process(&self, wanted: &Wanted) -> Option<(Arc<Placed>, u64)> {
        let own = self.0.own.lock();
        // After a pause of this machine, another replica may have the lease.
        let own = own
            .get(wanted)
            .filter(|own| own.prolonged.elapsed() <= STALE)?;
        let process = own.process.clone().filter(|process| !process.is_over());
        Some((process?, own.fence))
    }

    /// Tries once to connect to a server.
    async fn attempt(&self, wanted: &Wanted) -> Result<Attempt, String> {
        if let Some((process, fence)) = self.process(wanted)
            && let Some(attached) = self.attach_here(&process, fence)
        {
            return Ok(Attempt::Attached(attached));
        }
        if self.0.own.lock().contains_key(wanted) {
            return Ok(Attempt::Later);
        }
        if self.0.leaving.is_cancelled() {
            return Err("this replica of mcpzip is about to end; call again".to_owned());
        }
        let (replicas, asked) = (&self.0.replicas, Instant::now());
        let home = replicas.take_home(place(wanted)).await;
        let home = home.map_err(|error| {
            format!("the store, which says at which replica it runs, does not answer: {error}")
        })?;
        if home.is_new {
            // A task of its own, so that the lease has an owner if the caller goes away.
            let starting = self.clone().start(wanted.clone(), home.fence, asked);
            let started = self.0.tasks.spawn(starting).await;
            let process = started.map_err(|_| "mcpzip is shutting down".to_owned())??;
            // It is not started again for the same caller.
            let attached = self.attach_here(&process, home.fence);
            let failure = || process.failure().unwrap_or("it has ended again").to_owned();
            return attached.map(Attempt::Attached).ok_or_else(failure);
        }
        if home.replica == replicas.id() || !replicas.has(&home.replica) {
            tracing::debug!(server = %wanted.server, replica = home.replica, left = ?home.left, "the replica that it runs at is not there");
            return Ok(Attempt::Gone(home.left));
        }
        let attached = self.attach_at(&home.replica, home.fence, wanted).await?;
        Ok(attached.map_or(Attempt::Later, Attempt::Attached))
    }

    /// A connection to a process here. `None` if it ends.
    fn attach_here(&self, process: &Arc<Placed>, fence: u64) -> Option<Attached> {
        let (streams, first_id) = self.0.pool.upgrade()?.attach_placed(process)?;
        let moved = moved(process, fence);
        Some(Attached {
            streams,
            first_id,
            moved,
        })
    }

    /// Starts a server under a new lease.
    async fn start(
        self,
        wanted: Wanted,
        fence: u64,
        asked: Instant,
    ) -> Result<Arc<Placed>, String> {
        let lost = CancellationToken::new();
        let own = Own {
            fence,
            prolonged: asked,
            lost: lost.clone(),
            process: None,
        };
        self.0.own.lock().insert(wanted.clone(), own);
        let starting = async {
            match self.0.pool.upgrade() {
                Some(pool) => pool.start_placed(&wanted).await,
                None => Err("mcpzip is shutting down".to_owned()),
            }
        };
        let started = tokio::select! {
            started = starting => started,
            () = lost.cancelled() => Err("this replica has lost the lease of it".to_owned()),
            () = self.0.tasks.stopped() => Err("mcpzip is shutting down".to_owned()),
        };
        let process = match started {
            Ok(process) => process,
            Err(reason) => {
                self.0.own.lock().remove(&wanted);
                self.give_back(&wanted, fence, fence == 1).await;
                return Err(reason);
            }
        };
        if let Some(own) = self.0.own.lock().get_mut(&wanted) {
            own.process = Some(process.clone());
        }
        let (homes, followed) = (self.clone(), process.clone());
        self.0.tasks.spawn(async move {
            let process = followed;
            homes.follow(&wanted, &process, &lost).await;
            homes.0.own.lock().remove(&wanted);
            let is_over = match process.has_answered() {
                true => process.is_unneeded(),
                // No client has an answer of it: what counts is the one before.
                false => fence == 1,
            };
            homes.give_back(&wanted, fence, is_over).await;
        });
        Ok(process)
    }

    /// Ends a process when it must not go on here. Resolves when it has ended.
    async fn follow(&self, wanted: &Wanted, process: &Placed, lost: &CancellationToken) {
        let leaving = async {
            self.0.leaving.cancelled().await;
            process.leave();
            // Calls that are on their way come back unsent.
            tokio::time::sleep(ON_THE_WAY).await;
            process.idle().await;
        };
        tokio::select! {
            () = process.gone() => {}
            () = leaving => {}
            () = lost.cancelled() => {
                tracing::warn!(server = %wanted.server, "the store does not answer, or another replica has it now: it is ended here");
            }
        }
        process.close();
        process.gone().await;
    }

    async fn give_back(&self, wanted: &Wanted, fence: u64, is_over: bool) {
        let left = self.0.replicas.leave_home(place(wanted), fence, is_over);
        if let Err(error) = left.await {
            tracing::debug!(server = %wanted.server, %error, "its lease ends after its time");
        }
    }

    /// Prolongs the leases of this replica, for as long as it runs.
    async fn prolong(self) {
        loop {
            tokio::time::sleep(PROLONG).await;
            let held: HashMap<Wanted, (LeaseKey, u64)> = {
                let own = self.0.own.lock();
                let held = own
                    .iter()
                    .map(|(wanted, own)| (wanted.clone(), (place(wanted), own.fence)));
                held.collect()
            };
            if held.is_empty() {
                continue;
            }
            let asked = Instant::now();
            let kept = match self
                .0
                .replicas
                .keep_homes(held.values().cloned().collect())
                .await
            {
                Ok(kept) => HashSet::<LeaseKey>::from_iter(kept),
                Err(error) => {
                    tracing::debug!(%error, "no lease is prolonged");
                    continue;
                }
            };
            for (wanted, own) in &mut *self.0.own.lock() {
                // Leases that were taken meanwhile are prolonged next time.
                let Some((place, _)) = held.get(wanted).filter(|(_, fence)| *fence == own.fence)
                else {
                    continue;
                };
                match kept.contains(place) {
                    true => own.prolonged = asked,
                    false => own.lost.cancel(),
                }
            }
        }
    }

    /// Gives up the leases that could not be prolonged in time, for as long as this replica runs. It waits for nothing else.
    async fn expire(self) {
        loop {
            tokio::time::sleep(LOOK).await;
            for own in self.0.own.lock().values() {
                if own.prolonged.elapsed() > STALE {
                    own.lost.cancel();
                }
            }
        }
    }

    /// Connects to a server at another replica. `None`: later.
    async fn attach_at(
        &self,
        replica: &str,
        fence: u64,
        wanted: &Wanted,
    ) -> Result<Option<Attached>, String> {
        let name = HEXLOWER.encode(&random_bytes::<16>());
        let tunnel = Tunnel {
            name: name.clone(),
            server: wanted.server.to_string(),
            entry: wanted.entry.clone(),
            person: wanted.person.clone(),
            fence,
        };
        let asking = self.0.replicas.send(replica, Content::Attach(tunnel), b"");
        let response = match tokio::time::timeout(ATTACHING, asking).await {
            Ok(Ok(response)) if response.status().is_success() => response,
            Ok(Ok(_)) | Err(_) => return Ok(None),
            Ok(Err(error)) => {
                tracing::debug!(replica, %error, "the replica that it runs at is not reached");
                return Ok(None);
            }
        };
        let number = |header| {
            let value = response.headers().get(header)?.to_str().ok()?;
            value.parse::<u64>().ok()
        };
        let Some(first_id) = number(FIRST_ID) else {
            return Err("the replica that it runs at has another version of mcpzip".to_owned());
        };
        let moved = number(MOVED).map(Duration::from_secs);
        let remote = Remote {
            replicas: self.0.replicas.clone(),
            replica: replica.to_owned(),
            tunnel: name,
        };
        let streams = remote.open(response.into_body(), &self.0.tasks);
        Ok(Some(Attached {
            streams,
            first_id,
            moved,
        }))
    }
}

/// The age of a process that has lost the state of one before.
fn moved(process: &Placed, fence: u64) -> Option<Duration> {
    (fence > 1).then(|| process.age())
}

/// The place of a server in the store, without the name of its person.
fn place(wanted: &Wanted) -> LeaseKey {
    LeaseKey {
        owner: match wanted.person.is_empty() {
            true => Vec::new(),
            false => Sha256::digest(&wanted.person).to_vec(),
        },
        name: format!("{} {}", wanted.server, wanted.entry),
    }
}
