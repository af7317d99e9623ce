//! The directory and the environment variables that a session was started with.
//!
//! A process may serve sessions that other processes were started for. So both are captured once, where a session begins, and
//! passed to everything that works for it; `tests/it/layers.rs` keeps the rest of the program from asking the process.

use std::path::PathBuf;

use super::env::Environment;

/// The working directory and the variables of one session.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionEnv {
    /// As the system gave it, absolute; `None` if it is gone or may not be read.
    pub directory: Option<PathBuf>,
    /// All variables.
    pub environment: Environment,
    /// The soft limit of open files that its servers get, if it is not that of this process.
    pub open_files: Option<u64>,
}

impl SessionEnv {
    /// A session in this process's directory, with `environment`. Only for the program's edge: `cli` and `app`.
    #[must_use]
    pub(crate) fn here(environment: Environment) -> Self {
        Self {
            directory: std::env::current_dir().ok(),
            environment,
            open_files: None,
        }
    }
}
