//! The older HTTP+SSE (2024-11-05): one stream carries all messages to the client, which sends its own by POST.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;

use super::admission::{Admission, Kind, pass};
use super::forms::Forms;
use super::incoming::{read, read_letter};
use super::refusal::{accepted, full};
use super::sessions::{Full, Opening};
use super::shared::Shared;
use super::stream::Stream;
use super::{body, passing, refusal};
use crate::downstream::Exchange;
use crate::mcp::{Envelope, Message, Object};
use crate::secret::random_token;

/// The path of the stream.
pub(super) const STREAM: &str = "/sse";
/// The path for posted messages.
pub(super) const MESSAGES: &str = "/message";

/// Opens a session, which lasts as long as its stream.
pub(super) async fn stream(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    if request.method() != Method::GET {
        return refusal::method_not_allowed("GET");
    }
    if Forms::of(request.headers()).is_none_or(|forms| !forms.events) {
        return refusal::refuse(
            StatusCode::NOT_ACCEPTABLE,
            "the response is `text/event-stream`, which `Accept` does not allow",
        );
    }
    let admission = Admission {
        profile: None,
        pass: pass(request.extensions()),
        arrival: None,
    };
    // The client's name, which may have a profile, comes with the handshake.
    let proxy = match shared.proxy(&admission, None) {
        Ok(proxy) => proxy,
        Err(refusal) => return refusal.answer(None),
    };
    let id = match &shared.replicas {
        None => random_token(),
        // Its messages come to any replica.
        Some(replicas) => format!("{}.{}", replicas.id(), random_token()),
    };
    let opening = Opening {
        id: id.clone(),
        session: admission.session(proxy, &shared.tasks),
        kind: Kind::Sse,
        pass: admission.pass,
        keeper: None,
    };
    let guard = match shared.sessions.open(opening) {
        Ok(guard) => guard,
        Err(Full) => return full(None),
    };
    let outbox = guard.listen();
    let endpoint = format!("event: endpoint\ndata: {MESSAGES}?sessionId={id}\n\n");
    body::events(
        VecDeque::from([Bytes::from(endpoint)]),
        Stream::ending(outbox, shared.sessions.clone(), id, guard),
    )
}

/// Processes a message of a session; the response goes to the stream.
pub(super) async fn message(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        return refusal::method_not_allowed("POST");
    }
    let pairs = parts
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    let id = pairs
        .filter(|(key, _)| *key == "sessionId")
        .map(|(_, value)| value)
        .next_back();
    let Some(id) = id else {
        return refusal::bad_request("`sessionId` is missing");
    };
    let admission = Admission {
        profile: None,
        pass: pass(&parts.extensions),
        arrival: passing::arrival(&shared, &parts),
    };
    if let Some((owner, arrival)) = passing::owner_of_stream(&shared, &admission, id) {
        let letter = match read_letter(&shared.incoming, body).await {
            Ok(letter) => letter,
            Err(refusal) => return refusal.answer(None),
        };
        let passed = passing::pass_on(&shared, &owner, arrival, &parts.headers, &letter);
        let gone = || refusal::not_found("there is no such session; its stream has ended");
        return passed.await.unwrap_or_else(gone);
    }
    let found = shared
        .sessions
        .find(id, &Kind::Sse, admission.pass.as_ref());
    let Some(guard) = found else {
        return refusal::not_found("there is no such session; its stream has ended");
    };
    let Some(outbox) = guard.stream() else {
        return refusal::not_found("the session's stream has ended");
    };
    let text = match read(&shared.incoming, &parts.headers, body).await {
        Ok(text) => text,
        Err(refusal) => return refusal.answer(None),
    };
    match Envelope::parse(&text) {
        Ok(envelope) => {
            if let Envelope::Single(Message::Request(request)) = &envelope
                && request.method == "initialize"
            {
                let params = request.params.and_then(|raw| Object::parse(raw).ok());
                let client = params.as_ref().and_then(|params| params.get("clientInfo"));
                match shared.proxy(&admission, client) {
                    Ok(proxy) => guard.session().move_to(proxy),
                    Err(refusal) => return refusal.answer(Some(&request.id)),
                }
            }
            let exchange = Exchange::Sse {
                outbox,
                scopes: admission.scopes().cloned(),
            };
            guard.session().receive_envelope(&text, envelope, &exchange);
        }
        Err(bad) => return refusal::malformed(&bad),
    }
    accepted()
}
