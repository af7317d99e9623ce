//! The words of an index, and the nearest ones to a word that it does not have.

use std::collections::BTreeMap;

use tantivy::Searcher;

use super::schema::SCHEMA;

/// Every word of an index with its number of tools. One text and a table, since it is scanned whole.
pub(super) struct Vocabulary {
    text: String,
    entries: Vec<Entry>,
}

struct Entry {
    end: u32,
    tools: u32,
    /// A bit for each letter that occurs; two words whose letters differ much are not near.
    letters: u32,
}

/// A word of the index that may have been meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Repair {
    /// How many letters were added, left out, replaced or swapped.
    pub(super) distance: usize,
    rarity: std::cmp::Reverse<u32>,
    pub(super) word: String,
}

/// More guesses than this only add noise.
const REPAIRS: usize = 3;

impl Vocabulary {
    /// Reads all words of `searcher`'s index.
    pub(super) fn read(searcher: &Searcher) -> tantivy::Result<Self> {
        let mut words: BTreeMap<String, u32> = BTreeMap::new();
        for segment in searcher.segment_readers() {
            let index = segment.inverted_index(SCHEMA.vocabulary)?;
            let mut terms = index.terms().stream()?;
            while let Some((term, info)) = terms.next() {
                if let Ok(word) = str::from_utf8(term) {
                    *words.entry(word.to_owned()).or_default() += info.doc_freq;
                }
            }
        }
        Ok(words.into_iter().collect())
    }

    /// The words nearest to `word`, best first: the smallest distance, then the most tools.
    pub(super) fn repairs(&self, word: &str) -> Vec<Repair> {
        let written: Vec<char> = word.chars().collect();
        let limit = tolerance(written.len());
        if limit == 0 {
            return Vec::new();
        }
        let letters = letters(word);
        let mut repairs = Vec::new();
        let mut start = 0;
        for entry in &self.entries {
            let candidate = &self.text[start..entry.end as usize];
            start = entry.end as usize;
            if (entry.letters ^ letters).count_ones() as usize > 2 * limit
                || candidate.len().abs_diff(word.len()) > 4 * limit
            {
                continue;
            }
            let candidate_letters: Vec<char> = candidate.chars().collect();
            if let Some(distance) = distance(&written, &candidate_letters, limit) {
                repairs.push(Repair { distance, rarity: std::cmp::Reverse(entry.tools), word: candidate.to_owned() });
            }
        }
        repairs.sort_unstable();
        repairs.truncate(REPAIRS);
        repairs
    }
}

impl FromIterator<(String, u32)> for Vocabulary {
    fn from_iter<I: IntoIterator<Item = (String, u32)>>(words: I) -> Self {
        let mut vocabulary = Self { text: String::new(), entries: Vec::new() };
        for (word, tools) in words {
            vocabulary.text.push_str(&word);
            let end = u32::try_from(vocabulary.text.len())
                .expect("the vocabulary is smaller than the index, and that than 4 GB");
            vocabulary.entries.push(Entry { end, tools, letters: letters(&word) });
        }
        vocabulary
    }
}

/// How many mistakes a word of this length may have; in a short one, every change makes another word.
fn tolerance(length: usize) -> usize {
    match length {
        0..4 => 0,
        4..8 => 1,
        _ => 2,
    }
}

fn letters(word: &str) -> u32 {
    word.chars().fold(0, |bits, c| bits | 1 << (u32::from(c) % 32))
}

/// Letters added, left out, replaced, or swapped with their neighbour; `None` when more than `limit`.
fn distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut before = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = Vec::with_capacity(row.len());
        next.push(i);
        for j in 1..=b.len() {
            let replaced = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                let swapped: &Vec<usize> = &before;
                least = least.min(swapped[j - 2] + 1);
            }
            next.push(least);
        }
        if next.iter().all(|least| *least > limit) {
            return None;
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().filter(|distance| *distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_the_word_that_was_meant() {
        let words = ["directory", "direction", "search", "repository", "issues", "list", "pages", "page", "kubernetes"];
        let vocabulary: Vocabulary = words.iter().map(|word| ((*word).to_owned(), 1)).collect();
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
            assert_eq!(repairs.first().map(|repair| repair.word.as_str()), expected, "{typo}");
        }
    }

    #[test]
    fn the_more_frequent_word_comes_first() {
        let vocabulary: Vocabulary = [("pager".to_owned(), 2), ("pages".to_owned(), 9)].into_iter().collect();
        let repairs: Vec<_> = vocabulary.repairs("pagex").into_iter().map(|repair| repair.word).collect();
        assert_eq!(repairs, ["pages", "pager"]);
    }
}
