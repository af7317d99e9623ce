//! Counts of calls by tool and word.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::day::Day;
use crate::search::Hit;

/// A word of a query, by a part of its salted hash. Several stems of English share a value.
pub(super) type Word = u16;

/// The days after which a count is half as much.
const HALF_LIFE: f32 = 30.0;
/// Smaller counts are removed.
const LEAST: f32 = 0.2;
/// The largest count, so that a new habit replaces an old one after a few calls.
const MOST: f32 = 5.0;
/// The most tools and the most words of a tool; the ones with the smallest counts are removed.
const TOOLS: usize = 400;
const WORDS: usize = 32;
/// The calls of a word that count for no tool: a tool that was called once after it gets half of the word.
const OTHERS: f32 = 1.0;

/// A tool that was called after a search.
#[derive(Debug, Clone)]
pub(super) struct Lesson {
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) words: Vec<Word>,
}

/// For each tool the words of the searches after which it was called, each with a count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    tools: BTreeMap<String, BTreeMap<String, BTreeMap<Word, f32>>>,
}

impl Table {
    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The number of tools.
    pub(super) fn len(&self) -> usize {
        self.tools.values().map(BTreeMap::len).sum()
    }

    /// The servers and names of the tools.
    pub(super) fn names(&self) -> impl Iterator<Item = (String, String)> {
        let tools = self.tools.iter();
        tools.flat_map(|(server, tools)| tools.keys().map(|tool| (server.clone(), tool.clone())))
    }

    /// Counts a call.
    pub(super) fn learn(&mut self, lesson: &Lesson) {
        let tools = self.tools.entry(lesson.server.clone()).or_default();
        let words = tools.entry(lesson.tool.clone()).or_default();
        for word in &lesson.words {
            let count = words.entry(*word).or_default();
            *count = (*count + 1.0).min(MOST);
        }
        while words.len() > WORDS {
            let others = words
                .iter()
                .filter(|(word, _)| !lesson.words.contains(word));
            let Some((least, _)) = others.min_by(|a, b| a.1.total_cmp(b.1)) else {
                break;
            };
            let least = *least;
            words.remove(&least);
        }
        while self.len() > TOOLS {
            self.remove_least(lesson);
        }
    }

    /// Removes the tool with the smallest counts, but not that of `lesson`.
    fn remove_least(&mut self, lesson: &Lesson) {
        let tools = self.tools.iter().flat_map(|(server, tools)| {
            tools
                .iter()
                .map(move |(tool, words)| (server, tool, words.values().sum::<f32>()))
        });
        let others =
            tools.filter(|(server, tool, _)| (*server, *tool) != (&lesson.server, &lesson.tool));
        let least = others.min_by(|a, b| a.2.total_cmp(&b.2));
        let Some((server, tool)) = least.map(|(server, tool, _)| (server.clone(), tool.clone()))
        else {
            return;
        };
        if let Some(tools) = self.tools.get_mut(&server) {
            tools.remove(&tool);
        }
        self.tools.retain(|_, tools| !tools.is_empty());
    }

    /// Reduces counts of the day `from` to those of the day `to`.
    pub(super) fn age(&mut self, from: Day, to: Day) {
        let factor = 0.5f32.powf(to.days_since(from) as f32 / HALF_LIFE);
        for tools in self.tools.values_mut() {
            for words in tools.values_mut() {
                words.values_mut().for_each(|count| *count *= factor);
                words.retain(|_, count| *count >= LEAST);
            }
            tools.retain(|_, words| !words.is_empty());
        }
        self.tools.retain(|_, tools| !tools.is_empty());
    }

    /// How much each hit's tool was called after searches with these words, from 0 to nearly 1: the mean over the
    /// words of the tool's share in all calls after them.
    pub(super) fn shares(&self, words: &[Word], hits: &[&Hit]) -> Vec<f32> {
        let mut shares = vec![0.0; hits.len()];
        for word in words {
            let of_all = self.tools.values().flat_map(BTreeMap::values);
            let all: f32 = of_all.filter_map(|words| words.get(word)).sum();
            if all == 0.0 {
                continue;
            }
            for (share, hit) in shares.iter_mut().zip(hits) {
                *share += self.count(hit, *word) / (all + OTHERS);
            }
        }
        let number = words.len().max(1) as f32;
        shares.iter_mut().for_each(|share| *share /= number);
        shares
    }

    fn count(&self, hit: &Hit, word: Word) -> f32 {
        let tools = self.tools.get(hit.server.as_str());
        let words = tools.and_then(|tools| tools.get(hit.tool.as_str()));
        words
            .and_then(|words| words.get(&word))
            .copied()
            .unwrap_or_default()
    }

    /// Whether every count can be one that was stored here: a file may have any.
    pub(super) fn is_sound(&self) -> bool {
        let is_sound = |words: &BTreeMap<Word, f32>| {
            words.len() <= WORDS && words.values().all(|count| (0.0..=MOST).contains(count))
        };
        let mut words = self.tools.values().flat_map(BTreeMap::values);
        self.len() <= TOOLS && words.all(is_sound)
    }
}
