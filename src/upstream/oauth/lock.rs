//! Locks between processes, as files next to the protected ones.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::files;

/// The longest wait for another process that holds the lock.
const LOCK_LIMIT: Duration = Duration::from_secs(30);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The lock for renewing, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Locks the file at `path`, created if needed, against every other process and task.
///
/// # Errors
/// When it cannot be created, or `TimedOut` if another process holds it for too long.
pub(super) async fn lock_file(path: &Path) -> io::Result<Lock> {
    let directory = path.parent().unwrap_or(Path::new(""));
    files::create_private_directory(directory)?;
    let file = files::open_lock(path)?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) if start.elapsed() < LOCK_LIMIT => {
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::TimedOut.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}
