//! Who may write a file now: one `mcpzip` at a time, and no client that keeps a lock of its own.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::Client;
use crate::files;

/// How long somebody else is waited for.
const LIMIT: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(20);

/// A lock directory that was not touched for so long has no owner any more: its owner would have.
const ABANDONED: Duration = Duration::from_secs(10);

/// The right to change clients' files; until it is dropped, no other `mcpzip` does.
#[derive(Debug)]
pub(super) struct Exclusive {
    _file: File,
}

impl Exclusive {
    /// Waits for the right, which is kept in `directory`.
    ///
    /// # Errors
    /// When another process has it for long, or the directory cannot be written to.
    pub(super) fn take(directory: &Path) -> io::Result<Self> {
        files::create_private_directory(directory)?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        files::private(&mut options);
        let file = options.open(directory.join("lock"))?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if start.elapsed() > LIMIT => {
                    return Err(io::Error::new(io::ErrorKind::WouldBlock, "another mcpzip is changing clients' files"));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

/// A client's own lock on a file of its.
#[derive(Debug)]
pub(super) struct ClientLock(PathBuf);

impl ClientLock {
    /// Waits for the lock of the client's file `path`; nothing where the client has none.
    ///
    /// # Errors
    /// When the client keeps it for long, or it cannot be made.
    pub(super) fn take(client: Option<Client>, path: &Path) -> io::Result<Option<Self>> {
        let is_locked =
            client == Some(Client::ClaudeCode) && path.file_name().is_some_and(|name| name == ".claude.json");
        if !is_locked {
            return Ok(None);
        }
        // A directory, for making one is atomic; beside the file that a link leads to.
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut lock = real.into_os_string();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let start = Instant::now();
        loop {
            match fs::create_dir(&lock) {
                Ok(()) => return Ok(Some(Self(lock))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let touched = fs::metadata(&lock).and_then(|metadata| metadata.modified());
                    let age = touched.ok().and_then(|touched| SystemTime::now().duration_since(touched).ok());
                    if age.is_some_and(|age| age > ABANDONED) {
                        // Somebody else may have removed it as well; the next round tells.
                        let _ = fs::remove_dir(&lock);
                    } else if start.elapsed() > LIMIT {
                        return Err(io::Error::new(io::ErrorKind::WouldBlock, "Claude Code keeps it locked"));
                    }
                    std::thread::sleep(PAUSE);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for ClientLock {
    fn drop(&mut self) {
        // It is abandoned after a while in any case.
        let _ = fs::remove_dir(&self.0);
    }
}
