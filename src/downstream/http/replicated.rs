//! Several replicas behind a balancer: continues sessions that another replica has opened, passes on what is meant for another one, and
//! takes what others pass on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::value::RawValue;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::admission::{Admission, Arrival, Peer};
use super::connections::Connection;
use super::draining::{Draining, InProgress};
use super::event::{EventId, NamedEventId, event};
use super::incoming::read_letter;
use super::refusal::Refusal;
use super::sessions::{Opening, SessionGuard};
use super::shared::Shared;
use super::stream::Stream;
use super::{ENDPOINT, body, endpoints, listening, refusal};
use crate::downstream::Session;
#[cfg(feature = "cli")]
use crate::identity::ClientCertificate;
use crate::mcp::object::quoted;
use crate::mcp::{Envelope, ErrorCode, Frame, Message, Object, Outbox, RequestId, headers};
use crate::replicas::{
    ClientOfReplica, Content, LETTERS, Notice, Replicas, SEAL, Unreachable, VALID, name_of,
};

/// The time after which the answer to a client that has gone is kept in the store.
const AWAY: Duration = Duration::from_secs(5);

/// The answer to a request of a replica that has gone.
const LOST: &str = "the replica of mcpzip that worked on this request has ended: the request may have acted. Next: check what was done before you repeat it";

/// Marks a request that another replica has passed on. It is not passed on again.
#[derive(Debug, Clone, Copy)]
pub(super) struct PassedOn;

/// Keeps the answers of a session for other replicas.
#[derive(Debug, Clone)]
pub(super) struct AnswerKeeper {
    replicas: Arc<Replicas>,
    session: String,
    draining: Draining,
}

/// An answer that comes while its client is gone. The end of the run waits for it.
pub(super) struct Keeping {
    keeper: AnswerKeeper,
    _held: InProgress,
}

impl AnswerKeeper {
    /// The id of this replica.
    pub(super) fn replica(&self) -> &str {
        self.replicas.id()
    }

    /// The session.
    pub(super) fn session(&self) -> &str {
        &self.session
    }

    /// Begins to wait for an answer.
    pub(super) fn begin(&self) -> Keeping {
        Keeping {
            keeper: self.clone(),
            _held: self.draining.hold(),
        }
    }
}

impl Keeping {
    /// Resolves when the client has been gone for long, or the run is about to end.
    pub(super) async fn due(&self) {
        tokio::select! {
            () = tokio::time::sleep(AWAY) => {}
            () = self.keeper.draining.begun() => {}
        }
    }

    /// Keeps the events of a stream.
    pub(super) async fn keep(self, stream: u64, events: Vec<(u64, Bytes)>) {
        let AnswerKeeper {
            replicas, session, ..
        } = &self.keeper;
        if events.is_empty() {
            return;
        }
        if let Err(error) = replicas.keep_answer(session, stream, events).await {
            tracing::warn!(%error, "an answer whose client is gone is kept in memory only");
        }
    }
}

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

/// The id of a new session, which any replica can continue, and what keeps its answers.
pub(super) async fn name(
    shared: &Shared,
    replicas: &Arc<Replicas>,
    admission: &Admission,
    session: &Session,
) -> Result<(String, Option<AnswerKeeper>), Refusal> {
    let facts = session.facts(admission.hash());
    let (facts, rest) = facts.expect("its handshake has been answered");
    let id = replicas.session_id(&facts);
    let name = name_of(&id);
    if facts.is_incomplete {
        let expires = u64::from(facts.opened) + VALID;
        let edit = |change: &mut _| *change = rest.clone();
        let written = replicas.change_session(&name, expires, edit).await;
        written.map_err(|error| {
            tracing::warn!(%error, "a session was not opened");
            unavailable()
        })?;
    }
    join(shared, replicas, admission, session, &name);
    Ok((id, Some(keeper(shared, replicas, name))))
}

fn join(
    shared: &Shared,
    replicas: &Arc<Replicas>,
    admission: &Admission,
    session: &Session,
    name: &str,
) {
    let client = ClientOfReplica::new(replicas.clone(), admission.hash(), Some(name.to_owned()));
    session.join_replicas(client, shared.draining.token().clone());
}

fn keeper(shared: &Shared, replicas: &Arc<Replicas>, session: String) -> AnswerKeeper {
    AnswerKeeper {
        replicas: replicas.clone(),
        session,
        draining: shared.draining.clone(),
    }
}

fn unavailable() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the store of the gateway does not answer, which this session needs; try again later",
    )
}

/// The session with this id, which another replica has opened for the same identity. `None` if there is none.
pub(super) async fn continued(
    shared: &Arc<Shared>,
    admission: &Admission,
    id: &str,
) -> Result<Option<SessionGuard>, Refusal> {
    let Some(replicas) = &shared.replicas else {
        return Ok(None);
    };
    let facts = replicas.open_session(id);
    let Some(facts) = facts.filter(|facts| facts.identity == admission.hash()) else {
        return Ok(None);
    };
    let name = name_of(id);
    let change = match facts.is_incomplete {
        true => replicas.read_change(&name).await.map_err(|error| {
            tracing::warn!(%error, "a session is not continued");
            unavailable()
        })?,
        false => replicas.change(&name),
    };
    if replicas.has_ended(&name) {
        return Ok(None);
    }
    let software = change.name.as_ref().unwrap_or(&facts.name);
    let client = format!(r#"{{"name":{}}}"#, quoted(software));
    let client = RawValue::from_string(client).expect("it is JSON");
    let proxy = shared.proxy(admission, Some(&client))?;
    let session = admission.session(proxy, &shared.tasks);
    join(shared, replicas, admission, &session, &name);
    session.continue_with(&facts, &change);
    let opening = Opening {
        id: id.to_owned(),
        session,
        kind: admission.kind(),
        pass: admission.pass.clone(),
        keeper: Some(keeper(shared, replicas, name.clone())),
    };
    let full = |_| Refusal::overload();
    let guard = shared.sessions.open(opening).map_err(full)?;
    if guard.stream().is_none()
        && let Some(replica) = replicas.stream_of(&name)
    {
        send_elsewhere(shared, replicas, &guard, &name, replica);
    }
    tracing::debug!(session = name, "a session of another replica goes on here");
    Ok(Some(guard))
}

/// Sends what only this replica knows to the replica that has a session's stream.
fn send_elsewhere(
    shared: &Shared,
    replicas: &Arc<Replicas>,
    guard: &SessionGuard,
    session: &str,
    replica: String,
) {
    let outbox = guard.listen_elsewhere();
    let (replicas, session) = (replicas.clone(), session.to_owned());
    let stop = shared.tasks.stop().clone();
    shared
        .tasks
        .spawn(stop.run_until_cancelled_owned(async move {
            while let Some(frame) = outbox.next().await {
                let message = [&frame.head[..], &frame.body, &frame.tail].concat();
                let session = session.clone();
                let content = Content::Message { session };
                if !replicas.deliver(&replica, content, message.into()).await {
                    break;
                }
            }
            outbox.abandon();
        }));
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

async fn send(
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
    parts.version = http::Version::default();
    Ok(Response::from_parts(parts, Body::new(body)))
}

/// Whether a header concerns one connection alone.
fn is_of_connection(name: &HeaderName) -> bool {
    [CONNECTION, TRANSFER_ENCODING, UPGRADE, EXPECT].contains(name) || name == "keep-alive"
}

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
    let response = listening::listen(guard, Some(leaving));
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
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, axum::Error>>> {
        if let Some(first) = &mut self.first {
            match std::pin::Pin::new(first).poll_frame(context) {
                std::task::Poll::Ready(None) => self.first = None,
                polled => return polled,
            }
        }
        std::pin::Pin::new(&mut self.second).poll_frame(context)
    }
}

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
    // Before the body is read, so that nobody else can have one kept in memory.
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

/// Follows what happens at other replicas, until the run ends.
pub(super) async fn follow(shared: Arc<Shared>) {
    let Some(replicas) = shared.replicas.clone() else {
        return;
    };
    let mut notices = replicas.notices();
    loop {
        let notice = tokio::select! {
            notice = notices.recv() => notice,
            () = shared.tasks.stopped() => return,
        };
        match notice {
            Ok(notice) => noticed(&shared, &replicas, notice),
            Err(RecvError::Lagged(_)) => noticed(&shared, &replicas, Notice::Reread),
            Err(RecvError::Closed) => return,
        }
    }
}

fn noticed(shared: &Shared, replicas: &Arc<Replicas>, notice: Notice) {
    match notice {
        Notice::Cancelled { session, request } => {
            if let Some(guard) = shared.sessions.named(&session) {
                guard.session().cancel(&request);
            }
        }
        Notice::Listening { session, replica } => {
            if let Some(guard) = shared.sessions.named(&session) {
                send_elsewhere(shared, replicas, &guard, &session, replica);
            }
        }
        Notice::Moved { session } => {
            if let Some(guard) = shared.sessions.named(&session) {
                guard.session().moved();
            }
        }
        Notice::Changed { session } => changed(shared, replicas, &session),
        Notice::Listed { server, hash } => {
            for proxy in shared.proxies.all() {
                proxy.listed_elsewhere(&server, &hash);
            }
        }
        Notice::Reread => {
            for session in shared.sessions.names() {
                changed(shared, replicas, &session);
            }
        }
    }
}

/// Applies what the store has about a session.
fn changed(shared: &Shared, replicas: &Replicas, session: &str) {
    if replicas.has_ended(session) {
        shared.sessions.end_named(session);
    } else if let Some(guard) = shared.sessions.named(session) {
        guard.session().changed(&replicas.change(session));
    }
}
