//! Decides which connection gets a message of the process, what the process gets, and which calls wait for their turn.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::mcp::{ErrorCode, Frame, Message, Object, Outbox, Outcome, Request, RequestId};
use crate::upstream::home::{OWN, UNSENT};

/// The ids of one connection are those with its number above these bits. JavaScript has 53 bits for both.
pub(super) const BITS: u32 = 32;

/// The requests that `max_concurrent` is about.
const LIMITED: [&str; 4] = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "completion/complete",
];

/// The requests that open a connection.
const OPENING: [&str; 2] = ["initialize", "server/discover"];

/// The connections to a process, and what is in progress on them.
pub(super) struct State {
    to_server: Outbox,
    pub(super) connections: BTreeMap<u64, Outbox>,
    pub(super) next: u64,
    pub(super) handshake: Handshake,
    is_initialized: bool,
    /// Whether the server has answered anything but a handshake.
    pub(super) has_answered: bool,
    /// The requests in flight.
    pub(super) requests: HashSet<u64>,
    /// The calls among them, if the entry limits their number.
    turns: Option<Turns>,
    /// The server's open questions, with the connections that they were passed to.
    questions: HashMap<RequestId, u64>,
    /// The resources that connections have subscribed to.
    subscribed: HashMap<String, BTreeSet<u64>>,
    /// Whether the last connection that went did not break off.
    pub(super) has_left: bool,
    /// Whether it takes no more requests, because its replica is about to end.
    pub(super) is_leaving: bool,
    pub(super) is_over: bool,
    /// Whether it ends because it has no connection, or because another era needs another process.
    pub(super) is_unneeded: bool,
}

/// The handshake with the process.
#[derive(Default)]
pub(super) enum Handshake {
    #[default]
    None,
    /// The requests that wait for the answer; the first one was sent.
    Asked(Vec<(u64, RequestId)>),
    Done(Bytes),
}

/// The calls of all connections that run, of which there are only so many, and those that wait.
struct Turns {
    most: usize,
    running: HashSet<u64>,
    waiting: VecDeque<(u64, Frame)>,
}

impl Turns {
    /// The call, if it may begin now. Otherwise it waits.
    fn begin(&mut self, id: u64, call: Frame) -> Option<Frame> {
        if self.running.len() >= self.most {
            self.waiting.push_back((id, call));
            return None;
        }
        self.running.insert(id);
        Some(call)
    }

    fn is_waiting(&self, id: u64) -> bool {
        self.waiting.iter().any(|(waiting, _)| *waiting == id)
    }

    /// Takes a call out that waits. Returns whether it did.
    fn leave(&mut self, id: u64) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(waiting, _)| *waiting != id);
        self.waiting.len() < before
    }

    /// Ends a call, and returns the next one, which may begin now.
    fn end(&mut self, id: u64) -> Option<Frame> {
        if !self.running.remove(&id) {
            return None;
        }
        let (next, call) = self.waiting.pop_front()?;
        self.running.insert(next);
        Some(call)
    }
}

impl State {
    /// Nothing is in progress. Of calls, `most` run at the same time.
    pub(super) fn new(to_server: Outbox, most: Option<usize>) -> Self {
        let turns = |most| Turns {
            most,
            running: HashSet::new(),
            waiting: VecDeque::new(),
        };
        Self {
            to_server,
            connections: BTreeMap::new(),
            next: 0,
            handshake: Handshake::default(),
            is_initialized: false,
            has_answered: false,
            requests: HashSet::new(),
            turns: most.map(turns),
            questions: HashMap::new(),
            subscribed: HashMap::new(),
            has_left: false,
            is_leaving: false,
            is_over: false,
            is_unneeded: false,
        }
    }

    /// A message of a connection as the server gets it; `None` if it is answered here, or waits.
    pub(super) fn for_server(
        &mut self,
        number: u64,
        line: &Bytes,
        message: Message<'_>,
    ) -> Option<Frame> {
        let whole = || Some(framed(line.clone()));
        match message {
            Message::Request(request) => {
                let Some(id) = own_id(number, &request.id) else {
                    let (code, reason) =
                        (ErrorCode::INVALID_REQUEST, "the id is of another replica");
                    self.pass(number, Frame::error(Some(&request.id), code, reason, None));
                    return None;
                };
                if self.is_leaving && !OPENING.contains(&&*request.method) {
                    self.send_back(number, id);
                    return None;
                }
                match (&*request.method, uri_of(request.params)) {
                    ("initialize", _) => {
                        return self.asked_for_handshake(number, request.id, whole);
                    }
                    ("resources/subscribe", Some(uri)) => {
                        self.subscribed.entry(uri).or_default().insert(number);
                    }
                    ("resources/unsubscribe", Some(uri)) if self.is_left_by(number, &uri) => {
                        let done = Frame::result(&request.id, "", Bytes::from_static(b"{}"));
                        self.pass(number, done);
                        return None;
                    }
                    _ => {}
                }
                // It stays open for as long as its connection.
                if request.method != "subscriptions/listen" {
                    self.requests.insert(id);
                }
                match &mut self.turns {
                    Some(turns) if LIMITED.contains(&&*request.method) => {
                        turns.begin(id, framed(line.clone()))
                    }
                    _ => whole(),
                }
            }
            Message::Notification { method, params } => match &*method {
                "notifications/initialized" => {
                    let was_before = std::mem::replace(&mut self.is_initialized, true);
                    (!was_before).then(|| framed(line.clone()))
                }
                // The server does not answer a request that is cancelled.
                "notifications/cancelled" => {
                    let id = Object::parse(params?).ok()?.get("requestId")?;
                    let id = own_id(number, &RequestId::parse(id)?)?;
                    let has_waited = self.turns.as_mut().is_some_and(|turns| turns.leave(id));
                    self.end(id);
                    (!has_waited).then(|| framed(line.clone()))
                }
                _ => whole(),
            },
            Message::Response { id, .. } => {
                let id = id?;
                let is_theirs = self.questions.get(&id) == Some(&number);
                is_theirs.then(|| self.questions.remove(&id));
                is_theirs.then(|| framed(line.clone()))
            }
        }
    }

    /// A request is not in flight any more; a call that waits may begin.
    pub(super) fn end(&mut self, id: u64) {
        self.requests.remove(&id);
        if let Some(next) = self.turns.as_mut().and_then(|turns| turns.end(id)) {
            // If the server is gone, its requests end with it.
            let _ = self.to_server.push(next);
        }
    }

    /// Tells a connection that its request was not sent to the server.
    fn send_back(&self, number: u64, id: u64) {
        if let Some(outbox) = self.connections.get(&number) {
            let params = format!(r#"{{"requestId":{id}}}"#);
            // A connection that has ended has no requests.
            let _ = outbox.push(Frame::notification(UNSENT, &params));
        }
    }

    /// Sends the calls back that wait: the process ends.
    pub(super) fn send_waiting_back(&mut self) {
        let waiting = self
            .turns
            .as_mut()
            .map(|turns| std::mem::take(&mut turns.waiting));
        for (id, _) in waiting.into_iter().flatten() {
            self.requests.remove(&id);
            self.send_back(id >> BITS, id);
        }
    }

    pub(super) fn pass(&self, number: u64, frame: Frame) {
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
    pub(super) fn answered(
        &mut self,
        id: u64,
        line: &Bytes,
        outcome: &Outcome<'_>,
    ) -> Option<Outbox> {
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
            self.end(id);
            self.has_answered = true;
        }
        self.connections.get(&(id >> BITS)).cloned()
    }

    /// The connections that a message of the server may concern which belongs to no request: those with requests in flight, or all.
    fn concerned(&self) -> Vec<u64> {
        let turns = self.turns.as_ref();
        let waits = |id: u64| turns.is_some_and(|turns| turns.is_waiting(id));
        let busy = self.requests.iter().filter(|id| !waits(**id));
        let busy: BTreeSet<u64> = busy.map(|id| id >> BITS).collect();
        match busy.is_empty() {
            true => self.connections.keys().copied().collect(),
            false => busy.into_iter().collect(),
        }
    }

    /// Passes a question on; an answer if none can be asked.
    pub(super) fn question(&mut self, request: &Request<'_>, line: Bytes) -> Option<Frame> {
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

    pub(super) fn notified(&mut self, method: &str, params: Option<&RawValue>, line: &Bytes) {
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
            // Those of mcpzip itself are no server's.
            method if method.starts_with(OWN) => {}
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

    /// Removes what a connection has left, and tells the server.
    pub(super) fn forget(&mut self, number: u64) {
        let of_theirs = |id: &u64| id >> BITS == number;
        if let Some(turns) = &mut self.turns {
            let waiting = turns.waiting.iter().map(|(id, _)| *id).filter(of_theirs);
            for id in waiting.collect::<Vec<_>>() {
                turns.leave(id);
                self.requests.remove(&id);
            }
        }
        let mut frames = Vec::new();
        let theirs = self.requests.iter().copied().filter(of_theirs);
        for id in theirs.collect::<Vec<_>>() {
            let params = format!(r#"{{"requestId":{id},"reason":"its replica has gone"}}"#);
            frames.push(Frame::notification("notifications/cancelled", &params));
            self.end(id);
        }
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
        for frame in frames {
            // If the server is gone, it needs no notification.
            let _ = self.to_server.push(frame);
        }
    }
}

/// A message in its original bytes.
pub(super) fn framed(body: Bytes) -> Frame {
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
