//! What the index keeps of a tool, and what its parts count.

use super::Document;
use super::tokenizer::split;

/// A field that takes part in ranking.
#[derive(Clone, Copy)]
pub(super) struct RankedField {
    /// As people read it.
    pub(super) name: &'static str,
    /// How much a word counts here.
    pub(super) weight: f32,
    /// How much a field longer than the average is held against its words, 0 to 1.
    pub(super) length: f32,
}

/// The number of ranked fields.
pub(super) const FIELDS: usize = 5;
/// The ranked fields. Their order is part of the index's form.
pub(super) const RANKED: [RankedField; FIELDS] = [
    ranked("tool", 3.0, 0.4),
    ranked("server", 2.0, 0.0),
    ranked("title", 1.0, 0.4),
    ranked("description", 1.0, 0.75),
    ranked("parameters", 0.4, 0.75),
];
/// The field of the server's words, by which a query may hint at it.
pub(super) const SERVER: usize = 1;

const fn ranked(name: &'static str, weight: f32, length: f32) -> RankedField {
    RankedField {
        name,
        weight,
        length,
    }
}

impl RankedField {
    /// What `times` occurrences of a word count in a field of `words` words.
    pub(super) fn weigh(&self, times: f32, words: f32, average: f32) -> f32 {
        self.weight * times / (1.0 - self.length + self.length * words / average)
    }
}

/// The texts of a tool's ranked fields; `server` is what [`telling`] left of its server's name.
pub(super) fn texts<'a>(document: &'a Document, server: &'a str) -> [Vec<&'a str>; FIELDS] {
    let Document {
        tool,
        title,
        description,
        parameters,
        ..
    } = document;
    [
        vec![tool.as_str()],
        vec![server],
        title.iter().map(String::as_str).collect(),
        vec![description],
        parameters
            .iter()
            .flat_map(|(name, text)| [name.as_str(), text.as_str()])
            .collect(),
    ]
}

/// A server's name without the words that say only that it is a server; nobody names it by them.
pub(super) fn telling(server: &str) -> String {
    let is_telling = |word: &String| !matches!(word.as_str(), "mcp" | "server");
    let words: Vec<String> = split(server).into_iter().filter(is_telling).collect();
    if words.is_empty() {
        server.to_owned()
    } else {
        words.join(" ")
    }
}
