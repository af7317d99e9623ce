//! Where the answer to a message goes: to the client's shared outbox or one of its own, alone or with the others of a batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::mcp::{ErrorCode, Frame, Outbox, Receipt, headers};
use crate::telemetry::trace::Context;

/// Where what belongs to a message goes.
#[derive(Debug, Clone)]
pub(crate) enum Exchange {
    /// Over the one way to the client, like everything else.
    Shared(Outbox),
    /// The same for a client whose session another process can take over.
    Journaled {
        /// Where messages go.
        outbox: Outbox,
        /// The line that is answered.
        receipt: Receipt,
    },
    /// Over a way of its own, which is closed behind the answer.
    Own {
        /// Where messages go.
        outbox: Outbox,
        /// The trace that the HTTP request is a part of.
        passed: Option<Arc<Context>>,
        /// The headers of a modern HTTP request that repeat arguments.
        params: Option<Arc<headers::Params>>,
    },
}

/// Where an answer goes.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) exchange: Exchange,
    /// The others with which it goes, if it was asked for together with them.
    batch: Option<Arc<Batch>>,
}

/// The answers to a batch, sent as one array when the last is there.
#[derive(Debug, Default)]
struct Batch {
    answers: Mutex<Vec<Frame>>,
    missing: AtomicUsize,
}

impl Exchange {
    /// Where messages go.
    #[must_use]
    pub(crate) fn outbox(&self) -> &Outbox {
        match self {
            Self::Shared(outbox) | Self::Journaled { outbox, .. } | Self::Own { outbox, .. } => {
                outbox
            }
        }
    }

    /// What the HTTP request says of a trace.
    pub(super) fn passed(&self) -> Option<&Arc<Context>> {
        match self {
            Self::Own { passed, .. } => passed.as_ref(),
            Self::Shared(_) | Self::Journaled { .. } => None,
        }
    }

    /// The headers that repeat arguments, where they are to be compared with them.
    pub(super) fn params(&self) -> Option<&Arc<headers::Params>> {
        match self {
            Self::Own { params, .. } => params.as_ref(),
            Self::Shared(_) | Self::Journaled { .. } => None,
        }
    }

    /// The line that is answered, where a journal follows it.
    pub(super) fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Journaled { receipt, .. } => Some(receipt),
            Self::Shared(_) | Self::Own { .. } => None,
        }
    }

    /// The answer was given, or will not be.
    pub(super) fn end(&self) {
        match self {
            Self::Shared(_) => {}
            Self::Journaled { outbox, receipt } => outbox.finish_when_written(receipt),
            Self::Own { outbox, .. } => outbox.close(),
        }
    }
}

impl Answer {
    /// The answer to a message by itself.
    pub(super) fn alone(exchange: Exchange) -> Self {
        Self {
            exchange,
            batch: None,
        }
    }

    /// One of so many answers that go together.
    pub(super) fn of_batch(exchange: Exchange, answers: usize) -> Self {
        let batch = Batch {
            answers: Mutex::default(),
            missing: answers.into(),
        };
        Self {
            exchange,
            batch: Some(Arc::new(batch)),
        }
    }

    /// Sends a short answer at once.
    pub(super) fn push(&self, frame: Frame) {
        self.give(Some(frame));
    }

    /// There will be no answer.
    pub(super) fn leave(&self) {
        self.give(None);
    }

    fn give(&self, frame: Option<Frame>) {
        if let Some(last) = self.complete(frame) {
            // A client that is gone is noticed when its input ends.
            let _ = last.map(|frame| self.exchange.outbox().push(frame));
            self.exchange.end();
        }
    }

    /// Notes that this answer is there, or will not come; what there is to send, if anything, once no other is missing.
    pub(super) fn complete(&self, frame: Option<Frame>) -> Option<Option<Frame>> {
        match &self.batch {
            None => Some(frame),
            Some(batch) => batch.complete(frame, self.exchange.outbox()),
        }
    }
}

impl Batch {
    /// Notes that one more answer is there, or will not come; with the last of them, the whole array, if there are any.
    fn complete(&self, frame: Option<Frame>, outbox: &Outbox) -> Option<Option<Frame>> {
        let mut answers = self.answers.lock();
        answers.extend(frame);
        if self.missing.fetch_sub(1, Ordering::Relaxed) > 1 {
            return None;
        }
        if answers.is_empty() {
            return Some(None);
        }
        let parts: Vec<_> = answers
            .drain(..)
            .map(|frame| [&frame.head[..], &frame.body, &frame.tail].concat())
            .collect();
        let all = Frame {
            head: b"[".to_vec(),
            body: parts.join(&b',').into(),
            tail: b"]".to_vec(),
        };
        // The reservations of its parts are released by now.
        let refusal = || {
            Frame::error(
                None,
                ErrorCode::TOO_MANY_REQUESTS,
                "the clients leave too much unread: the answers were dropped",
                None,
            )
        };
        Some(Some(outbox.hold(all).unwrap_or_else(|_| refusal())))
    }
}
