//! The destination of the response to a message: the client's shared outbox or one of its own, alone or as part of a
//! batch.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::mcp::{ErrorCode, Frame, Outbox, Receipt, headers};
use crate::telemetry::trace::Context;

/// The destination of the messages that belong to one client message.
#[derive(Debug, Clone)]
pub(crate) enum Exchange {
    /// The client's only outbox, which all messages share.
    Shared(Outbox),
    /// The client's only outbox, for a session that another process can take over.
    Journaled {
        /// The outbox.
        outbox: Outbox,
        /// The receipt of the line to answer.
        receipt: Receipt,
    },
    /// The stream of a client of HTTP+SSE, which all messages share.
    Sse {
        /// The outbox.
        outbox: Outbox,
        /// The scopes of the message's access token, if it has one.
        scopes: Option<Arc<BTreeSet<String>>>,
    },
    /// An outbox of its own, which is closed after the response.
    Own {
        /// The outbox.
        outbox: Outbox,
        /// The trace context of the HTTP request.
        passed: Option<Arc<Context>>,
        /// The headers of a modern HTTP request that repeat arguments.
        params: Option<Arc<headers::Params>>,
        /// The scopes of the request's access token, if it has one.
        scopes: Option<Arc<BTreeSet<String>>>,
    },
}

/// The destination of one response.
#[derive(Debug, Clone)]
pub(super) struct ResponseTarget {
    pub(super) exchange: Exchange,
    /// The batch that it belongs to, if it was requested in one.
    batch: Option<Arc<Batch>>,
}

/// The responses to a batch, sent as one array when the last one is there.
#[derive(Debug, Default)]
struct Batch {
    answers: Mutex<Vec<Frame>>,
    missing: AtomicUsize,
}

impl Exchange {
    /// The outbox.
    #[must_use]
    pub(crate) fn outbox(&self) -> &Outbox {
        match self {
            Self::Shared(outbox)
            | Self::Journaled { outbox, .. }
            | Self::Sse { outbox, .. }
            | Self::Own { outbox, .. } => outbox,
        }
    }

    /// Whether its client is there when the run ends, and no other process takes its requests over.
    pub(super) fn is_over_http(&self) -> bool {
        matches!(self, Self::Sse { .. } | Self::Own { .. })
    }

    /// The trace context of the HTTP request.
    pub(super) fn passed(&self) -> Option<&Arc<Context>> {
        match self {
            Self::Own { passed, .. } => passed.as_ref(),
            Self::Shared(_) | Self::Journaled { .. } | Self::Sse { .. } => None,
        }
    }

    /// The headers that repeat arguments, if they must be compared with them.
    pub(super) fn params(&self) -> Option<&Arc<headers::Params>> {
        match self {
            Self::Own { params, .. } => params.as_ref(),
            Self::Shared(_) | Self::Journaled { .. } | Self::Sse { .. } => None,
        }
    }

    /// The scopes of the request's access token, if it has one.
    pub(super) fn scopes(&self) -> Option<&Arc<BTreeSet<String>>> {
        match self {
            Self::Own { scopes, .. } | Self::Sse { scopes, .. } => scopes.as_ref(),
            Self::Shared(_) | Self::Journaled { .. } => None,
        }
    }

    /// The receipt of the line to answer, if a journal records it.
    pub(super) fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Journaled { receipt, .. } => Some(receipt),
            Self::Shared(_) | Self::Sse { .. } | Self::Own { .. } => None,
        }
    }

    /// Marks the response as given, or as not to come.
    pub(super) fn end(&self) {
        match self {
            Self::Shared(_) | Self::Sse { .. } => {}
            Self::Journaled { outbox, receipt } => outbox.finish_when_written(receipt),
            Self::Own { outbox, .. } => outbox.close(),
        }
    }
}

impl ResponseTarget {
    /// Creates the destination of a response outside of a batch.
    pub(super) fn alone(exchange: Exchange) -> Self {
        Self {
            exchange,
            batch: None,
        }
    }

    /// Creates the destination of one of the `answers` responses of a batch.
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

    /// Sends a short response at once.
    pub(super) fn push(&self, frame: Frame) {
        self.give(Some(frame));
    }

    /// Records that there will be no response.
    pub(super) fn leave(&self) {
        self.give(None);
    }

    fn give(&self, frame: Option<Frame>) {
        if let Some(last) = self.complete(frame) {
            // If the client is gone, that is noticed when its input ends.
            let _ = last.map(|frame| self.exchange.outbox().push(frame));
            self.exchange.end();
        }
    }

    /// Records this response, or that there is none. Once all responses of its batch are there, returns the message
    /// to send, if any.
    pub(super) fn complete(&self, frame: Option<Frame>) -> Option<Option<Frame>> {
        match &self.batch {
            None => Some(frame),
            Some(batch) => batch.complete(frame, self.exchange.outbox()),
        }
    }
}

impl Batch {
    /// Records one more response, or that there is none. After the last one, returns the whole array, if it has any
    /// elements.
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
        // The reservations of the parts are released by now.
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
