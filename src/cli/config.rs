//! `mcpzip config`: what may stand in the configuration.

use clap::{Args, Subcommand};

use super::output::Output;
use crate::config::json_schema;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Print the JSON Schema of the configuration, for editors
    Schema(SchemaArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip config schema
  mcpzip config schema > config.schema.json    then \"$schema\": \"./config.schema.json\" in the configuration")]
pub(super) struct SchemaArguments {}

pub(super) fn run(command: &Command, output: &Output) {
    let Command::Schema(SchemaArguments {}) = command;
    output.json(&json_schema());
}
