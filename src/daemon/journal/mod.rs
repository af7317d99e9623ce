//! A session's journal: the client's input and the progress of each line, in memory that survives the process that
//! serves the session.
//!
//! The attaching process creates three anonymous files (memfd) and passes them to each process that serves the session:
//!
//! - `input` holds the bytes of the client. The system call that removes them from the client's pipe writes them here.
//! - `marks` holds the progress of each line, as atomic words that are never half-written after a kill.
//! - `kept` holds the lines that a new process must replay: the handshake, the log level and the subscriptions.
//!
//! All positions are byte offsets in the client's whole stream. Finished input is freed by punching holes into the file,
//! so that offsets never change.

#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod input;
mod kept;
#[cfg(target_os = "linux")]
mod marks;
#[cfg(target_os = "linux")]
mod output;
mod reported;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::mcp;
use crate::mcp::{Envelope, Receipt, Received};

#[cfg(target_os = "linux")]
pub(super) use files::Files;
#[cfg(target_os = "linux")]
pub(super) use input::Input;
use kept::{Kept, KeptLine};
#[cfg(target_os = "linux")]
pub(super) use output::Output;
pub(super) use reported::{Memory, Progress, Report, Step};

/// A step of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mark {
    /// The line is about to be sent to a server.
    HandedOver = 1,
    /// The line was answered, or will not be.
    Finished = 2,
}

/// The place where a journal is written.
trait Store: fmt::Debug + Send {
    /// Records a step of the line that ends at `end`.
    fn note(&mut self, end: u64, mark: Mark) -> io::Result<()>;

    /// Records that all lines before `position` are finished.
    fn set_done(&mut self, position: u64) -> io::Result<()>;

    /// Forgets the steps of all lines, because all of them are finished.
    fn restart(&mut self);

    /// Replaces the lines that the next process must replay.
    fn keep(&mut self, lines: &[KeptLine]) -> io::Result<()>;
}

/// The contents of a journal when a process begins to serve the session.
struct Contents {
    /// All lines before this position are finished.
    done: u64,
    kept: Vec<KeptLine>,
    /// The marks of lines after `done`, by the end of the line.
    earlier: HashMap<u64, Mark>,
}

/// A session's journal, in the process that serves it.
#[derive(Debug)]
pub(super) struct Journal {
    /// The position at which this process starts to read.
    start: u64,
    state: Mutex<State>,
    /// Whether the progress of lines is ignored, because another process takes the session over.
    is_frozen: AtomicBool,
}

#[derive(Debug)]
struct State {
    store: Box<dyn Store>,
    kept: Kept,
    /// The lines in progress: the start of each, by its end.
    open: BTreeMap<u64, u64>,
    /// The ends of the open lines that were sent to a server.
    handed_over: HashSet<u64>,
    /// The marks that earlier processes wrote for lines after `start`, by the end of the line.
    earlier: HashMap<u64, Mark>,
    /// The end of the last line that this process read.
    parsed: u64,
    /// All lines before this position are finished.
    done: u64,
}

impl Journal {
    /// Continues a journal at the first line that is not finished.
    fn new(store: impl Store + 'static, contents: Contents) -> Arc<Self> {
        let Contents {
            done,
            kept,
            earlier,
        } = contents;
        let state = State {
            store: Box::new(store),
            kept: Kept::new(kept),
            open: BTreeMap::new(),
            handed_over: HashSet::new(),
            earlier,
            parsed: done,
            done,
        };
        Arc::new(Self {
            start: done,
            state: Mutex::new(state),
            is_frozen: AtomicBool::new(false),
        })
    }

    /// Ignores all later progress of lines, so that open lines stay open for the process that takes over.
    pub(super) fn freeze(&self) {
        self.is_frozen.store(true, Ordering::Relaxed);
    }

    /// Whether no line is in progress.
    pub(super) fn is_quiet(&self) -> bool {
        self.state.lock().open.is_empty()
    }

    /// Changes the journal unless it is frozen. The session continues after a write error; but if this process dies, the
    /// next one may then process a line again.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> io::Result<T>) -> Option<T> {
        let mut state = self.state.lock();
        if self.is_frozen.load(Ordering::Relaxed) {
            return None;
        }
        change(&mut state)
            .inspect_err(
                |error| tracing::error!(%error, "the journal of a session cannot be written"),
            )
            .ok()
    }
}

impl mcp::Journal for Journal {
    fn kept(&self) -> Vec<mcp::Kept> {
        self.state.lock().kept.before(self.start)
    }

    fn received(
        self: Arc<Self>,
        line: &Bytes,
        envelope: Option<&Envelope<'_>>,
        end: u64,
    ) -> Received {
        let end = self.start + end;
        let mut state = self.state.lock();
        let begin = std::mem::replace(&mut state.parsed, end);
        let earlier = state.earlier.remove(&end);
        if earlier == Some(Mark::Finished) {
            if state.open.is_empty() {
                state.done = end;
            }
            return if state.kept.has(end) {
                Received::Repeated
            } else {
                Received::Answered
            };
        }
        let stays_open = envelope.is_some_and(|envelope| state.keep(line, envelope, end));
        if !stays_open {
            state.open.insert(end, begin);
        }
        drop(state);
        let receipt = Receipt::new(self, end);
        match earlier {
            Some(Mark::HandedOver) => Received::Interrupted(receipt),
            _ => Received::New(receipt),
        }
    }

    fn handed_over(&self, end: u64) {
        self.change(|state| {
            if state.open.contains_key(&end) && state.handed_over.insert(end) {
                state.store.note(end, Mark::HandedOver)?;
            }
            Ok(())
        });
    }

    fn finished(&self, end: u64) {
        self.change(|state| state.finish(end));
    }
}

impl State {
    /// Keeps `line` if the next process must replay it. Returns whether it is a subscription, which does not hold up
    /// `done`.
    fn keep(&mut self, line: &Bytes, envelope: &Envelope<'_>, end: u64) -> bool {
        let Self { kept, store, .. } = self;
        kept.note(line, envelope, end, &mut **store)
            .unwrap_or_else(|error| {
                tracing::error!(%error, "the journal of a session cannot be written");
                false
            })
    }

    /// Records that the line that ends at `end` is finished.
    fn finish(&mut self, end: u64) -> io::Result<()> {
        self.handed_over.remove(&end);
        let was_open = self.open.remove(&end).is_some();
        let done = self
            .open
            .first_key_value()
            .map_or(self.parsed, |(_, begin)| *begin);
        if done > self.done {
            self.store.set_done(done)?;
            self.done = done;
        }
        if self.open.is_empty() && self.earlier.is_empty() {
            self.store.restart();
        } else if was_open && end > done {
            self.store.note(end, Mark::Finished)?;
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use mcp::Journal as _;

    use super::*;

    fn line(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn reads(journal: &Arc<Journal>, line: &Bytes, end: u64) -> Received {
        let envelope = Envelope::parse(line).unwrap();
        journal.clone().received(line, Some(&envelope), end)
    }

    fn call(id: u64) -> Bytes {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{}}}}"#).into()
    }

    #[test]
    fn the_next_process_knows_how_far_each_line_has_come() {
        let files = Files::new().unwrap();
        let journal = Journal::open(&files).unwrap();
        let receipts: Vec<_> = [10, 20, 30, 40]
            .map(|end| match reads(&journal, &call(end), end) {
                Received::New(receipt) => receipt,
                received => panic!("{received:?}"),
            })
            .into();
        receipts[0].finish();
        receipts[1].handed_over();
        receipts[2].handed_over();
        receipts[2].finish();
        journal.freeze();
        drop(receipts);
        let next = Journal::open(&files).unwrap();
        assert_eq!(files.done(), 10, "the first line that is not finished");
        let received: Vec<_> = [10, 20, 30]
            .map(|end| reads(&next, &call(end + 10), end))
            .into();
        assert!(matches!(received[0], Received::Interrupted(_)));
        assert!(matches!(received[1], Received::Answered));
        assert!(matches!(received[2], Received::New(_)));
        drop(received);
        assert_eq!(files.done(), 40);
        // Earlier marks no longer apply after their lines are done.
        assert!(matches!(reads(&next, &call(50), 40), Received::New(_)));
    }

    #[test]
    fn the_lines_that_set_a_sessions_state_are_kept_for_the_next_process() {
        let files = Files::new().unwrap();
        let journal = Journal::open(&files).unwrap();
        let lines = [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"debug"}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":6,"method":"resources/unsubscribe","params":{"uri":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":8,"method":"subscriptions/listen","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
        ];
        for (number, text) in lines.into_iter().enumerate() {
            // Each line is finished at once, except for subscriptions.
            drop(reads(&journal, &line(text), 100 * (number as u64 + 1)));
        }
        let next = Journal::open(&files).unwrap();
        let kept: Vec<_> = next.kept();
        let texts: Vec<_> = kept.iter().map(|kept| kept.line.clone()).collect();
        assert_eq!(texts, [0, 2, 4, 7].map(|at| line(lines[at])));
        assert_eq!(kept.iter().filter(|kept| kept.is_open).count(), 1);
        assert_eq!(files.done(), 900);
    }
}
