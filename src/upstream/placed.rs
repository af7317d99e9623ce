//! The process of a server that runs at one of several replicas, for all of them.
//!
//! Each pool that uses it has a connection: lines in both directions, as if it were alone. The ids of its requests are in a range of its
//! own, so that messages pass in their original bytes. The handshake happens once. A message of the server that belongs to no request goes to
//! all connections; a question goes to the one connection that has requests in flight, and is refused if several have.
//!
//! *Never*: changes a message; knows a client.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::io::AsyncRead;
use tokio::sync::Notify;
use tokio::task::coop;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::home::LEAVE;
use super::own::Streams;
use super::receiver::Receiver;
use super::transport::stdio::Process;
use super::{ConnectError, MESSAGE_LIMIT, ServerLog, UpstreamContext};
use crate::config::Stdio;
use crate::mcp::{
    Envelope, ErrorCode, Frame, Line, LineReader, Message, Object, Outbox, Outcome, Request,
    RequestId,
};
use crate::telemetry;
use crate::tool::ServerName;

/// The ids of one connection are those with its number above these bits. JavaScript has 53 bits for both.
const BITS: u32 = 32;
const MOST: u64 = 1 << 20;

/// How long a process stays after its last connection has broken off: a replica that lost it comes again.
const LINGER: Duration = Duration::from_secs(60);

/// How long a connection may take no messages before it is given up.
const STALLED: Duration = Duration::from_secs(10);

/// The bytes of a connection that wait on their way.
const PIPE: usize = 256 * 1024;

/// A running process and its connections.
pub(crate) struct Placed {
    server: ServerName,
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

#[derive(Default)]
struct State {
    connections: BTreeMap<u64, Outbox>,
    next: u64,
    handshake: Handshake,
    is_initialized: bool,
    /// Whether the server has answered anything but a handshake.
    has_answered: bool,
    /// The requests in flight.
    requests: HashSet<u64>,
    /// The server's open questions, with the connections that they were passed to.
    questions: HashMap<RequestId, u64>,
    /// The resources that connections have subscribed to.
    subscribed: HashMap<String, BTreeSet<u64>>,
    /// Whether the last connection that went did not break off.
    has_left: bool,
    is_over: bool,
    /// Whether it ends because it has no connection, or because another era needs another process.
    is_unneeded: bool,
}

#[derive(Default)]
enum Handshake {
    #[default]
    None,
    /// The requests that wait for the answer; the first one was sent.
    Asked(Vec<(u64, RequestId)>),
    Done(Bytes),
}

impl std::fmt::Debug for Placed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Placed")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Placed {
    /// Starts the process. It ends a while after its last connection.
    pub(super) async fn start(
        context: &Arc<UpstreamContext>,
        server: &ServerName,
        stdio: &Stdio,
    ) -> Result<Arc<Self>, ConnectError> {
        let prepared = context.prepare(server, stdio).await?;
        let log = ServerLog::open(context.log_directory.as_deref(), server);
        let (process, stdin, stdout) = Process::start(server, &prepared, context, log)?;
        let placed = Self::new(server.clone());
        let outbox = placed.to_server.clone();
        process.attend((stdin, stdout), outbox, placed.clone(), &context.tasks);
        let stop = context.tasks.stop().clone();
        let watched = placed.clone().close_when_unused();
        context.tasks.spawn(stop.run_until_cancelled_owned(watched));
        tracing::info!(%server, "it runs at this replica for all of them");
        Ok(placed)
    }

    fn new(server: ServerName) -> Arc<Self> {
        let close = CancellationToken::new();
        Arc::new(Self {
            server,
            started: Instant::now(),
            to_server: Outbox::new(),
            state: Mutex::default(),
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

    /// Resolves when the process has ended.
    pub(crate) async fn gone(&self) {
        self.gone.cancelled().await;
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
            if state.is_over || state.next >= MOST {
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
            placed.forget(number, has_left).await;
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
                        if let Some(frame) = self.for_server(number, &line, message) {
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

    /// A message of a connection as the server gets it; `None` if it is answered here.
    fn for_server(&self, number: u64, line: &Bytes, message: Message<'_>) -> Option<Frame> {
        let whole = || Some(framed(line.clone()));
        let mut state = self.state.lock();
        match message {
            Message::Request(request) => {
                let Some(id) = own_id(number, &request.id) else {
                    let (code, reason) =
                        (ErrorCode::INVALID_REQUEST, "the id is of another replica");
                    state.pass(number, Frame::error(Some(&request.id), code, reason, None));
                    return None;
                };
                match (&*request.method, uri_of(request.params)) {
                    ("initialize", _) => {
                        return state.asked_for_handshake(number, request.id, whole);
                    }
                    ("resources/subscribe", Some(uri)) => {
                        state.subscribed.entry(uri).or_default().insert(number);
                    }
                    ("resources/unsubscribe", Some(uri)) if state.is_left_by(number, &uri) => {
                        let done = Frame::result(&request.id, "", Bytes::from_static(b"{}"));
                        state.pass(number, done);
                        return None;
                    }
                    _ => {}
                }
                // It stays open for as long as its connection.
                if request.method != "subscriptions/listen" {
                    state.requests.insert(id);
                }
                whole()
            }
            Message::Notification { method, .. } => {
                let mut is_first = || !std::mem::replace(&mut state.is_initialized, true);
                (method != "notifications/initialized" || is_first()).then(|| framed(line.clone()))
            }
            Message::Response { id, .. } => {
                let id = id?;
                let is_theirs = state.questions.get(&id) == Some(&number);
                is_theirs.then(|| state.questions.remove(&id));
                is_theirs.then(|| framed(line.clone()))
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
        state.requests.remove(&number);
        let failure = Frame::error(Some(id), ErrorCode::INTERNAL, reason, None);
        state.pass(number >> BITS, failure);
    }

    /// Removes a connection; its requests are cancelled, and the questions to it answered.
    async fn forget(&self, number: u64, has_left: bool) {
        let frames = {
            let mut state = self.state.lock();
            if let Some(outbox) = state.connections.remove(&number) {
                outbox.close();
            }
            state.has_left = has_left;
            state.forget(number)
        };
        self.changed.notify_waiters();
        for frame in frames {
            // If the server is gone, it needs no notification.
            let _ = self.to_server.push(frame);
        }
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

impl State {
    fn pass(&self, number: u64, frame: Frame) {
        if let Some(outbox) = self.connections.get(&number) {
            outbox.push_unless_congested(frame);
        }
    }

    /// Removes a connection from the users of a resource. Returns whether others have subscribed to it, which must not lose it.
    fn is_left_by(&mut self, number: u64, uri: &str) -> bool {
        let Some(users) = self.subscribed.get_mut(uri) else {
            return false;
        };
        users.remove(&number);
        let has_others = !users.is_empty();
        if !has_others {
            self.subscribed.remove(uri);
        }
        has_others
    }

    /// The handshake happens once; later connections get its result.
    fn asked_for_handshake(
        &mut self,
        number: u64,
        id: RequestId,
        whole: impl FnOnce() -> Option<Frame>,
    ) -> Option<Frame> {
        match &mut self.handshake {
            Handshake::Done(result) => {
                let result = Frame::result(&id, "", result.clone());
                self.pass(number, result);
                None
            }
            Handshake::Asked(waiting) => {
                waiting.push((number, id));
                None
            }
            Handshake::None => {
                self.handshake = Handshake::Asked(vec![(number, id)]);
                whole()
            }
        }
    }

    /// The connection that gets an answer of the server.
    fn answered(&mut self, id: u64, line: &Bytes, outcome: &Outcome<'_>) -> Option<Outbox> {
        let is_handshake = |(_, asked): &(u64, RequestId)| {
            asked
                .as_integer()
                .and_then(|asked| u64::try_from(asked).ok())
                == Some(id)
        };
        if let Handshake::Asked(waiting) = &mut self.handshake
            && waiting.first().is_some_and(is_handshake)
        {
            let waiting = std::mem::take(waiting);
            self.handshake = Handshake::None;
            for (number, asked) in waiting.iter().skip(1) {
                let frame = match outcome {
                    Outcome::Result(raw) => {
                        let result = line.slice_ref(raw.get().as_bytes());
                        Frame::result(asked, "", result)
                    }
                    Outcome::Error(raw) => {
                        Frame::relayed_error(asked, line.slice_ref(raw.get().as_bytes()))
                    }
                };
                self.pass(*number, frame);
            }
            match outcome {
                Outcome::Result(raw) => {
                    let result = Bytes::copy_from_slice(raw.get().as_bytes());
                    self.handshake = Handshake::Done(result);
                }
                // The process may be bound to this era, so the next connection gets another one.
                Outcome::Error(_) if !self.has_answered => {
                    (self.is_over, self.is_unneeded) = (true, true);
                }
                Outcome::Error(_) => {}
            }
        } else {
            self.requests.remove(&id);
            self.has_answered = true;
        }
        self.connections.get(&(id >> BITS)).cloned()
    }

    /// The connections that a message of the server may concern which belongs to no request: those with requests in flight, or all.
    fn concerned(&self) -> Vec<u64> {
        let busy: BTreeSet<u64> = self.requests.iter().map(|id| id >> BITS).collect();
        match busy.is_empty() {
            true => self.connections.keys().copied().collect(),
            false => busy.into_iter().collect(),
        }
    }

    /// Passes a question on; an answer if none can be asked.
    fn question(&mut self, request: &Request<'_>, line: Bytes) -> Option<Frame> {
        if request.method == "ping" {
            return Some(Frame::result(&request.id, "", Bytes::from_static(b"{}")));
        }
        let refuse = |code, message| Some(Frame::error(Some(&request.id), code, message, None));
        match self.concerned()[..] {
            [number] if self.connections.contains_key(&number) => {
                self.questions.insert(request.id.clone(), number);
                self.pass(number, framed(line));
                None
            }
            [] | [_] => refuse(
                ErrorCode::METHOD_NOT_FOUND,
                "no client is there that could be asked",
            ),
            _ => refuse(
                ErrorCode::INVALID_REQUEST,
                "clients of several replicas have requests in progress, so it is unknown which of them to ask",
            ),
        }
    }

    fn notified(&mut self, method: &str, params: Option<&RawValue>, line: &Bytes) {
        let member = |key| Object::parse(params?).ok()?.get(key);
        let frame = || framed(line.clone());
        match method {
            "notifications/progress" => {
                let token = member("progressToken").and_then(|raw| raw.get().parse::<u64>().ok());
                if let Some(outbox) = token.and_then(|id| self.connections.get(&(id >> BITS))) {
                    outbox.offer(frame());
                }
            }
            "notifications/cancelled" => {
                let id = member("requestId").and_then(RequestId::parse);
                if let Some(number) = id.and_then(|id| self.questions.remove(&id)) {
                    self.pass(number, frame());
                }
            }
            // These change nothing of a client's own, so all may know.
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated"
            | "notifications/tasks"
            | "notifications/elicitation/complete" => {
                for outbox in self.connections.values() {
                    outbox.push_unless_congested(frame());
                }
            }
            _ => match self.concerned()[..] {
                [number] => self.pass(number, frame()),
                _ if self.requests.is_empty() => {
                    for outbox in self.connections.values() {
                        outbox.offer(frame());
                    }
                }
                // It may contain data that only one of these clients may see.
                _ => tracing::debug!(
                    method,
                    "a message of several replicas' requests goes to none"
                ),
            },
        }
    }

    /// Removes what a connection has left; what the server has to know.
    fn forget(&mut self, number: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        self.requests.retain(|id| {
            let is_theirs = id >> BITS == number;
            if is_theirs {
                let params = format!(r#"{{"requestId":{id},"reason":"its replica has gone"}}"#);
                frames.push(Frame::notification("notifications/cancelled", &params));
            }
            !is_theirs
        });
        self.questions.retain(|id, asked| {
            if *asked == number {
                let code = ErrorCode::INTERNAL;
                let reason = "the client that was asked has gone";
                frames.push(Frame::error(Some(id), code, reason, None));
            }
            *asked != number
        });
        self.subscribed.retain(|_, users| {
            users.remove(&number);
            !users.is_empty()
        });
        frames
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
        let connections = {
            let mut state = self.state.lock();
            state.is_over = true;
            std::mem::take(&mut state.connections)
        };
        self.to_server.close();
        self.over.cancel();
        connections.values().for_each(Outbox::close);
    }

    fn gone(&self) {
        self.gone.cancel();
    }
}

/// A message in its original bytes.
fn framed(body: Bytes) -> Frame {
    Frame {
        body,
        ..Frame::default()
    }
}

/// The id of a request, if it is in the range of its connection.
fn own_id(number: u64, id: &RequestId) -> Option<u64> {
    let id = u64::try_from(id.as_integer()?).ok()?;
    (id >> BITS == number).then_some(id)
}

fn uri_of(params: Option<&RawValue>) -> Option<String> {
    Object::parse(params?).ok()?.text("uri")
}
