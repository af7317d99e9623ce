//! Tools whose definitions are not the approved ones.

use std::sync::Arc;

use super::Inventory;
use crate::audit::{Kind, Outcome};
use crate::catalog::{ChangeKind, Key, Pending, Tool};
use crate::config::Config;
use crate::notify::Notice;
use crate::proxy::callers::listener::ChangeNotice;
use crate::tool::ServerName;
use crate::upstream::NotListed;

/// Why a tool's pin withholds it.
pub(in crate::proxy) enum PinState {
    /// Its definition differs from the approved one in this way, or this is said of it.
    Differs(ChangeKind, Option<String>),
    /// A person has rejected it.
    Rejected,
    /// It cannot be compared, for this reason or because its server was not listed yet.
    Unknown(Option<String>),
}

impl Inventory {
    /// Reads the changes and approvals of other processes.
    pub(crate) fn read_pins(&self) {
        let unstarted = |server: &ServerName| self.pins.is_unstarted(server);
        let keys = self.keys();
        let before: Vec<_> = keys.iter().filter(|key| unstarted(&key.server)).collect();
        if self.pins.load_again(keys.iter()) {
            self.pins_changed();
            let started = before.iter().filter(|key| !unstarted(&key.server));
            started.for_each(|key| self.poke(&key.server));
            // A record that is removed meanwhile is made again.
            let snapshot = self.snapshot();
            let listed = keys.iter().map(|key| &key.server);
            let listed = listed.filter(|server| snapshot.server(server).is_some());
            listed
                .filter(|server| self.is_unrecorded(server))
                .for_each(|server| self.poke(server));
        }
        for server in self.pins.take_uncompared() {
            self.poke(&server);
        }
    }

    /// Whether the tools of a server were never compared, or its record is lost. Lists of one person are not compared.
    pub(super) fn is_unrecorded(&self, server: &ServerName) -> bool {
        let config = self.callers.unscoped().config();
        let entry = config.servers.get(server);
        let is_of_person =
            entry.is_some_and(|entry| entry.is_for_people() && entry.trust.is_report());
        !is_of_person && self.pins.is_unrecorded(server)
    }

    /// Why the record of a server cannot be used, if it cannot.
    #[must_use]
    pub(crate) fn damage(&self, server: &ServerName) -> Option<String> {
        let reason = self.pins.damage(server)?;
        Some(format!(
            "it cannot be checked which tools were approved or rejected: {reason}"
        ))
    }

    /// Why the record of a server cannot be opened for the moment.
    #[must_use]
    pub(crate) fn passing_fault(&self, server: &ServerName) -> Option<String> {
        self.pins.passing_fault(server)
    }

    /// Everything that keeps the records of a server from being used, each with its file.
    #[must_use]
    pub(crate) fn record_faults(&self, server: &ServerName) -> Vec<String> {
        let config = self.callers.unscoped().config();
        let program = config.servers.get(server);
        let program = program.map(|entry| entry.transport.program());
        let key = self.key(server).zip(program);
        key.map(|((key, _), program)| self.pins.faults(&key, &program))
            .unwrap_or_default()
    }

    /// Why a server without a record is held: the record of another one with the same program is damaged or gone.
    #[must_use]
    pub(crate) fn loss_elsewhere(&self, server: &ServerName) -> Option<String> {
        let config = self.callers.unscoped().config();
        let program = config.servers.get(server)?.transport.program();
        let (key, _) = self.key(server)?;
        self.pins.loss_elsewhere(&key, &program)
    }

    /// Puts a record in the place of those that cannot be used, under which everything of a server waits. Only ever called for a person.
    ///
    /// # Errors
    /// When they cannot be replaced.
    pub(crate) fn renew_record(&self, server: &ServerName) -> std::io::Result<()> {
        let config = self.callers.unscoped().config();
        let entry = config.servers.get(server);
        if let Some(((key, _), entry)) = self.key(server).zip(entry) {
            self.pins.renew(&key, &entry.transport.program())?;
            let detail = "a person has replaced the record of its tools, which could not be used";
            self.ledger
                .note(Kind::Approval, Outcome::Ok, server, None, detail);
        }
        self.pins_changed();
        Ok(())
    }

    /// Everything of a server that differs from what was approved.
    #[must_use]
    pub(crate) fn pending(&self, server: &ServerName) -> Pending {
        self.pins.pending(server)
    }

    /// The servers that wait for a person, by name.
    pub(in crate::proxy) fn waiting(&self, config: &Config) -> Vec<ServerName> {
        let is_shown = |key: &Key| {
            let entry = config.servers.get(&key.server);
            entry.is_some_and(|entry| !entry.disabled) && self.pins.waits(key)
        };
        let mut keys = self.keys();
        keys.retain(is_shown);
        let mut names: Vec<ServerName> = keys.into_iter().map(|key| key.server).collect();
        names.sort_unstable();
        names
    }

    /// Whether only approved, or unchanged, definitions of a server may be used.
    pub(in crate::proxy) fn is_pinned(&self, server: &ServerName) -> bool {
        self.pins.is_pinned(server)
    }

    /// Whether nothing of a server may reach a client.
    pub(in crate::proxy) fn is_quarantined(&self, server: &ServerName) -> bool {
        self.pins.is_quarantined(server)
    }

    /// The reason of a failed listing for an agent: of a server in quarantine, its kind only.
    pub(in crate::proxy) fn told(&self, server: &ServerName, reason: &NotListed) -> String {
        match self.is_quarantined(server) {
            true => reason.outline(server),
            false => reason.to_string(),
        }
    }

    /// Whether a server must not be started, as an agent has added it and no person has approved its entry.
    #[must_use]
    pub(crate) fn is_unstarted(&self, server: &ServerName) -> bool {
        self.pins.is_unstarted(server)
    }

    /// Says on the desktop which of the servers that an agent added or redirected wait for a person.
    pub(in crate::proxy) fn note_unstarted(&self, config: &Config, servers: &[ServerName]) {
        let waiting = servers.iter().filter(|server| self.is_unstarted(server));
        for server in waiting.filter(|_| config.notify) {
            self.notifier.notify(Notice::Unstarted {
                server: server.to_string(),
            });
        }
    }

    /// Lets a server start that an agent has added. Only ever called for a person.
    ///
    /// # Errors
    /// When that cannot be kept.
    pub(crate) fn approve_start(&self, server: &ServerName) -> std::io::Result<()> {
        if let Some((key, _)) = self.key(server) {
            self.pins.approve_start(&key)?;
            let detail = "its start is approved by a person";
            self.ledger
                .note(Kind::Approval, Outcome::Ok, server, None, detail);
        }
        self.pins_changed();
        Ok(())
    }

    /// Why a tool with a pin is withheld.
    pub(in crate::proxy) fn pin_state(&self, tool: &Tool) -> PinState {
        let server = tool.server().name();
        match self.pins.change(server, tool.entry().as_listed()) {
            Some(change) if change.is_rejected => PinState::Rejected,
            Some(change) => {
                let elsewhere = change.approved_elsewhere(server);
                PinState::Differs(change.kind, elsewhere)
            }
            None => PinState::Unknown(self.pins.fault(server)),
        }
    }

    /// Approves or rejects everything of a server in `seen` that is still as it is there, and returns the names of those tools.
    /// An empty name stands for the server's instructions. Only ever called for a person.
    ///
    /// # Errors
    /// When that cannot be kept.
    pub(crate) fn decide(
        &self,
        server: &ServerName,
        seen: &Pending,
        is_approved: bool,
    ) -> std::io::Result<Vec<String>> {
        let Some((key, _)) = self.key(server) else {
            return Ok(Vec::new());
        };
        let decided = self.pins.decide(&key, seen, is_approved)?;
        let (outcome, detail) = match is_approved {
            true => (Outcome::Ok, "approved by a person"),
            false => (Outcome::Refused, "rejected by a person"),
        };
        for name in &decided {
            let tool = Some(name.as_str()).filter(|name| !name.is_empty());
            self.ledger
                .note(Kind::Approval, outcome, server, tool, detail);
        }
        self.pins_changed();
        Ok(decided)
    }

    /// Does work that waits for the disk or the store.
    ///
    /// # Errors
    /// Those of the work, and when the run ends.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> std::io::Result<T> + Send + 'static,
    ) -> std::io::Result<T> {
        let inventory = self.clone();
        let done = self.tasks.spawn_blocking(move || work(&inventory)).await;
        done.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }

    /// Applies changed pins to the catalog, and notifies clients.
    fn pins_changed(&self) {
        self.restrict(&self.callers.unscoped().config());
        let lists = [
            ChangeNotice::Tools,
            ChangeNotice::Prompts,
            ChangeNotice::Resources,
        ];
        self.callers.lists_changed(&lists);
    }
}

/// The sentence of the instructions about servers that wait for a person, if any does. It has nothing that a server wrote.
pub(in crate::proxy) fn waiting_text(servers: &[ServerName]) -> Option<String> {
    const NAMED: usize = 3;
    let names: Vec<&str> = servers.iter().take(NAMED).map(ServerName::as_str).collect();
    let more = match servers.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = names.join(", ");
    (!names.is_empty()).then(|| format!("Waiting for the user (`mcpzip approve`): {names}{more}."))
}
