//! `mcpzip list`: prints the servers of the configuration without connecting to them.

use clap::Args;
use serde_json::json;

use super::diagnostics::Exit;
use super::output::{Output, bad, faint, strong};
use super::unknown::NO_SERVER;
use crate::config::{Config, ConfigWarning, EntryError, Environment, Paths, Transport};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip list
  mcpzip list --json

`mcpzip servers` connects to them and says how each is.")]
pub(super) struct Arguments {}

pub(super) fn run(paths: &Paths, environment: &Environment, output: &Output) -> Result<(), Exit> {
    let config = Config::load(paths, environment)?;
    let masked = |text: &str| config.masker.mask(text).into_owned();
    if output.is_json() {
        let usable = config.servers.iter().map(|(name, server)| {
            let kind = match server.transport {
                Transport::Stdio(ref stdio) if stdio.command_line.is_some() => "cli",
                Transport::Stdio(_) => "stdio",
                Transport::Http(ref remote) if remote.openapi.is_some() => "openapi",
                Transport::Http(_) => "http",
                Transport::Sse(_) => "sse",
                Transport::Folder(ref folder) => folder.holds.word(),
            };
            let state = if server.disabled { "disabled" } else { "enabled" };
            json!({ "name": name.as_str(), "written": config.renamed.get(name), "state": state, "type": kind, "target": masked(&server.way()), "description": server.description })
        });
        let faulty = config.faults.iter().map(
            |fault| json!({ "name": fault.name, "state": "faulty", "reason": fault.fault.to_string(), "position": fault.position.to_string() }),
        );
        let unusable = disabled(&config).map(
            |(name, fault)| json!({ "name": name, "state": "disabled", "reason": fault.to_string() }),
        );
        let servers = usable.chain(unusable).chain(faulty);
        output.json(&json!({ "file": paths.config_file.display().to_string(), "servers": servers.collect::<Vec<_>>() }));
        return Ok(());
    }
    let widths = config
        .servers
        .keys()
        .map(|name| name.as_str().chars().count());
    let widest = widths
        .chain(config.faults.iter().map(|fault| fault.name.chars().count()))
        .chain(disabled(&config).map(|(name, _)| name.chars().count()))
        .max()
        .unwrap_or(0);
    let pad = |name: &str| " ".repeat(widest - name.chars().count());
    for (name, server) in &config.servers {
        let disabled = if server.disabled {
            faint("  disabled")
        } else {
            String::new()
        };
        let written = config.renamed.get(name);
        let written = written
            .map(|written| faint(format!("  {written:?} in the file")))
            .unwrap_or_default();
        output.row(
            format!("{}{}  ", strong(name), pad(name.as_str())),
            format!("{}{written}{disabled}", masked(&server.way())),
        );
    }
    for (name, fault) in disabled(&config) {
        output.row(
            format!("{}{}  ", strong(name), pad(name)),
            format!("{} {fault}", faint("disabled, and cannot be used:")),
        );
    }
    for fault in &config.faults {
        let (name, reason) = (&fault.name, &fault.fault);
        output.row(
            format!("{}{}  ", strong(name), pad(name)),
            format!("{} {reason}", bad("cannot be used:")),
        );
    }
    if config.servers.is_empty() && config.faults.is_empty() && disabled(&config).next().is_none() {
        output.line(NO_SERVER);
    }
    output.line(faint(paths.config_file.display()));
    Ok(())
}

/// The disabled servers with a fault, which are no error.
fn disabled(config: &Config) -> impl Iterator<Item = (&str, &EntryError)> {
    config
        .warnings
        .iter()
        .filter_map(|warning| match &warning.kind {
            ConfigWarning::Disabled { name, fault } => Some((name.as_str(), fault)),
            _ => None,
        })
}
