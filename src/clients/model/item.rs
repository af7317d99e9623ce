//! A server in a plan.

use std::path::{Path, PathBuf};

use crate::clients::{Client, Scope};

/// A server and its verdict.
#[derive(Debug)]
pub(crate) struct Item {
    /// The client that has the server.
    pub client: Client,
    /// The scope of the entry.
    pub scope: Scope,
    /// The file that has the entry.
    pub path: PathBuf,
    /// The server's name in that file.
    pub server: String,
    /// The decision on the server.
    pub verdict: Verdict,
    /// Its keys without a counterpart.
    pub left_behind: Vec<String>,
    /// The differences after the migration.
    pub notes: Vec<String>,
    /// Its project, if it is for one only.
    pub project: Option<PathBuf>,
    /// Whether its client has it switched off.
    pub is_off_there: bool,
    /// Whether it is switched off in `mcpzip`.
    pub is_off: bool,
}

impl Item {
    /// The end of a sentence about a server that is switched off in `mcpzip`.
    #[must_use]
    pub(crate) fn state(&self) -> Option<String> {
        let project = self.project.as_deref().map(Path::display);
        match (self.is_off, self.is_off_there, project) {
            (false, ..) => None,
            (true, true, _) => Some("switched off".to_owned()),
            // Claude Code may still wait for an approval.
            (true, false, Some(project)) if self.client == Client::ClaudeCode => {
                Some(format!("of the project {project}, comes over switched off"))
            }
            (true, false, Some(project)) => Some(format!(
                "on in the project {project}, comes over switched off"
            )),
            (true, false, None) => Some("on there, comes over switched off".to_owned()),
        }
    }
}

/// Whether `mcpzip` has a server already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// It does not.
    New,
    /// It had it before.
    Before,
    /// An equal one of another client, or of another file, moves in this run.
    InThisRun,
}

/// The decision about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It moves.
    Moves {
        /// Its name in `mcpzip`.
        name: String,
        /// Whether `mcpzip` has it already.
        known: Known,
    },
    /// Its name belongs to another server, so it moves under a new one.
    Conflicts {
        /// Its name in `mcpzip`.
        name: String,
    },
    /// It stays, for this reason.
    Stays(String),
}
