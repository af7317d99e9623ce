//! Passes requests on that are meant for another replica.

use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use super::access::LetIn;
use super::admission::{Admission, Arrival, PassedOn, Peer};
use super::shared::Shared;
use super::{ENDPOINT, refusal};
use crate::mcp::{Envelope, ErrorCode, Message, Object, RequestId};
use crate::replicas::{Content, Replicas, Unreachable};

/// The answer to a request of a replica that has gone.
pub(super) const LOST: &str = "the replica of mcpzip that worked on this request has ended: the request may have acted. Next: check what was done before you repeat it";

/// The header by which a replica says that its page knows the person.
pub(super) const LET_IN: &str = "mcpzip-let-in";

/// A request as it came, if there are other replicas and it came from a client.
pub(super) fn arrival(shared: &Shared, parts: &Parts) -> Option<Arrival> {
    let is_passed_on = parts.extensions.get::<PassedOn>().is_some();
    (shared.replicas.is_some() && !is_passed_on).then(|| Arrival {
        method: parts.method.clone(),
        path: parts
            .uri
            .path_and_query()
            .map_or(ENDPOINT, |path| path.as_str())
            .to_owned(),
        peer: parts.extensions.get::<Peer>().cloned(),
    })
}

/// The replica that a modern request must be passed on to, because a call waits there for the answers that it brings.
pub(super) fn owner_of_request<'a>(
    shared: &Shared,
    admission: &'a Admission,
    envelope: &Envelope<'_>,
) -> Option<(String, &'a Arrival)> {
    let (replicas, arrival) = (shared.replicas.as_ref()?, admission.arrival.as_ref()?);
    let Envelope::Single(Message::Request(request)) = envelope else {
        return None;
    };
    let params = Object::parse(request.params?).ok()?;
    let state = params.text("requestState")?;
    let word = state.strip_prefix("mcpzip.")?;
    let word = word.rsplit_once('.').map_or(word, |(_, word)| word);
    let owner = replicas.open_state(word, &admission.hash())?;
    replicas.has(&owner).then_some((owner, arrival))
}

/// The replica that has the stream of a session of HTTP+SSE, if it is another one.
pub(super) fn owner_of_stream<'a>(
    shared: &Shared,
    admission: &'a Admission,
    id: &str,
) -> Option<(String, &'a Arrival)> {
    let (replicas, arrival) = (shared.replicas.as_ref()?, admission.arrival.as_ref()?);
    let (owner, _) = id.split_once('.')?;
    replicas.has(owner).then(|| (owner.to_owned(), arrival))
}

/// Passes a request on to the replica that it is meant for. `None` if that has gone, so that it has not got the request.
pub(super) async fn pass_on(
    shared: &Shared,
    owner: &str,
    arrival: &Arrival,
    map: &HeaderMap,
    body: &[u8],
) -> Option<Response> {
    let replicas = shared.replicas.as_ref()?;
    match send(replicas, owner, arrival, map, body).await {
        Ok(response) => Some(response),
        Err(Unreachable::Busy) => Some(refusal::unavailable(
            "the replica that the request is for is busy; send it again",
        )),
        Err(error) if error.is_before() => None,
        Err(error) => {
            tracing::warn!(%error, owner, "a request was passed on, and not answered");
            let raw: Option<&RawValue> = serde_json::from_slice(body).ok();
            let id = Object::parse(raw?)
                .ok()?
                .get("id")
                .and_then(RequestId::parse);
            let code = ErrorCode::INTERNAL;
            Some(refusal::error(StatusCode::OK, id.as_ref(), code, LOST))
        }
    }
}

/// Sends a request to `owner` as it came; the body of the response arrives as the replica sends it.
pub(super) async fn send(
    replicas: &Replicas,
    owner: &str,
    arrival: &Arrival,
    map: &HeaderMap,
    body: &[u8],
) -> Result<Response, Unreachable> {
    let is_kept = |name: &HeaderName| !is_of_connection(name) && *name != CONTENT_LENGTH;
    let kept = map.iter().filter(|(name, _)| is_kept(name));
    let headers = kept.filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    let peer = arrival.peer.as_ref();
    let certificate = peer.and_then(|peer| peer.certificate.as_ref());
    let content = Content::Request {
        method: arrival.method.as_str().to_owned(),
        path: arrival.path.clone(),
        headers: headers.collect(),
        address: peer
            .map(|peer| peer.address.to_string())
            .unwrap_or_default(),
        certificate: certificate.map(|one| STANDARD.encode(&one.der)),
    };
    let (mut parts, body) = replicas.send(owner, content, body).await?.into_parts();
    let names: Vec<HeaderName> = parts.headers.keys().cloned().collect();
    names
        .iter()
        .filter(|name| is_of_connection(name))
        .for_each(|name| {
            parts.headers.remove(name);
        });
    if parts.headers.remove(LET_IN).is_some() {
        parts.extensions.insert(LetIn);
    }
    parts.version = http::Version::default();
    Ok(Response::from_parts(parts, Body::new(body)))
}

/// Whether a header concerns one connection alone.
fn is_of_connection(name: &HeaderName) -> bool {
    [CONNECTION, TRANSFER_ENCODING, UPGRADE, EXPECT].contains(name) || name == "keep-alive"
}
