//! Ranking by words.
//!
//! BM25F: a word's occurrences in all fields are weighed and added before they are saturated, so that a word in name,
//! title and description is one match and not three.

use super::Request;
use super::postings::{Alternative, Candidate, Postings};
use super::query::{Need, Query, Word};
use super::synonyms::synonyms;
use super::tokenizer::stem;
use super::vocabulary::LazyVocabulary;

/// What a synonym has of the word's weight: beside the word, and in its place where no tool has it.
const SYNONYM: f32 = 0.35;
const SUBSTITUTE: f32 = 0.8;
/// What each mistake leaves of a repaired word's weight, and what is left of it for all but the first guess.
const MISTAKE: f32 = 0.75;
const SECOND_GUESS: f32 = 0.9;
/// What a tool gains when the query names its server in full: at a place where servers are named, or anywhere.
const HINTED: f32 = 0.5;
const NAMED: f32 = 0.15;
/// How much being the best for one of several needs counts beside being the best for all of them.
const NEED: f32 = 0.3;
/// Each need's best tool comes at least this near to the first.
const LEAD: f32 = 0.95;
/// What is below this share of the best score is noise beside it, though it may fit a little.
const NOISE: f32 = 0.25;
/// What a tool gains whose exact name is in the query: more than any sum of words.
const EXACT: f32 = 10.0;

/// Scores of every tool of an index.
pub(super) struct Scores {
    /// For the whole query.
    pub(super) whole: Vec<f32>,
    /// For each need of it.
    pub(super) needs: Vec<Vec<f32>>,
}

/// What the words of a query say of every tool.
pub(super) struct Words {
    /// For the whole query: 1 is every word matched as well as can be.
    pub(super) whole: Vec<f32>,
    /// The same for each need.
    pub(super) needs: Vec<Vec<f32>>,
    /// Misspelt words, each with what was probably meant.
    pub(super) repairs: Vec<(String, String)>,
}

/// Scores an index's tools for `query`. What `is_word` knows as a word of the language is no misspelling.
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

/// What to look for in place of each word of a need.
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

/// The tools with the best scores, best first: `limit` of them, where there are as many, and those that tie with the
/// last. Names in the query count, and tools of the servers that are wanted. Where no score reaches `least`, nothing
/// fits; by words alone, what has one of them does.
pub(super) fn rank(
    postings: &Postings,
    query: &Query,
    Scores { mut whole, needs }: Scores,
    request: &Request<'_>,
    least: Option<f32>,
) -> Vec<Candidate> {
    if needs.len() > 1 {
        serve_each(&mut whole, &needs);
    }
    keep_wanted(postings, request, &mut whole);
    if let Some(least) = least {
        let best = maximum(&whole);
        let floor = if best < least {
            f32::INFINITY
        } else {
            best * NOISE
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

/// A word of the query by its stem.
struct Stem<'a> {
    stem: String,
    word: &'a str,
    hint: bool,
}

/// The stems of some words, each once, with the first word that has it.
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

/// What to look for in place of a word: itself and its synonyms, or what may have been meant where no tool has it.
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
        // A word of the language was meant as it stands, though no tool has it.
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

/// Mixes into `scores` how near each tool comes to the best for one of the needs, and brings the best of each need to
/// the front; of several as good, the one that also fits the rest of the query.
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

/// Leaves the scores of the tools that are wanted.
fn keep_wanted(postings: &Postings, request: &Request<'_>, scores: &mut [f32]) {
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
