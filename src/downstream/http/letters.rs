//! Takes the letters of other replicas.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::Response;
use axum::routing::post;
#[cfg(feature = "cli")]
use base64::Engine as _;
#[cfg(feature = "cli")]
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;

use super::admission::{PassedOn, Peer};
use super::connections::Connection;
use super::event::EventId;
use super::incoming::read_letter;
use super::shared::Shared;
use super::{endpoints, refusal};
use crate::homes::{FIRST_ID, MOVED, Outflow};
#[cfg(feature = "cli")]
use crate::identity::ClientCertificate;
use crate::mcp::{Frame, Outbox};
use crate::replicas::{Content, LETTERS, SEAL};

/// The route of letters of other replicas, if there are some.
pub(super) fn routes(shared: &Arc<Shared>) -> Router<Arc<Shared>> {
    if shared.replicas.is_none() {
        return Router::new();
    }
    let endpoints = endpoints(shared).with_state(shared.clone());
    Router::new().route(
        LETTERS,
        post(move |State(shared): State<Arc<Shared>>, request: Request| {
            let endpoints = endpoints.clone();
            async move { take(&shared, endpoints, request).await }
        }),
    )
}

/// Takes a letter of another replica.
async fn take(shared: &Arc<Shared>, endpoints: Router, mut request: Request) -> Response {
    let connection = request.extensions_mut().remove::<Arc<Connection>>();
    let Some(replicas) = &shared.replicas else {
        return refusal::nothing_here();
    };
    // Before the body is read, so that no stranger can have one kept in memory.
    let seal = request
        .headers()
        .get(SEAL)
        .and_then(|seal| seal.to_str().ok());
    if !seal.is_some_and(|seal| replicas.knows(seal)) {
        return refusal::nothing_here();
    }
    if !connection.is_none_or(|one| one.let_in(None)) {
        return refusal::all_in_use();
    }
    let letter = match read_letter(&shared.incoming, request.into_body()).await {
        Ok(letter) => letter,
        Err(refusal) => return refusal.answer(None),
    };
    let Some((content, body)) = replicas.open(&letter) else {
        return refusal::nothing_here();
    };
    drop(letter);
    let gone = || refusal::not_found("there is no such session or stream at this replica");
    match content {
        Content::Request {
            method,
            path,
            headers,
            address,
            certificate,
        } => match rebuilt((&method, &path), headers, (&address, certificate), body) {
            Some(request) => {
                let answered = TowerToHyperService::new(endpoints).call(request).await;
                answered.unwrap_or_else(|never| match never {})
            }
            None => refusal::bad_request("the letter has a request that cannot be read"),
        },
        Content::Answer { session, number } => match shared.sessions.named(&session) {
            Some(guard) => {
                guard.session().answered_elsewhere(number, &body);
                refusal::accepted()
            }
            None => gone(),
        },
        Content::Message { session } => {
            let stream = shared
                .sessions
                .named(&session)
                .and_then(|guard| guard.stream());
            let frame = Frame {
                body,
                ..Frame::default()
            };
            match stream.filter(Outbox::is_open) {
                Some(stream) => {
                    stream.push_unless_congested(frame);
                    refusal::accepted()
                }
                None => gone(),
            }
        }
        Content::Attach(tunnel) => {
            let homes = shared.proxies.homes();
            match homes.and_then(|homes| homes.open(&tunnel)) {
                Some((outflow, first_id, moved)) => attached(outflow, first_id, moved),
                None => gone(),
            }
        }
        Content::Piece { tunnel, number } => {
            let is_taken = match shared.proxies.homes() {
                Some(homes) => homes.take_piece(&tunnel, number, &body).await,
                None => false,
            };
            match is_taken {
                true => refusal::accepted(),
                false => gone(),
            }
        }
        Content::Missed {
            session,
            stream,
            number,
        } => {
            let id = EventId { stream, number };
            let guard = shared.sessions.named(&session);
            match guard.and_then(|guard| guard.log().take_over(id)) {
                Some(pieces) => {
                    let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
                    let mut response = Response::new(Body::from(all));
                    let kind = HeaderValue::from_static("text/event-stream");
                    response.headers_mut().insert(CONTENT_TYPE, kind);
                    response
                }
                None => gone(),
            }
        }
    }
}

/// The response that opens a connection to the process of a server here.
fn attached(outflow: Outflow, first_id: u64, moved: Option<Duration>) -> Response {
    let body = stream::unfold(outflow, async |mut outflow: Outflow| {
        let next = outflow.next().await?;
        Some((Ok::<Bytes, Infallible>(next), outflow))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(FIRST_ID, HeaderValue::from(first_id));
    if let Some(age) = moved {
        headers.insert(MOVED, HeaderValue::from(age.as_secs()));
    }
    response
}

/// A client's request, as it came to another replica.
fn rebuilt(
    (method, path): (&str, &str),
    headers: Vec<(String, String)>,
    (address, certificate): (&str, Option<String>),
    body: Bytes,
) -> Option<Request> {
    let mut request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).ok()?)
        .uri(path)
        .body(Body::from(body))
        .ok()?;
    for (name, value) in headers {
        let name = HeaderName::try_from(name).ok()?;
        request
            .headers_mut()
            .append(name, HeaderValue::try_from(value).ok()?);
    }
    #[cfg(not(feature = "cli"))]
    let certificate = certificate.and(None);
    #[cfg(feature = "cli")]
    let certificate = match certificate {
        Some(text) => Some(Arc::new(ClientCertificate::of(
            &STANDARD.decode(text).ok()?,
        )?)),
        None => None,
    };
    if let Ok(address) = address.parse() {
        request.extensions_mut().insert(Peer {
            address,
            certificate,
        });
    }
    request.extensions_mut().insert(PassedOn);
    Some(request)
}
