//! A Unix socket in a directory that only its user can enter.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;
use tokio::net::{UnixListener, UnixStream};

use crate::daemon::socket_location::SocketLocation;

/// Maximum length of a socket's path, in bytes.
#[cfg(target_os = "linux")]
const LONGEST: usize = 107;

pub(in crate::daemon) type Stream = UnixStream;
pub(in crate::daemon) type Blocking = std::os::unix::net::UnixStream;

/// Why the socket cannot be connected to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The user who listens on the socket cannot be determined.
    #[error("the socket's owner is not known: {0}")]
    Owner(#[source] io::Error),
    #[error("the socket `{}` is another user's", .0.display())]
    AnotherUser(PathBuf),
    #[error("the socket `{}` cannot be connected to: {source}", .path.display())]
    Connect { path: PathBuf, source: io::Error },
    #[error("the connection to the daemon cannot be polled: {0}")]
    Poll(#[source] io::Error),
}

/// The listening side.
#[derive(Debug)]
pub(in crate::daemon) struct Listener(UnixListener);

/// The identity of a socket file: its device and inode. No other file gets them while the socket is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::daemon) struct Claim(u64, u64);

impl Listener {
    /// Listens on a socket that was bound before.
    pub(in crate::daemon) fn new(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        UnixListener::from_std(listener).map(Self)
    }

    /// Listens for a daemon in the foreground. The caller must hold the lock.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    pub(in crate::daemon) async fn claim(location: &SocketLocation) -> io::Result<Self> {
        Self::new(bind(location)?)
    }

    /// Accepts a connection. Dropping the future loses none.
    pub(in crate::daemon) async fn accept(&mut self) -> io::Result<Stream> {
        self.0.accept().await.map(|(stream, _)| stream)
    }
}

/// Binds the socket, replacing one that refuses connections. The caller must hold the lock.
pub(in crate::daemon) fn bind(
    location: &SocketLocation,
) -> io::Result<std::os::unix::net::UnixListener> {
    match std::fs::remove_file(location.address()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bind = |path: &Path| std::os::unix::net::UnixListener::bind(path);
    let listener = with_short_path(location, bind);
    rustix::process::umask(before);
    listener
}

/// Connects to a running daemon. `None` if there is none.
///
/// # Errors
/// When a socket exists but cannot be used.
pub(in crate::daemon) fn connect_blocking(
    location: &SocketLocation,
) -> Result<Option<Blocking>, Error> {
    match with_short_path(location, |path| Blocking::connect(path)) {
        Ok(socket) => match is_own(&socket).map_err(Error::Owner)? {
            true => Ok(Some(socket)),
            false => Err(Error::AnotherUser(location.address())),
        },
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound
            ) =>
        {
            Ok(None)
        }
        Err(source) => Err(Error::Connect {
            path: location.address(),
            source,
        }),
    }
}

/// Connects to a running daemon, like [`connect_blocking`].
///
/// # Errors
/// When a socket exists but cannot be used.
pub(in crate::daemon) async fn connect(location: &SocketLocation) -> Result<Option<Stream>, Error> {
    let socket = connect_blocking(location)?;
    let stream = socket.map(asynchronous).transpose();
    stream.map_err(Error::Poll)
}

/// A connection for the runtime.
///
/// # Errors
/// When it cannot be polled.
pub(in crate::daemon) fn asynchronous(socket: Blocking) -> io::Result<Stream> {
    socket.set_nonblocking(true)?;
    Stream::from_std(socket)
}

/// Limits the time of each read and write.
pub(in crate::daemon) fn limit(socket: &Blocking, limit: Option<Duration>) -> io::Result<()> {
    socket.set_read_timeout(limit)?;
    socket.set_write_timeout(limit)
}

/// Checks that the process at the other end has the user of this one.
///
/// # Errors
/// When it has another user.
pub(in crate::daemon) async fn check_user(stream: &mut Stream) -> io::Result<()> {
    if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("another user connected"));
    }
    Ok(())
}

/// The process at the other end.
pub(in crate::daemon) fn peer_process(stream: &Stream) -> Option<i32> {
    stream.peer_cred().ok()?.pid()
}

#[cfg(target_os = "linux")]
fn is_own(socket: &Blocking) -> io::Result<bool> {
    let peer = rustix::net::sockopt::socket_peercred(socket)?;
    Ok(peer.uid == rustix::process::geteuid())
}

/// The directory was checked: only this user can make a socket in it.
#[cfg(not(target_os = "linux"))]
fn is_own(_: &Blocking) -> io::Result<bool> {
    Ok(true)
}

impl Claim {
    /// The socket that is there.
    pub(in crate::daemon) fn at(location: &SocketLocation) -> Option<Self> {
        let metadata = std::fs::symlink_metadata(location.address()).ok()?;
        Some(Self(metadata.dev(), metadata.ino()))
    }

    /// Removes the socket file if it is still this one. The caller should hold the lock.
    pub(in crate::daemon) fn release(claim: Option<Self>, location: &SocketLocation) {
        if claim.is_some() && Self::at(location) == claim {
            // If this fails, the socket refuses connections, and the next daemon replaces it.
            let _ = std::fs::remove_file(location.address());
        }
    }
}

/// Calls `with` with a path that is short enough to bind or connect a socket, even if the real path is too long.
#[cfg(target_os = "linux")]
fn with_short_path<T>(
    location: &SocketLocation,
    with: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let socket = location.address();
    if socket.as_os_str().len() <= LONGEST {
        return with(&socket);
    }
    use std::os::fd::AsRawFd as _;
    let directory = std::fs::File::open(&location.directory)?;
    let link = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string());
    with(&link.join(location.file_name()))
}

/// A path that is too long is an error of the system, and the session runs alone.
#[cfg(not(target_os = "linux"))]
fn with_short_path<T>(
    location: &SocketLocation,
    with: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    with(&location.address())
}
