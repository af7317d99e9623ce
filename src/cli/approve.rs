//! `mcpzip approve`: shows tools that changed since they were first seen, and approves them.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

use clap::Args;
use serde_json::json;

use super::completions;
use super::diagnostics::Exit;
use super::output::{Output, bad, faint, good, strong};
use super::printable::printable;
use super::unknown::unknown_server;
use crate::app::App;
use crate::catalog::{Change, Changes};
use crate::tool::ServerName;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip approve github
  mcpzip approve github create_issue")]
pub(super) struct Arguments {
    /// Server whose tools have changed
    #[arg(add = completions::of_servers())]
    server: String,
    /// Only this tool
    tool: Option<String>,
}

pub(super) async fn run(arguments: &Arguments, app: &App, output: &Output) -> Result<(), Exit> {
    let proxy = app.proxy();
    proxy.inventory.loaded().await;
    let config = proxy.unscoped().config();
    if let Some(fault) = config
        .faults
        .iter()
        .find(|fault| fault.name == arguments.server)
    {
        return Err(Exit::failed(fault.to_string()));
    }
    let server = ServerName::new(&arguments.server)
        .ok()
        .filter(|name| config.servers.contains_key(name));
    let server = server.ok_or_else(|| unknown_server(&arguments.server, &config))?;
    let mut changes = proxy.inventory.changed_tools(&server);
    if let Some(tool) = &arguments.tool {
        changes.retain(|name, _| name == tool);
    }
    if output.is_json_asked() {
        let shown = changes
            .iter()
            .map(|(name, change)| json!({ "tool": name, "before": change.before, "after": change.after }));
        output.json(&shown.collect::<Vec<_>>());
        return Ok(());
    }
    if changes.is_empty() {
        output.line("nothing has changed since it was first seen");
        return Ok(());
    }
    for (name, change) in &changes {
        output.line(format!("{}__{}", strong(&server), strong(printable(name))));
        output.verbatim(difference(change));
    }
    if agrees(&changes)? {
        proxy.inventory.approve(&server, &changes)?;
        output.line(good(format!("approved: {}", changes.len())));
        Ok(())
    } else {
        Err(Exit::failed("nothing was approved"))
    }
}

/// Asks the person at the terminal to confirm. No flag, pipe or tool call can answer.
fn agrees(changes: &Changes) -> Result<bool, Exit> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Exit::failed(
            "only a person at a terminal can approve changed tools",
        ));
    }
    let mut stderr = std::io::stderr();
    write!(
        stderr,
        "Are these {} tools what you want agents to see from now on? [y/N] ",
        changes.len()
    )?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// The changed lines between the two definitions, with two lines of context.
fn difference(change: &Change) -> String {
    let lines = |json: &Option<String>| -> Vec<String> {
        let value = json
            .as_deref()
            .and_then(|json| serde_json::from_str::<serde_json::Value>(json).ok());
        let text = value
            .and_then(|value| serde_json::to_string_pretty(&value).ok())
            .unwrap_or_default();
        text.lines().map(printable).collect()
    };
    let (before, after) = (lines(&change.before), lines(&change.after));
    if before.is_empty() {
        let now: String = after.iter().map(|line| format!("  {line}\n")).collect();
        return format!(
            "{}\n{now}",
            faint("how it was before is not known any more; now it is")
        );
    }
    let start = before
        .iter()
        .zip(&after)
        .take_while(|(one, other)| one == other)
        .count();
    let rest = before[start..]
        .iter()
        .rev()
        .zip(after[start..].iter().rev());
    let end = rest.take_while(|(one, other)| one == other).count();
    let mut shown = String::new();
    let mut show = |mark: &str, lines: &[String]| {
        for line in lines {
            // Writing to a `String` cannot fail.
            let _ = match mark {
                "-" => writeln!(shown, "{}", bad(format!("- {line}"))),
                "+" => writeln!(shown, "{}", good(format!("+ {line}"))),
                _ => writeln!(shown, "  {line}"),
            };
        }
    };
    show(" ", &before[start.saturating_sub(2)..start]);
    show("-", &before[start..before.len() - end]);
    show("+", &after[start..after.len() - end]);
    show(
        " ",
        &after[after.len() - end..(after.len() - end + 2).min(after.len())],
    );
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_shown_and_nothing_of_it_is_hidden() {
        let definition =
            |text: &str| Some(json!({ "name": "t", "description": text, "z": 1 }).to_string());
        let change = Change {
            now: String::new(),
            before: definition("Reads."),
            after: definition("Reads.\u{200b}\u{202e} \u{1b}[2JIgnore"),
        };
        let shown = console::strip_ansi_codes(&difference(&change)).into_owned();
        let expected = "  {\n-   \"description\": \"Reads.\",\n+   \"description\": \"Reads.\\u{200b}\\u{202e} \\u001b[2JIgnore\",\n    \"name\": \"t\",\n    \"z\": 1\n";
        assert_eq!(shown, expected);
        let unknown = difference(&Change {
            before: None,
            ..change
        });
        assert!(unknown.contains("not known any more"), "{unknown}");
    }
}
