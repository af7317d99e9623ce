//! A live link to one server: requests go out side by side over one wire, answers come back in any order.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use memchr::memmem;
use serde_json::value::RawValue;
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::CallError;
use super::handshake::Introduction;
use super::wire::{Target, Wire};
use crate::mcp::{Envelope, ErrorCode, Frame, Line, LineReader, Message, Object, Outbox, Outcome, RequestId};
use crate::tool::{ServerName, ToolName};

/// A link after its handshake. Dropping the last handle does not close it; its owner, the pool, does.
#[derive(Debug)]
pub struct Connection {
    pub(super) wire: Wire,
    pub(super) introduction: Introduction,
}

/// The wire and the requests under way on it.
pub(super) struct Link {
    server: ServerName,
    outbox: Outbox,
    requests: Mutex<Requests>,
    next_id: AtomicU64,
    message_limit: usize,
    /// Cancelled by whoever wants the link closed.
    close: CancellationToken,
    on_tools_changed: Box<dyn Fn() + Send + Sync>,
}

#[derive(Debug, Default)]
struct Requests {
    waiting: HashMap<u64, Waiting>,
    /// Why the link is over, once it is.
    ended: Option<String>,
}

struct Waiting {
    answer: oneshot::Sender<Result<Reply, CallError>>,
    progress: Option<ProgressSink>,
}

/// Takes the `params` of the progress notifications that belong to a request.
pub type ProgressSink = Arc<dyn Fn(&RawValue) + Send + Sync>;

/// What a server answered.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The result, in the server's own bytes.
    Result(Bytes),
    /// The JSON-RPC error object, in the server's own bytes.
    Error(Bytes),
}

/// A call of one tool.
#[derive(Clone)]
pub struct ToolCall<'a> {
    /// The tool's name on its server.
    pub tool: &'a ToolName,
    /// The arguments, a JSON object, sent as it is.
    pub arguments: Bytes,
    /// Members for `_meta`, such as `"traceparent":"…"`, without braces; may be empty.
    pub meta: &'a str,
    /// How long the answer may take.
    pub limit: Duration,
    /// Where progress goes, if it is wanted.
    pub progress: Option<ProgressSink>,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("progress", &self.progress.is_some()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Connection {
    /// What the server said of itself.
    #[must_use]
    pub fn introduction(&self) -> &Introduction {
        &self.introduction
    }

    /// Whether the link is over.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.wire.is_ended()
    }

    /// Calls a tool and waits for its answer. Dropping the future cancels the call on the server.
    ///
    /// # Errors
    /// When no usable answer comes; see [`CallError`].
    pub async fn call_tool(&self, call: ToolCall<'_>) -> Result<Reply, CallError> {
        let ToolCall { tool, arguments, meta, limit, progress } = call;
        let stamp = self.introduction.request_meta();
        let wants_progress = progress.is_some();
        let name = crate::mcp::frame::quoted(tool.as_str());
        let mirrors = self.wire.mirrors();
        let headers = mirrors.map(|mirrors| mirrors.headers(tool.as_str(), &arguments)).unwrap_or_default();
        let params = move |id: u64| {
            let mut tail = String::new();
            let token = if wants_progress { format!(r#""progressToken":{id}"#) } else { String::new() };
            let members: Vec<&str> =
                [token.as_str(), stamp, meta].into_iter().filter(|part| !part.is_empty()).collect();
            if !members.is_empty() {
                let _ = write!(tail, r#","_meta":{{{}}}"#, members.join(","));
            }
            tail.push('}');
            Frame {
                head: format!(r#"{{"name":{name},"arguments":"#).into_bytes(),
                body: arguments,
                tail: tail.into_bytes(),
            }
        };
        let target = Target { method: "tools/call", name: Some(tool.as_str()), headers: &headers };
        self.wire.request(target, params, limit, progress).await
    }

    /// Whether a refusal for missing headers may be due to our not having listed the tools yet.
    pub(super) fn lacks_headers(&self, refusal: &Reply) -> bool {
        let Reply::Error(error) = refusal else { return false };
        self.wire.mirrors().is_some_and(|mirrors| !mirrors.is_listed())
            && code_of(error) == Some(ErrorCode::HEADER_MISMATCH)
    }

    /// Sends any other request; `members` are those of its `params`, without braces.
    ///
    /// # Errors
    /// When no usable answer comes; see [`CallError`].
    pub async fn request(&self, method: &str, members: &str, limit: Duration) -> Result<Reply, CallError> {
        let stamp = self.introduction.request_meta();
        let params = match (members, stamp) {
            (members, "") => format!("{{{members}}}"),
            ("", stamp) => format!(r#"{{"_meta":{{{stamp}}}}}"#),
            (members, stamp) => format!(r#"{{{members},"_meta":{{{stamp}}}}}"#),
        };
        self.wire.request(Target::from(method), |_| Frame::from(params), limit, None).await
    }
}

impl Link {
    /// A link that writes to `outbox`; [`Link::read`] is to be run by one task.
    pub(super) fn new(
        server: ServerName,
        outbox: Outbox,
        message_limit: usize,
        on_tools_changed: Box<dyn Fn() + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            server,
            outbox,
            requests: Mutex::default(),
            next_id: AtomicU64::new(1),
            message_limit,
            close: CancellationToken::new(),
            on_tools_changed,
        })
    }

    /// Whether the link is over.
    pub(super) fn is_ended(&self) -> bool {
        self.requests().ended.is_some()
    }

    /// Asks for the end of the link; requests under way fail.
    pub(super) fn close(&self) {
        self.close.cancel();
    }

    /// Resolves when the link is to be closed.
    pub(super) async fn close_requested(&self) {
        self.close.cancelled().await;
    }

    /// Sends a request and waits for its answer, at most for `limit`. Dropping the future cancels the request.
    pub(super) async fn request(
        self: &Arc<Self>,
        method: &str,
        params: impl FnOnce(u64) -> Frame,
        limit: Duration,
        progress: Option<ProgressSink>,
    ) -> Result<Reply, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        {
            let mut requests = self.requests();
            if let Some(reason) = &requests.ended {
                return Err(self.lost(reason, false));
            }
            requests.waiting.insert(id, Waiting { answer, progress });
        }
        let mut unanswered = Unanswered { link: self, id, reason: Some("the caller cancelled it") };
        let exchange = async {
            let sent = self.outbox.send(Frame::request(id, method, params(id))).await;
            let answer = answered.await.unwrap_or_else(|_| Err(self.lost("the connection was closed", true)));
            match answer {
                // It never left, which the end of the link cannot know.
                Err(CallError::Lost { reason, .. }) if sent.is_err() => Err(self.lost(&reason, false)),
                answer => answer,
            }
        };
        let outcome = tokio::time::timeout(limit, exchange).await;
        unanswered.reason = outcome.is_err().then_some("it took too long");
        outcome.unwrap_or_else(|_| Err(CallError::Timeout { server: self.server.clone(), limit }))
    }

    /// Sends a notification without parameters.
    pub(super) fn notify(&self, method: &str) {
        // Where the peer is gone, the next request says so.
        let _ = self.outbox.push(&Frame::from(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)));
    }

    /// Reads messages until the stream ends; `Err` says how it broke.
    pub(super) async fn read(&self, lines: &mut LineReader<impl AsyncRead + Unpin>) -> std::io::Result<()> {
        while let Some(line) = lines.next().await? {
            match line {
                Line::Message(line) => self.receive(&line),
                Line::TooLong { length, id } => self.too_long(length, id.as_ref()),
            }
        }
        Ok(())
    }

    /// Fails every request under way, and all that will come, with `reason`.
    pub(super) fn end(&self, reason: &str) {
        let waiting = {
            let mut requests = self.requests();
            requests.ended.get_or_insert_with(|| reason.to_owned());
            std::mem::take(&mut requests.waiting)
        };
        self.outbox.close();
        for (_, request) in waiting {
            // Its caller may have gone in the meantime.
            let _ = request.answer.send(Err(self.lost(reason, true)));
        }
    }

    /// A message of `length` bytes was dropped; fails the request it was to answer, if that is known.
    pub(super) fn too_long(&self, length: u64, id: Option<&RequestId>) {
        tracing::warn!(server = %self.server, length, "a message over the size limit was dropped");
        if let Some(id) = id.and_then(RequestId::as_integer) {
            let limit = self.message_limit;
            self.answer(id, Err(CallError::TooLarge { server: self.server.clone(), length, limit }));
        }
    }

    /// Takes a message, or several.
    pub(super) fn receive(&self, line: &Bytes) {
        match Envelope::parse(line) {
            Ok(Envelope::Single(message)) => self.dispatch(line, message),
            Ok(Envelope::Batch(batch)) => {
                for raw in batch {
                    match Message::parse(raw) {
                        Ok(message) => self.dispatch(line, message),
                        Err(malformed) => tracing::debug!(server = %self.server, %malformed, "in a batch"),
                    }
                }
            }
            Err(malformed) => {
                tracing::warn!(server = %self.server, %malformed, "an unreadable message");
                // Programs print all kinds of things; only what was meant as a message can be somebody's answer.
                let was_message = memmem::find(line, b"\"jsonrpc\"").is_some();
                if let Some(id) = malformed.id.as_ref().filter(|_| was_message).and_then(|id| id.as_integer()) {
                    let reason = malformed.reason;
                    self.answer(id, Err(CallError::Malformed { server: self.server.clone(), reason }));
                }
            }
        }
    }

    fn dispatch(&self, line: &Bytes, message: Message<'_>) {
        match message {
            Message::Response { id, outcome } => {
                let reply = match outcome {
                    Outcome::Result(raw) => Reply::Result(line.slice_ref(raw.get().as_bytes())),
                    Outcome::Error(raw) => Reply::Error(line.slice_ref(raw.get().as_bytes())),
                };
                match id.and_then(|id| id.as_integer()) {
                    Some(id) => self.answer(id, Ok(reply)),
                    None => tracing::debug!(server = %self.server, "an answer to no request of ours"),
                }
            }
            Message::Request(request) => {
                let frame = match request.method.as_ref() {
                    "ping" => Frame::result(&request.id, "", Bytes::from_static(b"{}")),
                    method => {
                        let message = format!("mcpzip declares no support for `{method}`");
                        Frame::error(Some(&request.id), ErrorCode::METHOD_NOT_FOUND, &message, None)
                    }
                };
                // A peer that is gone is noticed by the reader.
                let _ = self.outbox.push(&frame);
            }
            Message::Notification { method, params } => self.notified(&method, params),
        }
    }

    fn notified(&self, method: &str, params: Option<&RawValue>) {
        match (method, params) {
            ("notifications/progress", Some(params)) => {
                let token =
                    Object::parse(params).ok().and_then(|object| object.get("progressToken")?.get().parse().ok());
                let sink = token.and_then(|id| self.requests().waiting.get(&id).and_then(|w| w.progress.clone()));
                if let Some(sink) = sink {
                    sink(params);
                }
            }
            ("notifications/tools/list_changed", _) => (self.on_tools_changed)(),
            _ => tracing::debug!(server = %self.server, method, "notification"),
        }
    }

    /// Hands `reply` to whoever waits for it; nobody does when it comes late or twice.
    pub(super) fn answer(&self, id: i64, reply: Result<Reply, CallError>) {
        let waiting = u64::try_from(id).ok().and_then(|id| self.requests().waiting.remove(&id));
        match waiting {
            // The caller may have gone in the meantime.
            Some(waiting) => drop(waiting.answer.send(reply)),
            None => tracing::debug!(server = %self.server, id, "an answer nobody waits for"),
        }
    }

    fn lost(&self, reason: &str, may_have_acted: bool) -> CallError {
        CallError::Lost { server: self.server.clone(), reason: reason.to_owned(), may_have_acted }
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        // Each change is a single step, so the table is whole even where a panic would strike.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The `code` of a JSON-RPC error object.
fn code_of(error: &[u8]) -> Option<ErrorCode> {
    let error: &RawValue = serde_json::from_slice(error).ok()?;
    Object::parse(error).ok()?.get("code")?.get().parse().ok().map(ErrorCode)
}

/// Tells the server that nobody waits for a request any more, unless it was answered.
struct Unanswered<'a> {
    link: &'a Link,
    id: u64,
    /// For the server's log; `None` once there is an answer.
    reason: Option<&'static str>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let was_waiting = self.link.requests().waiting.remove(&self.id).is_some();
        if let Some(reason) = self.reason.filter(|_| was_waiting) {
            let params = format!(r#"{{"requestId":{},"reason":"{reason}"}}"#, self.id);
            // A server that is gone needs no telling.
            let _ = self.link.outbox.push(&Frame::notification("notifications/cancelled", &params));
        }
    }
}
