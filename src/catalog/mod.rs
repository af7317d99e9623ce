//! Which tools exist, and prompts and resources beside them: what every server listed last, known at once after a start
//! and replaced whole when it changes.
//!
//! Readers take a [`Snapshot`] and keep it for their request; a refresh builds the next one beside it. Only names, URIs,
//! hashes and hints are held in memory; the definitions are read from the cache when somebody wants them.
//!
//! *Invariant*: nothing here connects to a server, and nothing here parses a tool beyond its [`Definition`].
//!
//! [`Definition`]: crate::tool::Definition

mod cache;
mod entries;
mod header;
mod names;
mod server_tools;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

pub use cache::{Cache, Key, Listed};
pub use entries::{Entries, Entry, Kind};
pub use names::Resolution;
pub use server_tools::{Flaw, ReadError, ServerTools, ToolEntry};

use crate::tool::{QualifiedName, ServerName, ToolHash, ToolName};

/// The current snapshot, and the way to the next.
#[derive(Debug, Default)]
pub struct Catalog {
    current: RwLock<Arc<Snapshot>>,
}

/// All known tools at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    servers: BTreeMap<ServerName, Arc<ServerTools>>,
}

/// A tool as the catalog holds it: its entry and the server it belongs to.
#[derive(Debug, Clone)]
pub struct Tool {
    server: Arc<ServerTools>,
    index: usize,
}

impl Catalog {
    /// An empty catalog.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What is known now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the tools of some servers and forgets others, in one step.
    pub fn update(&self, change: impl FnOnce(&mut BTreeMap<ServerName, Arc<ServerTools>>)) -> Arc<Snapshot> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut servers = current.servers.clone();
        change(&mut servers);
        *current = Arc::new(Snapshot { servers });
        current.clone()
    }
}

impl Snapshot {
    /// The servers whose tools are known, by name.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<ServerTools>> {
        self.servers.values()
    }

    /// The tools of one server.
    #[must_use]
    pub fn server(&self, name: &ServerName) -> Option<&Arc<ServerTools>> {
        self.servers.get(name)
    }

    /// The tool of this very name.
    #[must_use]
    pub fn tool(&self, server: &ServerName, tool: &ToolName) -> Option<Tool> {
        let server = self.servers.get(server)?;
        Some(Tool { server: server.clone(), index: server.position(tool)? })
    }

    /// All tools, by server and in the server's own order.
    pub fn tools(&self) -> impl Iterator<Item = Tool> + '_ {
        self.servers
            .values()
            .flat_map(|server| (0..server.entries().len()).map(|index| Tool { server: server.clone(), index }))
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.servers.values().map(|server| server.entries().len()).sum()
    }

    /// Whether no tool is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What identifies this state: every tool with its hash.
    pub fn identities(&self) -> impl Iterator<Item = (&ServerName, &ToolName, ToolHash)> {
        self.servers
            .values()
            .flat_map(|server| server.entries().iter().map(|entry| (server.name(), &entry.name, entry.hash)))
    }
}

impl Tool {
    /// Its server.
    #[must_use]
    pub fn server(&self) -> &Arc<ServerTools> {
        &self.server
    }

    /// Its entry.
    #[must_use]
    pub fn entry(&self) -> &ToolEntry {
        &self.server.entries()[self.index]
    }

    /// The name that agents see.
    #[must_use]
    pub fn qualified_name(&self) -> QualifiedName {
        QualifiedName { server: self.server.name().clone(), tool: self.entry().name.clone() }
    }

    /// Its definition, in the server's own bytes.
    ///
    /// # Errors
    /// When the cache file it stands in cannot be read any more.
    pub fn json(&self) -> Result<Box<serde_json::value::RawValue>, ReadError> {
        self.server.json(self.entry())
    }
}
