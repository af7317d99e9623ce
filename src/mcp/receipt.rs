//! How far a client's messages have come, for a process that takes its session over if this one dies.

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "sessions share a daemon on Linux only")
)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

/// A record of one client's input, which outlives the process that serves it. A line is known by the position of its end in the stream.
pub(crate) trait Journal: fmt::Debug + Send + Sync {
    /// Lines of earlier processes that a session needs again before any other; they were answered.
    fn kept(&self) -> Vec<Kept>;

    /// Notes that `line`, which ends at `end`, was read; an earlier process may have worked on it. A line that was too long to be
    /// kept has no text.
    fn received(self: Arc<Self>, line: Option<&Bytes>, end: u64) -> Received;

    /// A server is about to get the request of the line that ends at `end`.
    fn handed_over(&self, end: u64);

    /// The line that ends at `end` was answered, or will not be.
    fn finished(&self, end: u64);
}

/// A line of an earlier process.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    /// Its text.
    pub(crate) line: Bytes,
    /// Whether its answer is yet to come; otherwise it is not answered again.
    pub(crate) is_open: bool,
}

/// What is to be done with a line.
#[derive(Debug)]
pub(crate) enum Received {
    /// It is worked on.
    New(Receipt),
    /// An earlier process handed it to a server and did not answer it.
    Interrupted(Receipt),
    /// An earlier process answered it; it says how the session stands, so it is worked on without an answer.
    Repeated,
    /// An earlier process answered it.
    Answered,
}

/// A line on its way to its answer. It is finished when the answer was written, or with its last handle.
#[derive(Debug, Clone)]
pub(crate) struct Receipt(Arc<Unfinished>);

#[derive(Debug)]
struct Unfinished {
    journal: Arc<dyn Journal>,
    end: u64,
    is_finished: AtomicBool,
}

impl Receipt {
    /// The line that ends at `end`.
    #[must_use]
    pub(crate) fn new(journal: Arc<dyn Journal>, end: u64) -> Self {
        Self(Arc::new(Unfinished {
            journal,
            end,
            is_finished: AtomicBool::new(false),
        }))
    }

    /// A server is about to get the request.
    pub(crate) fn handed_over(&self) {
        self.0.journal.handed_over(self.0.end);
    }

    /// The answer was written.
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
        // A fault is no answer.
        if !std::thread::panicking() {
            self.finish();
        }
    }
}
