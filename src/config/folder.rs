//! A folder whose files are tools: the key `skills` of an entry, and the saved scripts beside the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::transport::Transport;
use super::{ConfigHash, Era, OwnExposure, OwnIdleBounds, Policy, Projects, Server, Share, Trust};
use crate::tool::ServerName;

/// The server of the saved scripts, and the name of their folder.
const SCRIPTS: &str = "scripts";

/// A folder with tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    /// Its absolute path.
    pub path: PathBuf,
    pub holds: Holds,
    /// Whether its files are resources, too. A server whose changes wait for a person has none: a resource is read as it is.
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
            Self::Scripts => SCRIPTS,
        }
    }
}

/// The server of the scripts beside the configuration `file`, if they have a folder there. An agent may be able to write files, so nothing in it is
/// found before a person has approved it.
pub(super) fn saved_scripts(file: &Path) -> Option<(ServerName, Server)> {
    let path = file.parent()?.join(SCRIPTS);
    if !path.is_dir() {
        return None;
    }
    let transport = Transport::Folder(Folder {
        path,
        holds: Holds::Scripts,
        has_resources: false,
    });
    let server = Server {
        hash: ConfigHash::of(&transport),
        transport,
        disabled: false,
        timeout: None,
        idle_timeout: None,
        idle_bounds: OwnIdleBounds::default(),
        era: Era::default(),
        max_concurrent: None,
        description: Some("The user's saved scripts".to_owned()),
        expose: OwnExposure::default(),
        tools: Policy::default(),
        overrides: Arc::default(),
        trust: Trust::Quarantine,
        share: Share::default(),
        client_capabilities: None,
        projects: Projects::default(),
        registry: None,
    };
    Some((ServerName::new(SCRIPTS).ok()?, server))
}
