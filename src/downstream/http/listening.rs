//! GET and DELETE of Streamable HTTP, up to 2025-11-25: the stream of the server's own messages, resumed streams, and
//! the end of a session.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::admission::Admission;
use super::continuing::session_of;
use super::event::EventId;
use super::forms::Forms;
use super::sessions::SessionGuard;
use super::shared::Shared;
use super::stream::Stream;
use super::{body, refusal, resuming};
use crate::mcp::{Revision, headers};
use crate::replicas::{Replicas, VALID, seconds};

/// GET: resumes the stream that `Last-Event-ID` names, or opens the stream of the server's own messages.
pub(super) async fn get(shared: &Arc<Shared>, admission: &Admission, map: &HeaderMap) -> Response {
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
    let guard = match session_of(shared, admission, map).await {
        Ok((guard, _)) => guard,
        Err(refusal) => return refusal.answer(None),
    };
    match &shared.replicas {
        Some(replicas) => resuming::get(shared, replicas, admission, map, guard).await,
        None => resume(map, guard).unwrap_or_else(|guard| resuming::begin(guard, None)),
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

/// DELETE: ends a session.
pub(super) async fn delete(
    shared: &Arc<Shared>,
    admission: &Admission,
    map: &HeaderMap,
) -> Response {
    if is_modern(map) {
        return refusal::method_not_allowed("POST");
    }
    match session_of(shared, admission, map).await {
        Ok((guard, id)) => {
            if let (Some(replicas), Some(name)) = (&shared.replicas, guard.name())
                && let Err(error) = replicas
                    .end_session(admission.hash(), name, valid_until(replicas, &id))
                    .await
            {
                tracing::warn!(%error, "a session was not ended");
                return refusal::unavailable(
                    "the store of the gateway does not answer; try again later",
                );
            }
            shared.sessions.end(&id);
            Response::default()
        }
        Err(refusal) => refusal.answer(None),
    }
}

/// The time after which an id is not valid at any replica.
fn valid_until(replicas: &Replicas, id: &str) -> u64 {
    let opened = replicas.open_session(id);
    opened.map_or_else(seconds, |facts| u64::from(facts.opened)) + VALID
}

fn is_modern(map: &HeaderMap) -> bool {
    let version = map
        .get(headers::VERSION)
        .and_then(|version| Revision::parse(version.to_str().ok()?));
    version.is_some_and(Revision::is_modern)
}
