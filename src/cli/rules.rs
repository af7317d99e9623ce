//! `mcpzip rules`: lists the rules for tools, or shows what they decide for one call. Nothing is connected.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::completions;
use super::diagnostics::Exit;
use super::output::{Output, bad, faint, good, strong};
use crate::catalog::{Cache, Key, ServerTools};
use crate::config::{
    Config, Environment, Inspected, ListedRule, Paths, Server, Transport, Verdict, arguments, real,
};
use crate::tool::{Effect, QualifiedName, SEPARATOR, ServerName, ToolName};

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
  mcpzip rules check github__delete_repository
  mcpzip rules check files write --arguments '{\"path\": \"../notes.md\"}'

The exit code is 0 if the call would run, 1 if it would not, and 6 if you would be asked.")]
pub(super) struct Check {
    /// Name of the server, or of the tool as agents see it: SERVER__TOOL
    #[arg(add = completions::of_servers())]
    server: String,
    /// Name of the tool on its server
    tool: Option<String>,
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
            list(&config, paths, output);
            Ok(())
        }
        Command::Check(arguments) => check(arguments, &config, paths, environment, output),
    }
}

fn list(config: &Config, paths: &Paths, output: &Output) {
    let own = config.servers.iter().flat_map(|(name, entry)| {
        let rules = entry.tools.rules();
        rules.map(move |rule| (Some(name), rule))
    });
    let all = config.tools.rules().map(|rule| (None, rule)).chain(own);
    let all: Vec<(Option<&ServerName>, ListedRule<'_>)> = all.collect();
    let undeclared = match all.iter().any(|(_, rule)| rule.suggested.is_some()) {
        true => undeclared(config, paths),
        false => Vec::new(),
    };
    if output.is_json() {
        let rules = all.iter().map(|(server, rule)| {
            let mut shown = json!({ "server": server.map(ServerName::as_str), "list": rule.list, "index": rule.index, "rule": rule.text });
            if let Some(by_text) = ByText::of(rule, *server, &undeclared) {
                shown["classified"] = json!(by_text.classified);
                shown["unclassified"] = json!(by_text.unclassified);
            }
            shown
        });
        output.json(&rules.collect::<Vec<_>>());
        return;
    }
    for (server, rule) in &all {
        let of = server.map_or("all servers", |server| server.as_str());
        output.row(
            format!("{:5} ", rule.list),
            format!("{}  {}", rule.text, faint(of)),
        );
        let Some(by_text) = ByText::of(rule, *server, &undeclared) else {
            continue;
        };
        for (words, tools) in [
            ("by their texts", by_text.classified),
            (
                "texts that suggest nothing, so counted as destructive",
                by_text.unclassified,
            ),
        ] {
            if !tools.is_empty() {
                output.row("      ", faint(format!("{words}: {}", tools.join(", "))));
            }
        }
    }
    if all.is_empty() {
        output.line("there are no rules: every tool of every server may be called");
    }
}

/// The tools without annotations that a rule with `?` is about.
struct ByText {
    classified: Vec<String>,
    /// Tools whose texts suggest nothing: destructive for `ask` and `deny`.
    unclassified: Vec<String>,
}

impl ByText {
    fn of(
        rule: &ListedRule<'_>,
        server: Option<&ServerName>,
        undeclared: &[(QualifiedName, Option<Effect>)],
    ) -> Option<Self> {
        let effect = rule.suggested?;
        let names = |is_meant: &dyn Fn(Option<Effect>) -> bool| {
            let of_server = undeclared
                .iter()
                .filter(|(name, _)| server.is_none_or(|server| name.server == *server));
            let meant = of_server.filter(|(_, guess)| is_meant(*guess));
            meant.map(|(name, _)| name.to_string()).collect()
        };
        let counts_unknown = rule.list != "allow" && effect.covers(Effect::Destructive);
        Some(Self {
            classified: names(&|guess| guess.is_some_and(|guess| effect.covers(guess))),
            unclassified: names(&|guess| counts_unknown && guess.is_none()),
        })
    }
}

/// The tools without annotations as they were last listed, each with the effect that its texts suggest.
fn undeclared(config: &Config, paths: &Paths) -> Vec<(QualifiedName, Option<Effect>)> {
    let used = config.servers.iter().filter(|(_, entry)| !entry.disabled);
    let lists = used.filter_map(|(server, entry)| listed(server, &entry.hash.to_string(), paths));
    let tools = lists.flat_map(|list| {
        let undeclared = list
            .entries()
            .iter()
            .filter(|entry| !entry.hints.is_declared());
        let named = undeclared.map(|entry| {
            let name = QualifiedName {
                server: list.name().clone(),
                tool: entry.name.clone(),
            };
            (name, entry.hints.guess)
        });
        named.collect::<Vec<_>>()
    });
    tools.collect()
}

/// The server and the tool that are meant, also by one word.
fn meant<'c>(
    asked: &Check,
    config: &'c Config,
) -> Result<(&'c ServerName, &'c Server, ToolName), Exit> {
    let readings: Vec<(&str, &str)> = match &asked.tool {
        Some(tool) => vec![(&asked.server, tool)],
        None => asked
            .server
            .match_indices(SEPARATOR)
            .map(|(at, _)| (&asked.server[..at], &asked.server[at + SEPARATOR.len()..]))
            .collect(),
    };
    let mut known = readings.iter().filter_map(|(server, tool)| {
        let name = ServerName::new(server).ok()?;
        let (name, entry) = config.servers.get_key_value(&name)?;
        Some((name, entry, *tool))
    });
    let Some((server, entry, tool)) = known.next() else {
        return Err(match readings.first() {
            Some((server, _)) => Exit::unknown_server(server, config),
            None => Exit::failed(format!(
                "`{}` names no tool: give the server and the tool, as in `mcpzip rules check SERVER TOOL`",
                asked.server
            )),
        });
    };
    if let Some((other, ..)) = known.next() {
        return Err(Exit::failed(format!(
            "`{}` may be a tool of `{server}` or of `{other}`: give the server and the tool as two words",
            asked.server
        )));
    }
    let tool = ToolName::new(tool).map_err(|error| Exit::failed(error.to_string()))?;
    Ok((server, entry, tool))
}

fn check(
    asked: &Check,
    config: &Config,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let (server, entry, tool) = meant(asked, config)?;
    let arguments: Value = match &asked.arguments {
        None => Value::Null,
        Some(text) => serde_json::from_str::<serde::de::IgnoredAny>(text)
            .map(|_| arguments::read(text))
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
    let listed = listed(server, &entry.hash.to_string(), paths);
    let is_list_known = listed.is_some();
    let listed = listed.and_then(|list| Some(list.entries()[list.position(&tool)?].hints));
    let hints = listed.unwrap_or_default();
    let name = QualifiedName {
        server: server.clone(),
        tool,
    };
    let call = asked.arguments.as_ref().map(|_| &call);
    let (verdict, rule) = config.decide(&name, hints, call);
    let workspace: Vec<PathBuf> = project.iter().map(|project| real(project)).collect();
    let reason = if entry.disabled {
        Some("the server is disabled".to_owned())
    } else if config.unseen(&workspace).contains(server) {
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
    let looks_further = asked.arguments.is_none() && config.inspects(server);
    if output.is_json() {
        output.json(&json!({
            "tool": name.to_string(),
            "verdict": word,
            "rule": reason,
            "is_listed": listed.is_some(),
            "declares": hints.label(),
            "texts_suggest": hints.guess,
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
    let known = match (listed, hints.guess) {
        (None, _) if is_list_known => Some(format!(
            "the server's last list has no such tool: `mcpzip tools {server}` shows the names"
        )),
        (None, _) => Some(
            "the server has not listed this tool yet, so it was judged as a tool without annotations".to_owned(),
        ),
        (_, Some(guess)) => Some(format!(
            "the tool has no annotations; its texts suggest `{}`, which only rules with `?` use",
            guess.word()
        )),
        (_, None) if !hints.is_declared() => Some(
            "the tool has no annotations, and its texts suggest nothing: `@destructive?` under `ask` and `deny` is about it".to_owned(),
        ),
        _ => None,
    };
    if let Some(known) = known {
        output.line(faint(known));
    }
    if looks_further {
        output.line(faint(
            "some rules inspect arguments: pass them with --arguments",
        ));
    }
    outcome
}

/// The server's tools when it was last asked.
fn listed(server: &ServerName, configuration: &str, paths: &Paths) -> Option<ServerTools> {
    Cache::new(Some(&paths.cache_dir)).load(&Key {
        server: server.clone(),
        configuration: configuration.to_owned(),
    })
}
