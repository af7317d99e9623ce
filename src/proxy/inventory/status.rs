//! The status of everything, for agents, commands and people.

use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use super::findings::{self, TextFinding};
use super::{Coverage, Inventory, Progress};
use crate::catalog::{ChangeKind, Kind, Pending, ServerTools};
use crate::config::{Config, Server, Transport};
use crate::proxy::view::View;
use crate::search::{self, Request};
use crate::text::ago;
use crate::tool::ServerName;
use crate::upstream::oauth::Account;
use crate::upstream::{ServerState, ServerStatus};

/// The status of mcpzip and its servers.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Status {
    /// mcpzip's version.
    pub version: &'static str,
    /// The configuration file.
    pub configuration: Option<String>,
    /// The warnings about it.
    pub warnings: Vec<String>,
    /// Every configured server.
    pub servers: Vec<ServerReport>,
    /// The number of tools, without the built-in ones.
    pub tools: usize,
    /// The number of tools that can be found by meaning, including the built-in ones; `None` without search by
    /// meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_by_meaning: Option<Coverage>,
}

/// The status of one server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ServerReport {
    /// The server's name.
    pub name: String,
    /// `ready`, `idle`, `connecting`, `failed`, `disabled`, `unapproved` for one that an agent has added, `elsewhere` for a server of another project, or `faulty`
    /// for an entry that cannot be used.
    pub state: &'static str,
    /// Why it is failed or faulty, and the time of the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The position of a faulty entry in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
    /// The failure of the last attempt of any process; `None` once the server answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
    /// The number of its known tools.
    pub tools: usize,
    /// The number of withheld tools, because of the user's rules or changed definitions.
    #[serde(skip_serializing_if = "is_zero")]
    pub withheld: usize,
    /// Tools that are not what they were when they were approved or first seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Everything that differs from what was approved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Difference>,
    /// The scanner's findings in its texts, for a person: only in the status of the caches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<TextFinding>,
    /// Whether tools that differ are held back, rather than only reported.
    #[serde(skip)]
    pub holds: bool,
    /// Nothing of it reaches a client before a person has approved it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quarantined: bool,
    /// The number of its prompts.
    pub prompts: usize,
    /// The number of its resources and resource templates.
    pub resources: usize,
    /// The age of its list, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed_seconds_ago: Option<u64>,
    /// Whether the list is too old, or precedes a listing that is in progress or has failed.
    pub stale: bool,
    /// The entries of its lists that cannot be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flaws: Vec<String>,
    /// The overrides (`tools.override`) that cannot be applied, so that their tools are withheld.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub override_faults: Vec<String>,
    /// Its own name and version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
    /// Equal for sessions that share its connections; 0 for an entry that cannot be used.
    #[serde(skip)]
    pub instance: usize,
    /// The number of its open connections; more than one if clients differ in what they can be asked.
    #[serde(skip)]
    pub connections: usize,
    /// How its process is shared with other sessions, and whose values it has; `None` in a session that runs alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<String>,
    /// Its sandbox, in words; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The package that is started in place of its runner, with its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
}

/// A difference between a server's list and the approved one.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Difference {
    /// The tool; `None` for other texts of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The prompt, resource or template, with its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// `changed`, `new`, `renamed`, `vanished`, `instructions` or `prompts_and_resources`.
    pub change: &'static str,
    /// The likeliest old name of a renamed tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The other name of its server under which a person has approved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_under: Option<String>,
    /// A person has rejected it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rejected: bool,
}

impl Difference {
    /// Every difference that `pending` has.
    #[must_use]
    pub(crate) fn all(pending: &Pending) -> Vec<Self> {
        let tools = pending.tools.iter().map(|(name, change)| Self {
            tool: Some(name.clone()),
            entry: None,
            change: change.kind.word(),
            from: match &change.kind {
                ChangeKind::Renamed { from } => Some(from.clone()),
                _ => None,
            },
            approved_under: change.under.clone(),
            rejected: change.is_rejected,
        });
        let instructions = pending.instructions.as_ref().map(|_| Self {
            tool: None,
            entry: None,
            change: "instructions",
            from: None,
            approved_under: None,
            rejected: false,
        });
        let features = pending.features.as_ref().map(|_| Self {
            tool: None,
            entry: None,
            change: "prompts_and_resources",
            from: None,
            approved_under: None,
            rejected: false,
        });
        let entries = pending.entries.iter().map(|(label, change)| Self {
            tool: None,
            entry: Some(label.clone()),
            change: change.kind.word(),
            from: None,
            approved_under: change.under.clone(),
            rejected: change.is_rejected,
        });
        let texts = instructions.into_iter().chain(features);
        tools.chain(entries).chain(texts).collect()
    }
}

/// The reader of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Reader {
    /// A person: they read everything.
    Person,
    /// An agent.
    Agent,
}

/// A failure from before this process.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LastFailure {
    /// The reason, with secrets masked.
    pub reason: String,
    /// Its age in seconds.
    pub seconds_ago: u64,
}

impl Inventory {
    /// Whether the last attempt to connect `server` failed because a login is missing.
    #[must_use]
    pub(crate) fn wants_login(&self, server: &ServerName) -> bool {
        self.pool.wants_login(server)
    }

    /// The login at `server`, if it may need one.
    #[must_use]
    pub(crate) fn account(&self, server: &ServerName) -> Option<Account> {
        self.pool.account(server)
    }

    /// Whether a server is being started or opened.
    #[must_use]
    pub(crate) fn is_connecting(&self) -> bool {
        let states = self.connections();
        states
            .iter()
            .any(|status| matches!(status.state, ServerState::Connecting))
    }

    /// The state of every server's connection.
    pub(in crate::proxy) fn connections(&self) -> Vec<ServerStatus> {
        self.pool.status()
    }

    /// Resolves when every tool can be found by meaning, or after `limit`. Returns whether that is so, or is not wanted.
    pub(crate) async fn vectors_made(&self, limit: Duration) -> bool {
        self.index.vectors().wait(limit).await
    }

    /// Waits until the index equals the catalog, and runs a test search.
    ///
    /// # Errors
    /// The reason why it cannot be searched.
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

    /// The status by the data on disk, including that of other processes. No server is connected.
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
        self.scan(&mut status).await;
        status
    }

    /// Adds what the scanner finds in the texts of all servers.
    async fn scan(&self, status: &mut Status) {
        let snapshot = self.callers.unscoped().snapshot();
        let kept = self.findings.clone();
        let scan = move || findings::of_all(&snapshot, &kept);
        let scanned = self.tasks.spawn_blocking(scan);
        // A scan that panics is printed to stderr, and the status lacks its findings.
        let mut found = scanned.await.unwrap_or_default();
        for report in &mut status.servers {
            report.findings = found.remove(&report.name).unwrap_or_default();
        }
    }

    /// The current status.
    #[must_use]
    pub(crate) fn status(&self, view: &View) -> Status {
        self.status_for(view, Reader::Person)
    }

    /// The current status as an agent may read it.
    #[must_use]
    pub(crate) fn status_for_agents(&self, view: &View) -> Status {
        self.status_for(view, Reader::Agent)
    }

    /// The current status, without anything that a server in quarantine wrote if an agent reads it.
    pub(in crate::proxy) fn status_for(&self, view: &View, reader: Reader) -> Status {
        let config = view.config();
        let progress = self.progress();
        let mut servers: Vec<ServerReport> = self
            .pool
            .status()
            .into_iter()
            .filter(|status| config.servers.contains_key(&status.server))
            .map(|status| ServerReport {
                sharing: status.sharing.clone(),
                instance: status.instance,
                connections: status.connections,
                ..self.report(
                    view,
                    &config,
                    &status.server,
                    &status.state,
                    progress.get(&status.server),
                    reader,
                )
            })
            .collect();
        servers.extend(config.faults.iter().map(|fault| ServerReport {
            name: fault.name.clone(),
            state: "faulty",
            reason: Some(fault.fault.to_string()),
            position: Some(fault.position.to_string()),
            last_failure: None,
            tools: 0,
            withheld: 0,
            changed: Vec::new(),
            holds: false,
            pending: Vec::new(),
            findings: Vec::new(),
            quarantined: false,
            prompts: 0,
            resources: 0,
            listed_seconds_ago: None,
            stale: false,
            flaws: Vec::new(),
            override_faults: Vec::new(),
            software: None,
            sharing: None,
            sandbox: None,
            package: None,
            instance: 0,
            connections: 0,
        }));
        for server in &mut servers {
            server.reason = server.reason.take().map(|reason| view.suited(reason));
        }
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
        state: &ServerState,
        progress: Option<&Progress>,
        reader: Reader,
    ) -> ServerReport {
        let snapshot = view.snapshot();
        let known = snapshot.server(server);
        let is_disabled = matches!(state, ServerState::Disabled);
        let is_outlined = reader == Reader::Agent && self.is_quarantined(server);
        let (state, reason) = if !is_disabled && self.pins.is_unstarted(server) {
            ("unapproved", None)
        } else if view.is_reachable(server) || is_disabled {
            let outlined = is_outlined.then_some(server);
            shown_state(state, progress, known.is_some(), outlined)
        } else {
            let entry = config.servers.get(server);
            ("elsewhere", entry.map(|entry| entry.projects.to_string()))
        };
        let reason = reason.or_else(|| self.unpinned(server));
        let mut pending = self.pending(server);
        if config.has_profile_rules() {
            // Differences of tools that do not exist here.
            pending.tools.clear();
        }
        let entry = config.servers.get(server);
        if config.is_for_person() && entry.is_some_and(Server::is_for_people) {
            // Differences of lists that other people got.
            pending = Pending {
                is_quarantined: pending.is_quarantined,
                ..Pending::default()
            };
        }
        let shown = known.filter(|_| !is_outlined);
        let is_pinned = entry.is_some_and(|entry| !entry.trust.is_report());
        ServerReport {
            name: server.to_string(),
            state,
            reason: reason.map(|reason| config.masker.mask(&reason).into_owned()),
            position: None,
            last_failure: None,
            tools: known.map_or(0, |known| known.entries().len()) - snapshot.withheld(server),
            withheld: snapshot.withheld(server),
            changed: names_of(&pending, &ChangeKind::Changed),
            holds: is_pinned,
            quarantined: pending.is_quarantined && state != "disabled",
            pending: Difference::all(&pending),
            findings: Vec::new(),
            prompts: known.map_or(0, |known| known.prompts().len()),
            resources: known.map_or(0, |known| known.resources().len() + known.templates().len()),
            // A list of another directory has no time here.
            listed_seconds_ago: known
                .map(|known| known.listed_at())
                .filter(|at| *at != SystemTime::UNIX_EPOCH)
                .map(|at| at.elapsed().unwrap_or_default().as_secs()),
            stale: known.is_some_and(|known| match progress {
                Some(Progress::Listed) => false,
                Some(Progress::NotAsked) => !self.is_fresh(known),
                Some(Progress::UnderWay | Progress::Failed(_)) | None => true,
            }),
            flaws: match (shown, reader) {
                // They have words that no person has approved.
                (Some(known), Reader::Agent) if is_pinned => counted_flaws(known),
                (Some(known), _) => flaws(known),
                (None, _) => Vec::new(),
            },
            // They may name hidden arguments.
            override_faults: known
                .filter(|_| reader == Reader::Person)
                .map(|known| override_faults(known))
                .unwrap_or_default(),
            software: shown
                .and_then(|known| known.software())
                .map(|software| config.masker.mask(software).into_owned()),
            sharing: None,
            sandbox: entry.and_then(|entry| {
                let Transport::Stdio(stdio) = &entry.transport else {
                    return None;
                };
                stdio.sandbox.as_ref().map(|sandbox| sandbox.summary())
            }),
            package: entry.and_then(|entry| self.pool.fetched_version(entry)),
            instance: 0,
            connections: 0,
        }
    }

    /// Why the tools of a server are held back, if its pins cannot be read.
    fn unpinned(&self, server: &ServerName) -> Option<String> {
        let fault = self.pins.holding_fault(server)?;
        if self.pins.passing_fault(server).is_some() {
            return Some(format!(
                "tools are held back for the moment, because it cannot be checked which have changed or were rejected ({fault}); this is \
                 tried again"
            ));
        }
        Some(format!(
            "tools are held back, because it cannot be checked which have changed or were rejected ({fault}); `mcpzip doctor {server}` \
             says what to do"
        ))
    }
}

/// The state of a server's connection and listing in one word, with the reason of a failure, or with its kind only.
fn shown_state(
    state: &ServerState,
    progress: Option<&Progress>,
    is_known: bool,
    outlined: Option<&ServerName>,
) -> (&'static str, Option<String>) {
    match (state, progress) {
        (ServerState::Disabled, _) => ("disabled", None),
        (
            ServerState::Failed {
                error, retry_at, ..
            },
            _,
        ) => {
            let pause = within(retry_at.saturating_duration_since(Instant::now()));
            let error = outlined.map_or_else(|| error.to_string(), |server| error.outline(server));
            ("failed", Some(format!("{error}; next attempt {pause}")))
        }
        (_, Some(Progress::Failed(reason))) if !reason.is_stop() => {
            let reason =
                outlined.map_or_else(|| reason.to_string(), |server| reason.outline(server));
            ("failed", Some(reason))
        }
        (ServerState::Ready, Some(Progress::UnderWay)) if !is_known => ("connecting", None),
        (ServerState::Ready, _) => ("ready", None),
        (ServerState::Connecting, _) => ("connecting", None),
        // It is about to be started for its first list. A later list may still be stored after the connection has ended.
        (ServerState::Disconnected, Some(Progress::UnderWay)) if !is_known => ("connecting", None),
        (ServerState::Disconnected, _) => ("idle", None),
    }
}

/// The entries of a server's lists that cannot be used.
fn flaws(known: &ServerTools) -> Vec<String> {
    let texts = known.flaws().iter().map(|flaw| {
        let kind = match flaw.kind {
            Kind::Tool => "entry".to_owned(),
            kind => kind.to_string(),
        };
        format!("{kind} {}: {}", flaw.index, flaw.reason)
    });
    texts.collect()
}

/// The number of entries of the server's lists that cannot be used.
fn counted_flaws(known: &ServerTools) -> Vec<String> {
    let text = match known.flaws().len() {
        0 => return Vec::new(),
        1 => "1 entry of its lists cannot be used".to_owned(),
        count => format!("{count} entries of its lists cannot be used"),
    };
    vec![format!("{text} (`mcpzip doctor` shows why)")]
}

/// The overrides that cannot be applied.
fn override_faults(known: &ServerTools) -> Vec<String> {
    let faults = known.override_faults().into_iter();
    faults
        .map(|(tool, reason)| format!("the override of `{tool}` cannot be applied: {reason}"))
        .collect()
}

impl ServerReport {
    /// Which tools differ from the approved ones, and what to do about it. Names that no person has seen are left out: agents
    /// read this as well.
    #[must_use]
    pub(crate) fn changed_text(&self) -> Option<String> {
        let (names, name) = (self.changed.join(", "), &self.name);
        let mut listed = self
            .pending
            .iter()
            .filter(|one| one.tool.is_some() || one.entry.is_some())
            .peekable();
        if self.quarantined && listed.peek().is_some() && listed.all(|one| one.rejected) {
            return Some(format!(
                "all of it was rejected (`mcpzip approve {name}` shows it)"
            ));
        }
        if self.quarantined {
            return Some(format!(
                "waits for a person's approval (`mcpzip approve {name}`)"
            ));
        }
        let waiting = self.pending.iter().filter(|one| !one.rejected);
        let count = waiting.count().saturating_sub(self.changed.len());
        let changed = (!names.is_empty()).then(|| format!("changed since first seen: {names}"));
        let others = match self.holds {
            true => (count > 0).then(|| format!("{count} more wait for a person")),
            false => self.reported(count),
        };
        let texts: Vec<String> = changed.into_iter().chain(others).collect();
        let text = texts.join("; ");
        (!text.is_empty()).then(|| format!("{text} (`mcpzip approve {name}` shows how)"))
    }

    /// The differences other than changed tools, `count` in all, of a server whose differences are only reported.
    fn reported(&self, count: usize) -> Option<String> {
        let renamed = self.pending.iter().filter(|one| !one.rejected);
        let renamed = renamed.filter_map(|one| {
            let (tool, from) = (one.tool.as_ref()?, one.from.as_ref()?);
            Some(format!("{tool} (was {from})"))
        });
        let renamed: Vec<String> = renamed.collect();
        let rest = count.saturating_sub(renamed.len());
        let renamed = (!renamed.is_empty())
            .then(|| format!("renamed since first seen: {}", renamed.join(", ")));
        let rest = (rest > 0).then(|| format!("{rest} more differ"));
        let texts: Vec<String> = renamed.into_iter().chain(rest).collect();
        (!texts.is_empty()).then(|| format!("{}; agents can call them", texts.join(", ")))
    }

    /// The first findings of the scanner, for display.
    #[must_use]
    pub(crate) fn findings_text(&self) -> Option<String> {
        const SHOWN: usize = 3;
        let first = self.findings.iter().take(SHOWN).map(ToString::to_string);
        let more = self.findings.len().saturating_sub(SHOWN);
        let more = (more > 0).then(|| format!("{more} more"));
        let texts: Vec<String> = first.chain(more).collect();
        let name = &self.name;
        (!texts.is_empty()).then(|| {
            format!(
                "scanner: {} (`mcpzip doctor {name}` shows the texts)",
                texts.join(", ")
            )
        })
    }

    /// The age of its list, for display.
    #[must_use]
    pub(crate) fn listed_text(&self) -> Option<String> {
        self.listed_seconds_ago
            .map(|seconds| format!("listed {}", ago(Duration::from_secs(seconds))))
    }

    /// Its last failure, for display.
    #[must_use]
    pub(crate) fn failed_text(&self) -> Option<String> {
        let failure = self.last_failure.as_ref()?;
        let when = ago(Duration::from_secs(failure.seconds_ago));
        Some(format!("failed {when}: {}", failure.reason))
    }

    /// The number of its tools, with the noun.
    #[must_use]
    pub(crate) fn tools_text(&self) -> String {
        counted(self.tools, "tool")
    }

    /// The numbers of its other entries, to follow the number of tools.
    #[must_use]
    pub(crate) fn other_entries(&self) -> String {
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
            "mcpzip {}: {}, {}",
            self.version,
            counted(self.servers.len(), "server"),
            counted(self.tools, "tool")
        )?;
        for server in &self.servers {
            write!(
                f,
                "\n{}: {}, {}",
                server.name,
                server.state,
                counted(server.tools, "tool")
            )?;
            if server.withheld > 0 {
                write!(f, ", {} withheld", server.withheld)?;
            }
            f.write_str(&server.other_entries())?;
            if let Some(listed) = server.listed_text() {
                write!(f, ", {listed}")?;
            }
            if server.stale {
                f.write_str(" (kept from before)")?;
            }
            if let Some(sandbox) = &server.sandbox {
                write!(f, "; sandbox: {sandbox}")?;
            }
            if let Some(package) = &server.package {
                write!(f, "; fetched: {package}")?;
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
            for flaw in server.flaws.iter().chain(&server.override_faults) {
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

/// The tools that differ in this way, but for rejected ones.
fn names_of(pending: &Pending, kind: &ChangeKind) -> Vec<String> {
    let found = pending
        .tools
        .iter()
        .filter(|(_, change)| change.kind == *kind && !change.is_rejected);
    found.map(|(name, _)| name.clone()).collect()
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A count with its noun: `1 tool`, `2 tools`.
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
