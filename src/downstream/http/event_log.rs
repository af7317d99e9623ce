//! The latest events of a session's streams, kept for a client that lost its connection and resumes the stream
//! (2025-11-25, basic/transports, "Resumability and Redelivery").
//!
//! A log belongs to one session, and stream numbers are unique in the process, so an event id leads to its own stream
//! or to none. A stream can be resumed only if every event after the id is kept.

use std::collections::{HashMap, VecDeque};
use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::event::{EventId, NamedEventId, StreamLabel, event, priming_event};
use super::keeping::AnswerKeeper;
use crate::mcp::budget::Reservation;
use crate::mcp::{ByteBudget, Frame, Outbox, RequestId};
use crate::shutdown::Tasks;

/// The maximum number of events kept for a session.
const MOST_EVENTS: usize = 256;
/// The maximum size of a session's kept events in bytes; a larger event is not kept.
const MOST_BYTES: usize = 1024 * 1024;

/// The time for which a stream without a connection takes messages.
const DETACHED_TIME: Duration = Duration::from_secs(10 * 60);

/// The number of the next stream of any session.
static NEXT_STREAM: AtomicU64 = AtomicU64::new(1);

/// The event log of one session.
#[derive(Debug)]
pub(super) struct EventLog {
    /// The byte budget that all sessions share.
    budget: ByteBudget,
    tasks: Tasks,
    state: Mutex<State>,
    /// Keeps answers for other replicas, if there are several.
    keeper: Option<AnswerKeeper>,
}

#[derive(Debug, Default)]
struct State {
    /// The events, oldest first.
    events: VecDeque<Event>,
    bytes: usize,
    streams: HashMap<u64, LoggedStream>,
}

#[derive(Debug)]
struct Event {
    id: EventId,
    pieces: VecDeque<Bytes>,
    size: usize,
    _reservation: Reservation,
}

#[derive(Debug)]
struct LoggedStream {
    kind: StreamKind,
    /// The facts in the ids of its events, if there are several replicas.
    label: Option<StreamLabel>,
    outbox: Outbox,
    /// Cancelled when another connection takes over the stream.
    replaced: CancellationToken,
    /// The number of its last event.
    last: u64,
    /// The number of its last event that was not kept.
    lost: u64,
    kept: usize,
    has_ended: bool,
}

/// The two kinds of streams that can be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// The response to a POST.
    Response,
    /// The server's own messages; a session has one such stream.
    Listening,
}

/// The only reader of a stream's messages: one connection, or a task.
#[derive(Debug, Clone)]
pub(super) struct EventReader {
    log: Arc<EventLog>,
    stream: u64,
    outbox: Outbox,
    replaced: CancellationToken,
}

impl EventLog {
    /// Creates an empty log, whose events take part of `budget`.
    pub(super) fn new(budget: ByteBudget, tasks: Tasks, keeper: Option<AnswerKeeper>) -> Self {
        Self {
            budget,
            tasks,
            state: Mutex::default(),
            keeper,
        }
    }

    /// Starts to log the messages of `outbox`, with the answer to `request`. A new listening stream replaces the previous one.
    pub(super) fn open(
        self: &Arc<Self>,
        kind: StreamKind,
        request: Option<&RequestId>,
        outbox: Outbox,
    ) -> EventReader {
        let replica = self.keeper.as_ref().map(AnswerKeeper::replica);
        let stream = NEXT_STREAM.fetch_add(1, Ordering::Relaxed);
        let replaced = CancellationToken::new();
        let logged = LoggedStream {
            kind,
            label: replica.map(|replica| StreamLabel::new(replica, request)),
            outbox: outbox.clone(),
            replaced: replaced.clone(),
            last: 0,
            lost: 0,
            kept: 0,
            has_ended: false,
        };
        let mut state = self.state();
        if kind == StreamKind::Listening {
            state
                .streams
                .retain(|_, stream| stream.kind != StreamKind::Listening);
        }
        state.streams.insert(stream, logged);
        drop(state);
        EventReader {
            log: self.clone(),
            stream,
            outbox,
            replaced,
        }
    }

    /// Resumes a stream after the event `id`: returns the events to send again, and a reader of later ones. `None` if
    /// the stream is unknown, or an event after `id` is not kept.
    pub(super) fn resume(self: &Arc<Self>, id: EventId) -> Option<(VecDeque<Bytes>, EventReader)> {
        let mut state = self.state();
        let stream = state.streams.get_mut(&id.stream)?;
        let is_over = stream.kind == StreamKind::Listening && !stream.outbox.is_open();
        if is_over || !(stream.lost..=stream.last).contains(&id.number) {
            return None;
        }
        stream.replaced.cancel();
        stream.replaced = CancellationToken::new();
        let reader = EventReader {
            log: self.clone(),
            stream: id.stream,
            outbox: stream.outbox.clone(),
            replaced: stream.replaced.clone(),
        };
        let pieces = state.behind(id).flat_map(|event| event.pieces.clone());
        let pieces = pieces.collect();
        Some((pieces, reader))
    }

    /// Ends a stream whose client continues with another one; returns the events after `id`. `None` as in [`EventLog::resume`].
    pub(super) fn take_over(self: &Arc<Self>, id: EventId) -> Option<VecDeque<Bytes>> {
        let (missed, reader) = self.resume(id)?;
        reader.end();
        Some(missed)
    }

    /// The kept events of a stream, with their numbers.
    fn kept_of(&self, stream: u64) -> Vec<(u64, Bytes)> {
        let state = self.state();
        let events = state.behind(EventId { stream, number: 0 });
        let whole = |pieces: &VecDeque<Bytes>| -> Vec<u8> {
            pieces
                .iter()
                .flat_map(|piece| piece.iter().copied())
                .collect()
        };
        events
            .map(|event| (event.id.number, whole(&event.pieces).into()))
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl LoggedStream {
    /// The id of an event, as clients see it.
    fn text_of(&self, id: EventId) -> String {
        match &self.label {
            None => id.to_string(),
            Some(label) => NamedEventId {
                id,
                label: label.clone(),
            }
            .to_string(),
        }
    }
}

impl State {
    /// The kept events of a stream after `id`.
    fn behind(&self, id: EventId) -> impl Iterator<Item = &Event> {
        let events = self.events.iter();
        events.filter(move |event| event.id.stream == id.stream && event.id.number > id.number)
    }

    /// Logs a message of `stream` as its next event, if it can be kept.
    fn append(&mut self, stream: u64, frame: Frame, budget: &ByteBudget) -> VecDeque<Bytes> {
        let Some(logged) = self.streams.get_mut(&stream) else {
            // The stream was replaced, so it cannot be resumed.
            return event(frame, None);
        };
        logged.last += 1;
        let number = logged.last;
        let id = EventId { stream, number };
        let pieces = event(frame, Some(&logged.text_of(id)));
        let size = pieces.iter().map(Bytes::len).sum();
        let reservation = self.reserve(size, budget);
        let Some(logged) = self.streams.get_mut(&stream) else {
            return pieces;
        };
        match reservation {
            Some(reservation) => {
                logged.kept += 1;
                self.bytes += size;
                self.events.push_back(Event {
                    id,
                    pieces: pieces.clone(),
                    size,
                    _reservation: reservation,
                });
            }
            None => logged.lost = number,
        }
        pieces
    }

    /// Reserves `size` bytes; removes the oldest events for it.
    fn reserve(&mut self, size: usize, budget: &ByteBudget) -> Option<Reservation> {
        if size > MOST_BYTES {
            return None;
        }
        loop {
            if self.events.len() < MOST_EVENTS
                && self.bytes + size <= MOST_BYTES
                && let Ok(reservation) = budget.try_reserve(size)
            {
                return Some(reservation);
            }
            self.drop_oldest()?;
        }
    }

    fn drop_oldest(&mut self) -> Option<()> {
        let oldest = self.events.pop_front()?;
        self.bytes -= oldest.size;
        if let Some(stream) = self.streams.get_mut(&oldest.id.stream) {
            stream.lost = stream.lost.max(oldest.id.number);
            stream.kept -= 1;
            if stream.has_ended && stream.kept == 0 {
                self.streams.remove(&oldest.id.stream);
            }
        }
        Some(())
    }

    /// Marks the end of a stream; its kept events stay available.
    fn end(&mut self, stream: u64) {
        if let Some(logged) = self.streams.get_mut(&stream) {
            logged.has_ended = true;
            if logged.kept == 0 {
                self.streams.remove(&stream);
            }
        }
    }
}

impl EventReader {
    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The event that precedes all others.
    pub(super) fn priming_event(&self) -> Bytes {
        let id = EventId {
            stream: self.stream,
            number: 0,
        };
        let state = self.log.state();
        let stream = state.streams.get(&self.stream);
        priming_event(&stream.map_or_else(|| id.to_string(), |stream| stream.text_of(id)))
    }

    /// Logs a message that was already taken from the outbox, as the next event.
    pub(super) fn append(&self, frame: Frame) -> VecDeque<Bytes> {
        self.log
            .state()
            .append(self.stream, frame, &self.log.budget)
    }

    /// The next event; `None` at the end of the stream, or when another connection reads it.
    pub(super) async fn next(&self) -> Option<VecDeque<Bytes>> {
        let mut frame = pin!(self.outbox.next());
        let mut replaced = pin!(self.replaced.cancelled());
        std::future::poll_fn(|context| {
            if replaced.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            // Under the lock, so that another reader finds each event either in the log or in the outbox.
            let mut state = self.log.state();
            if self.replaced.is_cancelled() {
                return Poll::Ready(None);
            }
            let frame = ready!(frame.as_mut().poll(context));
            Poll::Ready(frame.map(|frame| state.append(self.stream, frame, &self.log.budget)))
        })
        .await
    }

    /// Called when the connection ends: until the stream is resumed, its messages go to the log only, and no sender waits. The client may have
    /// got all of them only if the body `is_finished`.
    pub(super) fn detach(self, is_finished: bool) {
        let is_over = match self.log.keeper {
            // It may have been lost on the way, and another replica cannot look into this log.
            Some(_) => is_finished,
            None => self.outbox.is_through(),
        };
        if self.log.tasks.stop().is_cancelled() || is_over {
            return self.end();
        }
        let tasks = self.log.tasks.clone();
        let stopped = tasks.clone();
        // A run that ends waits for the answer.
        let keeper = self.log.keeper.as_ref().filter(|_| self.is_answer());
        let keeping = keeper.map(AnswerKeeper::begin);
        tasks.spawn(async move {
            let reading = async { while self.next().await.is_some() {} };
            tokio::select! {
                _ = tokio::time::timeout(DETACHED_TIME, reading) => {}
                () = stopped.stopped() => {}
            }
            self.end();
            if let Some(keeping) = keeping
                && self.is_answer()
            {
                let (log, stream) = (self.log.clone(), self.stream);
                let replaced = self.replaced.clone();
                tokio::select! {
                    () = keeping.due() => keeping.keep(stream, log.kept_of(stream)).await,
                    () = replaced.cancelled() => {}
                }
            }
        });
    }

    /// Whether it is the response to a request, which no other connection reads.
    fn is_answer(&self) -> bool {
        let state = self.log.state();
        let stream = state.streams.get(&self.stream);
        !self.replaced.is_cancelled()
            && stream.is_some_and(|stream| stream.kind == StreamKind::Response)
    }

    /// Ends the stream, unless another connection reads it.
    fn end(&self) {
        let mut state = self.log.state();
        if !self.replaced.is_cancelled() {
            self.outbox.abandon();
            state.end(self.stream);
        }
    }
}
