//! This very program, started once more: the guard, the filter worker, the servers of the demo.
//!
//! An upgrade may replace or remove the file while a `serve` runs on. What that process starts must still be the program that it
//! is itself, since the two speak to each other.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The file as it was at the start.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    path: PathBuf,
    length: u64,
    modified: Option<std::time::SystemTime>,
}

static AT_START: OnceLock<Option<Identity>> = OnceLock::new();

/// Notes which file this program is, before anything can replace it.
pub(crate) fn remember() {
    AT_START.get_or_init(|| Identity::now().ok());
}

/// Where this program is, for files and commands of the user's.
///
/// # Errors
/// When the system does not say, or the file was replaced or removed since the start.
pub(crate) fn path() -> io::Result<PathBuf> {
    intact()?;
    current()
}

/// A command that starts this program again, also after its file was replaced or removed.
///
/// # Errors
/// When `/proc` is not mounted.
#[cfg(target_os = "linux")]
pub(crate) fn command() -> io::Result<Command> {
    use std::os::unix::process::CommandExt as _;
    /// Leads to the program that runs, not to what is at its path now.
    const RUNNING: &str = "/proc/self/exe";
    let mut command = Command::new(RUNNING);
    // Shown by `ps`.
    command.arg0(std::fs::read_link(RUNNING)?);
    Ok(command)
}

/// A command that starts this program again.
///
/// # Errors
/// When the file was replaced or removed since the start: the system has no way to start the program that runs.
#[cfg(not(target_os = "linux"))]
pub fn command() -> io::Result<Command> {
    path().map(Command::new)
}

fn intact() -> io::Result<()> {
    let Some(Some(start)) = AT_START.get() else {
        return Ok(());
    };
    if Identity::of(start.path.clone()).is_ok_and(|now| now == *start) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "`{}` was replaced or removed while this mcpzip ran: start it again",
        start.path.display()
    )))
}

impl Identity {
    fn now() -> io::Result<Self> {
        // Package managers put a link in front, which leads to the next version after an upgrade.
        Self::of(current()?.canonicalize()?)
    }

    fn of(path: PathBuf) -> io::Result<Self> {
        let metadata = path.metadata()?;
        Ok(Self {
            path,
            length: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }
}

fn current() -> io::Result<PathBuf> {
    std::env::current_exe()
}
