//! Postings: the tools that have each word, and their scores by document id.

use std::ops::Range;

use super::embedding::VectorKey;
use super::layout::{Layout, Section, value};
use super::schema::{FIELDS, RANKED, SERVER};
use super::soundness::is_sound;
use super::tokenizer::compact;

/// The saturation of repeated occurrences of a word (k1 of BM25).
const SATURATION: f32 = 1.2;
/// A bit in the byte after a posting's document id, next to one bit per field that has the word: some field has it
/// several times.
const SEVERAL: u8 = 1 << FIELDS;

/// A ranked tool. Scores are comparable between queries: 1 is a perfect match of every word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// The document id, which is the position in a row of scores.
    pub(super) doc: usize,
    pub(super) score: f32,
}

/// A stem that stands for a word of the query, with its share of the word's weight.
pub(super) struct Alternative {
    pub(super) stem: String,
    pub(super) weight: f32,
}

/// An open index.
pub(super) struct Postings {
    layout: Layout,
    /// The number of words in each field of the average tool.
    averages: [f32; FIELDS],
}

/// The tools that have a stem: the document id of each, and the number of occurrences in each field.
///
/// A tool is encoded as the difference from the previous document id, in groups of seven bits, lowest first; a byte
/// with the fields that have the stem; and, if some field has it more than once, the number for each of those fields.
/// fields have the stem; and for each of those how often, where that is more than once in some.
pub(super) struct Occurrences<'a> {
    bytes: &'a [u8],
    next: usize,
    /// The number of tools in the index. A posting with a larger document id ends the reading.
    tools: usize,
}

impl Postings {
    /// Takes the bytes of an index. `None` if they are damaged.
    pub(super) fn open(bytes: Vec<u8>) -> Option<Self> {
        let layout = Layout::open(bytes).filter(is_sound)?;
        let tools = layout.tools().max(1) as f32;
        let mut averages = [1.0; FIELDS];
        for (average, total) in averages.iter_mut().zip(layout.numbers(Section::Totals)) {
            *average = (value(*total) as f32 / tools).max(1.0);
        }
        Some(Self { layout, averages })
    }

    /// The names of the tool at `doc`: its server's and its own.
    pub(super) fn names(&self, doc: usize) -> (&str, &str) {
        let server = value(self.layout.numbers(Section::ServerOf)[doc]);
        (
            self.layout.list(Section::Servers).text(server),
            self.layout.list(Section::Tools).text(doc),
        )
    }

    /// The keys of the tools' vectors, by document id.
    pub(super) fn vector_keys(&self) -> impl ExactSizeIterator<Item = VectorKey> {
        let keys = self.layout.section(Section::Vectors).as_chunks().0;
        keys.iter().map(|key| VectorKey(u64::from_le_bytes(*key)))
    }

    /// The unstemmed words of all tools, each with the number of tools that have it.
    pub(super) fn words(&self) -> impl Iterator<Item = (&str, u32)> {
        let words = self.layout.list(Section::Words);
        let tools = self.layout.numbers(Section::WordTools);
        tools
            .iter()
            .enumerate()
            .map(move |(at, tools)| (words.text(at), u32::from_le_bytes(*tools)))
    }

    /// A row of equal values.
    pub(super) fn row<T: Clone>(&self, value: T) -> Vec<T> {
        vec![value; self.layout.tools()]
    }

    /// Whether any tool has the stem.
    pub(super) fn has(&self, stem: &str) -> bool {
        self.layout.list(Section::Stems).find(stem).is_some()
    }

    /// The tools that have the stem in any field.
    pub(super) fn occurrences(&self, stem: &str) -> Occurrences<'_> {
        let at = self.layout.list(Section::Stems).find(stem);
        let bytes = at.map_or(&[][..], |at| self.layout.list(Section::Postings).get(at));
        Occurrences {
            bytes,
            next: 0,
            tools: self.layout.tools(),
        }
    }

    /// Calls `found` for every tool whose server's words have the stem: its document id, and how many words those are.
    pub(super) fn each_of_server_word(&self, stem: &str, mut found: impl FnMut(usize, u32)) {
        for (doc, times) in self.occurrences(stem) {
            if times[SERVER] > 0 {
                found(doc, u32::from(self.lengths(doc)[SERVER]));
            }
        }
    }

    /// The document ids of a server's tools.
    pub(super) fn of_server<'a>(&'a self, server: &'a str) -> impl Iterator<Item = usize> {
        let servers = self.layout.list(Section::Servers);
        let wanted = (0..servers.len()).find(|at| servers.text(*at) == server);
        let all = self.layout.numbers(Section::ServerOf).iter().enumerate();
        all.filter(move |(_, server)| Some(value(**server)) == wanted)
            .map(|(doc, _)| doc)
    }

    /// The tools with this compact name, bare or with the server's name; a tool that matches both is returned once.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = usize> {
        let alone = self.docs(Section::ByTool, name);
        let whole = self.docs(Section::ByName, name);
        let tools = self.layout.numbers(Section::ByTool)[alone]
            .iter()
            .map(|doc| value(*doc));
        let others = self.layout.numbers(Section::ByName)[whole]
            .iter()
            .map(|doc| value(*doc));
        tools.chain(others.filter(move |doc| self.compact(Section::ByTool, *doc) != name))
    }

    /// The range of `name` in a section of document ids sorted by name.
    fn docs(&self, section: Section, name: &str) -> Range<usize> {
        let docs = self.layout.numbers(section);
        let first = docs.partition_point(|doc| *self.compact(section, value(*doc)) < *name);
        let count = docs[first..]
            .iter()
            .take_while(|doc| self.compact(section, value(**doc)) == name)
            .count();
        first..first + count
    }

    fn compact(&self, section: Section, doc: usize) -> String {
        let (server, tool) = self.names(doc);
        match section {
            Section::ByTool => compact(tool),
            _ => compact(server) + &compact(tool),
        }
    }

    /// The number of words in each field of the tool at `doc`.
    fn lengths(&self, doc: usize) -> [u16; FIELDS] {
        let lengths = self.layout.section(Section::Lengths).as_chunks::<2>().0;
        std::array::from_fn(|field| u16::from_le_bytes(lengths[doc * FIELDS + field]))
    }

    /// Adds a word's score to `scores`, for each tool that of its best alternative. Returns the score of a perfect
    /// match.
    pub(super) fn add_word(&self, alternatives: &[Alternative], scores: &mut [f32]) -> f32 {
        let mut best: f32 = 0.0;
        if let [Alternative { stem, weight }] = alternatives {
            return self.weigh(stem, *weight, |doc, score, _| scores[doc] += score);
        }
        let mut word = self.row(0.0f32);
        for Alternative { stem, weight } in alternatives {
            best = best.max(self.weigh(stem, *weight, |doc, score, _| {
                word[doc] = word[doc].max(score);
            }));
        }
        scores
            .iter_mut()
            .zip(&word)
            .for_each(|(score, word)| *score += word);
        // An unknown word that cannot be repaired counts as the rarest possible.
        if alternatives.is_empty() {
            self.rarity(0)
        } else {
            best
        }
    }

    /// Like [`Postings::add_word`], with the contribution of each field separately.
    pub(super) fn add_word_by_field(
        &self,
        alternatives: &[Alternative],
        fields: &mut [Vec<f32>],
    ) -> f32 {
        let mut best = if alternatives.is_empty() {
            self.rarity(0)
        } else {
            0.0
        };
        let mut scores = self.row(0.0);
        let mut shares = vec![self.row(0.0); fields.len()];
        for Alternative { stem, weight } in alternatives {
            let most = self.weigh(stem, *weight, |doc, score, by_field| {
                if score > scores[doc] {
                    scores[doc] = score;
                    let sum = by_field.iter().sum::<f32>();
                    for (shares, part) in shares.iter_mut().zip(by_field) {
                        shares[doc] = score * part / sum;
                    }
                }
            });
            best = most.max(best);
        }
        for (field, shares) in fields.iter_mut().zip(&shares) {
            field
                .iter_mut()
                .zip(shares)
                .for_each(|(field, share)| *field += share);
        }
        best
    }

    /// Calls `found` for every tool that has the stem: its document id, its score, and the frequency by field. Returns
    /// the best possible score.
    fn weigh(
        &self,
        stem: &str,
        weight: f32,
        mut found: impl FnMut(usize, f32, &[f32; FIELDS]),
    ) -> f32 {
        let best = weight * self.rarity(self.occurrences(stem).count());
        for (doc, times) in self.occurrences(stem) {
            let lengths = self.lengths(doc);
            let mut by_field = [0.0; FIELDS];
            for field in (0..FIELDS).filter(|field| times[*field] > 0) {
                let (times, length) = (times[field] as f32, f32::from(lengths[field]));
                by_field[field] = RANKED[field].weigh(times, length, self.averages[field]);
            }
            let frequency = by_field.iter().sum::<f32>();
            found(doc, best * frequency / (frequency + SATURATION), &by_field);
        }
        best
    }

    /// The inverse document frequency of a word that this many tools have.
    fn rarity(&self, tools: usize) -> f32 {
        let (all, tools) = (self.layout.tools() as f32, tools as f32);
        (1.0 + (all - tools + 0.5) / (tools + 0.5)).ln()
    }

    /// The best `limit` tools with a score above zero and those that tie with the last, best first.
    pub(super) fn best(&self, scores: &[f32], limit: usize) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = scores
            .iter()
            .enumerate()
            .filter(|(_, score)| **score > 0.0)
            .map(|(doc, score)| Candidate { doc, score: *score })
            .collect();
        let Some(last) = limit.min(found.len()).checked_sub(1) else {
            return Vec::new();
        };
        let (_, Candidate { score: least, .. }, _) =
            found.select_nth_unstable_by(last, |a, b| b.score.total_cmp(&a.score));
        let least = *least;
        found.retain(|candidate| candidate.score >= least);
        found.sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
        found
    }
}

impl Occurrences<'_> {
    /// Appends a tool: `skipped` is the difference from the previous document id, `times` the occurrences in each
    /// field.
    pub(super) fn append(bytes: &mut Vec<u8>, skipped: usize, times: &[u32; FIELDS]) {
        append_number(bytes, skipped);
        let mut fields = if times.iter().any(|times| *times > 1) {
            SEVERAL
        } else {
            0
        };
        for (field, _) in times.iter().enumerate().filter(|(_, times)| **times > 0) {
            fields |= 1 << field;
        }
        bytes.push(fields);
        if fields & SEVERAL > 0 {
            times
                .iter()
                .filter(|times| **times > 0)
                .for_each(|times| append_number(bytes, *times as usize));
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

impl Iterator for Occurrences<'_> {
    type Item = (usize, [u32; FIELDS]);

    fn next(&mut self) -> Option<Self::Item> {
        let skipped = self.number()?;
        let doc = self
            .next
            .checked_add(skipped)
            .filter(|doc| *doc < self.tools)?;
        self.next = doc + 1;
        let fields = self.byte()?;
        let mut times = [0; FIELDS];
        for field in (0..FIELDS).filter(|field| fields & 1 << field > 0) {
            times[field] = if fields & SEVERAL > 0 {
                u32::try_from(self.number()?).unwrap_or(u32::MAX)
            } else {
                1
            };
        }
        Some((doc, times))
    }
}

fn append_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_read_as_they_were_written() {
        let all: Vec<(usize, [u32; FIELDS])> = vec![
            (0, [1, 0, 0, 0, 0]),
            (1, [0, 1, 1, 1, 1]),
            (130, [3, 0, 0, 200, 0]),
            (20_000, [0, 0, 0, 0, 70_000]),
            (4_000_000, [1, 1, 1, 1, 1]),
        ];
        let (mut bytes, mut next) = (Vec::new(), 0);
        for (doc, times) in &all {
            Occurrences::append(&mut bytes, doc - next, times);
            next = doc + 1;
        }
        let read: Vec<_> = Occurrences {
            bytes: &bytes,
            next: 0,
            tools: 5_000_000,
        }
        .collect();
        assert_eq!(read, all);
    }
}
