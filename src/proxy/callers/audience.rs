//! Those who are told what nobody asked for: clients after a handshake, and the subscriptions of modern ones.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::Notify;

use super::caller::{StandingHost, named_log};
use super::client::Client;
use crate::mcp::object::quoted;
use crate::mcp::{ClientCapabilities, Frame, LogLevel, Object, Outbox};
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

/// Somebody who hears of changes, as long as it is held.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Where it goes; a client over HTTP may have opened no stream for it.
    outbox: Mutex<Option<Outbox>>,
    interests: Mutex<Interests>,
    /// The id of the subscription, as JSON, with which each message is marked.
    subscription: Option<String>,
    /// Woken when nobody wants its resources any more, because it is gone.
    gone: OnceLock<Arc<Notify>>,
}

/// What somebody wants to hear of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Interests {
    /// Changes of the tool list.
    pub tools: bool,
    /// Changes of the prompt list.
    pub prompts: bool,
    /// Changes of the resource list.
    pub resources: bool,
    /// Changes of these resources, by the URIs that clients see.
    pub uris: BTreeSet<String>,
}

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// The tool list.
    Tools,
    /// The prompt list.
    Prompts,
    /// The resource list.
    Resources,
    /// A resource, by the URI that clients see.
    Resource {
        /// The URI.
        uri: String,
        /// The notification's `params`, with that URI.
        params: String,
    },
}

impl Listener {
    /// One that hears what a handshake promises.
    pub(in crate::proxy) fn for_session() -> Arc<Self> {
        let interests = Interests {
            tools: true,
            prompts: true,
            resources: true,
            uris: BTreeSet::new(),
        };
        Arc::new(Self {
            outbox: Mutex::default(),
            interests: Mutex::new(interests),
            subscription: None,
            gone: OnceLock::new(),
        })
    }

    /// A subscription of the modern era, marked by its id (2026-07-28, basic/patterns/subscriptions).
    #[must_use]
    pub(crate) fn for_subscription(id: &str, interests: Interests, outbox: Outbox) -> Arc<Self> {
        let (outbox, interests) = (Mutex::new(Some(outbox)), Mutex::new(interests));
        Arc::new(Self {
            outbox,
            interests,
            subscription: Some(id.to_owned()),
            gone: OnceLock::new(),
        })
    }

    /// From now on, messages go to `outbox`.
    pub(crate) fn attach(&self, outbox: Outbox) {
        *self.outbox.lock() = Some(outbox);
    }

    /// Where messages go, if anywhere.
    pub(in crate::proxy) fn outbox(&self) -> Option<Outbox> {
        self.outbox.lock().clone().filter(Outbox::is_open)
    }

    /// What it wants to hear of.
    pub(in crate::proxy) fn interests(&self) -> MutexGuard<'_, Interests> {
        self.interests.lock()
    }

    /// Tells it of a change, if it wants to know.
    fn tell(&self, change: &Change) {
        let Some(outbox) = self.outbox() else { return };
        let interests = self.interests();
        let (wanted, method, params) = match change {
            Change::Tools => (interests.tools, "notifications/tools/list_changed", "{}"),
            Change::Prompts => (
                interests.prompts,
                "notifications/prompts/list_changed",
                "{}",
            ),
            Change::Resources => (
                interests.resources,
                "notifications/resources/list_changed",
                "{}",
            ),
            Change::Resource { uri, params } => (
                interests.uris.contains(uri),
                "notifications/resources/updated",
                params.as_str(),
            ),
        };
        if !wanted {
            return;
        }
        let marked = self.subscription.as_deref().map(|id| {
            let raw: &RawValue = serde_json::from_str(params).expect("parameters are JSON");
            let meta = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
            Object::parse(raw).unwrap_or_default().with("_meta", &meta)
        });
        outbox.push_unless_congested(Frame::notification(
            method,
            marked.as_deref().unwrap_or(params),
        ));
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let has_uris = !self.interests().uris.is_empty();
        if let Some(gone) = self.gone.get().filter(|_| has_uris) {
            gone.notify_one();
        }
    }
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
        // It may have been added before.
        let _ = listener.gone.set(self.changed.clone());
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

impl Interests {
    /// Reads the filter of a subscription (2026-07-28, basic/patterns/subscriptions).
    #[must_use]
    pub(crate) fn parse(filter: &Object<'_>) -> Self {
        let wants = |key: &str| filter.get(key).is_some_and(|raw| raw.get() == "true");
        let uris = filter
            .get("resourceSubscriptions")
            .and_then(|raw| serde_json::from_str(raw.get()).ok());
        Self {
            tools: wants("toolsListChanged"),
            prompts: wants("promptsListChanged"),
            resources: wants("resourcesListChanged"),
            uris: uris.unwrap_or_default(),
        }
    }

    /// The filter as it is acknowledged.
    #[must_use]
    pub(crate) fn to_json(&self) -> String {
        let mut members: Vec<String> = [
            (self.tools, "toolsListChanged"),
            (self.prompts, "promptsListChanged"),
            (self.resources, "resourcesListChanged"),
        ]
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, key)| format!(r#""{key}":true"#))
        .collect();
        if !self.uris.is_empty() {
            let uris: Vec<String> = self.uris.iter().map(|uri| quoted(uri)).collect();
            members.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }
}
