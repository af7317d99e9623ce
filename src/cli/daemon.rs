//! `mcpzip daemon`: shows, stops, restarts and runs the process that serves all sessions.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::diagnostics::Exit;
use super::logs;
use super::output::{Output, faint, good, strong};
use super::printable::printable;
use crate::config::{Environment, Paths};
use crate::daemon::{self, Answer};
use crate::proxy::counted;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show the daemon and its sessions
    #[command(after_help = "Examples:
  mcpzip daemon status
  mcpzip daemon status --json")]
    Status,
    /// Stop the daemon; its sessions continue, each with servers of its own
    #[command(after_help = "Examples:
  mcpzip daemon stop
  mcpzip daemon stop --json")]
    Stop,
    /// Replace the daemon with a new process that takes over its sessions
    #[command(after_help = "Examples:
  mcpzip daemon restart
  mcpzip daemon restart --json")]
    Restart,
    /// Run the daemon in the foreground, for a service manager
    #[command(after_help = "Examples:
  mcpzip daemon run
  mcpzip daemon run --log info")]
    Run,
    /// Show what the daemon wrote to stderr: warnings and errors
    #[command(after_help = "Examples:
  mcpzip daemon logs
  mcpzip daemon logs -f")]
    Logs(LogArguments),
}

#[derive(Debug, Args)]
pub(super) struct LogArguments {
    /// Keep printing new lines until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Number of lines to begin with
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 50)]
    lines: usize,
}

/// The daemon's answer to `daemon.status`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Status {
    version: String,
    process: u32,
    uptime: u64,
    idle: f64,
    sessions: Vec<Session>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Session {
    process: u32,
    directory: std::path::PathBuf,
    generation: u32,
    since: u64,
}

pub(super) async fn run(
    command: Command,
    paths: Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    match command {
        Command::Status => show(&paths, environment, output),
        Command::Stop => order(&paths, environment, "daemon.stop", "stopped", output),
        Command::Restart => order(&paths, environment, "daemon.restart", "restarted", output),
        Command::Run => {
            leave_directory()?;
            output.note(
                "the daemon runs until it is stopped, or has had no session for its idle time",
            );
            Ok(daemon::run_here(paths, environment).await?)
        }
        Command::Logs(arguments) => {
            let path = paths.state_dir.join(crate::app::LOGS).join(daemon::STDERR);
            if !path.exists() && !arguments.follow {
                return Err(Exit::failed("no daemon has written anything yet"));
            }
            logs::show(&path, "daemon", arguments.lines, arguments.follow, output)
        }
    }
}

/// Runs the daemon that a session started. It changes to `/`, so that it keeps no directory in use.
pub(super) async fn run_started(paths: Paths, environment: &Environment) -> Result<(), Exit> {
    leave_directory()?;
    Ok(daemon::run_started(paths, environment).await?)
}

fn leave_directory() -> std::io::Result<()> {
    std::env::set_current_dir("/")
}

/// Asks the daemon for its status. `None` if none runs for these paths.
pub(super) fn status(paths: &Paths, environment: &Environment) -> Result<Option<Status>, String> {
    match daemon::ask(paths, environment, "daemon.status")? {
        Answer::None => Ok(None),
        Answer::Result(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| format!("the daemon's answer cannot be read: {error}")),
    }
}

/// A short description of the daemon for `status` and `doctor`.
pub(super) fn sentence(status: &Status) -> String {
    format!(
        "process {}, {}",
        status.process,
        counted(status.sessions.len(), "session")
    )
}

fn show(paths: &Paths, environment: &Environment, output: &Output) -> Result<(), Exit> {
    let status = status(paths, environment).map_err(Exit::failed)?;
    let alone = daemon::reasons(&paths.state_dir);
    if output.is_json() {
        let alone: Vec<_> = alone
            .iter()
            .map(|(process, reason)| json!({ "process": process, "reason": reason }))
            .collect();
        output.json(&json!({ "running": status.is_some(), "daemon": status, "alone": alone }));
        return Ok(());
    }
    match &status {
        None => output.line("no daemon runs for this configuration"),
        Some(status) => {
            output.line(format!("{} {}", good("running:"), sentence(status)));
            for session in &status.sessions {
                let directory = session.directory.display().to_string();
                output.line(format!(
                    "  {}  {}",
                    strong(format!("process {}", session.process)),
                    printable(&directory)
                ));
            }
            output.line(faint(format!(
                "it ends {} s after its last session",
                status.idle
            )));
        }
    }
    for (process, reason) in alone {
        output.line(format!(
            "process {process} runs alone: {}",
            printable(&reason)
        ));
    }
    Ok(())
}

fn order(
    paths: &Paths,
    environment: &Environment,
    method: &str,
    done: &str,
    output: &Output,
) -> Result<(), Exit> {
    let answer = daemon::ask(paths, environment, method).map_err(Exit::failed)?;
    let was_running = matches!(answer, Answer::Result(_));
    if output.is_json() {
        output.json(&json!({ done: was_running }));
    } else if was_running {
        output.line(format!("the daemon is {done}"));
    } else {
        output.line("no daemon runs for this configuration");
    }
    Ok(())
}
