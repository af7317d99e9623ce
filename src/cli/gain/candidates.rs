//! Tools that are called so often that it may be worth to list them next to the meta-tools (`show`).

use serde::Serialize;

use crate::catalog::{Cache, Key};
use crate::cli::tokens::Tokens;
use crate::config::{Config, Paths, Surface, Verdict};
use crate::statistics::DayRecord;
use crate::tool::QualifiedName;

/// The least number of calls through `execute_tool`.
const FEWEST_CALLS: u64 = 3;

/// The largest number of candidates.
const MOST: usize = 5;

/// A tool that most clients call.
#[derive(Debug, Serialize)]
pub(super) struct Candidate {
    /// The name for `show`.
    pub(super) tool: String,
    /// Calls through `execute_tool`.
    pub(super) calls: u64,
    /// The tokens of its definition, which each client would send.
    pub(super) tokens: u64,
}

/// The tools with at least one call through `execute_tool` for every two clients, those with most calls first. Tools that are
/// listed already, denied or not known any more are left out.
pub(super) fn candidates(
    total: &DayRecord,
    config: &Config,
    paths: &Paths,
    tokens: &Tokens,
) -> Vec<Candidate> {
    if config.surface.mode == Surface::Direct {
        return Vec::new();
    }
    let cache = Cache::new(Some(&paths.cache_dir));
    let mut found = Vec::new();
    for (server, entry) in config.servers.iter().filter(|(_, entry)| !entry.disabled) {
        let Some(called) = total.tools.get(server.as_str()) else {
            continue;
        };
        let key = Key {
            server: server.clone(),
            configuration: entry.hash.to_string(),
        };
        let Some(known) = cache.load(&key) else {
            continue;
        };
        let known = known.adapted_by(&entry.overrides);
        for tool in known.entries().iter().filter(|tool| !tool.is_app_only) {
            let own = QualifiedName {
                server: server.clone(),
                tool: tool.as_listed().name.clone(),
            };
            let calls = called.get(own.tool.as_str());
            let calls = calls.map_or(0, |tally| tally.by_meta_tools());
            let is_often = calls >= FEWEST_CALLS && 2 * calls >= total.answers.clients;
            let is_shown = |name: &str| config.surface.show.includes(server.as_str(), name);
            let is_listed = is_shown(tool.name.as_str()) || is_shown(own.tool.as_str());
            let (verdict, _) = config.decide(&own, tool.hints, None);
            if !is_often || is_listed || verdict == Verdict::Denied {
                continue;
            }
            let json = known.json(tool).ok();
            let json = json.and_then(|json| serde_json::from_str(json.get()).ok());
            found.extend(json.map(|json| {
                Candidate {
                    tool: QualifiedName {
                        tool: tool.name.clone(),
                        ..own
                    }
                    .to_string(),
                    calls,
                    tokens: tokens.cost_of_definition(&json) as u64,
                }
            }));
        }
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.calls));
    found.truncate(MOST);
    found
}
