//! Replaces the daemon on systems where sessions run without one.

use std::io;
use std::sync::Arc;

use super::{Commands, Outcome, Ran, Request};
use crate::config::{Environment, Paths};

/// The hidden command of a daemon, which is not used here.
pub(crate) const COMMAND: &str = "__daemon";

/// Every session runs without a daemon.
#[derive(Debug, thiserror::Error)]
#[error("there is no daemon on this system: each session runs its own servers")]
pub(crate) struct Error;

/// A daemon's answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The result as JSON.
    #[expect(dead_code, reason = "as on Linux")]
    Result(String),
    /// There is no daemon.
    None,
}

/// Every session runs without a daemon.
///
/// # Errors
/// Never.
#[expect(clippy::unused_async, reason = "as on Linux")]
pub(crate) async fn attach(_paths: &Paths, _request: &Request<'_>) -> io::Result<Outcome> {
    Ok(Outcome::Alone(Error.to_string()))
}

/// There is no socket.
///
/// # Errors
/// Always.
pub(crate) fn socket(_: &Paths, _: &Environment) -> Result<std::path::PathBuf, Error> {
    Err(Error)
}

/// There is never a daemon.
#[must_use]
pub(crate) fn is_there(_paths: &Paths, _environment: &Environment) -> bool {
    false
}

/// There is no daemon to run the command.
///
/// # Errors
/// Never.
#[expect(clippy::unused_async, reason = "as on Linux")]
pub(crate) async fn run_command(
    _paths: &Paths,
    _request: &Request<'_>,
    _command: String,
    _print: impl FnMut(&str),
) -> io::Result<Ran> {
    Ok(Ran::Not)
}

/// Nothing was recorded.
pub(crate) fn ended_alone(_paths: &Paths) {}

/// No reasons are recorded, because there is one for all processes.
#[must_use]
pub(crate) fn reasons(_state_dir: &std::path::Path) -> Vec<(u32, String)> {
    Vec::new()
}

/// There is no daemon to ask.
///
/// # Errors
/// Never.
pub(crate) fn ask(_: &Paths, _: &Environment, _: &str, _: &str) -> Result<Answer, Error> {
    Ok(Answer::None)
}

/// There is no daemon with events.
///
/// # Errors
/// Never.
pub(crate) fn listen(
    _: &Paths,
    _: &Environment,
    _: Option<u64>,
    _: impl FnMut(&str) -> bool,
) -> Result<bool, Error> {
    Ok(false)
}

/// Always fails.
///
/// # Errors
/// Always.
#[expect(clippy::unused_async, reason = "as on Linux")]
pub(crate) async fn run_started(
    _paths: Paths,
    _environment: &Environment,
    _commands: Arc<dyn Commands>,
) -> io::Result<()> {
    Err(io::Error::other(Error))
}

/// Always fails.
///
/// # Errors
/// Always.
#[expect(clippy::unused_async, reason = "as on Linux")]
pub(crate) async fn run_here(
    _paths: Paths,
    _environment: &Environment,
    _commands: Arc<dyn Commands>,
) -> io::Result<()> {
    Err(io::Error::other(Error))
}
