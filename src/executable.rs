//! Starts this program again as a helper process: the guard, a worker for filters or scripts, or a server of the demo.
//!
//! An upgrade may replace or remove the file while `serve` runs. A child process must still be the same program,
//! because the two talk to each other.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The program's file at the start.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    path: PathBuf,
    length: u64,
    modified: Option<std::time::SystemTime>,
}

static AT_START: OnceLock<Option<Identity>> = OnceLock::new();

/// Records the program's file before it can be replaced.
pub(crate) fn remember() {
    AT_START.get_or_init(|| Identity::now().ok());
}

/// Whether this program is mcpzip, and not another one that has it as a library.
pub(crate) fn is_mcpzip() -> bool {
    AT_START.get().is_some() || cfg!(test)
}

/// Refuses to start a program again that is not mcpzip: in another program, each copy would start the next one.
fn own() -> io::Result<()> {
    if is_mcpzip() {
        return Ok(());
    }
    Err(io::Error::other(
        "it needs a process of mcpzip, and mcpzip is a library in this program",
    ))
}

/// The path of this program, for the user's files and commands.
///
/// # Errors
/// When the system does not report it, or the file was replaced or removed since the start.
pub(crate) fn path() -> io::Result<PathBuf> {
    intact()?;
    current()
}

/// A command that starts this program again, even if its file was replaced or removed.
///
/// # Errors
/// When `/proc` is not mounted, or the program is not mcpzip.
#[cfg(target_os = "linux")]
pub(crate) fn command() -> io::Result<Command> {
    use std::os::unix::process::CommandExt as _;
    /// Refers to the running program, not to the file that is now at its path.
    const RUNNING: &str = "/proc/self/exe";
    own()?;
    let mut command = Command::new(RUNNING);
    // The name that `ps` shows.
    command.arg0(std::fs::read_link(RUNNING)?);
    Ok(command)
}

/// A command that starts this program again.
///
/// # Errors
/// When the file was replaced or removed since the start. These systems cannot start the running program again.
#[cfg(not(target_os = "linux"))]
pub(crate) fn command() -> io::Result<Command> {
    own()?;
    path().map(Command::new)
}

/// The identity of the program's file, which differs between builds.
///
/// # Errors
/// When the system does not report it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn identity() -> io::Result<String> {
    let Identity {
        path,
        length,
        modified,
    } = Identity::now()?;
    Ok(format!("{} {length} {modified:?}", path.display()))
}

/// The identity of the program's file, which differs between builds.
///
/// # Errors
/// When `/proc` is not mounted.
#[cfg(target_os = "linux")]
pub(crate) fn identity() -> io::Result<String> {
    use std::os::unix::fs::MetadataExt as _;
    let file = std::fs::metadata("/proc/self/exe")?;
    Ok(format!(
        "{} {} {} {}",
        file.dev(),
        file.ino(),
        file.len(),
        file.mtime_nsec().wrapping_add(file.mtime() << 32)
    ))
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
        // Package managers install a link, which leads to the next version after an upgrade.
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
