//! The daemon: one process that serves all sessions of a user with one set of servers. The processes that clients start
//! pass it their clients' pipes.
//!
//! `socket_location` is the daemon's address, `election` finds or starts the daemon, `attachment` is the process that a
//! client starts, `server` is the daemon, `session` is one client in it, `journal` survives a daemon, `control` is its
//! control interface, and `http` serves HTTP clients over the same servers.
//!
//! *Invariant*: no lower module knows that there is a daemon.

#[cfg(target_os = "linux")]
mod alone;
#[cfg(target_os = "linux")]
mod attachment;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod election;
#[cfg(all(target_os = "linux", debug_assertions))]
mod fault;
#[cfg(target_os = "linux")]
mod http;
#[cfg(target_os = "linux")]
mod journal;
#[cfg(target_os = "linux")]
mod message;
#[cfg(target_os = "linux")]
mod metrics;
#[cfg(target_os = "linux")]
mod records;
#[cfg(target_os = "linux")]
mod scope;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod session_log;
#[cfg(target_os = "linux")]
mod socket_location;
#[cfg(target_os = "linux")]
mod survey;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(target_os = "linux")]
mod watchdog;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::{
        Commands, Outcome, Ran, Request, alone, attachment, command, election, message, scope,
        server, socket_location,
    };
    use crate::config::{Environment, Paths};

    pub(crate) use super::alone::reasons;
    pub(crate) use super::client::{Answer, Error, ask, listen};

    /// Serves the client of this process through the user's daemon, which is started if needed.
    ///
    /// # Errors
    /// When the client's pipes or the signals cannot be used.
    pub(crate) async fn attach(paths: &Paths, request: &Request<'_>) -> io::Result<Outcome> {
        let outcome = attachment::attach(paths, request).await?;
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
        socket_location::SocketLocation::find(paths, environment).map(|location| location.socket())
    }

    /// Whether there is a socket of a daemon, which may have died.
    #[must_use]
    pub(crate) fn is_there(paths: &Paths, environment: &Environment) -> bool {
        socket_location::SocketLocation::find(paths, environment)
            .is_ok_and(|location| location.socket().exists())
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
        // Leaves the client's terminal and process group.
        rustix::process::setsid()?;
        scope::leave_control_group(environment);
        let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
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
        if rustix::net::sockopt::socket_acceptconn(io::stdin()).unwrap_or(false) {
            let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
            return run(
                listener,
                paths,
                environment,
                commands,
                Way::Foreground { owns_socket: false },
            )
            .await;
        }
        let location =
            socket_location::SocketLocation::find(&paths, environment).map_err(io::Error::other)?;
        let listener = {
            let _lock = election::try_lock(&location)?.ok_or_else(|| {
                io::Error::other("another process starts or ends a daemon just now")
            })?;
            if election::connect(&location)
                .map_err(io::Error::other)?
                .is_some()
            {
                return Err(io::Error::other(
                    "the daemon of this configuration runs already",
                ));
            }
            election::bind(&location)?
        };
        run(
            listener,
            paths,
            environment,
            commands,
            Way::Foreground { owns_socket: true },
        )
        .await
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
        listener: UnixListener,
        paths: Paths,
        environment: &Environment,
        commands: Arc<dyn Commands>,
        way: Way,
    ) -> io::Result<()> {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        let open_files = limit.current;
        limit.current = limit.maximum;
        // With fewer descriptors the daemon serves fewer servers.
        let _ = setrlimit(Resource::Nofile, limit);
        let location =
            socket_location::SocketLocation::find(&paths, environment).map_err(io::Error::other)?;
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
            Some(hello) => start_next(&location, &paths, environment, &hello),
            None => Ok(()),
        }
    }

    /// Starts the next daemon and sends it `hello`.
    fn start_next(
        location: &socket_location::SocketLocation,
        paths: &Paths,
        environment: &Environment,
        hello: &message::Hello,
    ) -> io::Result<()> {
        let socket = election::reach(location, paths, environment).map_err(io::Error::other)?;
        message::send(&socket, hello, &[])
    }
}

#[cfg(target_os = "linux")]
pub(crate) use election::COMMAND;
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    Answer, Error, ask, attach, ended_alone, is_there, listen, reasons, run_command, run_here,
    run_started, socket,
};
#[cfg(target_os = "linux")]
pub(crate) use survey::{SocketFault, survey};
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::{
    Answer, COMMAND, Error, ask, attach, ended_alone, is_there, listen, reasons, run_command,
    run_here, run_started, socket,
};

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use crate::app::App;
use crate::config::{SessionEnv, Surface};

/// A session to be served.
#[derive(Debug)]
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "sessions share a daemon on Linux only")
)]
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
#[cfg(target_os = "linux")]
const LOGS: &str = crate::app::LOGS;

/// The log of the daemon's stderr. No server can have this name.
pub(crate) const STDERR: &str = "mcpzip__daemon.log";
