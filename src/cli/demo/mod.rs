//! `mcpzip demo`: shows how an agent works through mcpzip, with servers from inside the binary and no configuration.
//!
//! The demo is an ordinary client. It starts `mcpzip serve` as a child process with a configuration in a temporary
//! directory, speaks MCP to it, and shows what went over the pipe. An unexpected answer ends the demo with an error.

mod ask;
mod client;
mod directory;
mod measure;
mod report;
mod show;
mod stage;
mod walk;

use std::path::PathBuf;

use clap::Args;

use super::diagnostics::Exit;
use super::output::Output;
use crate::config::Environment;
use crate::shutdown;
use stage::Stage;

pub(super) const SERVER_COMMAND: &str = "__demo-server";

#[derive(Debug, Args)]
pub(super) struct ServerArguments {
    name: String,
    store: PathBuf,
    /// File that this process's id is written to
    #[arg(long)]
    pid_file: Option<PathBuf>,
}

pub(super) fn serve(arguments: &ServerArguments) -> Result<(), Exit> {
    let server = mcpzip_demo::Server::from_name(&arguments.name)
        .ok_or_else(|| Exit::failed(format!("there is no demo server `{}`", arguments.name)))?;
    if let Some(file) = &arguments.pid_file {
        std::fs::write(file, std::process::id().to_string())?;
    }
    Ok(mcpzip_demo::serve(server, &arguments.store)?)
}

pub(super) async fn run(environment: Environment, output: &Output) -> Result<(), Exit> {
    let mut signal = std::pin::pin!(shutdown::signal());
    // The signal handler is installed before anything is created, so that a signal leaves nothing behind.
    if let Some(signal) = poll_once(signal.as_mut()).await {
        return Err(Exit::interrupted(signal));
    }
    let mut stage = Stage::build(&environment)?;
    let outcome = tokio::select! {
        signal = signal => Err(Exit::interrupted(signal)),
        outcome = walk::run(&mut stage, output) => outcome.map_err(Exit::from),
    };
    stage.close().await;
    let report = outcome?;
    if output.is_json_asked() {
        output.json(&report);
    } else {
        show::totals(&report, output);
        show::next(&environment, output);
    }
    Ok(())
}

/// The future's output if it is ready now.
pub(super) async fn poll_once<F: Future + Unpin>(future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        outcome = future => Some(outcome),
        () = std::future::ready(()) => None,
    }
}
