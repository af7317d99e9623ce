//! The daemon: one process that serves all sessions of a user with one set of servers. Each process that a client
//! starts passes the client's pipes to the daemon.
//!
//! `socket_location` is the daemon's address, `election` finds or starts the daemon, and `attachment` is the process
//! that a client starts. `server` is the daemon, `session` is one client in it, `control` is its control interface,
//! and `http` serves HTTP clients over the same servers. `journal` keeps the state of a session when the daemon is killed.
//!
//! *Invariant*: no lower module knows that there is a daemon.

mod alone;
mod attachment;
mod carriage;
mod client;
mod command;
mod control;
mod detach;
mod election;
mod endpoint;
#[cfg(all(unix, debug_assertions))]
mod fault;
mod http;
mod journal;
mod launch;
mod message;
mod metrics;
mod open_files;
mod outgoing;
#[cfg(target_os = "linux")]
mod passing;
mod records;
mod relay;
#[cfg(target_os = "linux")]
mod scope;
mod server;
mod session;
mod session_log;
mod socket_location;
#[cfg(unix)]
mod survey;
mod watchdog;

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

pub(crate) use alone::reasons;
pub(crate) use client::{Answer, Error, ask, ask_started, listen};
pub(crate) use launch::COMMAND;
#[cfg(unix)]
pub(crate) use survey::{SocketFault, survey};

use crate::app::App;
use crate::config::{Environment, Paths, SessionEnv, Surface};
use endpoint::Listener;
use socket_location::SocketLocation;

/// A session to be served.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) env: &'a SessionEnv,
    pub(crate) surface: Option<Surface>,
    /// The profile that the command line names.
    pub(crate) profile: Option<&'a str>,
    /// How long the daemon stays without sessions.
    pub(crate) idle: Duration,
}

/// Runs the commands of other processes. The daemon itself does not know the commands.
pub(crate) trait Commands: Send + Sync + std::fmt::Debug {
    /// Runs `command` and sends its output. Returns false if it did nothing and its own process must run it.
    fn run<'a>(
        &'a self,
        app: &'a App,
        command: &'a str,
        printed: UnboundedSender<String>,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
}

/// The outcome of running a command in the daemon.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// The command has ended.
    Whole,
    /// Nothing was done: there is no daemon, or it cannot run this command.
    Not,
}

/// The outcome of attaching.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// There is no daemon, for this reason. Nothing was read from the client.
    Alone(String),
    /// The session has ended.
    Ended {
        /// The error, if it failed.
        error: Option<String>,
    },
}

/// The directory of the logs, below the state directory.
const LOGS: &str = crate::app::LOGS;

/// The log of the daemon's stderr. No server can have this name.
pub(crate) const STDERR: &str = "mcpzip__daemon.log";

/// Serves the client of this process through the user's daemon, which is started if needed.
///
/// # Errors
/// When the client's pipes or the signals cannot be used.
pub(crate) async fn attach(paths: &Paths, request: &Request<'_>) -> io::Result<Outcome> {
    // There a daemon would keep the rights of the application that started it.
    let outcome = if cfg!(target_os = "macos") {
        Outcome::Alone("on macOS each session runs its own servers".to_owned())
    } else {
        attachment::attach(paths, request).await?
    };
    if let Outcome::Alone(reason) = &outcome {
        tracing::info!(reason, "this session runs without a daemon");
        alone::remember(&paths.state_dir, reason);
    }
    Ok(outcome)
}

/// The path of the daemon's socket for these paths.
///
/// # Errors
/// When no directory can be used.
pub(crate) fn socket(
    paths: &Paths,
    environment: &Environment,
) -> Result<PathBuf, socket_location::Error> {
    SocketLocation::find(paths, environment).map(|location| location.address())
}

/// Whether there is a socket of a daemon, which may have died.
#[must_use]
pub(crate) fn is_there(paths: &Paths, environment: &Environment) -> bool {
    SocketLocation::find(paths, environment).is_ok_and(|location| location.address().exists())
}

/// Runs `command` in the daemon if there is one. No daemon is started for it. `print` gets the output.
///
/// # Errors
/// When the daemon ends before the command does.
pub(crate) async fn run_command(
    paths: &Paths,
    request: &Request<'_>,
    command: String,
    print: impl FnMut(&str),
) -> io::Result<Ran> {
    command::ask(paths, request, command, print).await
}

/// Removes the record of why this session runs without a daemon, at its end.
pub(crate) fn ended_alone(paths: &Paths) {
    alone::forget(&paths.state_dir);
}

/// Runs the daemon on the listener that was passed as stdin.
///
/// # Errors
/// When stdin is not a listener, or the daemon cannot run.
pub(crate) async fn run_started(
    paths: Paths,
    environment: &Environment,
    commands: Arc<dyn Commands>,
) -> io::Result<()> {
    launch::detach(environment)?;
    let listener = match launch::inherited()? {
        Some(listener) => listener,
        None if cfg!(unix) => return Err(io::Error::other("stdin is not a listening socket")),
        None => {
            let location = SocketLocation::find(&paths, environment).map_err(io::Error::other)?;
            Listener::claim(&location).await?
        }
    };
    run(listener, paths, environment, commands, Way::Started).await
}

/// Runs the daemon in the foreground, for a service manager.
///
/// # Errors
/// When a daemon is already running, or none can be started.
pub(crate) async fn run_here(
    paths: Paths,
    environment: &Environment,
    commands: Arc<dyn Commands>,
) -> io::Result<()> {
    // A service manager listens, and keeps the socket when the daemon ends.
    if let Some(listener) = launch::inherited()? {
        let way = Way::Foreground { owns_socket: false };
        return run(listener, paths, environment, commands, way).await;
    }
    let location = SocketLocation::find(&paths, environment).map_err(io::Error::other)?;
    let listener = {
        let _lock = election::try_lock(&location)?
            .ok_or_else(|| io::Error::other("another process starts or ends a daemon just now"))?;
        let running = endpoint::connect_blocking(&location).map_err(io::Error::other)?;
        if running.is_some() {
            return Err(io::Error::other(
                "the daemon of this configuration runs already",
            ));
        }
        Listener::claim(&location).await?
    };
    let way = Way::Foreground { owns_socket: true };
    run(listener, paths, environment, commands, way).await
}

/// How the daemon was started.
#[derive(Clone, Copy)]
enum Way {
    /// By a session.
    Started,
    /// By a user or a service manager, whose variables HTTP clients get. A service manager keeps the socket.
    Foreground { owns_socket: bool },
}

async fn run(
    listener: Listener,
    paths: Paths,
    environment: &Environment,
    commands: Arc<dyn Commands>,
    way: Way,
) -> io::Result<()> {
    let open_files = open_files::raise_limit();
    let location = SocketLocation::find(&paths, environment).map_err(io::Error::other)?;
    let (owns_socket, variables) = match way {
        Way::Started => (true, None),
        Way::Foreground { owns_socket } => (owns_socket, Some(environment)),
    };
    let start = server::Start {
        location: location.clone(),
        paths: paths.clone(),
        commands,
        owns_socket,
        variables,
        open_files,
    };
    let next = server::run(listener, start).await?;
    // The supervisor of a daemon in the foreground restarts it.
    match next.filter(|_| matches!(way, Way::Started)) {
        Some(hello) => start_next(&location, &paths, environment, &hello).await,
        None => Ok(()),
    }
}

/// Starts the next daemon and sends it `hello`.
async fn start_next(
    location: &SocketLocation,
    paths: &Paths,
    environment: &Environment,
    hello: &message::Hello,
) -> io::Result<()> {
    let way = election::Way {
        location,
        paths,
        environment,
    };
    let connect = async |location: &_| endpoint::connect(location).await;
    let socket = election::reach(&way, connect).await;
    let mut socket = socket.map_err(io::Error::other)?;
    message::send_async(&mut socket, hello).await
}
