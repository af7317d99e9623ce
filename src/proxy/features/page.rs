//! The combined lists of all servers, in pages.
//!
//! A cursor names the last entry of a page and its position. If the list changes between two pages, the next page
//! begins after that entry if it still exists, else at its former position.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::value::RawValue;

use super::Features;
use crate::catalog::{Entries, ServerTools};
use crate::config::Exposure;
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Object};
use crate::proxy::inventory::SkillGuard;
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply};
use crate::tool::ServerName;

/// The number of entries on a page.
pub(in crate::proxy) const PAGE: usize = 500;

/// How long a list counts as fresh if its servers do not say; earlier changes are announced.
const FRESH_FOR: Duration = Duration::from_secs(60);

/// How long a list waits for servers that were never listed.
pub(in crate::proxy) const FIRST_LISTING: Duration = Duration::from_secs(4);

/// A kind of list that all servers have.
#[derive(Debug, Clone, Copy)]
pub(in crate::proxy) struct List {
    /// The name of the member in the result.
    pub(in crate::proxy) member: &'static str,
    /// The server's entries.
    pub(in crate::proxy) entries: fn(&ServerTools) -> &Entries,
    /// Whether the server's entries are visible.
    pub(in crate::proxy) is_exposed: fn(Exposure) -> bool,
    /// Renders an entry for clients from its definition, server and key; `true` if another server has an entry with
    /// the same key.
    pub(in crate::proxy) show: fn(&RawValue, &ServerName, &str, bool) -> String,
}

/// The end of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy) struct Cursor {
    pub(in crate::proxy) server: ServerName,
    pub(in crate::proxy) index: usize,
    pub(in crate::proxy) key: String,
}

impl Cursor {
    /// The cursor of a request, if it has one.
    pub(in crate::proxy) fn of(params: &Object<'_>) -> Result<Option<Self>, Reply> {
        match params.get("cursor").filter(|raw| raw.get() != "null") {
            None => Ok(None),
            Some(_) => match params.text("cursor").and_then(|text| Self::parse(&text)) {
                Some(cursor) => Ok(Some(cursor)),
                None => Err(Reply::invalid_params("`cursor` is invalid")),
            },
        }
    }

    /// The member of the result with this cursor.
    pub(in crate::proxy) fn next_member(&self) -> String {
        format!(r#","nextCursor":{}"#, quoted(&self.to_text()))
    }

    fn parse(text: &str) -> Option<Self> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let mut parts = text.splitn(3, '\n');
        Some(Self {
            server: ServerName::new(parts.next()?).ok()?,
            index: parts.next()?.parse().ok()?,
            key: parts.next()?.to_owned(),
        })
    }

    fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}\n{}\n{}", self.server, self.index, self.key))
    }

    /// The position in the list of `server` at which the next page begins; `None` if that server is complete.
    /// `position` finds an entry by its key.
    pub(in crate::proxy) fn start(
        &self,
        server: &ServerName,
        position: impl Fn(&str) -> Option<usize>,
    ) -> Option<usize> {
        match server.cmp(&self.server) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Equal => Some(position(&self.key).map_or(self.index, |at| at + 1)),
            std::cmp::Ordering::Greater => Some(0),
        }
    }
}

impl Features {
    /// Answers a request for a page of `list`.
    pub(in crate::proxy) async fn page(
        &self,
        view: &View,
        caller: &Caller,
        params: &Object<'_>,
        list: List,
    ) -> Reply {
        let cursor = match Cursor::of(params) {
            Ok(cursor) => cursor,
            Err(refusal) => return refusal,
        };
        self.inventory.known(None, FIRST_LISTING).await;
        self.inventory.renew();
        let servers = view.exposing(list.is_exposed);
        let (mut positions, next) = page(&servers, list, cursor.as_ref());
        if list.member == "resources" {
            let guards = servers.iter();
            let guards = guards.map(|server| self.inventory.skill_guard(view, server.name()));
            let guards: Vec<Option<SkillGuard>> = guards.collect();
            // Files of a skill that the client may not see.
            positions.retain(|(at, index)| {
                let key = &(list.entries)(&servers[*at]).as_slice()[*index].key;
                guards[*at]
                    .as_ref()
                    .is_none_or(|guard| !guard.withholds(key))
            });
        }
        let fresh_for = fresh_for(&servers);
        let shown = self
            .tasks
            .spawn_blocking(move || show(&servers, list, &positions));
        let Ok((entries, unreadable)) = shown.await else {
            return Reply::error(ErrorCode::INTERNAL, "the list could not be read".to_owned());
        };
        for server in unreadable {
            self.inventory.discard(&server);
        }
        let next = next.map(|next| next.next_member()).unwrap_or_default();
        // A list may depend on the user's own servers and logins.
        let freshness = if caller.revision.is_modern() {
            format!(
                r#""ttlMs":{},"cacheScope":"private","#,
                fresh_for.as_millis()
            )
        } else {
            String::new()
        };
        Reply::Result(
            format!(
                r#"{{{freshness}"{}":[{}]{next}}}"#,
                list.member,
                entries.join(",")
            )
            .into(),
        )
    }
}

/// The entries of a page, as indexes of servers and entries, and the cursor of the next page.
fn page(
    servers: &[Arc<ServerTools>],
    list: List,
    cursor: Option<&Cursor>,
) -> (Vec<(usize, usize)>, Option<Cursor>) {
    let all = servers.iter().enumerate().flat_map(|(at, server)| {
        let entries = (list.entries)(server);
        let start = cursor.map_or(Some(0), |cursor| {
            cursor.start(server.name(), |key| entries.position(key))
        });
        (start.unwrap_or(entries.len())..entries.len()).map(move |index| (at, index))
    });
    let mut positions: Vec<(usize, usize)> = all.take(PAGE + 1).collect();
    if positions.len() <= PAGE {
        return (positions, None);
    }
    positions.truncate(PAGE);
    let (at, index) = positions[PAGE - 1];
    let server = &servers[at];
    let key = (list.entries)(server).as_slice()[index].key.to_string();
    (
        positions,
        Some(Cursor {
            server: server.name().clone(),
            index,
            key,
        }),
    )
}

/// The entries as clients see them, and the servers whose definitions could not be read.
fn show(
    servers: &[Arc<ServerTools>],
    list: List,
    positions: &[(usize, usize)],
) -> (Vec<String>, Vec<ServerName>) {
    let mut unreadable = Vec::new();
    let mut entries = Vec::with_capacity(positions.len());
    for (at, index) in positions {
        let server = &servers[*at];
        let entry = &(list.entries)(server).as_slice()[*index];
        match server.json_of(entry) {
            Ok(json) => {
                let others = servers.iter().filter(|other| other.name() != server.name());
                let is_shared = others
                    .into_iter()
                    .any(|other| (list.entries)(other).has(&entry.key));
                entries.push((list.show)(&json, server.name(), &entry.key, is_shared));
            }
            Err(error) => {
                tracing::warn!(server = %server.name(), %error, "the server is listed again");
                unreadable.push(server.name().clone());
            }
        }
    }
    unreadable.dedup();
    (entries, unreadable)
}

/// How long the servers' lists stay fresh: the shortest remaining time.
fn fresh_for(servers: &[Arc<ServerTools>]) -> Duration {
    let left = servers.iter().filter_map(|server| {
        let age = SystemTime::now()
            .duration_since(server.listed_at())
            .unwrap_or_default();
        Some(server.fresh_for()?.saturating_sub(age))
    });
    left.min().unwrap_or(FRESH_FOR).min(FRESH_FOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Cache, Key, Listed};

    const LIST: List = List {
        member: "prompts",
        entries: ServerTools::prompts,
        is_exposed: |_| true,
        show: |json, _, _, _| json.get().to_owned(),
    };

    fn server(name: &str, prompts: impl Iterator<Item = usize>) -> Arc<ServerTools> {
        let key = Key {
            server: ServerName::new(name).unwrap(),
            configuration: String::new(),
        };
        let prompts = prompts
            .map(|number| format!(r#"{{"name":"p{number}"}}"#).into())
            .collect();
        Arc::new(Cache::new(None).store(
            &key,
            &Listed {
                prompts,
                ..Listed::default()
            },
        ))
    }

    fn names(servers: &[Arc<ServerTools>], positions: &[(usize, usize)]) -> Vec<String> {
        let name = |(at, index): &(usize, usize)| {
            format!(
                "{}{}",
                servers[*at].name(),
                servers[*at].prompts().as_slice()[*index].key
            )
        };
        positions.iter().map(name).collect()
    }

    #[test]
    fn pages_cover_everything_once_in_the_servers_order() {
        let servers = [
            server("a", (0..700).rev()),
            server("b", 0..3),
            server("c", 0..600),
        ];
        let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let (positions, next) = page(&servers, LIST, cursor.as_ref());
            assert!(positions.len() <= PAGE);
            seen.extend(names(&servers, &positions));
            pages += 1;
            let Some(next) = next else { break };
            assert_eq!(Cursor::parse(&next.to_text()), Some(next.clone()));
            cursor = Some(next);
        }
        let expected = (0..700)
            .rev()
            .map(|n| format!("ap{n}"))
            .chain((0..3).map(|n| format!("bp{n}")));
        assert_eq!(
            seen,
            expected
                .chain((0..600).map(|n| format!("cp{n}")))
                .collect::<Vec<_>>()
        );
        assert_eq!(pages, 3);
    }

    #[test]
    fn a_list_that_changes_between_two_pages_is_gone_on_with() {
        let (_, next) = page(&[server("a", 0..600)], LIST, None);
        let first_after = |servers: &[Arc<ServerTools>]| {
            let (positions, _) = page(servers, LIST, next.as_ref());
            names(servers, &positions).first().cloned()
        };
        assert_eq!(
            first_after(&[server("a", 0..600)]).as_deref(),
            Some("ap500")
        );
        assert_eq!(
            first_after(&[server("a", (1000..1010).chain(0..600))]).as_deref(),
            Some("ap500")
        );
        assert_eq!(
            first_after(&[server("a", (0..600).filter(|n| *n != 499))]).as_deref(),
            Some("ap500")
        );
        assert_eq!(
            first_after(&[server("a", 0..500), server("b", 7..9)]).as_deref(),
            Some("bp7")
        );
        assert_eq!(first_after(&[server("b", 7..9)]).as_deref(), Some("bp7"));
        assert_eq!(first_after(&[server("A", 0..600)]), None);
    }

    #[test]
    fn a_cursor_that_is_none_of_ours_is_not_read() {
        for text in ["", "x", "YQ", "!", "YSBiCjEKeA"] {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }
}
