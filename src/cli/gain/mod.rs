//! `mcpzip gain`: what agents were spared, and what they paid for it.
//!
//! Definitions are counted with the tokenizer itself, in the words that the servers use now. Results were counted when they
//! passed, when there was no time for a tokenizer: their tokens are estimated, and the output says so. What was not
//! saved, and what costs more than without `mcpzip`, is part of the sum.

mod account;
mod discover;
mod report;
mod transcript;

use std::path::PathBuf;

use clap::Args;

use super::diagnostics::Exit;
use super::output::Output;
use super::since::since;
use crate::config::{Environment, Paths};
use crate::day::Day;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip gain --since 7d
  mcpzip gain --discover")]
pub(super) struct Arguments {
    /// From when on: 7d, 4w or a date; everything that is kept when absent
    #[arg(long, value_parser = since)]
    since: Option<Day>,
    /// Read the session logs of Claude Code instead, and say what its MCP tools cost; they are only read, and nothing is sent
    #[arg(long)]
    discover: bool,
    /// Where these logs are
    #[arg(long, value_name = "DIR", requires = "discover")]
    logs: Option<PathBuf>,
}

pub(super) fn run(
    arguments: Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    if arguments.discover {
        return discover::run(arguments.logs, arguments.since, environment, output);
    }
    let account = {
        let _spinner = output.spinner("counting");
        account::Account::of(paths, environment, arguments.since)?
    };
    if output.is_json() {
        output.json(&account);
    } else {
        report::print(&account, output);
    }
    Ok(())
}
