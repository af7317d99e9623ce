//! Finds the user's daemon or starts it under a lock.
//!
//! A daemon exists if it accepts connections. After a crash its socket refuses them, and the next process replaces it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::socket_location::{self, SocketLocation};
use super::{endpoint, launch};
use crate::config::{Environment, Paths};

/// How long to wait for another process that holds the lock.
const LOCKED: Duration = Duration::from_secs(2);

/// Interval between two attempts to lock.
const TRY: Duration = Duration::from_millis(2);

/// How long to wait for a daemon that makes its own address.
const BEGIN: Duration = Duration::from_secs(15);

/// Why the daemon cannot be reached or started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Location(#[from] socket_location::Error),
    #[error(transparent)]
    Connect(#[from] endpoint::Error),
    #[error(transparent)]
    Start(#[from] launch::Error),
    #[error("the lock `{}` cannot be taken: {source}", .path.display())]
    Lock { path: PathBuf, source: io::Error },
    /// The time limit for the lock has passed.
    #[error("another process holds `{}` for too long", .0.display())]
    Locked(PathBuf),
    #[error("the daemon ended at once")]
    Ended,
}

/// The address of the daemon, and the parameters for its start.
pub(super) struct Way<'a> {
    pub(super) location: &'a SocketLocation,
    pub(super) paths: &'a Paths,
    pub(super) environment: &'a Environment,
}

/// Connects to the daemon by `connect`, and starts it if there is none. The daemon may not have accepted the connection yet. Needs the
/// runtime, which reaps a daemon that this process started.
///
/// # Errors
/// When the daemon cannot be reached or started.
pub(super) async fn reach<C>(
    &Way {
        location,
        paths,
        environment,
    }: &Way<'_>,
    connect: impl AsyncFn(&SocketLocation) -> Result<Option<C>, endpoint::Error>,
) -> Result<C, Error> {
    if let Some(connection) = connect(location).await? {
        return Ok(connection);
    }
    let _lock = lock(location)?;
    // Another process may have started it in the meantime.
    if let Some(connection) = connect(location).await? {
        return Ok(connection);
    }
    launch::start(location, paths, environment)?;
    let start = Instant::now();
    loop {
        match connect(location).await? {
            Some(connection) => return Ok(connection),
            None if cfg!(windows) && start.elapsed() < BEGIN => tokio::time::sleep(TRY).await,
            None => return Err(Error::Ended),
        }
    }
}

/// Takes the lock for starting or ending a daemon. It is released when the file is closed.
fn lock(location: &SocketLocation) -> Result<File, Error> {
    let failed = |source: io::Error| Error::Lock {
        path: location.lock(),
        source,
    };
    let file = open_lock(location).map_err(failed)?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if start.elapsed() < LOCKED => std::thread::sleep(TRY),
            Err(TryLockError::WouldBlock) => return Err(Error::Locked(location.lock())),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

/// Takes the lock. `None` if another process holds it.
///
/// # Errors
/// When the lock file cannot be opened or locked.
pub(super) fn try_lock(location: &SocketLocation) -> io::Result<Option<File>> {
    let file = open_lock(location)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn open_lock(location: &SocketLocation) -> io::Result<File> {
    crate::files::open_lock(&location.lock())
}
