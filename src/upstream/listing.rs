//! All the tools of a server, page by page.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::connection::{Connection, Reply};
use super::{CallError, Introduction};
use crate::mcp::Object;
use crate::mcp::frame::quoted;
use crate::tool::ServerName;

/// A server that never comes to its last page is cut off here.
const MOST_PAGES: usize = 1000;

/// What a server has to offer, as it said it.
#[derive(Debug, Clone)]
pub struct Listing {
    /// What it says of itself.
    pub introduction: Introduction,
    /// The entries of `tools/list`, all pages, each in its own bytes.
    pub tools: Vec<Bytes>,
    /// How long the list stays fresh (`ttlMs`, 2026-07-28), if the server says so.
    pub fresh_for: Option<Duration>,
}

/// Why there is no list.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ListError {
    /// A page did not come.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server refused, or its answer is no list.
    #[error("server `{server}` did not list its tools: {reason}")]
    Refused {
        /// Its name.
        server: ServerName,
        /// What it said, or what is wrong with it.
        reason: String,
    },
}

impl Connection {
    /// Lists all tools of the server, each page within `limit`.
    ///
    /// # Errors
    /// When a page does not come, or is no page.
    pub async fn list_tools(&self, server: &ServerName, limit: Duration) -> Result<Listing, ListError> {
        let refused = |reason: String| ListError::Refused { server: server.clone(), reason };
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        let mut seen = HashSet::new();
        for _ in 0..MOST_PAGES {
            let members = cursor.as_deref().map(|cursor| format!(r#""cursor":{}"#, quoted(cursor))).unwrap_or_default();
            let page = match self.request("tools/list", &members, limit).await? {
                Reply::Result(page) => page,
                Reply::Error(error) => return Err(refused(message_of(&error))),
            };
            let raw: &RawValue = serde_json::from_slice(&page).expect("a reply's payload was read as JSON");
            let object = Object::parse(raw).map_err(|_| refused("the answer is not an object".into()))?;
            let entries: Vec<&RawValue> = object
                .get("tools")
                .and_then(|raw| serde_json::from_str(raw.get()).ok())
                .ok_or_else(|| refused("the answer has no list of tools".into()))?;
            tools.extend(entries.into_iter().map(|entry| page.slice_ref(entry.get().as_bytes())));
            let fresh_for = object.get("ttlMs").and_then(|raw| milliseconds(raw.get()));
            cursor = object.text("nextCursor");
            match &cursor {
                None => {
                    self.learn_headers(server, &mut tools);
                    return Ok(Listing { introduction: self.introduction().clone(), tools, fresh_for });
                }
                Some(cursor) if !seen.insert(cursor.clone()) => {
                    return Err(refused("its pages go in a circle".into()));
                }
                Some(_) => {}
            }
        }
        Err(refused(format!("it has more than {MOST_PAGES} pages")))
    }

    /// Notes which arguments go into headers. A tool whose wishes cannot be met is left out, as the specification wants
    /// (2026-07-28, basic/transports/streamable-http); over stdio there are no such wishes.
    fn learn_headers(&self, server: &ServerName, tools: &mut Vec<Bytes>) {
        let Some(mirrors) = self.wire.mirrors() else { return };
        tools.retain(|entry| match mirrors.learn(entry) {
            Ok(()) => true,
            Err(problem) => {
                tracing::warn!(%server, problem, "a tool is left out");
                false
            }
        });
    }
}

/// The `message` of a JSON-RPC error object.
#[must_use]
pub fn message_of(error: &[u8]) -> String {
    let raw: Option<&RawValue> = serde_json::from_slice(error).ok();
    raw.and_then(|raw| Object::parse(raw).ok()?.text("message")).unwrap_or_else(|| "an error without a message".into())
}

/// A duration as servers write it, fractions included.
fn milliseconds(json: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(json.parse::<f64>().ok()? / 1000.0).ok()
}
