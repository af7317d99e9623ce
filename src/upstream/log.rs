//! One log file per server: what it writes to stderr.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::tool::ServerName;

/// A file beyond this size, in bytes, becomes the old one when the server starts again or writes on.
const LARGEST: u64 = 10 * 1024 * 1024;

/// Appends to a server's log; a log that cannot be written is reported once and then left alone.
#[derive(Debug, Default)]
pub struct ServerLog {
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    length: u64,
}

impl ServerLog {
    /// The log of `server` under `directory`; nothing is kept without one.
    #[must_use]
    pub fn open(directory: Option<&Path>, server: &ServerName) -> Self {
        let Some(directory) = directory else { return Self::default() };
        let path = directory.join(format!("{server}.log"));
        match Open::at(path) {
            Ok(open) => Self { open: Some(open) },
            Err(error) => {
                tracing::warn!(%server, %error, "no log for this server");
                Self::default()
            }
        }
    }

    /// Appends `bytes`.
    pub fn write(&mut self, bytes: &[u8]) {
        if let Some(open) = &mut self.open
            && let Err(error) = open.write(bytes)
        {
            tracing::warn!(path = %open.path.display(), %error, "a server's log ends here");
            self.open = None;
        }
    }
}

impl Open {
    fn at(path: PathBuf) -> std::io::Result<Self> {
        if let Some(parent) = path.parent() {
            crate::files::create_private_directory(parent)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        crate::files::private(&mut options);
        let file = options.open(&path)?;
        let length = file.metadata()?.len();
        Ok(Self { path, file, length })
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.length > LARGEST {
            std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
            *self = Self::at(std::mem::take(&mut self.path))?;
        }
        self.length += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}
