//! The state that the item shows: the daemon from its control interface, the pause and the calls that wait from their files, which sessions without
//! a daemon have, too.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::approvals::Approvals;
use crate::config::{DaemonMode, DaemonOptions, Environment, Paths};
use crate::daemon::{self, Answer};
use crate::pause::Pause;
use crate::proxy::counted;

/// The state that the item shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) daemon: Daemon,
    pub(super) is_paused: bool,
    /// Number of calls that wait for approval.
    pub(super) waiting: usize,
    /// How the last order went, if not well.
    pub(super) fault: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Daemon {
    /// The next session starts one.
    #[default]
    Absent,
    /// The configuration switches it off.
    Off,
    /// It cannot be asked, for this reason.
    Silent(String),
    Running {
        servers: usize,
        failed: usize,
        sessions: usize,
    },
}

#[derive(Deserialize)]
struct Status {
    sessions: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct Servers {
    servers: Vec<Server>,
}

#[derive(Deserialize)]
struct Server {
    state: String,
}

impl State {
    /// Reads it. This blocks for as long as the daemon takes to answer.
    pub(super) fn read(paths: &Paths, environment: &Environment) -> Self {
        let is_paused = Pause::below(&paths.state_dir).state().is_some();
        let waiting = Approvals::below(&paths.state_dir).pending();
        let daemon = match running(paths, environment) {
            Ok(Some(running)) => running,
            Ok(None) => match DaemonOptions::load(paths, environment).mode {
                DaemonMode::Off => Daemon::Off,
                DaemonMode::Auto => Daemon::Absent,
            },
            Err(error) => Daemon::Silent(error.to_string()),
        };
        Self {
            daemon,
            is_paused,
            waiting: waiting.map_or(0, |waiting| waiting.len()),
            fault: None,
        }
    }

    /// A line about the daemon.
    pub(super) fn line(&self) -> String {
        match &self.daemon {
            Daemon::Absent => "No daemon runs; the next session starts it".to_owned(),
            Daemon::Off => {
                "The daemon is switched off in the configuration; mcpzip daemon run starts one"
                    .to_owned()
            }
            Daemon::Silent(reason) => format!("The daemon does not answer: {reason}"),
            Daemon::Running {
                servers,
                failed,
                sessions,
            } => {
                let failed = match failed {
                    0 => String::new(),
                    failed => format!(", {failed} failed"),
                };
                format!(
                    "{}{failed} · {}",
                    counted(*servers, "server"),
                    counted(*sessions, "session")
                )
            }
        }
    }

    /// A line about the calls that wait, if there are any.
    pub(super) fn waiting_line(&self) -> Option<String> {
        match self.waiting {
            0 => None,
            1 => Some("1 call waits for approval…".to_owned()),
            count => Some(format!("{count} calls wait for approval…")),
        }
    }
}

/// The running daemon; `None` without one.
fn running(paths: &Paths, environment: &Environment) -> anyhow::Result<Option<Daemon>> {
    let Some(Status { sessions }) = ask(paths, environment, "daemon.status")? else {
        return Ok(None);
    };
    let Some(Servers { servers }) = ask(paths, environment, "servers.list")? else {
        return Ok(None);
    };
    let has_failed = |server: &&Server| matches!(server.state.as_str(), "failed" | "faulty");
    Ok(Some(Daemon::Running {
        servers: servers.len(),
        failed: servers.iter().filter(has_failed).count(),
        sessions: sessions.len(),
    }))
}

fn ask<T: DeserializeOwned>(
    paths: &Paths,
    environment: &Environment,
    method: &str,
) -> anyhow::Result<Option<T>> {
    match daemon::ask(paths, environment, method, "{}")? {
        Answer::None => Ok(None),
        Answer::Result(text) => Ok(Some(serde_json::from_str(&text)?)),
    }
}
