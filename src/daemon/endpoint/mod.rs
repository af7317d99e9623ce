//! The daemon's address as the system has it: a Unix socket, or a named pipe of Windows. Both have the same functions.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

#[cfg(target_os = "linux")]
pub(super) use system::asynchronous;
#[cfg(unix)]
pub(super) use system::bind;
pub(super) use system::{
    Blocking, Claim, Error, Listener, Stream, check_user, connect, connect_blocking, limit,
    peer_process,
};
