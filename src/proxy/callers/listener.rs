//! Change notifications, and the clients that receive them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::mcp::object::quoted;
use crate::mcp::{Frame, Object, Outbox};
use crate::tool::ServerName;

/// A receiver of change notifications, as long as it exists.
#[derive(Debug)]
pub(crate) struct Listener {
    /// The outbox for notifications; a client over HTTP may not have opened a stream.
    outbox: Mutex<Option<Outbox>>,
    /// The outbox for messages to the stream that another replica has.
    elsewhere: Mutex<Option<Outbox>>,
    interests: Mutex<Interests>,
    /// The id of the subscription as JSON, which every notification carries.
    subscription: Option<String>,
    /// Notified when it is dropped, because its resources may not be followed any more.
    gone: OnceLock<Arc<Notify>>,
}

/// The kinds of changes that a client has asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Interests {
    /// Changes of the tool list.
    pub tools: bool,
    /// Changes of the prompt list.
    pub prompts: bool,
    /// Changes of the resource list.
    pub resources: bool,
    /// Changes of these resources, by the clients' URIs.
    pub uris: BTreeSet<String>,
    /// Changes of these tasks, by the clients' ids: the server, and its own id.
    pub tasks: BTreeMap<String, (ServerName, String)>,
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangeNotice {
    /// The tool list.
    Tools,
    /// The prompt list.
    Prompts,
    /// The resource list.
    Resources,
    /// The content of a resource, by the clients' URI.
    Resource {
        /// The URI.
        uri: String,
        /// The notification's `params` with that URI.
        params: String,
    },
}

impl Listener {
    /// Creates the listener of a session, which gets every notification that the handshake promises.
    pub(in crate::proxy) fn for_session() -> Arc<Self> {
        let interests = Interests {
            tools: true,
            prompts: true,
            resources: true,
            ..Interests::default()
        };
        Arc::new(Self {
            outbox: Mutex::default(),
            elsewhere: Mutex::default(),
            interests: Mutex::new(interests),
            subscription: None,
            gone: OnceLock::new(),
        })
    }

    /// Creates the listener of a modern subscription with this id (2026-07-28, basic/patterns/subscriptions).
    #[must_use]
    pub(crate) fn for_subscription(id: &str, interests: Interests, outbox: Outbox) -> Arc<Self> {
        let (outbox, interests) = (Mutex::new(Some(outbox)), Mutex::new(interests));
        Arc::new(Self {
            outbox,
            elsewhere: Mutex::default(),
            interests,
            subscription: Some(id.to_owned()),
            gone: OnceLock::new(),
        })
    }

    /// Sends notifications to `outbox` from now on.
    pub(crate) fn attach(&self, outbox: Outbox) {
        *self.elsewhere.lock() = None;
        *self.outbox.lock() = Some(outbox);
    }

    /// Sends to `outbox`, for the stream that another replica has, what only this replica knows.
    pub(crate) fn attach_elsewhere(&self, outbox: Outbox) {
        let before = self.elsewhere.lock().replace(outbox);
        before.iter().for_each(Outbox::close);
    }

    /// The outbox of its stream, here or at another replica.
    pub(in crate::proxy) fn any_outbox(&self) -> Option<Outbox> {
        let elsewhere = || self.elsewhere.lock().clone().filter(Outbox::is_open);
        self.outbox().or_else(elsewhere)
    }

    /// The outbox for notifications, if there is one.
    pub(in crate::proxy) fn outbox(&self) -> Option<Outbox> {
        self.outbox.lock().clone().filter(Outbox::is_open)
    }

    /// The changes that it has asked for.
    pub(in crate::proxy) fn interests(&self) -> MutexGuard<'_, Interests> {
        self.interests.lock()
    }

    /// Makes its end notify `changed`, if it follows any resource or task.
    pub(super) fn announce_end_to(&self, changed: &Arc<Notify>) {
        // It may be set already.
        let _ = self.gone.set(changed.clone());
    }

    /// Sends a change, if it was asked for.
    pub(super) fn tell(&self, change: &ChangeNotice) {
        let outbox = match change {
            // The server of this replica alone may know of it.
            ChangeNotice::Resource { .. } => self.any_outbox(),
            // Each replica sees changed lists.
            ChangeNotice::Tools | ChangeNotice::Prompts | ChangeNotice::Resources => self.outbox(),
        };
        let Some(outbox) = outbox else { return };
        let interests = self.interests();
        let (wanted, method, params) = match change {
            ChangeNotice::Tools => (interests.tools, "notifications/tools/list_changed", "{}"),
            ChangeNotice::Prompts => (
                interests.prompts,
                "notifications/prompts/list_changed",
                "{}",
            ),
            ChangeNotice::Resources => (
                interests.resources,
                "notifications/resources/list_changed",
                "{}",
            ),
            ChangeNotice::Resource { uri, params } => (
                interests.uris.contains(uri),
                "notifications/resources/updated",
                params.as_str(),
            ),
        };
        if wanted {
            self.send(&outbox, method, params);
        }
    }

    /// Sends a change of a task that it follows.
    pub(crate) fn tell_task(&self, params: &str) {
        if let Some(outbox) = self.outbox() {
            self.send(&outbox, "notifications/tasks", params);
        }
    }

    fn send(&self, outbox: &Outbox, method: &str, params: &str) {
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
        let interests = self.interests.get_mut();
        let follows = !interests.uris.is_empty() || !interests.tasks.is_empty();
        if let Some(gone) = self.gone.get().filter(|_| follows) {
            gone.notify_one();
        }
    }
}

impl Interests {
    /// Parses the filter of a subscription (2026-07-28, basic/patterns/subscriptions).
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
            tasks: BTreeMap::new(),
        }
    }

    /// The filter, as in the acknowledgement.
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
        if !self.tasks.is_empty() {
            let ids: Vec<String> = self.tasks.keys().map(|id| quoted(id)).collect();
            members.push(format!(r#""taskIds":[{}]"#, ids.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }
}
