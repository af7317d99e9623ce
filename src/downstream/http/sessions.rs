//! The sessions of clients with a handshake, each under an unguessable id.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};

use super::admission::Kind;
use super::event_log::EventLog;
use super::keeping::AnswerKeeper;
use crate::downstream::Session;
use crate::identity::Pass;
use crate::mcp::{ByteBudget, Outbox};
use crate::shutdown::Tasks;

/// The maximum number of sessions. Beyond it, the one that was unused for longest ends, if it was unused for
/// [`LONG`], or for [`SHORT`] since its handshake. An identity with more than its share loses one before that.
const MOST: usize = 1024;
const SHARE: usize = MOST / 8;
const LONG: Duration = Duration::from_secs(10 * 60);
const SHORT: Duration = Duration::from_secs(10);

/// The time after which an unused session ends. A session with an open stream is in use; most clients have one.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// All sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    entries: Mutex<HashMap<String, Arc<SessionEntry>>>,
    /// The budget for messages that wait for clients.
    budget: ByteBudget,
    /// The budget for events kept for resumption.
    kept: ByteBudget,
    tasks: Tasks,
}

/// One session, which persists between requests.
#[derive(Debug)]
pub(super) struct SessionEntry {
    session: Arc<Session>,
    /// The transport and URL that opened it; the id is not valid for others.
    kind: Kind,
    /// The identity that opened it, with its latest credential; the id is not valid for others.
    pass: Mutex<Option<Arc<Pass>>>,
    budget: ByteBudget,
    /// The outbox of the server's own messages.
    stream: Mutex<Option<Outbox>>,
    /// The outbox of messages to the stream that another replica has.
    elsewhere: Mutex<Option<Outbox>>,
    log: Arc<EventLog>,
    /// The name of the session at all replicas, if there are several.
    name: Option<String>,
    began: SystemTime,
    guards: AtomicUsize,
    /// The number of uses, including the handshake.
    uses: AtomicUsize,
    used: Mutex<Instant>,
}

/// A use of a session. While one exists, the session is not idle.
#[derive(Debug)]
pub(super) struct SessionGuard(Arc<SessionEntry>);

/// A session that is to be kept.
#[derive(Debug)]
pub(super) struct Opening {
    /// The session's id.
    pub(super) id: String,
    pub(super) session: Arc<Session>,
    pub(super) kind: Kind,
    pub(super) pass: Option<Arc<Pass>>,
    /// The keeper of its answers for other replicas, if there are several.
    pub(super) keeper: Option<AnswerKeeper>,
}

/// The maximum number of sessions is reached, and all are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// A session of an MCP client, for people.
#[derive(Debug)]
pub(crate) struct ClientSession {
    /// A hash of its id, which itself gives access.
    pub(crate) id: String,
    /// The client's name and version.
    pub(crate) client: Option<String>,
    /// The identity that opened it.
    pub(crate) identity: Option<String>,
    /// The profile that the credential of the identity is limited to.
    pub(crate) limit: Option<String>,
    /// When it began, in seconds since 1970.
    pub(crate) since: u64,
}

impl Sessions {
    /// Creates an empty set. Messages that wait for clients are reserved in `budget`, kept events in `kept`.
    pub(super) fn new(budget: ByteBudget, kept: ByteBudget, tasks: Tasks) -> Self {
        Self {
            entries: Mutex::default(),
            budget,
            kept,
            tasks,
        }
    }

    /// Adds a session, unless there is one with its id. Returns the first use of the one that is there then.
    pub(super) fn open(&self, opening: Opening) -> Result<SessionGuard, Full> {
        let mut entries = self.entries();
        if let Some(known) = entries.get(&opening.id) {
            return Ok(SessionGuard::new(known.clone()));
        }
        if entries.len() >= MOST {
            let least = least(&entries).ok_or(Full)?;
            entries
                .remove(&least)
                .iter()
                .for_each(|entry| entry.close());
        }
        let Opening {
            id,
            session,
            kind,
            pass,
            keeper,
        } = opening;
        let name = keeper.as_ref().map(|keeper| keeper.session().to_owned());
        let log = EventLog::new(self.kept.clone(), self.tasks.clone(), keeper);
        let entry = Arc::new(SessionEntry {
            session,
            kind,
            pass: Mutex::new(pass),
            budget: self.budget.clone(),
            stream: Mutex::default(),
            elsewhere: Mutex::default(),
            log: Arc::new(log),
            name,
            began: SystemTime::now(),
            guards: AtomicUsize::new(0),
            uses: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
        });
        entry.session.named_for(&id);
        entries.insert(id, entry.clone());
        Ok(SessionGuard::new(entry))
    }

    /// The session with this name at all replicas.
    pub(super) fn named(&self, name: &str) -> Option<SessionGuard> {
        let entries = self.entries();
        let mut all = entries.values();
        let entry = all.find(|entry| entry.name.as_deref() == Some(name));
        entry.cloned().map(SessionGuard::new)
    }

    /// The names of all sessions that other replicas know.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = self.entries();
        entries
            .values()
            .filter_map(|entry| entry.name.clone())
            .collect()
    }

    /// Ends the session with this name at all replicas.
    pub(super) fn end_named(&self, name: &str) {
        self.entries().retain(|_, entry| {
            let ends = entry.name.as_deref() == Some(name);
            if ends {
                entry.close();
            }
            !ends
        });
    }

    /// The session with this id, for the identity that opened it.
    pub(super) fn find(
        &self,
        id: &str,
        kind: &Kind,
        pass: Option<&Arc<Pass>>,
    ) -> Option<SessionGuard> {
        self.entries()
            .get(id)
            .filter(|entry| entry.kind == *kind && entry.is_of(pass))
            .cloned()
            .map(SessionGuard::new)
    }

    /// Ends the sessions whose identity does not count any more.
    pub(super) fn end_unidentified(&self) {
        let has_ended = |pass: &Arc<Pass>| pass.has_ended();
        self.entries().retain(|_, entry| {
            let ends = entry.pass.lock().as_ref().is_some_and(has_ended);
            if ends {
                entry.close();
            }
            !ends
        });
    }

    /// Ends a session and cancels its requests. Returns whether it existed.
    pub(super) fn end(&self, id: &str) -> bool {
        let entry = self.entries().remove(id);
        entry.iter().for_each(|entry| entry.close());
        entry.is_some()
    }

    /// All sessions, for people.
    pub(super) fn list(&self) -> Vec<ClientSession> {
        let entries = self.entries();
        let shown = entries.values().map(|entry| {
            let pass = entry.pass.lock();
            let entitlement = pass.as_deref().map(|pass| pass.entitlement().clone());
            let entitlement = entitlement.as_ref();
            ClientSession {
                id: entry.session.name().unwrap_or_default().to_owned(),
                client: entry.session.client_name(),
                identity: entitlement.map(|one| one.identity.clone()),
                limit: entitlement.and_then(|one| one.limit.clone()),
                since: since(entry.began),
            }
        });
        shown.collect()
    }

    /// The number of sessions.
    pub(super) fn count(&self) -> usize {
        self.entries().len()
    }

    /// Ends the sessions that have been idle for too long at `now`.
    pub(super) fn tidy(&self, now: Instant) {
        self.entries().retain(|_, entry| {
            let stays = entry.is_in_use() || now.saturating_duration_since(*entry.used()) < IDLE;
            if !stays {
                entry.close();
            }
            stays
        });
    }

    /// Resolves when no request of a client of HTTP+SSE is in progress; the POST of such a request is answered at once.
    pub(super) async fn answered(&self) {
        let entries: Vec<_> = self.entries().values().cloned().collect();
        for entry in entries.iter().filter(|entry| entry.kind == Kind::Sse) {
            entry.session.idle().await;
        }
    }

    /// Ends all sessions. The end of the run has cancelled their requests, whose last answers go to the streams that clients of
    /// HTTP+SSE have: these stay open until then, at most for `limit`.
    pub(super) async fn end_all(&self, limit: Duration) {
        let entries: Vec<_> = self.entries().drain().map(|(_, entry)| entry).collect();
        let ended = entries.iter().map(|entry| async move {
            // A client that reads nothing is not waited for.
            let _ = tokio::time::timeout(limit, entry.session.idle()).await;
            entry.close();
        });
        join_all(ended).await;
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Arc<SessionEntry>>> {
        // Each change is a single step.
        self.entries.lock()
    }
}

impl SessionEntry {
    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Opens the stream of the server's own messages. It replaces an earlier one, because the client may have lost
    /// that connection without our noticing.
    pub(super) fn listen(&self) -> Outbox {
        let outbox = Outbox::within(self.budget.clone());
        self.session.attach(outbox.clone());
        let before = self.stream.lock().replace(outbox.clone());
        before.iter().for_each(Outbox::close);
        outbox
    }

    /// The log of events that can be sent again.
    pub(super) fn log(&self) -> &Arc<EventLog> {
        &self.log
    }

    /// The stream of the server's own messages, if it is open.
    pub(super) fn stream(&self) -> Option<Outbox> {
        self.stream.lock().clone()
    }

    /// The name of the session at all replicas, if there are several.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Ends the stream of the server's own messages, because another replica has it now, and returns the outbox of messages for that.
    pub(super) fn listen_elsewhere(&self) -> Outbox {
        let outbox = Outbox::within(self.budget.clone());
        self.session.attach_elsewhere(outbox.clone());
        self.stream.lock().take().iter().for_each(Outbox::close);
        let before = self.elsewhere.lock().replace(outbox.clone());
        before.iter().for_each(Outbox::close);
        outbox
    }

    /// Whether this identity opened it. Its credential may be another one now.
    fn is_of(&self, pass: Option<&Arc<Pass>>) -> bool {
        let mut own = self.pass.lock();
        let is_same = match (&*own, pass) {
            (None, None) => true,
            (Some(own), Some(pass)) => {
                Arc::ptr_eq(own, pass) || own.entitlement() == pass.entitlement()
            }
            _ => false,
        };
        if is_same {
            *own = pass.cloned();
        }
        is_same
    }

    fn close(&self) {
        self.session.cancel_all();
        self.stream().iter().for_each(Outbox::close);
        self.elsewhere.lock().iter().for_each(Outbox::close);
    }

    fn is_in_use(&self) -> bool {
        self.guards.load(Ordering::Relaxed) > 0 || self.session.in_flight() > 0
    }

    fn is_only_opened(&self) -> bool {
        self.uses.load(Ordering::Relaxed) <= 1
    }

    /// Whether it may be ended for a new session.
    fn may_go(&self) -> bool {
        let limit = if self.is_only_opened() { SHORT } else { LONG };
        !self.is_in_use() && self.used().elapsed() >= limit
    }

    fn used(&self) -> MutexGuard<'_, Instant> {
        self.used.lock()
    }
}

impl SessionGuard {
    fn new(entry: Arc<SessionEntry>) -> Self {
        entry.guards.fetch_add(1, Ordering::Relaxed);
        entry.uses.fetch_add(1, Ordering::Relaxed);
        Self(entry)
    }
}

impl Deref for SessionGuard {
    type Target = SessionEntry;

    fn deref(&self) -> &SessionEntry {
        &self.0
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        *self.0.used() = Instant::now();
        self.0.guards.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A time in seconds since 1970.
fn since(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// The session to end for a new one.
fn least(entries: &HashMap<String, Arc<SessionEntry>>) -> Option<String> {
    let passes = entries
        .values()
        .filter_map(|entry| entry.pass.lock().clone());
    let mut counts: HashMap<String, usize> = HashMap::new();
    for pass in passes {
        let identity = &pass.entitlement().identity;
        match counts.get_mut(identity) {
            Some(count) => *count += 1,
            None => drop(counts.insert(identity.clone(), 1)),
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    let all = entries.iter();
    let least = match most.filter(|(_, count)| *count > SHARE) {
        Some((identity, _)) => all
            .filter(|(_, entry)| {
                let pass = entry.pass.lock();
                pass.as_ref()
                    .is_some_and(|pass| pass.entitlement().identity == identity)
            })
            .min_by_key(|(_, entry)| (entry.is_in_use(), *entry.used())),
        // Sessions that were only opened go first, so that opening many cannot end one that is used.
        None => all
            .filter(|(_, entry)| entry.may_go())
            .min_by_key(|(_, entry)| (!entry.is_only_opened(), *entry.used())),
    };
    least.map(|(id, _)| id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::Proxy;

    #[tokio::test]
    async fn a_session_ends_when_it_was_unused_for_long() {
        let tasks = Tasks::new();
        let proxy = Proxy::without_servers(&tasks);
        let session = || Session::new(proxy.clone(), tasks.clone());
        let sessions = Sessions::new(ByteBudget::new(0, 0), ByteBudget::new(0, 0), tasks.clone());
        let opening = |id: &str| Opening {
            id: id.to_owned(),
            session: session(),
            kind: Kind::StreamableHttp(None),
            pass: None,
            keeper: None,
        };
        let (unused, used) = ("unused", "used");
        drop(sessions.open(opening(unused)).unwrap());
        let guard = sessions.open(opening(used)).unwrap();
        let is_there = |id: &str| sessions.entries().contains_key(id);
        sessions.tidy(Instant::now() + IDLE / 2);
        assert!(is_there(unused) && is_there(used));
        sessions.tidy(Instant::now() + IDLE * 2);
        assert!(!is_there(unused) && is_there(used));
        drop(guard);
        sessions.tidy(Instant::now() + IDLE * 2);
        assert!(!is_there(used));
        tasks.finish().await;
    }
}
