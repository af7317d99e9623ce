//! `mcpzip --help`: the commands in groups, in the order in which a newcomer needs them.
//!
//! clap knows one heading for all commands, so the list is a part of the help's template.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::Cli;

/// Every command that help shows, in exactly one group.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Get started", &["init", "demo", "doctor", "status"]),
    ("Use tools", &["search", "describe", "call", "tools"]),
    (
        "Servers and logins",
        &[
            "add", "remove", "enable", "disable", "list", "servers", "update", "registry", "login",
            "logout", "auth", "approve",
        ],
    ),
    (
        "Clients",
        &["migrate", "connect", "disconnect", "undo", "serve"],
    ),
    (
        "Records and settings",
        &["stats", "gain", "logs", "config", "completions", "man"],
    ),
];

/// Columns between the margin and what a command does.
const WIDTH: usize = 13;

/// The command line, with its grouped help.
pub(super) fn command() -> Command {
    let command = Cli::command();
    let template = template(&command);
    command.help_template(template)
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
            let _ = writeln!(text, "  {literal}{name}{literal:#}{:pad$}{about}", "");
        }
    }
    let _ = write!(
        text,
        "\n{header}Options for all commands:{header:#}\n{{options}}{{after-help}}"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
