//! Those who are told what nobody asked for: clients after a handshake, and the subscriptions of modern ones.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::caller::{StandingHost, named_log};
use super::client::Client;
use super::listener::{Change, Listener};
use crate::mcp::{ClientCapabilities, Frame, LogLevel};
use crate::proxy::Proxy;
use crate::tool::{ServerName, ToolName};
use crate::upstream::{self, Comparing, Host, Listing, Notice};

/// Who is there.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Audience {
    clients: Mutex<Vec<Weak<Client>>>,
    listeners: Mutex<Vec<Weak<Listener>>>,
    /// What the client that came last can be asked.
    latest: Mutex<ClientCapabilities>,
    /// Woken when somebody wants to hear of other resources than before.
    changed: Arc<Notify>,
}

impl Audience {
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
            self.add(client.listener());
        }
    }

    /// Notes what a client without a handshake can be asked.
    pub(in crate::proxy) fn seen(&self, capabilities: ClientCapabilities) {
        *self.latest.lock() = capabilities;
    }

    /// Tells `listener` of changes from now on.
    pub(in crate::proxy) fn add(&self, listener: &Arc<Listener>) {
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

/// The proxy as its servers' audience.
pub(in crate::proxy) struct AudienceBridge(pub(in crate::proxy) Weak<Proxy>);

impl upstream::Audience for AudienceBridge {
    fn capabilities(&self) -> ClientCapabilities {
        let proxy = self.0.upgrade();
        proxy.map_or(ClientCapabilities::NONE, |proxy| {
            *proxy.audience.latest.lock()
        })
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.0.upgrade()?.audience.log_level()
    }

    fn host(&self, server: &ServerName, method: &str) -> Option<Arc<dyn Host>> {
        let proxy = self.0.upgrade()?;
        let clients = proxy
            .audience
            .clients()
            .into_iter()
            .filter(|client| proxy.is_visible_to(client, server));
        let mut able =
            clients.filter(|client| client.capabilities().is_some_and(|able| able.allow(method)));
        let client = able.next()?;
        if able.next().is_some() {
            None
        } else {
            Some(Arc::new(StandingHost(client)))
        }
    }

    fn compare(&self, server: &ServerName, listing: Listing) -> Comparing {
        let refresh = self.0.upgrade().map(|proxy| proxy.refresh.clone());
        let server = server.clone();
        Box::pin(async move {
            match refresh {
                Some(refresh) => refresh.keep(&server, listing).await,
                None => Err("mcpzip is shutting down".to_owned()),
            }
        })
    }

    fn is_withheld(&self, server: &ServerName, tool: &str) -> bool {
        let tool = ToolName::new(tool).ok();
        let shown = self
            .0
            .upgrade()
            .zip(tool)
            .and_then(|(proxy, tool)| proxy.catalog.snapshot().tool(server, &tool));
        shown.is_none()
    }

    fn noticed(&self, server: &ServerName, notice: Notice<'_>) {
        let Some(proxy) = self.0.upgrade() else {
            return;
        };
        match notice {
            Notice::ToolsChanged | Notice::PromptsChanged | Notice::ResourcesChanged => {
                proxy.refresh.poke(server);
            }
            Notice::ResourceUpdated(params) => proxy.resource_updated(server, params),
            Notice::Message(params) => {
                for client in proxy
                    .audience
                    .clients()
                    .into_iter()
                    .filter(|client| proxy.is_visible_to(client, server))
                {
                    let frame = named_log(server, params, client.log_level());
                    if let (Some(frame), Some(outbox)) = (frame, client.listener().outbox()) {
                        outbox.offer(frame);
                    }
                }
            }
            Notice::ElicitationComplete(params) => {
                let clients = proxy.audience.clients();
                let able = clients.iter().filter(|client| {
                    client
                        .capabilities()
                        .is_some_and(ClientCapabilities::elicits_urls)
                });
                for outbox in able.filter_map(|client| client.listener().outbox()) {
                    outbox.push_unless_congested(Frame::notification(
                        "notifications/elicitation/complete",
                        params.get(),
                    ));
                }
            }
        }
    }
}
