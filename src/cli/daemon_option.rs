//! The option that decides where a command with servers runs: in the daemon or in its own process.

use clap::Args;
use serde::{Deserialize, Serialize};

#[derive(Debug, Args, Serialize, Deserialize)]
pub(super) struct DaemonOption {
    /// Start separate servers, even if a daemon runs
    #[arg(long)]
    pub(super) alone: bool,
}
