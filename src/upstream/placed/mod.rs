//! The process of a server that runs at one of several replicas, for all of them.
//!
//! Each pool that uses it has a connection: lines in both directions, as if it were alone. The ids of its requests are in a range of its
//! own, so that messages pass in their original bytes. The handshake happens once. A message of the server that belongs to no request goes to
//! all connections; a question goes to the one connection that has requests in flight, and is refused if several have.
//!
//! *Never*: changes a message; knows a client.

mod state;

use std::future::Future;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncRead;
use tokio::sync::Notify;
use tokio::task::coop;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::error::LastWords;
use super::home::{GONE, LEAVE, LEAVING};
use super::own::Streams;
use super::receiver::Receiver;
use super::transport::stdio::Process;
use super::{ConnectError, MESSAGE_LIMIT, ServerLog, UpstreamContext};
use crate::config::Stdio;
use crate::mcp::object::quoted;
use crate::mcp::{Envelope, ErrorCode, Frame, Line, LineReader, Message, Outbox, RequestId};
use crate::telemetry;
use crate::tool::ServerName;
use state::{BITS, Handshake, State, framed};

/// The most connections of one process, which its ids have room for.
const MOST: u64 = 1 << 20;

/// How long a process stays after its last connection has broken off: a replica that lost it comes again.
const LINGER: Duration = Duration::from_secs(60);

/// How long a connection may take no messages before it is given up.
const STALLED: Duration = Duration::from_secs(10);

/// The bytes of a connection that wait on their way.
const PIPE: usize = 256 * 1024;

/// Reads the end of a process's stderr.
type LastWordsOf = Box<dyn Fn() -> LastWords + Send + Sync>;

/// A running process and its connections.
pub(crate) struct Placed {
    server: ServerName,
    last_words: LastWordsOf,
    /// The reason of its end.
    failure: OnceLock<String>,
    started: Instant,
    to_server: Outbox,
    state: Mutex<State>,
    /// Notified when a connection has come or gone.
    changed: Notify,
    close: CancellationToken,
    /// Cancelled when no more messages pass.
    over: CancellationToken,
    /// Cancelled when the process has ended.
    gone: CancellationToken,
}

impl std::fmt::Debug for Placed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Placed")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Placed {
    /// Starts the process, in which `most` calls run at the same time. It ends a while after its last connection.
    pub(super) async fn start(
        context: &Arc<UpstreamContext>,
        server: &ServerName,
        stdio: &Stdio,
        most: Option<usize>,
    ) -> Result<Arc<Self>, ConnectError> {
        let prepared = context.prepare(server, stdio).await?;
        let log = ServerLog::open(context.log_directory.as_deref(), server);
        let (process, stdin, stdout) = Process::start(server, &prepared, context, log)?;
        let (stderr, around) = (process.stderr().clone(), context.clone());
        let own = context.of_child(&prepared.stdio);
        let last_words = Box::new(move || stderr.last_words(&around.variables, &own));
        let placed = Self::new(server.clone(), most, last_words);
        let outbox = placed.to_server.clone();
        process.attend((stdin, stdout), outbox, placed.clone(), &context.tasks);
        let stop = context.tasks.stop().clone();
        let watched = placed.clone().close_when_unused();
        context.tasks.spawn(stop.run_until_cancelled_owned(watched));
        tracing::info!(%server, "it runs at this replica for all of them");
        Ok(placed)
    }

    fn new(server: ServerName, most: Option<usize>, last_words: LastWordsOf) -> Arc<Self> {
        let (close, to_server) = (CancellationToken::new(), Outbox::new());
        Arc::new(Self {
            server,
            last_words,
            failure: OnceLock::new(),
            started: Instant::now(),
            state: Mutex::new(State::new(to_server.clone(), most)),
            to_server,
            changed: Notify::new(),
            over: close.child_token(),
            close,
            gone: CancellationToken::new(),
        })
    }

    /// The time since its start.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// The reason of its end; `None` as long as it runs.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Ends the process.
    pub(crate) fn close(&self) {
        self.close.cancel();
    }

    /// Whether the process has ended, or is about to.
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_cancelled() || self.state.lock().is_over
    }

    /// Whether it ends because it has no connection, or because another era needs another process.
    pub(crate) fn is_unneeded(&self) -> bool {
        self.state.lock().is_unneeded
    }

    /// Whether it has answered anything but a handshake.
    pub(crate) fn has_answered(&self) -> bool {
        self.state.lock().has_answered
    }

    /// Resolves when the process has ended.
    pub(crate) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Takes no more requests: those that come all the same go back unsent, so that they are sent to the process at another replica.
    pub(crate) fn leave(&self) {
        let mut state = self.state.lock();
        state.is_leaving = true;
        for outbox in state.connections.values() {
            // A connection that has ended sends nothing.
            let _ = outbox.push(Frame::notification(LEAVING, "{}"));
        }
    }

    /// Resolves when no request is in flight.
    pub(crate) async fn idle(&self) {
        while !self.state.lock().requests.is_empty() && !self.is_over() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Opens a connection, which lasts until both streams are dropped. Returns the first id of its requests. `None` if the process ends.
    pub(crate) fn attach(self: &Arc<Self>, context: &UpstreamContext) -> Option<(Streams, u64)> {
        let outbox = Outbox::new();
        let number = {
            let mut state = self.state.lock();
            if state.is_over || state.is_leaving || state.next >= MOST {
                return None;
            }
            state.next += 1;
            let number = state.next;
            state.connections.insert(number, outbox.clone());
            number
        };
        self.changed.notify_waiters();
        let (near, far) = tokio::io::duplex(PIPE);
        let (input, output) = tokio::io::split(far);
        let tasks = &context.tasks;
        let (placed, stop) = (self.clone(), tasks.stop().clone());
        tasks.spawn(async move {
            let mut lines = LineReader::new(input, MESSAGE_LIMIT);
            let has_left = tokio::select! {
                has_left = placed.read_connection(number, &mut lines) => has_left,
                // It ends with the process, or when the other end is gone.
                _ = outbox.write_to(output) => false,
                () = stop.cancelled() => false,
            };
            placed.forget(number, has_left);
        });
        let (reader, writer) = tokio::io::split(near);
        Some(((Box::new(reader), Box::new(writer)), number << BITS))
    }

    /// Passes on what comes on a connection until it ends. Returns whether it did not break off.
    async fn read_connection(
        &self,
        number: u64,
        lines: &mut LineReader<impl AsyncRead + Unpin>,
    ) -> bool {
        loop {
            coop::consume_budget().await;
            match lines.next().await {
                Ok(Some(Line::Message(line))) => match Envelope::parse(&line) {
                    Ok(Envelope::Single(Message::Notification { method, .. }))
                        if method == LEAVE =>
                    {
                        return true;
                    }
                    Ok(Envelope::Single(message)) => {
                        let frame = self.state.lock().for_server(number, &line, message);
                        if let Some(frame) = frame {
                            // If the server is gone, the connection ends with it.
                            let _ = self.to_server.send(frame).await;
                        }
                    }
                    _ => {
                        tracing::debug!(server = %self.server, "an unreadable message of a replica");
                    }
                },
                Ok(Some(Line::TooLong { length, .. })) => {
                    tracing::debug!(server = %self.server, length, "a message of a replica is too long");
                }
                Ok(None) | Err(_) => return false,
            }
        }
    }

    /// Passes a message of the server on.
    async fn pass_on(&self, line: Bytes, message: Message<'_>) {
        let reply = match message {
            Message::Response { id, outcome } => {
                let id = id.and_then(|id| u64::try_from(id.as_integer()?).ok());
                let outbox = id.and_then(|id| self.state.lock().answered(id, &line, &outcome));
                if let Some(outbox) = outbox
                    && timeout(STALLED, outbox.send(framed(line))).await.is_err()
                {
                    tracing::warn!(server = %self.server, "a replica takes no answers: its connection ends");
                    outbox.abandon();
                }
                None
            }
            Message::Request(request) => self.state.lock().question(&request, line.clone()),
            Message::Notification { method, params } => {
                self.state.lock().notified(&method, params, &line);
                None
            }
        };
        if let Some(reply) = reply {
            // A server that asks without reading would otherwise fill the memory.
            self.to_server.push_unless_congested(reply);
        }
    }

    async fn receive(&self, line: Bytes) {
        telemetry::frame(Some(&self.server), "received", &[&line]);
        match Envelope::parse(&line) {
            Ok(Envelope::Single(message)) => self.pass_on(line.clone(), message).await,
            Ok(Envelope::Batch(batch)) => {
                for raw in batch {
                    if let Ok(message) = Message::parse(raw) {
                        let own = line.slice_ref(raw.get().as_bytes());
                        self.pass_on(own, message).await;
                    }
                }
            }
            Err(malformed) => {
                tracing::warn!(server = %self.server, %malformed, "an unreadable message");
                if let Some(id) = &malformed.id {
                    self.failed(id, &format!("its answer cannot be read: {malformed}"));
                }
            }
        }
    }

    /// Answers a request whose answer of the server cannot be passed on.
    fn failed(&self, id: &RequestId, reason: &str) {
        let mut state = self.state.lock();
        let Some(number) = id.as_integer().and_then(|id| u64::try_from(id).ok()) else {
            return;
        };
        state.end(number);
        let failure = Frame::error(Some(id), ErrorCode::INTERNAL, reason, None);
        state.pass(number >> BITS, failure);
    }

    /// Removes a connection; its requests are cancelled, and the questions to it answered.
    fn forget(&self, number: u64, has_left: bool) {
        {
            let mut state = self.state.lock();
            if let Some(outbox) = state.connections.remove(&number) {
                outbox.close();
            }
            state.has_left = has_left;
            state.forget(number);
        }
        self.changed.notify_waiters();
    }

    /// Ends the process some time after its last connection.
    async fn close_when_unused(self: Arc<Self>) {
        loop {
            let changed = self.changed.notified();
            let patience = {
                let mut state = self.state.lock();
                let has_answered =
                    matches!(state.handshake, Handshake::Done(_)) || state.has_answered;
                match state.connections.is_empty() {
                    false => None,
                    true if state.has_left || (state.next > 0 && !has_answered) => {
                        return self.close_unneeded(&mut state);
                    }
                    true => Some(LINGER),
                }
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(patience.unwrap_or(LINGER)), if patience.is_some() => {
                    let mut state = self.state.lock();
                    if state.connections.is_empty() {
                        return self.close_unneeded(&mut state);
                    }
                }
                () = self.over.cancelled() => return,
            }
        }
    }
}

impl Placed {
    fn close_unneeded(&self, state: &mut State) {
        (state.is_over, state.is_unneeded) = (true, true);
        self.close();
    }
}

impl Receiver for Placed {
    async fn read<R: AsyncRead + Unpin + Send>(&self, lines: &mut LineReader<R>) -> io::Result<()> {
        loop {
            coop::consume_budget().await;
            match lines.next().await? {
                Some(Line::Message(line)) => self.receive(line).await,
                Some(Line::TooLong { length, id }) => {
                    tracing::warn!(server = %self.server, length, "a message over the size limit was dropped");
                    if let Some(id) = id {
                        self.failed(&id, &format!("its answer has {length} bytes, more than the limit of {MESSAGE_LIMIT}"));
                    }
                }
                None => return Ok(()),
            }
        }
    }

    fn close_requested(&self) -> impl Future<Output = ()> + Send {
        self.close.cancelled()
    }

    fn end(&self, reason: &str) {
        tracing::info!(server = %self.server, reason, "its process for all replicas has ended");
        let (connections, has_begun) = {
            let mut state = self.state.lock();
            state.is_over = true;
            state.send_waiting_back();
            let has_begun = matches!(state.handshake, Handshake::Done(_)) || state.has_answered;
            (std::mem::take(&mut state.connections), has_begun)
        };
        let failure = self.failure.get_or_init(|| match has_begun {
            true => reason.to_owned(),
            false => format!("{reason}{}", (self.last_words)()),
        });
        self.to_server.close();
        self.over.cancel();
        let params = format!(r#"{{"reason":{}}}"#, quoted(failure));
        for outbox in connections.values() {
            // A connection that has ended has no requests.
            let _ = outbox.push(Frame::notification(GONE, &params));
            outbox.close();
        }
    }

    fn gone(&self) {
        self.gone.cancel();
    }
}
