//! GET and DELETE of Streamable HTTP, up to 2025-11-25: the stream of the server's own messages, resumed streams, and
//! the end of a session.

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::admission::Admission;
use super::event::EventId;
use super::event_log::StreamKind;
use super::forms::Forms;
use super::sessions::{SessionGuard, session_of};
use super::shared::Shared;
use super::stream::Stream;
use super::{body, refusal};
use crate::mcp::{Revision, headers};

/// GET: resumes the stream that `Last-Event-ID` names, or opens the stream of the server's own messages.
pub(super) fn get(shared: &Shared, admission: &Admission, map: &HeaderMap) -> Response {
    // The modern era has no such stream (2026-07-28, basic/transports/streamable-http), nor does a client without a
    // session.
    if is_modern(map) || !map.contains_key(headers::SESSION) {
        return refusal::method_not_allowed("POST");
    }
    if Forms::of(map).is_none_or(|forms| !forms.events) {
        return refusal::refuse(
            StatusCode::NOT_ACCEPTABLE,
            "the response to a GET is `text/event-stream`, which `Accept` does not allow",
        );
    }
    match session_of(&shared.sessions, admission, map) {
        Ok((guard, _)) => resume(map, guard).unwrap_or_else(listen),
        Err(refusal) => refusal.answer(None),
    }
}

/// Resumes the stream that `Last-Event-ID` names, if every later event is kept; otherwise returns the guard.
fn resume(map: &HeaderMap, guard: SessionGuard) -> Result<Response, SessionGuard> {
    let id = map
        .get(headers::LAST_EVENT_ID)
        .and_then(|id| EventId::parse(id.to_str().ok()?));
    match id.and_then(|id| guard.log().resume(id)) {
        Some((missed, reader)) => Ok(body::events(missed, Stream::resumed(reader, guard))),
        None => Err(guard),
    }
}

fn listen(guard: SessionGuard) -> Response {
    let mut stream = Stream::in_session(guard.listen(), guard);
    let first = stream.begin(StreamKind::Listening, None);
    body::events(first, stream)
}

/// DELETE: ends a session.
pub(super) fn delete(shared: &Shared, admission: &Admission, map: &HeaderMap) -> Response {
    if is_modern(map) {
        return refusal::method_not_allowed("POST");
    }
    match session_of(&shared.sessions, admission, map) {
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
