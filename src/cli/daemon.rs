//! `mcpzip daemon`: shows, stops, restarts and runs the process that serves all sessions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::completions;
use super::daemon_unit;
use super::diagnostics::Exit;
use super::logs;
use super::output::{Output, bad, caution, faint, good, strong};
use super::printable::printable;
use super::recorder::Recorder;
use crate::audit::{Kind, Outcome};
use crate::config::{Config, Environment, Paths};
use crate::daemon::{self, Answer, Commands};
use crate::pause::{Pause, Paused};
use crate::proxy::counted;
use crate::text::chain;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show the daemon and its sessions
    #[command(after_help = "Examples:
  mcpzip daemon status
  mcpzip daemon status --json")]
    Status,
    /// Stop the daemon or one server; sessions continue without the daemon, each with servers of its own
    #[command(after_help = "Examples:
  mcpzip daemon stop
  mcpzip daemon stop github

A server that is stopped starts again with the next call.")]
    Stop(OneServer),
    /// Replace the daemon with a new process that takes over its sessions, or restart one server
    #[command(after_help = "Examples:
  mcpzip daemon restart
  mcpzip daemon restart github")]
    Restart(OneServer),
    /// Make all sessions read their configuration again
    #[command(after_help = "Examples:
  mcpzip daemon reload
  mcpzip daemon reload --json")]
    Reload,
    /// Pause mcpzip: until it is resumed, no new call of any session reaches a server
    #[command(after_help = "Examples:
  mcpzip daemon pause
  mcpzip daemon pause --json

Calls in progress run to their end, and calls that wait for approval keep waiting. Agents get an error that says how to resume mcpzip. Lists and search still work. The pause applies to all processes with this state directory, also without a daemon, until `mcpzip daemon resume`.")]
    Pause,
    /// Resume mcpzip after `mcpzip daemon pause`
    #[command(after_help = "Examples:
  mcpzip daemon resume
  mcpzip daemon resume --json")]
    Resume,
    /// Show events as they happen: servers, sessions and calls; Ctrl-C ends it
    #[command(after_help = "Examples:
  mcpzip daemon events
  mcpzip daemon events --since 0 --json | jq .kind")]
    Events(EventArguments),
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
    /// Write a service: systemd units that start the daemon on demand; on macOS and Windows one that serves HTTP clients
    #[command(after_help = "Examples:
  mcpzip daemon install
  mcpzip daemon install --dry-run
  mcpzip daemon install --dry-run --for macos

The command that starts the service is printed, and not run. After an update of mcpzip the daemon's socket has another name: install the units again.")]
    Install(daemon_unit::Arguments),
    /// Remove the files of the service
    #[command(after_help = "Examples:
  mcpzip daemon uninstall
  mcpzip daemon uninstall --dry-run")]
    Uninstall(daemon_unit::Arguments),
}

#[derive(Debug, Args)]
pub(super) struct OneServer {
    /// Only this server, for all sessions that have it
    #[arg(add = completions::of_servers())]
    server: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct EventArguments {
    /// First event to show, by its number, from those that are kept
    #[arg(long, value_name = "NUMBER")]
    since: Option<u64>,
}

#[derive(Debug, Args)]
pub(super) struct LogArguments {
    /// Keep printing new lines until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Number of lines to begin with
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "50", allow_negative_numbers = true, value_parser = logs::lines)]
    lines: usize,
}

/// The message if no daemon runs.
const NONE: &str = "no daemon runs for this configuration";

/// The daemon's answer to `daemon.status`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Status {
    version: String,
    process: u32,
    uptime: u64,
    idle: f64,
    socket: std::path::PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<Http>,
    windows: usize,
    sessions: Vec<Session>,
}

/// How the daemon serves HTTP clients.
#[derive(Debug, Serialize, Deserialize)]
struct Http {
    address: Option<String>,
    url: Option<String>,
    reason: Option<String>,
    has_token: bool,
    variables_of: u32,
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
    commands: Arc<dyn Commands>,
) -> Result<(), Exit> {
    match command {
        Command::Status => show(&paths, environment, output),
        Command::Stop(server) => {
            let order = Order {
                method: "stop",
                done: "stopped",
            };
            order.give(&server, &paths, environment, output)
        }
        Command::Restart(server) => {
            let order = Order {
                method: "restart",
                done: "restarted",
            };
            order.give(&server, &paths, environment, output)
        }
        Command::Reload => reload(&paths, environment, output),
        Command::Pause => switch(true, &paths, environment, output).await,
        Command::Resume => switch(false, &paths, environment, output).await,
        Command::Events(arguments) => events(&arguments, &paths, environment, output),
        Command::Run => {
            leave_directory()?;
            output.note(
                "the daemon runs until it is stopped, or has had no session for its idle time; with `http.address` it stays",
            );
            Ok(daemon::run_here(paths, environment, commands).await?)
        }
        Command::Install(arguments) => {
            daemon_unit::install(&arguments, &paths, environment, output)
        }
        Command::Uninstall(arguments) => {
            daemon_unit::uninstall(&arguments, &paths, environment, output)
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
pub(super) async fn run_started(
    paths: Paths,
    environment: &Environment,
    commands: Arc<dyn Commands>,
) -> Result<(), Exit> {
    leave_directory()?;
    Ok(daemon::run_started(paths, environment, commands).await?)
}

fn leave_directory() -> std::io::Result<()> {
    std::env::set_current_dir("/")
}

/// Asks the daemon for its status. `None` if none runs for these paths.
pub(super) fn status(paths: &Paths, environment: &Environment) -> anyhow::Result<Option<Status>> {
    match daemon::ask(paths, environment, "daemon.status", "{}")? {
        Answer::None => Ok(None),
        Answer::Result(text) => serde_json::from_str(&text)
            .map(Some)
            .context("the daemon's answer cannot be read"),
    }
}

/// A server of the running daemon.
#[derive(Debug, Deserialize)]
pub(super) struct Server {
    pub(super) server: String,
    pub(super) connections: usize,
    pub(super) sessions: Vec<String>,
}

/// The servers of the running daemon; none without a daemon, or if it does not answer.
pub(super) fn servers(paths: &Paths, environment: &Environment) -> Vec<Server> {
    #[derive(Deserialize)]
    struct Servers {
        servers: Vec<Server>,
    }
    match daemon::ask(paths, environment, "servers.list", "{}") {
        Ok(Answer::Result(text)) => {
            serde_json::from_str(&text).map_or_else(|_| Vec::new(), |list: Servers| list.servers)
        }
        _ => Vec::new(),
    }
}

/// A short description of the daemon for `status` and `doctor`.
pub(super) fn sentence(status: &Status) -> String {
    let sessions = counted(status.sessions.len(), "session");
    let url = status.http.as_ref().and_then(|http| http.url.as_deref());
    let http = url.map_or_else(String::new, |url| format!(", HTTP on {url}"));
    let windows = match status.windows {
        0 => String::new(),
        count => format!(", {}", counted(count, "window")),
    };
    format!("process {}, {sessions}{windows}{http}", status.process)
}

/// Why the daemon serves no HTTP clients although an address is configured.
pub(super) fn http_fault(status: &Status) -> Option<String> {
    let reason = status.http.as_ref()?.reason.as_deref()?;
    Some(format!("HTTP clients are not served: {reason}"))
}

/// The URL at which the daemon serves HTTP clients.
pub(super) fn url(paths: &Paths, environment: &Environment) -> Option<String> {
    status(paths, environment).ok()??.http?.url
}

fn show(paths: &Paths, environment: &Environment, output: &Output) -> Result<(), Exit> {
    let status = status(paths, environment)?;
    let alone = daemon::reasons(&paths.state_dir);
    let paused = Pause::below(&paths.state_dir).state();
    if output.is_json() {
        let alone: Vec<_> = alone
            .iter()
            .map(|(process, reason)| json!({ "process": process, "reason": reason }))
            .collect();
        output.json(
            &json!({ "running": status.is_some(), "paused": paused, "daemon": status, "alone": alone }),
        );
        return Ok(());
    }
    match &status {
        None => output.line(NONE),
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
            if let Some(fault) = http_fault(status) {
                output.line(format!("  {}", bad(printable(&fault))));
            }
            output.line(faint(match &status.http {
                None => format!("it ends {} s after its last session", status.idle),
                Some(_) => "it stays for HTTP clients when its last session has ended".to_owned(),
            }));
        }
    }
    show_pause(paused.as_ref(), output);
    for (process, reason) in alone {
        output.line(format!(
            "process {process} runs alone: {}",
            printable(&reason)
        ));
    }
    Ok(())
}

/// Says that mcpzip is paused, if it is.
pub(super) fn show_pause(paused: Option<&Paused>, output: &Output) {
    if let Some(paused) = paused {
        let text = printable(&paused.to_string());
        output.line(format!("{} {text}", caution("paused:")));
    }
}

/// The pause before a command that pauses or resumes, and after it.
pub(super) struct Switched {
    before: Option<Paused>,
    now: Option<Paused>,
}

/// Pauses mcpzip, or resumes it. This process does so, because a daemon may be stuck or absent; the daemon records it.
pub(super) async fn switched(
    is_pause: bool,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<Switched, Exit> {
    let pause = Pause::below(&paths.state_dir);
    let switched = match is_pause {
        true => {
            let before = pause.state();
            let begun = pause.begin().context("mcpzip cannot be paused")?;
            Switched {
                before,
                now: Some(begun),
            }
        }
        false => Switched {
            before: pause.end().context("mcpzip cannot be resumed")?,
            now: None,
        },
    };
    let method = match is_pause {
        true => "daemon.pause",
        false => "daemon.resume",
    };
    match daemon::ask(paths, environment, method, "{}") {
        Ok(Answer::Result(_)) => {}
        Ok(Answer::None) => {
            if let Ok(config) = Config::load(paths, environment) {
                let detail = format!("{method} by a command, without a daemon");
                let recorder = Recorder::new(config, paths);
                let event = (Kind::Daemon, Outcome::Ok);
                recorder.note(event, None, &detail, output).await;
            }
        }
        Err(error) => output.notable(&format!(
            "the daemon has not recorded it: {}",
            chain(&error)
        )),
    }
    Ok(switched)
}

async fn switch(
    is_pause: bool,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let Switched { before, now } = switched(is_pause, paths, environment, output).await?;
    let since = now.as_ref().or(before.as_ref());
    let since = since.and_then(|paused| paused.since);
    if output.is_json() {
        output.json(
            &json!({ "paused": now.is_some(), "was_paused": before.is_some(), "since": since }),
        );
        return Ok(());
    }
    output.line(match (is_pause, before.as_ref().map(Paused::ago)) {
        (true, None) => format!(
            "{} no new call reaches a server until `mcpzip daemon resume`; calls in progress end",
            caution("paused:")
        ),
        (true, Some(ago)) => format!(
            "it was paused already{}; `mcpzip daemon resume` ends that",
            ago.map_or_else(String::new, |ago| format!(", {ago}"))
        ),
        (false, None) => "it was not paused".to_owned(),
        (false, Some(_)) => format!("{} calls reach their servers again", good("resumed:")),
    });
    Ok(())
}

/// A request to stop or restart the daemon or a server.
struct Order {
    method: &'static str,
    done: &'static str,
}

impl Order {
    fn give(
        &self,
        server: &OneServer,
        paths: &Paths,
        environment: &Environment,
        output: &Output,
    ) -> Result<(), Exit> {
        let Self { method, done } = self;
        let (method, params, what) = match &server.server {
            None => (
                format!("daemon.{method}"),
                json!({}),
                "the daemon".to_owned(),
            ),
            Some(name) => (
                format!("servers.{method}"),
                json!({ "server": name }),
                format!("`{}`", printable(name)),
            ),
        };
        let before = match method == "daemon.restart" {
            true => {
                // Sessions would have no servers in the next daemon.
                Config::load_or_default(paths, environment)?;
                status(paths, environment)?
            }
            false => None,
        };
        let asked = daemon::ask(paths, environment, &method, &params.to_string());
        // A session may have servers of its own command line.
        if let Some(name) = &server.server
            && !matches!(asked, Ok(Answer::Result(_)))
            && let Ok(config) = Config::load(paths, environment)
            && !config.names.contains(name)
        {
            return Err(Exit::unknown_server(name, &config));
        }
        let answer = asked?;
        let was_running = matches!(answer, Answer::Result(_));
        // Sessions start the next daemon; without one, a daemon that serves HTTP clients does. It is there when this command ends.
        let is_end = was_running
            && before.is_some_and(|before| {
                let has_sessions = !before.sessions.is_empty();
                let has_next = before.http.is_some() || has_sessions;
                let is_next_there = has_next && is_followed(before.process, paths, environment);
                // Sessions with a call in progress start it later.
                !is_next_there && !has_sessions
            });
        if output.is_json() {
            output.json(&json!({ *done: was_running && !is_end }));
        } else if is_end {
            output
                .line("the daemon had no session and has ended; the next session starts a new one");
        } else if was_running {
            output.line(format!("{what} is {done}"));
        } else {
            output.line(NONE);
        }
        Ok(())
    }
}

/// Waits until another daemon has followed the process `before`, and returns false if none does.
fn is_followed(before: u32, paths: &Paths, environment: &Environment) -> bool {
    const LIMIT: Duration = Duration::from_secs(5);
    const LOOK: Duration = Duration::from_millis(20);
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        // An error means that the daemon is ending.
        if let Ok(Some(status)) = status(paths, environment)
            && status.process != before
        {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    false
}

fn reload(paths: &Paths, environment: &Environment, output: &Output) -> Result<(), Exit> {
    // Sessions would keep the configuration that they have, without a word here.
    Config::load(paths, environment)?;
    let answer = daemon::ask(paths, environment, "daemon.reload", "{}")?;
    let count = match answer {
        Answer::None => None,
        Answer::Result(text) => {
            let count: Count = serde_json::from_str(&text).map_err(anyhow::Error::from)?;
            Some(count.count)
        }
    };
    match count {
        _ if output.is_json() => output.json(&json!({ "sessions": count })),
        None => output.line(NONE),
        Some(count) => output.line(format!(
            "{} read the configuration again",
            counted(count, "session")
        )),
    }
    Ok(())
}

/// The number of sessions.
#[derive(Deserialize)]
struct Count {
    count: usize,
}

fn events(
    arguments: &EventArguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    // One line per event, as text and as JSON.
    let print = |event: &str| output.stream_json(event);
    let was_running = daemon::listen(paths, environment, arguments.since, print)?;
    match was_running {
        true => Ok(()),
        false => Err(Exit::failed(NONE)),
    }
}
