//! `mcpzip tools`: prints the signatures of all tools, or of one server's.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::completions;
use super::daemon_option::DaemonOption;
use super::diagnostics::Exit;
use super::output::{Output, bad, faint, strong};
use super::printable::printable_lines;
use super::profile_option::ProfileOption;
use super::unknown::NO_SERVER;
use crate::app::App;
use crate::catalog::Snapshot;
use crate::config::{BUILT_IN_SERVER, Config};
use crate::proxy::{Progress, counted};
use crate::tool::{Definition, ServerName, render_hit};

const LIST_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "Examples:
  mcpzip tools
  mcpzip tools github --json | jq -r '.[].name'
  mcpzip tools github --json --schemas")]
pub(super) struct Arguments {
    /// Only tools of this server
    #[arg(add = completions::of_servers())]
    server: Option<String>,
    /// With `--json`, add each tool's whole definition, with its schemas
    #[arg(long)]
    #[serde(default)]
    schemas: bool,
    #[command(flatten)]
    pub(super) daemon: DaemonOption,
    #[command(flatten)]
    pub(super) profile: ProfileOption,
}

impl Arguments {
    /// Whether the tools of all servers are listed.
    pub(super) fn is_about_all(&self) -> bool {
        self.server.is_none()
    }
}

fn is_disabled(server: &str, config: &Config) -> bool {
    let mut known = config.servers.iter();
    known.any(|(name, entry)| name.as_str() == server && entry.disabled)
}

/// Why `server` has no list.
fn not_listed(server: &str, app: &App) -> Exit {
    let proxy = app.proxy();
    let config = proxy.unscoped().config();
    let progress = proxy.inventory.progress().into_iter();
    let progress = progress.filter(|(name, _)| name.as_str() == server);
    if let Some(fault) = config.faults.iter().find(|fault| fault.name == server) {
        return Exit::failed(format!("server `{server}` cannot be used: {}", fault.fault));
    }
    match progress.map(|(_, progress)| progress).next() {
        Some(Progress::Failed(reason)) => {
            Exit::unavailable(config.masker.mask(&reason.to_string()))
        }
        Some(_) => Exit::unavailable(format!(
            "server `{server}` has not listed its tools within {LIST_LIMIT:?}"
        )),
        None if is_disabled(server, &config) => Exit::failed(format!(
            "server `{server}` is disabled; `mcpzip enable {server}` uses it again"
        )),
        None => Exit::unknown_server(server, &config),
    }
}

/// A sentence about each of the `wanted` servers that is in quarantine.
fn quarantined(app: &App, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = String> {
    let proxy = app.proxy();
    let config = proxy.unscoped().config();
    let servers: Vec<ServerName> = config.servers.keys().cloned().collect();
    let text = move |server: ServerName| {
        let pending = proxy.inventory.pending(&server);
        let state = match pending.is_rejected() {
            true => "were rejected",
            false => "wait for a person's approval",
        };
        let text = format!("{server}: its tools {state}: `mcpzip approve {server}` shows them");
        (pending.is_quarantined && wanted(server.as_str())).then_some(text)
    };
    servers.into_iter().filter_map(text)
}

/// A sentence about each of the `wanted` servers without a list.
async fn unlisted(app: &App, snapshot: &Snapshot, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let proxy = app.proxy();
    let progress = proxy.inventory.progress();
    let mut failures = proxy.inventory.earlier_failures(&progress).await;
    let config = proxy.unscoped().config();
    let reasons = progress.into_iter().filter_map(|(server, progress)| {
        let reason = match progress {
            Progress::Failed(reason) => reason.to_string(),
            Progress::UnderWay if snapshot.server(&server).is_none() => {
                let failure = failures
                    .remove(&server)
                    .map(|failure| format!("; {failure}"));
                format!(
                    "it has not listed its tools yet{}",
                    failure.unwrap_or_default()
                )
            }
            _ => return None,
        };
        let reason = config.masker.mask(&reason);
        wanted(server.as_str()).then(|| format!("{server}: {reason}"))
    });
    reasons.collect()
}

pub(super) async fn run(arguments: &Arguments, app: &App, output: &Output) -> Result<(), Exit> {
    let proxy = app.proxy();
    {
        let _spinner = output.spinner("asking servers whose tools are not known yet");
        let server = arguments.server.as_deref();
        match server.map(ServerName::new) {
            None => proxy.inventory.known(None, LIST_LIMIT).await,
            Some(Ok(server)) => proxy.inventory.known(Some(&server), LIST_LIMIT).await,
            // An invalid name is reported as unknown below.
            Some(Err(_)) => proxy.inventory.loaded().await,
        }
    }
    let snapshot = proxy.unscoped().snapshot();
    let wanted = |name: &str| {
        arguments
            .server
            .as_deref()
            .map_or(name != BUILT_IN_SERVER, |server| server == name)
    };
    if let Some(server) = arguments.server.as_deref()
        && !snapshot
            .servers()
            .any(|known| known.name().as_str() == server)
    {
        return Err(not_listed(server, app));
    }
    let mut all = Vec::new();
    for tool in snapshot
        .tools()
        .filter(|tool| wanted(tool.server().name().as_str()))
    {
        let json = tool
            .json()
            .map_err(|error| Exit::failed(error.to_string()))?;
        let Ok(definition) = Definition::parse(&json) else {
            continue;
        };
        let name = tool.qualified_name().to_string();
        let text = render_hit(tool.server().name(), &definition);
        if output.is_json() {
            let mut shown =
                json!({ "name": name, "server": tool.server().name().as_str(), "text": text });
            if arguments.schemas {
                shown["definition"] = serde_json::from_str(json.get()).unwrap_or_default();
            }
            all.push(shown);
        } else {
            let rest = text.strip_prefix(&name).unwrap_or(&text);
            output.line(format!("{}{}", strong(&name), printable_lines(rest)));
        }
    }
    let unlisted = unlisted(app, &snapshot, wanted).await;
    let reasons = unlisted.into_iter().chain(quarantined(app, wanted));
    if output.is_json() {
        output.json(&all);
        reasons.for_each(|text| output.note(&text));
        return Ok(());
    }
    reasons.for_each(|text| output.line(bad(text)));
    let shown = snapshot
        .tools()
        .filter(|tool| wanted(tool.server().name().as_str()));
    output.line(match proxy.unscoped().config().names.is_empty() {
        true => NO_SERVER.to_owned(),
        false => faint(counted(shown.count(), "tool")),
    });
    Ok(())
}
