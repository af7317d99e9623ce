//! Servers that several sessions of one process share.
//!
//! A session joins the slots of a server: new ones, or those of other sessions that the server could not distinguish
//! from it (`key.rs`). After the last session has left, the slots are kept for a while for the next one.

mod key;
mod users;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::UpstreamContext;
use super::guard::Guard;
use super::host::Audience;
use super::own::OwnServers;
use super::slot::Idle;
use super::slots::Slots;
use crate::config::{ConfigHash, Scope, Server, SessionEnv, Sharing};
use crate::events::Events;
use crate::shutdown::Tasks;
use crate::text::hex;
use crate::tool::ServerName;
use key::Key;
pub(super) use users::Users;

/// The time for which the servers of ended sessions are kept.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// The processes and connections that sessions share, with their tasks and guard.
#[derive(Debug)]
pub(crate) struct SharedServers {
    pub(super) tasks: Tasks,
    pub(super) guard: Arc<Guard>,
    pub(crate) events: Arc<Events>,
    /// Whether there may be more than one session.
    is_shared: bool,
    /// The servers of the program that uses the library.
    pub(super) own: OwnServers,
    known: Mutex<Vec<(Key, Arc<Slots>)>>,
    next_user: AtomicU64,
}

/// A session's membership in a server's slots, until it is dropped.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) slots: Arc<Slots>,
    /// The entry in this session's configuration.
    pub(super) entry: Server,
    /// The id of the session among the users of these slots.
    pub(super) user: u64,
    servers: Arc<SharedServers>,
    /// Whether the entry was removed from the configuration.
    is_retired: bool,
}

impl SharedServers {
    /// Creates the servers of a process with any number of sessions; [`SharedServers::finish`] ends those that are
    /// left.
    #[must_use]
    pub(crate) fn new(events: Arc<Events>) -> Arc<Self> {
        Self::with(Tasks::new(), events, true)
    }

    /// Creates the servers of a single run; they end with its `tasks`.
    #[must_use]
    pub(crate) fn of_one(tasks: Tasks) -> Arc<Self> {
        Self::of_run(tasks, Events::new(0))
    }

    /// As [`SharedServers::of_one`], with the events of the run.
    #[must_use]
    pub(crate) fn of_run(tasks: Tasks, events: Arc<Events>) -> Arc<Self> {
        Self::with(tasks, events, false)
    }

    /// Creates the servers of a run inside another program, which must not be started again as their guard process.
    #[must_use]
    pub(crate) fn of_library(tasks: Tasks, events: Arc<Events>, own: OwnServers) -> Arc<Self> {
        Arc::new(Self {
            own,
            ..Self::guarded(tasks, events, false, Guard::absent())
        })
    }

    fn with(tasks: Tasks, events: Arc<Events>, is_shared: bool) -> Arc<Self> {
        Arc::new(Self::guarded(tasks, events, is_shared, Guard::new()))
    }

    fn guarded(tasks: Tasks, events: Arc<Events>, is_shared: bool, guard: Guard) -> Self {
        Self {
            tasks,
            guard: Arc::new(guard),
            events,
            is_shared,
            own: OwnServers::new(),
            known: Mutex::default(),
            next_user: AtomicU64::new(0),
        }
    }

    /// Ends the resources of a single run, after its tasks have ended.
    pub(super) async fn left(&self) {
        if !self.is_shared {
            self.guard.close().await;
        }
    }

    /// Ends all servers, after the last session.
    pub(crate) async fn finish(&self) {
        self.tasks.finish().await;
        self.guard.close().await;
    }

    /// Joins the slots of `server` for a session.
    pub(super) fn join(
        self: &Arc<Self>,
        server: &ServerName,
        entry: &Server,
        idle: Idle,
        session: &Arc<UpstreamContext>,
        audience: &Arc<dyn Audience>,
    ) -> Joined {
        let sharing = self
            .is_shared
            .then(|| sharing(entry, session))
            .filter(|sharing| sharing.scope != Scope::Session);
        let user = self.next_user.fetch_add(1, Ordering::Relaxed);
        let slots = match sharing {
            None => {
                let users = new_users(entry, session, None);
                users.add(user, session.clone(), audience.clone());
                Slots::new(server, entry, idle, users)
            }
            Some(sharing) => {
                let key = Key::of(server, entry, sharing.scope, idle, session);
                let mut known = self.known.lock();
                let equal = known.iter().find(|(other, _)| *other == key);
                let slots = equal.map(|(_, slots)| slots.clone()).unwrap_or_else(|| {
                    let users = new_users(entry, session, Some(sharing));
                    let slots = Slots::new(server, entry, idle, users);
                    known.push((key, slots.clone()));
                    slots
                });
                // Under the lock, so that the slots are not forgotten meanwhile.
                slots.users.add(user, session.clone(), audience.clone());
                slots
            }
        };
        Joined {
            slots,
            entry: entry.clone(),
            user,
            servers: self.clone(),
            is_retired: false,
        }
    }

    /// Forgets slots without users, so that the next session gets new ones.
    fn forget(&self, slots: &Arc<Slots>) {
        let mut known = self.known.lock();
        if slots.users.count() == 0 {
            known.retain(|(_, other)| !Arc::ptr_eq(other, slots));
            drop(known);
            slots.retire();
        }
    }
}

impl Joined {
    /// Describes the sharing in one line.
    pub(super) fn sharing(&self) -> Option<String> {
        let users = &self.slots.users;
        if !self.servers.is_shared {
            return None;
        }
        let Some(sharing) = &users.sharing else {
            return Some("session".to_owned());
        };
        let (scope, reason) = (sharing.scope.as_str(), &sharing.reason);
        let sessions = match users.count() {
            1 => "1 session".to_owned(),
            count => format!("{count} sessions"),
        };
        let values = match (sharing.scope, &users.context().directory) {
            (Scope::All, Some(directory)) => format!(
                "; it runs in {} with the variables of its first session",
                directory.display()
            ),
            _ => String::new(),
        };
        Some(format!("{scope} ({reason}), {sessions}{values}"))
    }

    /// Leaves the slots of an entry that was removed from the configuration; the last session to do so ends them.
    pub(super) fn retire(mut self) {
        self.is_retired = true;
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.slots.leave(self.user);
        if self.slots.users.count() > 0 {
            return;
        }
        // In a run of its own, the slots end with the tasks.
        let is_private = self.servers.is_shared && self.slots.users.sharing.is_none();
        if self.is_retired || is_private {
            return self.servers.forget(&self.slots);
        }
        if !self.servers.is_shared {
            return;
        }
        let (servers, slots) = (self.servers.clone(), self.slots.clone());
        let stop = servers.tasks.stop().clone();
        servers
            .tasks
            .clone()
            .spawn(stop.run_until_cancelled_owned(async move {
                tokio::time::sleep(KEPT).await;
                // Another session may have come and gone.
                if slots.users.unused_for() >= KEPT {
                    servers.forget(&slots);
                }
            }));
    }
}

/// How a server is shared with other sessions.
pub(super) fn sharing(entry: &Server, session: &UpstreamContext) -> Sharing {
    let asked = session
        .sharing_directory
        .as_deref()
        .is_some_and(|directory| mark(directory, entry.hash).exists());
    let session = SessionEnv {
        directory: session.directory.clone(),
        environment: session.variables.clone(),
        open_files: None,
    };
    entry.sharing(&session, asked)
}

/// The name of the cache files of a server's list: the hash of its entry, followed by that of the person that it is for, or of the
/// directory if the server depends on the project.
pub(super) fn list_key(entry: &Server, session: &UpstreamContext) -> String {
    if entry.is_for_people() {
        let person = session.person.as_ref();
        let parts = person.map(|person| &person.entitlement);
        let parts = parts.map(|part| (part.account(), part.grant.as_deref()));
        let digest = Sha256::digest(format!("person\n{parts:?}"));
        return format!("{}+{}", entry.hash, hex(&digest[..16]));
    }
    let sharing = sharing(entry, session);
    let directory = session.directory.as_ref();
    match directory.filter(|_| sharing.scope == Scope::Project && sharing.is_known) {
        None => entry.hash.to_string(),
        Some(directory) => list_name(entry, Some(directory)),
    }
}

/// The name of the cache files of a server's list in a directory.
#[must_use]
pub(crate) fn list_name(entry: &Server, directory: Option<&Path>) -> String {
    match directory {
        None => entry.hash.to_string(),
        Some(directory) => {
            let digest = Sha256::digest(directory.as_os_str().as_encoded_bytes());
            format!("{}-{}", entry.hash, hex(&digest[..6]))
        }
    }
}

fn new_users(
    entry: &Server,
    session: &Arc<UpstreamContext>,
    sharing: Option<Sharing>,
) -> Arc<Users> {
    let (directory, hash) = (session.sharing_directory.clone(), entry.hash);
    let note = move || {
        if let Some(directory) = &directory {
            note_roots(directory, hash);
        }
    };
    Users::new(session.clone(), sharing, Box::new(note))
}

/// Records that the server of this entry asked for roots.
fn note_roots(directory: &Path, hash: ConfigHash) {
    let mark = mark(directory, hash);
    if mark.exists() {
        return;
    }
    let written =
        crate::files::create_private_directory(directory).and_then(|()| std::fs::write(&mark, ""));
    if let Err(error) = written {
        tracing::warn!(%error, path = %mark.display(), "a server's request for roots could not be recorded");
    }
}

fn mark(directory: &Path, hash: ConfigHash) -> std::path::PathBuf {
    directory.join(format!("{hash}.roots"))
}
