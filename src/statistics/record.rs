use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Histogram;

/// What was counted on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DayRecord {
    /// The calls, by server and tool.
    pub tools: BTreeMap<String, BTreeMap<String, Tally>>,
    /// What else went to agents.
    pub answers: Answers,
}

/// The calls of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// How many.
    pub calls: u64,
    /// How many failed.
    pub errors: u64,
    /// Bytes of arguments.
    pub sent: u64,
    /// Bytes of results.
    pub received: u64,
    /// How long they took.
    pub latency: Histogram,
    /// Results of which the agent asked for a part.
    pub projected: Reduced,
    /// Results that were over the budget.
    pub stored: Reduced,
}

/// Results of which a part went to the agent, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reduced {
    /// How many.
    pub results: u64,
    /// What the whole results would have cost.
    pub whole: u64,
    /// What went to the agent in their place.
    pub shown: u64,
}

/// What went to agents beside the results of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    /// Clients that asked for the tools.
    pub clients: u64,
    /// Of them, those behind whom each server was.
    pub servers: BTreeMap<String, u64>,
    /// Our own definitions and instructions.
    pub own: Count,
    /// Answers to searches.
    pub searches: Count,
    /// Descriptions of tools.
    pub descriptions: Count,
    /// Parts of stored results, read later.
    pub parts: Count,
}

/// How often, and how many tokens in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Count {
    /// How often.
    pub times: u64,
    /// Tokens in all.
    pub tokens: u64,
}

impl DayRecord {
    /// The calls of one tool; found without making names where it is known.
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

    /// Adds what another counted.
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
    /// Adds what another counted.
    pub fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
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
