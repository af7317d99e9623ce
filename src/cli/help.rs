//! `mcpzip --help`: the commands in groups, in the order in which a newcomer needs them.
//!
//! clap has one heading for all commands, so the list is part of the help's template.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::error::ErrorKind;
use clap::{Arg, Command, CommandFactory as _};

use super::wrap::{columns, wrap_row};
use super::{Call, Cli, call_arguments, rules};

/// Every command that the help shows, each in exactly one group.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Get started",
        &["init", "demo", "ui", "top", "tray", "doctor", "status"],
    ),
    ("Use tools", &["search", "describe", "call", "tools"]),
    (
        "Servers and logins",
        &[
            "add",
            "remove",
            "enable",
            "disable",
            "list",
            "servers",
            "update",
            "registry",
            "login",
            "logout",
            "auth",
            "secret",
            "approve",
            "reject",
            "approvals",
            "rules",
        ],
    ),
    (
        "Clients",
        &[
            "clients",
            "migrate",
            "connect",
            "disconnect",
            "undo",
            "serve",
            "token",
            "store",
            "daemon",
        ],
    ),
    (
        "Records and settings",
        &[
            "stats",
            "gain",
            "audit",
            "logs",
            "healthcheck",
            "config",
            "completions",
            "man",
        ],
    ),
];

/// Width of the column with command names.
const WIDTH: usize = 13;

/// Width of the column with options.
const OPTION_WIDTH: usize = 24;

/// The last line of each command's help. The global options are listed in the main help only.
const ELSEWHERE: &str =
    "`mcpzip --help` shows the options for all commands, such as --config and --json.";

/// A tip for an error in the arguments, such as an example of the command.
pub(super) fn tip(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let is_start = |pair: &[OsString]| pair[0] == "daemon" && pair[1] == "start";
    match error.kind() {
        ErrorKind::InvalidSubcommand if arguments.windows(2).any(is_start) => Some(
            "The daemon starts with the first session; `mcpzip daemon run` runs it in this terminal".to_owned(),
        ),
        ErrorKind::InvalidSubcommand => {
            let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
            match words.get(1..) {
                Some([word @ ("pause" | "resume" | "stop" | "restart"), ..]) => Some(format!("The command is `mcpzip daemon {word}`")),
                Some(["rules", "add" | "allow" | "ask" | "delete" | "deny" | "edit" | "remove" | "set", ..]) => {
                    Some(rules::WRITING.to_owned())
                }
                Some(["rules", server, ..]) => Some(format!(
                    "`mcpzip rules list` shows all rules, and `mcpzip rules check {server} TOOL` the one for a tool"
                )),
                Some(["registry", need, ..]) => Some(format!("`mcpzip registry search {need}` looks for servers")),
                _ => None,
            }
        }
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let own = call_arguments::own_options(arguments, &Call::command());
            let text = error.to_string();
            let meant = own.iter().find(|own| text.contains(&format!("'--{}", own.flag)));
            let words = arguments.iter().skip_while(|word| *word != "call");
            let mut names = words.skip(1).filter_map(|word| word.to_str());
            let tool = names.find(|word| !word.starts_with("--"))?;
            Some(meant?.advice(tool, &[]))
        }
        ErrorKind::MissingRequiredArgument
            if arguments.iter().skip(2).any(|word| word.to_str().is_some_and(|word| word.trim_start().starts_with('{')))
                && arguments.get(1).is_some_and(|word| word == "add") =>
        {
            Some("The name goes before the entry, which may be the whole block of a README: mcpzip add NAME '{\"mcpServers\": …}'".to_owned())
        }
        ErrorKind::MissingRequiredArgument => {
            let mut named = command();
            for word in arguments.iter().skip(1) {
                if let Some(inner) = named.find_subcommand(word) {
                    named = inner.clone();
                }
            }
            let help = named.get_after_help()?.to_string();
            let mut examples = help.lines().skip_while(|line| !line.starts_with("Examples:"));
            Some(format!("Example:\n{}", examples.nth(1)?))
        }
        _ => None,
    }
}

/// The command line with its grouped help. The global options are hidden in the help of commands.
pub(super) fn command() -> Command {
    let command = Cli::command();
    let template = template(&command);
    command
        .mut_args(|argument| {
            let is_global = argument.is_global_set();
            argument.hide(is_global)
        })
        .mut_subcommands(point_to_options)
        .help_template(template)
}

fn point_to_options(command: Command) -> Command {
    let below = command.get_after_help().map(ToString::to_string);
    let below = match below {
        Some(below) => format!("{below}\n\n{ELSEWHERE}"),
        None => ELSEWHERE.to_owned(),
    };
    command.after_help(below).mut_subcommands(point_to_options)
}

fn template(command: &Command) -> String {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        let _ = write!(text, "\n{header}{title}:{header:#}\n");
        for name in names {
            let about = command
                .find_subcommand(name)
                .and_then(Command::get_about)
                .map(ToString::to_string)
                .unwrap_or_default();
            let pad = WIDTH.saturating_sub(name.len());
            let head = format!("  {literal}{name}{literal:#}{:pad$}", "");
            let _ = writeln!(text, "{}", row(&head, &about));
        }
    }
    let _ = writeln!(text, "\n{header}Options for all commands:{header:#}");
    let mut options = Vec::new();
    for option in command.get_arguments().filter(|a| a.is_global_set()) {
        let about = option.get_help().map(ToString::to_string);
        options.push((format!("    {}", flag(option)), about.unwrap_or_default()));
    }
    options.push(("-h, --help".to_owned(), "Print help".to_owned()));
    options.push(("-V, --version".to_owned(), "Print version".to_owned()));
    for (flag, about) in options {
        let pad = OPTION_WIDTH.saturating_sub(flag.len());
        let head = format!("  {literal}{flag}{literal:#}{:pad$}", "");
        let _ = writeln!(text, "{}", row(&head, &about));
    }
    // clap puts an empty line before it.
    text.pop();
    text.push_str("{after-help}");
    text
}

/// A row of the list, wrapped on a terminal; clap does not wrap its template.
fn row(head: &str, about: &str) -> String {
    match columns(&console::Term::stdout()) {
        Some(width) => wrap_row(head, about, width),
        None => format!("{head}{about}"),
    }
}

/// An option in the form `--config <FILE>`.
fn flag(option: &Arg) -> String {
    let name = option.get_long().unwrap_or_default();
    match option.get_value_names() {
        Some([value]) if option.get_action().takes_values() => format!("--{name} <{value}>"),
        _ => format!("--{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        for name in shown.map(Command::get_name).filter(|name| *name != "help") {
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&name));
            assert_eq!(groups.count(), 1, "{name}");
        }
    }

    #[test]
    fn each_command_is_in_one_group() {
        let command = Cli::command();
        let mut shown: Vec<&str> = command
            .get_subcommands()
            .filter(|below| !below.is_hide_set() && below.get_name() != "help")
            .map(Command::get_name)
            .collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
    }
}
