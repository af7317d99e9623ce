//! Finds the tool that a name means.

use std::time::Duration;

use super::{Tools, builtin};
use crate::audit::{Kind, Outcome};
use crate::catalog::{Resolution, Snapshot, Tool};
use crate::config::{BUILT_IN_SERVER, Config, Verdict};
use crate::proxy::failure::{Failure, Unlisted, Withheld};
use crate::proxy::inventory::{PinState, Progress};
use crate::proxy::relay::login::LoggedIn;
use crate::proxy::view::{Mode, View};
use crate::proxy::{Reply, RequestContext};
use crate::search::Request;
use crate::text::nearest;
use crate::tool::{QualifiedName, SEPARATOR, ServerName};

/// How long a call or description waits for a server that was never listed.
const FIRST_LISTING: Duration = Duration::from_secs(30);

/// The time limit for listing a server after a login.
const LISTING: Duration = Duration::from_secs(30);

impl Tools {
    /// Finds the tool that `name` means; waits for its server if that was never listed.
    pub(in crate::proxy) async fn find(&self, view: &View, name: &str) -> Result<Tool, Failure> {
        self.find_within(view, name, FIRST_LISTING).await
    }

    /// The server of a tool that is held back because it was not compared since `trust` changed or a person rejected a definition. A listing
    /// compares it.
    fn uncompared(&self, view: &View, name: &str) -> Option<ServerName> {
        let Resolution::Tool(tool) = view.snapshot().unrestricted().resolve(name) else {
            return None;
        };
        let Failure::Withheld { name, reason } = self.withheld(&view.config(), &tool) else {
            return None;
        };
        matches!(reason, Withheld::Uncompared(None)).then_some(name.server)
    }

    /// Finds the tool that `name` means, without waiting.
    pub(in crate::proxy) fn known_tool(&self, view: &View, name: &str) -> Option<Tool> {
        if !self.inventory.is_loaded() {
            return None;
        }
        match view.snapshot().resolve(name) {
            Resolution::Tool(tool) => Some(tool),
            Resolution::Ambiguous(_) | Resolution::Unknown => None,
        }
    }

    /// Like `find`, with a time limit.
    pub(in crate::proxy) async fn find_within(
        &self,
        view: &View,
        name: &str,
        limit: Duration,
    ) -> Result<Tool, Failure> {
        self.inventory.loaded().await;
        // One snapshot for both questions: a list that arrives in between would be missed by the first and seen by
        // the second.
        let snapshot = view.snapshot();
        let mut resolution = snapshot.resolve(name);
        if !matches!(resolution, Resolution::Tool(_)) {
            let server = unlisted_server(view, &snapshot, name);
            if server.is_some() || snapshot.servers().count() <= 1 {
                Box::pin(
                    self.inventory
                        .known_now(server.as_ref(), limit.min(FIRST_LISTING)),
                )
                .await;
                resolution = view.snapshot().resolve(name);
            }
        }
        if matches!(resolution, Resolution::Unknown)
            && let Some(server) = self.uncompared(view, name)
        {
            Box::pin(self.inventory.list_now(&server, limit.min(LISTING))).await;
            resolution = view.snapshot().resolve(name);
        }
        match resolution {
            Resolution::Tool(tool) => Ok(tool),
            Resolution::Ambiguous(names) => Err(Failure::Ambiguous {
                name: name.to_owned(),
                names,
            }),
            Resolution::Unknown => Err(Box::pin(self.explain_unknown(view, name)).await),
        }
    }

    /// Finds the tool that `name` means. If its server requires a login before it lists its tools, the client is
    /// asked to help; the reply may then be that question.
    ///
    /// # Errors
    /// As [`Tools::find`].
    pub(in crate::proxy) async fn find_logged_in(
        &self,
        view: &View,
        name: &str,
        limit: Option<Duration>,
        context: Option<&RequestContext>,
    ) -> Result<Result<Tool, Reply>, Failure> {
        let failure = match self.find_within(view, name, limit.unwrap_or(LISTING)).await {
            Ok(tool) => return Ok(Ok(tool)),
            Err(failure) => failure,
        };
        let server = unlisted_server(view, &view.snapshot(), name)
            .filter(|server| self.inventory.wants_login(server))
            // The page to open is a text of the server.
            .filter(|server| !self.inventory.is_quarantined(server));
        let (Some(server), Some(context)) =
            (server, context.filter(|context| context.can_log_in()))
        else {
            return Err(failure);
        };
        let outcome = match context.answers_login() {
            true => Box::pin(self.relay.returned(&server, context)).await,
            false => Box::pin(self.relay.log_in(&server, context)).await,
        };
        match outcome {
            LoggedIn::No => Err(failure),
            LoggedIn::Asked(result) => Ok(Err(Reply::Relayed(result.into()))),
            LoggedIn::Yes => {
                let detail = "logged in through the client";
                self.ledger
                    .note(Kind::Login, Outcome::Ok, &server, None, detail);
                Box::pin(self.inventory.list_now(&server, LISTING)).await;
                Box::pin(self.find(view, name)).await.map(Ok)
            }
        }
    }

    /// Why an existing tool is not available to the caller.
    fn withheld(&self, config: &Config, tool: &Tool) -> Failure {
        let name = tool.own_name();
        let (verdict, rule) = config.decide(&name, tool.entry().hints, None);
        let reason = if verdict == Verdict::Denied {
            Withheld::Denied(rule.unwrap_or_default())
        } else if tool.entry().override_fault().is_some() {
            Withheld::NotAdapted
        } else if tool.entry().is_app_only {
            Withheld::AppOnly
        } else {
            match self.inventory.pin_state(tool) {
                PinState::Differs(kind, said) => Withheld::Unapproved(kind, said),
                PinState::Rejected => Withheld::Rejected,
                PinState::Unknown(fault) => Withheld::Uncompared(fault),
            }
        };
        Failure::Withheld { name, reason }
    }

    async fn explain_unknown(&self, view: &View, name: &str) -> Failure {
        let config = view.config();
        if let Some(server) = unlisted_server(view, &view.snapshot(), name) {
            let reason = match self.inventory.progress().remove(&server) {
                Some(Progress::Failed(reason)) => {
                    Unlisted::Failed(self.inventory.told(&server, &reason))
                }
                Some(_) => Unlisted::UnderWay,
                None if view.is_reachable(&server) => Unlisted::Disabled,
                None => Unlisted::Elsewhere(config.servers[&server].projects.clone()),
            };
            return Failure::Unlisted { server, reason };
        }
        if let Resolution::Tool(tool) = view.snapshot().unrestricted().resolve(name) {
            return self.withheld(&config, &tool);
        }
        let addressed = view.snapshot().addressed(name);
        if let Some(fault) = config
            .faults
            .iter()
            .find(|fault| addressed.contains(&fault.name))
        {
            return Failure::Faulty {
                server: fault.name.clone(),
                fault: fault.fault.clone(),
            };
        }
        self.inventory.index().wait(Duration::from_secs(1)).await;
        // Without an index, there are no suggestions.
        let server = unknown_server(&view.snapshot(), name);
        let mut without = view.hidden_servers();
        let is_hidden = |server: &ServerName| addressed.iter().any(|name| name == server.as_str());
        if without.iter().any(is_hidden) {
            // The tool of another server is not what was meant.
            return Failure::Unknown {
                name: name.to_owned(),
                server,
                nearest: Vec::new(),
                denied: None,
            };
        }
        if server.is_some() || view.surface().mode == Mode::Direct {
            // A name with another server's prefix does not mean a built-in tool, and not every client has those.
            without.push(builtin::name());
        }
        let hits = self
            .inventory
            .index()
            .search(&Request {
                query: name,
                limit: 3,
                server: None,
                without: &without,
            })
            .await
            .ok();
        // The index may be that of a moment before, when more was shown.
        let snapshot = view.snapshot();
        let near = hits.iter().flat_map(|hits| hits.iter());
        let near = near.filter(|hit| snapshot.tool(&hit.server, &hit.tool).is_some());
        let near = near.map(|hit| {
            QualifiedName {
                server: hit.server.clone(),
                tool: hit.tool.clone(),
            }
            .to_string()
        });
        let mut near: Vec<String> = near.collect();
        // A slip in a name has no word that the index knows.
        let tools = snapshot.tools();
        let tools = tools.filter(|tool| !without.contains(tool.server().name()));
        let names: Vec<String> = tools
            .map(|tool| tool.qualified_name().to_string())
            .collect();
        if let Some(slip) = nearest(name, names.iter().map(String::as_str)) {
            near.retain(|known| known != slip);
            near.insert(0, slip.to_owned());
        }
        Failure::Unknown {
            name: name.to_owned(),
            server,
            nearest: near,
            denied: denied_unseen(&config, &snapshot, name),
        }
    }
}

/// The tool of this name that does not exist for the caller, and the rule that denies it, for the audit log.
pub(super) fn denied_unseen(
    config: &Config,
    snapshot: &Snapshot,
    name: &str,
) -> Option<Box<(QualifiedName, String)>> {
    let hidden = config.audit.is_on.then(|| snapshot.hidden(name));
    let tool = hidden.flatten()?;
    let name = tool.own_name();
    match config.decide(&name, tool.entry().hints, None) {
        (Verdict::Denied, rule) => Some(Box::new((name, rule.unwrap_or_default()))),
        _ => None,
    }
}

/// The server that `name` begins with, if none of this name was ever known.
fn unknown_server(snapshot: &Snapshot, name: &str) -> Option<String> {
    let (server, tool) = name.trim().split_once(SEPARATOR)?;
    let server = ServerName::new(server).ok()?;
    let is_own = nearest(server.as_str(), std::iter::once(BUILT_IN_SERVER)).is_some();
    let is_new = !is_own && !tool.is_empty() && snapshot.addressed(name).is_empty();
    is_new.then(|| server.to_string())
}

/// The configured server that `name` addresses, if its tools are not known.
fn unlisted_server(view: &View, snapshot: &Snapshot, name: &str) -> Option<ServerName> {
    let config = view.config();
    snapshot
        .addressed(name)
        .iter()
        .filter_map(|server| ServerName::new(server).ok())
        .find(|server| config.servers.contains_key(server) && snapshot.server(server).is_none())
}
