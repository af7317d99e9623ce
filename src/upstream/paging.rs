//! Fetches a server's lists page by page, with limits on time, number and size.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::error::ListError;
use super::list_limits::{self, Entries, Over, Taken};
use super::listing::Listing;
use super::reply::{ServerReply, code_of, message_of};
use super::skills;
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Object};
use crate::tool::ServerName;

/// How much longer than the tools the other lists may take. The tools wait for them.
const GRACE: Duration = Duration::from_secs(2);

/// One list with all its pages.
#[derive(Debug, Default)]
struct Pages {
    entries: Vec<Bytes>,
    fresh_for: Option<Duration>,
}

impl Connection {
    /// Fetches all lists for the session `user`. Each page of the tools has the time `limit`. Sessions that ask at the same time
    /// get the same lists.
    ///
    /// # Errors
    /// When the tools cannot be listed.
    pub(crate) async fn list(
        &self,
        server: &ServerName,
        limit: Duration,
        user: u64,
    ) -> Result<Listing, ListError> {
        let fetched = self.listing.get(|| self.fetch(server, limit, user)).await;
        fetched.map(|listing| Listing { user, ..listing })
    }

    async fn fetch(
        &self,
        server: &ServerName,
        limit: Duration,
        user: u64,
    ) -> Result<Listing, ListError> {
        let capabilities = &self.introduction().capabilities;
        let has = |feature: &str| capabilities.has(feature) || capabilities.has_extension(feature);
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
        let (tools, prompts, resources, templates, skills) = tokio::join!(
            tools,
            other("prompts", "prompts/list", "prompts"),
            other("resources", "resources/list", "resources"),
            other("resources", "resources/templates/list", "resourceTemplates"),
            other(skills::EXTENSION, "skills/list", "skills"),
        );
        let mut tools = tools?;
        // Without them, its tools are of use nevertheless.
        let listed = skills.as_ref().map_or(&[][..], |pages| &pages.entries[..]);
        skills::add(server, &mut tools.entries, listed);
        let others =
            [&prompts, &resources, &templates, &skills].map(|pages| pages.as_ref().ok()?.fresh_for);
        let entries = |pages: Result<Pages, ListError>| pages.map(|pages| pages.entries);
        Ok(Listing {
            introduction: self.introduction().clone(),
            user,
            compared: self.compared.clone(),
            fresh_for: others.into_iter().chain([tools.fresh_for]).flatten().min(),
            tools: tools.entries,
            prompts: entries(prompts),
            resources: entries(resources),
            templates: entries(templates),
        })
    }

    /// Fetches the tools only, to learn the headers that they require.
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
            // Some servers have tools but do not declare them, so the list is always requested.
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

    /// Fetches an optional list.
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

    /// Fetches all pages of a list, whose entries are in the member `list`.
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
                    return Err(refused("its pages repeat".into()));
                }
                Some(_) => {}
            }
        }
    }

    /// Learns which arguments are repeated in headers. Removes tools whose annotations are invalid, as the
    /// specification requires (2026-07-28, basic/transports/streamable-http). Stdio has no such headers.
    fn learn_headers(&self, server: &ServerName, tools: &mut Vec<Bytes>) {
        let Some(mirrors) = self.wire.mirrors() else {
            return;
        };
        tools.retain(|entry| match mirrors.learn(entry) {
            Ok(()) => true,
            Err(problem) => {
                tracing::warn!(%server, %problem, "a tool is left out");
                false
            }
        });
    }
}

/// Parses a duration in milliseconds, which may have a fraction.
fn milliseconds(json: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(json.parse::<f64>().ok()? / 1000.0).ok()
}
