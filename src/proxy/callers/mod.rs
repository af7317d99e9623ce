//! The clients: one of them, one of its requests, and all of them together.

pub(in crate::proxy) mod caller;
pub(in crate::proxy) mod client;
pub(in crate::proxy) mod listener;
mod workspace;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use self::client::Client;
use self::listener::{Change, Listener};
use super::view::{Mode, View, Views, Workspace};
use crate::config::Config;
use crate::mcp::{ClientCapabilities, LogLevel};

/// All clients: where they work, what they see, and who of them hears of changes.
#[derive(Debug)]
pub(in crate::proxy) struct Callers {
    views: Arc<Views>,
    /// The directories this process was started in, if its only client shares them.
    workspace: Mutex<Workspace>,
    clients: Mutex<Vec<Weak<Client>>>,
    listeners: Mutex<Vec<Weak<Listener>>>,
    /// What the client that came last can be asked.
    latest: Mutex<ClientCapabilities>,
    /// Woken when somebody wants to hear of other resources than before.
    changed: Arc<Notify>,
}

impl Callers {
    pub(in crate::proxy) fn new(views: Arc<Views>) -> Self {
        Self {
            views,
            workspace: Mutex::default(),
            clients: Mutex::default(),
            listeners: Mutex::default(),
            latest: Mutex::default(),
            changed: Arc::default(),
        }
    }

    /// What clients see of the servers' tools.
    pub(in crate::proxy) fn mode(&self) -> Mode {
        self.views.mode()
    }

    /// The view of a client in `workspace`.
    pub(in crate::proxy) fn view(&self, workspace: Workspace) -> View {
        self.views.from(workspace)
    }

    /// The view of every server, for the user in person and for what belongs to no client.
    pub(in crate::proxy) fn unscoped(&self) -> View {
        self.views.unscoped()
    }

    /// `config` without the servers that are visible from no workspace of a client.
    pub(in crate::proxy) fn reachable(&self, config: &Config) -> Config {
        self.views.reachable(config)
    }

    /// Lets clients see an edited configuration. Returns the one before.
    pub(in crate::proxy) fn configure(&self, config: Arc<Config>) -> Arc<Config> {
        self.views.replace(config)
    }

    /// Notes a client that has introduced itself.
    pub(in crate::proxy) fn joined(&self, client: &Arc<Client>, capabilities: ClientCapabilities) {
        client.introduce(capabilities);
        *self.latest.lock() = capabilities;
        let mut clients = self.clients.lock();
        clients.retain(|client| client.strong_count() > 0);
        if !clients
            .iter()
            .any(|known| known.as_ptr() == Arc::as_ptr(client))
        {
            clients.push(Arc::downgrade(client));
            self.listen(client.listener());
        }
    }

    /// Notes what a client without a handshake can be asked.
    pub(in crate::proxy) fn seen(&self, capabilities: ClientCapabilities) {
        *self.latest.lock() = capabilities;
    }

    /// Tells `listener` of changes from now on.
    pub(in crate::proxy) fn listen(&self, listener: &Arc<Listener>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(listener));
        drop(listeners);
        listener.announce_end_to(&self.changed);
        self.interests_changed();
    }

    /// Somebody may want to hear of other resources than before.
    pub(in crate::proxy) fn interests_changed(&self) {
        self.changed.notify_one();
    }

    /// Woken when somebody may want to hear of other resources than before; for one who waits.
    pub(in crate::proxy) fn changes(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// Tells the clients which of the lists that they see have changed, and has what they follow looked up anew.
    pub(in crate::proxy) fn lists_changed(&self, changes: &[Change]) {
        let exposed = self.unscoped().config().exposes_any();
        for change in changes {
            let is_shown = match change {
                Change::Tools => self.mode() == Mode::Direct,
                Change::Prompts => exposed.prompts,
                Change::Resources | Change::Resource { .. } => exposed.resources,
            };
            if is_shown {
                self.tell(change);
            }
        }
        self.interests_changed();
    }

    /// Tells all who want to know.
    pub(in crate::proxy) fn tell(&self, change: &Change) {
        self.listeners()
            .iter()
            .for_each(|listener| listener.tell(change));
    }

    /// All URIs that somebody wants to hear of.
    pub(in crate::proxy) fn wanted_uris(&self) -> BTreeSet<String> {
        self.listeners()
            .iter()
            .flat_map(|listener| listener.interests().uris.clone())
            .collect()
    }

    /// What the client that came last can be asked.
    pub(in crate::proxy) fn latest_capabilities(&self) -> ClientCapabilities {
        *self.latest.lock()
    }

    /// The lowest level at which a client with a handshake wants log messages, if all of them said one.
    pub(in crate::proxy) fn log_level(&self) -> Option<LogLevel> {
        self.clients()
            .iter()
            .map(|client| client.log_level())
            .min()
            .flatten()
    }

    /// The clients that have introduced themselves and are still there.
    pub(in crate::proxy) fn clients(&self) -> Vec<Arc<Client>> {
        self.clients
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    fn listeners(&self) -> Vec<Arc<Listener>> {
        self.listeners
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}
