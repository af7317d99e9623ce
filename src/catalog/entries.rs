//! The lists of prompts, resources and templates of one server: keys, hashes and positions. The definitions themselves stay in the cache file.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::tool::ToolHash;

/// The kinds of lists a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `tools/list`.
    Tool,
    /// `prompts/list`.
    Prompt,
    /// `resources/list`.
    Resource,
    /// `resources/templates/list`.
    Template,
}

/// A server's list of prompts, resources or templates, in its own order. The definitions stay in its cache file.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    entries: Vec<Entry>,
    /// Positions in `entries`, by key.
    by_key: Vec<u32>,
}

/// One prompt, resource or template: the data needed to find it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// A prompt's `name`, a resource's `uri`, a template's `uriTemplate`.
    pub key: Box<str>,
    /// The hash of its definition.
    pub hash: ToolHash,
    pub(super) offset: u64,
    pub(super) length: u32,
}

impl Kind {
    /// The member of a definition that identifies it.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
            Self::Template => "uriTemplate",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
        })
    }
}

impl Entries {
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        let mut by_key: Vec<u32> =
            (0..u32::try_from(entries.len()).expect("a list fits into memory")).collect();
        by_key.sort_by(|a, b| entries[*a as usize].key.cmp(&entries[*b as usize].key));
        Self { entries, by_key }
    }

    /// All entries, in the server's order.
    #[must_use]
    pub fn as_slice(&self) -> &[Entry] {
        &self.entries
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The position of the entry with this key.
    #[must_use]
    pub fn position(&self, key: &str) -> Option<usize> {
        let at = self
            .by_key
            .binary_search_by(|index| (*self.entries[*index as usize].key).cmp(key))
            .ok()?;
        Some(self.by_key[at] as usize)
    }

    /// Whether an entry has this key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Whether both lists have the same entries with the same definitions.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.entries
            .iter()
            .map(|entry| entry.hash)
            .eq(other.entries.iter().map(|entry| entry.hash))
    }
}
