//! Which servers agents have switched off, so that they may switch on those and no other.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::restrictions::is_disabled;
use crate::config::{Change, Config, Document};

/// The entries that agents of this process have switched off, as they were before. Another process, and one that is
/// started anew, knows of none: a person switches them on then.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Switches(Mutex<BTreeMap<String, Value>>);

impl Switches {
    /// Notes an entry that an agent is about to switch off, unless it is off already.
    pub(super) fn note(&self, change: &Change, name: &str, document: &Document) {
        if *change == (Change::Switch { disabled: true })
            && !is_disabled(name, document)
            && let Some(entry) = entry(name, document)
        {
            self.known().insert(name.to_owned(), entry);
        }
    }

    /// Whether an entry is off by an agent's hand, and otherwise as it was.
    pub(super) fn is_agents(&self, name: &str, document: &Document) -> bool {
        entry(name, document).is_some_and(|entry| self.known().get(name) == Some(&entry))
    }

    /// Forgets the servers that are not off in `config`: whoever switches them off next may be a person.
    pub(in crate::proxy) fn compare(&self, config: &Config) {
        self.known().retain(|name, _| {
            let mut servers = config.servers.iter();
            servers.any(|(known, server)| known.as_str() == name && server.disabled)
        });
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        // Each change is a single step.
        self.0.lock()
    }
}

/// An entry but for its switch.
fn entry(name: &str, document: &Document) -> Option<Value> {
    let json = document.get(&["mcpServers", name])?;
    let mut entry: Value = serde_json::from_str(&json).ok()?;
    entry.as_object_mut()?.remove("disabled");
    Some(entry)
}
