//! What a server has: its tools, prompts, resources and templates, page by page.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, ServerReply, code_of};
use super::list_limits::{self, Entries, Over, Taken};
use super::{CallError, Introduction};
use crate::mcp::frame::quoted;
use crate::mcp::{ErrorCode, Object};
use crate::tool::ServerName;

/// How much longer than the tools the lists beside them may take, as the tools wait for them.
const GRACE: Duration = Duration::from_secs(2);

/// What a server has to offer, as it said it; the entries of all pages of a list, each in its own bytes.
#[derive(Debug, Clone)]
pub struct Listing {
    /// What it says of itself.
    pub introduction: Introduction,
    /// The entries of `tools/list`.
    pub tools: Vec<Bytes>,
    /// The entries of `prompts/list`, none where the server declares no prompts; the same holds for those below.
    pub prompts: Result<Vec<Bytes>, ListError>,
    /// The entries of `resources/list`.
    pub resources: Result<Vec<Bytes>, ListError>,
    /// The entries of `resources/templates/list`.
    pub templates: Result<Vec<Bytes>, ListError>,
    /// How long all of it stays fresh (`ttlMs`, 2026-07-28), if the server says so.
    pub fresh_for: Option<Duration>,
    compared: Arc<OnceCell<()>>,
}

impl Listing {
    /// Notes that its tools were compared with those that were first seen: calls may go over the connection.
    pub fn set_compared(&self) {
        // Another listing of the connection may have been compared before.
        let _ = self.compared.set(());
    }
}

/// One list, all pages.
#[derive(Debug, Default)]
struct Pages {
    entries: Vec<Bytes>,
    fresh_for: Option<Duration>,
}

/// Why there is no list.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ListError {
    /// A page did not come.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server has no such list.
    #[error("server `{server}` has no {list}")]
    Missing {
        /// Its name.
        server: ServerName,
        /// What was to be listed.
        list: &'static str,
    },
    /// It took much longer than the tools.
    #[error("server `{server}` did not list its {list} in time")]
    Late {
        /// Its name.
        server: ServerName,
        /// What was to be listed.
        list: &'static str,
    },
    /// The server refused, or its answer is no list.
    #[error("server `{server}` did not list its {list}: {reason}")]
    Refused {
        /// Its name.
        server: ServerName,
        /// What was to be listed.
        list: &'static str,
        /// What it said, or what is wrong with it.
        reason: String,
    },
}

impl Connection {
    /// Lists all that the server has, the tools within `limit` for each page.
    ///
    /// # Errors
    /// When the tools cannot be listed.
    pub async fn list(&self, server: &ServerName, limit: Duration) -> Result<Listing, ListError> {
        let has = |feature: &str| self.introduction().capabilities.has(feature);
        let listed = CancellationToken::new();
        let tools = async {
            let _listed = listed.clone().drop_guard();
            self.tool_pages(server, limit).await
        };
        let shared = list_limits::Bytes::default();
        let other = async |feature: &str, method: &str, list: &'static str| {
            if !has(feature) {
                return Ok(Pages::default());
            }
            tokio::select! {
                pages = self.other_pages(server, method, list, limit, &shared) => pages,
                () = async { listed.cancelled().await; tokio::time::sleep(GRACE).await } => {
                    Err(ListError::Late { server: server.clone(), list })
                }
            }
        };
        let (tools, prompts, resources, templates) = tokio::join!(
            tools,
            other("prompts", "prompts/list", "prompts"),
            other("resources", "resources/list", "resources"),
            other("resources", "resources/templates/list", "resourceTemplates"),
        );
        let tools = tools?;
        let others = [&prompts, &resources, &templates].map(|pages| pages.as_ref().ok()?.fresh_for);
        let entries = |pages: Result<Pages, ListError>| pages.map(|pages| pages.entries);
        Ok(Listing {
            introduction: self.introduction().clone(),
            compared: self.compared.clone(),
            fresh_for: others.into_iter().chain([tools.fresh_for]).flatten().min(),
            tools: tools.entries,
            prompts: entries(prompts),
            resources: entries(resources),
            templates: entries(templates),
        })
    }

    /// Lists the tools alone, for what they want of their calls.
    pub(super) async fn list_tools(
        &self,
        server: &ServerName,
        limit: Duration,
    ) -> Result<(), ListError> {
        self.tool_pages(server, limit).await.map(drop)
    }

    async fn tool_pages(&self, server: &ServerName, limit: Duration) -> Result<Pages, ListError> {
        let bytes = list_limits::Bytes::default();
        let pages = self.pages(server, "tools/list", "tools", limit, &bytes);
        let mut pages = match pages.await {
            // Some have tools without saying so, so all are asked.
            Err(ListError::Missing { .. } | ListError::Refused { .. })
                if !self.introduction().capabilities.has("tools") =>
            {
                Pages::default()
            }
            Err(ListError::Missing { server, list }) => {
                let reason = "it declares them, and says there is no such method".to_owned();
                return Err(ListError::Refused {
                    server,
                    list,
                    reason,
                });
            }
            pages => pages?,
        };
        self.learn_headers(server, &mut pages.entries);
        Ok(pages)
    }

    /// A list that a server may do without.
    async fn other_pages(
        &self,
        server: &ServerName,
        method: &str,
        list: &'static str,
        limit: Duration,
        bytes: &list_limits::Bytes,
    ) -> Result<Pages, ListError> {
        match self.pages(server, method, list, limit, bytes).await {
            Err(ListError::Missing { .. }) => Ok(Pages::default()),
            pages => pages,
        }
    }

    /// All pages of a list, whose entries are in the member `list`, within its limits.
    async fn pages(
        &self,
        server: &ServerName,
        method: &str,
        list: &'static str,
        limit: Duration,
        bytes: &list_limits::Bytes,
    ) -> Result<Pages, ListError> {
        let refused = |reason: String| ListError::Refused {
            server: server.clone(),
            list,
            reason,
        };
        let mut pages = Pages::default();
        let mut cursor: Option<String> = None;
        let mut seen = HashSet::new();
        let over = |over: Over| refused(format!("it has more than {over}"));
        let mut taken = Taken::of(bytes);
        loop {
            let members = cursor
                .as_deref()
                .map(|cursor| format!(r#""cursor":{}"#, quoted(cursor)))
                .unwrap_or_default();
            let page = match self.request(method, &members, limit).await? {
                ServerReply::Result(page) => page,
                ServerReply::Error(error)
                    if code_of(&error) == Some(ErrorCode::METHOD_NOT_FOUND) =>
                {
                    return Err(ListError::Missing {
                        server: server.clone(),
                        list,
                    });
                }
                ServerReply::Error(error) => return Err(refused(message_of(&error))),
            };
            taken.page(page.len()).map_err(over)?;
            let raw: &RawValue =
                serde_json::from_slice(&page).expect("a reply's payload was read as JSON");
            let object =
                Object::parse(raw).map_err(|_| refused("the answer is not an object".into()))?;
            let Entries(entries) = object
                .get(list)
                .and_then(|raw| serde_json::from_str(raw.get()).ok())
                .ok_or_else(|| refused(format!("the answer has no list of {list}")))?;
            taken.entries(entries.len()).map_err(over)?;
            pages.entries.extend(
                entries
                    .into_iter()
                    .map(|entry| page.slice_ref(entry.get().as_bytes())),
            );
            let fresh_for = object.get("ttlMs").and_then(|raw| milliseconds(raw.get()));
            pages.fresh_for = pages.fresh_for.into_iter().chain(fresh_for).min();
            cursor = object.text("nextCursor");
            match &cursor {
                None => return Ok(pages),
                Some(cursor) if !seen.insert(cursor.clone()) => {
                    return Err(refused("its pages go in a circle".into()));
                }
                Some(_) => {}
            }
        }
    }

    /// Notes which arguments go into headers. A tool whose wishes cannot be met is left out, as the specification wants
    /// (2026-07-28, basic/transports/streamable-http); over stdio there are no such wishes.
    fn learn_headers(&self, server: &ServerName, tools: &mut Vec<Bytes>) {
        let Some(mirrors) = self.wire.mirrors() else {
            return;
        };
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
    raw.and_then(|raw| Object::parse(raw).ok()?.text("message"))
        .unwrap_or_else(|| "an error without a message".into())
}

/// A duration as servers write it, fractions included.
fn milliseconds(json: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(json.parse::<f64>().ok()? / 1000.0).ok()
}
