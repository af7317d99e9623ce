//! `mcpzip serve`: the main job.

use std::io::IsTerminal as _;

use super::diagnostics::Exit;
use super::output::Output;
use crate::app::App;

pub(super) async fn run(app: App, output: &Output) -> Result<(), Exit> {
    if std::io::stdin().is_terminal() {
        output.note("waiting for an MCP client on stdin; clients start this command themselves. Ctrl-C ends it.");
    }
    Ok(app.serve_stdio().await?)
}
