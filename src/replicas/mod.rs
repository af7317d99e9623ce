//! Several replicas of one gateway. Each of them can answer every request.
//!
//! The sealed id of a session contains the session ([`seal`]), so every replica can serve it without asking the store. The store has the changes
//! since the handshake, and the parts that did not fit into the id ([`change`]). A message for one replica is a [`letter`] over HTTP; a notification
//! of the store only says that something has changed, or that a client has done something that other replicas may have to know.
//!
//! *Never*: knows a server or a client's messages; lets a request wait for the store, except where the request changes something.

mod backing;
mod change;
mod client;
mod delivery;
mod following;
mod leases;
mod letter;
mod peers;
mod reach;
mod seal;
mod sessions;
mod telling;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc};

use crate::shutdown::Tasks;
#[cfg(feature = "postgres")]
pub(crate) use backing::of_store;
pub(crate) use backing::{Backing, Event, Home, LeaseKey, Unavailable};
pub(crate) use change::Change;
pub(crate) use client::ClientOfReplica;
pub(crate) use following::Notice;
use following::follow;
pub(crate) use leases::Turn;
use letter::Taken;
pub(crate) use letter::{Content, Tunnel};
use peers::Peers;
pub(crate) use peers::Unreachable;
use seal::Keys;
pub(crate) use seal::{IdentityHash, SessionFacts, VALID, name_of};
use sessions::Known;
use telling::{Echoes, Outgoing};

/// The path at which replicas get letters.
pub(crate) const LETTERS: &str = "/.mcpzip/replicas";

/// The header by which a letter is known before its body is read.
pub(crate) const SEAL: &str = "mcpzip-letter";

/// The header of a response that shows that a replica has taken the letter.
pub(crate) const TAKEN: &str = "mcpzip-letter-taken";

/// The longest id of a request that its client can cancel at any replica, in bytes.
pub(crate) const LONGEST_ID: usize = 1024;

/// The replicas, as one of them sees them.
#[derive(Debug)]
pub(crate) struct Replicas {
    id: String,
    keys: Keys,
    backing: Arc<dyn Backing>,
    peers: Peers,
    taken: Taken,
    known: Mutex<Known>,
    notices: broadcast::Sender<Notice>,
    /// Those who wait until a notification of this replica has come back, by its topic and text.
    echoes: Mutex<Echoes>,
    outgoing: mpsc::Sender<Outgoing>,
    /// The replicas that did not take a letter, each of which the log has once.
    misled: Mutex<HashSet<String>>,
}

impl Replicas {
    /// Begins to follow the other replicas. `secrets` are the keys of the store, the current one first.
    pub(crate) fn start<'s>(
        backing: Arc<dyn Backing>,
        secrets: impl IntoIterator<Item = &'s [u8; 32]>,
        tasks: &Tasks,
    ) -> Arc<Self> {
        let (outgoing, queue) = mpsc::channel(telling::OUTGOING);
        let replicas = Arc::new(Self {
            id: backing.id().to_owned(),
            keys: Keys::new(secrets),
            peers: Peers::new(),
            taken: Taken::default(),
            known: Mutex::default(),
            notices: broadcast::channel(following::WAITING).0,
            echoes: Mutex::default(),
            outgoing,
            misled: Mutex::default(),
            backing,
        });
        // They end with the run, whose last requests still use them.
        let own = tasks.clone();
        tasks.spawn(telling::send(replicas.backing.clone(), queue, own));
        tasks.spawn(follow(replicas.clone(), tasks.clone()));
        let (itself, own) = (replicas.clone(), tasks.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = itself.reach_itself() => {}
                () = own.stopped() => {}
            }
        });
        replicas
    }

    /// The id of this replica.
    #[must_use]
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Whether another replica lives.
    #[must_use]
    pub(crate) fn has(&self, replica: &str) -> bool {
        replica != self.id && self.backing.peer(replica).is_some()
    }

    /// Leaves the others, after the last request has been answered.
    pub(crate) async fn retire(&self) {
        if let Err(error) = self.backing.retire().await {
            tracing::debug!(%error, "other replicas notice the end of this one later");
        }
    }

    /// The id of a session with these facts.
    #[must_use]
    pub(crate) fn session_id(&self, facts: &SessionFacts) -> String {
        self.keys.session_id(facts)
    }

    /// The facts in the id of a session, if it is valid.
    #[must_use]
    pub(crate) fn open_session(&self, id: &str) -> Option<SessionFacts> {
        self.keys.open_session(id, seconds())
    }

    /// The replica at which the request with this `state` waits.
    #[must_use]
    pub(crate) fn open_state(&self, state: &str, identity: &IdentityHash) -> Option<String> {
        self.keys.open_state(state, identity)
    }
}

/// The time in seconds since 1970.
pub(crate) fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
