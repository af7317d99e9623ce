//! The servers that agents have disabled, so that they may enable those and no others.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::restrictions::is_disabled;
use crate::config::{Change, Config, Document};

/// The entries that agents of this process have disabled, as they were before. Other and later processes do not know
/// them; there, a person must enable them.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Switches(Mutex<BTreeMap<String, Value>>);

impl Switches {
    /// Records an entry that an agent is about to disable, unless it is disabled already.
    pub(super) fn note(&self, change: &Change, name: &str, document: &Document) {
        if *change == (Change::Switch { disabled: true })
            && !is_disabled(name, document)
            && let Some(entry) = entry(name, document)
        {
            self.known().insert(name.to_owned(), entry);
        }
    }

    /// Whether an agent has disabled an entry that is otherwise unchanged.
    pub(super) fn is_agents(&self, name: &str, document: &Document) -> bool {
        entry(name, document).is_some_and(|entry| self.known().get(name) == Some(&entry))
    }

    /// Forgets the servers that are enabled in `config`: the next one to disable them may be a person.
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

/// An entry without its switch.
fn entry(name: &str, document: &Document) -> Option<Value> {
    let json = document.get(&["mcpServers", name])?;
    let mut entry: Value = serde_json::from_str(&json).ok()?;
    entry.as_object_mut()?.remove("disabled");
    Some(entry)
}
