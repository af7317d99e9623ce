//! The progress of a client's messages, so that another process can take over its session if this one dies.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use super::Envelope;

/// A record of one client's input that outlives the process that serves it. A line is identified by the position of
/// its end in the stream.
pub(crate) trait Journal: fmt::Debug + Send + Sync {
    /// The lines of earlier processes that a new session must replay first. They were answered.
    fn kept(&self) -> Vec<Kept>;

    /// Records that `line`, which ends at `end` and holds `envelope`, was read. An earlier process may have read it, too.
    /// A line that is malformed or was too long to keep has no envelope.
    fn received(
        self: Arc<Self>,
        line: &Bytes,
        envelope: Option<&Envelope<'_>>,
        end: u64,
    ) -> Received;

    /// Records that the request that ends at `end` is about to be sent to a server.
    fn handed_over(&self, end: u64);

    /// Records that the line that ends at `end` was answered, or will not be.
    fn finished(&self, end: u64);
}

/// A line that an earlier process read.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    /// The text.
    pub(crate) line: Bytes,
    /// Whether a response is still due; if not, no second one is sent.
    pub(crate) is_open: bool,
}

/// The way to process a line that was read.
#[derive(Debug)]
pub(crate) enum Received {
    /// Process it.
    New(Receipt),
    /// An earlier process sent it to a server and did not answer it.
    Interrupted(Receipt),
    /// An earlier process answered it. Process it without a response, because it sets the state of the session.
    Repeated,
    /// An earlier process answered it. Skip it.
    Answered,
}

/// A handle to a line that is being processed. The line is finished when its response is written, or when the last
/// handle is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Receipt(Arc<Unfinished>);

#[derive(Debug)]
struct Unfinished {
    journal: Arc<dyn Journal>,
    end: u64,
    is_finished: AtomicBool,
}

impl Receipt {
    /// Creates the receipt for the line that ends at `end`.
    #[must_use]
    pub(crate) fn new(journal: Arc<dyn Journal>, end: u64) -> Self {
        Self(Arc::new(Unfinished {
            journal,
            end,
            is_finished: AtomicBool::new(false),
        }))
    }

    /// Records that the request is about to be sent to a server.
    pub(crate) fn handed_over(&self) {
        self.0.journal.handed_over(self.0.end);
    }

    /// Records that the response was written.
    pub(crate) fn finish(&self) {
        self.0.finish();
    }
}

impl Unfinished {
    fn finish(&self) {
        if !self.is_finished.swap(true, Ordering::Relaxed) {
            self.journal.finished(self.end);
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // A panic is not a response: the line stays open for the next process.
        if !std::thread::panicking() {
            self.finish();
        }
    }
}
