//! The messages of one HTTP response, and the effect of a lost connection.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::event::event;
use super::event_log::{EventReader, StreamKind};
use super::sessions::{SessionGuard, Sessions};
use crate::downstream::Session;
use crate::mcp::{Frame, Outbox, RequestId, Revision};

/// The messages of one HTTP response; `end` happens when it is dropped.
pub(super) struct Stream {
    outbox: Outbox,
    /// Reads the outbox through the session's event log, if the stream can be resumed.
    reader: Option<EventReader>,
    end: End,
    guard: Option<SessionGuard>,
    /// Cancelled when the client is to continue at another replica.
    leaving: Option<CancellationToken>,
    /// Whether all of it has been sent.
    is_finished: bool,
}

/// The effect of a lost connection.
enum End {
    /// None: up to 2025-11-25, disconnecting does not cancel requests.
    Nothing,
    /// The requests are cancelled (2026-07-28, basic/patterns/cancellation).
    Requests(Arc<Session>),
    /// The session ends.
    Session(Arc<Sessions>, String),
}

impl Stream {
    /// A stream without a session. A lost connection cancels nothing.
    pub(super) fn alone(outbox: Outbox) -> Self {
        Self::new(outbox, End::Nothing, None)
    }

    /// The response to a POST in a session. A lost connection cancels nothing.
    pub(super) fn in_session(outbox: Outbox, guard: SessionGuard) -> Self {
        Self::new(outbox, End::Nothing, Some(guard))
    }

    /// A stream whose end cancels the requests of `session`.
    pub(super) fn cancelling(outbox: Outbox, session: Arc<Session>) -> Self {
        Self::new(outbox, End::Requests(session), None)
    }

    /// A stream whose end ends the session `id`.
    pub(super) fn ending(
        outbox: Outbox,
        sessions: Arc<Sessions>,
        id: String,
        guard: SessionGuard,
    ) -> Self {
        Self::new(outbox, End::Session(sessions, id), Some(guard))
    }

    /// A resumed stream, read by `reader`.
    pub(super) fn resumed(reader: EventReader, guard: SessionGuard) -> Self {
        let mut stream = Self::in_session(reader.outbox().clone(), guard);
        stream.reader = Some(reader);
        stream
    }

    fn new(outbox: Outbox, end: End, guard: Option<SessionGuard>) -> Self {
        Self {
            outbox,
            reader: None,
            end,
            guard,
            leaving: None,
            is_finished: false,
        }
    }

    /// Notes that all of it has been sent.
    pub(super) fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Sends the client to another replica when `leaving` is cancelled.
    pub(super) fn until(mut self, leaving: Option<CancellationToken>) -> Self {
        self.leaving = leaving;
        self
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Starts the event stream: returns its first events, including `first`. From now on a client with a session can
    /// resume it.
    pub(super) fn begin(
        &mut self,
        kind: StreamKind,
        request: Option<&RequestId>,
        first: Option<Frame>,
    ) -> VecDeque<Bytes> {
        let (End::Nothing, Some(guard)) = (&self.end, &self.guard) else {
            return first.map_or_else(VecDeque::new, |frame| event(frame, None));
        };
        let reader = guard.log().open(kind, request, self.outbox.clone());
        let revision = guard.session().legacy_revision();
        let is_primed = revision.is_some_and(Revision::has_priming_events);
        let mut pieces = VecDeque::from_iter(is_primed.then(|| reader.priming_event()));
        pieces.extend(first.into_iter().flat_map(|frame| reader.append(frame)));
        self.reader = Some(reader);
        pieces
    }

    /// The next event; `None` at the end. The future borrows nothing, because the body keeps it between polls.
    pub(super) fn next(&self) -> impl Future<Output = Option<VecDeque<Bytes>>> + Send + use<> {
        let (reader, outbox) = (self.reader.clone(), self.outbox.clone());
        let leaving = self.leaving.clone();
        let next = async move {
            match reader {
                Some(reader) => reader.next().await,
                None => outbox.next().await.map(|frame| event(frame, None)),
            }
        };
        async move {
            let Some(leaving) = leaving else {
                return next.await;
            };
            tokio::select! {
                biased;
                () = leaving.cancelled() => None,
                event = next => event,
            }
        }
    }

    /// The last words to a client that is to continue at another replica.
    pub(super) fn farewell(&self) -> Option<Bytes> {
        let is_leaving = |leaving: &CancellationToken| leaving.is_cancelled();
        let is_leaving = self.leaving.as_ref().is_some_and(is_leaving);
        is_leaving.then(|| Bytes::from_static(b"retry: 500\n\n"))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        match self.reader.take() {
            Some(reader) => reader.detach(self.is_finished),
            None => self.outbox.abandon(),
        }
        match &self.end {
            End::Nothing => {}
            End::Requests(session) => session.cancel_all(),
            End::Session(sessions, id) => {
                sessions.end(id);
            }
        }
    }
}
