//! The transfer of a client's bytes from the session's process to the daemon: its descriptors are passed (on Linux
//! only), or its bytes are relayed.

use std::io;

#[cfg(target_os = "linux")]
mod passed;
#[cfg(not(target_os = "linux"))]
mod relayed;

#[cfg(target_os = "linux")]
pub(super) use passed::{Carriage, Carried, Connection, examine};
#[cfg(not(target_os = "linux"))]
pub(super) use relayed::{Carriage, Carried, Connection, examine};

/// Why the client's streams cannot be carried.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// stdin or stdout cannot be inspected.
    #[cfg(target_os = "linux")]
    #[error("{name} cannot be used: {source}")]
    Stream {
        name: &'static str,
        source: rustix::io::Errno,
    },
    #[cfg(target_os = "linux")]
    #[error("{0} is neither a pipe nor a socket")]
    StreamKind(&'static str),
    #[cfg(target_os = "linux")]
    #[error("{0} is a datagram socket")]
    Datagrams(&'static str),
    #[cfg(not(target_os = "linux"))]
    #[error("{0} is a terminal")]
    Terminal(&'static str),
    #[error("the client's pipes cannot be relayed: {0}")]
    Relay(#[source] io::Error),
}
