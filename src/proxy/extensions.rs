//! Extensions that mcpzip does not know. An extension passes between a client and a server if both declare it and no
//! other server does: its settings are sent with each request to that server, and requests of the client and
//! notifications of the server are passed on. If several servers had the extension, a request would not say which of
//! them it means.

use std::collections::BTreeMap;

use super::callers::common::Common;
use super::inventory::Inventory;
use super::view::View;
use crate::config::Verdict;
use crate::mcp::Others;
use crate::tool::{Hints, QualifiedName, ServerName, ToolName};

/// Extensions of servers that clients can use: their servers, and the servers' settings.
pub(super) type Offered = BTreeMap<String, (ServerName, String)>;

/// The names of the extensions of all servers, also of those that clients with this view cannot use.
fn of_servers(view: &View, inventory: &Inventory) -> Vec<String> {
    let (config, snapshot) = (view.config(), view.snapshot());
    let servers = config.servers.keys();
    let others = servers.flat_map(|server| inventory.other_extensions(&snapshot, server));
    others.map(|(name, _)| name).collect()
}

/// The extensions of servers that clients with this view can use: their servers, and the servers' settings.
pub(super) fn offered(view: &View, inventory: &Inventory) -> Offered {
    let mut found: BTreeMap<String, Option<(ServerName, String)>> = BTreeMap::new();
    let (config, snapshot) = (view.config(), view.snapshot());
    let servers = config.servers.iter().filter(|(_, entry)| !entry.disabled);
    for (server, _) in servers {
        // A server that clients may not use takes no extension from another one.
        if inventory.is_quarantined(server) {
            continue;
        }
        for (extension, settings) in inventory.other_extensions(&snapshot, server) {
            let decide = |name| config.decide(&name, Hints::default(), None).0;
            if as_tool(server, &extension).map(decide) != Some(Verdict::Allowed) {
                continue;
            }
            let first = Some((server.clone(), settings));
            let entry = found.entry(extension);
            entry.and_modify(|known| *known = None).or_insert(first);
        }
    }
    let single = found
        .into_iter()
        .filter_map(|(name, found)| Some((name, found?)));
    single.collect()
}

/// The extensions that a client which declares `declared` has in common with servers.
pub(super) fn common(view: &View, inventory: &Inventory, declared: &Others) -> Common {
    let mut common = Common::default();
    if declared.is_empty() {
        return common;
    }
    for (extension, (server, _)) in offered(view, inventory) {
        if let Some(settings) = declared.get(&extension) {
            let of_server = common.by_server.entry(server).or_default();
            of_server.insert(extension, settings.clone());
        }
    }
    if !common.is_empty() {
        let names = declared.keys().cloned();
        common.known = names.chain(of_servers(view, inventory)).collect();
    }
    common
}

/// A method or an extension of a server as rules see it: a tool that declares nothing.
pub(super) fn as_tool(server: &ServerName, name: &str) -> Option<QualifiedName> {
    Some(QualifiedName {
        server: server.clone(),
        tool: ToolName::new(name).ok()?,
    })
}
