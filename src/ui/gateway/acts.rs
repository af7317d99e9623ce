//! The actions of a person at a gateway.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Gateway, done, failed};
use crate::audit::{Directories, Filter, Reader};
use crate::config::{BUILT_IN_SERVER, Config, Server, Transport};
use crate::day::{Day, since};
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

/// The lines of the audit log that are read at one time.
const MOST_LINES: usize = 20_000;

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
        if matches!(action, "tools" | "search" | "describe" | "call") {
            visit.admit()?;
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
            "audit" if !visit.manages() => self.audit(visit, arguments),
            "stats" if !visit.manages() => self.stats(visit, arguments),
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
                self.decide_call(visit, params["id"].as_str().unwrap_or_default(), true)
            }
            Work::Decide(decision) => match self.note(visit, action, server.as_deref()) {
                Ok(()) => decide(visit.proxies().main(), &decision).await,
                Err(why) => Err(why),
            },
            Work::Command { ref arguments, .. } => match (action, server, arguments.last()) {
                ("enable" | "disable", Some(server), _) => self.switch(visit, action, &server),
                ("deny", _, Some(id)) => self.decide_call(visit, id, false),
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
        self.note(visit, action, Some(server))?;
        let name = ServerName::new(server).map_err(|_| format!("there is no server `{server}`"))?;
        visit.proxies().switch(&name, action == "enable")?;
        Ok(json!({ "server": server, "until": "the gateway is started again" }))
    }

    /// The person's own lines of the audit log.
    fn audit(&self, visit: &Visit, arguments: &Map<String, Value>) -> Result<Value, String> {
        let limit = arguments.get("limit").and_then(Value::as_u64);
        let limit = limit.map_or(MOST_LINES, |limit| {
            usize::try_from(limit).unwrap_or(MOST_LINES).min(MOST_LINES)
        });
        let mut lines = self.own_lines(visit, arguments, Some(Day::today()))?;
        lines.drain(..lines.len().saturating_sub(limit));
        let lines = lines.iter().map(|line| {
            let mut line: Value = serde_json::from_str(&line.raw).unwrap_or_default();
            // The place of the line among those of others is nothing of the person.
            if let Some(members) = line.as_object_mut() {
                members.retain(|name, _| !matches!(name.as_str(), "n" | "prev" | "hash"));
            }
            line
        });
        Ok(lines.collect())
    }

    /// The person's own calls by tool, from their lines of the audit log.
    fn stats(&self, visit: &Visit, arguments: &Map<String, Value>) -> Result<Value, String> {
        let lines = self.own_lines(visit, arguments, None)?;
        let calls = lines.into_iter().filter(|line| line.kind == "call");
        let mut tools: std::collections::BTreeMap<(String, String), Tally> = Default::default();
        for line in calls {
            let tally = tools.entry((line.server, line.tool)).or_default();
            tally.calls += 1;
            tally.errors += u64::from(line.outcome != "ok");
            tally.sent += line.sent.unwrap_or(0);
            tally.received += line.received.unwrap_or(0);
            tally.times.extend(line.ms);
        }
        let rows = tools.into_iter().map(|((server, tool), mut tally)| {
            tally.times.sort_by(f64::total_cmp);
            json!({
                "server": server,
                "tool": tool,
                "calls": tally.calls,
                "errors": tally.errors,
                "p50_ms": tally.quantile(50),
                "p95_ms": tally.quantile(95),
                "sent_bytes": tally.sent,
                "received_bytes": tally.received,
            })
        });
        Ok(json!({ "tools": rows.collect::<Vec<_>>() }))
    }

    fn own_lines(
        &self,
        visit: &Visit,
        arguments: &Map<String, Value>,
        first: Option<Day>,
    ) -> Result<Vec<crate::audit::Line>, String> {
        let chains = Directories::below(&self.state_dir).chains;
        if !chains.exists() {
            return Err("there is no audit log: the gateway writes none".to_owned());
        }
        let given = |name: &str| Some(text(arguments, name)).filter(|text| !text.is_empty());
        let is_set = |name: &str| arguments.get(name).and_then(Value::as_bool) == Some(true);
        let own = &visit.entitlement().identity;
        let since = given("since").map(|text| since(&text)).transpose()?;
        let filter = Filter {
            server: given("server"),
            tool: given("tool"),
            client: given("client"),
            user: Some(own.clone()),
            kind: given("kind"),
            denied: is_set("denied"),
            errors: is_set("errors"),
            since: since.or(first),
        };
        let lines = Reader::new(&chains, filter).lines();
        let mut lines = lines.map_err(|error| format!("the audit log cannot be read: {error}"))?;
        // The filter also takes a name, which several identities may have.
        lines.retain(|line| line.identity == *own);
        Ok(lines)
    }
}

/// The calls of one tool.
#[derive(Default)]
struct Tally {
    calls: u64,
    errors: u64,
    sent: u64,
    received: u64,
    /// In milliseconds, sorted at the end.
    times: Vec<f64>,
}

impl Tally {
    fn quantile(&self, percent: usize) -> Option<f64> {
        let at = (self.times.len() * percent).div_ceil(100);
        self.times.get(at.saturating_sub(1)).copied()
    }
}

fn text(arguments: &Map<String, Value>, name: &str) -> String {
    let text = arguments.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// The proxy with all that a person may see of the servers.
fn seen(visit: &Visit) -> Result<Arc<Proxy>, String> {
    match visit.manages() {
        true => Ok(visit.proxies().main().clone()),
        false => visit.proxy(),
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
