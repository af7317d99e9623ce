//! `mcpzip remove`, `enable` and `disable`: change existing entries of the configuration.

use std::cell::RefCell;
use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;

use super::add::{approval_hint, shown_restriction};
use super::completions;
use super::diagnostics::Exit;
use super::output::{Output, faint, good, strong};
use super::setup::{refusal_hint, warnings_about};
use super::unknown::unknown;
use crate::catalog::{Key, PinHome, Pins};
use crate::clients::{Client, Journal};
use crate::config::{
    Change, ChangeError, Config, Document, Environment, Paths, Server, Trust, change_servers,
    restrictions,
};
use crate::tool::ServerName;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip remove files
  mcpzip remove github linear")]
pub(super) struct RemoveArguments {
    /// Names of the servers
    #[arg(value_name = "NAME", required = true, add = completions::of_servers())]
    names: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip enable files
  mcpzip enable github linear")]
pub(super) struct EnableArguments {
    /// Names of the servers
    #[arg(value_name = "NAME", required = true, add = completions::of_servers())]
    names: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip disable files
  mcpzip disable github linear")]
pub(super) struct DisableArguments {
    /// Names of the servers
    #[arg(value_name = "NAME", required = true, add = completions::of_servers())]
    names: Vec<String>,
}

/// The surroundings that these commands share.
pub(super) struct Context<'a> {
    pub(super) paths: &'a Paths,
    pub(super) environment: &'a Environment,
    pub(super) output: &'a Output,
}

pub(super) fn run_remove(arguments: &RemoveArguments, context: &Context<'_>) -> Result<(), Exit> {
    change(&arguments.names, &Change::Remove, "removed", context)
}

pub(super) fn run_enable(arguments: &EnableArguments, context: &Context<'_>) -> Result<(), Exit> {
    change(
        &arguments.names,
        &Change::Switch { disabled: false },
        "enabled",
        context,
    )
}

pub(super) fn run_disable(arguments: &DisableArguments, context: &Context<'_>) -> Result<(), Exit> {
    change(
        &arguments.names,
        &Change::Switch { disabled: true },
        "disabled",
        context,
    )
}

fn change(
    names: &[String],
    change: &Change,
    done: &str,
    context: &Context<'_>,
) -> Result<(), Exit> {
    // This fails without a configuration, so none is created.
    let config = Config::load(context.paths, context.environment)?;
    let mut names = names.to_vec();
    names.sort();
    names.dedup();
    let changes: Vec<_> = names
        .iter()
        .map(|name| (name.clone(), change.clone()))
        .collect();
    let is_already = |name: &str| match change {
        Change::Switch { disabled } => config
            .servers
            .iter()
            .any(|(server, entry)| server.as_str() == name && entry.disabled == *disabled),
        _ => false,
    };
    let file = &context.paths.config_file;
    let gone = RefCell::new(Vec::new());
    let changed = change_servers(
        file,
        &changes,
        context.environment,
        true,
        |change, name, document| {
            if matches!(change, Change::Remove) {
                gone.borrow_mut().extend(gone_hint(name, document));
            }
            Ok(())
        },
    );
    let changed = changed.map_err(|error| {
        match (
            &error,
            names
                .iter()
                .find(|name| !config.names.contains(name.as_str())),
        ) {
            (ChangeError::Refused(_), Some(name)) => {
                let text = unknown(name, config.names.iter().map(String::as_str));
                match names.len() {
                    1 => Exit::failed(text),
                    _ => Exit::failed(format!("nothing was {done}: {text}")),
                }
            }
            _ => Exit::from(error),
        }
    })?;
    let is_enabled = matches!(change, Change::Switch { disabled: false });
    let is_removed = matches!(change, Change::Remove);
    let mut hints = gone.into_inner();
    if is_removed {
        hints.extend(twin_hints(&names, &config, &changed.config, context));
    }
    for name in names.iter().filter(|_| is_removed) {
        hints.extend(forgotten_hint(name, context.paths));
    }
    for name in names.iter().filter(|_| is_enabled) {
        hints.extend(approval_hint(name, &changed.config));
        hints.extend(refusal_hint(name, context.paths));
        hints.extend(warnings_about(name, context.paths, context.environment));
    }
    for hint in hints {
        context.output.note(&format!("hint: {hint}"));
    }
    if context.output.is_json() {
        context
            .output
            .json(&json!({ "servers": names, "file": file.display().to_string(), "change": done }));
        return Ok(());
    }
    for name in &names {
        let fault = changed
            .config
            .faults
            .iter()
            .find(|fault| fault.name == *name);
        let fault = fault
            .map(|fault| format!(", but cannot be used: {}", fault.fault))
            .unwrap_or_default();
        context.output.line(match is_already(name) {
            true => format!("{} is {done} already", strong(name)),
            false => format!("{} {done} {}{fault}", good("✓"), strong(name)),
        });
    }
    context.output.line(faint(format!("  {}", file.display())));
    Ok(())
}

/// Tells which clients had a removed server switched off: that is known by its entry here.
fn forgotten_hint(name: &str, paths: &Paths) -> Option<String> {
    let history = Journal::new(&paths.state_dir).history();
    let titles: Vec<&str> = history.refused_by(name).map(Client::title).collect();
    (!titles.is_empty()).then(|| {
        format!(
            "{} had `{name}` switched off, which is forgotten with it: if mcpzip gets the same program again, {} can call it",
            titles.join(" and "),
            match titles.len() {
                1 => "that client",
                _ => "those clients",
            },
        )
    })
}

/// Tells what holds for the other names of removed programs, which had the `trust` of those.
fn twin_hints(
    removed: &[String],
    before: &Config,
    now: &Config,
    context: &Context<'_>,
) -> Vec<String> {
    let home = PinHome::of(
        context.environment.store(),
        context.paths.state_dir.join("pins"),
    );
    let key = |name: &ServerName, entry: &Server| Key {
        server: name.clone(),
        configuration: entry.hash.to_string(),
    };
    let hint = |(twin, by): (&ServerName, &ServerName)| {
        let (earlier, entry) = (before.servers.get(twin)?.trust, now.servers.get(twin)?);
        let is_meant = removed.iter().any(|name| name == by.as_str());
        if !is_meant || entry.trust >= earlier {
            return None;
        }
        let keys = [key(twin, entry), key(by, before.servers.get(by)?)];
        let pins = Pins::new(Some(home.clone()));
        pins.require(BTreeMap::from([(twin.clone(), entry.trust)]));
        pins.load(keys.iter());
        // One that was not listed yet inherits it.
        let inherits = entry.trust == Trust::Unset && pins.is_unrecorded(twin);
        let same = format!("`{twin}` is the same program or URL as `{by}`");
        Some(
            match pins.is_quarantined(twin) || inherits && pins.is_quarantined(by) {
                true => format!(
                    "{same}, and stays in quarantine: `mcpzip approve {twin}` shows and approves its tools"
                ),
                false => format!(
                    "{same}, and its `trust` was \"{}\" because of it. It is \"{}\" now",
                    earlier.text(),
                    entry.trust.text()
                ),
            },
        )
    };
    before.raised_trust.iter().filter_map(hint).collect()
}

/// Tells which restrictions go with a removed entry, so that they are set again if the server comes back.
fn gone_hint(name: &str, document: &Document) -> Option<String> {
    let gone = restrictions(document, name).into_iter();
    // The others say how the server is reached, or whether it runs.
    let others = ["base_url", "disabled", "oauth", "placement"];
    let gone = gone.filter(|(key, _)| !others.contains(key));
    let gone: Vec<String> = gone.map(|gone| shown_restriction(&gone)).collect();
    (!gone.is_empty()).then(|| {
        format!(
            "{} went with `{name}`, and `mcpzip add {name}` does not bring them back",
            gone.join(" and ")
        )
    })
}
