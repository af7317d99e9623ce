//! `mcpzip serve`: the main job.

use std::io::IsTerminal as _;

use super::diagnostics::Exit;
use super::output::Output;
use crate::app::App;
use crate::proxy::Mode;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Show every tool of every server by itself instead of the three meta-tools, for clients that search by themselves
    #[arg(long)]
    direct: bool,
}

impl Arguments {
    pub(super) fn mode(&self) -> Mode {
        if self.direct { Mode::Direct } else { Mode::MetaTools }
    }
}

pub(super) async fn run(app: App, output: &Output) -> Result<(), Exit> {
    if std::io::stdin().is_terminal() {
        output.note("waiting for an MCP client on stdin; clients start this command themselves. Ctrl-C ends it.");
    }
    Ok(app.serve_stdio().await?)
}
