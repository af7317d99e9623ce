//! `mcpzip logs`: prints the logs of mcpzip and its servers, and follows them.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::completions;
use super::diagnostics::Exit;
use super::output::Output;
use super::printable::printable;
use super::unknown::unknown;
use crate::app::LOGS;
use crate::config::{Config, Environment, Paths};
use crate::telemetry::{Follow, MAIN, tail};
use crate::tool::ServerName;

/// Interval between two reads with `--follow`.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
#[command(
    after_help = "A server's log has its stderr and mcpzip's messages about it. `serve --log trace` adds every message.

Examples:
  mcpzip logs
  mcpzip logs github -f"
)]
pub(super) struct Arguments {
    /// Server whose log is shown [default: mcpzip itself]
    #[arg(add = completions::of_servers())]
    server: Option<String>,
    /// Keep printing new lines until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Number of lines to begin with
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "50", allow_negative_numbers = true, value_parser = lines)]
    lines: usize,
}

pub(super) fn run(
    arguments: &Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let directory = paths.state_dir.join(LOGS);
    let name = arguments.server.as_deref().unwrap_or(MAIN);
    // An invalid name could lead to another directory.
    let is_name = ServerName::new(name).is_ok();
    let path = directory.join(format!("{name}.log"));
    if !is_name || !path.exists() {
        let names = names(&directory);
        if name != MAIN
            && let Ok(config) = Config::load(paths, environment)
            && !config.names.contains(name)
        {
            let known = config.names.iter().chain(&names).map(String::as_str);
            return Err(Exit::failed(unknown(name, known)));
        }
        if !is_name {
            return Err(Exit::failed(missing(name, &names)));
        }
        if !arguments.follow {
            if output.is_json_asked() {
                output
                    .json(&json!({ "log": name, "file": path.display().to_string(), "lines": [] }));
            }
            output.note(&missing(name, &names));
            return Ok(());
        }
    }
    show(&path, name, arguments.lines, arguments.follow, output)
}

/// Parses a number of lines.
pub(super) fn lines(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| "a number of lines is 0 or more".to_owned())
}

/// Prints the last lines of a log. With `is_followed`, also prints new lines until the process ends or its reader is gone.
pub(super) fn show(
    path: &Path,
    name: &str,
    lines: usize,
    is_followed: bool,
    output: &Output,
) -> Result<(), Exit> {
    let mut follow = Follow::from_end(path.to_owned()).with_context(|| unreadable(path))?;
    let last = tail(path, lines).with_context(|| unreadable(path))?;
    if output.is_json_asked() && !is_followed {
        output.json(&json!({ "log": name, "file": path.display().to_string(), "lines": last }));
        return Ok(());
    }
    last.iter().for_each(|line| output.line(shown(line)));
    while is_followed && output.has_reader() {
        for line in follow.lines().with_context(|| unreadable(path))? {
            output.line(shown(&line));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn unreadable(path: &Path) -> String {
    format!("the log `{}` cannot be read", path.display())
}

/// The names of all logs.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| {
        entry
            .file_name()
            .to_str()?
            .strip_suffix(".log")
            .map(str::to_owned)
    });
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

fn missing(name: &str, names: &[String]) -> String {
    match names {
        [] => format!("there is no log of `{name}` yet: nothing was written"),
        names => format!(
            "there is no log of `{name}` yet; there are logs of {}",
            names.join(", ")
        ),
    }
}

/// Escapes control characters in a line, except tabs.
fn shown(line: &str) -> String {
    line.split('\t')
        .map(printable)
        .collect::<Vec<_>>()
        .join("\t")
}
