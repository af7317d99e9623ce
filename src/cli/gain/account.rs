//! The account of `mcpzip gain`: savings and costs in tokens, by server and by day.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Serialize;

use super::candidates::{Candidate, candidates};
use crate::app::STATISTICS;
use crate::catalog::{Cache, Key};
use crate::cli::tokens::{ENCODING, Tokens};
use crate::config::{Config, Environment, Paths, Transport};
use crate::day::Day;
use crate::statistics::{DayRecord, History, StatisticsStorage, Tally};

/// Tokens that `execute_tool` adds to a direct call of the tool.
pub(super) const WRAPPING: u64 = 9;

/// Saved and spent tokens.
#[derive(Debug, Serialize)]
pub(super) struct Account {
    pub(super) tokenizer: &'static str,
    /// Which figures are estimates.
    pub(super) estimated: &'static str,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    /// Clients that asked for tools.
    pub(super) clients: u64,
    /// Calls by `mcpzip call`, which are not part of any sum.
    pub(super) calls_by_hand: u64,
    pub(super) sum: Sum,
    pub(super) servers: Vec<ServerSum>,
    pub(super) days: Vec<DaySum>,
    /// Servers whose definitions are not known any more. Nothing is counted as saved for them.
    pub(super) unknown: Vec<String>,
    /// Tools that most clients call, for `show`.
    pub(super) candidates: Vec<Candidate>,
}

/// A sum of savings and costs, in tokens.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Sum {
    /// Definitions that clients without a tool search would have sent to their models, once per client.
    pub(super) definitions: i64,
    /// Tokens that projections left out of results. Negative if an answer was longer than the result.
    pub(super) projected: i64,
    /// Tokens that were left out of results over the budget.
    pub(super) stored: i64,
    /// The definitions and instructions of mcpzip itself.
    pub(super) own: i64,
    pub(super) searches: i64,
    pub(super) descriptions: i64,
    /// Parts of stored results that were read later.
    pub(super) parts: i64,
    /// The text around each call, [`WRAPPING`].
    pub(super) wrapping: i64,
    pub(super) net: i64,
}

#[derive(Debug, Serialize)]
pub(super) struct ServerSum {
    pub(super) server: String,
    pub(super) clients: u64,
    /// Tokens of the server's definitions. `None` if they are not known.
    pub(super) definition_tokens: Option<u64>,
    pub(super) saved: i64,
    pub(super) tools: Vec<ToolSum>,
}

#[derive(Debug, Serialize)]
pub(super) struct ToolSum {
    pub(super) tool: String,
    /// Calls by agents.
    pub(super) calls: u64,
    /// Results that were passed whole, which saved nothing.
    pub(super) whole: u64,
    pub(super) projected: u64,
    pub(super) stored: u64,
    pub(super) received_bytes: u64,
    pub(super) saved: i64,
}

#[derive(Debug, Serialize)]
pub(super) struct DaySum {
    pub(super) day: String,
    pub(super) calls: u64,
    #[serde(flatten)]
    pub(super) sum: Sum,
}

/// Tokens of each server's definitions.
type Costs = BTreeMap<String, u64>;

impl Account {
    pub(super) fn of(
        paths: &Paths,
        environment: &Environment,
        since: Option<Day>,
    ) -> anyhow::Result<Self> {
        let place = StatisticsStorage::of(&environment.state(&paths.state_dir), STATISTICS);
        let history = place.load(since).context("nothing can be shown")?;
        let tokens = Tokens::load()?;
        let account = Self::from(&history, &costs(paths, environment, &tokens));
        let candidates = match Config::load(paths, environment) {
            Ok(config) => candidates(&history.total(), &config, paths, &tokens),
            Err(_) => Vec::new(),
        };
        Ok(Self {
            candidates,
            ..account
        })
    }

    fn from(history: &History, costs: &Costs) -> Self {
        let total = history.total();
        let used = total
            .tools
            .iter()
            .filter(|(_, tools)| tools.values().any(|tally| tally.by_agents() > 0));
        let used = used.map(|(server, _)| server);
        let names = total.answers.servers.keys().chain(used);
        let mut servers: Vec<ServerSum> = names
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .map(|server| server_sum(server, &total, costs))
            .collect();
        servers.sort_by_key(|server| std::cmp::Reverse(server.saved));
        let days = history.days.iter().map(|(day, record)| DaySum {
            day: day.to_string(),
            calls: calls(record),
            sum: Sum::of(record, costs),
        });
        let unknown = total
            .answers
            .servers
            .keys()
            .filter(|server| !costs.contains_key(*server));
        Self {
            tokenizer: ENCODING,
            estimated: "results, answers and instructions are estimated from their text; definitions are counted",
            from: history.days.keys().next().map(ToString::to_string),
            to: history.days.keys().next_back().map(ToString::to_string),
            clients: total.answers.clients,
            calls_by_hand: tallies(&total).map(|tally| tally.by_hand).sum(),
            sum: Sum::of(&total, costs),
            servers,
            days: days.collect(),
            unknown: unknown.cloned().collect(),
            candidates: Vec::new(),
        }
    }
}

impl Sum {
    fn of(record: &DayRecord, costs: &Costs) -> Self {
        let answers = &record.answers;
        let definitions: u64 = answers
            .servers
            .iter()
            .filter_map(|(server, clients)| Some(clients * costs.get(server)?))
            .sum();
        let tallies = || tallies(record);
        let mut sum = Self {
            definitions: signed(definitions),
            projected: tallies()
                .map(|tally| signed(tally.projected.whole) - signed(tally.projected.shown))
                .sum(),
            stored: tallies()
                .map(|tally| signed(tally.stored.whole) - signed(tally.stored.shown))
                .sum(),
            own: signed(answers.own.tokens),
            searches: signed(answers.searches.tokens),
            descriptions: signed(answers.descriptions.tokens),
            parts: signed(answers.parts.tokens),
            wrapping: signed(tallies().map(Tally::by_meta_tools).sum::<u64>() * WRAPPING),
            net: 0,
        };
        sum.net = sum.saved() - sum.paid();
        sum
    }

    pub(super) fn saved(&self) -> i64 {
        self.definitions + self.projected + self.stored
    }

    pub(super) fn paid(&self) -> i64 {
        self.own + self.searches + self.descriptions + self.parts + self.wrapping
    }
}

fn server_sum(server: &str, total: &DayRecord, costs: &Costs) -> ServerSum {
    let clients = total
        .answers
        .servers
        .get(server)
        .copied()
        .unwrap_or_default();
    let tools = total
        .tools
        .get(server)
        .into_iter()
        .flatten()
        .filter(|(_, tally)| tally.by_agents() > 0)
        .map(|(tool, tally)| {
            let (projected, stored) = (tally.projected, tally.stored);
            ToolSum {
                tool: tool.clone(),
                calls: tally.by_agents(),
                whole: tally
                    .by_agents()
                    .saturating_sub(projected.results + stored.results),
                projected: projected.results,
                stored: stored.results,
                received_bytes: tally.received,
                saved: signed(projected.whole + stored.whole)
                    - signed(projected.shown + stored.shown),
            }
        });
    let tools: Vec<ToolSum> = tools.collect();
    let definition_tokens = costs.get(server).copied();
    let saved = signed(clients * definition_tokens.unwrap_or_default())
        + tools.iter().map(|tool| tool.saved).sum::<i64>();
    ServerSum {
        server: server.to_owned(),
        clients,
        definition_tokens,
        saved,
        tools,
    }
}

/// Calls by agents.
fn calls(record: &DayRecord) -> u64 {
    tallies(record).map(Tally::by_agents).sum()
}

fn tallies(record: &DayRecord) -> impl Iterator<Item = &Tally> {
    record.tools.values().flat_map(BTreeMap::values)
}

fn signed(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

/// Counts the definitions of the configured servers in the cache. Empty without a configuration.
fn costs(paths: &Paths, environment: &Environment, tokens: &Tokens) -> Costs {
    let Ok(config) = Config::load(paths, environment) else {
        return Costs::new();
    };
    let cache = Cache::new(Some(&paths.cache_dir));
    let cost = |(server, entry): (&crate::tool::ServerName, &crate::config::Server)| {
        // Without mcpzip, a client has no definitions of a program or an HTTP interface.
        if !is_mcp(&entry.transport) {
            return Some((server.to_string(), 0));
        }
        let known = cache.load(&Key {
            server: server.clone(),
            configuration: entry.hash.to_string(),
        })?;
        // A client does not show app-only tools to its model.
        let seen = known.entries().iter().filter(|entry| !entry.is_app_only);
        let definitions = seen.filter_map(|entry| {
            let tool = serde_json::from_str(known.json(entry).ok()?.get()).ok()?;
            Some(tokens.cost_of_definition(&tool) as u64)
        });
        Some((server.to_string(), definitions.sum()))
    };
    config.servers.iter().filter_map(cost).collect()
}

/// Whether the entry is that of an MCP server.
fn is_mcp(transport: &Transport) -> bool {
    match transport {
        Transport::Stdio(stdio) => stdio.command_line.is_none(),
        Transport::Http(remote) | Transport::Sse(remote) => remote.openapi.is_none(),
        Transport::Folder(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{Answer, CallOutcome, CallPath, Statistics};

    #[test]
    fn what_was_paid_counts_against_what_was_saved() {
        let directory = tempfile::tempdir().unwrap();
        let statistics = Statistics::new(Some(directory.path()));
        statistics.listed(["a", "gone"]);
        statistics.listed(["a"]);
        statistics.answered(Answer::Own, 500);
        statistics.answered(Answer::Search, 300);
        statistics.answered(Answer::Part, 50);
        let outcome = CallOutcome {
            failed: false,
            latency: std::time::Duration::from_millis(1),
            sent: 1,
            received: 9000,
            path: CallPath::MetaTool,
        };
        for _ in 0..3 {
            statistics.called("a", "t", &outcome);
        }
        let by_hand = CallOutcome {
            path: CallPath::Command,
            ..outcome
        };
        statistics.called("a", "t", &by_hand);
        statistics.reduced("a", "t", false, 2000, 100);
        statistics.reduced("a", "t", true, 30_000, 1_000);
        let history = statistics.history(None).unwrap();
        let account = Account::from(
            &history,
            &Costs::from([("a".to_owned(), 1000), ("unused".to_owned(), 7)]),
        );
        let sum = account.sum;
        assert_eq!(
            (sum.definitions, sum.projected, sum.stored),
            (2000, 1900, 29_000)
        );
        assert_eq!(
            (sum.own, sum.searches, sum.parts, sum.wrapping),
            (500, 300, 50, 27)
        );
        assert_eq!(sum.net, 2000 + 1900 + 29_000 - 500 - 300 - 50 - 27);
        assert_eq!(account.unknown, ["gone"]);
        assert_eq!((account.clients, account.calls_by_hand), (2, 1));
        let server = &account.servers[0];
        assert_eq!(
            (server.server.as_str(), server.saved, server.tools[0].whole),
            ("a", 32_900, 1)
        );
        assert_eq!(
            account.days.iter().map(|day| day.sum.net).sum::<i64>(),
            sum.net
        );
    }

    #[test]
    fn what_stands_around_a_call_is_what_a_tokenizer_says() {
        let tokens = Tokens::load().unwrap();
        let plain = r#"mcp__github__create_issue{"title":"A title"}"#;
        let wrapped = r#"mcp__zip__execute_tool{"name":"github__create_issue","arguments":{"title":"A title"}}"#;
        let more = tokens.count(wrapped) - tokens.count(plain);
        assert!((more as u64).abs_diff(WRAPPING) <= 2, "{more}");
    }
}
