//! GET in a session at one of several replicas: streams that another replica has begun go on here.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use http_body::Frame as Piece;
use http_body_util::BodyExt as _;
use tokio_util::sync::CancellationToken;

use super::admission::Admission;
use super::event::{EventId, NamedEventId, event};
use super::event_log::StreamKind;
use super::passing::{LOST, send};
use super::sessions::SessionGuard;
use super::shared::Shared;
use super::stream::Stream;
use super::{body, refusal};
use crate::mcp::{ErrorCode, Frame, Outbox, RequestId, headers};
use crate::replicas::{Content, Replicas};

/// GET in a session: resumes the stream that `Last-Event-ID` names, of any replica, or opens the stream of the server's own messages here.
pub(super) async fn get(
    shared: &Arc<Shared>,
    replicas: &Arc<Replicas>,
    admission: &Admission,
    map: &HeaderMap,
    guard: SessionGuard,
) -> Response {
    let last = map
        .get(headers::LAST_EVENT_ID)
        .and_then(|id| NamedEventId::parse(id.to_str().ok()?));
    let Some(NamedEventId { id, label }) = last else {
        return listen(shared, replicas, guard, None);
    };
    let is_own = label.replica == replicas.id();
    if is_own && let Some((missed, reader)) = guard.log().resume(id) {
        let is_answer = label.request.is_some();
        let leaving = (!is_answer).then(|| shared.draining.token().clone());
        let stream = Stream::resumed(reader, guard).until(leaving);
        return body::events(missed, stream);
    }
    let name = guard.name().unwrap_or_default().to_owned();
    let Some(request) = &label.request else {
        let missed = match is_own {
            true => None,
            false => missed(replicas, &name, &label.replica, id).await,
        };
        return listen(shared, replicas, guard, missed);
    };
    if let Some(arrival) = admission.arrival.as_ref().filter(|_| !is_own)
        && replicas.has(&label.replica)
        && let Ok(response) = send(replicas, &label.replica, arrival, map, b"").await
    {
        return response;
    }
    let of = (label.replica.as_str(), id.stream, id.number);
    let kept = replicas.kept_answer(&name, of).await;
    let pieces: VecDeque<Bytes> = match kept {
        Ok(events) => events.into_iter().map(|(_, text)| text).collect(),
        Err(error) => {
            tracing::warn!(%error, "an answer that may be kept cannot be read");
            return refusal::unavailable(
                "the store of the gateway does not answer; try again later",
            );
        }
    };
    let pieces = match pieces.is_empty() {
        true => lost(request),
        false => pieces,
    };
    let outbox = Outbox::new();
    outbox.close();
    body::events(pieces, Stream::alone(outbox))
}

/// The event that answers a request of a replica that has gone; `request` is its id as JSON.
fn lost(request: &str) -> VecDeque<Bytes> {
    let id = serde_json::from_str(request).ok();
    match id.and_then(RequestId::parse) {
        Some(id) => event(
            Frame::error(Some(&id), ErrorCode::INTERNAL, LOST, None),
            None,
        ),
        None => VecDeque::new(),
    }
}

/// Opens the stream of the server's own messages here, and ends the one that another replica may have.
fn listen(
    shared: &Shared,
    replicas: &Replicas,
    guard: SessionGuard,
    missed: Option<Bytes>,
) -> Response {
    if let Some(name) = guard.name() {
        replicas.listening(name);
    }
    let leaving: CancellationToken = shared.draining.token().clone();
    let response = begin(guard, Some(leaving));
    match missed {
        Some(missed) if !missed.is_empty() => response.map(|body| {
            let missed = http_body_util::Full::new(missed);
            let first = missed.map_err(axum::Error::new);
            Body::new(Chained {
                first: Some(Body::new(first)),
                second: body,
            })
        }),
        _ => response,
    }
}

/// Opens the stream of the server's own messages, until `leaving` is cancelled.
pub(super) fn begin(guard: SessionGuard, leaving: Option<CancellationToken>) -> Response {
    let mut stream = Stream::in_session(guard.listen(), guard).until(leaving);
    let first = stream.begin(StreamKind::Listening, None, None);
    body::events(first, stream)
}

/// The events that a client has missed of its stream at another replica, which ends there.
async fn missed(replicas: &Replicas, session: &str, replica: &str, id: EventId) -> Option<Bytes> {
    let content = Content::Missed {
        session: session.to_owned(),
        stream: id.stream,
        number: id.number,
    };
    let response = replicas.send(replica, content, b"").await.ok()?;
    let is_there = response.status() == StatusCode::OK;
    let body = response.into_body().collect().await.ok()?;
    is_there.then(|| body.to_bytes())
}

/// Two bodies, one after the other.
struct Chained {
    first: Option<Body>,
    second: Body,
}

impl http_body::Body for Chained {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece<Bytes>, axum::Error>>> {
        if let Some(first) = &mut self.first {
            match ready!(Pin::new(first).poll_frame(context)) {
                None => self.first = None,
                piece => return Poll::Ready(piece),
            }
        }
        Pin::new(&mut self.second).poll_frame(context)
    }
}
