//! `mcpzip rules`: lists the rules for tools, or shows what they decide for one call. Nothing is connected.

mod check;
mod client;
mod unmatched;
mod withheld;

pub(in crate::cli) use unmatched::remarks;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::completions;
use super::diagnostics::Exit;
use super::output::{Output, bad, faint};
use super::printable::printable;
use crate::catalog::{Cache, Key, ServerTools};
use crate::config::{Config, Environment, ListedRule, Paths, Server};
use crate::tool::{Effect, QualifiedName, SEPARATOR, ServerName, ToolName};
use crate::upstream::list_name;

/// How a person makes a rule.
pub(super) const WRITING: &str = "Rules are `tools` in the configuration, of one server or at the top for all, as \"tools\": {\"deny\": [\"delete_*\"]}: `mcpzip config edit` opens the file";

#[derive(Debug, Args)]
#[command(after_help = WRITING)]
pub(super) struct Arguments {
    /// `list` if none is given
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show every rule for tools
    #[command(after_help = "Examples:
  mcpzip rules list
  mcpzip rules list --json")]
    List,
    /// Show what would happen to a call, and which rule decides
    Check(Box<Check>),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip rules check github delete_repository
  mcpzip rules check github__delete_repository
  mcpzip rules check files write --arguments '{\"path\": \"../notes.md\"}'
  mcpzip rules check github delete_issue --client cursor --project ~/site
  mcpzip rules check github delete_issue --profile review
  mcpzip rules check github delete_issue --user anna --role dev

The exit code is 0 if the call would run, 1 if it would not, and 6 if you would be asked.
`mcpzip rules --help` says how a rule is made.")]
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
    /// Client that makes the call, by its name in `clients` or the one by which it introduces itself
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Profile of the session that makes the call, in addition to those of the directory and the client
    #[arg(long, value_name = "NAME", add = completions::of_profiles())]
    profile: Option<String>,
    /// Person who makes the call over HTTP, with the roles that `roles` gives to the name
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Role of that person, or of anyone with it; may be given several times
    #[arg(long, value_name = "NAME", add = completions::of_roles())]
    role: Vec<String>,
    /// Group of that person, as the identity provider names it; may be given several times
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,
}

pub(super) fn run(
    arguments: &Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let config = Config::load(paths, environment)?;
    match arguments.command.as_ref().unwrap_or(&Command::List) {
        Command::List => {
            list(&config, paths, output);
            Ok(())
        }
        Command::Check(asked) => check::run(asked, &config, paths, environment, output),
    }
}

/// The place of a rule in the configuration.
#[derive(Clone, Copy)]
enum RuleScope<'c> {
    /// The rules for all servers.
    All,
    /// The entry of this server.
    Server(&'c ServerName),
    /// This profile.
    Profile(&'c str),
}

impl<'c> RuleScope<'c> {
    /// The server that the rule is about, if its place says so.
    fn server(self) -> Option<&'c ServerName> {
        match self {
            Self::Server(server) => Some(server),
            Self::All | Self::Profile(_) => None,
        }
    }

    fn profile(self) -> Option<&'c str> {
        match self {
            Self::Profile(profile) => Some(profile),
            Self::All | Self::Server(_) => None,
        }
    }
}

/// The rules for all servers, then those in the servers' entries, then those of profiles.
fn all(config: &Config) -> Vec<(RuleScope<'_>, ListedRule<'_>)> {
    let own = config.servers.iter().flat_map(|(name, entry)| {
        let rules = entry.tools.rules();
        rules.map(move |rule| (RuleScope::Server(name), rule))
    });
    let profiles = config.profiles.iter().flatten();
    let profiles = profiles.filter_map(|(name, profile)| Some((name, profile.as_ref().ok()?)));
    let profiles = profiles.flat_map(|(name, profile)| {
        let rules = profile.rules();
        rules.map(move |rule| (RuleScope::Profile(name), rule))
    });
    let all = config.tools.rules().map(|rule| (RuleScope::All, rule));
    all.chain(own).chain(profiles).collect()
}

fn list(config: &Config, paths: &Paths, output: &Output) {
    let all = all(config);
    let project = std::env::current_dir().ok();
    let lists: Vec<ServerTools> = config
        .servers
        .iter()
        .filter_map(|(server, entry)| listed(server, &list_name(entry, project.as_deref()), paths))
        .collect();
    let undeclared = match all.iter().any(|(_, rule)| rule.suggested.is_some()) {
        true => undeclared(config, paths),
        false => Vec::new(),
    };
    if output.is_json() {
        let rules = all.iter().map(|(place, rule)| {
            let server = place.server();
            let mut shown = json!({ "server": server.map(ServerName::as_str), "list": rule.list, "index": rule.index, "rule": rule.text });
            if let Some(profile) = place.profile() {
                shown["profile"] = json!(profile);
            }
            if let Some(by_text) = ByText::of(rule, server, &undeclared) {
                shown["classified"] = json!(by_text.classified);
                shown["unclassified"] = json!(by_text.unclassified);
            }
            if let Some(remark) = unmatched::remark(rule, server, config, &lists) {
                shown["remark"] = json!(remark);
            }
            shown
        });
        output.json(&rules.collect::<Vec<_>>());
        return;
    }
    for (place, rule) in &all {
        let server = place.server();
        let of = match place {
            RuleScope::All => "all servers".to_owned(),
            RuleScope::Server(server) => server.to_string(),
            RuleScope::Profile(profile) => format!("profile {profile}"),
        };
        output.row(
            format!("{:5} ", rule.list),
            format!("{}  {}", rule.text, faint(of)),
        );
        if let Some(remark) = unmatched::remark(rule, server, config, &lists) {
            output.row("      ", bad(remark));
        }
        let Some(by_text) = ByText::of(rule, server, &undeclared) else {
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
    for fault in config.faults.iter().filter(|_| !all.is_empty()) {
        let name = printable(&fault.name);
        output.line(bad(format!(
            "the rules of {name} are not shown: its entry cannot be used, so nothing of it runs (`mcpzip doctor` says why)"
        )));
    }
    if all.is_empty() && config.faults.is_empty() {
        output.line("there are no rules: every tool of every server may be called");
        output.line(WRITING);
    } else if all.is_empty() {
        let entries = match config.faults.len() {
            1 => "an entry of the configuration".to_owned(),
            count => format!("{count} entries of the configuration"),
        };
        output.line(bad(format!(
            "there are no rules that can be read: {entries} cannot be used; `mcpzip doctor` says why"
        )));
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

/// The server's tools when it was last asked.
pub(super) fn listed(
    server: &ServerName,
    configuration: &str,
    paths: &Paths,
) -> Option<ServerTools> {
    Cache::new(Some(&paths.cache_dir)).load(&Key {
        server: server.clone(),
        configuration: configuration.to_owned(),
    })
}
