//! The way to one client during one HTTP answer, and what the end of its connection means.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::event::event;
use super::event_log::{EventReader, StreamKind};
use super::sessions::{SessionGuard, Sessions};
use crate::downstream::Session;
use crate::mcp::{Frame, Outbox, Revision};

/// A way to one client, and what ends with it.
pub(super) struct Stream {
    outbox: Outbox,
    /// Reads the outbox through the session's log, where the stream can be resumed.
    reader: Option<EventReader>,
    end: End,
    guard: Option<SessionGuard>,
}

/// What happens when the client is gone.
enum End {
    /// Requests go on: up to 2025-11-25, leaving is not cancelling.
    Nothing,
    /// Leaving cancels (2026-07-28, basic/patterns/cancellation).
    Requests(Arc<Session>),
    /// The stream was the session.
    Session(Arc<Sessions>, String),
}

impl Stream {
    /// A way without a session, whose end cancels nothing.
    pub(super) fn alone(outbox: Outbox) -> Self {
        Self::new(outbox, End::Nothing, None)
    }

    /// The answer to a POST of a session; its end cancels nothing.
    pub(super) fn in_session(outbox: Outbox, guard: SessionGuard) -> Self {
        Self::new(outbox, End::Nothing, Some(guard))
    }

    /// A way whose end cancels the requests of `session`.
    pub(super) fn cancelling(outbox: Outbox, session: Arc<Session>) -> Self {
        Self::new(outbox, End::Requests(session), None)
    }

    /// A way whose end is that of the session `id`.
    pub(super) fn ending(
        outbox: Outbox,
        sessions: Arc<Sessions>,
        id: String,
        guard: SessionGuard,
    ) -> Self {
        Self::new(outbox, End::Session(sessions, id), Some(guard))
    }

    /// A stream that another connection began, and `reader` reads from now on.
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
        }
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// What a stream of events begins with: the message that came already, if one did. From here on a client with a session
    /// can resume it.
    pub(super) fn begin(&mut self, kind: StreamKind, first: Option<Frame>) -> VecDeque<Bytes> {
        let (End::Nothing, Some(guard)) = (&self.end, &self.guard) else {
            return first.map_or_else(VecDeque::new, |frame| event(frame, None));
        };
        let reader = guard.log().open(kind, self.outbox.clone());
        let revision = guard.session().legacy_revision();
        let is_primed = revision.is_some_and(Revision::has_priming_events);
        let mut pieces = VecDeque::from_iter(is_primed.then(|| reader.priming_event()));
        pieces.extend(first.into_iter().flat_map(|frame| reader.append(frame)));
        self.reader = Some(reader);
        pieces
    }

    /// The next event; `None` at the end. The future borrows nothing, as it is kept between polls of a body.
    pub(super) fn next(&self) -> impl Future<Output = Option<VecDeque<Bytes>>> + Send + use<> {
        let (reader, outbox) = (self.reader.clone(), self.outbox.clone());
        async move {
            match reader {
                Some(reader) => reader.next().await,
                None => outbox.next().await.map(|frame| event(frame, None)),
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        match self.reader.take() {
            Some(reader) => reader.detach(),
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
