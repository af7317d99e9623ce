//! The size of the servers' tools, from the cache.

use std::sync::Arc;

use super::{Inventory, policy};
use crate::catalog::{Catalog, Key, ServerTools};
use crate::config::Config;
use crate::tool::tokens_of;

/// The number of tools that a configuration shows, and the tokens of their definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) struct ToolsSize {
    /// The number of tools.
    pub(in crate::proxy) tools: usize,
    /// The tokens of their definitions and of those that wait for approval, estimated.
    pub(in crate::proxy) tokens: usize,
}

impl Inventory {
    /// The size of the tools that `config` shows; `None` if a server was never listed, or if there are no tools: some may come at any
    /// time. It reads the cache, not the servers.
    pub(in crate::proxy) fn size(&self, config: &Config) -> Option<ToolsSize> {
        let used = config.servers.iter().filter(|(_, entry)| !entry.disabled);
        let keys: Vec<Key> = used
            .map(|(server, entry)| Key {
                server: server.clone(),
                configuration: self.pool.list_key(entry),
            })
            .collect();
        let lists: Option<Vec<Arc<ServerTools>>> =
            keys.iter().map(|key| self.lists.load(key)).collect();
        let lists = lists?;
        if !self.is_loaded() {
            self.pins.load(self.keys().iter());
        }
        let catalog = Catalog::new();
        catalog.restrict(Some(policy::rules(config, &self.pins)));
        let snapshot = catalog.update(|servers| {
            let listed = lists.iter().cloned();
            servers.extend(listed.map(|tools| (tools.name().clone(), tools)));
        });
        if snapshot.is_empty() {
            return None;
        }
        // One that waits for a person's approval may come at any time.
        let held = lists.iter().flat_map(|server| {
            let (entries, pins) = (server.entries().iter(), self.pins.held(server.name()));
            let held = entries.filter(move |entry| pins.tool(entry));
            held.filter_map(move |entry| Some(tokens_of(server.json(entry).ok()?.get())))
        });
        let held: usize = held.sum();
        let tokens = snapshot
            .tools()
            .filter_map(|tool| Some(tokens_of(self.definition(&tool)?.get())));
        Some(ToolsSize {
            tools: snapshot.len(),
            tokens: tokens.sum::<usize>() + held,
        })
    }
}
