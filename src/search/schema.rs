//! The indexed fields of a tool, and their weights.

use super::Document;
use super::tokenizer::split;

/// A field that takes part in ranking.
#[derive(Clone, Copy)]
pub(super) struct RankedField {
    /// Its name in explanations.
    pub(super) name: &'static str,
    /// The weight of a word in this field.
    pub(super) weight: f32,
    /// The penalty for a field longer than the average, 0 to 1 (b of BM25).
    pub(super) length: f32,
}

/// The number of ranked fields.
pub(super) const FIELDS: usize = 5;
/// The ranked fields. Their order is part of the index format.
pub(super) const RANKED: [RankedField; FIELDS] = [
    ranked("tool", 3.0, 0.4),
    ranked("server", 2.0, 0.0),
    ranked("title", 1.0, 0.4),
    ranked("description", 1.0, 0.75),
    ranked("parameters", 0.4, 0.75),
];
/// The field with the server's words, which a query may contain as a hint.
pub(super) const SERVER: usize = 1;

const fn ranked(name: &'static str, weight: f32, length: f32) -> RankedField {
    RankedField {
        name,
        weight,
        length,
    }
}

impl RankedField {
    /// The weighted frequency of a word that occurs `times` times in a field of `words` words.
    pub(super) fn weigh(&self, times: f32, words: f32, average: f32) -> f32 {
        self.weight * times / (1.0 - self.length + self.length * words / average)
    }
}

/// The texts of a tool's ranked fields; `server` is its server's name after [`telling`].
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

/// A server's name without words such as `mcp` and `server`, which identify no server.
pub(super) fn telling(server: &str) -> String {
    let is_telling = |word: &String| !matches!(word.as_str(), "mcp" | "server");
    let words: Vec<String> = split(server).into_iter().filter(is_telling).collect();
    if words.is_empty() {
        server.to_owned()
    } else {
        words.join(" ")
    }
}
