//! One log file per server: its stderr, line by line, without secrets.

use std::path::Path;

use memchr::memrchr;

use crate::telemetry::{self, LogFile};
use crate::tool::ServerName;

/// The longest line, in bytes; longer ones are written in parts.
const LONGEST_LINE: usize = 64 * 1024;

/// Appends to a server's log. If it cannot be written, that is reported once.
#[derive(Debug, Default)]
pub(crate) struct ServerLog {
    file: Option<LogFile>,
    /// The beginning of an unfinished line: a secret in two parts would not be masked.
    partial: Vec<u8>,
}

impl ServerLog {
    /// Opens the log of `server` in `directory`. Without a directory, nothing is written.
    #[must_use]
    pub(crate) fn open(directory: Option<&Path>, server: &ServerName) -> Self {
        let file = directory.map(|directory| LogFile::new(directory.join(format!("{server}.log"))));
        Self {
            file,
            partial: Vec::new(),
        }
    }

    /// Appends `bytes`. Returns the text that was written, with secrets masked.
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

    /// The unfinished line, with secrets masked, including partial ones at its end.
    #[must_use]
    pub(crate) fn unfinished(&self) -> String {
        telemetry::masked_cut(&String::from_utf8_lossy(&self.partial))
    }

    /// Takes from the unfinished line everything except an end that may be the beginning of a secret.
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
