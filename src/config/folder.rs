//! A folder whose files are tools.

use std::path::PathBuf;

/// A folder with tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    /// Its absolute path.
    pub path: PathBuf,
    pub holds: Holds,
    /// Whether its files are resources, too. A server with pins or in quarantine has none, because they would be read unchecked.
    pub has_resources: bool,
}

/// The files of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Folders with a `SKILL.md` each.
    Skills,
    /// Scripts, a file each.
    Scripts,
}

impl Holds {
    /// The word for them.
    #[must_use]
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Skills => "skills",
            Self::Scripts => "scripts",
        }
    }
}
