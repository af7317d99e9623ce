//! The profiles in `mcpzip status`.

use serde::Serialize;

use super::output::{Output, bad};
use super::printable::printable;
use crate::config::{Config, Profile};
use crate::proxy::counted;

/// A profile of the configuration.
#[derive(Serialize)]
pub(super) struct ShownProfile {
    name: String,
    /// The servers that its sessions can see.
    servers: Vec<String>,
    /// How its sessions see the tools, if it decides that.
    #[serde(skip_serializing_if = "Option::is_none")]
    surface: Option<&'static str>,
    /// Whether the directories of a session can lead to it, also after the session has begun with another surface.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_directory: bool,
    /// Why its sessions are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

pub(super) fn all(config: &Config) -> Vec<ShownProfile> {
    let names = config.profiles.iter().flat_map(|profiles| profiles.keys());
    names
        .map(|name| {
            let part = config.narrowed(std::slice::from_ref(name));
            let profile = config.profiles.as_ref().ok().and_then(|all| all.get(name));
            let profile = profile.and_then(|profile| profile.as_ref().ok());
            let servers = part.iter().flat_map(|part| part.servers.keys());
            ShownProfile {
                name: name.clone(),
                servers: servers.map(ToString::to_string).collect(),
                surface: profile.and_then(|profile| Some(profile.surface()?.text())),
                by_directory: profile.is_some_and(Profile::has_directories),
                fault: part.as_ref().err().map(ToString::to_string),
            }
        })
        .collect()
}

pub(super) fn show(profiles: &[ShownProfile], output: &Output) {
    for profile in profiles {
        let (name, count) = (printable(&profile.name), profile.servers.len());
        let state = match &profile.fault {
            None => {
                let servers = counted(count, "server");
                match (profile.surface, profile.by_directory) {
                    (None, _) => servers,
                    (Some(surface), false) => format!("{servers}, surface {surface}"),
                    (Some(surface), true) => format!(
                        "{servers}, surface {surface}, except in a session that began before its directory was known"
                    ),
                }
            }
            Some(fault) => bad(printable(fault)),
        };
        output.row("  ", format!("profile {name}: {state}"));
    }
}
