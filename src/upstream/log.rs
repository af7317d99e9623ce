//! One log file per server: what it writes to stderr, line by line, without the secrets that it was given.

use std::path::Path;

use memchr::memrchr;

use crate::telemetry::{self, LogFile};
use crate::tool::ServerName;

/// A line beyond this size, in bytes, is written in parts.
const LONGEST_LINE: usize = 64 * 1024;

/// Appends to a server's log; a log that cannot be written is reported once and then left alone.
#[derive(Debug, Default)]
pub(crate) struct ServerLog {
    file: Option<LogFile>,
    /// The start of a line that has not ended yet: a secret in two parts would not be known.
    partial: Vec<u8>,
}

impl ServerLog {
    /// The log of `server` under `directory`; nothing is kept without one.
    #[must_use]
    pub(crate) fn open(directory: Option<&Path>, server: &ServerName) -> Self {
        let file = directory.map(|directory| LogFile::new(directory.join(format!("{server}.log"))));
        Self {
            file,
            partial: Vec::new(),
        }
    }

    /// Appends `bytes`; what was written of them and of what came before, without secrets.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> String {
        self.partial.extend_from_slice(bytes);
        let end = memrchr(b'\n', &self.partial).map_or(0, |at| at + 1);
        let text = if self.partial.len() - end > LONGEST_LINE {
            self.part()
        } else {
            let lines: Vec<u8> = self.partial.drain(..end).collect();
            telemetry::masked(&String::from_utf8_lossy(&lines)).into_owned()
        };
        self.append(&text);
        text
    }

    /// The line that has not ended yet, without secrets, begun ones included.
    #[must_use]
    pub(crate) fn unfinished(&self) -> String {
        telemetry::masked_cut(&String::from_utf8_lossy(&self.partial))
    }

    /// All of a line without an end but as much as a secret may have that is not whole yet.
    fn part(&mut self) -> String {
        let valid = self.partial.utf8_chunks().last();
        let broken = valid.map_or(0, |chunk| chunk.invalid().len());
        let rest = self.partial.split_off(self.partial.len() - broken);
        let text = telemetry::masked(&String::from_utf8_lossy(&self.partial)).into_owned();
        let mut end = text.len().saturating_sub(telemetry::longest_secret());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.partial = [&text.as_bytes()[end..], &rest].concat();
        text[..end].to_owned()
    }

    fn append(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(file) = &mut self.file
            && let Err(error) = file.append(text.as_bytes())
        {
            tracing::warn!(path = %file.path().display(), %error, "a server's log ends here");
            self.file = None;
        }
    }
}

impl Drop for ServerLog {
    fn drop(&mut self) {
        if !self.partial.is_empty() {
            self.write(b"\n");
        }
    }
}
