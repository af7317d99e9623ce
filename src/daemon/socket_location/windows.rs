//! The directory for the lock and the key of a named pipe, and the identity of this process.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::{Environment, Paths};

/// Why a directory cannot have the lock and the key.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Unusable(#[from] io::Error);

/// The name of the pipe.
pub(super) fn address(_: &Path, name: &str) -> PathBuf {
    PathBuf::from(format!(r"\\.\pipe\mcpzip-{name}"))
}

/// The state directory is in the user's profile, which other users cannot read.
pub(super) fn directories(paths: &Paths, _: &Environment) -> Vec<PathBuf> {
    vec![paths.state_dir.join("run")]
}

pub(super) fn prepare(directory: &Path) -> Result<(), Unusable> {
    Ok(crate::files::create_private_directory(directory)?)
}

/// A process with fewer rights cannot open the pipe of one with more, and runs alone.
pub(super) fn confinement(_: &mut impl FnMut(&[u8])) -> io::Result<()> {
    Ok(())
}
