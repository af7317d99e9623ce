//! Finds the user's daemon or starts it. Under a lock, this process binds the socket and passes the listener to the
//! daemon as its stdin.
//!
//! A daemon exists if its socket accepts connections. After a crash the socket refuses them, and the next process
//! replaces it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, flock};
use rustix::io::Errno;

use super::socket_location::{self, SocketLocation};
use crate::config::{Environment, Paths, env};
use crate::executable;

/// How long to wait for another process that holds the lock.
const LOCKED: Duration = Duration::from_secs(2);

/// Interval between two attempts to lock.
const TRY: Duration = Duration::from_millis(2);

/// The hidden command of a daemon that is started for a session.
pub(crate) const COMMAND: &str = "__daemon";

/// The reason why the daemon cannot be reached or started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Location(#[from] socket_location::Error),
    /// The user who listens on the socket cannot be determined.
    #[error("the socket's owner is not known: {0}")]
    Owner(#[source] Errno),
    #[error("the socket `{}` is another user's", .0.display())]
    AnotherUser(PathBuf),
    #[error("the socket `{}` cannot be connected to: {source}", .path.display())]
    Connect { path: PathBuf, source: io::Error },
    #[error("the socket `{}` cannot be bound: {source}", .path.display())]
    Bind { path: PathBuf, source: io::Error },
    #[error("the lock `{}` cannot be taken: {source}", .path.display())]
    Lock { path: PathBuf, source: io::Error },
    /// The time limit for the lock has passed.
    #[error("another process holds `{}` for too long", .0.display())]
    Locked(PathBuf),
    #[error("the daemon cannot be started: {0}")]
    Start(#[source] io::Error),
    #[error("the daemon ended at once")]
    Ended,
}

/// Connects to the daemon, and starts it if there is none. The daemon may not have accepted the connection yet. Needs the runtime, which
/// reaps a daemon that this process started.
///
/// # Errors
/// When the daemon cannot be reached or started.
pub(super) fn reach(
    location: &SocketLocation,
    paths: &Paths,
    environment: &Environment,
) -> Result<UnixStream, Error> {
    if let Some(socket) = connect(location)? {
        return Ok(socket);
    }
    let _lock = lock(location)?;
    // Another process may have started it in the meantime.
    if let Some(socket) = connect(location)? {
        return Ok(socket);
    }
    let listener = bind(location).map_err(|source| Error::Bind {
        path: location.socket(),
        source,
    })?;
    start(listener, paths, environment).map_err(Error::Start)?;
    connect(location)?.ok_or(Error::Ended)
}

/// Connects to a running daemon. `None` if there is none.
///
/// # Errors
/// When a socket exists but cannot be used.
pub(super) fn connect(location: &SocketLocation) -> Result<Option<UnixStream>, Error> {
    match location.with_short_path(|path| UnixStream::connect(path)) {
        Ok(socket) => {
            let peer = rustix::net::sockopt::socket_peercred(&socket).map_err(Error::Owner)?;
            if peer.uid != rustix::process::geteuid() {
                return Err(Error::AnotherUser(location.socket()));
            }
            Ok(Some(socket))
        }
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound
            ) =>
        {
            Ok(None)
        }
        Err(source) => Err(Error::Connect {
            path: location.socket(),
            source,
        }),
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
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) if start.elapsed() < LOCKED => std::thread::sleep(TRY),
            Err(Errno::WOULDBLOCK) => return Err(Error::Locked(location.lock())),
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error.into())),
        }
    }
}

/// Takes the lock. `None` if another process holds it.
///
/// # Errors
/// When the lock file cannot be opened or locked.
pub(super) fn try_lock(location: &SocketLocation) -> io::Result<Option<File>> {
    let file = open_lock(location)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn open_lock(location: &SocketLocation) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    options.open(location.lock())
}

/// Binds the socket, replacing one that refuses connections. The caller must hold the lock.
pub(super) fn bind(location: &SocketLocation) -> io::Result<UnixListener> {
    match std::fs::remove_file(location.socket()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let listener = location.with_short_path(|path| UnixListener::bind(path));
    rustix::process::umask(before);
    listener
}

/// Starts a daemon. It inherits only the listener, the paths and the variables that it needs to find its files.
fn start(listener: UnixListener, paths: &Paths, environment: &Environment) -> io::Result<()> {
    // Descriptors that the client left open would otherwise stay open as long as the daemon.
    close_fds::set_fds_cloexec(3, &[]);
    let logs = paths.state_dir.join(super::LOGS);
    let variables = env::OF_DAEMON
        .iter()
        .filter_map(|name| Some((name, environment.get(name)?)));
    let mut command = executable::command()?;
    command
        .arg(COMMAND)
        .arg("--config")
        .arg(&paths.config_file)
        .arg("--cache-dir")
        .arg(&paths.cache_dir)
        .arg("--state-dir")
        .arg(&paths.state_dir)
        .env_clear()
        .envs(variables)
        .stdin(OwnedFd::from(listener))
        .stdout(Stdio::null())
        .stderr(log(&logs).map_or_else(|_| Stdio::null(), Stdio::from));
    // The runtime reaps it when it ends.
    tokio::process::Command::from(command).spawn().map(drop)
}

/// Opens the daemon's stderr log, for messages that no other log gets.
fn log(directory: &std::path::Path) -> io::Result<File> {
    /// A larger log is overwritten, in bytes.
    const LARGEST: u64 = 1024 * 1024;
    crate::files::create_private_directory(directory)?;
    let path = directory.join(super::STDERR);
    let is_large = std::fs::metadata(&path).is_ok_and(|file| file.len() > LARGEST);
    let mut options = File::options();
    options.create(true).mode(0o600);
    if is_large {
        options.write(true).truncate(true);
    } else {
        options.append(true);
    }
    options.open(path)
}
