//! Who follows which resource: what all clients want of a server is asked of it once.

use std::collections::BTreeSet;
use std::sync::Weak;
use std::time::Duration;

use serde_json::value::RawValue;

use super::Features;
use super::resources::{Target, no_uri, not_found, several};
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Object};
use crate::proxy::view::View;
use crate::proxy::{Caller, Change, Interests, Mode, Reply};
use crate::tool::ServerName;

/// How long a server has to take a subscription, its start included.
const LIMIT: Duration = Duration::from_secs(30);

impl Features {
    /// What of a client's `interests` there can be news of.
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
            tools: interests.tools && view.mode() == Mode::Direct,
            prompts: interests.prompts && exposed.prompts,
            resources: interests.resources && exposed.resources,
            uris,
        }
    }

    /// Answers `resources/subscribe`, once the server has.
    pub(in crate::proxy) async fn subscribe(
        &self,
        view: &View,
        caller: &Caller,
        params: &Object<'_>,
    ) -> Reply {
        let Some(uri) = params.text("uri") else {
            return no_uri();
        };
        let target = self.target(view, &uri).await;
        match &target {
            Target::Several(uris) => return several(&uri, uris),
            Target::Unlisted(servers) if servers.is_empty() => return not_found(caller, &uri),
            Target::At(..) | Target::Unlisted(_) => {}
        }
        let Some((server, own)) = self.followed(view, target, &uri) else {
            let message = format!("the server of `{uri}` does not tell of changes");
            return Reply::error(ErrorCode::INVALID_PARAMS, message);
        };
        let listener = caller.client.listener();
        listener.interests().uris.insert(uri.clone());
        self.follow(&server);
        match self.pool.subscribed(&server, &own, LIMIT).await {
            Ok(()) => Reply::Result(b"{}"[..].into()),
            Err(error) => {
                listener.interests().uris.remove(&uri);
                self.follow(&server);
                Reply::error(
                    ErrorCode::INVALID_PARAMS,
                    view.masked(&format!("`{uri}` cannot be followed: {error}")),
                )
            }
        }
    }

    /// Answers `resources/unsubscribe`.
    pub(in crate::proxy) fn unsubscribe(&self, caller: &Caller, params: &Object<'_>) -> Reply {
        let Some(uri) = params.text("uri") else {
            return no_uri();
        };
        caller.client.listener().interests().uris.remove(&uri);
        self.callers.interests_changed();
        Reply::Result(b"{}"[..].into())
    }

    /// A server says that a resource has another content.
    pub(in crate::proxy) fn resource_updated(&self, server: &ServerName, params: &RawValue) {
        let Ok(object) = Object::parse(params) else {
            return;
        };
        let Some(own) = object.text("uri") else {
            return;
        };
        tracing::debug!(%server, uri = own, "a resource has changed");
        // Every client that follows it may see it.
        for uri in self.seen_uris(&self.callers.unscoped(), server, &own) {
            let params = if uri == own {
                params.get().to_owned()
            } else {
                object.with("uri", &quoted(&uri))
            };
            self.callers.tell(&Change::Resource { uri, params });
        }
    }

    /// Has a server asked for what is wanted of it now.
    fn follow(&self, server: &ServerName) {
        self.pool.subscribe(server, self.wanted_resources(server));
    }

    /// Has all servers asked for what is wanted of them now.
    fn follow_all(&self) {
        let view = self.callers.unscoped();
        let mut wanted = self.all_wanted_resources(&view);
        for server in view.config().servers.keys() {
            self.pool
                .subscribe(server, wanted.remove(server).unwrap_or_default());
        }
    }
}

/// Has servers asked for what clients want to follow, whenever that changes; without end.
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
        // What is not known yet cannot be found.
        features.inventory.loaded().await;
        features.follow_all();
    }
}
