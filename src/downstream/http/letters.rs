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

use super::access::LetIn;
use super::admission::{PassedOn, Peer};
use super::connections::Connection;
use super::event::EventId;
use super::incoming::read_letter;
use super::shared::Shared;
use super::{endpoints, passing, refusal};
use crate::homes::{FIRST_ID, MOVED, Outflow};
#[cfg(feature = "cli")]
use crate::identity::ClientCertificate;
use crate::mcp::{Frame, Outbox};
use crate::replicas::{Content, LETTERS, Replicas, SEAL, TAKEN};

/// The route of letters of other replicas, if there are some. A letter may have a request for one of the `pages`.
pub(super) fn routes(shared: &Arc<Shared>, pages: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    if shared.replicas.is_none() {
        return Router::new();
    }
    let endpoints = endpoints(shared).merge(pages).with_state(shared.clone());
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
    let Some(seal) = seal.filter(|seal| replicas.knows(seal)) else {
        return refusal::nothing_here();
    };
    let receipt = replicas.receipt(seal);
    let Some(mut response) = opened(shared, replicas, endpoints, connection, request).await else {
        return refusal::nothing_here();
    };
    // Without it, the sender takes the response for that of a program that does not know this replica.
    let receipt = HeaderValue::try_from(receipt).expect("a tag is hexadecimal");
    response.headers_mut().insert(TAKEN, receipt);
    if response.extensions().get::<LetIn>().is_some() {
        let yes = HeaderValue::from_static("1");
        response.headers_mut().insert(passing::LET_IN, yes);
    }
    response
}

/// The response to a letter with a right outer seal. `None` if it cannot be opened, or was taken before.
async fn opened(
    shared: &Arc<Shared>,
    replicas: &Replicas,
    endpoints: Router,
    connection: Option<Arc<Connection>>,
    request: Request,
) -> Option<Response> {
    if !connection.is_none_or(|one| one.let_in(None)) {
        return Some(refusal::all_in_use());
    }
    let letter = match read_letter(&shared.incoming, request.into_body()).await {
        Ok(letter) => letter,
        Err(refusal) => return Some(refusal.answer(None)),
    };
    let (content, body) = replicas.open(&letter)?;
    drop(letter);
    let gone = || refusal::not_found("there is no such session or stream at this replica");
    Some(match content {
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
                Some(stream) => match stream.push_unless_congested(frame) {
                    true => refusal::accepted(),
                    false => refusal::unavailable("too many messages wait for this client"),
                },
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
    })
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
