//! One client session: negotiated revision, requests in flight, cancellation. Responses may be sent in any order.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::exchange::{Exchange, ResponseTarget};
use super::span::{self, Of, Traced};
use crate::mcp::object::quoted;
use crate::mcp::{
    ClientCapabilities, Envelope, ErrorCode, Frame, LogLevel, Malformed, Message, Object, Outbox,
    Request, RequestId, Revision,
};
use crate::proxy::{Caller, Client, Interests, Listener, Proxy, Reply, Shows};
use crate::shutdown::Tasks;
use crate::telemetry;
use crate::telemetry::trace::Trace;

/// The maximum number of requests in flight for one client; more are refused.
const MOST_REQUESTS: usize = 4096;

/// The maximum size of their parameters together, in bytes. A single request of any size is accepted.
const MOST_BYTES: usize = 128 * 1024 * 1024;

/// The error for a request that was sent to a server by a process that has since died.
const INTERRUPTED: &str = "the shared mcpzip process ended while a server worked on this request: it may have acted. The server is restarted without what it had in memory. Next: check what was done before you repeat it";

pub(super) const REVISION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// The session of a client of either era. Requests of both eras may come in any order (2026-07-28, basic/versioning).
#[derive(Debug)]
pub(crate) struct Session {
    proxy: Arc<Proxy>,
    client: Arc<Client>,
    tasks: Tasks,
    state: Mutex<State>,
    /// Notified when a request has ended.
    finished: Notify,
    /// The session's name in traces, if it has an id.
    name: OnceLock<String>,
}

/// The part of a session that changes.
#[derive(Debug, Default)]
struct State {
    /// The revision negotiated by `initialize`.
    legacy: Option<Revision>,
    in_flight: HashMap<RequestId, InFlight>,
    /// The size of the parameters of the requests in flight.
    bytes_in_flight: usize,
}

/// A request that has no response yet.
#[derive(Debug)]
struct InFlight {
    cancelled: CancellationToken,
    /// Whether it is a subscription, which ends only when cancelled.
    is_endless: bool,
    /// The size of its parameters.
    bytes: usize,
}

impl Session {
    /// Creates the session of a client that has sent nothing yet.
    #[must_use]
    pub(crate) fn new(proxy: Arc<Proxy>, tasks: Tasks) -> Arc<Self> {
        Arc::new(Self {
            proxy,
            client: Client::new(),
            tasks,
            state: Mutex::default(),
            finished: Notify::new(),
            name: OnceLock::new(),
        })
    }

    /// Sends the server's own messages to `outbox` from now on.
    pub(crate) fn attach(&self, outbox: Outbox) {
        self.client.listener().attach(outbox);
    }

    /// Gives the client this process's workspace, because the client started the process.
    pub(crate) fn share_workspace(&self) {
        self.client.set_workspace(self.proxy.workspace());
    }

    /// Makes its filters share the limit of all clients with this name that have no session.
    pub(super) fn shares_as(&self, name: &str) {
        self.client.shares_as(name);
    }

    /// Sets the name of the session in traces: a hash of the id, because the id itself grants access.
    pub(crate) fn named_for(&self, id: &str) {
        let hash = Sha256::digest(id);
        // A session has one id.
        let _ = self.name.set(HEXLOWER.encode(&hash[..8]));
    }

    /// The session's name in traces.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.get().map(String::as_str)
    }

    /// The revision negotiated by the handshake.
    #[must_use]
    pub(crate) fn legacy_revision(&self) -> Option<Revision> {
        self.state().legacy
    }

    /// Processes a line, or another text with one or several messages. It never waits: requests run as tasks.
    pub(crate) fn receive(self: &Arc<Self>, line: &Bytes, exchange: &Exchange) {
        self.receive_parsed(line, Envelope::parse(line), exchange);
    }

    /// Processes a line that was parsed before.
    pub(super) fn receive_parsed(
        self: &Arc<Self>,
        line: &Bytes,
        parsed: Result<Envelope<'_>, Malformed>,
        exchange: &Exchange,
    ) {
        match parsed {
            Ok(envelope) => self.receive_envelope(line, envelope, exchange),
            Err(malformed) => self.refuse(&malformed, exchange),
        }
    }

    /// Processes a text that was already parsed: `envelope` borrows from `line`.
    pub(crate) fn receive_envelope(
        self: &Arc<Self>,
        line: &Bytes,
        envelope: Envelope<'_>,
        exchange: &Exchange,
    ) {
        telemetry::frame(None, "received", &[line]);
        match envelope {
            Envelope::Single(message) => {
                self.receive_message(line, message, ResponseTarget::alone(exchange.clone()));
            }
            Envelope::Batch(batch) => self.receive_batch(line, &batch, exchange),
        }
    }

    /// Answers the requests of a line that an earlier process sent to a server and did not answer: they may have
    /// acted.
    pub(crate) fn refuse_interrupted(&self, line: &Bytes, exchange: &Exchange) {
        let requests: Vec<Request<'_>> = match Envelope::parse(line) {
            Ok(Envelope::Single(Message::Request(request))) => vec![request],
            Ok(Envelope::Batch(batch)) => batch
                .iter()
                .filter_map(|raw| match Message::parse(raw) {
                    Ok(Message::Request(request)) => Some(request),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        // One response each: a client accepts the responses to a batch in any form.
        for request in requests {
            let revision = match request.params {
                Some(raw) if raw.get().contains(REVISION_KEY) => Revision::V2026_07_28,
                _ => self.state().legacy.unwrap_or(Revision::NEWEST_LEGACY),
            };
            let reply = match &*request.method {
                "tools/call" => Reply::tool_error(INTERRUPTED),
                _ => Reply::error(ErrorCode::INTERNAL, INTERRUPTED.to_owned()),
            };
            ResponseTarget::alone(exchange.clone()).push(reply.into_frame(&request.id, revision));
        }
    }

    /// Answers a line that was too long.
    pub(crate) fn refuse_length(
        &self,
        length: u64,
        limit: usize,
        id: Option<RequestId>,
        exchange: &Exchange,
    ) {
        let reason = format!("the message has {length} bytes, more than the limit of {limit}");
        self.refuse(
            &Malformed {
                id,
                code: ErrorCode::INVALID_REQUEST,
                reason,
            },
            exchange,
        );
    }

    /// The number of requests in flight, without subscriptions.
    #[must_use]
    pub(crate) fn in_flight(&self) -> usize {
        self.state()
            .in_flight
            .values()
            .filter(|request| !request.is_endless)
            .count()
    }

    /// Resolves when a request has just ended or the next one ends.
    pub(crate) async fn finished(&self) {
        self.finished.notified().await;
    }

    /// Cancels all requests.
    pub(crate) fn cancel_all(&self) {
        self.state()
            .in_flight
            .values()
            .for_each(|request| request.cancelled.cancel());
    }

    fn refuse(&self, malformed: &Malformed, exchange: &Exchange) {
        let answer = ResponseTarget::alone(exchange.clone());
        answer.push(Frame::error(
            malformed.id.as_ref(),
            malformed.code,
            &malformed.reason,
            None,
        ));
    }

    fn receive_batch(self: &Arc<Self>, line: &Bytes, batch: &[&RawValue], exchange: &Exchange) {
        let refusal = |reason: String| Malformed {
            id: None,
            code: ErrorCode::INVALID_REQUEST,
            reason,
        };
        let revision = self.state().legacy;
        if !revision.is_some_and(Revision::has_batches) {
            let of = revision.map_or_else(
                || "without a handshake".to_owned(),
                |revision| format!("in revision {revision}"),
            );
            return self.refuse(
                &refusal(format!(
                    "a batch is not allowed {of}; send one message per line"
                )),
                exchange,
            );
        }
        if batch.is_empty() {
            return self.refuse(&refusal("a batch must not be empty".to_owned()), exchange);
        }
        let messages: Vec<_> = batch.iter().map(|raw| Message::parse(raw)).collect();
        let answers = messages
            .iter()
            .filter(|m| matches!(m, Ok(Message::Request(_)) | Err(_)))
            .count();
        let together = ResponseTarget::of_batch(exchange.clone(), answers);
        for message in messages {
            match message {
                Ok(message) => self.receive_message(line, message, together.clone()),
                Err(bad) => {
                    together.push(Frame::error(bad.id.as_ref(), bad.code, &bad.reason, None));
                }
            }
        }
    }

    fn receive_message(
        self: &Arc<Self>,
        line: &Bytes,
        message: Message<'_>,
        answer: ResponseTarget,
    ) {
        match message {
            Message::Request(request) => self.start(line, request, answer),
            Message::Notification { method, params } => self.notified(&method, params),
            Message::Response { id, outcome } => {
                if let Some(id) = id
                    .and_then(|id| id.as_integer())
                    .and_then(|id| u64::try_from(id).ok())
                {
                    self.client.answered(id, &outcome);
                }
            }
        }
    }

    fn start(self: &Arc<Self>, line: &Bytes, request: Request<'_>, answer: ResponseTarget) {
        if request.method == "initialize" {
            // Processed at once, because the next message is interpreted by the negotiated revision.
            let params = span::object(request.params);
            let (exchange, id, method) = (&answer.exchange, &request.id, &*request.method);
            let of = Of {
                session: self.name(),
                exchange,
                id,
                method,
                params: &params,
            };
            let mut traced = Traced::begin(&self.proxy, &span::object(params.get("_meta")), &of);
            let reply = self.initialize(request.params);
            traced.answered(
                self.state().legacy.unwrap_or(Revision::NEWEST_LEGACY),
                &reply,
            );
            answer.push(reply.into_frame(&request.id, Revision::NEWEST_LEGACY));
            // The response is queued before a task that waits for this runs.
            return self.proxy.inventory.begin();
        }
        // The end of the run cancels requests too: some wait for something that will never happen then.
        let cancelled = self.tasks.stop().child_token();
        let is_endless = request.method == "subscriptions/listen";
        let bytes = request.params.map_or(0, |params| params.get().len());
        let refusal = {
            let mut state = self.state();
            if state.in_flight.contains_key(&request.id) {
                Some((
                    ErrorCode::INVALID_REQUEST,
                    "a request with this id is still in progress".to_owned(),
                ))
            } else if state.in_flight.len() >= MOST_REQUESTS {
                Some((
                    ErrorCode::TOO_MANY_REQUESTS,
                    format!("{MOST_REQUESTS} requests are already in progress"),
                ))
            } else if state.bytes_in_flight > 0 && state.bytes_in_flight + bytes > MOST_BYTES {
                let message = format!(
                    "the requests in progress already have {} bytes",
                    state.bytes_in_flight
                );
                Some((ErrorCode::TOO_MANY_REQUESTS, message))
            } else {
                state.bytes_in_flight += bytes;
                state.in_flight.insert(
                    request.id.clone(),
                    InFlight {
                        cancelled: cancelled.clone(),
                        is_endless,
                        bytes,
                    },
                );
                None
            }
        };
        if let Some((code, message)) = refusal {
            return answer.push(Frame::error(Some(&request.id), code, &message, None));
        }
        let session = self.clone();
        let Request { id, method, params } = request;
        let method = method.into_owned();
        let params = params.map(|raw| line.slice_ref(raw.get().as_bytes()));
        let line = line.clone();
        let log = tracing::debug_span!(
            "request",
            client = self.client.number(),
            id = id.as_json(),
            method
        );
        self.tasks.spawn(async move {
            let _in_flight = InFlightGuard { session: &session, id: &id, answer: &answer };
            // The envelope has refused anything that is not an object already.
            let params = params.as_ref().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
            tokio::select! {
                // A response that is ready is sent even if a cancellation arrives at the same time. At the end of the
                // run, a subscription ends with a response.
                biased;
                frame = session.run(&id, &method, &params, &line, &answer.exchange).instrument(log) => {
                    let frame = answer.exchange.outbox().hold(frame).unwrap_or_else(|_| session.over_budget(&id, &method));
                    session.deliver(&answer, frame).await;
                }
                // A cancelled request has no response (basic/patterns/cancellation), but its batch continues without
                // it.
                () = cancelled.cancelled() => answer.leave(),
            }
        });
    }

    /// Runs a request and returns its response.
    async fn run(
        &self,
        id: &RequestId,
        method: &str,
        params: &Object<'_>,
        line: &Bytes,
        exchange: &Exchange,
    ) -> Frame {
        let outbox = exchange.outbox();
        // The duration is only logged at this level.
        let start = tracing::enabled!(tracing::Level::DEBUG).then(Instant::now);
        let meta = span::object(params.get("_meta"));
        let of = Of {
            session: self.name(),
            exchange,
            id,
            method,
            params,
        };
        let mut traced = Traced::begin(&self.proxy, &meta, &of);
        let (revision, reply) = match self.revision_of(method, &meta) {
            Err(refusal) => (Revision::V2026_07_28, refusal),
            Ok(revision) => {
                let reply = match method {
                    "subscriptions/listen" if revision.is_modern() => {
                        Box::pin(self.listen(id, params, outbox)).await
                    }
                    _ => {
                        let caller = self.caller(revision, &meta, exchange, traced.trace().clone());
                        self.proxy.handle(&caller, method, params, line).await
                    }
                };
                (revision, reply)
            }
        };
        traced.answered(revision, &reply);
        if let Some(start) = start {
            tracing::debug!(outcome = reply.outcome(), time = ?start.elapsed(), "answered");
        }
        reply.into_frame(id, revision)
    }

    /// The caller of a request: a modern request describes it itself, otherwise the handshake did.
    fn caller(
        &self,
        revision: Revision,
        meta: &Object<'_>,
        exchange: &Exchange,
        trace: Trace,
    ) -> Caller {
        let (capabilities, log_level) = if revision.is_modern() {
            let declared = meta.get(CAPABILITIES_KEY).map(ClientCapabilities::parse);
            (
                declared,
                meta.text(LOG_LEVEL_KEY)
                    .and_then(|level| LogLevel::parse(&level)),
            )
        } else {
            (self.client.capabilities(), None)
        };
        let shows = if revision.is_modern() {
            let info = meta.get(CLIENT_KEY);
            if let Some(info) = info {
                self.client.note_software(|| software_of(info));
            }
            info.and_then(name_of).and_then(|name| Shows::of(&name))
        } else {
            self.client.shows()
        };
        Caller {
            client: self.client.clone(),
            revision,
            shows,
            capabilities: capabilities.unwrap_or_default(),
            outbox: exchange.outbox().clone(),
            log_level,
            params: exchange.params().cloned(),
            receipt: exchange.receipt().cloned(),
            trace,
        }
    }

    /// The revision of a request: its own, or the negotiated one.
    fn revision_of(&self, method: &str, meta: &Object<'_>) -> Result<Revision, Reply> {
        match meta.get(REVISION_KEY) {
            Some(raw) => {
                let requested = crate::mcp::object::text(raw).unwrap_or_default();
                if Revision::parse(&requested).is_none_or(|revision| !revision.is_modern()) {
                    let supported = Revision::V2026_07_28;
                    return Err(Reply::Error {
                        code: ErrorCode::UNSUPPORTED_VERSION,
                        message: format!(
                            "protocol revision `{requested}` is not served without a handshake"
                        ),
                        data: Some(format!(
                            r#"{{"supported":["{supported}"],"requested":{}}}"#,
                            quoted(&requested)
                        )),
                    });
                }
                if meta.get(CAPABILITIES_KEY).is_none() {
                    return Err(missing(CAPABILITIES_KEY));
                }
                Ok(Revision::V2026_07_28)
            }
            None if method == "server/discover" || method == "subscriptions/listen" => {
                Err(missing(REVISION_KEY))
            }
            None => Ok(self.state().legacy.unwrap_or(Revision::NEWEST_LEGACY)),
        }
    }

    fn initialize(&self, params: Option<&RawValue>) -> Reply {
        let params = params
            .and_then(|raw| Object::parse(raw).ok())
            .unwrap_or_default();
        let Some(requested) = params.text("protocolVersion") else {
            return Reply::error(
                ErrorCode::INVALID_PARAMS,
                "`protocolVersion` must be a string".to_owned(),
            );
        };
        let revision = Revision::negotiate_legacy(&requested);
        self.state().legacy = Some(revision);
        if let Some(name) = params.get("clientInfo").and_then(name_of) {
            tracing::info!(client = name, %revision, "a client is here");
            self.client.named(&name);
        }
        if let Some(info) = params.get("clientInfo") {
            self.client.note_software(|| software_of(info));
        }
        let capabilities = params
            .get("capabilities")
            .map(ClientCapabilities::parse)
            .unwrap_or_default();
        self.proxy.initialize(&self.client, revision, capabilities)
    }

    /// Answers a subscription (2026-07-28, basic/patterns/subscriptions): acknowledges it, and keeps it open until it
    /// is cancelled or the run ends.
    async fn listen(&self, id: &RequestId, params: &Object<'_>, outbox: &Outbox) -> Reply {
        let filter = params
            .get("notifications")
            .and_then(|raw| Object::parse(raw).ok())
            .unwrap_or_default();
        let interests = self
            .proxy
            .offered(&self.client, Interests::parse(&filter))
            .await;
        let mark = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
        let acknowledged = format!(
            r#"{{"_meta":{mark},"notifications":{}}}"#,
            interests.to_json()
        );
        // If the client is gone, that is noticed when its input ends.
        let _ = outbox
            .send(Frame::notification(
                "notifications/subscriptions/acknowledged",
                &acknowledged,
            ))
            .await;
        let listener = Listener::for_subscription(id.as_json(), interests, outbox.clone());
        self.proxy.listen(&listener);
        self.tasks.stopped().await;
        Reply::Ended {
            meta: format!(r#""io.modelcontextprotocol/subscriptionId":{id}"#),
        }
    }

    fn notified(self: &Arc<Self>, method: &str, params: Option<&RawValue>) {
        if method == "notifications/cancelled"
            && let Some(id) =
                params.and_then(|raw| RequestId::parse(Object::parse(raw).ok()?.get("requestId")?))
            && let Some(request) = self.state().in_flight.get(&id)
        {
            request.cancelled.cancel();
        }
        if method == "notifications/roots/list_changed" {
            self.client.moved();
        }
        if matches!(
            method,
            "notifications/initialized" | "notifications/roots/list_changed"
        ) {
            let session = self.clone();
            let fetching = async move { session.proxy.fetch_roots(&session.client).await };
            self.tasks.spawn(
                self.tasks
                    .stop()
                    .clone()
                    .run_until_cancelled_owned(fetching),
            );
        }
    }

    /// The response if unread messages of the clients leave no budget for the real one.
    fn over_budget(&self, id: &RequestId, method: &str) -> Frame {
        tracing::warn!(
            client = self.client.number(),
            method,
            "a response was dropped, because clients have left too many unread"
        );
        let text = "the response was dropped, because clients have left too many responses unread. The request was carried out. Next: ask for less, or ask again in ten seconds if it may be done twice";
        let revision = self.state().legacy.unwrap_or(Revision::V2026_07_28);
        let reply = match method {
            "tools/call" => Reply::tool_error(text),
            _ => Reply::error(ErrorCode::TOO_MANY_REQUESTS, text.to_owned()),
        };
        reply.into_frame(id, revision)
    }

    /// Sends a response that may be large, once the client has read enough of the backlog.
    async fn deliver(&self, answer: &ResponseTarget, frame: Frame) {
        telemetry::frame(None, "sent", &[&frame.head, &frame.body, &frame.tail]);
        if let Some(last) = answer.complete(Some(frame)) {
            if let Some(frame) = last {
                // If the client is gone, that is noticed when its input ends.
                let _ = answer.exchange.outbox().send(frame).await;
            }
            answer.exchange.end();
        }
        self.proxy.inventory.release();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is a single step, so the state is whole even where a panic would strike.
        self.state.lock()
    }
}

/// Records the end of a request in flight when it is dropped.
struct InFlightGuard<'a> {
    session: &'a Session,
    id: &'a RequestId,
    answer: &'a ResponseTarget,
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The panic itself is in the log; without this response the client would wait forever.
            let message =
                "an internal error of mcpzip ended this request; other requests are not affected";
            self.answer.push(Frame::error(
                Some(self.id),
                ErrorCode::INTERNAL,
                message,
                None,
            ));
        }
        let mut state = self.session.state();
        if let Some(request) = state.in_flight.remove(self.id) {
            state.bytes_in_flight -= request.bytes;
        }
        drop(state);
        self.session.finished.notify_one();
    }
}

/// The name in an `Implementation`.
fn name_of(info: &RawValue) -> Option<String> {
    Object::parse(info).ok()?.text("name")
}

/// A client's name and version, each empty if absent.
fn software_of(info: &RawValue) -> (String, String) {
    let info = Object::parse(info).unwrap_or_default();
    let part = |key| info.text(key).unwrap_or_default();
    (part("name"), part("version"))
}

fn missing(key: &str) -> Reply {
    Reply::error(
        ErrorCode::INVALID_PARAMS,
        format!("`_meta` must have `{key}`"),
    )
}

#[cfg(test)]
mod tests {
    /// The size limit of a request's future in bytes; it is moved several times for each call.
    const TASK: usize = 8 * 1024;

    use super::*;

    #[tokio::test]
    async fn a_request_that_panics_is_answered_and_the_others_go_on() {
        let tasks = Tasks::new();
        let proxy = Proxy::without_servers(&tasks);
        let session = Session::new(proxy, tasks.clone());
        let outbox = Outbox::new();
        let (id, line) = (
            RequestId::parse(serde_json::from_str("6").unwrap()).unwrap(),
            Bytes::new(),
        );
        let exchange = Exchange::Shared(outbox.clone());
        let size = size_of_val(&session.run(&id, "ping", &Object::default(), &line, &exchange));
        assert!(size <= TASK, "{size}");
        let answer = ResponseTarget::alone(Exchange::Shared(outbox.clone()));
        let running = session.clone();
        let task = tasks.spawn(async move {
            let _in_flight = InFlightGuard {
                session: &running,
                id: &RequestId::parse(serde_json::from_str("7").unwrap()).unwrap(),
                answer: &answer,
            };
            panic!("on purpose");
        });
        assert!(task.await.unwrap_err().is_panic());
        let said = String::from_utf8(outbox.next().await.unwrap().head).unwrap();
        assert!(
            said.contains(r#""id":7"#) && said.contains("-32603"),
            "{said}"
        );
        let ping = Bytes::from_static(br#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#);
        session.receive(&ping, &Exchange::Shared(outbox.clone()));
        assert!(outbox.next().await.is_some());
        tasks.finish().await;
    }
}
