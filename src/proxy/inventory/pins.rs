//! Tools whose definitions have changed since they were first seen.

use super::Inventory;
use crate::audit::{Kind, Outcome};
use crate::catalog::{Changes, Tool};
use crate::proxy::callers::listener::Change;
use crate::tool::ServerName;

/// What is known of a tool that its pin withholds.
pub(in crate::proxy) enum PinState {
    /// Its definition has changed.
    Changed,
    /// It cannot be compared, for this reason or because its server was not listed yet.
    Unknown(Option<String>),
}

impl Inventory {
    /// Takes over what another process has noticed or approved of changed tools, if it has.
    pub(crate) fn read_pins(&self) {
        if self.pins.load_again(self.keys().iter()) {
            self.pins_changed();
        }
    }

    /// The tools of a server that are not what they were when they were first seen.
    #[must_use]
    pub(crate) fn changed_tools(&self, server: &ServerName) -> Changes {
        self.pins.changes(server)
    }

    /// Why a tool is withheld whose definition may have changed since it was first seen.
    pub(in crate::proxy) fn pin_state(&self, tool: &Tool) -> PinState {
        let server = tool.server().name();
        if self.pins.is_changed(server, tool.entry()) {
            PinState::Changed
        } else {
            PinState::Unknown(self.pins.fault(server))
        }
    }

    /// Takes tools of a server as they are in `seen` for what they should be. Only ever called for a person.
    ///
    /// # Errors
    /// When that cannot be kept.
    pub(crate) fn approve(&self, server: &ServerName, seen: &Changes) -> std::io::Result<()> {
        if let Some((key, _)) = self.key(server) {
            self.pins.approve(&key, seen)?;
            for name in seen.keys() {
                let detail = "approved by a person";
                self.ledger
                    .note(Kind::Approval, Outcome::Ok, server, Some(name), detail);
            }
        }
        self.pins_changed();
        Ok(())
    }

    /// Restricts tools anew, as other pins are known, and tells clients.
    fn pins_changed(&self) {
        self.restrict(&self.callers.unscoped().config());
        self.callers.lists_changed(&[Change::Tools]);
    }
}
