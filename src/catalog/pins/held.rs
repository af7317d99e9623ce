//! The parts of one server that are held back, by its pins as they stand at one moment.

use std::sync::Arc;

use super::change::label;
use super::known::Known;
use crate::catalog::{Entry, Kind, ToolEntry};
use crate::config::Trust;

/// The pins of one server at one moment, which judge thousands of tools without a lock.
#[derive(Debug)]
pub(crate) struct Held {
    known: Option<Arc<Known>>,
    /// The `trust` in force.
    trust: Trust,
}

impl Held {
    pub(super) fn new(known: Option<Arc<Known>>, trust: Trust) -> Self {
        Self {
            trust: Known::trust(known.as_deref(), trust),
            known,
        }
    }

    /// Whether only approved, or unchanged, definitions may be used: by its entry, a quarantine that outlives another, or a lost record.
    #[must_use]
    pub(crate) fn is_pinned(&self) -> bool {
        !self.trust.is_report()
    }

    /// Whether no more than approved tools may reach a client, as the server was not approved as a whole.
    #[must_use]
    pub(crate) fn is_quarantined(&self) -> bool {
        Known::is_held_whole(self.known.as_deref(), self.trust)
    }

    /// Whether the server's instructions must not be shown.
    #[must_use]
    pub(crate) fn instructions(&self) -> bool {
        let are_free = |known: &Arc<Known>| known.has_free_instructions;
        self.is_pinned() && !self.known.as_ref().is_some_and(are_free)
    }

    /// Whether a tool must not be used.
    #[must_use]
    pub(crate) fn tool(&self, tool: &ToolEntry) -> bool {
        let (name, known) = (tool.name.as_str(), self.known.as_ref());
        if self.is_pinned() {
            let free = known.and_then(|known| known.free.get(name));
            return free != Some(&tool.hash.to_string());
        }
        let rejected = known.map(|known| known.rejected.as_ref());
        rejected.is_some_and(|all| all.is_none_or(|rejected| rejected.contains(name)))
    }

    /// Whether a prompt, resource or template must not be used.
    #[must_use]
    pub(crate) fn entry(&self, kind: Kind, entry: &Entry) -> bool {
        let (label, known) = (label(kind, &entry.key), self.known.as_ref());
        if self.is_pinned() {
            let free = known.and_then(|known| known.free_entries.get(&label));
            return free != Some(&entry.hash.to_string());
        }
        let rejected = known.map(|known| known.rejected_entries.as_ref());
        rejected.is_some_and(|all| all.is_none_or(|rejected| rejected.contains(&label)))
    }
}
