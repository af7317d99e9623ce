//! A folder whose files are tools.

use std::path::PathBuf;

/// A folder with tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    /// Its absolute path.
    pub path: PathBuf,
    pub holds: Holds,
    /// Whether all its files are resources. With pins or in quarantine, only those are that are compared with an entry of `skills/list`.
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
