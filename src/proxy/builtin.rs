//! The built-in server `mcpzip`: management behind the same three tools, found and called as any other.

use std::time::Duration;

use super::{Proxy, Reply};
use crate::catalog::{self, Cache, Key, Listed, ServerTools};
use crate::config::BUILT_IN_SERVER;
use crate::mcp::Object;
use crate::tool::ServerName;

/// How long a refresh may take before the answer says what is still missing.
const REFRESH_LIMIT: Duration = Duration::from_secs(30);

const STATUS: &str = r#"{"name":"status","description":"Shows every connected MCP server with its state, number of tools and the reason of any failure.","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true}}"#;
const REFRESH: &str = r#"{"name":"refresh","description":"Fetches the tool lists of the MCP servers anew, of one or of all, and reconnects those that failed.","inputSchema":{"type":"object","properties":{"server":{"type":"string","description":"The server's name; all when absent"}}},"annotations":{"readOnlyHint":true}}"#;

const READ_RESULT: &str = r#"{"name":"read_result","description":"Reads on in a result that was stored because it was large: a part by jq filter, a range of characters, or the lines that match a pattern.","inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"The id that the shortened answer named"},"select":{"type":"string","description":"A jq filter over the result's JSON"},"offset":{"type":"integer","minimum":0,"description":"First character"},"limit":{"type":"integer","minimum":1,"description":"How many characters"},"grep":{"type":"string","description":"A regular expression; letter case does not count"}},"required":["id"]},"annotations":{"readOnlyHint":true}}"#;

/// The tools of the built-in server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Status,
    Refresh,
    ReadResult,
}

impl Tool {
    /// The built-in tool that a catalog entry stands for, if it is one.
    pub(super) fn of(tool: &catalog::Tool) -> Option<Self> {
        if tool.server().name().as_str() != BUILT_IN_SERVER {
            return None;
        }
        match tool.entry().name.as_str() {
            "status" => Some(Self::Status),
            "refresh" => Some(Self::Refresh),
            "read_result" => Some(Self::ReadResult),
            _ => None,
        }
    }
}

/// The built-in server's entry in the catalog.
pub(super) fn tools() -> ServerTools {
    let server = ServerName::new(BUILT_IN_SERVER).expect("the constant is a name");
    let tools = [STATUS, REFRESH, READ_RESULT].map(|json| json.as_bytes().into()).to_vec();
    let listed = Listed { tools, ..Listed::default() };
    Cache::new(None).store(&Key { server, configuration: String::new() }, &listed)
}

impl Proxy {
    /// Runs a built-in tool.
    pub(super) async fn builtin(&self, tool: Tool, arguments: &Object<'_>) -> Reply {
        if tool == Tool::ReadResult {
            return self.read_result(arguments).await;
        }
        self.refresh.loaded().await;
        if tool == Tool::Refresh {
            let server = match arguments.text("server").map(|name| ServerName::new(&name)) {
                None => None,
                Some(Ok(server)) if self.config().servers.contains_key(&server) => Some(server),
                Some(_) => return Reply::tool_error("there is no such server; mcpzip__status lists them"),
            };
            self.refresh.list(server.as_ref(), REFRESH_LIMIT).await;
            self.index.wait_current(Duration::from_secs(5)).await;
        }
        Reply::text(&self.status().to_string())
    }
}
