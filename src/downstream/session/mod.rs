//! One client session: its messages, negotiated revision and requests in flight. Responses may be sent in any order.

mod in_flight;
mod replicated;
mod requests;

pub(super) use requests::name_of;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use self::in_flight::RequestsInFlight;
use super::exchange::{Exchange, ResponseTarget};
use crate::mcp::{
    Envelope, ErrorCode, Frame, Malformed, Message, Object, Outbox, Request, RequestId, Revision,
};
use crate::proxy::{Client, Proxy, Reply};
use crate::shutdown::Tasks;
use crate::telemetry;

/// The error for a request that was sent to a server by a process that has since died.
const INTERRUPTED: &str = "the shared mcpzip process ended while a server worked on this request: it may have acted. The server is restarted without what it had in memory. Next: check what was done before you repeat it";

pub(super) const REVISION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";

/// The session of a client of either era. Requests of both eras may come in any order (2026-07-28, basic/versioning).
#[derive(Debug)]
pub(crate) struct Session {
    proxy: Mutex<Arc<Proxy>>,
    client: Arc<Client>,
    tasks: Tasks,
    /// The revision negotiated by `initialize`.
    legacy: Mutex<Option<Revision>>,
    in_flight: RequestsInFlight,
    /// The session's name in traces, if it has an id.
    name: OnceLock<String>,
    /// Cancelled when other replicas are to take over its subscriptions.
    leaving: OnceLock<CancellationToken>,
}

impl Session {
    /// Creates the session of a client that has sent nothing yet.
    #[must_use]
    pub(crate) fn new(proxy: Arc<Proxy>, tasks: Tasks) -> Arc<Self> {
        Arc::new(Self {
            proxy: Mutex::new(proxy),
            client: Client::new(),
            tasks,
            legacy: Mutex::default(),
            in_flight: RequestsInFlight::default(),
            name: OnceLock::new(),
            leaving: OnceLock::new(),
        })
    }

    /// Sends the server's own messages to `outbox` from now on.
    pub(crate) fn attach(&self, outbox: Outbox) {
        self.client.listener().attach(outbox);
    }

    /// Sends to `outbox`, for the stream that another replica has, what only this replica knows.
    pub(crate) fn attach_elsewhere(&self, outbox: Outbox) {
        self.client.listener().attach_elsewhere(outbox);
    }

    /// The proxy that serves it.
    fn proxy(&self) -> Arc<Proxy> {
        self.proxy.lock().clone()
    }

    /// Serves it by another proxy from its handshake on, because the client's name has a profile.
    pub(super) fn move_to(&self, proxy: Arc<Proxy>) {
        if self.legacy_revision().is_none() {
            *self.proxy.lock() = proxy;
        }
    }

    /// Gives the client this process's workspace, because the client started the process.
    pub(crate) fn share_workspace(&self) {
        self.client.set_workspace(self.proxy().workspace());
    }

    /// Its client's name and version, once it has said them.
    pub(super) fn client_name(&self) -> Option<String> {
        self.client.software_text()
    }

    /// Lets its client use the meta-tools, also where clients get each tool under its own name.
    pub(super) fn uses_meta_tools(&self) {
        self.client.use_meta_tools();
    }

    /// Records the identity of its client.
    pub(super) fn identify(&self, identity: &str) {
        self.client.identify(identity);
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
        *self.legacy.lock()
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
                _ => self.legacy_revision().unwrap_or(Revision::NEWEST_LEGACY),
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
        self.in_flight.count()
    }

    /// Resolves when a request has just ended or the next one ends.
    pub(crate) async fn finished(&self) {
        self.in_flight.ended().await;
    }

    /// Resolves when no request is in flight. It has one caller at a time.
    pub(super) async fn idle(&self) {
        while self.in_flight() > 0 {
            self.finished().await;
        }
    }

    /// Cancels all requests.
    pub(crate) fn cancel_all(&self) {
        self.in_flight.cancel_all();
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
        let revision = self.legacy_revision();
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
                if let Some(id) = id {
                    self.answered(&id, &outcome);
                }
            }
        }
    }

    fn notified(self: &Arc<Self>, method: &str, params: Option<&RawValue>) {
        if method == "notifications/cancelled"
            && let Some(id) =
                params.and_then(|raw| RequestId::parse(Object::parse(raw).ok()?.get("requestId")?))
        {
            let is_here = self.in_flight.cancel(&id);
            self.cancel_elsewhere(&id, is_here);
        }
        if method == "notifications/roots/list_changed" {
            self.client.moved();
            self.move_elsewhere();
        }
        if matches!(
            method,
            "notifications/initialized" | "notifications/roots/list_changed"
        ) {
            let session = self.clone();
            let fetching = async move { session.proxy().fetch_roots(&session.client).await };
            self.tasks.spawn(
                self.tasks
                    .stop()
                    .clone()
                    .run_until_cancelled_owned(fetching),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    /// The size limit of a request's future in bytes; it is moved several times for each call.
    const TASK: usize = 8 * 1024;

    use super::in_flight::InFlightGuard;
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
        let size = size_of_val(&session.run(
            &id,
            "ping",
            &Object::default(),
            &line,
            (&exchange, std::time::Instant::now()),
        ));
        assert!(size <= TASK, "{size}");
        let answer = ResponseTarget::alone(Exchange::Shared(outbox.clone()));
        let running = session.clone();
        let task = tasks.spawn(async move {
            let _in_flight = InFlightGuard {
                requests: &running.in_flight,
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
