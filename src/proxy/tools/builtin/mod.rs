//! The built-in server `mcpzip`: management tools, found and called like any other tool.
//!
//! A setting decides what an agent may do here; the agent cannot change it. Reading stored results is possible unless
//! a rule names `mcpzip__read_result`, because otherwise the rest of a shortened result would be lost.

mod denied;
mod duplicates;
mod entries;
mod restrictions;
mod servers;
mod switches;
mod tail_log;

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

pub(in crate::proxy) use switches::Switches;

use bytes::Bytes;

use super::definitions::offered;
use crate::catalog::{self, Cache, Key, Listed, ServerTools};
use crate::config::{BUILT_IN_SERVER, Config, Environment, Management, ScriptTools, Verdict};
use crate::day::Day;
use crate::mcp::Object;
use crate::proxy::answers::Answers;
use crate::proxy::answers::error::denied_tool;
use crate::proxy::failure::Failure;
use crate::proxy::inventory::{Inventory, Reader};
use crate::proxy::view::View;
use crate::proxy::{Caller, Proxy, Reply};
use crate::shutdown::Tasks;
use crate::statistics::{DayRecord, Statistics};
use crate::tool::{Hints, QualifiedName, ServerName, ToolName};

/// The time limit of a refresh; after it, the answer names the missing servers.
const REFRESH_LIMIT: Duration = Duration::from_secs(30);

const STATUS: &str = r#"{"name":"status","description":"Shows every connected MCP server with its state, number of tools and the reason of any failure.","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true}}"#;
const REFRESH: &str = r#"{"name":"refresh","description":"Fetches the tool lists of one MCP server or of all again, and reconnects those that failed.","inputSchema":{"type":"object","properties":{"server":{"type":"string","description":"The server's name; all when absent"}}},"annotations":{"readOnlyHint":true}}"#;
const READ_RESULT: &str = r#"{"name":"read_result","description":"Reads on in a result that was stored because it was large: a part by jq filter, a range of characters, or the lines that match a pattern.","inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"The id that the shortened answer named"},"select":{"type":"string","description":"A jq filter over the result's JSON or text"},"offset":{"type":"integer","minimum":0,"description":"First character"},"limit":{"type":"integer","minimum":1,"description":"How many characters"},"grep":{"type":"string","description":"A regular expression; letter case does not count"}},"required":["id"]},"annotations":{"readOnlyHint":true}}"#;
const STATS: &str = r#"{"name":"stats","description":"Shows how often the tools of the MCP servers were called, their errors, latencies (p50, p95) and bytes.","inputSchema":{"type":"object","properties":{"server":{"type":"string","description":"Only this server"},"days":{"type":"integer","minimum":1,"description":"Only so many days back; all when absent"}}},"annotations":{"readOnlyHint":true}}"#;
const TAIL_LOG: &str = r#"{"name":"tail_log","description":"Shows the last lines that an MCP server wrote to stderr, to find out why it fails.","inputSchema":{"type":"object","properties":{"server":{"type":"string"},"lines":{"type":"integer","minimum":1,"maximum":500,"default":50}},"required":["server"]},"annotations":{"readOnlyHint":true}}"#;
const SERVERS_READ: &str = r#"{"name":"servers","description":"Lists the configured MCP servers and how each is reached.","inputSchema":{"type":"object","properties":{"operation":{"enum":["list"],"default":"list"}}},"annotations":{"readOnlyHint":true}}"#;
const SERVERS_FULL: &str = r#"{"name":"servers","description":"Adds, changes, removes, enables or disables MCP servers in the configuration, several at once, or lists them.","inputSchema":{"type":"object","properties":{"operation":{"enum":["list","add","remove","update","enable","disable"]},"servers":{"type":"object","description":"For add and update, entries by name: {\"command\": \"npx\", \"args\": [\"-y\", \"package\"]} or {\"url\": \"https://…\"}; an update changes the members given, null removes one","additionalProperties":{"type":"object"}},"names":{"type":"array","items":{"type":"string"},"description":"For remove, enable and disable"}},"required":["operation"]},"annotations":{"readOnlyHint":false,"destructiveHint":true}}"#;

const RUN: &str = r#"{"name":"run","description":"Runs a script in plain JavaScript that calls several tools and returns one value: loops, joins and filters of results without an answer for each call. `await tools.SERVER.TOOL({…})` or `await call(\"SERVER__TOOL\", {…})` gives the result's data (JSON, else text) and throws if the call fails; `await all([…])` runs calls in parallel; `await search(\"need\")` finds tools; `log(…)` adds a line to the answer. End with `return value`.","inputSchema":{"type":"object","properties":{"code":{"type":"string","description":"The script"}},"required":["code"]},"annotations":{"readOnlyHint":READ_ONLY}}"#;

/// The tools of the built-in server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Tool {
    Status,
    Refresh,
    ReadResult,
    Stats,
    TailLog,
    Servers,
    /// Runs a script, which `tools/script.rs` does.
    Run,
}

impl Tool {
    /// The built-in tool of a catalog entry, if it is one.
    pub(in crate::proxy) fn of(tool: &catalog::Tool) -> Option<Self> {
        if tool.server().name().as_str() != BUILT_IN_SERVER {
            return None;
        }
        match tool.entry().name.as_str() {
            "status" => Some(Self::Status),
            "refresh" => Some(Self::Refresh),
            "read_result" => Some(Self::ReadResult),
            "stats" => Some(Self::Stats),
            "tail_log" => Some(Self::TailLog),
            "servers" => Some(Self::Servers),
            "run" => Some(Self::Run),
            _ => None,
        }
    }
}

/// The built-in server's entry in the catalog.
pub(in crate::proxy) fn tools(config: &Config) -> ServerTools {
    let own: &[&'static str] = match config.management {
        Management::Off => &[READ_RESULT],
        Management::Read => &[STATUS, REFRESH, READ_RESULT, STATS, TAIL_LOG, SERVERS_READ],
        Management::Full => &[STATUS, REFRESH, READ_RESULT, STATS, TAIL_LOG, SERVERS_FULL],
    };
    let run = match config.scripts.allow {
        ScriptTools::ReadOnly => RUN.replace("READ_ONLY", "true"),
        ScriptTools::All => RUN.replace("READ_ONLY", "false"),
    };
    let mut tools: Vec<&str> = own.to_vec();
    if config.scripts.is_on {
        tools.push(&run);
    }
    let listed = Listed {
        tools: tools
            .iter()
            .map(|json| Bytes::from(offered(json).into_owned()))
            .collect(),
        ..Listed::default()
    };
    Cache::new(None).store(
        &Key {
            server: name(),
            configuration: String::new(),
        },
        &listed,
    )
}

/// The current name of the built-in tool that mcpzip 0.1 called `name`.
pub(in crate::proxy) fn name_since_older(name: &str) -> Option<&'static str> {
    match name {
        "proxy_status" => Some("mcpzip__status"),
        "proxy_refresh" => Some("mcpzip__refresh"),
        _ => None,
    }
}

/// Whether it is one of mcpzip's own tools that only show what mcpzip knows, also while the user has paused mcpzip.
pub(super) fn only_shows(tool: &catalog::Tool) -> bool {
    Tool::of(tool).is_some_and(|own| own != Tool::Run) && tool.entry().hints.declares_read_only()
}

/// Refuses a call of a script that the rules would permit to its session: of a tool that manages mcpzip, and of one that
/// does not declare to be read-only, unless the user permits those.
pub(super) fn permitted_in_script(view: &View, tool: &catalog::Tool) -> Result<(), Failure> {
    let refused = |is_builtin| Failure::NotInScript {
        name: tool.qualified_name(),
        is_builtin,
    };
    let is_own = tool.server().name().as_str() == BUILT_IN_SERVER;
    let manages = is_own && Tool::of(tool) != Some(Tool::ReadResult);
    if manages || view.config().has_scripts(tool.server().name()) {
        return Err(refused(true));
    }
    let allow = view.config().scripts.allow;
    match allow == ScriptTools::All || tool.entry().hints.declares_read_only() {
        true => Ok(()),
        false => Err(refused(false)),
    }
}

/// The name of the built-in server.
pub(in crate::proxy) fn name() -> ServerName {
    ServerName::new(BUILT_IN_SERVER).expect("the constant is a name")
}

/// The built-in server.
#[derive(Debug)]
pub(super) struct Builtin {
    pub(super) inventory: Arc<Inventory>,
    pub(super) answers: Arc<Answers>,
    pub(super) statistics: Arc<Statistics>,
    /// The directory of the servers' logs.
    pub(super) logs: Option<PathBuf>,
    pub(super) variables: Environment,
    pub(super) switches: Arc<Switches>,
    /// Applies a configuration that an agent has changed.
    pub(super) proxy: Weak<Proxy>,
    pub(super) tasks: Tasks,
}

impl Builtin {
    /// Runs a built-in tool.
    pub(super) async fn run(
        &self,
        view: &View,
        tool: Tool,
        arguments: &Object<'_>,
        caller: Option<&Caller>,
    ) -> Reply {
        if tool == Tool::Run {
            return Reply::tool_error("a script is called with execute_tool");
        }
        if tool == Tool::ReadResult {
            return self.answers.read_result(view, arguments, caller).await;
        }
        if view.config().management == Management::Off {
            return Reply::tool_error(
                "the configuration does not let agents manage mcpzip (`management` is off)",
            );
        }
        if matches!(tool, Tool::Stats | Tool::TailLog) && !view.config().shows_calls_of_others() {
            return Reply::tool_error(
                "the statistics and logs contain the calls of all users: they are for those whose roles give the whole configuration",
            );
        }
        self.inventory.loaded().await;
        match tool {
            Tool::Stats => self.stats(view, arguments).await,
            Tool::TailLog => self.tail_log(view, arguments).await,
            Tool::Servers => self.servers(view, arguments).await,
            Tool::Refresh => {
                let server = match arguments
                    .text("server")
                    .map(|name| self.configured(view, &name))
                {
                    None => None,
                    Some(Ok(server)) => Some(server),
                    Some(Err(refusal)) => return refusal,
                };
                match &server {
                    Some(server) => self.inventory.list_now(server, REFRESH_LIMIT).await,
                    None => self.inventory.list(None, REFRESH_LIMIT).await,
                }
                self.inventory
                    .index()
                    .wait_current(Duration::from_secs(5))
                    .await;
                self.status(view)
            }
            Tool::Status | Tool::ReadResult | Tool::Run => self.status(view),
        }
    }

    /// The status as an agent may read it.
    fn status(&self, view: &View) -> Reply {
        let status = self.inventory.status_for(view, Reader::Agent).to_string();
        Reply::text(&view.advised(&status))
    }

    /// Runs a built-in tool by its name in 0.1, under the rules of its current name.
    pub(super) async fn older(
        &self,
        view: &View,
        tool: Tool,
        arguments: &Object<'_>,
        caller: &Caller,
    ) -> Reply {
        let own = if tool == Tool::Refresh {
            "refresh"
        } else {
            "status"
        };
        let name = QualifiedName {
            server: name(),
            tool: ToolName::new(own).expect("the constants are names"),
        };
        let hints = Hints {
            read_only: Some(true),
            ..Hints::default()
        };
        let (verdict, rule) = view.config().decide(&name, hints, None);
        match verdict {
            Verdict::Allowed => self.run(view, tool, arguments, Some(caller)).await,
            Verdict::Asked => Reply::tool_error(&format!(
                "the user's rules (`tools.ask`) require the user's consent: call `{name}` with execute_tool, which asks for it"
            )),
            Verdict::Denied => {
                Reply::tool_error(&denied_tool(&name, &rule.unwrap_or_default()).whole())
            }
        }
    }

    /// The valid server of this name, or the reason why there is none.
    fn configured(&self, view: &View, name: &str) -> Result<ServerName, Reply> {
        let server = ServerName::new(name)
            .ok()
            .filter(|server| view.config().servers.contains_key(server));
        server.ok_or_else(|| {
            Reply::tool_error(&format!(
                "there is no server `{name}`; mcpzip__status lists them"
            ))
        })
    }

    /// Removes what a session with a profile does not see.
    fn keep_visible(&self, view: &View, record: &mut DayRecord) {
        let config = view.config();
        if config.profile_names().next().is_none() && !config.is_for_person() {
            return;
        }
        record.tools.retain(|server, tools| {
            let known = ServerName::new(server).ok();
            let known =
                known.filter(|server| *server == name() || config.servers.contains_key(server));
            let Some(server) = known else { return false };
            tools.retain(|tool, _| {
                let tool = ToolName::new(tool).ok();
                tool.is_some_and(|tool| self.inventory.any_tool(&server, &tool).is_some())
            });
            true
        });
    }

    async fn stats(&self, view: &View, arguments: &Object<'_>) -> Reply {
        let days = arguments
            .get("days")
            .and_then(|raw| raw.get().parse::<u32>().ok());
        let since = days.map(|days| Day::today().minus(days.saturating_sub(1)));
        let statistics = self.statistics.clone();
        let history = self
            .tasks
            .spawn_blocking(move || statistics.history(since))
            .await;
        match history {
            Ok(Ok(history)) => {
                let mut total = history.total();
                self.keep_visible(view, &mut total);
                Reply::text(&total.table(arguments.text("server").as_deref()))
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "no statistics");
                Reply::tool_error("the statistics cannot be read")
            }
            Err(_) => Reply::tool_error("the statistics cannot be read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::READ_RESULT;
    use crate::proxy::tools::definitions::without_filters;

    #[test]
    fn without_filters_nothing_is_said_of_them_here_either() {
        assert!(READ_RESULT.contains("select"));
        let without = without_filters(READ_RESULT);
        let words = ["select", "jq", "filter"];
        assert!(
            !words.iter().any(|word| without.contains(word)),
            "{without}"
        );
    }
}
