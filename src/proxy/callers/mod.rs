//! The clients: each one, its requests, and all of them together.

pub(in crate::proxy) mod caller;
pub(in crate::proxy) mod client;
pub(in crate::proxy) mod common;
pub(in crate::proxy) mod listener;
mod workspace;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use self::client::Client;
use self::listener::{ChangeNotice, Listener};
use super::view::{View, ViewSource, Workspace};
use crate::config::Config;
use crate::mcp::{ClientCapabilities, LogLevel};
use crate::replicas::Replicas;
use crate::tool::ServerName;

/// All clients, with their workspaces, views and listeners.
#[derive(Debug)]
pub(in crate::proxy) struct Callers {
    view_source: Arc<ViewSource>,
    /// The workspace of this process, if its only client shares it.
    workspace: Mutex<Workspace>,
    clients: Mutex<Vec<Weak<Client>>>,
    listeners: Mutex<Vec<Weak<Listener>>>,
    /// The capabilities of the latest client.
    latest: Mutex<ClientCapabilities>,
    /// Notified when the set of followed resources may have changed.
    changed: Arc<Notify>,
    /// The other replicas of the gateway, which get to know of changed lists.
    replicas: OnceLock<Arc<Replicas>>,
}

impl Callers {
    pub(in crate::proxy) fn new(view_source: Arc<ViewSource>) -> Self {
        Self {
            view_source,
            workspace: Mutex::default(),
            clients: Mutex::default(),
            listeners: Mutex::default(),
            latest: Mutex::default(),
            changed: Arc::default(),
            replicas: OnceLock::new(),
        }
    }

    /// Tells other replicas of changed lists from now on.
    pub(in crate::proxy) fn join_replicas(&self, replicas: Arc<Replicas>) {
        // A run has them from its start.
        let _ = self.replicas.set(replicas);
    }

    /// The other replicas, if there are some.
    pub(in crate::proxy) fn replicas(&self) -> Option<&Arc<Replicas>> {
        self.replicas.get()
    }

    /// Tells other replicas that the lists of `server` are now those with this hash.
    pub(in crate::proxy) fn tell_replicas(
        &self,
        server: &ServerName,
        hash: impl FnOnce() -> String,
    ) {
        if let Some(replicas) = self.replicas.get() {
            replicas.listed(server.as_str(), &hash());
        }
    }

    /// The view of a client.
    pub(in crate::proxy) fn view(&self, client: &Client) -> View {
        self.view_source.from(client.workspace(), client.surface())
    }

    /// The view of every server, for commands of the user and for work that belongs to no client.
    pub(in crate::proxy) fn unscoped(&self) -> View {
        self.view_source.unscoped()
    }

    /// `config` without the servers that no client's workspace makes visible.
    pub(in crate::proxy) fn reachable(&self, config: &Config) -> Config {
        self.view_source.reachable(config)
    }

    /// Replaces the configuration; returns the previous one.
    pub(in crate::proxy) fn configure(&self, config: Arc<Config>) -> Arc<Config> {
        self.view_source.replace(config)
    }

    /// Adds a client that has sent its handshake.
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

    /// Records the capabilities of a client without a handshake.
    pub(in crate::proxy) fn seen(&self, capabilities: ClientCapabilities) {
        *self.latest.lock() = capabilities;
    }

    /// Adds a listener for changes.
    pub(in crate::proxy) fn listen(&self, listener: &Arc<Listener>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(listener));
        drop(listeners);
        listener.announce_end_to(&self.changed);
        self.interests_changed();
    }

    /// Notifies that the set of followed resources may have changed.
    pub(in crate::proxy) fn interests_changed(&self) {
        self.changed.notify_one();
    }

    /// Notified when the set of followed resources may have changed. It has one waiter.
    pub(in crate::proxy) fn changes(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// Notifies the clients of changed lists, and triggers a new lookup of followed resources.
    pub(in crate::proxy) fn lists_changed(&self, changes: &[ChangeNotice]) {
        let exposed = self.unscoped().config().exposes_any();
        for change in changes {
            let is_shown = match change {
                // Each listener knows whether its client sees single tools.
                ChangeNotice::Tools => true,
                ChangeNotice::Prompts => exposed.prompts,
                ChangeNotice::Resources | ChangeNotice::Resource { .. } => exposed.resources,
            };
            if is_shown {
                self.tell(change);
            }
        }
        self.interests_changed();
    }

    /// Notifies every client that asked for this change.
    pub(in crate::proxy) fn tell(&self, change: &ChangeNotice) {
        self.listeners()
            .iter()
            .for_each(|listener| listener.tell(change));
    }

    /// All URIs that clients follow.
    pub(in crate::proxy) fn wanted_uris(&self) -> BTreeSet<String> {
        self.listeners()
            .iter()
            .flat_map(|listener| listener.interests().uris.clone())
            .collect()
    }

    /// All tasks that clients follow: their servers, and the servers' own ids.
    pub(in crate::proxy) fn wanted_tasks(&self) -> BTreeSet<(ServerName, String)> {
        let tasks = |listener: &Arc<Listener>| -> Vec<(ServerName, String)> {
            listener.interests().tasks.values().cloned().collect()
        };
        self.listeners().iter().flat_map(tasks).collect()
    }

    /// The capabilities of the latest client.
    pub(in crate::proxy) fn latest_capabilities(&self) -> ClientCapabilities {
        *self.latest.lock()
    }

    /// The lowest log level of all clients with a handshake, if each of them has set one.
    pub(in crate::proxy) fn log_level(&self) -> Option<LogLevel> {
        self.clients()
            .iter()
            .map(|client| client.log_level())
            .min()
            .flatten()
    }

    /// The clients with a handshake that still exist.
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
