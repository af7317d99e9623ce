//! The starter binds the socket, and the daemon inherits the listener as its stdin, so that nothing has to wait.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixListener;

use crate::config::{Environment, Paths};
use crate::daemon::endpoint::{self, Listener};
use crate::daemon::socket_location::SocketLocation;

/// Starts a daemon. Its socket accepts connections when this returns. The caller must hold the lock.
pub(in crate::daemon) fn start(
    location: &SocketLocation,
    paths: &Paths,
    environment: &Environment,
) -> Result<(), super::Error> {
    let listener = endpoint::bind(location).map_err(|source| super::Error::Bind {
        path: location.address(),
        source,
    })?;
    let mut command = super::command(paths, environment)?;
    command.stdin(OwnedFd::from(listener));
    // The runtime reaps it when it ends.
    tokio::process::Command::from(command).spawn()?;
    Ok(())
}

/// Leaves the client's terminal, process group and control group.
pub(in crate::daemon) fn detach(environment: &Environment) -> io::Result<()> {
    rustix::process::setsid()?;
    #[cfg(target_os = "linux")]
    super::super::scope::leave_control_group(environment);
    #[cfg(not(target_os = "linux"))]
    let _ = environment;
    Ok(())
}

/// The listener that was passed as stdin. `None` if stdin is none.
pub(in crate::daemon) fn inherited() -> io::Result<Option<Listener>> {
    if !is_listener() {
        return Ok(None);
    }
    let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    Listener::new(listener).map(Some)
}

#[cfg(target_os = "linux")]
fn is_listener() -> bool {
    rustix::net::sockopt::socket_acceptconn(io::stdin()).unwrap_or(false)
}

/// A socket with a path is the daemon's; those of clients have none.
#[cfg(not(target_os = "linux"))]
fn is_listener() -> bool {
    let stdin = io::stdin().as_fd().try_clone_to_owned();
    let address = stdin.and_then(|stdin| UnixListener::from(stdin).local_addr());
    address.is_ok_and(|address| address.as_pathname().is_some())
}
