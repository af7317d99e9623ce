//! Locks on clients' files: against other `mcpzip` processes, and against clients with locks of their own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::Client;
use crate::config::{FileLock, link_target};
use crate::files;

/// The time to wait for a client.
const LIMIT: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(20);

/// A lock directory not touched for this long is abandoned: an owner touches it more often.
const ABANDONED: Duration = Duration::from_secs(10);

/// Waits for the lock in `directory` that only one `mcpzip` process holds while it changes clients' files.
///
/// # Errors
/// When another process holds it for too long, or the directory cannot be written.
pub(super) fn exclusive(directory: &Path) -> io::Result<FileLock> {
    files::leads_nowhere(directory).map_or(Ok(()), Err)?;
    files::create_private_directory(directory)?;
    let lock = FileLock::acquire(&directory.join("runs"))?;
    lock.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::WouldBlock,
            "another mcpzip is changing clients' files",
        )
    })
}

/// The lock of one file, in the form that its other writers use.
#[derive(Debug)]
pub(super) enum Lock {
    /// The client's own lock.
    Client(#[expect(dead_code, reason = "it is held, not read")] ClientLock),
    /// The lock of our own configuration.
    Own(#[expect(dead_code, reason = "it is held, not read")] FileLock),
}

/// A lock directory, because creating one is atomic.
#[derive(Debug)]
pub(super) struct ClientLock(PathBuf);

impl Lock {
    /// Waits for the lock of `path`, a file of the client or of mcpzip. `None` if the client has no locks.
    ///
    /// # Errors
    /// When another program holds it for too long, or it cannot be created.
    pub(super) fn acquire(client: Option<Client>, path: &Path) -> io::Result<Option<Self>> {
        let Some(client) = client else {
            let lock = FileLock::acquire(&link_target(path)?)?;
            let busy = || io::Error::new(io::ErrorKind::WouldBlock, "another mcpzip is editing it");
            return lock.ok_or_else(busy).map(|lock| Some(Self::Own(lock)));
        };
        let is_locked = client == Client::ClaudeCode
            && path.file_name().is_some_and(|name| name == ".claude.json");
        if !is_locked {
            return Ok(None);
        }
        // Next to the file that a link leads to.
        let mut lock = link_target(path)?.into_os_string();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let start = Instant::now();
        loop {
            match fs::create_dir(&lock) {
                Ok(()) => return Ok(Some(Self::Client(ClientLock(lock)))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if is_abandoned(&lock) {
                        remove_abandoned(&lock)?;
                    } else if start.elapsed() > LIMIT {
                        return Err(io::Error::new(
                            io::ErrorKind::WouldBlock,
                            "Claude Code keeps it locked",
                        ));
                    }
                    std::thread::sleep(PAUSE);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_abandoned(lock: &Path) -> bool {
    let touched = fs::symlink_metadata(lock).and_then(|metadata| metadata.modified());
    let age = touched
        .ok()
        .and_then(|touched| SystemTime::now().duration_since(touched).ok());
    age.is_some_and(|age| age > ABANDONED)
}

/// Removes an abandoned lock as the client's own library does: only an empty directory.
///
/// # Errors
/// When it is something else, which no program will ever remove.
fn remove_abandoned(lock: &Path) -> io::Result<()> {
    match fs::remove_dir(lock) {
        Ok(()) => Ok(()),
        // Another process removed it first.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io::Error::new(
            error.kind(),
            format!(
                "its lock `{}` was left behind and cannot be removed ({error}); remove it while Claude Code is not running",
                lock.display()
            ),
        )),
    }
}

impl Drop for ClientLock {
    fn drop(&mut self) {
        // It counts as abandoned after a while in any case.
        let _ = fs::remove_dir(&self.0);
    }
}
