//! One message stream in each direction, and the requests in flight on it: for stdio and HTTP+SSE. Requests run in
//! parallel; responses arrive in any order.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use memchr::memmem;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::task::coop;
use tokio_util::sync::CancellationToken;

use super::error::CallError;
use super::home;
use super::host::Host;
use super::inbound::InboundRouter;
use super::raw_result::RawResult;
use super::receiver::Receiver;
use super::reply::ServerReply;
use crate::mcp::{
    Envelope, Frame, Line, LineReader, Malformed, Message, Object, Outbox, Outcome, RequestId,
};
use crate::telemetry;
use crate::tool::{ServerName, is_hidden};

/// The size from which a response waits for its client to read, in bytes.
const LARGE: usize = 64 * 1024;

/// The length of a shown line that was no message, in characters.
const SHOWN: usize = 100;

/// A message stream in each direction, and the requests in flight on it.
pub(super) struct Link {
    server: ServerName,
    outbox: Outbox,
    requests: Mutex<Requests>,
    next_id: AtomicU64,
    /// Whether the other end is the home of the server, which says when it ends.
    is_of_home: bool,
    /// Why the process at its home has ended.
    gone: OnceLock<String>,
    message_limit: usize,
    /// Cancelled to close the link.
    close: CancellationToken,
    /// Cancelled when the link has ended for any reason.
    over: CancellationToken,
    inbound: Arc<InboundRouter>,
    /// The beginning of the first line that was no message, without secrets.
    no_message: OnceLock<String>,
}

#[derive(Debug, Default)]
struct Requests {
    waiting: HashMap<u64, Waiting>,
    /// The reason for the end of the link, once it has ended.
    ended: Option<String>,
}

type Waiting = oneshot::Sender<Result<ServerReply, CallError>>;

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Link {
    /// Creates a link that writes to `outbox`. One task must run [`Link::read`].
    pub(super) fn new(
        server: ServerName,
        outbox: Outbox,
        message_limit: usize,
        inbound: Arc<InboundRouter>,
    ) -> Arc<Self> {
        Self::with(server, outbox, message_limit, inbound, None)
    }

    /// A link to a process that runs at one of several replicas. Its requests have ids from `first` on.
    pub(super) fn of_home(
        server: ServerName,
        outbox: Outbox,
        message_limit: usize,
        inbound: Arc<InboundRouter>,
        first: u64,
    ) -> Arc<Self> {
        Self::with(server, outbox, message_limit, inbound, Some(first))
    }

    fn with(
        server: ServerName,
        outbox: Outbox,
        message_limit: usize,
        inbound: Arc<InboundRouter>,
        first: Option<u64>,
    ) -> Arc<Self> {
        let close = CancellationToken::new();
        Arc::new(Self {
            server,
            outbox,
            requests: Mutex::default(),
            next_id: AtomicU64::new(first.unwrap_or(1)),
            is_of_home: first.is_some(),
            gone: OnceLock::new(),
            message_limit,
            over: close.child_token(),
            close,
            inbound,
            no_message: OnceLock::new(),
        })
    }

    /// Whether the link has ended.
    pub(super) fn is_ended(&self) -> bool {
        self.requests().ended.is_some()
    }

    /// The beginning of the first line that was no message, without secrets.
    pub(super) fn no_message(&self) -> Option<&str> {
        self.no_message.get().map(String::as_str)
    }

    /// Logs a line that is not a message. A program that prints text has many, so only the first one is a warning, with its text.
    fn unreadable(&self, line: &[u8], malformed: &Malformed) {
        let is_first = self.no_message.get().is_none();
        let text = self.no_message.get_or_init(|| beginning(line));
        match is_first {
            true => {
                tracing::warn!(server = %self.server, %malformed, %text, "an unreadable message: stdout is for messages alone");
            }
            false => tracing::debug!(server = %self.server, %malformed, "an unreadable message"),
        }
    }

    /// Closes the link; requests in flight fail.
    pub(super) fn close(&self) {
        self.close.cancel();
    }

    /// Resolves when the link is to be closed.
    pub(super) async fn close_requested(&self) {
        self.close.cancelled().await;
    }

    /// Why the process at its home has ended, if it has said that.
    pub(super) fn gone(&self) -> Option<&str> {
        self.gone.get().map(String::as_str)
    }

    /// Resolves when the link has ended.
    pub(super) async fn ended(&self) {
        self.over.cancelled().await;
    }

    /// Sends a request and waits for the response, for at most `limit`. Dropping the future cancels the request.
    pub(super) async fn request(
        self: &Arc<Self>,
        method: &str,
        params: impl FnOnce(u64) -> Frame,
        limit: Duration,
        host: Option<Arc<dyn Host>>,
    ) -> Result<ServerReply, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        {
            let mut requests = self.requests();
            if let Some(reason) = &requests.ended {
                return Err(self.lost(reason, false));
            }
            requests.waiting.insert(id, answer);
        }
        let _under_way = self.inbound.begin(id, host);
        let mut unanswered = Unanswered {
            link: self,
            id,
            reason: Some("the caller cancelled it"),
        };
        let exchange = async {
            let frame = Frame::request(id, method, params(id));
            telemetry::frame(
                Some(&self.server),
                "sent",
                &[&frame.head, &frame.body, &frame.tail],
            );
            let sent = self.outbox.send(frame).await;
            let answer = answered
                .await
                .unwrap_or_else(|_| Err(self.lost("the connection was closed", true)));
            match answer {
                // The request was never sent, which `end` cannot know.
                Err(CallError::Lost { reason, .. }) if sent.is_err() => {
                    Err(self.lost(&reason, false))
                }
                answer => answer,
            }
        };
        let outcome = self.inbound.within(id, limit, exchange).await;
        unanswered.reason = outcome.is_none().then_some("it took too long");
        outcome.unwrap_or_else(|| {
            Err(CallError::Timeout {
                server: self.server.clone(),
                limit,
            })
        })
    }

    /// Sends a notification without parameters.
    pub(super) fn notify(&self, method: &str) {
        // If the peer is gone, the next request reports it.
        let _ = self.outbox.push(Frame::from(format!(
            r#"{{"jsonrpc":"2.0","method":"{method}"}}"#
        )));
    }

    /// Reads messages until the stream ends.
    ///
    /// # Errors
    /// The reason why reading failed.
    pub(super) async fn read(
        &self,
        lines: &mut LineReader<impl AsyncRead + Unpin>,
    ) -> std::io::Result<()> {
        loop {
            // Many lines may be there at once, and the task must give way to others between them: before the next one is taken, since it
            // would be lost if this is dropped.
            coop::consume_budget().await;
            match lines.next().await? {
                Some(Line::Message(line)) => self.receive(line).await,
                Some(Line::TooLong { length, id }) => self.too_long(length, id.as_ref()),
                None => return Ok(()),
            }
        }
    }

    /// Fails every request, in flight and future, with `reason`.
    pub(super) fn end(&self, reason: &str) {
        let waiting = {
            let mut requests = self.requests();
            requests.ended.get_or_insert_with(|| reason.to_owned());
            std::mem::take(&mut requests.waiting)
        };
        self.outbox.close();
        self.over.cancel();
        for (_, request) in waiting {
            // The caller may have gone meanwhile.
            let _ = request.send(Err(self.lost(reason, true)));
        }
    }

    /// Fails the request whose response of `length` bytes was dropped, if the id is known.
    pub(super) fn too_long(&self, length: u64, id: Option<&RequestId>) {
        tracing::warn!(server = %self.server, length, "a message over the size limit was dropped");
        if let Some(id) = id.and_then(RequestId::as_integer) {
            let limit = self.message_limit;
            self.answer(
                id,
                Err(CallError::TooLarge {
                    server: self.server.clone(),
                    length,
                    limit,
                }),
            );
        }
    }

    /// Processes a message or a batch. For a large response, it waits until the client takes responses again, so that
    /// the server is not read from meanwhile.
    pub(super) async fn receive(&self, line: Bytes) {
        let response_outbox = self.dispatch_all(&line);
        drop(line);
        if let Some(response_outbox) = response_outbox.filter(Outbox::is_congested) {
            Box::pin(async move { response_outbox.relieved().await }).await;
        }
    }

    /// Processes a message or a batch; returns the client's queue if it was a large response.
    fn dispatch_all(&self, line: &Bytes) -> Option<Outbox> {
        telemetry::frame(Some(&self.server), "received", &[line]);
        if let Some((id, result)) = RawResult::of_response(line) {
            return self.answered(line.len(), id, ServerReply::Result(result));
        }
        match Envelope::parse(line) {
            Ok(Envelope::Single(message)) => return self.dispatch(line, message),
            Ok(Envelope::Batch(batch)) => {
                for raw in batch {
                    match Message::parse(raw) {
                        Ok(message) => _ = self.dispatch(line, message),
                        Err(malformed) => {
                            tracing::debug!(server = %self.server, %malformed, "in a batch");
                        }
                    }
                }
            }
            Err(malformed) => {
                self.unreadable(line, &malformed);
                // Programs print other text to stdout; only a line that was meant as a message can be a response.
                let was_message = memmem::find(line, b"\"jsonrpc\"").is_some();
                if let Some(id) = malformed
                    .id
                    .as_ref()
                    .filter(|_| was_message)
                    .and_then(|id| id.as_integer())
                {
                    let reason = malformed.reason;
                    self.answer(
                        id,
                        Err(CallError::Malformed {
                            server: self.server.clone(),
                            reason,
                        }),
                    );
                }
            }
        }
        None
    }

    fn dispatch(&self, line: &Bytes, message: Message<'_>) -> Option<Outbox> {
        match message {
            Message::Response { id, outcome } => {
                let reply = match outcome {
                    Outcome::Result(raw) => {
                        ServerReply::Result(line.slice_ref(raw.get().as_bytes()).into())
                    }
                    Outcome::Error(raw) => ServerReply::Error(line.slice_ref(raw.get().as_bytes())),
                };
                match id.and_then(|id| id.as_integer()) {
                    Some(id) => return self.answered(line.len(), id, reply),
                    None => {
                        tracing::debug!(server = %self.server, "an answer without a matching request");
                    }
                }
            }
            Message::Request(request) => {
                let outbox = self.outbox.clone();
                // A server that keeps asking without reading would otherwise fill the memory with responses.
                self.inbound.asked(&request, None, move |frame| {
                    outbox.push_unless_congested(frame);
                });
            }
            Message::Notification { method, params } => match &*method {
                // Requests from now on find another connection.
                home::LEAVING if self.is_of_home => {
                    let mut requests = self.requests();
                    requests.ended.get_or_insert_with(|| home::LEFT.to_owned());
                }
                home::UNSENT if self.is_of_home => {
                    let params = params.and_then(|params| Object::parse(params).ok());
                    let id = params.and_then(|params| RequestId::parse(params.get("requestId")?));
                    if let Some(id) = id.and_then(|id| id.as_integer()) {
                        self.answer(id, Err(self.lost(home::LEFT, false)));
                    }
                }
                home::GONE if self.is_of_home => {
                    let params = params.and_then(|params| Object::parse(params).ok());
                    let reason = params.and_then(|params| params.text("reason"));
                    self.gone.get_or_init(|| reason.unwrap_or_default());
                }
                _ => self.inbound.notified(&method, params, None),
            },
        }
        None
    }

    /// Passes `reply`, which came in a message of `size` bytes, to the caller; returns the client's queue if it is large.
    fn answered(&self, size: usize, id: i64, reply: ServerReply) -> Option<Outbox> {
        let is_large = size >= LARGE;
        let request = u64::try_from(id).ok().filter(|_| is_large);
        let response_outbox = request.and_then(|id| self.inbound.response_outbox(id));
        self.answer(id, Ok(reply));
        response_outbox
    }

    /// Passes `reply` to the waiting caller. There is none if the response is late or a duplicate.
    pub(super) fn answer(&self, id: i64, reply: Result<ServerReply, CallError>) {
        let waiting = u64::try_from(id)
            .ok()
            .and_then(|id| self.requests().waiting.remove(&id));
        match waiting {
            // The caller may have gone meanwhile.
            Some(waiting) => drop(waiting.send(reply)),
            None => {
                tracing::debug!(server = %self.server, id, "an answer that no request waits for");
            }
        }
    }

    fn lost(&self, reason: &str, may_have_acted: bool) -> CallError {
        CallError::Lost {
            server: self.server.clone(),
            reason: reason.to_owned(),
            may_have_acted,
        }
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        // Each change is a single step, so the table is whole even where a panic would strike.
        self.requests.lock()
    }
}

impl Receiver for Link {
    fn read<R: AsyncRead + Unpin + Send>(
        &self,
        lines: &mut LineReader<R>,
    ) -> impl Future<Output = std::io::Result<()>> + Send {
        self.read(lines)
    }

    fn close_requested(&self) -> impl Future<Output = ()> + Send {
        self.close_requested()
    }

    fn end(&self, reason: &str) {
        self.end(reason);
    }
}

/// The beginning of a line on one line, without secrets.
fn beginning(line: &[u8]) -> String {
    let cut = &line[..line.len().min(4 * SHOWN)];
    let masked = match cut.len() == line.len() {
        true => telemetry::masked(&String::from_utf8_lossy(cut)).into_owned(),
        false => telemetry::masked_cut(&String::from_utf8_lossy(cut)),
    };
    let is_shown = |c: &char| !c.is_control() && !is_hidden(*c) && *c != '`';
    let shown: String = masked.chars().filter(is_shown).collect();
    match shown.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", shown[..end].trim()),
        None => shown.trim().to_owned(),
    }
}

/// Cancels the request on the server when dropped, unless there is a response.
struct Unanswered<'a> {
    link: &'a Link,
    id: u64,
    /// The reason for the server's log; `None` once there is a response.
    reason: Option<&'static str>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let was_waiting = self.link.requests().waiting.remove(&self.id).is_some();
        if let Some(reason) = self.reason.filter(|_| was_waiting) {
            let params = format!(r#"{{"requestId":{},"reason":"{reason}"}}"#, self.id);
            // If the server is gone, it needs no notification.
            let _ = self
                .link
                .outbox
                .push(Frame::notification("notifications/cancelled", &params));
        }
    }
}
