//! The extensions that a client has in common with servers, and whose a method or notification is.

use std::collections::{BTreeMap, BTreeSet};

use crate::mcp::Others;
use crate::tool::ServerName;

/// The extensions that a client has in common with servers.
#[derive(Debug, Default)]
pub(crate) struct Common {
    pub(in crate::proxy) by_server: BTreeMap<ServerName, Others>,
    /// The names of all extensions of the client and of servers, also of those that it cannot use.
    pub(in crate::proxy) known: BTreeSet<String>,
}

impl Common {
    /// Whether there are none.
    pub(in crate::proxy) fn is_empty(&self) -> bool {
        self.by_server.is_empty()
    }

    /// Those with a server.
    pub(in crate::proxy) fn with(&self, server: &ServerName) -> Option<&Others> {
        self.by_server.get(server)
    }

    /// The server that a request with this method is for: the one whose extension has the method's first part as its name. If that is
    /// the name of no extension, it is the only server.
    pub(in crate::proxy) fn server_of(&self, method: &str) -> Option<&ServerName> {
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
    pub(in crate::proxy) fn is_of(&self, server: &ServerName, notification: &str) -> bool {
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
