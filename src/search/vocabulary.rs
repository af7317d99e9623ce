//! The words of an index, and the search for the nearest ones to an unknown word.

use std::sync::OnceLock;

use super::postings::Postings;
use crate::text::distance;

/// Every word of an index with its number of tools. One text and a table, because it is scanned whole.
pub(super) struct Vocabulary {
    text: String,
    entries: Vec<Entry>,
}

struct Entry {
    end: u32,
    tools: u32,
    /// The length in characters.
    length: u8,
    /// One bit per letter that occurs; two words whose letters differ much are not near.
    letters: u32,
}

/// A word of the index as a correction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Repair {
    /// The number of letters added, left out, replaced or swapped.
    pub(super) distance: usize,
    rarity: std::cmp::Reverse<u32>,
    pub(super) word: String,
}

/// The number of corrections that are used; more only add noise.
const REPAIRS: usize = 3;

/// The vocabulary, read at the first typo, because most searches have none.
#[derive(Default)]
pub(super) struct LazyVocabulary(OnceLock<Vocabulary>);

impl LazyVocabulary {
    /// The vocabulary of an index; it must always be the same index.
    pub(super) fn get(&self, postings: &Postings) -> &Vocabulary {
        self.0.get_or_init(|| Vocabulary::of(postings.words()))
    }
}

impl Vocabulary {
    /// Builds it from words, each with the number of tools that have it.
    fn of<'a>(words: impl Iterator<Item = (&'a str, u32)>) -> Self {
        let mut vocabulary = Self {
            text: String::new(),
            entries: Vec::new(),
        };
        words.for_each(|(word, tools)| vocabulary.add(word, tools));
        vocabulary
    }

    fn add(&mut self, word: &str, tools: u32) {
        let Ok(length) = u8::try_from(word.chars().count()) else {
            return;
        };
        self.text.push_str(word);
        let end = u32::try_from(self.text.len()).expect("a vocabulary is far smaller than 4 GB");
        self.entries.push(Entry {
            end,
            tools,
            length,
            letters: letters(word),
        });
    }

    /// The words nearest to `word`, best first: the smallest distance, then the most tools.
    pub(super) fn repairs(&self, word: &str) -> Vec<Repair> {
        let length = word.chars().count();
        let limit = tolerance(length);
        if limit == 0 {
            return Vec::new();
        }
        let letters = letters(word);
        let mut repairs = Vec::new();
        let mut start = 0;
        for entry in &self.entries {
            let candidate = &self.text[start..entry.end as usize];
            start = entry.end as usize;
            if usize::from(entry.length).abs_diff(length) > limit
                || (entry.letters ^ letters).count_ones() as usize > 2 * limit
            {
                continue;
            }
            if let Some(distance) = distance(word, candidate, limit) {
                repairs.push(Repair {
                    distance,
                    rarity: std::cmp::Reverse(entry.tools),
                    word: candidate.to_owned(),
                });
            }
        }
        repairs.sort_unstable();
        repairs.truncate(REPAIRS);
        repairs
    }
}

/// The number of mistakes allowed in a word of this length; in a short word every change makes another word.
fn tolerance(length: usize) -> usize {
    match length {
        0..4 => 0,
        4..8 => 1,
        _ => 2,
    }
}

fn letters(word: &str) -> u32 {
    word.chars()
        .fold(0, |bits, c| bits | 1 << (u32::from(c) % 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(words: &[(&str, u32)]) -> Vocabulary {
        Vocabulary::of(words.iter().copied())
    }

    #[test]
    fn a_typo_finds_the_word_that_was_meant() {
        let words = [
            "directory",
            "direction",
            "search",
            "repository",
            "issues",
            "list",
            "pages",
            "page",
            "kubernetes",
        ];
        let vocabulary = vocabulary(&words.map(|word| (word, 1)));
        for (typo, expected) in [
            ("direcotry", Some("directory")),
            ("serach", Some("search")),
            ("repositry", Some("repository")),
            ("isseus", Some("issues")),
            ("lsit", Some("list")),
            ("kuberntes", Some("kubernetes")),
            ("wbe", None),
            ("elephant", None),
            ("lisp", Some("list")),
            ("ls", None),
        ] {
            let repairs = vocabulary.repairs(typo);
            assert_eq!(
                repairs.first().map(|repair| repair.word.as_str()),
                expected,
                "{typo}"
            );
        }
    }

    #[test]
    fn the_more_frequent_word_comes_first() {
        let vocabulary = vocabulary(&[("pager", 2), ("pages", 9)]);
        let repairs: Vec<_> = vocabulary
            .repairs("pagex")
            .into_iter()
            .map(|repair| repair.word)
            .collect();
        assert_eq!(repairs, ["pages", "pager"]);
    }
}
