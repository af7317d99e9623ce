//! Requests of 2026-07-28, which are stateless: headers and body must agree.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use serde_json::value::RawValue;

use super::admission::Admission;
use super::answer::{PostedRequest, answer};
use super::forms::Forms;
use super::incoming::own_exchange;
use super::refusal;
use super::refusal::{Refusal, accepted};
use super::shared::Shared;
use super::stream::Stream;
use crate::downstream::Exchange;
use crate::downstream::session::{CAPABILITIES_KEY, CLIENT_KEY, REVISION_KEY};
use crate::mcp::{Envelope, ErrorCode, Message, Object, Outbox, Request, Revision, headers};

/// Whether a message is of the modern era, by the message itself or else by its header. A client with a handshake
/// would not send a header with an unknown revision.
pub(super) fn is_modern(map: &HeaderMap, envelope: &Envelope<'_>) -> bool {
    let (method, claim) = match envelope {
        Envelope::Single(Message::Request(request)) => {
            (Some(request.method.as_ref()), Stated::of(request).claim())
        }
        _ => (None, None),
    };
    let is_handshake = method == Some("initialize");
    let known = |claim: &str| Revision::parse(claim).map(Revision::is_modern);
    match (claim, map.get(headers::VERSION)) {
        (Some(claim), _) => known(&claim).unwrap_or(true) || !is_handshake,
        (None, Some(header)) => {
            let known = known(header.to_str().unwrap_or_default());
            known.unwrap_or(!is_handshake && !map.contains_key(headers::SESSION))
        }
        (None, None) => false,
    }
}

/// Answers a request in a session of its own.
pub(super) async fn post(
    shared: &Arc<Shared>,
    admission: &Admission,
    map: &HeaderMap,
    text: &Bytes,
    envelope: Envelope<'_>,
    forms: Forms,
) -> Response {
    let request = match &envelope {
        Envelope::Single(Message::Request(request)) => request,
        // A notification has no effect on a stateless request.
        Envelope::Single(Message::Notification { .. }) => return accepted(),
        Envelope::Single(Message::Response { .. }) => {
            return refusal::bad_request("no question was asked of this client");
        }
        Envelope::Batch(_) => return refusal::bad_request("this protocol revision has no batches"),
    };
    let id = request.id.clone();
    let stated = Stated::of(request);
    if let Err(refusal) = check(map, request, &stated) {
        return refusal.answer(Some(&id));
    }
    let client = stated.meta.get(CLIENT_KEY);
    let proxy = match shared.proxy(admission, client) {
        Ok(proxy) => proxy,
        Err(refusal) => return refusal.answer(Some(&id)),
    };
    let session = shared.session(admission, proxy, None);
    session.shares_as(&admission.own(client.map_or("", RawValue::get)));
    let outbox = Outbox::within(shared.outgoing.clone());
    let mut exchange = own_exchange(map, &outbox, admission);
    if let Exchange::Own { params, .. } = &mut exchange {
        let all = map
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().ok()));
        *params = Some(Arc::new(headers::Params::among(all)));
    }
    session.receive_envelope(text, envelope, &exchange);
    let question = PostedRequest {
        id: Some(&id),
        is_modern: true,
        forms,
        pass: admission.pass.as_deref(),
    };
    answer(shared, Stream::cancelling(outbox, session), question).await
}

/// Checks the headers before the method is dispatched. An unsupported revision is left to the session, which lists
/// the supported ones.
fn check(map: &HeaderMap, request: &Request<'_>, stated: &Stated<'_>) -> Result<(), Refusal> {
    let invalid =
        |message| Refusal::of_message(StatusCode::BAD_REQUEST, ErrorCode::INVALID_PARAMS, message);
    let Some(claimed) = stated.claim() else {
        return Err(invalid(format!("`_meta` must have `{REVISION_KEY}`")));
    };
    same(map, headers::VERSION, "Mcp-Protocol-Version", &claimed)?;
    if Revision::parse(&claimed).is_none_or(|revision| !revision.is_modern()) {
        return Ok(());
    }
    let has_capabilities = stated.meta.get(CAPABILITIES_KEY).is_some();
    if !has_capabilities {
        return Err(invalid(format!("`_meta` must have `{CAPABILITIES_KEY}`")));
    }
    same(map, headers::METHOD, "Mcp-Method", &request.method)?;
    let named = match request.method.as_ref() {
        "tools/call" | "prompts/get" => stated.params.text("name"),
        "resources/read" => stated.params.text("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => stated.params.text("taskId"),
        _ => None,
    };
    if let Some(named) = named {
        same(map, headers::NAME, "Mcp-Name", &named)?;
    }
    if request.method == "initialize" {
        let message = "this protocol revision has no method `initialize`".to_owned();
        return Err(Refusal::of_message(
            StatusCode::NOT_FOUND,
            ErrorCode::METHOD_NOT_FOUND,
            message,
        ));
    }
    Ok(())
}

/// Checks that a header is present and equals the value in the body.
fn same(map: &HeaderMap, header: &str, name: &str, body: &str) -> Result<(), Refusal> {
    let mismatch =
        |message| Refusal::of_message(StatusCode::BAD_REQUEST, ErrorCode::HEADER_MISMATCH, message);
    let Some(value) = map.get(header) else {
        return Err(mismatch(format!("the header `{name}` is missing")));
    };
    match value.to_str().ok().and_then(headers::unwrapped) {
        None => Err(mismatch(format!("the header `{name}` cannot be decoded"))),
        Some(said) if said != body => Err(mismatch(format!(
            "the header `{name}` says `{said}`, the body `{body}`"
        ))),
        Some(_) => Ok(()),
    }
}

/// The parameters of a request and their `_meta`, empty if absent.
struct Stated<'a> {
    params: Object<'a>,
    meta: Object<'a>,
}

impl<'a> Stated<'a> {
    fn of(request: &Request<'a>) -> Self {
        let object = |raw: Option<&'a RawValue>| {
            raw.and_then(|raw| Object::parse(raw).ok())
                .unwrap_or_default()
        };
        let params = object(request.params);
        let meta = object(params.get("_meta"));
        Self { params, meta }
    }

    /// The revision in `_meta`; empty if it is not a string.
    fn claim(&self) -> Option<String> {
        let raw = self.meta.get(REVISION_KEY)?;
        Some(crate::mcp::object::text(raw).unwrap_or_default())
    }
}
