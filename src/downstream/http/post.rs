//! POST: messages of clients of either era.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;

use super::admission::Admission;
use super::answer::{PostedRequest, answer};
use super::continuing::session_of;
use super::forms::Forms;
use super::incoming::{own_exchange, read};
use super::refusal::{accepted, full};
use super::sessions::{Full, Opening};
use super::shared::Shared;
use super::stream::Stream;
use super::{continuing, modern, passing, refusal};
use crate::mcp::{Envelope, Message, Object, Outbox, RequestId, Revision, headers};
use crate::proxy::Proxy;
use crate::replicas::LONGEST_ID;
use crate::secret::random_token;

/// Processes a POST.
pub(super) async fn post(
    shared: &Arc<Shared>,
    admission: &Admission,
    map: &HeaderMap,
    body: Body,
) -> Response {
    let Some(forms) = Forms::of(map) else {
        let message =
            "responses are `application/json` or `text/event-stream`; `Accept` allows neither";
        return refusal::refuse(StatusCode::NOT_ACCEPTABLE, message);
    };
    let text = match read(&shared.incoming, map, body).await {
        Ok(text) => text,
        Err(refusal) => return refusal.answer(None),
    };
    let envelope = match Envelope::parse(&text) {
        Ok(envelope) => envelope,
        Err(bad) => return refusal::malformed(&bad),
    };
    if modern::is_modern(map, &envelope) {
        if let Some((owner, arrival)) = passing::owner_of_request(shared, admission, &envelope) {
            let passed = passing::pass_on(shared, &owner, arrival, map, &text);
            // Without the replica, its call is not known any more.
            if let Some(response) = Box::pin(passed).await {
                return response;
            }
        }
        return modern::post(shared, admission, map, &text, envelope, forms).await;
    }
    if let Envelope::Single(Message::Request(request)) = &envelope
        && request.method == "initialize"
    {
        let id = request.id.clone();
        let params = request.params.and_then(|raw| Object::parse(raw).ok());
        let client = params.as_ref().and_then(|params| params.get("clientInfo"));
        let proxy = match shared.proxy(admission, client) {
            Ok(proxy) => proxy,
            Err(refusal) => return refusal.answer(Some(&id)),
        };
        return initialize(shared, (admission, proxy), map, &text, envelope, &id, forms).await;
    }
    let (guard, _) = match session_of(shared, admission, map).await {
        Ok(found) => found,
        Err(refusal) => return refusal.answer(None),
    };
    let session = guard.session().clone();
    let outbox = Outbox::within(shared.outgoing.clone());
    let id = id_of(&envelope);
    if let (Some(id), Some(_)) = (&id, &shared.replicas)
        && id.as_json().len() > LONGEST_ID
    {
        let message = format!("the id of a request has at most {LONGEST_ID} bytes");
        return refusal::bad_request(&message);
    }
    let is_answered = is_answered(&envelope, session.legacy_revision());
    session.receive_envelope(&text, envelope, &own_exchange(map, &outbox, admission));
    if !is_answered {
        return accepted();
    }
    drop(text);
    let question = PostedRequest {
        id: id.as_ref(),
        is_modern: false,
        forms,
        pass: admission.pass.as_deref(),
    };
    answer(shared, Stream::in_session(outbox, guard), question).await
}

/// Opens a session with a handshake.
async fn initialize(
    shared: &Arc<Shared>,
    (admission, proxy): (&Admission, Arc<Proxy>),
    map: &HeaderMap,
    text: &Bytes,
    envelope: Envelope<'_>,
    id: &RequestId,
    forms: Forms,
) -> Response {
    let outbox = Outbox::within(shared.outgoing.clone());
    let session = admission.session(proxy, &shared.tasks);
    session.receive_envelope(text, envelope, &own_exchange(map, &outbox, admission));
    let question = PostedRequest {
        id: Some(id),
        is_modern: false,
        forms,
        pass: admission.pass.as_deref(),
    };
    if session.legacy_revision().is_none() {
        return answer(shared, Stream::alone(outbox), question).await;
    }
    let named = match &shared.replicas {
        None => Ok((random_token(), None)),
        Some(replicas) => continuing::name(shared, replicas, admission, &session).await,
    };
    let (name, keeper) = match named {
        Ok(named) => named,
        Err(refusal) => return refusal.answer(Some(id)),
    };
    let opening = Opening {
        id: name.clone(),
        session,
        kind: admission.kind(),
        pass: admission.pass.clone(),
        keeper,
    };
    let guard = match shared.sessions.open(opening) {
        Ok(guard) => guard,
        Err(Full) => return full(Some(id)),
    };
    let mut response = answer(shared, Stream::in_session(outbox, guard), question).await;
    let name = HeaderValue::try_from(name).expect("the id is made of letters, digits, `-` and `_`");
    response.headers_mut().insert(headers::SESSION, name);
    response
}

fn id_of(envelope: &Envelope<'_>) -> Option<RequestId> {
    match envelope {
        Envelope::Single(Message::Request(request)) => Some(request.id.clone()),
        _ => None,
    }
}

/// Whether any message in it requires a response.
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
