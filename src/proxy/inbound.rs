//! Servers' messages outside of any request: passed to the clients, or to the part of the proxy that handles them.

use std::sync::{Arc, Weak};

use super::callers::caller::{StandingHost, masked, named_log};
use super::{Proxy, extensions, own_uris};
use crate::mcp::{ClientCapabilities, Frame, LogLevel};
use crate::tool::{ServerName, ToolHash, ToolName};
use crate::upstream::{self, Comparing, Host, Listing, NotListed, Notice};

/// The receiver of the servers' messages.
pub(super) struct Inbound(pub(super) Weak<Proxy>);

impl upstream::Audience for Inbound {
    fn capabilities(&self) -> ClientCapabilities {
        let proxy = self.0.upgrade();
        proxy.map_or(ClientCapabilities::NONE, |proxy| {
            proxy.callers.latest_capabilities()
        })
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.0.upgrade()?.callers.log_level()
    }

    fn hosts(&self, server: &ServerName, method: &str) -> Vec<Arc<dyn Host>> {
        let Some(proxy) = self.0.upgrade() else {
            return Vec::new();
        };
        if proxy.inventory.is_quarantined(server) {
            return Vec::new();
        }
        let clients = proxy.callers.seeing(server);
        let able = clients
            .into_iter()
            .filter(|client| client.capabilities().is_some_and(|able| able.allow(method)));
        let masker = proxy.unscoped().config().masker_of(server);
        let host = |client| {
            let masker = masker.clone();
            Arc::new(StandingHost { client, masker }) as Arc<dyn Host>
        };
        able.map(host).collect()
    }

    fn compare(&self, server: &ServerName, listing: Listing) -> Comparing {
        let inventory = self.0.upgrade().map(|proxy| proxy.inventory.clone());
        let server = server.clone();
        Box::pin(async move {
            match inventory {
                Some(inventory) => inventory.keep(&server, listing).await,
                None => Err(NotListed::ShuttingDown),
            }
        })
    }

    fn is_pinned(&self, server: &ServerName) -> bool {
        let proxy = self.0.upgrade();
        proxy.is_none_or(|proxy| proxy.inventory.is_pinned(server))
    }

    fn is_withheld(&self, server: &ServerName, tool: &str) -> bool {
        let tool = ToolName::new(tool).ok();
        let shown = self
            .0
            .upgrade()
            .zip(tool)
            .and_then(|(proxy, tool)| proxy.inventory.any_tool(server, &tool));
        shown.is_none()
    }

    fn definition(&self, server: &ServerName, tool: &str) -> Option<ToolHash> {
        let (proxy, tool) = (self.0.upgrade()?, ToolName::new(tool).ok()?);
        let snapshot = proxy.inventory.snapshot();
        let listed = snapshot.server(server)?.as_listed();
        Some(listed.entries()[listed.position(&tool)?].hash)
    }

    fn may_start(&self, server: &ServerName) -> bool {
        let proxy = self.0.upgrade();
        proxy.is_some_and(|proxy| !proxy.inventory.is_unstarted(server))
    }

    fn noticed(&self, server: &ServerName, notice: Notice<'_>) {
        let Some(proxy) = self.0.upgrade() else {
            return;
        };
        let is_quarantined = proxy.inventory.is_quarantined(server);
        match notice {
            Notice::Message(_) | Notice::ElicitationComplete(_) if is_quarantined => {}
            Notice::ToolsChanged | Notice::PromptsChanged | Notice::ResourcesChanged => {
                proxy.inventory.poke(server);
            }
            Notice::ResourceUpdated(params) => proxy.features.resource_updated(server, params),
            Notice::TaskChanged(params) => proxy.tools.task_changed(server, params),
            Notice::Message(params) => {
                let masker = proxy.unscoped().config().masker_of(server);
                for client in proxy.callers.seeing(server) {
                    let frame = named_log(server, params, client.log_level(), masker.as_ref());
                    if let (Some(frame), Some(outbox)) = (frame, client.listener().outbox()) {
                        outbox.offer(frame);
                    }
                }
            }
            Notice::Extension(method, params) => {
                let masker = proxy.unscoped().config().masker_of(server);
                let masked = params.map(|params| masked(masker.as_ref(), params));
                let seen = match &masked {
                    Some(Some(params)) => own_uris::for_clients(server, params),
                    None | Some(None) => None,
                };
                let params = match &masked {
                    None => "{}",
                    Some(Some(params)) => seen.as_deref().unwrap_or(params.get()),
                    Some(None) => return,
                };
                for client in proxy.callers.seeing(server) {
                    let view = proxy.callers.view(&client);
                    let declared = client.extensions();
                    let common = extensions::common(&view, &proxy.inventory, declared.others());
                    let outbox = client.listener().outbox();
                    if let Some(outbox) = outbox.filter(|_| common.is_of(server, method)) {
                        outbox.offer(Frame::notification(method, params));
                    }
                }
            }
            Notice::ElicitationComplete(params) => {
                let clients = proxy.callers.clients();
                let asked = clients
                    .iter()
                    .filter(|client| client.completes(server, params));
                for outbox in asked.filter_map(|client| client.listener().any_outbox()) {
                    outbox.push_unless_congested(Frame::notification(
                        "notifications/elicitation/complete",
                        params.get(),
                    ));
                }
            }
        }
    }
}
