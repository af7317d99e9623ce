//! Ranking by words.
//!
//! BM25F: a word's occurrences in all fields are weighed and added before they are saturated, so that a word in name,
//! title and description is one match and not three. tantivy's own scoring adds fields that were saturated each by
//! itself, and cannot relate a need, a hint or a repair to its words; so only its postings are used, and every query
//! reads them once.

use tantivy::postings::Postings;
use tantivy::schema::{Field, IndexRecordOption, Term};
use tantivy::{DocAddress, DocSet, Searcher, SegmentReader, TERMINATED};

use super::query::{Query, Word};
use super::schema::{RankedField, SCHEMA};
use super::tokenizer::stem;
use super::vocabulary::Vocabulary;

/// How soon further occurrences of a word stop to count.
const SATURATION: f32 = 1.2;
/// What each mistake leaves of a repaired word's weight, and what is left of it for all but the first guess.
const MISTAKE: f32 = 0.75;
const SECOND_GUESS: f32 = 0.9;
/// What a tool's server gains when the query names it in full; at a place where servers are named, or anywhere.
const HINTED: f32 = 0.5;
const NAMED: f32 = 0.15;
/// How much the best for one of several needs counts beside the best for all of them together.
const NEED: f32 = 0.5;
/// What a tool gains whose exact name the query has: more than any sum of words.
const EXACT: f32 = 10.0;

/// A tool that may be what is sought. Scores are comparable between queries: 1 is every word matched as well as can be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) address: DocAddress,
    pub(super) score: f32,
}

/// Ranks an index's tools for `query`, best first; those with no word in common are left out. At least `limit`, where
/// there are as many, and those that tie with the last.
pub(super) fn rank(
    searcher: &Searcher,
    vocabulary: &dyn Fn() -> tantivy::Result<std::sync::Arc<Vocabulary>>,
    query: &Query,
    server: Option<&str>,
    limit: usize,
) -> tantivy::Result<Vec<Candidate>> {
    let tools = Tools::new(searcher)?;
    let mut total = tools.zeros();
    let mut best = 0.0;
    let mut needs = Vec::with_capacity(query.needs.len());
    for words in &query.needs {
        let mut need = tools.zeros();
        for word in distinct(words) {
            let alternatives = alternatives(&tools, vocabulary, word)?;
            best += tools.add_word(&alternatives, &mut need)?;
        }
        total.iter_mut().zip(&need).for_each(|(total, need)| *total += need);
        needs.push(need);
    }
    let mut scores = share(&total, best);
    if needs.len() > 1 {
        serve_each(&mut scores, &needs);
    }
    tools.prefer_servers(query, &mut scores)?;
    tools.prefer_names(query, &mut scores)?;
    if let Some(server) = server {
        tools.keep_server(server, &mut scores)?;
    }
    Ok(tools.best(&scores, limit))
}

/// The words of a need, each stem once.
fn distinct(words: &[Word]) -> Vec<&str> {
    let mut stems: Vec<String> = Vec::new();
    let mut kept = Vec::new();
    for word in words {
        let stem = stem(&word.text);
        if !stems.contains(&stem) {
            stems.push(stem);
            kept.push(word.text.as_str());
        }
    }
    kept
}

/// The index's words for a query's: itself where it is known, else what may have been meant.
fn alternatives(
    tools: &Tools<'_>,
    vocabulary: &dyn Fn() -> tantivy::Result<std::sync::Arc<Vocabulary>>,
    word: &str,
) -> tantivy::Result<Vec<(String, f32)>> {
    let known = stem(word);
    if tools.has(&known)? {
        return Ok(vec![(known, 1.0)]);
    }
    let mut alternatives: Vec<(String, f32)> = Vec::new();
    for repair in vocabulary()?.repairs(word) {
        let guess = if alternatives.is_empty() { 1.0 } else { SECOND_GUESS };
        let stem = stem(&repair.word);
        if !alternatives.iter().any(|(other, _)| *other == stem) {
            alternatives.push((stem, guess * MISTAKE.powi(i32::try_from(repair.distance).unwrap_or(i32::MAX))));
        }
    }
    Ok(alternatives)
}

/// Scores as shares of `best`.
fn share(scores: &[f32], best: f32) -> Vec<f32> {
    scores.iter().map(|score| if best > 0.0 { score / best } else { 0.0 }).collect()
}

/// Mixes into `scores` how near each tool comes to the best for one of the needs, so that the best of every need are
/// in front, and among them those that also fit the rest of the query.
fn serve_each(scores: &mut [f32], needs: &[Vec<f32>]) {
    let top = maximum(scores);
    let tops: Vec<f32> = needs.iter().map(|need| maximum(need)).collect();
    for (tool, score) in scores.iter_mut().enumerate() {
        let shares = needs.iter().zip(&tops).filter(|(_, top)| **top > 0.0).map(|(need, top)| need[tool] / top);
        *score = (1.0 - NEED) * *score + NEED * top * shares.fold(0.0, f32::max);
    }
}

fn maximum(scores: &[f32]) -> f32 {
    scores.iter().copied().fold(0.0, f32::max)
}

/// An index's tools in one row, whatever the segment.
struct Tools<'a> {
    segments: Vec<(usize, &'a SegmentReader)>,
    length: usize,
    alive: f32,
    /// The ranked fields with the number of words in the average tool.
    fields: Vec<(RankedField, f32)>,
}

impl<'a> Tools<'a> {
    fn new(searcher: &'a Searcher) -> tantivy::Result<Self> {
        let mut length = 0;
        let mut segments = Vec::new();
        for segment in searcher.segment_readers() {
            segments.push((length, segment));
            length += segment.max_doc() as usize;
        }
        let mut fields = Vec::new();
        for field in SCHEMA.ranked {
            let mut words = 0;
            for (_, segment) in &segments {
                words += segment.inverted_index(field.field)?.total_num_tokens();
            }
            fields.push((field, (words as f32 / length.max(1) as f32).max(1.0)));
        }
        Ok(Self { segments, length, alive: searcher.num_docs() as f32, fields })
    }

    fn zeros(&self) -> Vec<f32> {
        vec![0.0; self.length]
    }

    fn has(&self, stem: &str) -> tantivy::Result<bool> {
        for (field, _) in &self.fields {
            for (_, segment) in &self.segments {
                if segment
                    .inverted_index(field.field)?
                    .get_term_info(&Term::from_field_text(field.field, stem))?
                    .is_some()
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Calls `found` with every tool that has `text` in `field`, the number of times, and the field's length.
    fn each(&self, field: Field, text: &str, mut found: impl FnMut(usize, f32, u32)) -> tantivy::Result<()> {
        let term = Term::from_field_text(field, text);
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

    /// Adds a word's score to `scores`: for each tool the best of the word's alternatives. Returns what a perfect match
    /// would have added.
    fn add_word(&self, alternatives: &[(String, f32)], scores: &mut [f32]) -> tantivy::Result<f32> {
        let mut word = self.zeros();
        let mut best: f32 = 0.0;
        for (stem, weight) in alternatives {
            let mut frequency = self.zeros();
            for (RankedField { field, weight, length }, average) in &self.fields {
                self.each(*field, stem, |tool, times, words| {
                    frequency[tool] += weight * times / (1.0 - length + length * words as f32 / average);
                })?;
            }
            let with = frequency.iter().filter(|frequency| **frequency > 0.0).count() as f32;
            let rarity = weight * (1.0 + (self.alive - with + 0.5) / (with + 0.5)).ln();
            for (word, frequency) in word.iter_mut().zip(&frequency) {
                *word = word.max(rarity * frequency / (frequency + SATURATION));
            }
            best = best.max(rarity);
        }
        if alternatives.is_empty() {
            // Unknown and beyond repair: as rare as a word can be.
            best = (2.0 * self.alive + 2.0).ln();
        }
        scores.iter_mut().zip(&word).for_each(|(score, word)| *score += word);
        Ok(best)
    }

    /// Raises the tools of servers that the query names in full.
    fn prefer_servers(&self, query: &Query, scores: &mut [f32]) -> tantivy::Result<()> {
        let mut named = vec![(0u32, 0u32); self.length];
        let mut lengths = vec![u32::MAX; self.length];
        let words: Vec<Word> = query.words().cloned().collect();
        for word in distinct(&words) {
            let hint = words.iter().any(|other| other.text == word && other.hint);
            self.each(SCHEMA.server_words(), &stem(word), |tool, _, length| {
                named[tool].0 += 1;
                named[tool].1 += u32::from(hint);
                lengths[tool] = length;
            })?;
        }
        for (tool, score) in scores.iter_mut().enumerate() {
            let (words, hinted) = named[tool];
            if hinted >= lengths[tool] {
                *score *= 1.0 + HINTED;
            } else if words >= lengths[tool] {
                *score *= 1.0 + NAMED;
            }
        }
        Ok(())
    }

    /// Puts the tools in front whose exact name is in the query.
    fn prefer_names(&self, query: &Query, scores: &mut [f32]) -> tantivy::Result<()> {
        for name in &query.names {
            self.each(SCHEMA.exact, name, |tool, _, _| scores[tool] += EXACT)?;
        }
        Ok(())
    }

    fn keep_server(&self, server: &str, scores: &mut [f32]) -> tantivy::Result<()> {
        let mut keep = vec![false; self.length];
        self.each(SCHEMA.server, server, |tool, _, _| keep[tool] = true)?;
        scores.iter_mut().zip(keep).filter(|(_, keep)| !keep).for_each(|(score, _)| *score = 0.0);
        Ok(())
    }

    fn best(&self, scores: &[f32], limit: usize) -> Vec<Candidate> {
        let mut found: Vec<(f32, usize)> =
            scores.iter().enumerate().filter(|(_, score)| **score > 0.0).map(|(tool, score)| (*score, tool)).collect();
        if limit == 0 || found.is_empty() {
            return Vec::new();
        }
        let last = limit.min(found.len()) - 1;
        let (_, (least, _), _) = found.select_nth_unstable_by(last, |(a, _), (b, _)| b.total_cmp(a));
        let least = *least;
        found.retain(|(score, _)| *score >= least);
        found.sort_unstable_by(|(a, _), (b, _)| b.total_cmp(a));
        found.into_iter().map(|(score, tool)| Candidate { address: self.address(tool), score }).collect()
    }

    fn address(&self, tool: usize) -> DocAddress {
        let segment = self.segments.partition_point(|(base, _)| *base <= tool) - 1;
        let doc = tool - self.segments[segment].0;
        DocAddress::new(
            u32::try_from(segment).expect("tantivy counts segments in 32 bits"),
            u32::try_from(doc).expect("tantivy counts documents in 32 bits"),
        )
    }
}
