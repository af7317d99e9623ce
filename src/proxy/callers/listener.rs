//! Change notifications: who gets them, and of what.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::mcp::object::quoted;
use crate::mcp::{Frame, Object, Outbox};

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

    /// Wakes `changed` once nobody holds this any more, if it follows any resource.
    pub(super) fn announce_end_to(&self, changed: &Arc<Notify>) {
        // It may have been added before.
        let _ = self.gone.set(changed.clone());
    }

    /// Tells it of a change, if it wants to know.
    pub(super) fn tell(&self, change: &Change) {
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
