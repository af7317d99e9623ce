//! `mcpzip registry`: searches the registry for servers.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::diagnostics::Exit;
use super::output::{Output, bad, faint, strong};
use crate::config::{Config, Environment, Paths};
use crate::registry::{Answer, Registry};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Find servers by a part of their names
    Search(SearchArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip registry search github
  mcpzip registry search postgres --limit 50")]
pub(super) struct SearchArguments {
    /// Part of the name
    query: String,
    /// Maximum number of servers to show
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
}

pub(super) async fn run(
    command: &Command,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let Command::Search(arguments) = command;
    let registry = open(paths, environment)?;
    let answer = asked(
        output,
        registry.search(&arguments.query, arguments.limit.into()),
    )
    .await?;
    let found = &answer.value;
    if output.is_json() {
        output.json(&json!({ "servers": found, "stale_seconds": answer.stale.map(|(age, _)| age.as_secs()) }));
        return Ok(());
    }
    for server in found {
        let deprecated = if server.is_deprecated {
            bad("  deprecated")
        } else {
            String::new()
        };
        let ways = match server.ways.as_slice() {
            [] => "nothing that mcpzip can run".to_owned(),
            ways => ways.join(", "),
        };
        output.line(format!(
            "{} {}  {}{deprecated}",
            strong(&server.name),
            server.version,
            faint(ways)
        ));
        output.line(format!("  {}", server.description));
    }
    match found.as_slice() {
        [] => output.line(format!("no server has `{}` in its name", arguments.query)),
        [first, ..] => output.line(faint(format!(
            "`mcpzip add NAME --from-registry {}` adds one",
            first.name
        ))),
    }
    Ok(())
}

/// The registry that the configuration names.
pub(super) fn open(paths: &Paths, environment: &Environment) -> Result<Registry, Exit> {
    let config = Config::load_or_default(paths, environment)?;
    for warning in config
        .warnings
        .iter()
        .filter(|warning| warning.to_string().contains("`registry`"))
    {
        tracing::warn!("{warning}");
    }
    Ok(Registry::new(&config.registry, &paths.cache_dir)?)
}

/// Waits for an answer of the registry, and says so if it is an old one.
pub(super) async fn asked<T>(
    output: &Output,
    answer: impl Future<Output = Result<Answer<T>, crate::registry::Error>>,
) -> Result<Answer<T>, Exit> {
    let answer = {
        let _spinner = output.spinner("asking the registry");
        tokio::select! {
            answer = answer => answer?,
            signal = crate::shutdown::signal() => return Err(Exit::interrupted(signal)),
        }
    };
    if let Some((age, reason)) = &answer.stale {
        output.note(&format!(
            "{reason}; this is its answer from {} ago",
            time(*age)
        ));
    }
    Ok(answer)
}

fn time(age: Duration) -> String {
    match age.as_secs() / 60 {
        0..=119 => format!("{} min", age.as_secs() / 60),
        minutes @ 120..=2879 => format!("{} h", minutes / 60),
        minutes => format!("{} days", minutes / 1440),
    }
}
