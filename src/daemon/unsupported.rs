//! Systems on which sessions run without a daemon.

use std::io;
use std::sync::Arc;

use super::{Commands, Outcome, Ran, Request};
use crate::config::{Environment, Paths};

/// The hidden command that a daemon runs as; never used here.
pub(crate) const COMMAND: &str = "__daemon";

const REASON: &str = "there is no daemon on this system: each session runs its own servers";

/// What a daemon answers.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The result, as JSON.
    #[expect(dead_code, reason = "as on Linux")]
    Result(String),
    /// There is no daemon.
    None,
}

/// Every session runs alone.
///
/// # Errors
/// Never.
#[expect(clippy::unused_async, reason = "as on Linux")]
pub(crate) async fn attach(_paths: &Paths, _request: &Request<'_>) -> io::Result<Outcome> {
    Ok(Outcome::Alone(REASON.to_owned()))
}

/// There is none.
///
/// # Errors
/// Always.
pub(crate) fn socket(_: &Paths, _: &Environment) -> Result<std::path::PathBuf, String> {
    Err(REASON.to_owned())
}

/// There never is one.
#[must_use]
pub(crate) fn is_there(_paths: &Paths, _environment: &Environment) -> bool {
    false
}

/// There is none to run it.
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

/// Nothing was noted.
pub(crate) fn ended_alone(_paths: &Paths) {}

/// No reasons are noted: there is one for all.
#[must_use]
pub(crate) fn reasons(_state_dir: &std::path::Path) -> Vec<(u32, String)> {
    Vec::new()
}

/// There is none to ask.
///
/// # Errors
/// Never.
pub(crate) fn ask(_: &Paths, _: &Environment, _: &str, _: &str) -> Result<Answer, String> {
    Ok(Answer::None)
}

/// There is none to listen to.
///
/// # Errors
/// Never.
pub(crate) fn listen(
    _: &Paths,
    _: &Environment,
    _: Option<u64>,
    _: impl FnMut(&str) -> bool,
) -> Result<bool, String> {
    Ok(false)
}

/// Refuses.
///
/// # Errors
/// Always.
#[expect(clippy::unused_async, reason = "as on Linux")]
pub(crate) async fn run_started(
    _paths: Paths,
    _environment: &Environment,
    _commands: Arc<dyn Commands>,
) -> io::Result<()> {
    Err(io::Error::other(REASON))
}

/// Refuses.
///
/// # Errors
/// Always.
#[expect(clippy::unused_async, reason = "as on Linux")]
pub(crate) async fn run_here(
    _paths: Paths,
    _environment: &Environment,
    _commands: Arc<dyn Commands>,
) -> io::Result<()> {
    Err(io::Error::other(REASON))
}
