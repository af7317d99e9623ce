//! Events of servers, sessions and calls, for views of a running program.
//!
//! An event is built only if it is stored or has a listener. Nothing waits for a slow listener: it loses events, and
//! gets the number of lost ones.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Number of unread events after which a listener loses the oldest.
const BEHIND: usize = 1024;

/// An event. Secrets in texts are masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Event {
    /// A connection to the server begins. A server on stdio is started.
    ServerStarting { server: String },
    /// The server answered the handshake.
    ServerReady { server: String },
    /// The server could not be reached, or stopped answering.
    ServerFailed { server: String, reason: String },
    /// A connection to the server ended.
    ServerStopped { server: String },
    /// The tools of the server changed for a session.
    ToolsChanged {
        server: String,
        session: Option<String>,
    },
    /// The server needs a login: `mcpzip login`.
    LoginWanted { server: String },
    /// A call waits for the user's consent.
    ApprovalWanted {
        server: String,
        tool: String,
        session: Option<String>,
        /// The identity of the client, where clients over HTTP have one.
        #[serde(skip_serializing_if = "Option::is_none")]
        identity: Option<String>,
        /// The id for `approvals.allow`, if the client cannot ask its user.
        approval: Option<String>,
    },
    /// A session began.
    SessionOpened {
        session: String,
        /// The process that the client started.
        process: u32,
        directory: PathBuf,
    },
    /// A session ended.
    SessionClosed { session: String },
    /// A process gave an order by the control interface: to stop, restart, reload, pause or resume.
    Ordered {
        /// The method, such as `servers.stop`.
        order: String,
        server: Option<String>,
        /// The session that the order is limited to.
        session: Option<String>,
        /// The process that gave it.
        process: Option<i32>,
    },
    /// The user has paused mcpzip: no new call reaches a server.
    Paused {
        /// The time at which the pause began, in seconds since 1970, if it is known.
        since: Option<u64>,
    },
    /// Calls reach servers again.
    Resumed,
    /// The daemon serves HTTP clients at this URL.
    HttpListening { url: String },
    /// The daemon cannot serve HTTP clients.
    HttpFailed {
        /// The configured address, if it can be read.
        address: Option<String>,
        reason: String,
    },
    /// The daemon does not serve HTTP clients any more.
    HttpStopped { url: String },
    /// A call was sent to its server. The events of calls are sent to listeners, and are not kept.
    CallBegan {
        call: u64,
        server: String,
        tool: String,
        session: Option<String>,
        /// The identity of the client, where clients over HTTP have one.
        #[serde(skip_serializing_if = "Option::is_none")]
        identity: Option<String>,
    },
    /// A call ended.
    CallEnded {
        call: u64,
        server: String,
        tool: String,
        session: Option<String>,
        /// The identity of the client, where clients over HTTP have one.
        #[serde(skip_serializing_if = "Option::is_none")]
        identity: Option<String>,
        /// `ok`, `tool_error`, `refused`, `timeout`, `unavailable` or `cancelled`.
        outcome: String,
        milliseconds: u64,
    },
}

/// Number of events that are kept for windows and `events.list`.
pub(crate) const KEPT: usize = 4096;

/// An event with its number. Numbers rise, and are not reused while the program runs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Numbered {
    pub(crate) number: u64,
    /// The time of the event, in milliseconds since 1970.
    pub(crate) time: u64,
    #[serde(flatten)]
    pub(crate) event: Event,
    /// The identity whose own process or session it is about. It is for the gateway, which shows each person what is theirs.
    #[serde(skip)]
    pub(crate) owner: Option<String>,
}

/// The events of a program, for any number of listeners.
#[derive(Debug)]
pub(crate) struct Events {
    /// Number of events that are kept. With 0, events are built for listeners only.
    most: usize,
    listeners: AtomicUsize,
    calls: AtomicU64,
    history: Mutex<History>,
    sender: broadcast::Sender<Arc<Numbered>>,
}

#[derive(Debug, Default)]
struct History {
    next: u64,
    kept: VecDeque<Arc<Numbered>>,
    /// The number of the newest event that is no longer kept.
    dropped: Option<u64>,
    /// The beginnings of the calls in flight, by the numbers of the calls.
    calls: BTreeMap<u64, Arc<Numbered>>,
}

/// Events of the past.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) events: Vec<Arc<Numbered>>,
    /// Whether some of the requested events are no longer kept.
    pub(crate) is_incomplete: bool,
    /// The beginnings of the calls that are in flight, oldest first.
    pub(crate) calls: Vec<Arc<Numbered>>,
    /// The number that the next event gets.
    pub(crate) next: u64,
}

/// A message to a listener.
#[derive(Debug)]
pub(crate) enum Heard {
    Event(Arc<Numbered>),
    /// The listener was slow and lost this number of events.
    Lagged(u64),
}

/// Gets all events until it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    events: Arc<Events>,
    receiver: broadcast::Receiver<Arc<Numbered>>,
}

/// A call in flight, which is reported as ended when it is dropped.
#[derive(Debug)]
pub(crate) struct OpenCall {
    events: Arc<Events>,
    call: u64,
    /// The event of its beginning.
    began: Arc<Numbered>,
    start: Instant,
    outcome: &'static str,
}

/// The source of a session's events.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    events: Arc<Events>,
    session: Option<Arc<str>>,
    identity: Option<Arc<str>>,
}

impl Events {
    /// Keeps the last `most` events, except those of calls.
    #[must_use]
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            listeners: AtomicUsize::new(0),
            calls: AtomicU64::new(0),
            history: Mutex::default(),
            sender: broadcast::Sender::new(BEHIND),
        })
    }

    /// Whether there is a listener.
    pub(crate) fn is_heard(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0
    }

    /// Keeps an event, and sends it to the listeners. `event` is called only if the event is kept or has a listener.
    pub(crate) fn note(&self, event: impl FnOnce() -> Event) {
        self.note_of(None, event);
    }

    /// As [`Events::note`], for an event of a server or session that is this identity's own.
    pub(crate) fn note_of(&self, owner: Option<&str>, event: impl FnOnce() -> Event) {
        if self.most > 0 || self.is_heard() {
            self.send(event(), owner);
        }
    }

    fn send(&self, event: Event, owner: Option<&str>) {
        let mut history = self.history.lock();
        let numbered = history.number(event, owner);
        if self.most > 0 {
            if history.kept.len() == self.most {
                history.dropped = history.kept.pop_front().map(|oldest| oldest.number);
            }
            history.kept.push_back(numbered.clone());
        }
        // Under the lock, so that events arrive in the order of their numbers. The send fails if there is no listener.
        let _ = self.sender.send(numbered);
    }

    /// Whether calls are reported: to a listener, or to one that may come.
    fn reports_calls(&self) -> bool {
        self.most > 0 || self.is_heard()
    }

    fn begin_call(&self, call: u64, event: Event) -> Arc<Numbered> {
        let mut history = self.history.lock();
        let numbered = history.number(event, None);
        history.calls.insert(call, numbered.clone());
        if self.is_heard() {
            let _ = self.sender.send(numbered.clone());
        }
        numbered
    }

    /// `event` is called only if there is a listener.
    fn end_call(&self, call: u64, event: impl FnOnce() -> Event) {
        let mut history = self.history.lock();
        history.calls.remove(&call);
        if self.is_heard() {
            let numbered = history.number(event(), None);
            let _ = self.sender.send(numbered);
        }
    }

    /// The events that are kept, from the number `since` on.
    #[must_use]
    pub(crate) fn since(&self, since: u64) -> Past {
        self.history.lock().since(since)
    }

    /// The kept events from the number `since` on, and a listener for all later events. Without `since`, no kept events.
    #[must_use]
    pub(crate) fn listen(self: &Arc<Self>, since: Option<u64>) -> (Past, Listener) {
        let history = self.history.lock();
        self.listeners.fetch_add(1, Ordering::Relaxed);
        let listener = Listener {
            events: self.clone(),
            receiver: self.sender.subscribe(),
        };
        (history.since(since.unwrap_or(history.next)), listener)
    }
}

impl History {
    /// Gives an event its number and its time.
    fn number(&mut self, event: Event, owner: Option<&str>) -> Arc<Numbered> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let time = since.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        });
        let number = self.next;
        self.next += 1;
        Arc::new(Numbered {
            number,
            time,
            event,
            owner: owner.map(str::to_owned),
        })
    }

    fn since(&self, since: u64) -> Past {
        let kept = self.kept.iter().filter(|one| one.number >= since);
        Past {
            events: kept.cloned().collect(),
            is_incomplete: self.dropped.is_some_and(|dropped| dropped >= since),
            calls: self.calls.values().cloned().collect(),
            next: self.next,
        }
    }
}

impl Listener {
    /// The next event.
    ///
    /// # Cancel safety
    /// No event is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Heard {
        match self.receiver.recv().await {
            Ok(event) => Heard::Event(event),
            Err(RecvError::Lagged(count)) => Heard::Lagged(count),
            // Cannot happen: `events` keeps the sender.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.events.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Source {
    /// Creates the source of events of `session` or of an identity, or of events that belong to neither.
    #[must_use]
    pub(crate) fn new(events: Arc<Events>, session: Option<&str>, identity: Option<&str>) -> Self {
        Self {
            events,
            session: session.map(Arc::from),
            identity: identity.map(Arc::from),
        }
    }

    /// All events of the program.
    pub(crate) fn all(&self) -> &Arc<Events> {
        &self.events
    }

    /// Whether calls are reported.
    pub(crate) fn reports_calls(&self) -> bool {
        self.events.reports_calls()
    }

    /// Keeps and sends an event. `event` gets the session's id.
    pub(crate) fn note(&self, event: impl FnOnce(Option<String>) -> Event) {
        let owner = self.identity.as_deref();
        self.events.note_of(owner, || event(self.session()));
    }

    /// Reports the start of a call, if calls are reported. The call is in flight until the result is dropped.
    pub(crate) fn call(&self, server: &str, tool: &str) -> Option<OpenCall> {
        if !self.reports_calls() {
            return None;
        }
        let call = self.events.calls.fetch_add(1, Ordering::Relaxed);
        let began = Event::CallBegan {
            call,
            server: server.to_owned(),
            tool: tool.to_owned(),
            session: self.session(),
            identity: self.identity(),
        };
        Some(OpenCall {
            began: self.events.begin_call(call, began),
            events: self.events.clone(),
            call,
            start: Instant::now(),
            outcome: "cancelled",
        })
    }

    /// The session's id. It stays when another process takes the session over.
    pub(crate) fn session(&self) -> Option<String> {
        self.session.as_deref().map(str::to_owned)
    }

    /// The identity of the clients, where they have one.
    pub(crate) fn identity(&self) -> Option<String> {
        self.identity.as_deref().map(str::to_owned)
    }
}

impl OpenCall {
    /// Ends the call with an outcome. Without it, the call counts as cancelled.
    pub(crate) fn end(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.events.end_call(self.call, || match &self.began.event {
            Event::CallBegan {
                call,
                server,
                tool,
                session,
                identity,
            } => Event::CallEnded {
                call: *call,
                server: server.clone(),
                tool: tool.clone(),
                session: session.clone(),
                identity: identity.clone(),
                outcome: self.outcome.to_owned(),
                milliseconds: u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX),
            },
            other => other.clone(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(server: usize) -> Event {
        Event::ServerStopped {
            server: server.to_string(),
        }
    }

    #[test]
    fn nothing_is_built_that_is_neither_kept_nor_heard() {
        let events = Events::new(0);
        events.note(|| panic!("it is kept nowhere"));
        let calls = Source::new(events.clone(), None, None);
        assert!(calls.call("s", "t").is_none());
        let (_, listener) = events.listen(None);
        assert!(events.is_heard());
        drop(listener);
        events.note(|| panic!("the listener is gone"));
    }

    #[tokio::test]
    async fn a_late_listener_gets_the_calls_in_flight_and_how_they_end() {
        let events = Events::new(3);
        let source = Source::new(events.clone(), Some("1"), None);
        source.call("s", "quick").unwrap().end("ok");
        let (slow, dropped) = (source.call("s", "slow"), source.call("s", "dropped"));
        let (past, mut listener) = events.listen(None);
        let tool = |event: &Event| match event {
            Event::CallBegan { tool, .. } => (tool.clone(), "began".to_owned()),
            Event::CallEnded { tool, outcome, .. } => (tool.clone(), outcome.clone()),
            other => panic!("{other:?}"),
        };
        let calls: Vec<_> = past.calls.iter().map(|one| tool(&one.event).0).collect();
        assert_eq!(calls, ["slow", "dropped"]);
        assert!(past.events.is_empty(), "calls are not kept");
        slow.unwrap().end("ok");
        drop(dropped);
        for (name, outcome) in [("slow", "ok"), ("dropped", "cancelled")] {
            let Heard::Event(event) = listener.next().await else {
                panic!("nothing was lost")
            };
            assert_eq!(tool(&event.event), (name.to_owned(), outcome.to_owned()));
        }
        assert!(events.since(0).calls.is_empty());
    }

    #[test]
    fn the_last_events_are_kept_and_what_is_missing_is_said() {
        let events = Events::new(3);
        (0..5).for_each(|server| events.note(|| stopped(server)));
        let past = events.since(0);
        let numbers: Vec<u64> = past.events.iter().map(|event| event.number).collect();
        assert_eq!(numbers, [2, 3, 4]);
        assert!(past.is_incomplete);
        let past = events.since(3);
        assert_eq!(
            (past.events.len(), past.is_incomplete, past.next),
            (2, false, 5)
        );
        assert!(events.listen(None).0.events.is_empty());
    }

    #[tokio::test]
    async fn a_slow_listener_loses_events_and_delays_none() {
        let events = Events::new(3);
        let (_, mut slow) = events.listen(None);
        let (_, mut quick) = events.listen(None);
        for server in 0..BEHIND + 10 {
            events.note(|| stopped(server));
            assert!(
                matches!(quick.next().await, Heard::Event(event) if event.event == stopped(server))
            );
        }
        assert!(matches!(slow.next().await, Heard::Lagged(10)));
        assert!(matches!(slow.next().await, Heard::Event(event) if event.number == 10));
    }
}
