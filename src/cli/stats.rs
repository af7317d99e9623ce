//! `mcpzip stats`: prints calls, errors, latencies and bytes by tool, and erases what search has learnt from them.

use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::completions;
use super::diagnostics::Exit;
use super::output::{Output, faint};
use crate::app::STATISTICS;
use crate::config::{BUILT_IN_SERVER, Config, Environment, Paths};
use crate::day::{Day, since};
use crate::search::habits::{self, Learnt};
use crate::statistics::{Row, StatisticsStorage};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip stats
  mcpzip stats --since 7d --server github
  mcpzip stats --forget")]
pub(super) struct Arguments {
    /// First day to count: 7d, 4w or a date [default: all recorded days]
    #[arg(long, value_parser = since)]
    since: Option<Day>,
    /// Only tools of this server
    #[arg(long, short, add = completions::of_servers())]
    server: Option<String>,
    /// Erase what search has learnt from calls (`search.learn`), of everyone; the counts of calls stay
    #[arg(long, conflicts_with_all = ["since", "server"])]
    forget: bool,
}

pub(super) fn run(
    arguments: &Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let learnt = paths.state_dir.join(habits::DIRECTORY);
    if arguments.forget {
        return forget(&learnt, output);
    }
    let place = StatisticsStorage::of(&environment.state(&paths.state_dir), STATISTICS);
    let history = place
        .load(arguments.since)
        .context("nothing can be shown")?;
    let total = history.total();
    if let Some(name) = &arguments.server
        && total.rows(Some(name)).is_empty()
        && let Ok(config) = Config::load(paths, environment)
        && !config.names.contains(name)
        && name != BUILT_IN_SERVER
    {
        return Err(Exit::unknown_server(name, &config));
    }
    if !output.is_json() {
        output.line(total.table(arguments.server.as_deref()));
        if let (Some(first), Some(last)) =
            (history.days.keys().next(), history.days.keys().next_back())
        {
            output.line(faint(format!(
                "{first} to {last}; running processes add their counts every 30 s"
            )));
        }
        let learnt = habits::learnt(&learnt);
        if learnt.tools > 0 {
            output.line(faint(format!(
                "search has learnt from calls of {}; `mcpzip stats --forget` erases that",
                tools(learnt)
            )));
        }
        return Ok(());
    }
    let rows: Vec<_> = total
        .rows(arguments.server.as_deref())
        .iter()
        .map(row)
        .collect();
    output.json(&json!({
        "from": history.days.keys().next().map(ToString::to_string),
        "to": history.days.keys().next_back().map(ToString::to_string),
        "tools": rows,
    }));
    Ok(())
}

fn forget(directory: &Path, output: &Output) -> Result<(), Exit> {
    let erased = habits::forget(directory)
        .with_context(|| format!("`{}` cannot be erased whole", directory.display()))?;
    if output.is_json() {
        output.json(&json!({ "forgotten_tools": erased.tools, "people": erased.people }));
    } else if erased.tools == 0 {
        output.line("search had learnt nothing");
    } else {
        output.line(format!(
            "erased what search had learnt from calls of {}; processes that are running forget it within 30 s",
            tools(erased)
        ));
    }
    Ok(())
}

/// The number of tools, and that of people if there are several.
fn tools(learnt: Learnt) -> String {
    let Learnt { tools, people } = learnt;
    let tools = match tools {
        1 => "1 tool".to_owned(),
        tools => format!("{tools} tools"),
    };
    match people {
        0 | 1 => tools,
        people => format!("{tools} by {people} people"),
    }
}

fn row(row: &Row<'_>) -> serde_json::Value {
    let Row {
        server,
        tool,
        tally,
    } = row;
    let milliseconds = |share| {
        tally
            .latency
            .quantile(share)
            .map(|time| time.as_secs_f64() * 1000.0)
    };
    json!({
        "server": server,
        "tool": tool,
        "calls": tally.calls,
        "errors": tally.errors,
        "p50_ms": milliseconds(0.5),
        "p95_ms": milliseconds(0.95),
        "sent_bytes": tally.sent,
        "received_bytes": tally.received,
    })
}
