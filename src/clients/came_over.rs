//! The servers of mcpzip that clients had before, as these had them.

use std::path::Path;

use super::model::Approval;
use super::nearness::Nearness;
use super::rules::Rights;
use super::servers::Servers;
use super::{Client, ConfigLocation, Found, Node, Surroundings};

/// The servers that `client` had switched off before they moved, as it had them. They are off at mcpzip as well.
pub(super) fn refused(
    client: Client,
    servers: &Servers,
    config_file: &Path,
    around: &Surroundings,
) -> Vec<Found> {
    let mut found = Vec::new();
    for (name, node) in servers.all() {
        let projects = node.get("projects").map(Node::items).unwrap_or_default();
        let projects = projects.iter().filter_map(Node::as_text);
        let projects = projects.map(Path::new).filter(|path| path.is_absolute());
        let mut locations: Vec<ConfigLocation> = projects
            .filter_map(|project| client.project_location(project))
            .collect();
        let is_off = node.get("disabled") == Some(&Node::Flag(true));
        let is_unknown = !locations.is_empty() && servers.history.is_unknown(name);
        if !is_off || !is_unknown && !servers.history.may_refuse(client, name) {
            continue;
        }
        if Rights::read(node).is_for_all() {
            locations.push(at_mcpzip(client, config_file, around));
        }
        found.extend(locations.into_iter().map(|location| Found {
            form: Some(node.clone()),
            is_switched_off: true,
            is_off: true,
            switch: None,
            approval: Approval::Refused,
            ..Found::read(location, name, node)
        }));
    }
    found
}

/// How near the servers are to `other` that `client` had on before they moved, and that are on at mcpzip.
pub(super) fn moved_on(client: Client, other: &Found, servers: &Servers) -> Option<Nearness> {
    let on = servers.all().iter().filter(|(name, node)| {
        let is_off = node.get("disabled") == Some(&Node::Flag(true));
        !is_off && servers.history.was_on(client, name)
    });
    on.filter_map(|(_, node)| Nearness::here(node, other, servers))
        .max()
}

/// The place of mcpzip's servers in `config_file`, for one that is to be compared with those of `client`.
pub(super) fn at_mcpzip(
    client: Client,
    config_file: &Path,
    around: &Surroundings,
) -> ConfigLocation {
    // Its entries have the form of Claude Code's.
    ConfigLocation {
        client,
        path: config_file.to_owned(),
        ..Client::ClaudeCode.user_location(around)
    }
}
