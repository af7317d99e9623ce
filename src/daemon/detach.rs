//! Why a daemon stopped serving a session, in the session's process.

use super::message::ToSession;
use crate::telemetry;

#[derive(Debug)]
pub(super) enum DetachReason {
    /// The session has ended.
    End { error: Option<String> },
    /// Another daemon has to take over: this one died (`has_died`) or asked for it.
    TakeOver { has_died: bool },
    /// The daemon was stopped. The session continues without one.
    Stopped,
}

impl DetachReason {
    /// The reason in a message of the daemon. A log line is written to stderr.
    pub(super) fn of(message: ToSession) -> Option<Self> {
        match message {
            ToSession::Welcome { .. } | ToSession::Step(_) => None,
            ToSession::Log(line) => {
                // Without a reader of stderr, the line is in the log files only.
                let _ = telemetry::print(&line);
                None
            }
            ToSession::End { error } => Some(Self::End { error }),
            ToSession::TakeOver => Some(Self::TakeOver { has_died: false }),
            ToSession::Alone => Some(Self::Stopped),
        }
    }
}
