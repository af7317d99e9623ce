//! The sessions of clients with a handshake, each under an id that nobody can guess.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::answer::{Forms, Stream};
use super::refusal::Refusal;
use super::{Shared, body, refusal};
use crate::downstream::Session;
use crate::mcp::{Outbox, Revision, Room, headers};
use crate::secret::random_token;

/// How many sessions there may be; beyond that, the one that was unused for longest goes.
const MOST: usize = 1024;

/// How long a session may be unused. One with an open stream is in use, and that is what most clients have.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// All sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    places: Mutex<HashMap<String, Arc<Place>>>,
    /// For what waits for their clients.
    room: Room,
}

/// One session, between and during its requests.
#[derive(Debug)]
pub(super) struct Place {
    session: Arc<Session>,
    /// The transport it was opened over; the other one does not know its id.
    kind: Kind,
    room: Room,
    /// Where unasked messages go.
    stream: Mutex<Option<Outbox>>,
    visits: AtomicUsize,
    used: Mutex<Instant>,
}

/// The two transports with sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// 2025-03-26 to 2025-11-25.
    StreamableHttp,
    /// 2024-11-05.
    Sse,
}

/// A place in use.
#[derive(Debug)]
pub(super) struct Visit(Arc<Place>);

/// All places are taken, and all are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

impl Sessions {
    /// None yet; what waits for their clients is in `room`.
    pub(super) fn new(room: Room) -> Self {
        Self {
            places: Mutex::default(),
            room,
        }
    }

    /// Keeps `session` from now on; its id, and the first use of it.
    pub(super) fn open(&self, session: Arc<Session>, kind: Kind) -> Result<(String, Visit), Full> {
        let mut places = self.places();
        if places.len() >= MOST {
            let oldest = places
                .iter()
                .filter(|(_, place)| !place.is_in_use())
                .min_by_key(|(_, place)| *place.used());
            let oldest = oldest.map(|(id, _)| id.clone()).ok_or(Full)?;
            places
                .remove(&oldest)
                .iter()
                .for_each(|place| place.close());
        }
        let place = Arc::new(Place {
            session,
            kind,
            room: self.room.clone(),
            stream: Mutex::default(),
            visits: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
        });
        let id = random_token();
        place.session.named_for(&id);
        places.insert(id.clone(), place.clone());
        Ok((id, Visit::new(place)))
    }

    /// The session with this id.
    pub(super) fn visit(&self, id: &str, kind: Kind) -> Option<Visit> {
        self.places()
            .get(id)
            .filter(|place| place.kind == kind)
            .cloned()
            .map(Visit::new)
    }

    /// Ends a session and cancels its requests; whether there was one.
    pub(super) fn end(&self, id: &str) -> bool {
        let place = self.places().remove(id);
        place.iter().for_each(|place| place.close());
        place.is_some()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.places().len()
    }

    /// Ends those that were unused for long by `now`.
    pub(super) fn tidy(&self, now: Instant) {
        self.places().retain(|_, place| {
            let stays = place.is_in_use() || now.saturating_duration_since(*place.used()) < IDLE;
            if !stays {
                place.close();
            }
            stays
        });
    }

    /// Ends all of them.
    pub(super) fn end_all(&self) {
        self.places().drain().for_each(|(_, place)| place.close());
    }

    fn places(&self) -> MutexGuard<'_, HashMap<String, Arc<Place>>> {
        // Each change is a single step.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Opens the stream of unasked messages. The one that was open before ends: of two, the newer is the one that is
    /// read, because a client may lose a connection without our noticing.
    pub(super) fn listen(&self) -> Outbox {
        let outbox = Outbox::within(self.room.clone());
        self.session.attach(outbox.clone());
        let before = self
            .stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(outbox.clone());
        before.iter().for_each(Outbox::close);
        outbox
    }

    /// The stream of unasked messages, if it was opened.
    pub(super) fn stream(&self) -> Option<Outbox> {
        self.stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn close(&self) {
        self.session.cancel_all();
        self.stream().iter().for_each(Outbox::close);
    }

    fn is_in_use(&self) -> bool {
        self.visits.load(Ordering::Relaxed) > 0 || self.session.running() > 0
    }

    fn used(&self) -> MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visit {
    fn new(place: Arc<Place>) -> Self {
        place.visits.fetch_add(1, Ordering::Relaxed);
        Self(place)
    }
}

impl Deref for Visit {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.0
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        *self.0.used() = Instant::now();
        self.0.visits.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The session that a request of Streamable HTTP is in, and its id.
pub(super) fn visit(shared: &Shared, map: &HeaderMap) -> Result<(Visit, String), Refusal> {
    let Some(id) = map.get(headers::SESSION) else {
        let message = "the header `Mcp-Session-Id` is missing; `initialize` gives one out";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    };
    let id = id.to_str().unwrap_or_default();
    let visit = shared.sessions.visit(id, Kind::StreamableHttp);
    let unknown = || {
        Refusal::new(
            StatusCode::NOT_FOUND,
            "there is no such session; begin with `initialize`",
        )
    };
    let visit = visit.ok_or_else(unknown)?;
    if let Some(version) = map.get(headers::VERSION) {
        let version = version.to_str().unwrap_or_default();
        if Revision::parse(version).is_none() {
            let message = format!("protocol revision `{version}` is not known");
            return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
        }
    }
    Ok((visit, id.to_owned()))
}

/// GET: opens the stream of unasked messages.
pub(super) fn stream(shared: &Arc<Shared>, map: &HeaderMap) -> Response {
    // The modern era has no such stream (2026-07-28, basic/transports/streamable-http), and without a session there is
    // nobody to whom anything could be said unasked.
    if is_modern(map) || !map.contains_key(headers::SESSION) {
        return refusal::method_not_allowed("POST");
    }
    if Forms::of(map).is_none_or(|forms| !forms.events) {
        return refusal::refuse(
            StatusCode::NOT_ACCEPTABLE,
            "a GET is answered by `text/event-stream`",
        );
    }
    match visit(shared, map) {
        Ok((visit, _)) => body::events(
            std::collections::VecDeque::new(),
            Stream::new(visit.listen(), Some(visit)),
        ),
        Err(refusal) => refusal.answer(None),
    }
}

/// DELETE: ends a session.
pub(super) fn delete(shared: &Shared, map: &HeaderMap) -> Response {
    if is_modern(map) {
        return refusal::method_not_allowed("POST");
    }
    match visit(shared, map) {
        Ok((_, id)) => {
            shared.sessions.end(&id);
            Response::default()
        }
        Err(refusal) => refusal.answer(None),
    }
}

fn is_modern(map: &HeaderMap) -> bool {
    let version = map
        .get(headers::VERSION)
        .and_then(|version| Revision::parse(version.to_str().ok()?));
    version.is_some_and(Revision::is_modern)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Environment};
    use crate::proxy::{Directories, Mode, Proxy, Start};
    use crate::shutdown::Tasks;

    #[tokio::test]
    async fn a_session_ends_when_it_was_unused_for_long() {
        let tasks = Tasks::new();
        let (config, environment) = (Config::default(), Environment::default());
        let proxy = Proxy::new(
            config,
            &Directories::default(),
            environment,
            &tasks,
            Start::Serving,
            Mode::MetaTools,
        );
        let session = || Session::new(proxy.clone(), tasks.clone());
        let sessions = Sessions::new(Room::new(0, 0));
        let (unused, visit) = sessions.open(session(), Kind::StreamableHttp).unwrap();
        drop(visit);
        let (used, visit) = sessions.open(session(), Kind::StreamableHttp).unwrap();
        let is_there = |id: &str| sessions.places().contains_key(id);
        sessions.tidy(Instant::now() + IDLE / 2);
        assert!(is_there(&unused) && is_there(&used));
        sessions.tidy(Instant::now() + IDLE * 2);
        assert!(!is_there(&unused) && is_there(&used));
        drop(visit);
        sessions.tidy(Instant::now() + IDLE * 2);
        assert!(!is_there(&used));
        tasks.finish().await;
    }
}
