//! `mcpzip demo`.
use super::diagnostics::Exit;
use super::output::Output;
use crate::config::Environment;
use clap::Args;
use std::path::PathBuf;

pub(super) const SERVER_COMMAND: &str = "__demo-server";

#[derive(Debug, Args)]
pub(super) struct ServerArguments {
    name: String,
    store: PathBuf,
}

pub(super) fn serve(arguments: &ServerArguments) -> Result<(), Exit> {
    let server = crate::demo::Server::from_name(&arguments.name)
        .ok_or_else(|| Exit::failed(format!("there is no demo server `{}`", arguments.name)))?;
    Ok(crate::demo::serve(server, &arguments.store)?)
}

pub(super) async fn run(_environment: Environment, _output: &Output) -> Result<(), Exit> {
    Ok(())
}
