//! A view of everything, for agents, commands and people.

use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use super::{Coverage, Inventory, Progress};
use crate::catalog::Kind;
use crate::config::{Config, Trust};
use crate::proxy::view::View;
use crate::search::{self, Request};
use crate::tool::ServerName;
use crate::upstream::oauth::Account;
use crate::upstream::{ServerStatus, State};

/// How things stand.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Status {
    /// Our own version.
    pub version: &'static str,
    /// The configuration file.
    pub configuration: Option<String>,
    /// What is odd about it.
    pub warnings: Vec<String>,
    /// Every configured server.
    pub servers: Vec<ServerReport>,
    /// How many tools there are in all, the built-in ones not counted.
    pub tools: usize,
    /// How many can be found by what they mean, the built-in ones included; nothing without search by meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_by_meaning: Option<Coverage>,
}

/// How one server stands.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ServerReport {
    /// Its name.
    pub name: String,
    /// `ready`, `idle`, `connecting`, `failed`, `disabled`, `elsewhere` for one of another project, or `faulty` for an entry that cannot be used.
    pub state: &'static str,
    /// Why it is failed or faulty, and when it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it could not be asked when that was last tried, by any process; gone once it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
    /// How many tools it is known to have.
    pub tools: usize,
    /// How many more are withheld, by the user's rules or because they have changed.
    #[serde(skip_serializing_if = "is_zero")]
    pub withheld: usize,
    /// Tools that are not what they were when they were first seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// How many prompts.
    pub prompts: usize,
    /// How many resources and templates of resources.
    pub resources: usize,
    /// How long ago, in seconds, it listed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed_seconds_ago: Option<u64>,
    /// Whether the list is too old, or from before a listing that is under way or failed.
    pub stale: bool,
    /// Entries of its lists that cannot be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flaws: Vec<String>,
    /// Its name and version for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
    /// How its process is shared with other sessions, and whose values it has; nothing in a session that runs alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<String>,
}

/// A failure from before this process.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LastFailure {
    /// Why, secrets masked.
    pub reason: String,
    /// How long ago, in seconds.
    pub seconds_ago: u64,
}

impl Inventory {
    /// Whether `server` wanted a login that it did not get, when it was last tried.
    #[must_use]
    pub(crate) fn wants_login(&self, server: &ServerName) -> bool {
        self.pool.wants_login(server)
    }

    /// The account at `server`, where it is one that may want a login.
    #[must_use]
    pub(crate) fn account(&self, server: &ServerName) -> Option<Account> {
        self.pool.account(server)
    }

    /// Whether a server is being started or greeted right now.
    #[must_use]
    pub(crate) fn is_connecting(&self) -> bool {
        let states = self.connections();
        states
            .iter()
            .any(|status| matches!(status.state, State::Connecting))
    }

    /// Every server of the configuration and the state of its connection.
    pub(in crate::proxy) fn connections(&self) -> Vec<ServerStatus> {
        self.pool.status()
    }

    /// Resolves when every tool can be found by what it means, or after `limit`.
    pub(crate) async fn vectors_made(&self, limit: Duration) {
        self.index.vectors().wait(limit).await;
    }

    /// Waits until the index holds what the catalog holds, and tries it.
    ///
    /// # Errors
    /// Why it cannot be searched.
    pub(crate) async fn index_ready(&self, limit: Duration) -> Result<(), search::Error> {
        self.index.wait_current(limit).await;
        let request = Request {
            query: "status",
            limit: 1,
            server: None,
            without: &[],
        };
        self.index.search(&request).await.map(drop)
    }

    /// How things stand by what is on the disk: nothing is connected, and what another process has made is counted.
    pub(crate) async fn status_of_caches(&self) -> Status {
        self.loaded().await;
        self.index.vectors().look().await;
        let mut failures = self.last_failures().await;
        let mut status = self.status(&self.callers.unscoped());
        for report in status
            .servers
            .iter_mut()
            .filter(|report| report.state == "idle")
        {
            let server = ServerName::new(&report.name).ok();
            report.last_failure =
                server
                    .and_then(|server| failures.remove(&server))
                    .map(|failure| LastFailure {
                        seconds_ago: failure.age().as_secs(),
                        reason: failure.reason,
                    });
        }
        status
    }

    /// How things stand now.
    #[must_use]
    pub(crate) fn status(&self, view: &View) -> Status {
        let config = view.config();
        let progress = self.progress();
        let mut servers: Vec<ServerReport> = self
            .pool
            .status()
            .into_iter()
            .filter(|status| config.servers.contains_key(&status.server))
            .map(|status| ServerReport {
                sharing: status.sharing.clone(),
                ..self.report(
                    view,
                    &config,
                    &status.server,
                    &status.state,
                    progress.get(&status.server),
                )
            })
            .collect();
        servers.extend(config.faults.iter().map(|fault| ServerReport {
            name: fault.name.clone(),
            state: "faulty",
            reason: Some(fault.fault.to_string()),
            last_failure: None,
            tools: 0,
            withheld: 0,
            changed: Vec::new(),
            prompts: 0,
            resources: 0,
            listed_seconds_ago: None,
            stale: false,
            flaws: Vec::new(),
            software: None,
            sharing: None,
        }));
        Status {
            version: env!("CARGO_PKG_VERSION"),
            configuration: config.path.as_ref().map(|path| path.display().to_string()),
            warnings: config
                .advice()
                .into_iter()
                .chain(config.warnings.iter().map(ToString::to_string))
                .collect(),
            tools: servers.iter().map(|server| server.tools).sum(),
            search_by_meaning: self.index.vectors().coverage(),
            servers,
        }
    }

    fn report(
        &self,
        view: &View,
        config: &Config,
        server: &ServerName,
        state: &State,
        progress: Option<&Progress>,
    ) -> ServerReport {
        let snapshot = view.snapshot();
        let known = snapshot.server(server);
        let (state, reason) = match (state, progress) {
            (State::Disabled, _) => ("disabled", None),
            _ if !view.is_reachable(server) => (
                "elsewhere",
                config.servers.get(server).map(|e| e.projects.to_string()),
            ),
            (
                State::Failed {
                    error, retry_at, ..
                },
                _,
            ) => {
                let pause = retry_at.saturating_duration_since(Instant::now());
                (
                    "failed",
                    Some(format!("{error}; next attempt {}", within(pause))),
                )
            }
            (_, Some(Progress::Failed(reason))) => ("failed", Some(reason.to_string())),
            (State::Ready, Some(Progress::UnderWay)) if known.is_none() => ("connecting", None),
            (State::Ready, _) => ("ready", None),
            (State::Connecting, _) | (State::Disconnected, Some(Progress::UnderWay)) => {
                ("connecting", None)
            }
            (State::Disconnected, _) => ("idle", None),
        };
        let is_pinned = config
            .servers
            .get(server)
            .is_some_and(|entry| entry.trust == Trust::Pin);
        let unpinned = self.pins.fault(server).filter(|_| is_pinned);
        let reason = reason.or_else(|| {
            let fault = unpinned?;
            Some(format!(
                "tools are held back, as it cannot be told which have changed ({fault})"
            ))
        });
        ServerReport {
            name: server.to_string(),
            state,
            reason: reason.map(|reason| config.masker.mask(&reason).into_owned()),
            last_failure: None,
            tools: known.map_or(0, |known| known.entries().len()) - snapshot.withheld(server),
            withheld: snapshot.withheld(server),
            changed: self.changed_tools(server).into_keys().collect(),
            prompts: known.map_or(0, |known| known.prompts().len()),
            resources: known.map_or(0, |known| known.resources().len() + known.templates().len()),
            listed_seconds_ago: known.map(|known| {
                SystemTime::now()
                    .duration_since(known.listed_at())
                    .unwrap_or_default()
                    .as_secs()
            }),
            stale: known.is_some_and(|known| match progress {
                Some(Progress::Listed) => false,
                Some(Progress::NotAsked) => !self.is_fresh(known),
                Some(Progress::UnderWay | Progress::Failed(_)) | None => true,
            }),
            flaws: known.map_or(Vec::new(), |known| {
                let entry = |kind: Kind| {
                    if kind == Kind::Tool {
                        "entry".to_owned()
                    } else {
                        kind.to_string()
                    }
                };
                known
                    .flaws()
                    .iter()
                    .map(|flaw| format!("{} {}: {}", entry(flaw.kind), flaw.index, flaw.reason))
                    .collect()
            }),
            software: known.and_then(|known| known.software().map(str::to_owned)),
            sharing: None,
        }
    }
}

impl ServerReport {
    /// Which tools are not what they were, and what to do about it.
    #[must_use]
    pub(crate) fn changed_text(&self) -> Option<String> {
        let (names, name) = (self.changed.join(", "), &self.name);
        (!names.is_empty()).then(|| {
            format!("changed since first seen: {names} (`mcpzip approve {name}` shows how)")
        })
    }

    /// How long ago it listed its tools, as a person would say it.
    #[must_use]
    pub(crate) fn listed_text(&self) -> Option<String> {
        self.listed_seconds_ago
            .map(|seconds| format!("listed {}", ago(Duration::from_secs(seconds))))
    }

    /// Its last failure, as a person would say it.
    #[must_use]
    pub(crate) fn failed_text(&self) -> Option<String> {
        let failure = self.last_failure.as_ref()?;
        let when = ago(Duration::from_secs(failure.seconds_ago));
        Some(format!("failed {when}: {}", failure.reason))
    }

    /// How many tools it has, with the noun.
    #[must_use]
    pub(crate) fn tools_text(&self) -> String {
        counted(self.tools, "tool")
    }

    /// What it has beside its tools, to be read after their number.
    #[must_use]
    pub(crate) fn beside_tools(&self) -> String {
        let counts = [(self.prompts, "prompt"), (self.resources, "resource")];
        counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!(", {}", counted(*count, what)))
            .collect()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "mcpzip {}: {} servers, {} tools",
            self.version,
            self.servers.len(),
            self.tools
        )?;
        for server in &self.servers {
            write!(
                f,
                "\n{}: {}, {} tools",
                server.name, server.state, server.tools
            )?;
            if server.withheld > 0 {
                write!(f, ", {} withheld", server.withheld)?;
            }
            f.write_str(&server.beside_tools())?;
            if let Some(listed) = server.listed_text() {
                write!(f, ", {listed}")?;
            }
            if server.stale {
                f.write_str(" (kept from before)")?;
            }
            if let Some(sharing) = &server.sharing {
                write!(f, "; process shared by: {sharing}")?;
            }
            if let Some(reason) = &server.reason {
                write!(f, "; {reason}")?;
            }
            if let Some(changed) = server.changed_text() {
                write!(f, "; {changed}")?;
            }
            for flaw in &server.flaws {
                write!(f, "; {flaw}")?;
            }
        }
        if let Some(coverage) = self.search_by_meaning.as_ref().filter(|_| self.tools > 0) {
            write!(f, "\nsearch by meaning: {coverage}")?;
        }
        for warning in &self.warnings {
            write!(f, "\nconfiguration: {warning}")?;
        }
        Ok(())
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A number of things: `1 tool`, `2 tools`.
#[must_use]
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn within(pause: Duration) -> String {
    if pause.is_zero() {
        "now".to_owned()
    } else {
        format!("within {} s", pause.as_secs() + 1)
    }
}

fn ago(age: Duration) -> String {
    match age.as_secs() {
        0..=1 => "just now".to_owned(),
        seconds @ 2..=119 => format!("{seconds} s ago"),
        seconds @ 120..=7199 => format!("{} min ago", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}
