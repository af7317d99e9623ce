//! The data that the parts of this module share: the servers found, their entries, and the rules about them. Nothing
//! here reads a file.

mod entry;
mod item;
mod rule;
mod unmovable;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub(crate) use entry::{Entry, Target};
pub(super) use entry::{Invocation, OWN_PROGRAMS, ToolRule};
pub(crate) use item::{Item, Known, Verdict};
pub(in crate::clients) use rule::Reach;
pub(crate) use rule::{Carried, Outcome, Rule, RuleKind};
pub(in crate::clients) use unmovable::Unmovable;

use super::cache::{FileError, Source};
use super::{Client, ConfigLocation, Node, Scope};

/// The result of reading all clients' files.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The servers, in the order of clients and files.
    pub found: Vec<Found>,
    /// The rules about single servers or tools, inside and outside of entries.
    pub rules: Vec<Rule>,
    /// The servers that are in no editable list.
    pub fixed: Vec<Fixed>,
    /// The directories of the projects that clients' files name, and of the current one down to the current directory.
    pub(in crate::clients) projects: Vec<PathBuf>,
    /// The servers that no migration moves: in files of those projects that are not among `found`, of plugins and extensions, and of
    /// administrators. Only their rules count.
    pub(in crate::clients) staying: Vec<Found>,
    /// The files that could not be read, with the reasons.
    pub unreadable: Vec<(PathBuf, FileError)>,
    /// The clients whose servers may move.
    pub(in crate::clients) movable: Vec<Client>,
    pub(in crate::clients) files: BTreeMap<PathBuf, Source>,
    pub(in crate::clients) locations: Vec<ConfigLocation>,
}

/// A server in a client's file.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// The place of the server's entry.
    pub location: ConfigLocation,
    /// Its name in the file.
    pub name: String,
    /// Its entry, or the reason why it must stay.
    pub entry: Result<Entry, Unmovable>,
    /// Its command line or URL as the file has it, before it was converted.
    pub(in crate::clients) written: Invocation,
    /// The program or URL that it runs, in our form, by which servers are compared; also of an entry that must stay, as far as it is known.
    pub(in crate::clients) form: Option<Node>,
    /// The rules in its entry about single tools.
    pub(in crate::clients) tool_rules: Vec<ToolRule>,
    /// The key and value of its entry that switch it off.
    pub(in crate::clients) switch: Option<(&'static str, String)>,
    /// Whether its client has it switched off, in its entry or elsewhere.
    pub(in crate::clients) is_switched_off: bool,
    /// Whether it counts as off: also if it is a project's and no file of the user's own approves it.
    pub(in crate::clients) is_off: bool,
    /// Other names that it may have had in its client, if it is one of mcpzip's.
    pub(in crate::clients) origins: Vec<String>,
    /// Whether it is `mcpzip`.
    pub is_mcpzip: bool,
    /// The user's decision about it, if it is a project's server.
    pub(in crate::clients) approval: Approval,
}

/// The user's decision about a server of a project, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::clients) enum Approval {
    /// It may run.
    Given,
    /// The user has not decided.
    Missing,
    /// It must not run.
    Refused,
}

/// A server that cannot move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fixed {
    /// The client.
    pub client: Client,
    /// The file that names it.
    pub path: PathBuf,
    /// The server's name.
    pub name: String,
    /// The reason.
    pub reason: &'static str,
}

impl Found {
    /// Whether both are one entry of one file.
    #[must_use]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.location == other.location && self.name == other.name
    }

    /// The scope in which its rules and the user look for it.
    #[must_use]
    pub(crate) fn scope(&self) -> Scope {
        self.location.scope
    }
}
