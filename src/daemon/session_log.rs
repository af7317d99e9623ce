//! Sends the log lines that concern a session to its process, which writes them to its stderr.

use std::io;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tracing::Level;
use tracing::level_filters::LevelFilter;

use super::message::{self, ToSession};
use crate::shutdown::LogLines;
use crate::telemetry;

/// Maximum number of lines that wait for the process. Further lines are only in the log files.
const WAITING: usize = 1024;

/// The usual level of a session.
const USUAL: LevelFilter = LevelFilter::WARN;

/// Time limit for a process to read its last messages, after which it gets no more.
const LAST: Duration = Duration::from_secs(5);

/// The log lines of a session.
pub(super) struct SessionLog {
    is_asked: bool,
    level: Mutex<LevelFilter>,
    lines: mpsc::Sender<String>,
}

/// The lines that wait for the session's process.
pub(super) struct Waiting(mpsc::Receiver<String>);

impl SessionLog {
    /// The log of a session whose process asks for the level `asked`.
    pub(super) fn new(asked: Option<&str>) -> (Self, Waiting) {
        let (lines, waiting) = mpsc::channel(WAITING);
        let asked = asked.and_then(|level| level.parse().ok());
        let level = asked.unwrap_or(USUAL);
        telemetry::pass_on(level);
        let log = Self {
            is_asked: asked.is_some(),
            level: Mutex::new(level),
            lines,
        };
        (log, Waiting(waiting))
    }
}

impl LogLines for SessionLog {
    fn is_wanted(&self, level: Level) -> bool {
        level <= *self.level.lock()
    }

    fn line(&self, _level: Level, line: &str) {
        // If too many lines wait, this one is in the log files only.
        let _ = self.lines.try_send(line.to_owned());
    }

    fn configure(&self, level: Option<LevelFilter>) {
        if !self.is_asked {
            let level = level.unwrap_or(USUAL);
            *self.level.lock() = level;
            telemetry::pass_on(level);
        }
    }
}

impl Waiting {
    /// Sends lines to the process, until there can be no more.
    pub(super) async fn send(
        mut self,
        mut process: impl AsyncWrite + Unpin,
        last: tokio::sync::oneshot::Receiver<ToSession>,
    ) -> io::Result<()> {
        tokio::pin!(last);
        let last = loop {
            tokio::select! {
                biased;
                Some(line) = self.0.recv() => {
                    message::send_async(&mut process, &ToSession::Log(line)).await?;
                }
                last = &mut last => break last.map_err(io::Error::other)?,
            }
        };
        message::send_async(&mut process, &last).await
    }
}

/// Waits for `sending` to end, which it does if the process reads.
pub(super) async fn finish(sending: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    tokio::time::timeout(LAST, sending).await?
}
