//! `mcpzip completions`: shell completion of commands, servers, tools and parameters.
//!
//! The shell's script runs this program at each completion, so that servers and tools are current. They come from the
//! configuration and the cache; no server is connected. The script passes its request in the variable
//! [`env::COMPLETE`].

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Args, Command, CommandFactory as _};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Cli;
use super::diagnostics::Exit;
use super::output::Output;
use crate::approvals::Approvals;
use crate::catalog::{Cache, Key, ToolEntry};
use crate::config::{Config, Environment, PathFlags, Paths, Server, Verdict, env, secret_uses};
use crate::identity::TokenFile;
use crate::keyring::Store;
use crate::tool::{Definition, QualifiedName, SEPARATOR, ServerName};

/// Up to this number of matching servers, their tools are offered. Above it, only the server prefixes.
const MOST_LISTS: usize = 4;

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip completions bash >> ~/.bashrc
  mcpzip completions fish > ~/.config/fish/completions/mcpzip.fish

For zsh, write it to a file `_mcpzip` in a directory of $fpath; for PowerShell, append it to $PROFILE. Load it again after an update of mcpzip.")]
pub(super) struct Arguments {
    /// Shell to print the script for
    #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(SHELLS))]
    shell: String,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<(), Exit> {
    let shells = Shells::builtins();
    let shell = shells
        .completer(&arguments.shell)
        .expect("clap lets no other through");
    let mut script = Vec::new();
    shell.write_registration(
        env::COMPLETE.name,
        "mcpzip",
        "mcpzip",
        "mcpzip",
        &mut script,
    )?;
    output.verbatim(String::from_utf8_lossy(&script).trim_end());
    Ok(())
}

/// Prints the completions for a shell's request. `arguments` is the whole command line of this process. `None` if the
/// process was not started by a completion script.
pub(super) fn answer(arguments: &[OsString], environment: &Environment) -> Option<ExitCode> {
    let name = environment
        .get(env::COMPLETE.name)
        .filter(|name| !name.is_empty())?;
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(name) else {
        return Some(ExitCode::from(2));
    };
    // The words typed so far follow the first `--`.
    let typed: Vec<OsString> = arguments
        .iter()
        .skip_while(|word| *word != "--")
        .skip(1)
        .cloned()
        .collect();
    let mut command = Cli::command();
    if let Some((tool, json)) = typed_tool(&typed) {
        command = command.mut_subcommand("call", |call| with_parameters(call, &tool, &json));
    }
    let mut text = Vec::new();
    let directory = std::env::current_dir().ok();
    // No error is printed: the shell would show it in the middle of the command line.
    let written = shell.write_complete(&mut command, typed, directory.as_deref(), &mut text);
    let printed = written.and_then(|()| std::io::stdout().write_all(&text));
    Some(if printed.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Completes the name of a configured server.
pub(super) fn of_servers() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| offered(current, servers))
}

/// Completes a sandbox: the words, and the object that adds the network.
pub(super) fn of_sandboxes() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let start = current.to_str().unwrap_or_default();
        ["strict", "project", r#"{"network": "all"}"#]
            .into_iter()
            .filter(|word| word.starts_with(start))
            .map(CompletionCandidate::new)
            .collect()
    })
}

/// Completes the name of a profile.
pub(super) fn of_profiles() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        offered(current, |_, config, _| {
            let profiles = config.profiles.iter().flat_map(|profiles| profiles.keys());
            profiles.cloned().collect()
        })
    })
}

/// Completes the name of a role.
pub(super) fn of_roles() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        offered(current, |_, config, _| {
            let roles = config.roles.iter().flatten().flat_map(|roles| roles.keys());
            roles.cloned().collect()
        })
    })
}

/// Completes the name or the id of a token.
pub(super) fn of_tokens() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        offered(current, |_, _, paths| {
            let tokens = TokenFile::below(&paths.state_dir)
                .read()
                .unwrap_or_default();
            let valid = tokens.list().iter().filter(|token| token.is_valid());
            let mut names: BTreeSet<String> = valid
                .flat_map(|token| [token.name.clone(), token.id.clone()])
                .collect();
            names.extend(tokens.people().ids().map(str::to_owned));
            names.extend(tokens.people().names().map(str::to_owned));
            names.into_iter().collect()
        })
    })
}

/// Completes the name of a secret.
pub(super) fn of_secrets() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        offered(current, |_, _, paths| {
            let environment = Environment::process();
            let mut names: BTreeSet<String> = Store::of(paths, &environment)
                .list()
                .into_iter()
                .flatten()
                .map(|secret| secret.name.to_string())
                .collect();
            let used = secret_uses(paths, &environment).into_iter().flatten();
            names.extend(used.map(|used| used.name.to_string()));
            names.into_iter().collect()
        })
    })
}

/// Completes the id of a call that waits for approval.
pub(super) fn of_approvals() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        offered(current, |_, _, paths| {
            let pending = Approvals::below(&paths.state_dir).pending();
            let ids = pending.into_iter().flatten().map(|question| question.id);
            ids.collect()
        })
    })
}

/// Completes the name of a tool in the cache.
pub(super) fn of_tools() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| offered(current, tools))
}

fn offered(
    current: &OsStr,
    names: impl FnOnce(&str, &Config, &Paths) -> Vec<String>,
) -> Vec<CompletionCandidate> {
    let (Some(start), Some((paths, config))) = (current.to_str(), configuration()) else {
        return Vec::new();
    };
    let names = names(start, &config, &paths).into_iter();
    names
        .filter(|name| name.starts_with(start))
        .map(CompletionCandidate::new)
        .collect()
}

/// The configuration of the command being completed.
fn configuration() -> Option<(Paths, Config)> {
    let environment = Environment::process();
    let flags = PathFlags {
        config_file: typed_flag("--config"),
        cache_dir: typed_flag("--cache-dir"),
        state_dir: typed_flag("--state-dir"),
    };
    let paths = Paths::resolve(flags, &environment).ok()?;
    let environment = Store::around(&paths, environment);
    let config = Config::load(&paths, &environment).ok()?;
    Some((paths, config))
}

fn servers(_: &str, config: &Config, _: &Paths) -> Vec<String> {
    let usable = config.servers.keys().map(ToString::to_string);
    usable
        .chain(config.faults.iter().map(|fault| fault.name.clone()))
        .collect()
}

/// The tools that `start` may complete to. Only the lists of matching servers are read.
fn tools(start: &str, config: &Config, paths: &Paths) -> Vec<String> {
    let cache = Cache::new(Some(&paths.cache_dir));
    let is_meant = |name: &str| {
        let whole = format!("{name}__");
        whole.starts_with(start) || start.starts_with(&whole)
    };
    let is_used =
        |(name, entry): &(&ServerName, &Server)| !entry.disabled && is_meant(name.as_str());
    let used: Vec<(&ServerName, &Server)> = config.servers.iter().filter(is_used).collect();
    if used.len() > MOST_LISTS {
        // All of their tools would be too many; the user first completes the server's name.
        return used.iter().map(|(name, _)| format!("{name}__")).collect();
    }
    let lists = used.into_iter().filter_map(|(name, entry)| {
        let list = cache.load(&Key {
            server: name.clone(),
            configuration: entry.hash.to_string(),
        })?;
        Some(list.adapted_by(&entry.overrides))
    });
    lists
        .flat_map(|list| {
            let name = |entry: &ToolEntry| {
                let shown = named(list.name(), entry);
                is_shown(config, list.name(), entry).then(|| shown.to_string())
            };
            list.entries().iter().filter_map(name).collect::<Vec<_>>()
        })
        .collect()
}

fn named(server: &ServerName, entry: &ToolEntry) -> QualifiedName {
    QualifiedName {
        server: server.clone(),
        tool: entry.name.clone(),
    }
}

/// Whether neither a rule nor an override withholds the tool.
fn is_shown(config: &Config, server: &ServerName, entry: &ToolEntry) -> bool {
    let own = named(server, entry.as_listed());
    entry.override_fault().is_none() && config.judge(&own, entry.hints) != Verdict::Denied
}

/// The tool of the `call` being completed, with its definition from the cache.
fn typed_tool(typed: &[OsString]) -> Option<(QualifiedName, Box<RawValue>)> {
    let after = typed.iter().skip_while(|word| *word != "call").skip(1);
    let name = after
        .filter_map(|word| word.to_str())
        .find(|word| !word.starts_with('-') && word.contains(SEPARATOR))?;
    let (paths, config) = configuration()?;
    let lists = config.servers.iter().filter(|(server, entry)| {
        !entry.disabled && name.starts_with(&format!("{server}{SEPARATOR}"))
    });
    for (server, entry) in lists {
        let key = Key {
            server: server.clone(),
            configuration: entry.hash.to_string(),
        };
        let Some(list) = Cache::new(Some(&paths.cache_dir)).load(&key) else {
            continue;
        };
        let list = list.adapted_by(&entry.overrides);
        for tool in list.entries() {
            let full = named(server, tool);
            if full.to_string() == name && is_shown(&config, server, tool) {
                return Some((full, list.json(tool).ok()?));
            }
        }
    }
    None
}

/// Adds a flag for each parameter of the tool, unless `call` has a flag of that name.
fn with_parameters(call: Command, tool: &QualifiedName, json: &RawValue) -> Command {
    let Ok(definition) = Definition::parse(json) else {
        return call;
    };
    let own: Vec<String> = Cli::command()
        .get_arguments()
        .chain(call.get_arguments())
        .filter_map(|own| own.get_long().map(str::to_owned))
        .chain(["help".to_owned()])
        .collect();
    let is_flag = |name: &str| {
        name.chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    let mut seen = Vec::new();
    let mut parameters = definition.parameters;
    parameters.retain(|parameter| {
        let is_new = !own.contains(&parameter.name) && !seen.contains(&parameter.name);
        seen.push(parameter.name.clone());
        is_new && is_flag(&parameter.name)
    });
    parameters.into_iter().fold(call, |call, parameter| {
        let schema: Value = serde_json::from_str(parameter.schema.get()).unwrap_or_default();
        let flag = Arg::new(format!("{tool} {}", parameter.name))
            .long(parameter.name)
            .help(parameter.description)
            .action(ArgAction::Append);
        let words = words_of(&schema);
        call.arg(match words.is_empty() {
            true => flag,
            false => flag.value_parser(PossibleValuesParser::new(words)),
        })
    })
}

/// The permitted values of a parameter or of its items.
fn words_of(schema: &Value) -> Vec<String> {
    let listed = schema
        .get("enum")
        .or_else(|| schema.get("items")?.get("enum"))
        .and_then(Value::as_array);
    if schema.get("type").and_then(Value::as_str) == Some("boolean") {
        return vec!["true".to_owned(), "false".to_owned()];
    }
    let words = listed.into_iter().flatten().filter_map(Value::as_str);
    words.map(str::to_owned).collect()
}

/// The value of a flag in the words typed so far.
fn typed_flag(name: &str) -> Option<PathBuf> {
    let typed: Vec<OsString> = std::env::args_os()
        .skip_while(|word| *word != "--")
        .skip(1)
        .collect();
    let joined = typed.iter().find_map(|word| {
        word.to_str()?
            .strip_prefix(name)?
            .strip_prefix('=')
            .map(PathBuf::from)
    });
    joined.or_else(|| {
        typed
            .iter()
            .skip_while(|word| *word != name)
            .nth(1)
            .map(PathBuf::from)
    })
}
