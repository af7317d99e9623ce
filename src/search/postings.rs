//! The index's postings as one row of scores, a place for each tool, whatever its segment.

use tantivy::postings::Postings as _;
use tantivy::schema::{Field, IndexRecordOption, Term};
use tantivy::{DocAddress, DocSet, Searcher, SegmentReader, TERMINATED};

use super::embedding::VectorKey;
use super::schema::{RankedField, SCHEMA, VECTOR};

/// How soon further occurrences of a word stop to count.
const SATURATION: f32 = 1.2;

/// A tool that may be what is sought. Scores are comparable between queries: 1 is every word matched as well as can be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) address: DocAddress,
    /// Its place in a row.
    pub(super) place: usize,
    pub(super) score: f32,
}

/// A stem of the index that stands for a query's word, and how much of the word's weight it has.
pub(super) struct Alternative {
    pub(super) stem: String,
    pub(super) weight: f32,
}

pub(super) struct Postings<'a> {
    /// Each segment with the place of its first tool.
    segments: Vec<(usize, &'a SegmentReader)>,
    searcher: &'a Searcher,
    places: usize,
    tools: f32,
    /// The ranked fields with the number of words in the average tool.
    fields: Vec<(RankedField, f32)>,
}

impl<'a> Postings<'a> {
    pub(super) fn new(searcher: &'a Searcher) -> tantivy::Result<Self> {
        let mut places = 0;
        let mut segments = Vec::new();
        for segment in searcher.segment_readers() {
            segments.push((places, segment));
            places += segment.max_doc() as usize;
        }
        let mut fields = Vec::new();
        for field in SCHEMA.ranked {
            let mut words = 0;
            for (_, segment) in &segments {
                words += segment.inverted_index(field.field)?.total_num_tokens();
            }
            fields.push((field, (words as f32 / places.max(1) as f32).max(1.0)));
        }
        Ok(Self { segments, searcher, places, tools: searcher.num_docs() as f32, fields })
    }

    pub(super) fn searcher(&self) -> &'a Searcher {
        self.searcher
    }

    /// What the tools' vectors are found by, place by place.
    pub(super) fn vector_keys(&self) -> tantivy::Result<Vec<VectorKey>> {
        let mut keys = Vec::with_capacity(self.places);
        for (_, segment) in &self.segments {
            let column = segment.fast_fields().u64(VECTOR)?;
            keys.extend((0..segment.max_doc()).map(|doc| VectorKey(column.first(doc).unwrap_or_default())));
        }
        Ok(keys)
    }

    /// A row of equal values.
    pub(super) fn row<T: Clone>(&self, value: T) -> Vec<T> {
        vec![value; self.places]
    }

    /// Whether any tool has the stem.
    pub(super) fn has(&self, stem: &str) -> tantivy::Result<bool> {
        for (field, _) in &self.fields {
            let term = Term::from_field_text(field.field, stem);
            for (_, segment) in &self.segments {
                if segment.inverted_index(field.field)?.get_term_info(&term)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Calls `found` for every tool that has the term in `field`: its place, how often, and the field's length.
    pub(super) fn each(&self, field: Field, term: &str, mut found: impl FnMut(usize, f32, u32)) -> tantivy::Result<()> {
        let term = Term::from_field_text(field, term);
        for (base, segment) in &self.segments {
            let index = segment.inverted_index(field)?;
            let Some(mut postings) = index.read_postings(&term, IndexRecordOption::WithFreqs)? else { continue };
            let lengths = segment.fieldnorms_readers().get_field(field)?;
            while postings.doc() != TERMINATED {
                let doc = postings.doc();
                if !segment.is_deleted(doc) {
                    let length = lengths.as_ref().map_or(1, |lengths| lengths.fieldnorm(doc));
                    found(base + doc as usize, postings.term_freq() as f32, length);
                }
                postings.advance();
            }
        }
        Ok(())
    }

    /// Adds a word's score to `scores`, for each tool that of the best alternative. Returns what a perfect match would
    /// have added.
    pub(super) fn add_word(&self, alternatives: &[Alternative], scores: &mut [f32]) -> tantivy::Result<f32> {
        let Some((first, others)) = alternatives.split_first() else {
            // Unknown and beyond repair: as rare as a word can be.
            return Ok(rarity(self.tools, 0.0));
        };
        let mut word = self.row(0.0);
        let mut best = self.weigh(first, &mut word)?;
        for other in others {
            best = self.weigh(other, &mut word)?.max(best);
        }
        scores.iter_mut().zip(&word).for_each(|(score, word)| *score += word);
        Ok(best)
    }

    fn weigh(&self, Alternative { stem, weight }: &Alternative, scores: &mut [f32]) -> tantivy::Result<f32> {
        let mut frequency = self.row(0.0);
        for (field, average) in &self.fields {
            self.each(field.field, stem, |place, times, words| {
                frequency[place] += field.weigh(times, words, *average);
            })?;
        }
        let tools = frequency.iter().filter(|frequency| **frequency > 0.0).count();
        let best = weight * rarity(self.tools, tools as f32);
        for (score, frequency) in scores.iter_mut().zip(&frequency) {
            *score = score.max(best * frequency / (frequency + SATURATION));
        }
        Ok(best)
    }

    /// As [`Postings::add_word`], with what comes from each field by itself.
    pub(super) fn add_word_by_field(
        &self,
        alternatives: &[Alternative],
        fields: &mut [Vec<f32>],
    ) -> tantivy::Result<f32> {
        let mut best = if alternatives.is_empty() { rarity(self.tools, 0.0) } else { 0.0 };
        let mut scores = self.row(0.0);
        let mut shares = vec![self.row(0.0); fields.len()];
        for Alternative { stem, weight } in alternatives {
            let mut frequencies = vec![self.row(0.0); fields.len()];
            for ((field, average), frequencies) in self.fields.iter().zip(&mut frequencies) {
                self.each(field.field, stem, |place, times, words| {
                    frequencies[place] = field.weigh(times, words, *average);
                })?;
            }
            let sum = |place: usize| frequencies.iter().map(|row| row[place]).sum::<f32>();
            let tools = (0..self.places).filter(|place| sum(*place) > 0.0).count();
            let most = weight * rarity(self.tools, tools as f32);
            for place in 0..self.places {
                let frequency = sum(place);
                let score = most * frequency / (frequency + SATURATION);
                if score > scores[place] {
                    scores[place] = score;
                    for (shares, row) in shares.iter_mut().zip(&frequencies) {
                        shares[place] = score * row[place] / frequency;
                    }
                }
            }
            best = most.max(best);
        }
        for (field, shares) in fields.iter_mut().zip(&shares) {
            field.iter_mut().zip(shares).for_each(|(field, share)| *field += share);
        }
        Ok(best)
    }

    /// The best `limit` tools with any score and those that tie with the last, best first.
    pub(super) fn best(&self, scores: &[f32], limit: usize) -> Vec<Candidate> {
        let mut found: Vec<(f32, usize)> = scores
            .iter()
            .enumerate()
            .filter(|(_, score)| **score > 0.0)
            .map(|(place, score)| (*score, place))
            .collect();
        let Some(last) = limit.min(found.len()).checked_sub(1) else { return Vec::new() };
        let (_, (least, _), _) = found.select_nth_unstable_by(last, |(a, _), (b, _)| b.total_cmp(a));
        let least = *least;
        found.retain(|(score, _)| *score >= least);
        found.sort_unstable_by(|(a, _), (b, _)| b.total_cmp(a));
        found.into_iter().map(|(score, place)| Candidate { address: self.address(place), place, score }).collect()
    }

    fn address(&self, place: usize) -> DocAddress {
        let segment = self.segments.partition_point(|(base, _)| *base <= place) - 1;
        let doc = place - self.segments[segment].0;
        DocAddress::new(
            u32::try_from(segment).expect("tantivy counts segments in 32 bits"),
            u32::try_from(doc).expect("tantivy counts documents in 32 bits"),
        )
    }
}

impl RankedField {
    /// What `times` occurrences of a word count in a field of `words` words.
    fn weigh(&self, times: f32, words: u32, average: f32) -> f32 {
        self.weight * times / (1.0 - self.length + self.length * words as f32 / average)
    }
}

/// How telling a word is that this many of all tools have.
fn rarity(all: f32, tools: f32) -> f32 {
    (1.0 + (all - tools + 0.5) / (tools + 0.5)).ln()
}
