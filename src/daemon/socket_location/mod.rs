//! The address of a user's daemon. The name of its socket is a hash of everything that must match, so that different
//! builds or configurations never meet.

use std::io;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use super::message::PROTOCOL;
use crate::config::{Environment, Paths};

pub(super) use system::Unusable;
#[cfg(unix)]
pub(super) use system::{check, directories};

/// Why there is no location for the socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The socket's name needs the confinement.
    #[error("the confinement of this process cannot be read: {0}")]
    Confinement(#[source] io::Error),
    /// Each directory with its fault.
    #[error("no directory for the socket: {}", listed(.0))]
    NoDirectory(Vec<(PathBuf, Unusable)>),
}

fn listed(refusals: &[(PathBuf, Unusable)]) -> String {
    let refusals = refusals.iter();
    let texts: Vec<String> = refusals
        .map(|(directory, reason)| format!("`{}`: {reason}", directory.display()))
        .collect();
    texts.join("; ")
}

/// The directory of a user's sockets, and the name of the socket for these paths.
#[derive(Debug, Clone)]
pub(super) struct SocketLocation {
    pub(super) directory: PathBuf,
    name: String,
}

impl SocketLocation {
    /// Finds the first usable directory.
    ///
    /// # Errors
    /// When no directory is usable.
    pub(super) fn find(paths: &Paths, environment: &Environment) -> Result<Self, Error> {
        let name = name(paths).map_err(Error::Confinement)?;
        let mut refusals = Vec::new();
        for directory in system::directories(paths, environment) {
            match system::prepare(&directory) {
                Ok(()) => return Ok(Self { directory, name }),
                Err(reason) => refusals.push((directory, reason)),
            }
        }
        Err(Error::NoDirectory(refusals))
    }

    /// The socket's path, or the pipe's name.
    pub(super) fn address(&self) -> PathBuf {
        system::address(&self.directory, &self.name)
    }

    /// The file name of the socket.
    #[cfg(target_os = "linux")]
    pub(super) fn file_name(&self) -> String {
        format!("{}.sock", self.name)
    }

    /// The key of the pipe.
    #[cfg(windows)]
    pub(super) fn key(&self) -> PathBuf {
        self.directory.join("key")
    }

    /// The lock file for starting or ending a daemon. It is never removed.
    pub(super) fn lock(&self) -> PathBuf {
        self.directory.join(format!("{}.lock", self.name))
    }
}

/// A hash of the protocol version, the build, the paths and the confinement of this process.
fn name(paths: &Paths) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    add(&PROTOCOL.to_le_bytes());
    add(env!("CARGO_PKG_VERSION").as_bytes());
    add(crate::executable::identity()?.as_bytes());
    for path in [&paths.config_file, &paths.cache_dir, &paths.state_dir] {
        add(path.as_os_str().as_encoded_bytes());
    }
    system::confinement(&mut add)?;
    Ok(crate::text::hex(&hash.finalize()[..12]))
}
