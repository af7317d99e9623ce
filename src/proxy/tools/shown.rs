//! Tools that are listed next to the meta-tools, under the names and with the definitions of direct mode: those of `show`, and
//! for a client that shows interfaces (MCP Apps) the tools that have one, and the tools that only interfaces call. A client finds an
//! interface by the definition alone, and hides the tools of interfaces from its model. A call of an interface has the server's own
//! name of a tool, because the interface knows no other.
//!
//! They are taken from the client's view on each request, so a tool that is denied, held back or hidden is neither listed
//! nor callable.

use std::collections::HashMap;

use bytes::Bytes;
use futures_util::future::join_all;

use super::Tools;
use super::find::denied_unseen;
use crate::catalog::Tool;
use crate::config::BUILT_IN_SERVER;
use crate::mcp::Object;
use crate::proxy::failure::Failure;
use crate::proxy::features::page::FIRST_LISTING;
use crate::proxy::view::{Mode, View};
use crate::proxy::{Caller, Reply};
use crate::tool::ServerName;

/// The most tools of one server that are listed for their interfaces. More would fill a client's context with what `show` does
/// not name.
const MOST_WITH_INTERFACES: usize = 100;

impl Tools {
    /// The definitions of the tools next to the meta-tools, in the order of the servers and of their lists.
    pub(super) async fn shown_definitions(&self, view: &View) -> Vec<String> {
        if !view.surface().lists_tools_of_servers() {
            return Vec::new();
        }
        let shown = &view.surface().shown;
        let config = view.config();
        let servers: Vec<&ServerName> = config
            .servers
            .keys()
            .filter(|server| shown.names_server(server.as_str()))
            .collect();
        let waits = servers.into_iter().map(|server| {
            let listed = self.inventory.known(Some(server), FIRST_LISTING);
            Box::pin(listed)
        });
        join_all(waits).await;
        // Which servers have interfaces is known once they were listed; `list_changed` reports a change.
        self.inventory.loaded().await;
        self.inventory.renew();
        let snapshot = view.listable();
        let tools = snapshot.tools();
        let tools = tools.filter(|tool| tool.server().name().as_str() != BUILT_IN_SERVER);
        let tools = tools.filter(|tool| is_listed(view, tool));
        let named = self.direct_names.of(&snapshot, view.surface().longest_name);
        let mut counts: HashMap<ServerName, usize> = HashMap::new();
        let tools = tools.filter(|tool| {
            if is_named(view, tool) {
                return true;
            }
            let count = counts.entry(tool.server().name().clone()).or_default();
            *count += 1;
            if *count == MOST_WITH_INTERFACES + 1 {
                tracing::warn!(server = %tool.server().name(), "more than {MOST_WITH_INTERFACES} of its tools have an interface; the others are not listed under their own names");
            }
            *count <= MOST_WITH_INTERFACES
        });
        tools
            .filter_map(|tool| self.direct_definition(view, &named, &tool))
            .collect()
    }

    /// Calls the tool that is listed as `name` next to the meta-tools; `None` if there is none, whether or not `show` names it, so
    /// that nothing tells a hidden tool from one that does not exist.
    pub(super) async fn shown_call(
        &self,
        view: &View,
        caller: &Caller,
        name: &str,
        params: &Object<'_>,
        line: &Bytes,
    ) -> Option<Reply> {
        let lists_tools = view.surface().lists_tools_of_servers();
        if lists_tools {
            self.inventory.loaded().await;
        }
        let is_meant = || {
            view.surface().shown.may_mean(name)
                || self.listed_directly(view, name).is_some()
                || !matches!(self.called_by_view(view, name), Ok(None))
        };
        if !lists_tools || !is_meant() {
            let failure = Failure::Unknown {
                name: name.to_owned(),
                server: None,
                nearest: Vec::new(),
                denied: denied_unseen(&view.config(), &view.snapshot(), name),
            };
            return match self.refused(view, Some(caller), name, failure) {
                failure if failure.is_unknown() => None,
                unwritten => Some(Reply::tool_error(&unwritten.text(view))),
            };
        }
        match self.called_by_name(view, caller, name, params, line).await {
            // An interface may mean a tool of several servers.
            Err(failure @ Failure::Ambiguous { .. }) => {
                Some(Reply::tool_error(&failure.text(view)))
            }
            Err(failure) if failure.is_unknown() => None,
            Err(failure) => Some(Reply::tool_error(&failure.text(view))),
            Ok(reply) => Some(reply),
        }
    }
}

/// Whether a client with this view has `tool` in its list under the tool's own name. A pattern of `show` may have the name that
/// clients see, or the server's own.
pub(super) fn is_listed(view: &View, tool: &Tool) -> bool {
    let surface = view.surface();
    surface.mode == Mode::Direct
        || surface.shows_interfaces && (tool.entry().is_app_only || tool.has_interface())
        || is_named(view, tool)
}

/// Whether `show` names a tool.
fn is_named(view: &View, tool: &Tool) -> bool {
    let names = [tool.qualified_name(), tool.own_name()];
    names.iter().any(|name| {
        let (server, tool) = (name.server.as_str(), name.tool.as_str());
        view.surface().shown.includes(server, tool)
    })
}

/// The result of `tools/list` with more definitions.
pub(super) fn with_more(definitions: &[u8], more: &[String]) -> Bytes {
    let Some(three) = definitions.strip_suffix(b"]}").filter(|_| !more.is_empty()) else {
        return Bytes::copy_from_slice(definitions);
    };
    [three, b",", more.join(",").as_bytes(), b"]}"]
        .concat()
        .into()
}
