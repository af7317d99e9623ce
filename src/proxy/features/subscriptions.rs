//! Subscriptions: a server gets one for all clients that follow a resource or task.

use std::collections::BTreeSet;
use std::sync::Weak;
use std::time::Duration;

use serde_json::value::RawValue;

use super::Features;
use super::resources::{ResourceTarget, not_found, several};
use crate::mcp::Object;
use crate::mcp::object::quoted;
use crate::proxy::view::View;
use crate::proxy::{Caller, ChangeNotice, Interests, Reply, own_uris};
use crate::tool::ServerName;

/// The time limit of a subscription, including the server's start.
const LIMIT: Duration = Duration::from_secs(30);

impl Features {
    /// The part of a client's `interests` that can change.
    pub(in crate::proxy) async fn offered(&self, view: &View, interests: Interests) -> Interests {
        let exposed = view.config().exposes_any();
        let mut uris = BTreeSet::new();
        for uri in interests.uris.into_iter().filter(|_| exposed.resources) {
            if self
                .followed(view, self.target(view, &uri).await, &uri)
                .is_some()
            {
                uris.insert(uri);
            }
        }
        Interests {
            tools: interests.tools && view.surface().lists_tools_of_servers(),
            prompts: interests.prompts && exposed.prompts,
            resources: interests.resources && exposed.resources,
            uris,
            tasks: interests.tasks,
        }
    }

    /// Answers `resources/subscribe` after the server has.
    pub(in crate::proxy) async fn subscribe(
        &self,
        view: &View,
        caller: &Caller,
        params: &Object<'_>,
    ) -> Reply {
        let Some(uri) = params.text("uri") else {
            return Reply::invalid_params("`uri` must be a string");
        };
        let target = self.target(view, &uri).await;
        match &target {
            ResourceTarget::Several(uris) => return several(&uri, uris),
            ResourceTarget::Unlisted(servers) if servers.is_empty() => {
                return not_found(caller, &uri);
            }
            ResourceTarget::At(..) | ResourceTarget::Unlisted(_) => {}
        }
        let Some((server, own)) = self.followed(view, target, &uri) else {
            let message = format!("the server of `{uri}` does not announce changes");
            return Reply::invalid_params(message);
        };
        let listener = caller.client.listener();
        listener.interests().uris.insert(uri.clone());
        self.follow(&server);
        match self.pool.subscribed(&server, &own, LIMIT).await {
            Ok(()) => Reply::Result("{}".into()),
            Err(error) => {
                listener.interests().uris.remove(&uri);
                self.follow(&server);
                Reply::invalid_params(view.masked(&format!("`{uri}` cannot be followed: {error}")))
            }
        }
    }

    /// Answers `resources/unsubscribe`.
    pub(in crate::proxy) fn unsubscribe(&self, caller: &Caller, params: &Object<'_>) -> Reply {
        let Some(uri) = params.text("uri") else {
            return Reply::invalid_params("`uri` must be a string");
        };
        caller.client.listener().interests().uris.remove(&uri);
        self.callers.interests_changed();
        Reply::Result("{}".into())
    }

    /// Handles a server's notification that a resource has changed.
    pub(in crate::proxy) fn resource_updated(&self, server: &ServerName, params: &RawValue) {
        let Ok(object) = Object::parse(params) else {
            return;
        };
        let Some(own) = object.text("uri") else {
            return;
        };
        tracing::debug!(%server, uri = own, "a resource has changed");
        // To find its owner is costly, and a server may send any number of these.
        let may_mean = |uri: &String| {
            let named = own_uris::split(uri).map(|(name, _)| name);
            let named = named.or_else(|| Some(own_uris::without_server(uri)?.0));
            *uri == own || named.is_some_and(|name| name == *server)
        };
        if !self.callers.wanted_uris().iter().any(may_mean) {
            return;
        }
        // Every client that follows it is allowed to see it.
        for uri in self.seen_uris(&self.callers.unscoped(), server, &own) {
            let params = if uri == own {
                params.get().to_owned()
            } else {
                object.with("uri", &quoted(&uri))
            };
            self.callers.tell(&ChangeNotice::Resource { uri, params });
        }
    }

    /// Updates the subscriptions at a server.
    fn follow(&self, server: &ServerName) {
        self.pool.subscribe(server, self.wanted_at(server));
    }

    /// Updates the subscriptions at all servers.
    fn follow_all(&self) {
        let view = self.callers.unscoped();
        let mut wanted = self.all_wanted(&view);
        for server in view.config().servers.keys() {
            self.pool
                .subscribe(server, wanted.remove(server).unwrap_or_default());
        }
    }
}

/// Updates the servers' subscriptions whenever the clients' change; never ends.
pub(super) async fn keep(features: Weak<Features>) {
    let Some(changed) = features
        .upgrade()
        .map(|features| features.callers.changes())
    else {
        return;
    };
    loop {
        changed.notified().await;
        let Some(features) = features.upgrade() else {
            return;
        };
        // Resources of servers that are not loaded yet cannot be found.
        features.inventory.loaded().await;
        features.follow_all();
    }
}
