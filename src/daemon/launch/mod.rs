//! Starts a daemon as a process of its own.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::config::{Environment, Paths, env};
use crate::executable;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{detach, inherited, start};
#[cfg(windows)]
pub(super) use windows::{detach, inherited, start};

/// The hidden command of a daemon that is started for a session.
pub(crate) const COMMAND: &str = "__daemon";

/// Why the daemon cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[cfg(unix)]
    #[error("the socket `{}` cannot be bound: {source}", .path.display())]
    Bind {
        path: std::path::PathBuf,
        source: io::Error,
    },
    #[error("the daemon cannot be started: {0}")]
    Start(#[from] io::Error),
}

/// A command that runs the daemon for these paths. It inherits only the variables that it needs to find its files.
fn command(paths: &Paths, environment: &Environment) -> io::Result<Command> {
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
        .stdout(Stdio::null())
        .stderr(log(&logs).map_or_else(|_| Stdio::null(), Stdio::from));
    Ok(command)
}

/// Opens the daemon's stderr log, for messages that no other log gets.
fn log(directory: &Path) -> io::Result<File> {
    /// A larger log is overwritten, in bytes.
    const LARGEST: u64 = 1024 * 1024;
    crate::files::create_private_directory(directory)?;
    let path = directory.join(super::STDERR);
    let is_large = std::fs::metadata(&path).is_ok_and(|file| file.len() > LARGEST);
    let mut options = File::options();
    options.create(true);
    crate::files::private(&mut options);
    if is_large {
        options.write(true).truncate(true);
    } else {
        options.append(true);
    }
    options.open(path)
}
