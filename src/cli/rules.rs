//! `mcpzip rules`: lists the rules for tools, or shows what they decide for one call. Nothing is connected.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::completions;
use super::diagnostics::Exit;
use super::output::{Output, bad, faint, good, strong};
use super::unknown::unknown_server;
use crate::catalog::{Cache, Key};
use crate::config::{Config, Environment, Inspected, Paths, Transport, Verdict, real};
use crate::tool::{Hints, QualifiedName, ServerName, ToolName};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show every rule for tools
    #[command(after_help = "Examples:
  mcpzip rules list
  mcpzip rules list --json")]
    List,
    /// Show what would happen to a call, and which rule decides
    Check(Check),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip rules check github delete_repository
  mcpzip rules check files write --arguments '{\"path\": \"../notes.md\"}'

The exit code is 0 if the call would run, 1 if it would not, and 6 if you would be asked.")]
pub(super) struct Check {
    /// Name of the server
    #[arg(add = completions::of_servers())]
    server: String,
    /// Name of the tool on its server
    tool: String,
    /// Arguments of the call as JSON, for rules that inspect them
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
    /// Directory that the client works in [default: the current one]
    #[arg(long, value_name = "DIRECTORY")]
    project: Option<PathBuf>,
}

pub(super) fn run(
    command: &Command,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let config = Config::load(paths, environment)?;
    match command {
        Command::List => {
            list(&config, output);
            Ok(())
        }
        Command::Check(arguments) => check(arguments, &config, paths, environment, output),
    }
}

fn list(config: &Config, output: &Output) {
    let own = config.servers.iter().flat_map(|(name, entry)| {
        let rules = entry.tools.rules();
        rules.map(move |rule| (Some(name.as_str()), rule))
    });
    let all = config.tools.rules().map(|rule| (None, rule)).chain(own);
    if output.is_json() {
        let rules = all.map(|(server, (list, index, text))| {
            json!({ "server": server, "list": list, "index": index, "rule": text })
        });
        output.json(&rules.collect::<Vec<_>>());
        return;
    }
    let mut count = 0;
    for (server, (list, _, text)) in all {
        count += 1;
        let of = server.map_or("all servers", |server| server);
        output.row(format!("{list:5} "), format!("{text}  {}", faint(of)));
    }
    if count == 0 {
        output.line("there are no rules: every tool of every server may be called");
    }
}

fn check(
    asked: &Check,
    config: &Config,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let server = ServerName::new(&asked.server).ok();
    let entry = server
        .as_ref()
        .and_then(|name| Some((name.clone(), config.servers.get(name)?)));
    let (server, entry) = entry.ok_or_else(|| unknown_server(&asked.server, config))?;
    let tool = ToolName::new(&asked.tool).map_err(|error| Exit::failed(error.to_string()))?;
    let arguments: Value = match &asked.arguments {
        None => Value::Null,
        Some(text) => serde_json::from_str(text)
            .map_err(|error| Exit::failed(format!("--arguments is not JSON: {error}")))?,
    };
    let project = match &asked.project {
        Some(directory) => Some(directory.clone()),
        None => std::env::current_dir().ok(),
    };
    let cwd = match &entry.transport {
        Transport::Stdio(stdio) => stdio.cwd.clone(),
        Transport::Http(_) | Transport::Sse(_) => None,
    };
    let (directory, home) = (cwd.or_else(|| project.clone()), environment.home());
    let call = Inspected {
        arguments: &arguments,
        directory: directory.as_deref(),
        home: home.as_deref(),
    };
    let hints = hints(&server, &tool, &entry.hash.to_string(), paths);
    let name = QualifiedName {
        server: server.clone(),
        tool,
    };
    let call = asked.arguments.as_ref().map(|_| &call);
    let (verdict, rule) = config.decide(&name, hints.unwrap_or_default(), call);
    let workspace: Vec<PathBuf> = project.iter().map(|project| real(project)).collect();
    let reason = if entry.disabled {
        Some("the server is disabled".to_owned())
    } else if config.unseen(&workspace).contains(&server) {
        Some("the server's `projects` do not admit this directory".to_owned())
    } else {
        rule.clone()
    };
    let is_hidden = reason != rule;
    let verdict = if is_hidden { Verdict::Denied } else { verdict };
    let (word, outcome) = match verdict {
        Verdict::Allowed => ("allowed", Ok(())),
        Verdict::Asked => ("asked", Err(Exit::found(false))),
        Verdict::Denied => ("denied", Err(Exit::found(true))),
    };
    let looks_further = asked.arguments.is_none() && config.inspects(&server);
    if output.is_json() {
        output.json(&json!({
            "tool": name.to_string(),
            "verdict": word,
            "rule": reason,
            "is_listed": hints.is_some(),
            "arguments_matter": looks_further,
        }));
        return outcome;
    }
    let colored = match verdict {
        Verdict::Allowed => good(word),
        _ => bad(word),
    };
    let reason = reason.unwrap_or_else(|| "no rule applies".to_owned());
    output.line(format!("{} {colored}: {reason}", strong(name.to_string())));
    if hints.is_none() {
        output.line(faint(
            "the server has not listed this tool yet, so it was judged as a tool without annotations",
        ));
    }
    if looks_further {
        output.line(faint(
            "some rules inspect arguments: pass them with --arguments",
        ));
    }
    outcome
}

/// The annotations of the tool when it was last listed.
fn hints(
    server: &ServerName,
    tool: &ToolName,
    configuration: &str,
    paths: &Paths,
) -> Option<Hints> {
    let list = Cache::new(Some(&paths.cache_dir)).load(&Key {
        server: server.clone(),
        configuration: configuration.to_owned(),
    })?;
    let entry = list.entries().iter().find(|entry| entry.name == *tool);
    entry.map(|entry| entry.hints)
}
