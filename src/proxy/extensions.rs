//! Extensions that mcpzip does not know. An extension passes between a client and a server if both declare it and no
//! other server does: its settings are sent with each request to that server, and requests of the client and
//! notifications of the server are passed on. If several servers had the extension, a request would not say which of
//! them it means.

use std::collections::BTreeMap;

use super::inventory::Inventory;
use super::view::View;
use crate::config::Verdict;
use crate::mcp::Others;
use crate::tool::{Hints, QualifiedName, ServerName, ToolName};

/// Extensions of servers that clients can use: their servers, and the servers' settings.
pub(super) type Offered = BTreeMap<String, (ServerName, String)>;

/// The extensions that a client has in common with servers, by server.
pub(super) type Common = BTreeMap<ServerName, Others>;

/// The names of the extensions of all servers, also of those that clients with this view cannot use.
pub(super) fn of_servers(view: &View, inventory: &Inventory) -> Vec<String> {
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
    let mut common = Common::new();
    if declared.is_empty() {
        return common;
    }
    for (extension, (server, _)) in offered(view, inventory) {
        if let Some(settings) = declared.get(&extension) {
            let of_server = common.entry(server).or_default();
            of_server.insert(extension, settings.clone());
        }
    }
    common
}

/// The server that a request with this method is for: the one whose extension has the method's first part as its name. If that is the
/// name of none of the extensions which `are_known`, it is the only server.
pub(super) fn server_of<'a>(
    common: &'a Common,
    method: &str,
    are_known: impl IntoIterator<Item = String>,
) -> Option<&'a ServerName> {
    let is_of = |extension: &str| {
        let begins = |name: &str| {
            let rest = method.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let own = extension.split_once('/').map_or(extension, |(_, own)| own);
        begins(extension) || begins(own)
    };
    let named = common
        .iter()
        .filter(|(_, others)| others.keys().any(|name| is_of(name)));
    let mut servers: Vec<_> = named.map(|(server, _)| server).collect();
    if servers.is_empty() && !are_known.into_iter().any(|name| is_of(&name)) {
        servers.extend(common.keys());
    }
    let only = servers.pop();
    only.filter(|_| servers.is_empty())
}

/// A method or an extension of a server as rules see it: a tool that declares nothing.
pub(super) fn as_tool(server: &ServerName, name: &str) -> Option<QualifiedName> {
    Some(QualifiedName {
        server: server.clone(),
        tool: ToolName::new(name).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_means_the_server_of_its_extension_or_none() {
        let server = |name: &str| ServerName::new(name).unwrap();
        let others = |names: &[&str]| -> Others {
            let settings = |name: &&str| ((*name).to_owned(), "{}".to_owned());
            names.iter().map(settings).collect()
        };
        let mut common = Common::from([(server("a"), others(&["x.example/files", "x.example/b"]))]);
        let found = |common: &Common, method: &str| {
            server_of(common, method, ["b.example/shared".to_owned()]).map(ToString::to_string)
        };
        assert_eq!(found(&common, "anything/get").as_deref(), Some("a"));
        // Two other servers have this one.
        for method in ["b.example/shared/get", "shared/get"] {
            assert_eq!(found(&common, method), None, "{method}");
        }
        common.insert(server("z"), others(&["z.example/other"]));
        assert_eq!(found(&common, "files/get").as_deref(), Some("a"));
        assert_eq!(found(&common, "z.example/other/get").as_deref(), Some("z"));
        assert_eq!(found(&common, "anything/get"), None);
        common.insert(server("y"), others(&["y.example/files"]));
        assert_eq!(found(&common, "files/get"), None);
    }
}
