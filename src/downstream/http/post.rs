//! POST: messages of clients of either era.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;

use super::answer::{Forms, Question, Stream, answer};
use super::refusal::Refusal;
use super::sessions::{Full, Kind, visit};
use super::{Shared, modern, refusal};
use crate::downstream::{Exchange, Session};
use crate::mcp::room::{LEAST, Place, Room, SHORT};
use crate::mcp::{Envelope, ErrorCode, Message, Outbox, RequestId, Revision, headers};
use crate::telemetry::trace::Context;

/// The largest message that is taken from a client, in bytes.
const MESSAGE_LIMIT: usize = 64 * 1024 * 1024;

/// How long the body of a request may take,
const BODY_TIME: Duration = Duration::from_secs(120);
/// and how long it waits for others to make room.
const ROOM_TIME: Duration = Duration::from_secs(2);

/// Takes what a client posts.
pub(super) async fn post(shared: &Arc<Shared>, map: &HeaderMap, body: Body) -> Response {
    let Some(forms) = Forms::of(map) else {
        let message =
            "answers are `application/json` or `text/event-stream`; `Accept` allows neither";
        return refusal::refuse(StatusCode::NOT_ACCEPTABLE, message);
    };
    let text = match read(&shared.incoming, map, body).await {
        Ok(text) => text,
        Err(refusal) => return refusal.answer(None),
    };
    let envelope = match Envelope::parse(&text) {
        Ok(envelope) => envelope,
        Err(bad) => {
            return refusal::error(
                StatusCode::BAD_REQUEST,
                bad.id.as_ref(),
                bad.code,
                &bad.reason,
            );
        }
    };
    if modern::is_modern(map, &envelope) {
        return modern::post(shared, map, &text, envelope, forms).await;
    }
    if let Envelope::Single(Message::Request(request)) = &envelope
        && request.method == "initialize"
    {
        let id = request.id.clone();
        return initialize(shared, map, &text, envelope, &id, forms).await;
    }
    let (visit, _) = match visit(shared, map) {
        Ok(visit) => visit,
        Err(refusal) => return refusal.answer(None),
    };
    let session = visit.session().clone();
    let outbox = Outbox::within(shared.outgoing.clone());
    let id = id_of(&envelope);
    let is_answered = is_answered(&envelope, session.legacy_revision());
    session.receive_envelope(&text, envelope, &own(map, &outbox));
    if !is_answered {
        return accepted();
    }
    drop(text);
    let question = Question {
        id: id.as_ref(),
        is_modern: false,
        forms,
    };
    answer(shared, Stream::new(outbox, Some(visit)), question).await
}

/// The exchange of a request by itself.
pub(super) fn own(map: &HeaderMap, outbox: &Outbox) -> Exchange {
    let text = |name| {
        map.get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let passed = text(headers::TRACE_PARENT)
        .and_then(|parent| Context::parse(parent, text(headers::TRACE_STATE)));
    Exchange::Own {
        outbox: outbox.clone(),
        passed: passed.map(Arc::new),
        params: None,
    }
}

/// 202, for what is not answered.
pub(super) fn accepted() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// The body of a request: one JSON text, in the place that it takes in `room`.
pub(super) async fn read(room: &Room, map: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let kind = map
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    if !kind
        .split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    {
        let message = "the `Content-Type` of a message is `application/json`";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let length = map
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok())
        .unwrap_or(0);
    if length > MESSAGE_LIMIT as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(
        BODY_TIME,
        collect(room, body, usize::try_from(length).unwrap_or(0)),
    )
    .await
    {
        Ok(collected) => collected,
        Err(_) => Err(Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body did not come within {BODY_TIME:?}"),
        )),
    }
}

/// `length` is 0 where it is not known. What has not come takes no room yet, but for short messages.
async fn collect(room: &Room, mut body: Body, length: usize) -> Result<Bytes, Refusal> {
    let is_short = (1..=SHORT).contains(&length);
    let total = if is_short { length } else { usize::MAX };
    let mut place = take(
        room,
        if is_short { length.max(LEAST) } else { LEAST },
        total,
    )
    .await?;
    let mut all = BytesMut::new();
    while let Some(piece) = body.frame().await {
        let piece = piece.map_err(|error| {
            Refusal::new(
                StatusCode::BAD_REQUEST,
                format!("the body is damaged: {error}"),
            )
        })?;
        let Ok(data) = piece.into_data() else {
            continue;
        };
        if all.len() + data.len() > MESSAGE_LIMIT {
            return Err(too_large());
        }
        if !is_short {
            place.add(take(room, data.len(), total).await?);
        }
        if all.is_empty() && body.is_end_stream() {
            return Ok(place.with(data));
        }
        if all.is_empty() {
            all.reserve(length.max(data.len()));
        }
        all.extend_from_slice(&data);
    }
    Ok(place.with(all.freeze()))
}

async fn take(room: &Room, length: usize, total: usize) -> Result<Place, Refusal> {
    tokio::time::timeout(ROOM_TIME, room.take(length, total))
        .await
        .map_err(|_| Refusal::overload())
}

fn too_large() -> Refusal {
    let message = format!("the message has more bytes than the limit of {MESSAGE_LIMIT}");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

/// A handshake, and with it a new session.
async fn initialize(
    shared: &Arc<Shared>,
    map: &HeaderMap,
    text: &Bytes,
    envelope: Envelope<'_>,
    id: &RequestId,
    forms: Forms,
) -> Response {
    let session = Session::new(shared.proxy.clone(), shared.tasks.clone());
    let outbox = Outbox::within(shared.outgoing.clone());
    session.receive_envelope(text, envelope, &own(map, &outbox));
    let question = Question {
        id: Some(id),
        is_modern: false,
        forms,
    };
    if session.legacy_revision().is_none() {
        return answer(shared, Stream::new(outbox, None), question).await;
    }
    let (name, visit) = match shared.sessions.open(session, Kind::StreamableHttp) {
        Ok(opened) => opened,
        Err(Full) => return full(Some(id)),
    };
    let mut response = answer(shared, Stream::new(outbox, Some(visit)), question).await;
    let name = HeaderValue::try_from(name)
        .expect("a random token is made of letters, digits, `-` and `_`");
    response.headers_mut().insert(headers::SESSION, name);
    response
}

/// 503: no place for another session.
pub(super) fn full(id: Option<&RequestId>) -> Response {
    let message = "there are as many sessions as there may be, and all are in use";
    refusal::error(
        StatusCode::SERVICE_UNAVAILABLE,
        id,
        ErrorCode::TOO_MANY_REQUESTS,
        message,
    )
}

fn id_of(envelope: &Envelope<'_>) -> Option<RequestId> {
    match envelope {
        Envelope::Single(Message::Request(request)) => Some(request.id.clone()),
        _ => None,
    }
}

/// Whether anything in it gets an answer.
fn is_answered(envelope: &Envelope<'_>, revision: Option<Revision>) -> bool {
    match envelope {
        Envelope::Single(message) => matches!(message, Message::Request(_)),
        Envelope::Batch(batch) => {
            !revision.is_some_and(Revision::has_batches)
                || batch.is_empty()
                || batch
                    .iter()
                    .any(|raw| matches!(Message::parse(raw), Ok(Message::Request(_)) | Err(_)))
        }
    }
}
