//! The data that the parts of this module share: the servers that were found, how each was understood, the rules about them.
//! Nothing here reads a file.

mod entry;
mod item;
mod rule;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub(super) use entry::ToolRule;
pub(crate) use entry::{Entry, Target};
pub(crate) use item::{Item, Verdict};
pub(crate) use rule::{Carried, Rule, RuleKind};

use super::cache::Source;
use super::{Client, ConfigLocation, Scope};

/// All that was found.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The servers, in the order of clients and files.
    pub found: Vec<Found>,
    /// What names single servers or tools of theirs outside of their entries, or in them.
    pub rules: Vec<Rule>,
    /// The servers that are in no list that could be edited.
    pub fixed: Vec<Fixed>,
    /// The files that could not be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
    pub(in crate::clients) files: BTreeMap<PathBuf, Source>,
    pub(in crate::clients) locations: Vec<ConfigLocation>,
}

/// A server in a client's file.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Where.
    pub location: ConfigLocation,
    /// Its name there.
    pub name: String,
    /// What it is, or why it has to stay.
    pub entry: Result<Entry, String>,
    /// Whether that is `mcpzip`.
    pub is_mcpzip: bool,
    /// Whether it is a project's, and no file of the user's own says that it may run.
    pub is_unapproved: bool,
}

/// A server that cannot move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fixed {
    /// Whose.
    pub client: Client,
    /// Where it is known from.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// Why not.
    pub reason: &'static str,
}

impl Found {
    /// Where its rules and the user look for it.
    #[must_use]
    pub(crate) fn scope(&self) -> Scope {
        self.location.scope
    }
}
