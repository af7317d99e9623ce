//! `mcpzip audit`: prints, verifies and deletes the audit log, and prints the last hash of each chain.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::json;

use super::completions;
use super::diagnostics::Exit;
use super::output::{Output, bad, faint, good};
use super::printable::printable;
use crate::audit::{Directories, Filter, Kind, Line, Reader, delete_before, verify};
use crate::config::{Config, Environment, Paths};
use crate::day::{Day, since};
use crate::proxy::counted;

/// Interval between two reads with `--follow`.
const PAUSE: Duration = Duration::from_millis(200);

/// Columns of `--csv`, named like the members of a log line.
const COLUMNS: &str = "time,kind,outcome,session,client,version,identity,directory,server,tool,ms,sent,received,rule,detail,profile";

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "The log is written with `\"audit\": {}` in the configuration.

Examples:
  mcpzip audit --since 7d --denied
  mcpzip audit --server github -f
  mcpzip audit --csv > audit.csv
  mcpzip audit verify"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only calls to this server
    #[arg(long, short, add = completions::of_servers())]
    server: Option<String>,
    /// Only calls to this tool, by its name on its server
    #[arg(long)]
    tool: Option<String>,
    /// Only actions of the client with this name
    #[arg(long)]
    client: Option<String>,
    /// Only actions of this person
    #[arg(long)]
    user: Option<String>,
    /// Only actions of this kind
    #[arg(long, value_parser = PossibleValuesParser::new(Kind::names()))]
    kind: Option<String>,
    /// Only actions that a rule, a pin or a person refused
    #[arg(long)]
    denied: bool,
    /// Only failures
    #[arg(long)]
    errors: bool,
    /// First day to show: 7d, 4w or a date [default: today]
    #[arg(long, value_parser = since)]
    since: Option<Day>,
    /// Only the last NUMBER lines; with `--follow`, of those that exist at the start
    #[arg(long, short = 'n', value_name = "NUMBER")]
    limit: Option<usize>,
    /// Keep printing new lines until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Print CSV for a spreadsheet
    #[arg(long)]
    csv: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check that no line was changed or removed
    #[command(after_help = "Examples:
  mcpzip audit verify
  mcpzip audit verify --json")]
    Verify,
    /// Print the last hash of each chain, to be kept on another machine
    #[command(after_help = "Examples:
  mcpzip audit heads
  mcpzip audit heads > heads.txt")]
    Heads,
    /// Delete the log of all days before a date
    #[command(after_help = "Examples:
  mcpzip audit delete --before 2026-11-01
  mcpzip audit delete --before 4w --yes")]
    Delete {
        /// First day to keep: a date such as 2026-11-01, or a number of days or weeks such as 7d or 4w
        #[arg(long, value_parser = since)]
        before: Day,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

pub(super) fn run(
    arguments: Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let directories = Directories::below(&paths.state_dir);
    let advice = || {
        let config = Config::load(paths, environment);
        match config.is_ok_and(|config| config.audit.is_on) {
            true => "`audit` is on, and nothing was logged yet",
            false => "`\"audit\": {}` in the configuration turns it on",
        }
    };
    match arguments.command {
        Some(Command::Verify) => check(&directories, advice, output),
        Some(Command::Heads) => heads(&directories, output),
        Some(Command::Delete { before, yes }) => delete(&directories, before, yes, output),
        None => {
            let server = arguments.server.clone();
            let is_empty = show(arguments, &directories.chains, advice, output)?;
            if is_empty
                && let Some(name) = server
                && let Ok(config) = Config::load(paths, environment)
                && !config.names.contains(&name)
            {
                return Err(Exit::unknown_server(&name, &config));
            }
            Ok(())
        }
    }
}

/// Prints the lines that are wanted. Returns whether the log has none. `advice` says how there will be a log.
fn show(
    arguments: Arguments,
    chains: &Path,
    advice: impl Fn() -> &'static str,
    output: &Output,
) -> Result<bool, Exit> {
    let form = if arguments.csv {
        output.verbatim(COLUMNS);
        csv
    } else if output.is_json() {
        |line: &Line| line.raw.clone()
    } else {
        text
    };
    let filter = Filter {
        server: arguments.server,
        tool: arguments.tool,
        client: arguments.client,
        user: arguments.user,
        kind: arguments.kind,
        denied: arguments.denied,
        errors: arguments.errors,
        since: arguments.since.or_else(|| Some(Day::today())),
    };
    let unreadable = || format!("the audit log in `{}` cannot be read", chains.display());
    let mut reader = Reader::new(chains, filter);
    let is_plain = !arguments.csv && !output.is_json();
    let mut is_empty = true;
    loop {
        let mut lines = reader.lines().with_context(unreadable)?;
        if is_empty && let Some(limit) = arguments.limit {
            lines.drain(..lines.len().saturating_sub(limit));
        }
        for line in lines {
            is_empty = false;
            match is_plain {
                true => output.line(form(&line)),
                false => output.verbatim(form(&line)),
            }
        }
        if !arguments.follow || !output.has_reader() {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    if is_empty && !chains.exists() {
        let directory = chains.display();
        output.note(&format!(
            "there is no audit log in `{directory}`: {}",
            advice()
        ));
        return Ok(false);
    }
    Ok(is_empty)
}

/// A log line as text.
fn text(line: &Line) -> String {
    let subject = match (line.server.as_str(), line.tool.as_str()) {
        ("", "") => line.kind.clone(),
        ("", tool) => format!("{} {tool}", line.kind),
        (server, "") => format!("{} {server}", line.kind),
        (server, tool) => format!("{server}__{tool}"),
    };
    let outcome = match line.outcome.as_str() {
        "ok" => good("ok"),
        other => bad(printable(other)),
    };
    let mut text = format!("{} {outcome} {}", faint(&line.time), printable(&subject));
    if let Some(milliseconds) = line.ms {
        text += &format!(" {milliseconds} ms");
    }
    for (name, value) in [
        ("client", &line.client),
        ("user", &line.identity),
        ("profile", &line.profile),
        ("rule", &line.rule),
        ("", &line.detail),
    ] {
        if !value.is_empty() {
            let value = printable(value);
            text += &faint(format!("  {name} {value}").replace("   ", "  "));
        }
    }
    text
}

/// A log line as a row of CSV. An apostrophe precedes a value that a spreadsheet would evaluate as a formula.
fn csv(line: &Line) -> String {
    let number = |value: Option<String>| value.unwrap_or_default();
    let fields = [
        &line.time,
        &line.kind,
        &line.outcome,
        &line.session,
        &line.client,
        &line.version,
        &line.identity,
        &line.directory,
        &line.server,
        &line.tool,
        &number(line.ms.map(|value| value.to_string())),
        &number(line.sent.map(|value| value.to_string())),
        &number(line.received.map(|value| value.to_string())),
        &line.rule,
        &line.detail,
        &line.profile,
    ];
    let field = |value: &String| {
        let guard = match value.starts_with(['=', '+', '-', '@', '\t', '\r']) {
            true => "'",
            false => "",
        };
        format!("\"{guard}{}\"", value.replace('"', "\"\""))
    };
    fields.map(field).join(",")
}

fn check(
    directories: &Directories,
    advice: impl Fn() -> &'static str,
    output: &Output,
) -> Result<(), Exit> {
    let reports = verify(directories).with_context(|| unreadable(directories))?;
    let is_whole = reports.iter().all(|report| report.faults.is_empty());
    if output.is_json() {
        output.json(&json!({ "whole": is_whole, "chains": reports }));
    } else {
        for report in &reports {
            let lines = counted(usize::try_from(report.lines).unwrap_or(usize::MAX), "line");
            let state = match report.faults.is_empty() {
                true => good("whole"),
                false => bad("not whole"),
            };
            output.line(format!("chain {}: {lines}, {state}", report.chain));
            for fault in &report.faults {
                output.line(bad(printable(fault)));
            }
        }
        output.line(faint(
            "This finds lines that were changed, removed or inserted. It cannot find a chain that was rewritten together with its head, so keep the output of `mcpzip audit heads` on another machine and compare it. Heads are written once a second: lines of the last second before a program was killed, or before a power cut, can be missing at the end of a chain unseen.",
        ));
    }
    match is_whole {
        _ if reports.is_empty() => Err(Exit::failed(format!(
            "there is no audit log, so nothing was verified: {}",
            advice()
        ))),
        true => Ok(()),
        false => Err(Exit::failed("the audit log is not whole")),
    }
}

fn heads(directories: &Directories, output: &Output) -> Result<(), Exit> {
    let reports = verify(directories).with_context(|| unreadable(directories))?;
    if output.is_json() {
        let heads = reports
            .iter()
            .map(|report| json!({ "chain": report.chain, "last": report.last }));
        output.json(&heads.collect::<Vec<_>>());
        return Ok(());
    }
    for report in &reports {
        if let Some(last) = &report.last {
            output.verbatim(format!("{} {} {}", report.chain, last.number, last.hash));
        }
    }
    Ok(())
}

fn delete(
    directories: &Directories,
    before: Day,
    is_agreed: bool,
    output: &Output,
) -> Result<(), Exit> {
    if !is_agreed {
        if !output.can_ask() {
            return Err(Exit::failed(
                "nothing was removed: pass --yes, or run this in a terminal",
            ));
        }
        if !output.ask(&format!(
            "Remove the audit log of all days before {before}?"
        ))? {
            return Err(Exit::failed("nothing was removed"));
        }
    }
    let count = delete_before(directories, before).with_context(|| unreadable(directories))?;
    match output.is_json() {
        true => output.json(&json!({ "removed": count })),
        false => output.line(format!("{count} files removed")),
    }
    Ok(())
}

fn unreadable(directories: &Directories) -> String {
    let path = directories.chains.display();
    format!("the audit log in `{path}` cannot be read")
}
