//! The actions of a person at a gateway.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Gateway, done, failed};
use crate::config::{BUILT_IN_SERVER, Config, Server, Transport};
use crate::downstream::http::Visit;
use crate::limits::Exceeded;
use crate::proxy::Proxy;
use crate::tool::{Definition, ServerName, render_hit};
use crate::ui::actions::{Prepared, Work};
use crate::ui::{commands, decide};

/// Time limit for listing servers that were not listed before.
const LIST_LIMIT: Duration = Duration::from_secs(30);
/// How long a search waits for vectors that are missing.
const MEANING_LIMIT: Duration = Duration::from_secs(10);

/// The tools of a search without a limit, and the most.
const HITS: u64 = 10;
const MOST_HITS: u64 = 50;

impl Gateway {
    /// Carries out an action that the person has the right to. The answer is JSON.
    ///
    /// # Errors
    /// When the person has made too many requests.
    pub(super) async fn act(
        &self,
        visit: &Visit,
        action: &str,
        arguments: &Map<String, Value>,
        prepared: Prepared,
    ) -> Result<String, Exceeded> {
        if matches!(
            action,
            "tools" | "search" | "describe" | "call" | "audit" | "stats" | "gain" | "logs"
        ) {
            visit.admit().await?;
        }
        let outcome = match action {
            "list" => list(visit),
            "status" => status(visit).await,
            "tools" => tools(visit, arguments).await,
            "search" => search(visit, arguments).await,
            "describe" => describe(visit, arguments).await,
            "call" => {
                let given = arguments.get("arguments").cloned();
                let given = given.unwrap_or_else(|| json!({}));
                let inner = json!({ "name": text(arguments, "name"), "arguments": given });
                let params = json!({ "name": "execute_tool", "arguments": inner });
                return Ok(match visit.ask("tools/call", params).await {
                    Ok(result) => {
                        // As the command ends for a tool's own error.
                        let exit = if result["isError"] == true { 5 } else { 0 };
                        json!({ "command": "", "exit": exit, "output": result, "error": "" })
                            .to_string()
                    }
                    Err(why) => failed(&why),
                });
            }
            "audit" => self.audit(visit, arguments).await,
            "stats" if !visit.manages() => self.stats(visit, arguments).await,
            _ => return Ok(self.manage(visit, action, prepared).await),
        };
        Ok(match outcome {
            Ok(output) => done(&output),
            Err(why) => failed(&why),
        })
    }

    /// Carries out an action about the whole gateway.
    async fn manage(&self, visit: &Visit, action: &str, prepared: Prepared) -> String {
        let server = prepared.server.clone();
        let outcome = match prepared.work {
            Work::Method("approvals.allow", params) => {
                let id = params["id"].as_str().unwrap_or_default();
                self.decide_call(visit, id, true).await
            }
            Work::Decide(decision) => {
                let noted = known(visit, &decision.server)
                    .and_then(|()| self.note(visit, action, server.as_deref()));
                match noted {
                    Ok(()) => decide(visit.proxies().main(), &decision).await,
                    Err(why) => Err(why),
                }
            }
            Work::Command { ref arguments, .. } => match (action, server, arguments.last()) {
                ("enable" | "disable", Some(server), _) => self.switch(visit, action, &server),
                ("deny", _, Some(id)) => self.decide_call(visit, id, false).await,
                ("approvals", ..) => self.pending(visit).map(|pending| json!(pending)),
                // The machine's own user may have other servers in the same state directory.
                ("logs", Some(server), _) => match known(visit, &server) {
                    Ok(()) => return commands::print(&self.opening, prepared).await,
                    Err(why) => Err(why),
                },
                // The others change nothing: the command prints what the person asks for.
                _ => return commands::print(&self.opening, prepared).await,
            },
            Work::Method(..) => Err(format!("`{action}` is not for a gateway")),
        };
        match outcome {
            Ok(output) => done(&output),
            Err(why) => failed(&why),
        }
    }

    /// Switches a server off until the gateway ends, or on again.
    fn switch(&self, visit: &Visit, action: &str, server: &str) -> Result<Value, String> {
        known(visit, server)?;
        self.note(visit, action, Some(server))?;
        let name = ServerName::new(server).map_err(|_| format!("there is no server `{server}`"))?;
        visit.proxies().switch(&name, action == "enable")?;
        Ok(json!({ "server": server, "until": "the gateway is started again" }))
    }
}

pub(super) fn text(arguments: &Map<String, Value>, name: &str) -> String {
    let text = arguments.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// The proxy with all that a person may see of the servers.
pub(super) fn seen(visit: &Visit) -> Result<Arc<Proxy>, String> {
    match visit.manages() {
        true => Ok(visit.proxies().main().clone()),
        false => visit.proxy(),
    }
}

/// Checks that the gateway has a server.
fn known(visit: &Visit, server: &str) -> Result<(), String> {
    let whole = visit.proxies().whole();
    let is_known = whole.servers.keys().any(|name| name.as_str() == server);
    match is_known || whole.faults.iter().any(|fault| fault.name == server) {
        true => Ok(()),
        // The name may be of any length.
        false => Err("the gateway has no server of that name".to_owned()),
    }
}

/// The kind of a server, as its entry has it.
fn kind(server: &Server) -> &'static str {
    match &server.transport {
        Transport::Stdio(_) => "stdio",
        Transport::Http(_) => "http",
        Transport::Sse(_) => "sse",
        Transport::Folder(folder) => folder.holds.word(),
    }
}

/// The servers. Their commands and URLs are for those who manage the gateway.
fn list(visit: &Visit) -> Result<Value, String> {
    let config: Arc<Config> = seen(visit)?.unscoped().config();
    let servers = config.servers.iter().map(|(name, server)| {
        let target = visit
            .manages()
            .then(|| config.masker.mask(&server.way()).into_owned());
        json!({
            "name": name.as_str(),
            "state": if server.disabled { "disabled" } else { "enabled" },
            "type": kind(server),
            "target": target,
            "description": server.description,
        })
    });
    let mut servers: Vec<Value> = servers.collect();
    if visit.manages() {
        servers.extend(config.faults.iter().map(|fault| {
            json!({ "name": fault.name, "state": "faulty", "reason": config.masker.mask(&fault.fault.to_string()) })
        }));
    }
    Ok(json!({ "servers": servers }))
}

async fn status(visit: &Visit) -> Result<Value, String> {
    let proxy = seen(visit)?;
    proxy.inventory.loaded().await;
    let status = match visit.manages() {
        true => proxy.inventory.status(&proxy.unscoped()),
        // Nothing that a server in quarantine wrote.
        false => proxy.inventory.status_for_agents(&proxy.unscoped()),
    };
    let servers = status.servers.iter().map(|server| {
        json!({
            "name": server.name,
            "state": server.state,
            "reason": server.reason,
            "tools": server.tools,
            "software": server.software,
        })
    });
    Ok(json!({ "servers": servers.collect::<Vec<_>>() }))
}

async fn tools(visit: &Visit, arguments: &Map<String, Value>) -> Result<Value, String> {
    let server = text(arguments, "server");
    let own = visit.proxy()?;
    let named = ServerName::new(&server).ok();
    // As the person may call them; of a server that only those who manage see, all.
    let has = |server: &ServerName| own.unscoped().config().servers.contains_key(server);
    let proxy = match &named {
        Some(server) if !has(server) => seen(visit)?,
        _ => own,
    };
    if !server.is_empty() {
        let config = proxy.unscoped().config();
        let is_known = named.as_ref().is_some_and(|name| {
            name.as_str() == BUILT_IN_SERVER || config.servers.contains_key(name)
        });
        if !is_known {
            return Err(format!("there is no server `{server}`"));
        }
    }
    proxy.inventory.known(named.as_ref(), LIST_LIMIT).await;
    let is_wanted = |name: &str| match &named {
        Some(server) => server.as_str() == name,
        None => name != BUILT_IN_SERVER,
    };
    let snapshot = proxy.unscoped().snapshot();
    let wanted = snapshot
        .tools()
        .filter(|tool| is_wanted(tool.server().name().as_str()));
    let shown = wanted.filter_map(|tool| {
        let json = tool.json().ok()?;
        let definition = Definition::parse(&json).ok()?;
        let server = tool.server().name();
        let text = render_hit(server, &definition);
        let name = tool.qualified_name().to_string();
        Some(json!({ "name": name, "server": server.as_str(), "text": text }))
    });
    Ok(shown.collect())
}

async fn search(visit: &Visit, arguments: &Map<String, Value>) -> Result<Value, String> {
    let query = text(arguments, "query");
    if query.trim().is_empty() {
        return Err("the query is empty: say what you need done".to_owned());
    }
    let proxy = visit.proxy()?;
    let limit = arguments.get("limit").and_then(Value::as_u64);
    let limit = limit.unwrap_or(HITS).clamp(1, MOST_HITS);
    let server = Some(text(arguments, "server")).filter(|server| !server.is_empty());
    proxy.inventory.known(None, LIST_LIMIT).await;
    proxy.inventory.vectors_made(MEANING_LIMIT).await;
    let view = proxy.unscoped();
    let limit = usize::try_from(limit).unwrap_or(1);
    let explained = proxy.tools.explain(&view, &query, limit, server.as_deref());
    let explanation = explained.await.map_err(|error| error.to_string())?;
    Ok(explanation.json())
}

async fn describe(visit: &Visit, arguments: &Map<String, Value>) -> Result<Value, String> {
    let proxy = visit.proxy()?;
    let view = proxy.unscoped();
    let described = proxy.tools.describe(&view, &text(arguments, "name")).await;
    let (_, json) = described.map_err(|failure| failure.text(&view))?;
    serde_json::from_str(json.get()).map_err(|error| error.to_string())
}
