//! `mcpzip servers`: connects to every server, and shows its state and the reason for a failure.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::completions;
use super::daemon_option::DaemonOption;
use super::diagnostics::Exit;
use super::output::{Output, bad, faint, good};
use super::printable::printable;
use super::profile_option::ProfileOption;
use super::status::{show_servers, show_warnings, sum};
use crate::app::App;
use crate::proxy::{ServerReport, counted};
use crate::tool::ServerName;

const LIST_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "Examples:
  mcpzip servers
  mcpzip servers github
  mcpzip servers github --health
  mcpzip servers --json | jq -r '.servers[] | select(.state != \"ready\") | .name'

Ends with 0 when all servers are ready, and with 4 when any of them is not; disabled servers and those of other projects don't count.")]
pub(super) struct Arguments {
    /// Show only this server
    #[arg(add = completions::of_servers())]
    server: Option<String>,
    /// Show only servers that are not ready, for scripts that use the exit code
    #[arg(long)]
    health: bool,
    #[command(flatten)]
    pub(super) daemon: DaemonOption,
    #[command(flatten)]
    pub(super) profile: ProfileOption,
}

pub(super) async fn run(arguments: &Arguments, app: &App, output: &Output) -> Result<(), Exit> {
    let proxy = app.proxy();
    let config = proxy.unscoped().config();
    // A server whose name was made safe is known by both names.
    let only = arguments.server.as_deref().map(|name| {
        let mut renamed = config.renamed.iter();
        let safe = renamed.find(|(_, written)| *written == name);
        safe.map_or(name, |(safe, _)| safe.as_str())
    });
    if let Some(name) = only
        && !config.names.contains(name)
    {
        return Err(Exit::unknown_server(name, &config));
    }
    {
        let count = config
            .servers
            .iter()
            .filter(|(name, entry)| {
                !entry.disabled && only.is_none_or(|only| only == name.as_str())
            })
            .count();
        let _spinner = output.spinner(format!("connecting to {}", counted(count, "server")));
        match only.map(ServerName::new) {
            None => proxy.inventory.list(None, LIST_LIMIT).await,
            Some(Ok(server)) => proxy.inventory.list(Some(&server), LIST_LIMIT).await,
            // The invalid name is reported as the server's fault.
            Some(Err(_)) => {}
        }
    }
    let mut status = proxy.inventory.status(&proxy.unscoped());
    if let Some(only) = only {
        status.servers.retain(|server| server.name == only);
        status.tools = status.servers.iter().map(|server| server.tools).sum();
    }
    let failed: Vec<String> = status
        .servers
        .iter()
        .filter(|server| match server.state {
            "ready" | "idle" => false,
            // Such a server need not be ready, unless the user names it.
            "disabled" | "elsewhere" => only.is_some(),
            _ => true,
        })
        .map(|server| format!("`{}`", server.name))
        .collect();
    // The sessions' servers are shown by `daemon status`; this command is one of them while it runs.
    status
        .servers
        .iter_mut()
        .for_each(|server| server.sharing = None);
    // Alone, this process makes no further attempt.
    if !output.is_elsewhere() {
        for server in &mut status.servers {
            let reason = server.reason.take();
            server.reason = reason.map(|reason| without_next_attempt(&reason).to_owned());
        }
    }
    let count = status.servers.len();
    if arguments.health {
        status
            .servers
            .retain(|server| failed.contains(&format!("`{}`", server.name)));
    }
    if output.is_json() {
        output.json(&status);
    } else if arguments.health {
        show_servers(&status, "", state, output);
    } else {
        show_servers(&status, "", state, output);
        show_warnings(&status, output);
        output.line(faint(sum(&status)));
        if let Some(coverage) = status
            .search_by_meaning
            .filter(|coverage| status.tools > 0 && coverage.embedded < coverage.tools)
        {
            output.line(faint(format!("search by meaning: {coverage}")));
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    if let (Some(name), [server]) = (only, &status.servers[..])
        && server.state == "disabled"
    {
        return Err(Exit::unavailable(format!(
            "`{name}` is disabled; `mcpzip enable {name}` uses it again"
        )));
    }
    Err(Exit::unavailable(format!(
        "not ready: {} ({} of {})",
        failed.join(", "),
        failed.len(),
        counted(count, "server")
    )))
}

/// A reason without the time of the next attempt.
fn without_next_attempt(reason: &str) -> &str {
    reason
        .rsplit_once("; next attempt ")
        .map_or(reason, |(reason, _)| reason)
}

fn state(server: &ServerReport) -> String {
    let state = match server.state {
        "ready" => good("ready"),
        "failed" | "faulty" => bad(server.state),
        state => faint(state),
    };
    let software = server
        .software
        .as_deref()
        .map(|software| faint(format!(" ({})", printable(software))))
        .unwrap_or_default();
    let beside = server.other_entries();
    format!("{state}  {}{beside}{software}", server.tools_text())
}
