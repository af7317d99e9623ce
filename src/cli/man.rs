//! `mcpzip man`: prints or writes the manual pages, which are made from the help texts.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};
use clap_mangen::Man;

use super::Cli;
use super::diagnostics::Exit;
use super::output::Output;
use crate::text::nearest;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip man | man -l -
  mcpzip man search | man -l -
  mcpzip man ~/.local/share/man/man1")]
pub(super) struct Arguments {
    /// Command whose page is printed, or directory for the pages of all commands [default: print the main page]
    #[arg(value_name = "COMMAND|DIRECTORY")]
    target: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<(), Exit> {
    let root = Cli::command();
    let target = arguments.target.as_deref();
    let named = target.and_then(Path::to_str);
    let command = named.and_then(|name| root.find_subcommand(name)).cloned();
    let Some(directory) = target.filter(|_| command.is_none()) else {
        if std::io::stdout().is_terminal() {
            return Err(Exit::failed(
                "a manual page is formatted by `man`: pipe it into `man -l -`",
            ));
        }
        let mut page = Vec::new();
        let command = command.map_or(root, |command| {
            let name = format!("mcpzip-{}", command.get_name());
            command.name(name)
        });
        Man::new(command).render(&mut page)?;
        output.verbatim(String::from_utf8_lossy(&page).trim_end());
        return Ok(());
    };
    // A word that is not a directory yet is more likely a misspelt command.
    if let Some(word) = named.filter(|word| !word.contains(std::path::is_separator))
        && !directory.exists()
    {
        let commands: Vec<&str> = root
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        let advice = match nearest(word, commands.into_iter()) {
            Some(near) => format!("did you mean `{near}`? "),
            None => String::new(),
        };
        return Err(Exit::bad_usage(format!(
            "there is no command `{word}`, and no such directory. {advice}`mcpzip man ./{word}` makes the directory and writes the pages \
             into it"
        )));
    }
    let made = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory));
    made.with_context(|| format!("cannot write to `{}`", directory.display()))?;
    output.note(&format!("the pages are in {}", directory.display()));
    Ok(())
}
