//! The profiles in `mcpzip status`.

use serde::Serialize;

use super::output::{Output, bad};
use super::printable::printable;
use crate::config::Config;
use crate::proxy::counted;

/// A profile of the configuration.
#[derive(Serialize)]
pub(super) struct ShownProfile {
    name: String,
    /// The servers that its sessions can see.
    servers: Vec<String>,
    /// The reason why its sessions are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

pub(super) fn all(config: &Config) -> Vec<ShownProfile> {
    let names = config.profiles.iter().flat_map(|profiles| profiles.keys());
    names
        .map(|name| {
            let part = config.narrowed(std::slice::from_ref(name));
            let servers = part.iter().flat_map(|part| part.servers.keys());
            ShownProfile {
                name: name.clone(),
                servers: servers.map(ToString::to_string).collect(),
                fault: part.as_ref().err().map(ToString::to_string),
            }
        })
        .collect()
}

pub(super) fn show(profiles: &[ShownProfile], output: &Output) {
    for profile in profiles {
        let (name, count) = (printable(&profile.name), profile.servers.len());
        let state = match &profile.fault {
            None => counted(count, "server"),
            Some(fault) => bad(printable(fault)),
        };
        output.row("  ", format!("profile {name}: {state}"));
    }
}
