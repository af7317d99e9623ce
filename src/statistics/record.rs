//! The statistics of one day.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Histogram;

/// The counts of one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DayRecord {
    /// Calls by server and tool.
    pub tools: BTreeMap<String, BTreeMap<String, Tally>>,
    /// Other texts that went to agents.
    pub answers: Answers,
}

/// The calls of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// Number of calls.
    pub calls: u64,
    /// Number of these calls that a command of the user made, not an agent.
    pub by_hand: u64,
    /// Number of these calls that agents made by the tool's own name, not through a meta-tool.
    pub by_own_name: u64,
    /// Number of failed calls.
    pub errors: u64,
    /// Bytes of arguments.
    pub sent: u64,
    /// Bytes of results.
    pub received: u64,
    /// Times of the calls.
    pub latency: Histogram,
    /// Results reduced by `select`.
    pub projected: Reduced,
    /// Results over the budget, which were stored.
    pub stored: Reduced,
}

/// Results of which a part went to the agent, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reduced {
    /// Number of results.
    pub results: u64,
    /// Tokens of the whole results.
    pub whole: u64,
    /// Tokens that went to the agent instead.
    pub shown: u64,
}

/// Texts for agents other than tools' results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    /// Clients that listed the tools.
    pub clients: u64,
    /// The number of these clients for which each server was configured.
    pub servers: BTreeMap<String, u64>,
    /// The definitions and instructions of mcpzip itself.
    pub own: Count,
    /// Answers to searches.
    pub searches: Count,
    /// Descriptions of tools.
    pub descriptions: Count,
    /// Parts of stored results, read later.
    pub parts: Count,
}

/// A number of texts and their tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Count {
    /// Number of texts.
    pub times: u64,
    /// Sum of tokens.
    pub tokens: u64,
}

impl DayRecord {
    /// The calls of one tool. Allocates names only for a new tool.
    pub(super) fn tally(&mut self, server: &str, tool: &str) -> &mut Tally {
        if !self
            .tools
            .get(server)
            .is_some_and(|tools| tools.contains_key(tool))
        {
            self.tools
                .entry(server.to_owned())
                .or_default()
                .insert(tool.to_owned(), Tally::default());
        }
        self.tools
            .get_mut(server)
            .and_then(|tools| tools.get_mut(tool))
            .expect("it was just put there")
    }

    /// Adds the counts of another record.
    pub fn merge(&mut self, other: &Self) {
        for (server, tools) in &other.tools {
            for (tool, tally) in tools {
                self.tally(server, tool).merge(tally);
            }
        }
        let (own, other) = (&mut self.answers, &other.answers);
        own.clients += other.clients;
        for (server, clients) in &other.servers {
            *own.servers.entry(server.clone()).or_default() += clients;
        }
        own.own.merge(other.own);
        own.searches.merge(other.searches);
        own.descriptions.merge(other.descriptions);
        own.parts.merge(other.parts);
    }
}

impl Tally {
    /// Number of calls by agents.
    #[must_use]
    pub fn by_agents(&self) -> u64 {
        self.calls.saturating_sub(self.by_hand)
    }

    /// Number of calls through a meta-tool.
    #[must_use]
    pub fn by_meta_tools(&self) -> u64 {
        self.by_agents().saturating_sub(self.by_own_name)
    }

    /// Adds the counts of another tally.
    pub fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.by_hand += other.by_hand;
        self.by_own_name += other.by_own_name;
        self.errors += other.errors;
        self.sent += other.sent;
        self.received += other.received;
        self.latency.merge(&other.latency);
        self.projected.merge(other.projected);
        self.stored.merge(other.stored);
    }
}

impl Reduced {
    fn merge(&mut self, other: Self) {
        self.results += other.results;
        self.whole += other.whole;
        self.shown += other.shown;
    }
}

impl Count {
    fn merge(&mut self, other: Self) {
        self.times += other.times;
        self.tokens += other.tokens;
    }
}
