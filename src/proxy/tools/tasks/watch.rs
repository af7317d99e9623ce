//! The tasks that a client listens to. A change of one is checked and shown as the answer to `tasks/get` is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::handle::Handle;
use crate::proxy::{Caller, Client};
use crate::tool::ServerName;

/// The maximum number of tasks that one subscription is about.
pub(super) const MOST_TASKS: usize = 256;

/// The maximum number of changes that wait for a client; it can ask for the state of its tasks at any time.
const MOST_WAITING: usize = 64;

/// All subscriptions to tasks.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Watches(Mutex<Vec<Weak<Watched>>>);

/// The subscription of a client to tasks, as long as it exists.
pub(crate) struct TaskWatch {
    pub(super) watched: Arc<Watched>,
    /// The tasks whose end was passed on.
    pub(super) ended: BTreeSet<String>,
    changes: mpsc::Receiver<Change>,
}

/// Its tasks, by our ids.
pub(super) struct Watched {
    pub(super) caller: Caller,
    pub(super) tasks: BTreeMap<String, Handle>,
    changes: mpsc::Sender<Change>,
}

/// A change of a task: its id, and the server's notification.
pub(super) struct Change {
    pub(super) id: String,
    pub(super) params: Bytes,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched")
            .field("tasks", &self.tasks.len())
            .finish_non_exhaustive()
    }
}

impl Watches {
    /// Subscribes a caller to these tasks.
    pub(super) fn add(&self, caller: &Caller, tasks: BTreeMap<String, Handle>) -> TaskWatch {
        let (sender, changes) = mpsc::channel(MOST_WAITING);
        let watched = Arc::new(Watched {
            caller: caller.clone(),
            tasks,
            changes: sender,
        });
        let mut all = self.0.lock();
        all.retain(|known| known.strong_count() > 0);
        if !watched.tasks.is_empty() {
            all.push(Arc::downgrade(&watched));
        }
        TaskWatch {
            watched,
            ended: BTreeSet::new(),
            changes,
        }
    }

    /// Passes the change of a task of `server` on to those who listen to it.
    pub(super) fn changed(&self, server: &ServerName, own: &str, params: &Bytes) {
        let all: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        for watched in all {
            let is_meant = |handle: &Handle| {
                let tool = handle.tool();
                handle.id == own && tool.is_some_and(|tool| tool.server == *server)
            };
            for (id, _) in watched.tasks.iter().filter(|(_, handle)| is_meant(handle)) {
                let (id, params) = (id.clone(), params.clone());
                if watched.changes.try_send(Change { id, params }).is_err() {
                    tracing::debug!(%server, "a client does not take the changes of its tasks");
                }
            }
        }
    }
}

impl TaskWatch {
    /// Its tasks by our ids: the server, and its own id.
    #[must_use]
    pub(crate) fn followed(&self) -> BTreeMap<String, (ServerName, String)> {
        let tasks = self.watched.tasks.iter();
        let of_server = |(id, handle): (&String, &Handle)| {
            Some((id.clone(), (handle.tool()?.server, handle.id.clone())))
        };
        tasks.filter_map(of_server).collect()
    }

    /// The client that listens.
    pub(in crate::proxy) fn client(&self) -> &Arc<Client> {
        &self.watched.caller.client
    }

    /// The next change; never resolves without tasks.
    pub(super) async fn next(&mut self) -> Option<Change> {
        self.changes.recv().await
    }
}
