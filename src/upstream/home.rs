//! Servers that run at one of several replicas (`"placement": "one"`), as the pools of all replicas see them.

use std::collections::HashSet;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::own::Streams;
use crate::config::Entitlement;
use crate::tool::ServerName;

/// The notification by which a connection leaves a process that it does not need any more.
pub(super) const LEAVE: &str = "mcpzip/leave";

/// The beginning of the methods by which a process and its connections talk about themselves.
pub(super) const OWN: &str = "mcpzip/";

/// The notification that a process takes no more requests, because its replica is about to end, and the one that it has not taken a request.
pub(super) const LEAVING: &str = "mcpzip/leaving";
pub(super) const UNSENT: &str = "mcpzip/unsent";

/// Why such requests are sent again.
pub(super) const LEFT: &str = "the replica of mcpzip that it runs at is about to end";

/// The notification that the process has ended, with the reason.
pub(super) const GONE: &str = "mcpzip/gone";

/// Why calls are lost when a connection to such a process ends, which may have said why its process has ended.
pub(super) fn lost(gone: Option<&str>) -> String {
    match gone {
        Some(reason) => {
            format!("its process has ended ({reason}): what it had in memory is lost")
        }
        None => "the connection to its process has ended: if the process has ended, or the replica of mcpzip that it ran at, \
            what it had in memory is lost"
            .to_owned(),
    }
}

/// How long sessions get to know that a server's process is another one than before, and how long clients without a session.
const TOLD: Duration = Duration::from_secs(60 * 60);
const TOLD_ALL: Duration = Duration::from_secs(60);

/// A server that runs at one replica.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    /// The server's name.
    pub(crate) server: ServerName,
    /// The hash of its entry: another entry is another process.
    pub(crate) entry: String,
    /// The person that the process is for, with its rights; empty if none is known.
    pub(crate) person: String,
}

impl Wanted {
    pub(super) fn new(server: &ServerName, entry: String, person: Option<&Entitlement>) -> Self {
        let rights = |one: &Entitlement| {
            let rights = (&one.profiles, &one.limit, &one.grant);
            format!("{}\n{rights:?}", one.account())
        };
        Self {
            server: server.clone(),
            entry,
            person: person.map(rights).unwrap_or_default(),
        }
    }
}

/// A connection to the process of such a server.
pub(crate) struct Attached {
    /// The messages in both directions.
    pub(crate) streams: Streams,
    /// The first id that its requests may have, so that they differ from those of other connections.
    pub(crate) first_id: u64,
    /// The age of the process, if the one before ended with its replica.
    pub(crate) moved: Option<Duration>,
}

/// The way to servers that run at one replica.
pub(crate) trait Homes: Debug + Send + Sync {
    /// Connects to the process of a server, wherever it runs, and starts it if it runs nowhere.
    ///
    /// # Errors
    /// The reason, for a person.
    fn attach(&self, wanted: Wanted) -> BoxFuture<'_, Result<Attached, String>>;
}

/// The start of a process in place of one that ended with its replica.
#[derive(Debug)]
pub(crate) struct Moved {
    at: Instant,
    told: Mutex<HashSet<String>>,
}

impl Moved {
    pub(super) fn new(age: Duration) -> Self {
        let now = Instant::now();
        Self {
            at: now.checked_sub(age).unwrap_or(now),
            told: Mutex::default(),
        }
    }

    /// The time since then.
    pub(super) fn age(&self) -> Duration {
        self.at.elapsed()
    }

    /// Whether a client has to know of it now: each session once, and others for a short time.
    pub(super) fn concerns(&self, session: Option<&str>) -> bool {
        match session {
            Some(session) => {
                self.at.elapsed() < TOLD && self.told.lock().insert(session.to_owned())
            }
            None => self.at.elapsed() < TOLD_ALL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_gets_to_know_once_and_others_for_a_minute() {
        let moved = Moved::new(Duration::from_secs(5));
        assert!(moved.concerns(Some("a")) && moved.concerns(Some("b")));
        assert!(!moved.concerns(Some("a")));
        assert!(moved.concerns(None) && moved.concerns(None));
        let long_ago = Moved::new(Duration::from_secs(120));
        assert!(!long_ago.concerns(None) && long_ago.concerns(Some("a")));
    }
}
