//! Extensions that mcpzip does not know. They pass between a client and the one server that both declare them: the settings with
//! each request to that server, requests of the client, and notifications of the server. Of an extension that several servers have,
//! a request would not say which of them it means, so it does not pass.

use std::collections::{BTreeMap, BTreeSet};

use super::inventory::Inventory;
use super::view::View;
use crate::config::Verdict;
use crate::mcp::Others;
use crate::tool::{Hints, QualifiedName, ServerName, ToolName};

/// Extensions of servers that clients can use: their servers, and the servers' settings.
pub(super) type Offered = BTreeMap<String, (ServerName, String)>;

/// The extensions that a client has in common with servers.
#[derive(Debug, Default)]
pub(crate) struct Common {
    by_server: BTreeMap<ServerName, Others>,
    /// The names of all extensions of the client and of servers, also of those that it cannot use.
    known: BTreeSet<String>,
}

impl Common {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_server.is_empty()
    }

    /// Those with a server.
    pub(super) fn with(&self, server: &ServerName) -> Option<&Others> {
        self.by_server.get(server)
    }

    /// The server that a request with this method is for: the one whose extension has the method's first part as its name. If that is
    /// the name of no extension, it is the only server.
    pub(super) fn server_of(&self, method: &str) -> Option<&ServerName> {
        let named = self
            .by_server
            .iter()
            .filter(|(_, others)| others.keys().any(|name| is_method_of(name, method)));
        let mut servers: Vec<_> = named.map(|(server, _)| server).collect();
        if servers.is_empty() && !self.known.iter().any(|name| is_method_of(name, method)) {
            servers.extend(self.by_server.keys());
        }
        let only = servers.pop();
        only.filter(|_| servers.is_empty())
    }

    /// Whether a notification is one of an extension of this server, by the same rule.
    pub(super) fn is_of(&self, server: &ServerName, notification: &str) -> bool {
        let own = notification.strip_prefix("notifications/");
        self.server_of(own.unwrap_or(notification)) == Some(server)
    }
}

/// Whether a method has the name of an extension as its first part.
fn is_method_of(extension: &str, method: &str) -> bool {
    let begins = |name: &str| {
        let rest = method.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let own = extension.split_once('/').map_or(extension, |(_, own)| own);
    begins(extension) || begins(own)
}

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
        let mut common = Common {
            by_server: BTreeMap::from([(server("a"), others(&["x.example/files", "x.example/b"]))]),
            known: BTreeSet::from(["b.example/shared".to_owned()]),
        };
        let found =
            |common: &Common, method: &str| common.server_of(method).map(ToString::to_string);
        assert_eq!(found(&common, "anything/get").as_deref(), Some("a"));
        // Two other servers have this one.
        for method in ["b.example/shared/get", "shared/get"] {
            assert_eq!(found(&common, method), None, "{method}");
            assert!(!common.is_of(&server("a"), &format!("notifications/{method}")));
        }
        common
            .by_server
            .insert(server("z"), others(&["z.example/other"]));
        assert_eq!(found(&common, "files/get").as_deref(), Some("a"));
        assert_eq!(found(&common, "z.example/other/get").as_deref(), Some("z"));
        assert_eq!(found(&common, "anything/get"), None);
        for (name, is_of_a) in [("files", true), ("files/x", true), ("other/x", false)] {
            let name = format!("notifications/{name}");
            assert_eq!(common.is_of(&server("a"), &name), is_of_a, "{name}");
        }
        common
            .by_server
            .insert(server("y"), others(&["y.example/files"]));
        assert_eq!(found(&common, "files/get"), None);
    }
}
