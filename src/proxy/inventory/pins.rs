//! Tools that differ from their pins, the definitions that were first seen.

use super::Inventory;
use crate::audit::{Kind, Outcome};
use crate::catalog::{Changes, Tool};
use crate::proxy::callers::listener::Change;
use crate::tool::ServerName;

/// The reason why a tool's pin withholds it.
pub(in crate::proxy) enum PinState {
    /// Its definition differs from the pin.
    Changed,
    /// It could not be compared: the reason, or `None` if its server was not listed yet.
    Unknown(Option<String>),
}

impl Inventory {
    /// Reads the changes and approvals of other processes.
    pub(crate) fn read_pins(&self) {
        if self.pins.load_again(self.keys().iter()) {
            self.pins_changed();
        }
    }

    /// The tools of a server that differ from their pins.
    #[must_use]
    pub(crate) fn changed_tools(&self, server: &ServerName) -> Changes {
        self.pins.changes(server)
    }

    /// The reason why a tool with a pin is withheld.
    pub(in crate::proxy) fn pin_state(&self, tool: &Tool) -> PinState {
        let server = tool.server().name();
        if self.pins.is_changed(server, tool.entry()) {
            PinState::Changed
        } else {
            PinState::Unknown(self.pins.fault(server))
        }
    }

    /// Pins tools of a server to the definitions in `seen`. Only call it on behalf of a person.
    ///
    /// # Errors
    /// When the pins cannot be written.
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

    /// Applies changed pins to the catalog, and notifies clients.
    fn pins_changed(&self) {
        self.restrict(&self.callers.unscoped().config());
        self.callers.lists_changed(&[Change::Tools]);
    }
}
