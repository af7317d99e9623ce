//! Ranking by words.
//!
//! BM25F: the occurrences of a word in all fields are weighted and added before they are saturated, so a word in name,
//! title and description is one match and not three.

use super::Request;
use super::postings::{Alternative, Candidate, Postings};
use super::query::{Need, Query, Word};
use super::synonyms::synonyms;
use super::tokenizer::stem;
use super::vocabulary::LazyVocabulary;

/// The share of a word's weight that a synonym has: next to the word, and in place of a word that no tool has.
const SYNONYM: f32 = 0.35;
const SUBSTITUTE: f32 = 0.8;
/// The share of a repaired word's weight that remains after each mistake, and for each guess after the first.
const MISTAKE: f32 = 0.75;
const SECOND_GUESS: f32 = 0.9;
/// The score a tool gains if the query names its server in full: in a position where servers are named, or anywhere.
const HINTED: f32 = 0.5;
const NAMED: f32 = 0.15;
/// The weight of being the best for one of several needs, relative to being the best for all of them.
const NEED: f32 = 0.3;
/// The best tool of each need is raised at least to this share of the first one's score.
const LEAD: f32 = 0.95;
/// Scores below this share of the best score are noise.
const NOISE: f32 = 0.25;
/// The score a tool gains if its exact name is in the query: more than any sum of words.
pub(super) const EXACT: f32 = 10.0;

/// The scores of every tool of an index.
pub(super) struct Scores {
    /// The scores for the whole query.
    pub(super) whole: Vec<f32>,
    /// The scores for each need of the query.
    pub(super) needs: Vec<Vec<f32>>,
}

/// The scores of every tool by the words of a query.
pub(super) struct Words {
    /// The scores for the whole query; 1 is a perfect match of every word.
    pub(super) whole: Vec<f32>,
    /// The scores for each need.
    pub(super) needs: Vec<Vec<f32>>,
    /// Misspelt words, each with its probable meaning.
    pub(super) repairs: Vec<(String, String)>,
}

/// Scores an index's tools for `query`. A word of the language, by `is_word`, is not a misspelling.
pub(super) fn score(
    postings: &Postings,
    vocabulary: &LazyVocabulary,
    query: &Query,
    is_word: &impl Fn(&str) -> bool,
) -> Words {
    let mut words = Words {
        whole: postings.row(0.0),
        needs: Vec::with_capacity(query.needs.len()),
        repairs: Vec::new(),
    };
    let mut best_of_all = 0.0;
    for need in &query.needs {
        let mut scores = postings.row(0.0);
        let mut best = 0.0;
        for stem in stems(&need.words) {
            let alternatives =
                alternatives(postings, vocabulary, stem, is_word, &mut words.repairs);
            best += postings.add_word(&alternatives, &mut scores);
        }
        words
            .whole
            .iter_mut()
            .zip(&scores)
            .for_each(|(score, need)| *score += need);
        best_of_all += best;
        divide(&mut scores, best);
        words.needs.push(scores);
    }
    divide(&mut words.whole, best_of_all);
    words
}

/// The alternatives for each word of a need.
pub(super) fn needed(
    postings: &Postings,
    vocabulary: &LazyVocabulary,
    need: &Need,
    is_word: &impl Fn(&str) -> bool,
) -> Vec<Vec<Alternative>> {
    stems(&need.words)
        .into_iter()
        .map(|stem| alternatives(postings, vocabulary, stem, is_word, &mut Vec::new()))
        .collect()
}

/// The tools with the best scores, best first: at most `limit`, and those that tie with the last. Names in the query
/// and the servers of the request are considered. `fits` is whether any tool fits, if that was decided by meaning: if not,
/// only a tool whose name is in the query is listed. By words alone, every tool that matches one fits.
pub(super) fn rank(
    postings: &Postings,
    query: &Query,
    Scores { mut whole, needs }: Scores,
    request: &Request<'_>,
    fits: Option<bool>,
) -> Vec<Candidate> {
    if needs.len() > 1 {
        serve_each(&mut whole, &needs);
    }
    keep_wanted(postings, request, &mut whole);
    if let Some(fits) = fits {
        let floor = if fits {
            maximum(&whole) * NOISE
        } else {
            f32::INFINITY
        };
        whole
            .iter_mut()
            .filter(|score| **score < floor)
            .for_each(|score| *score = 0.0);
    }
    prefer_servers(postings, query, &mut whole);
    for name in &query.names {
        postings.named(name).for_each(|doc| whole[doc] += EXACT);
    }
    keep_wanted(postings, request, &mut whole);
    postings.best(&whole, request.limit)
}

fn divide(scores: &mut [f32], best: f32) {
    if best > 0.0 {
        scores.iter_mut().for_each(|score| *score /= best);
    }
}

/// A word of the query, by its stem.
struct Stem<'a> {
    stem: String,
    word: &'a str,
    hint: bool,
}

/// The stems of some words, without duplicates, with the first word of each.
fn stems<'a>(words: impl IntoIterator<Item = &'a Word>) -> Vec<Stem<'a>> {
    let mut stems: Vec<Stem<'a>> = Vec::new();
    for Word { text, hint } in words {
        let stem = stem(text);
        match stems.iter_mut().find(|known| known.stem == stem) {
            Some(known) => known.hint |= hint,
            None => stems.push(Stem {
                stem,
                word: text,
                hint: *hint,
            }),
        }
    }
    stems
}

/// The stems of some words, without duplicates.
pub(super) fn distinct_stems(words: &[Word]) -> Vec<String> {
    stems(words).into_iter().map(|stem| stem.stem).collect()
}

/// The number of different words of a query.
pub(super) fn distinct_words(query: &Query) -> usize {
    stems(query.needs.iter().flat_map(|need| &need.words)).len()
}

/// The alternatives for a word: the word and its synonyms, or its probable meaning if no tool has it.
fn alternatives(
    postings: &Postings,
    vocabulary: &LazyVocabulary,
    Stem {
        stem: known, word, ..
    }: Stem<'_>,
    is_word: &impl Fn(&str) -> bool,
    repairs: &mut Vec<(String, String)>,
) -> Vec<Alternative> {
    let is_known = postings.has(&known);
    let mut alternatives = Vec::new();
    for synonym in synonyms(&known) {
        if is_known || postings.has(synonym) {
            let weight = if is_known { SYNONYM } else { SUBSTITUTE };
            alternatives.push(Alternative {
                stem: synonym.to_owned(),
                weight,
            });
        }
    }
    if is_known {
        alternatives.push(Alternative {
            stem: known,
            weight: 1.0,
        });
    } else if alternatives.is_empty() {
        let mut guess = 1.0;
        // A word of the language was meant as written, though no tool has it.
        let found = if is_word(word) {
            Vec::new()
        } else {
            vocabulary.get(postings).repairs(word)
        };
        if let Some(first) = found.first() {
            repairs.push((word.to_owned(), first.word.clone()));
        }
        for repair in found {
            let weight = (0..repair.distance).fold(guess, |weight, _| weight * MISTAKE);
            alternatives.push(Alternative {
                stem: stem(&repair.word),
                weight,
            });
            guess = SECOND_GUESS;
        }
    }
    alternatives
}

/// Mixes into `scores` each tool's distance from the best for one of the needs, and raises the best tool of each need
/// to the front. Of several equal ones it takes the tool that also fits the rest of the query.
fn serve_each(scores: &mut [f32], needs: &[Vec<f32>]) {
    let top = maximum(scores);
    let needs: Vec<(&Vec<f32>, f32)> = needs
        .iter()
        .map(|need| (need, maximum(need)))
        .filter(|(_, best)| *best > 0.0)
        .collect();
    for (doc, score) in scores.iter_mut().enumerate() {
        let share = needs
            .iter()
            .map(|(need, best)| need[doc] / best)
            .fold(0.0, f32::max);
        *score = (1.0 - NEED) * *score + NEED * top * share;
    }
    for (need, best) in needs {
        let fit = |doc: usize| need[doc] / best + 2.0 * scores[doc] / top;
        if let Some(leader) = (0..scores.len())
            .rev()
            .max_by(|a, b| fit(*a).total_cmp(&fit(*b)))
        {
            scores[leader] = scores[leader].max(LEAD * top);
        }
    }
}

fn maximum(scores: &[f32]) -> f32 {
    scores.iter().copied().fold(0.0, f32::max)
}

/// Raises the tools of servers that the query names in full.
pub(super) fn prefer_servers(postings: &Postings, query: &Query, scores: &mut [f32]) {
    let mut missing = postings.row((u32::MAX, u32::MAX));
    for stem in stems(query.needs.iter().flat_map(|need| &need.words)) {
        postings.each_of_server_word(&stem.stem, |doc, length| {
            let (named, hinted) = &mut missing[doc];
            *named = (*named).min(length).saturating_sub(1);
            *hinted = (*hinted).min(length).saturating_sub(u32::from(stem.hint));
        });
    }
    for (score, missing) in scores.iter_mut().zip(missing) {
        *score *= match missing {
            (_, 0) => 1.0 + HINTED,
            (0, _) => 1.0 + NAMED,
            _ => 1.0,
        };
    }
}

/// Removes the scores of tools that the request excludes.
pub(super) fn keep_wanted(postings: &Postings, request: &Request<'_>, scores: &mut [f32]) {
    if let Some(server) = request.server {
        let mut is_kept = postings.row(false);
        postings
            .of_server(server)
            .for_each(|doc| is_kept[doc] = true);
        scores
            .iter_mut()
            .zip(is_kept)
            .filter(|(_, kept)| !kept)
            .for_each(|(score, _)| *score = 0.0);
    }
    for server in request.without {
        postings
            .of_server(server.as_str())
            .for_each(|doc| scores[doc] = 0.0);
    }
}
