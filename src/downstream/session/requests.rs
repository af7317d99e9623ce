//! One request of a client, from its start to its response.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde_json::value::RawValue;
use tracing::Instrument as _;

use super::in_flight::{InFlight, InFlightGuard};
use super::{CAPABILITIES_KEY, CLIENT_KEY, REVISION_KEY, Session};
use crate::downstream::exchange::{Exchange, ResponseTarget};
use crate::downstream::span::{self, Of, Traced};
use crate::mcp::object::{quoted, text};
use crate::mcp::{
    ClientCapabilities, ErrorCode, Extensions, Frame, LogLevel, Object, Request, RequestId,
    Revision,
};
use crate::proxy::{Caller, Interests, Listener, Reply, Shows};
use crate::telemetry;
use crate::telemetry::trace::Trace;

/// The bytes that are kept of a client's name, and of its version.
const LONGEST_SOFTWARE: usize = 256;

const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

impl Session {
    /// Starts a request as a task; `initialize` is answered at once.
    pub(super) fn start(
        self: &Arc<Self>,
        line: &Bytes,
        request: Request<'_>,
        answer: ResponseTarget,
    ) {
        if request.method == "initialize" {
            // Processed at once, because the next message is interpreted by the negotiated revision.
            let params = span::object(request.params);
            let (exchange, id, method) = (&answer.exchange, &request.id, &*request.method);
            let of = Of {
                session: self.name(),
                person: self.client.person(),
                exchange,
                id,
                method,
                params: &params,
            };
            let mut traced = Traced::begin(&self.proxy(), &span::object(params.get("_meta")), &of);
            let reply = self.initialize(request.params);
            traced.answered(
                self.legacy_revision().unwrap_or(Revision::NEWEST_LEGACY),
                &reply,
            );
            answer.push(reply.into_frame(&request.id, Revision::NEWEST_LEGACY));
            // The response is queued before a task that waits for this runs.
            return self.proxy().inventory.begin();
        }
        // The end of the run cancels requests too: some wait for something that will never happen then.
        let cancelled = self.tasks.stop().child_token();
        let is_endless = request.method == "subscriptions/listen";
        let bytes = request.params.map_or(0, |params| params.get().len());
        let in_flight = InFlight {
            cancelled: cancelled.clone(),
            is_endless,
            bytes,
        };
        if let Err((code, message)) = self.in_flight.add(&request.id, in_flight) {
            return answer.push(Frame::error(Some(&request.id), code, &message, None));
        }
        let (session, received) = (self.clone(), Instant::now());
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
        // Boxed, because a task moves its future when it starts and writes as many bytes again when it ends.
        self.tasks.spawn(Box::pin(async move {
            let _in_flight = InFlightGuard { requests: &session.in_flight, id: &id, answer: &answer };
            // The envelope has refused anything that is not an object already.
            let params = params.as_ref().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
            tokio::select! {
                // A response that is ready is sent even if a cancellation arrives at the same time. At the end of the
                // run, a subscription ends with a response.
                biased;
                frame = session.run(&id, &method, &params, &line, (&answer.exchange, received)).instrument(log) => {
                    let frame = answer.exchange.outbox().hold(frame).unwrap_or_else(|_| session.over_budget(&id, &method));
                    session.deliver(&answer, frame).await;
                }
                // A cancelled request has no response (basic/patterns/cancellation), but its batch continues without
                // it. A client over HTTP may be there when the run ends; no process takes its requests over.
                () = cancelled.cancelled() => {
                    if answer.exchange.is_over_http() && session.tasks.stop().is_cancelled() {
                        answer.push(session.unanswered(&id, &method));
                    } else {
                        answer.leave();
                    }
                }
            }
        }));
    }

    /// Runs a request and returns its response.
    pub(super) async fn run(
        &self,
        id: &RequestId,
        method: &str,
        params: &Object<'_>,
        line: &Bytes,
        (exchange, received): (&Exchange, Instant),
    ) -> Frame {
        // The duration is only logged at this level.
        let start = tracing::enabled!(tracing::Level::DEBUG).then(Instant::now);
        let meta = span::object(params.get("_meta"));
        let of = Of {
            session: self.name(),
            person: self.client.person(),
            exchange,
            id,
            method,
            params,
        };
        let mut traced = Traced::begin(&self.proxy(), &meta, &of);
        let (revision, reply) = match self.revision_of(method, &meta) {
            Err(refusal) => (Revision::V2026_07_28, refusal),
            Ok(revision) => {
                let reply = match method {
                    "subscriptions/listen" if revision.is_modern() => {
                        let trace = traced.trace().clone();
                        let caller =
                            self.caller((revision, method), &meta, (exchange, received), trace);
                        Box::pin(self.listen(id, params, &caller)).await
                    }
                    _ => {
                        let trace = traced.trace().clone();
                        let caller =
                            self.caller((revision, method), &meta, (exchange, received), trace);
                        let reply = self.proxy().handle(&caller, method, params, line).await;
                        match self.changes_elsewhere(revision, method) {
                            true => Box::pin(self.change_elsewhere(method, params, reply)).await,
                            false => reply,
                        }
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
        (revision, method): (Revision, &str),
        meta: &Object<'_>,
        (exchange, received): (&Exchange, Instant),
        trace: Trace,
    ) -> Caller {
        let (capabilities, log_level) = if revision.is_modern() {
            let declared = meta.get(CAPABILITIES_KEY).map(ClientCapabilities::parse);
            // Clients may discover a server before they know what they will declare.
            if let Some(declared) = declared.filter(|_| method != "server/discover") {
                self.client.note_interfaces(declared);
            }
            (
                declared,
                meta.text(LOG_LEVEL_KEY)
                    .and_then(|level| LogLevel::parse(&level)),
            )
        } else {
            (self.client.capabilities(), None)
        };
        let extensions = match meta.get(CAPABILITIES_KEY) {
            Some(declared) if revision.is_modern() => Extensions::parse(declared),
            _ => self.client.extensions(),
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
            extensions,
            common: Arc::default(),
            outbox: exchange.outbox().clone(),
            log_level,
            params: exchange.params().cloned(),
            scopes: exchange.scopes().cloned(),
            receipt: exchange.receipt().cloned(),
            received,
            trace,
        }
    }

    /// The revision of a request: its own, or the negotiated one.
    fn revision_of(&self, method: &str, meta: &Object<'_>) -> Result<Revision, Reply> {
        match meta.get(REVISION_KEY) {
            Some(raw) => {
                let requested = text(raw).unwrap_or_default();
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
                        cause: None,
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
            None => Ok(self.legacy_revision().unwrap_or(Revision::NEWEST_LEGACY)),
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
        *self.legacy.lock() = Some(revision);
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
        self.client.note_interfaces(capabilities);
        let extensions = params.get("capabilities").map(Extensions::of_handshake);
        self.client.declare(extensions.unwrap_or_default());
        self.proxy()
            .initialize(&self.client, revision, capabilities)
    }

    /// Answers a subscription (2026-07-28, basic/patterns/subscriptions): acknowledges it, and keeps it open until it
    /// is cancelled or the run ends.
    async fn listen(&self, id: &RequestId, params: &Object<'_>, caller: &Caller) -> Reply {
        let outbox = &caller.outbox;
        if let Some(info) = span::object(params.get("_meta")).get(CLIENT_KEY) {
            self.client.note_software(|| software_of(info));
        }
        let filter = params
            .get("notifications")
            .and_then(|raw| Object::parse(raw).ok())
            .unwrap_or_default();
        let mut tasks = match self.proxy().watch_tasks(caller, &filter).await {
            Ok(tasks) => tasks,
            Err(refusal) => return refusal,
        };
        let interests = Interests {
            tasks: tasks.followed(),
            ..Interests::parse(&filter)
        };
        let interests = self.proxy().offered(&self.client, interests).await;
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
        self.proxy().listen(&listener);
        let proxy = self.proxy();
        let pass_on = async {
            while let Some(params) = proxy.next_task_change(&mut tasks).await {
                listener.tell_task(&params);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.tasks.stopped() => {}
            () = self.left() => {}
            () = pass_on => {}
        }
        Reply::Ended {
            meta: format!(r#""io.modelcontextprotocol/subscriptionId":{id}"#),
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
        self.failed(id, method, ErrorCode::TOO_MANY_REQUESTS, text)
    }

    /// The response to a request that the end of the run cancels.
    fn unanswered(&self, id: &RequestId, method: &str) -> Frame {
        let text = match method {
            "tools/call" => {
                "mcpzip ended before the answer came. The call may have acted: check before calling again"
            }
            _ => "mcpzip ended before the answer came",
        };
        self.failed(id, method, ErrorCode::INTERNAL, text)
    }

    /// An error for an agent, if it called a tool, or for its client.
    fn failed(&self, id: &RequestId, method: &str, code: ErrorCode, text: &str) -> Frame {
        let revision = self.legacy_revision().unwrap_or(Revision::V2026_07_28);
        let reply = match method {
            "tools/call" => Reply::tool_error(text),
            _ => Reply::error(code, text.to_owned()),
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
        self.proxy().inventory.release();
    }
}

/// The name in an `Implementation`.
pub(in crate::downstream) fn name_of(info: &RawValue) -> Option<String> {
    Object::parse(info).ok()?.text("name").map(cut)
}

/// A client's name and version, each empty if absent.
fn software_of(info: &RawValue) -> (String, String) {
    let info = Object::parse(info).unwrap_or_default();
    let part = |key| cut(info.text(key).unwrap_or_default());
    (part("name"), part("version"))
}

/// The first part of a name, which is kept for each session and written to logs.
fn cut(mut text: String) -> String {
    let end = (0..=LONGEST_SOFTWARE.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
    text
}

fn missing(key: &str) -> Reply {
    Reply::error(
        ErrorCode::INVALID_PARAMS,
        format!("`_meta` must have `{key}`"),
    )
}
