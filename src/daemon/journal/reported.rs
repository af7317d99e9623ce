//! The journal of a session whose process relays the bytes of its client: that process keeps the journal in its own memory, and the
//! process that serves the session reports each step to it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::kept::KeptLine;
use super::{Contents, Journal, Mark, Store};

/// The memory for input that stays when all of it is finished, in bytes.
const KEPT_CAPACITY: usize = 64 * 1024;

/// A step that is reported.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::daemon) enum Step {
    /// The progress of the line that ends here.
    Line(u64, Mark),
    /// All lines before this position are finished.
    Done(u64),
    /// The lines that the next process must replay, each with its end.
    Kept(Vec<(u64, String)>),
}

/// The state of a session without its input, for the next process that serves it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::daemon) struct Progress {
    /// All lines before this position are finished.
    done: u64,
    /// The lines to replay, each with its end.
    kept: Vec<(u64, String)>,
    /// The marks of later lines, by the end of the line.
    marks: HashMap<u64, Mark>,
}

/// The journal in the memory of the session's process.
#[derive(Debug, Default)]
pub(in crate::daemon) struct Memory {
    progress: Progress,
    /// The input from `done` on.
    input: VecDeque<u8>,
    /// The number of bytes of `input` that this daemon has.
    sent: usize,
}

/// Receives the steps of a journal.
pub(in crate::daemon) trait Report: fmt::Debug + Send {
    /// Sends `step` before anything that this process does later.
    fn report(&self, step: Step) -> io::Result<()>;
}

/// Discards the steps of a session that no other process will serve.
impl Report for () {
    fn report(&self, _: Step) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Reported<R>(R);

impl Progress {
    /// A journal that continues here and reports to `report`.
    pub(in crate::daemon) fn journal(&self, report: impl Report + 'static) -> Arc<Journal> {
        let kept = self.kept.iter();
        let contents = Contents {
            done: self.done,
            kept: kept
                .filter_map(|(end, line)| KeptLine::new(*end, Bytes::from(line.clone())))
                .collect(),
            earlier: self.marks.clone(),
        };
        Journal::new(Reported(report), contents)
    }
}

impl<R: Report> Store for Reported<R> {
    fn note(&mut self, end: u64, mark: Mark) -> io::Result<()> {
        self.0.report(Step::Line(end, mark))
    }

    fn set_done(&mut self, position: u64) -> io::Result<()> {
        self.0.report(Step::Done(position))
    }

    fn restart(&mut self) {}

    fn keep(&mut self, lines: &[KeptLine]) -> io::Result<()> {
        let text = |line: &KeptLine| {
            let text = String::from_utf8(line.line.to_vec()).map_err(io::Error::other)?;
            Ok((line.end, text))
        };
        let lines = lines.iter().map(text).collect::<io::Result<_>>()?;
        self.0.report(Step::Kept(lines))
    }
}

impl Memory {
    /// The state for the next process. It gets the input from its first unfinished line on.
    pub(in crate::daemon) fn resume(&mut self) -> Progress {
        self.sent = 0;
        self.progress.clone()
    }

    /// Adds bytes of the client.
    pub(in crate::daemon) fn add(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
    }

    /// At most `most` bytes that the daemon does not have. They count as sent.
    pub(in crate::daemon) fn send(&mut self, most: usize) -> Vec<u8> {
        let bytes: Vec<u8> = self.input.range(self.sent..).take(most).copied().collect();
        self.sent += bytes.len();
        bytes
    }

    /// Records a step, and drops the input that is finished.
    pub(in crate::daemon) fn apply(&mut self, step: Step) {
        let progress = &mut self.progress;
        match step {
            Step::Line(end, mark) => {
                if progress.marks.get(&end) != Some(&Mark::Finished) {
                    progress.marks.insert(end, mark);
                }
            }
            Step::Kept(lines) => progress.kept = lines,
            Step::Done(position) => {
                let finished = position.saturating_sub(progress.done);
                // The daemon cannot have finished more than it got.
                let finished = usize::try_from(finished)
                    .unwrap_or(usize::MAX)
                    .min(self.sent);
                self.input.drain(..finished);
                if self.input.is_empty() && self.input.capacity() > KEPT_CAPACITY {
                    self.input.shrink_to(KEPT_CAPACITY);
                }
                self.sent -= finished;
                progress.done += finished as u64;
                progress.marks.retain(|end, _| *end > progress.done);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_has_the_input_from_the_first_unfinished_line_on() {
        let mut memory = Memory::default();
        memory.add(b"first\nsecond\nthi");
        assert_eq!(memory.send(8), b"first\nse");
        assert_eq!(memory.send(100), b"cond\nthi");
        assert!(memory.send(100).is_empty());
        memory.apply(Step::Line(6, Mark::HandedOver));
        memory.apply(Step::Line(13, Mark::HandedOver));
        memory.apply(Step::Line(13, Mark::Finished));
        memory.apply(Step::Done(6));
        memory.add(b"rd\n");
        let progress = memory.resume();
        assert_eq!(progress.done, 6);
        assert_eq!(progress.marks, HashMap::from([(13, Mark::Finished)]));
        assert_eq!(memory.send(100), b"second\nthird\n");
        // A daemon cannot finish more than it got, even if it reports more.
        memory.apply(Step::Done(u64::MAX));
        assert!(memory.input.is_empty());
        assert_eq!(memory.progress.done, 19);
    }
}
