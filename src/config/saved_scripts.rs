//! The server of the scripts that are saved next to the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{
    ConfigHash, Era, Folder, Holds, KnownPackage, OwnExposure, OwnIdleBounds, Placement, Policy,
    Projects, Server, Share, Transport, Trust,
};
use crate::tool::ServerName;

/// The name of the server and of its folder.
const SCRIPTS: &str = "scripts";

/// The folder of the scripts next to the configuration `file`, which may be missing.
pub(crate) fn scripts_folder(file: &Path) -> Option<PathBuf> {
    Some(file.parent()?.join(SCRIPTS))
}

/// The server of the scripts next to the configuration `file`, if they have a folder there. An agent may be able to write files, so nothing in it is
/// found before a person has approved it.
pub(super) fn saved_scripts(file: &Path) -> Option<(ServerName, Server)> {
    let path = scripts_folder(file).filter(|path| path.is_dir())?;
    let transport = Transport::Folder(Folder {
        path,
        holds: Holds::Scripts,
        has_resources: false,
    });
    let server = Server {
        package: KnownPackage::default(),
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
        placement: Placement::Each,
        client_capabilities: None,
        projects: Projects::default(),
        registry: None,
    };
    Some((ServerName::new(SCRIPTS).ok()?, server))
}
