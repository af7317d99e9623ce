//! The meta-tool `search_tools`, and searches of the command line.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::{Tools, builtin};
use crate::catalog::Snapshot;
use crate::config::{BUILT_IN_SERVER, SearchOptions};
use crate::mcp::Object;
use crate::proxy::inventory::waiting_text;
use crate::proxy::view::View;
use crate::proxy::{Progress, Reply};
use crate::search::rerank::{CANDIDATES, Ranking, Reranker};
use crate::search::{Error, Explained, Explanation, Hit, Request};
use crate::tool::{Definition, ServerName, render_hits};

/// The average token budget of a hit: 400 tokens for five.
const TOKENS_PER_HIT: usize = 80;

/// How long a search waits for an index, if there is none or it lacks a server.
const FIRST_INDEX: Duration = Duration::from_secs(10);

impl Tools {
    /// Finds tools: `{query, limit?, server?}`.
    pub(in crate::proxy) async fn search_tools(
        &self,
        view: &View,
        arguments: &Object<'_>,
    ) -> Reply {
        let config = view.config();
        let Some(query) = arguments
            .text("query")
            .filter(|query| !query.trim().is_empty())
        else {
            return Reply::tool_error(
                "search_tools needs a `query`: what you need done, in a few words",
            );
        };
        let limit = match arguments
            .get("limit")
            .map(|raw| raw.get().trim_matches('"'))
        {
            None | Some("null") => config.search.default_limit,
            Some(text) => match text.parse::<f64>() {
                Ok(limit) if limit.fract() == 0.0 && limit >= 1.0 => {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "whole and positive"
                    )]
                    let limit = limit as usize;
                    limit.min(*SearchOptions::LIMITS.end())
                }
                _ => return Reply::tool_error("`limit` must be a whole number from 1 to 50"),
            },
        };
        let server = arguments.text("server").filter(|server| !server.is_empty());
        match self.search(view, &query, limit, server.as_deref()).await {
            Ok(answer) => Reply::text(&answer.written(|own| view.advised(own).into_owned())),
            Err(error) => Reply::tool_error(&error.to_string()),
        }
    }

    /// Searches, with the answer for agents and people.
    ///
    /// # Errors
    /// When there is no answer.
    pub(crate) async fn search(
        &self,
        view: &View,
        query: &str,
        limit: usize,
        server: Option<&str>,
    ) -> Result<SearchResult, SearchError> {
        self.inventory.index().prepare(query);
        let (snapshot, server) = self.searchable(view, server).await?;
        let hits = self
            .hits(view, &snapshot, query, limit, server.as_deref())
            .await?;
        self.note_search(view, query, &hits);
        let render = || self.render(&snapshot, &hits);
        let found = self.rendered.of(&snapshot, &hits, render);
        let unlisted = self.inventory.unlisted(&snapshot);
        let is_under_way =
            |progress: &Progress| matches!(progress, Progress::NotAsked | Progress::UnderWay);
        let config = view.config();
        let mut of_entries = unlisted
            .iter()
            .filter(|(server, _)| config.servers.contains_key(*server));
        let is_waiting = of_entries.any(|(_, progress)| is_under_way(progress));
        let missing = self.missing(view, server.as_deref(), unlisted).await;
        let is_blind = !missing.is_empty()
            && snapshot
                .servers()
                .all(|known| known.name().as_str() == BUILT_IN_SERVER);
        let wanted = |name: &ServerName| {
            name.as_str() != BUILT_IN_SERVER
                && server
                    .as_deref()
                    .is_none_or(|server| server == name.as_str())
        };
        // The rest explains an empty answer.
        let is_empty = found.is_empty();
        let mut names = snapshot.servers().map(|known| known.name());
        let has_held = is_empty && names.any(|name| wanted(name) && snapshot.withheld(name) > 0);
        let mut tools = snapshot.tools();
        let is_held = has_held && !tools.any(|tool| wanted(tool.server().name()));
        let (mut waiting, mut servers) = (Vec::new(), Vec::new());
        if is_empty {
            waiting = self.inventory.waiting(&config);
            waiting.retain(|name| wanted(name) && view.is_reachable(name));
            servers = self.server_names(view);
        }
        Ok(SearchResult {
            found,
            is_waiting,
            is_held,
            waiting,
            missing,
            servers,
            is_blind,
        })
    }

    /// Explains the scores of each stage of a search.
    ///
    /// # Errors
    /// Like [`Tools::search`].
    pub(crate) async fn explain(
        &self,
        view: &View,
        query: &str,
        limit: usize,
        server: Option<&str>,
    ) -> Result<Explanation, SearchError> {
        let (snapshot, server) = self.searchable(view, server).await?;
        let reranker = self.reranking.reranker(view).await;
        let local = reranker.as_ref().map_or(limit, |_| limit.max(CANDIDATES));
        let without = left_out(view, query, server.as_deref());
        let request = Request {
            query,
            limit: local,
            server: server.as_deref(),
            without: &without,
        };
        let mut explanation = self.local_explanation(view, &request).await?;
        if let Some(reranker) = reranker {
            let local: Vec<Explained> = match explanation.fits {
                true => explanation.hits.clone(),
                false => Vec::new(),
            };
            let hits: Vec<Hit> = local.iter().map(|it| it.hit.clone()).collect();
            if let Some(ranking) = self.ranking(&reranker, &snapshot, query, &hits).await {
                let ranked = local.into_iter().enumerate().map(|(at, hit)| Explained {
                    rank_before_model: Some(at + 1),
                    ..hit
                });
                let ranked: Vec<Explained> = ranked.collect();
                let mut more = Vec::new();
                if let Some(words) = &ranking.words {
                    let request = Request {
                        query: words,
                        ..request
                    };
                    let found = self.local_explanation(view, &request).await?;
                    more = found.hits;
                    more.retain(|it| found.fits && !is_among(&hits, &it.hit));
                    explanation.words_of_model.clone_from(&ranking.words);
                }
                if explanation.fits || !more.is_empty() {
                    explanation.fits = true;
                    explanation.hits = ranking.ordered(&ranked, &more);
                }
            }
        }
        explanation.hits.truncate(limit);
        Ok(explanation)
    }

    /// The best `limit` hits for a query, ordered by the language model if there is one.
    ///
    /// # Errors
    /// Like [`crate::search::Search::search`].
    pub(in crate::proxy) async fn hits(
        &self,
        view: &View,
        snapshot: &Snapshot,
        query: &str,
        limit: usize,
        server: Option<&str>,
    ) -> Result<Arc<[Hit]>, crate::search::Error> {
        let without = left_out(view, query, server);
        let request = Request {
            query,
            limit,
            server,
            without: &without,
        };
        let Some(reranker) = self.reranking.reranker(view).await else {
            return self.local_hits(view, &request).await;
        };
        let request = Request {
            limit: limit.max(CANDIDATES),
            ..request
        };
        let hits = self.local_hits(view, &request).await?;
        let Some(ranking) = self.ranking(&reranker, snapshot, query, &hits).await else {
            return Ok(hits.iter().take(limit).cloned().collect());
        };
        let mut more = Vec::new();
        if let Some(words) = &ranking.words {
            let request = Request {
                query: words,
                ..request
            };
            more = self.local_hits(view, &request).await?.to_vec();
            more.retain(|hit| !is_among(&hits, hit));
        }
        let ordered = ranking.ordered(&hits, &more);
        Ok(ordered.into_iter().take(limit).collect())
    }

    /// The language model's answer about `hits`; `None` if the local order is kept.
    async fn ranking(
        &self,
        reranker: &Reranker,
        snapshot: &Snapshot,
        query: &str,
        hits: &[Hit],
    ) -> Option<Arc<Ranking>> {
        let shown: Vec<_> = self
            .render(snapshot, hits)
            .into_iter()
            .map(|found| found.text)
            .collect();
        // A hit that cannot be rendered has no number.
        if shown.len() == hits.len() {
            reranker.ranking(query, &shown).await
        } else {
            None
        }
    }

    /// Waits until there are tools to search, and resolves the server's name.
    async fn searchable(
        &self,
        view: &View,
        server: Option<&str>,
    ) -> Result<(Arc<Snapshot>, Option<String>), SearchError> {
        self.inventory.loaded().await;
        let is_blind = view
            .snapshot()
            .servers()
            .all(|known| known.name().as_str() == BUILT_IN_SERVER);
        self.inventory.release();
        if self.inventory.settled(server, is_blind).await {
            self.inventory.index().wait_current(FIRST_INDEX).await;
        }
        self.inventory.index().wait(FIRST_INDEX).await;
        self.inventory.list_unread();
        self.inventory.renew();
        let snapshot = view.snapshot();
        let server = server
            .map(|name| self.server_name(view, &snapshot, name))
            .transpose()?;
        Ok((snapshot, server))
    }

    pub(in crate::proxy) fn render(&self, snapshot: &Snapshot, hits: &[Hit]) -> Vec<Found> {
        let definitions: Vec<_> = hits
            .iter()
            .filter_map(|hit| {
                // The index may be older than the catalog.
                let tool = snapshot.tool(&hit.server, &hit.tool)?;
                Some((
                    hit,
                    tool.qualified_name(),
                    self.inventory.definition(&tool)?,
                ))
            })
            .collect();
        let read: Vec<_> = definitions
            .iter()
            .filter_map(|(hit, name, json)| Some((*hit, name, Definition::parse(json).ok()?)))
            .collect();
        let tools = read
            .iter()
            .map(|(hit, _, definition)| (&hit.server, definition));
        let texts = render_hits(tools, TOKENS_PER_HIT * hits.len());
        let named = read
            .iter()
            .map(|(hit, name, _)| (hit.score, name.to_string()));
        named
            .zip(texts)
            .map(|((score, name), text)| Found { name, score, text })
            .collect()
    }

    /// The configured server that `name` means, ignoring letter case and dashes.
    fn server_name(
        &self,
        view: &View,
        snapshot: &Snapshot,
        name: &str,
    ) -> Result<String, SearchError> {
        let fold = |name: &str| name.replace(['-', '_', '.', ' '], "").to_lowercase();
        let config = view.config();
        let names = || {
            let listed = snapshot.servers().map(|known| known.name());
            listed.chain(config.servers.keys())
        };
        names()
            .find(|known| known.as_str() == name)
            .or_else(|| names().find(|known| fold(known.as_str()) == fold(name)))
            .map(ToString::to_string)
            .ok_or_else(|| SearchError::UnknownServer {
                name: name.to_owned(),
                servers: self.server_names(view),
            })
    }

    /// The names of the configured servers, including faulty ones.
    fn server_names(&self, view: &View) -> Vec<String> {
        let config = view.config();
        let usable = config
            .servers
            .iter()
            .filter(|(_, entry)| !entry.disabled)
            .map(|(name, _)| name.to_string());
        usable
            .chain(config.faults.iter().map(|fault| fault.name.clone()))
            .collect()
    }

    /// Those of the `unlisted` servers whose tools could not be searched, each with the reason.
    async fn missing(
        &self,
        view: &View,
        wanted: Option<&str>,
        unlisted: BTreeMap<ServerName, Progress>,
    ) -> Vec<String> {
        let config = view.config();
        let mut failures = self.inventory.earlier_failures(&unlisted).await;
        let unlisted = unlisted.into_iter().filter_map(|(name, progress)| {
            let reason = match progress {
                _ if !config.servers.contains_key(&name)
                    || wanted.is_some_and(|wanted| wanted != name.as_str()) =>
                {
                    None
                }
                Progress::Listed => None,
                Progress::NotAsked | Progress::UnderWay => Some(match failures.remove(&name) {
                    Some(failure) => format!("still being listed; {failure}"),
                    None => "still being listed".to_owned(),
                }),
                Progress::Failed(reason) => {
                    let reason = self.inventory.told(&name, &reason);
                    Some(config.masker.mask(&reason).into_owned())
                }
            };
            reason.map(|reason| format!("{name} ({reason})"))
        });
        let faulty = config
            .faults
            .iter()
            .filter(|fault| wanted.is_none_or(|wanted| wanted == fault.name))
            .map(|fault| format!("{} ({})", fault.name, fault.fault));
        unlisted.chain(faulty).collect()
    }
}

fn is_among(hits: &[Hit], hit: &Hit) -> bool {
    hits.iter()
        .any(|known| (&known.server, &known.tool) == (&hit.server, &hit.tool))
}

/// A query about mcpzip itself has one of these names, or a subject and another word of the built-in tools. One word alone
/// is often about something else: the status of an order, the result of a match, a web server.
const OWN_NAMES: [&str; 3] = ["mcpzip", "mcp", "proxy"];
const OWN_SUBJECTS: [&str; 4] = ["server", "tool", "result", "script"];
const OWN_WORDS: [&str; 29] = [
    "status",
    "state",
    "stat",
    "statistic",
    "log",
    "stderr",
    "stored",
    "shortened",
    "truncated",
    "large",
    "rest",
    "call",
    "called",
    "latency",
    "error",
    "fail",
    "failed",
    "down",
    "connected",
    "reconnect",
    "refresh",
    "restart",
    "configured",
    "configuration",
    "add",
    "remove",
    "enable",
    "disable",
    "list",
];

/// The servers that a search leaves out: those hidden from the client, and the built-in one unless the query is about
/// it. Its tools are few and general, so they would be the closest match of every query without a real one.
fn left_out(view: &View, query: &str, server: Option<&str>) -> Vec<ServerName> {
    let mut without = view.hidden_servers();
    if server != Some(BUILT_IN_SERVER) && !is_about_us(query) {
        without.push(builtin::name());
    }
    without
}

fn is_about_us(query: &str) -> bool {
    let query = query.to_lowercase();
    let (mut subjects, mut others) = (HashSet::new(), false);
    for word in query.split(|c: char| !c.is_alphanumeric()) {
        let singular = word.strip_suffix('s').unwrap_or(word);
        let is_among = |words: &[&str]| words.contains(&word) || words.contains(&singular);
        if is_among(&OWN_NAMES) {
            return true;
        }
        if is_among(&OWN_SUBJECTS) {
            subjects.insert(singular);
        }
        others |= is_among(&OWN_WORDS);
    }
    subjects.len() > 1 || (others && !subjects.is_empty())
}

/// Why a search has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SearchError {
    /// No server has this name.
    #[error("there is no server `{name}`; the servers are {}", list(.servers))]
    UnknownServer {
        /// The requested name.
        name: String,
        /// The names of the configured servers.
        servers: Vec<String>,
    },
    /// There is no index yet.
    #[error("the search index is still being built; try again in a moment")]
    Building,
    /// The index is unusable; the log has the reason.
    #[error("the search index could not be read and is being built again; try again in a moment")]
    Unreadable,
}

impl From<Error> for SearchError {
    fn from(error: Error) -> Self {
        tracing::error!(%error, "search failed");
        match error {
            Error::Missing => Self::Building,
            _ => Self::Unreadable,
        }
    }
}

/// The result of a search.
#[derive(Debug, Clone)]
pub(crate) struct SearchResult {
    /// The hits, best first.
    pub found: Vec<Found>,
    /// The servers that could not be searched, each with the reason.
    pub missing: Vec<String>,
    /// The names of all servers, if nothing is found.
    servers: Vec<String>,
    /// Whether no server's tools were known, so that the result says nothing about which tools exist.
    is_blind: bool,
    /// Whether a server is still being listed.
    is_waiting: bool,
    /// Whether nothing is found because every tool of the servers is held back.
    is_held: bool,
    /// The servers that wait for a person, if nothing is found.
    waiting: Vec<ServerName>,
}

/// One hit.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// `server__tool`.
    pub name: String,
    /// The score.
    pub score: f32,
    /// The signature and the first sentence of the description.
    pub text: String,
}

impl SearchResult {
    /// The result as text. `advised` suits the words of mcpzip to the reader: each reason alone, and never the texts of hits, which are
    /// those of servers.
    fn written(&self, advised: impl Fn(&str) -> String) -> String {
        let mut lines: Vec<String> = self.found.iter().map(|found| found.text.clone()).collect();
        if lines.is_empty() {
            lines.push(if self.is_blind && self.is_waiting {
                "No server has listed its tools yet; search again in a moment.".to_owned()
            } else if self.is_blind {
                "No server could list its tools.".to_owned()
            } else if self.servers.is_empty() {
                "No tool fits: no server is configured.".to_owned()
            } else if self.is_held {
                let servers = list(&self.servers);
                format!("No tool fits: every tool is held back; the servers are {servers}.")
            } else {
                format!(
                    "No tool fits. Other words may help; the servers are {}.",
                    list(&self.servers)
                )
            });
            lines.extend(waiting_text(&self.waiting).map(|text| advised(&text)));
        }
        if !self.missing.is_empty() {
            let missing: Vec<String> = self.missing.iter().map(|one| advised(one)).collect();
            lines.push(format!("Not searched: {}", list(&missing)));
        }
        lines.join("\n")
    }
}

impl std::fmt::Display for SearchResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.written(str::to_owned))
    }
}

/// Some of `names`, and the number of the others.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 30;
    match names.len() {
        0 => "no servers".to_owned(),
        length if length > SHOWN => {
            format!("{} and {} more", names[..SHOWN].join(", "), length - SHOWN)
        }
        _ => names.join(", "),
    }
}
