//! A server in a plan.

use std::path::PathBuf;

use crate::clients::{Client, Scope};

/// A server, and what becomes of it.
#[derive(Debug)]
pub(crate) struct Item {
    /// Whose.
    pub client: Client,
    /// In which scope.
    pub scope: Scope,
    /// In which file.
    pub path: PathBuf,
    /// Its name there.
    pub server: String,
    /// What becomes of it.
    pub verdict: Verdict,
    /// Its keys that have no counterpart.
    pub left_behind: Vec<String>,
    /// What is different with it afterwards.
    pub notes: Vec<String>,
    /// Whether it comes over switched off.
    pub is_off: bool,
}

/// What becomes of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It moves.
    Moves {
        /// Its name in `mcpzip`.
        name: String,
        /// Whether `mcpzip` has it already.
        is_known: bool,
    },
    /// Another server has its name: it moves under another.
    Conflicts {
        /// Its name in `mcpzip`.
        name: String,
    },
    /// It stays, and why.
    Stays(String),
}
