//! `mcpzip man`: prints or writes the manual pages, which are made from the help texts.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};
use clap_mangen::Man;

use super::Cli;
use super::diagnostics::Exit;
use super::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip man | man -l -
  mcpzip man ~/.local/share/man/man1")]
pub(super) struct Arguments {
    /// Write a page for each command into this directory [default: print the main page]
    #[arg(value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<(), Exit> {
    let Some(directory) = &arguments.directory else {
        if std::io::stdout().is_terminal() {
            return Err(Exit::failed(
                "a manual page is formatted by `man`: run `mcpzip man | man -l -`",
            ));
        }
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page)?;
        output.verbatim(String::from_utf8_lossy(&page).trim_end());
        return Ok(());
    };
    let made = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory));
    made.with_context(|| format!("cannot write to `{}`", directory.display()))?;
    output.note(&format!("the pages are in {}", directory.display()));
    Ok(())
}
