//! `mcpzip gain`: how many tokens mcpzip saved, and how many it cost.
//!
//! Definitions are counted with the tokenizer, in the servers' current texts. The tokens of results are estimated from
//! the sizes recorded when they passed, and the output says so. The sum includes what mcpzip itself costs.

mod account;
mod candidates;
mod discover;
mod report;
mod transcript;

use std::path::PathBuf;

use clap::Args;

use super::diagnostics::Exit;
use super::output::Output;
use crate::config::{Environment, Paths};
use crate::day::{Day, since};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip gain --since 7d
  mcpzip gain --discover")]
pub(super) struct Arguments {
    /// First day to count: 7d, 4w or a date [default: all recorded days]
    #[arg(long, value_parser = since)]
    since: Option<Day>,
    /// Read the session logs of Claude Code instead, and count what its MCP tools cost; nothing leaves this machine
    #[arg(long)]
    discover: bool,
    /// Directory of these logs [default: Claude Code's]
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
