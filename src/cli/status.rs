//! `mcpzip status`: shows the servers, tools and daemon from what is on disk. It connects to no server, so it answers
//! at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::daemon;
use super::diagnostics::Exit;
use super::output::{Output, bad, caution, faint, good, strong};
use super::printable::printable;
use super::status_identities::Identities;
use super::status_profiles::{self, ShownProfile};
use super::status_store::StoreState;
use super::unknown::NO_SERVER;
use crate::app::App;
use crate::approvals::Approvals;
use crate::audit::{Audit, Directories};
use crate::config::{
    AuditCopies, Config, DaemonMode, ScriptTools, Surface, secrets_file, stored_secrets,
};
use crate::keyring::{Listed, Location, Store};
use crate::pause::{Pause, Paused};
use crate::proxy::{Decision, ServerReport, Status, counted, decisions};
use crate::text::{chain, write_path};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip status
  mcpzip status --json")]
pub(super) struct Arguments {}

pub(super) async fn run(app: &App, output: &Output) -> Result<(), Exit> {
    let status = app.proxy().inventory.status_of_caches().await;
    let daemon = Daemon::of(app);
    let secrets = Secrets::of(&app.paths().config_file);
    let keyring = KeyringState::of(app);
    let surfaces = Surfaces::of(app);
    let profiles = status_profiles::all(&app.proxy().unscoped().config());
    let config = app.proxy().unscoped().config();
    let raised = RaisedTrust::all(&config);
    let scripts = Scripts::of(&config);
    let environment = &app.session().environment;
    let identities = Identities::of(&config, &environment.state(&app.paths().state_dir));
    let store = StoreState::of(app.paths(), environment).await;
    let audit = AuditLog::of(app).await;
    let calls = Approvals::of(&environment.state(&app.paths().state_dir)).pending();
    let calls = calls.map_or(0, |calls| calls.len());
    let paused = Pause::below(&app.paths().state_dir).state();
    if output.is_json() {
        output.json(&Shown {
            status: &status,
            secrets: secrets.as_ref(),
            surface: &surfaces,
            raised_trust: &raised,
            profiles: &profiles,
            scripts: scripts.as_ref(),
            identities: identities.as_ref(),
            store: store.as_ref(),
            keyring: keyring.as_ref(),
            audit: audit.as_ref(),
            waiting_calls: calls,
            paused: paused.as_ref(),
            daemon: &daemon,
        });
    } else {
        show(&status, output);
        raised.iter().for_each(|raised| raised.show(output));
        surfaces.show(output);
        status_profiles::show(&profiles, output);
        if let Some(scripts) = &scripts {
            scripts.show(output);
        }
        if let Some(identities) = &identities {
            identities.show(output);
        }
        if let Some(store) = &store {
            store.show(output);
        }
        if let Some(secrets) = &secrets {
            secrets.show(output);
        }
        if let Some(keyring) = &keyring {
            keyring.show(output);
        }
        if let Some(audit) = &audit {
            audit.show(output);
        }
        daemon.show(output);
        daemon::show_pause(paused.as_ref(), output);
        if calls > 0 {
            output.line(format!(
                "{} for approval: `mcpzip approvals list` shows them",
                match calls {
                    1 => "1 call waits".to_owned(),
                    calls => format!("{calls} calls wait"),
                }
            ));
        }
        output.line(faint(
            "from the cache: `mcpzip servers` connects to all servers, `mcpzip doctor` looks for faults",
        ));
    }
    Ok(())
}

/// The status with the file of secrets and the daemon, as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    status: &'a Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets: Option<&'a Secrets>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyring: Option<&'a KeyringState>,
    surface: &'a Surfaces,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    raised_trust: &'a [RaisedTrust],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    profiles: &'a [ShownProfile],
    #[serde(skip_serializing_if = "Option::is_none")]
    scripts: Option<&'a Scripts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identities: Option<&'a Identities>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<&'a StoreState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<&'a AuditLog>,
    /// Calls that wait for a person (`mcpzip approvals`).
    waiting_calls: usize,
    /// The pause, while the user has paused mcpzip.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<&'a Paused>,
    daemon: &'a Daemon,
}

/// A server whose `trust` is stricter than its entry says.
#[derive(Serialize)]
struct RaisedTrust {
    server: String,
    trust: &'static str,
    /// The entry of the same program or URL that has it.
    by: String,
}

impl RaisedTrust {
    fn all(config: &Config) -> Vec<Self> {
        let raised = config.raised_trust.iter();
        let raised = raised.filter_map(|(name, by)| {
            Some(Self {
                server: name.to_string(),
                trust: config.servers.get(name)?.trust.text(),
                by: by.to_string(),
            })
        });
        raised.collect()
    }

    fn show(&self, output: &Output) {
        let Self { server, trust, by } = self;
        output.line(format!(
            "{server} has the trust \"{trust}\", because {by}, which has it, is the same program or URL"
        ));
    }
}

/// The permissions of scripts, if they are on.
#[derive(Serialize)]
struct Scripts {
    allow: &'static str,
    max_calls: u32,
}

impl Scripts {
    fn of(config: &Config) -> Option<Self> {
        let options = config.scripts;
        options.is_on.then_some(Self {
            allow: match options.allow {
                ScriptTools::ReadOnly => "read_only",
                ScriptTools::All => "all",
            },
            max_calls: options.max_calls,
        })
    }

    fn show(&self, output: &Output) {
        let tools = match self.allow {
            "all" => "all tools that the rules permit",
            _ => "tools that declare to be read-only",
        };
        output.line(format!(
            "scripts are on: each makes up to {} calls, of {tools}",
            self.max_calls
        ));
    }
}

/// How clients see the tools.
#[derive(Serialize)]
struct Surfaces {
    /// For clients without a setting of their own.
    mode: &'static str,
    /// The tokens of definitions up to which `auto` shows tools directly.
    small: usize,
    /// For clients over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<&'static str>,
    /// For single clients, by the configuration.
    clients: BTreeMap<String, &'static str>,
    /// The tools next to the meta-tools.
    show: Vec<String>,
    /// The decisions of `auto`.
    decided: Vec<Decided>,
}

/// A decision of `auto`.
#[derive(Serialize)]
struct Decided {
    #[serde(flatten)]
    decision: Decision,
    reason: String,
}

impl Surfaces {
    fn of(app: &App) -> Self {
        let config = app.proxy().unscoped().config();
        let http = config.http.as_ref().ok().and_then(|http| http.surface);
        let clients = config.surface.clients.iter();
        let decided = decisions(&app.paths().state_dir, &config).into_iter();
        Self {
            mode: config.surface.mode.text(),
            small: config.surface.small,
            show: config.surface.show.patterns().to_vec(),
            http: http.map(Surface::text),
            clients: clients
                .filter_map(|(client, own)| Some((client.clone(), own.surface?.text())))
                .collect(),
            decided: decided
                .map(|decision| Decided {
                    reason: decision.reason(),
                    decision,
                })
                .collect(),
        }
    }

    fn show(&self, output: &Output) {
        let others: Vec<String> = (self.clients.iter())
            .map(|(client, surface)| format!("{surface} for {}", printable(client)))
            .chain(self.http.map(|surface| format!("{surface} over HTTP")))
            .collect();
        let is_default = self.mode == Surface::default().text();
        if !is_default || !others.is_empty() || !self.decided.is_empty() {
            let others: String = others.iter().map(|other| format!(", {other}")).collect();
            output.line(format!("surface: {}{others}", self.mode));
        }
        if !self.show.is_empty() {
            let show = printable(&self.show.join(", "));
            output.line(format!("next to the three tools: {show}"));
        }
        for Decided { decision, reason } in &self.decided {
            let client = match decision.client.as_str() {
                "" => "clients without a name",
                name => name,
            };
            let profile = match decision.profiles.is_empty() {
                true => String::new(),
                false => printable(&format!(" ({})", decision.profiles.join(", "))),
            };
            output.row(
                "  ",
                format!(
                    "{}{profile}: {} since {}, because of {reason}",
                    printable(client),
                    printable(&decision.surface),
                    printable(&decision.since)
                ),
            );
        }
    }
}

/// The secrets of `${keyring:NAME}`.
#[derive(Serialize)]
struct KeyringState {
    in_keychain: usize,
    in_file: usize,
    /// Whether the encrypted file can be read now; `null` if it has no secrets.
    file_is_open: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl KeyringState {
    /// `None` if there are no secrets.
    fn of(app: &App) -> Option<Self> {
        let store = Store::of(app.paths(), &app.session().environment);
        let mut state = Self {
            in_keychain: 0,
            in_file: 0,
            file_is_open: None,
            error: None,
        };
        match store.list() {
            Ok(all) if all.is_empty() => return None,
            Ok(all) => {
                let is_in_file = |secret: &&Listed| secret.location == Location::File;
                state.in_file = all.iter().filter(is_in_file).count();
                state.in_keychain = all.len() - state.in_file;
                state.file_is_open = (state.in_file > 0).then(|| store.key().is_ok());
            }
            Err(error) => state.error = Some(chain(&error)),
        }
        Some(state)
    }

    fn show(&self, output: &Output) {
        if let Some(error) = &self.error {
            output.line(format!("keyring: {}", bad(error)));
            return;
        }
        let locked = match self.file_is_open {
            Some(false) => format!(" ({}: `mcpzip secret unlock`)", bad("locked")),
            _ => String::new(),
        };
        output.line(format!(
            "keyring: {} in the keychain, {} in the encrypted file{locked}",
            counted(self.in_keychain, "secret"),
            self.in_file
        ));
    }
}

/// The file of secrets.
#[derive(Serialize)]
struct Secrets {
    #[serde(serialize_with = "write_path")]
    file: PathBuf,
    count: usize,
    /// Whether other users of this machine may read it.
    is_open: bool,
}

impl Secrets {
    /// `None` if there is no such file.
    fn of(config_file: &Path) -> Option<Self> {
        let count = stored_secrets(config_file).ok()?.len();
        let file = secrets_file(config_file);
        let metadata = file.metadata().ok()?;
        Some(Self {
            is_open: is_open(&metadata),
            file,
            count,
        })
    }

    fn show(&self, output: &Output) {
        let open = match self.is_open {
            true => format!(
                "; {}",
                bad("other users can read it: `mcpzip doctor --fix`")
            ),
            false => String::new(),
        };
        output.line(format!(
            "secrets: {} in {}{open}",
            self.count,
            self.file.display()
        ));
    }
}

#[cfg(unix)]
fn is_open(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(metadata) & 0o077 != 0
}

/// On other systems the user's own directories are private.
#[cfg(not(unix))]
fn is_open(_: &std::fs::Metadata) -> bool {
    false
}

/// The audit log.
#[derive(Serialize)]
struct AuditLog {
    #[serde(serialize_with = "write_path")]
    directory: PathBuf,
    /// Why no line can be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    copies: Vec<Copies>,
}

/// A target of copies of the lines.
#[derive(Serialize)]
struct Copies {
    to: &'static str,
    /// Why the target does not take them.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

impl AuditLog {
    /// The time for all targets together.
    const PATIENCE: Duration = Duration::from_millis(500);

    /// `None` if there is no log.
    async fn of(app: &App) -> Option<Self> {
        let config = app.proxy().unscoped().config();
        if !config.audit.is_on {
            return None;
        }
        let directories = Directories::below(&app.paths().state_dir);
        let fault = Audit::check(&directories).err().map(|error| chain(&error));
        let AuditCopies {
            stdout,
            syslog,
            otlp,
        } = &config.audit_copies;
        let wanted = [
            ("stdout", *stdout),
            ("syslog", syslog.is_some()),
            ("otlp", otlp.is_some()),
        ];
        let asked = Audit::unreachable(&config.audit_copies);
        let answers = tokio::time::timeout(Self::PATIENCE, asked).await.ok();
        let fault_of = |to: &str| match (&answers, to) {
            (_, "stdout") => None,
            (None, _) => Some("no answer within half a second".to_owned()),
            (Some(faults), to) => {
                let fault = faults.iter().find(|(target, _)| *target == to);
                fault.map(|(_, reason)| config.masker.mask(reason).into_owned())
            }
        };
        let wanted = wanted.into_iter().filter(|(_, is_wanted)| *is_wanted);
        Some(Self {
            directory: directories.chains,
            fault,
            copies: wanted
                .map(|(to, _)| Copies {
                    to,
                    fault: fault_of(to),
                })
                .collect(),
        })
    }

    fn show(&self, output: &Output) {
        let directory = self.directory.display();
        match &self.fault {
            None => output.line(format!("audit log: {directory}")),
            Some(fault) => output.line(format!(
                "audit log: {directory}; {}",
                bad(format!("it cannot be written: {}", printable(fault)))
            )),
        }
        for Copies { to, fault } in &self.copies {
            let state = match fault {
                None if *to == "stdout" => "only of `serve --http`".to_owned(),
                None => "taken".to_owned(),
                Some(fault) => bad(format!("not taken: {}", printable(fault))),
            };
            output.line(format!("  copies to {to}: {state}"));
        }
    }
}

/// The state of the daemon.
#[derive(Serialize)]
struct Daemon {
    is_wanted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<daemon::Status>,
    /// Why the daemon cannot be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    /// The processes that serve their clients without the daemon, each with the reason.
    alone: Vec<(u32, String)>,
}

impl Daemon {
    fn of(app: &App) -> Self {
        let mode = app.proxy().unscoped().config().daemon.mode;
        let (running, fault) = match daemon::status(app.paths(), &app.session().environment) {
            Ok(running) => (running, None),
            Err(fault) => (None, Some(chain(fault.as_ref()))),
        };
        Self {
            is_wanted: mode == DaemonMode::Auto,
            running,
            // A fault does not matter if the daemon is off.
            fault: fault.filter(|_| mode == DaemonMode::Auto),
            alone: crate::daemon::reasons(&app.paths().state_dir),
        }
    }

    fn show(&self, output: &Output) {
        match (&self.running, &self.fault) {
            (Some(running), _) => {
                output.line(format!("daemon: {}", daemon::sentence(running)));
                if let Some(fault) = daemon::http_fault(running) {
                    output.line(format!("{} {}", bad("daemon:"), printable(&fault)));
                }
            }
            (None, Some(fault)) => output.line(format!("{} {}", bad("daemon:"), printable(fault))),
            (None, None) if self.is_wanted => {
                output.line("daemon: not running; the next session starts it");
            }
            (None, None) => {}
        }
        for (process, reason) in &self.alone {
            output.line(format!(
                "process {process} runs servers of its own: {}",
                printable(reason)
            ));
        }
    }
}

/// The path of the configuration.
fn path(status: &Status) -> &str {
    status.configuration.as_deref().unwrap_or_default()
}

fn show(status: &Status, output: &Output) {
    output.line(format!(
        "{} {}",
        strong(format!("mcpzip {}", status.version)),
        faint(path(status))
    ));
    show_servers(status, "  ", known, output);
    show_warnings(status, output);
    output.line(sum(status));
    if let Some(coverage) = status.search_by_meaning.filter(|_| status.tools > 0) {
        let rest = match coverage.embedded < coverage.tools {
            true => ", mcpzip's own included; the others follow while a client is served",
            false => ", mcpzip's own included",
        };
        output.line(format!("search by meaning: {coverage}{rest}"));
    }
}

/// Prints a line for each server, and below it its faults, withheld tools and changes.
pub(super) fn show_servers(
    status: &Status,
    indent: &str,
    state: fn(&ServerReport) -> String,
    output: &Output,
) {
    let servers = &status.servers;
    let widths = servers.iter().map(|server| server.name.chars().count());
    let widest = widths.max().unwrap_or(0);
    let below = format!("{indent}{:widest$}  ", "");
    for server in servers {
        let pad = " ".repeat(widest - server.name.chars().count());
        output.row(
            format!("{indent}{}{pad}  ", strong(printable(&server.name))),
            state(server),
        );
        let withheld = (server.withheld > 0)
            .then(|| format!("{} withheld", counted(server.withheld, "more tool")));
        let changed = server.changed_text();
        let sandbox = server.sandbox.as_ref();
        let sandbox = sandbox.map(|sandbox| format!("in a sandbox: {sandbox}"));
        let package = server.package.as_ref();
        let package = package.map(|package| format!("started from the cache: {package}"));
        let reason = server.reason.as_ref().map(|reason| match &server.position {
            Some(position) => format!("{}:{position}: {reason}", path(status)),
            None => reason.clone(),
        });
        for line in reason
            .iter()
            .chain(&sandbox)
            .chain(&package)
            .chain(&server.flaws)
            .chain(&server.override_faults)
            .chain(&withheld)
            .chain(&changed)
            .chain(&server.findings_text())
        {
            output.row(&below, printable(line));
        }
    }
}

pub(super) fn show_warnings(status: &Status, output: &Output) {
    for warning in &status.warnings {
        let line = format!("{}:{warning}", path(status));
        output.line(format!("{} {}", caution("warning:"), printable(&line)));
    }
}

pub(super) fn sum(status: &Status) -> String {
    if status.servers.is_empty() {
        return NO_SERVER.to_owned();
    }
    let tools = strong(counted(status.tools, "tool"));
    format!("{tools} of {}", counted(status.servers.len(), "server"))
}

/// The state of a server from its cached tool list.
fn known(server: &ServerReport) -> String {
    let software = server
        .software
        .as_deref()
        .map(|name| format!(" ({})", printable(name)))
        .unwrap_or_default();
    match (server.state, server.listed_text(), server.failed_text()) {
        ("disabled", ..) => faint("disabled"),
        ("faulty", ..) => bad("cannot be used"),
        (_, Some(listed), failed) => {
            let failed = failed.map(|failed| format!("; {}", bad(printable(&failed))));
            format!(
                "{}{}, {listed}{}{}",
                good(server.tools_text()),
                server.other_entries(),
                faint(software),
                failed.unwrap_or_default()
            )
        }
        (_, None, Some(failed)) => bad(printable(&failed)),
        (_, None, None) => faint("not listed yet"),
    }
}
