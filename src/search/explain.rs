//! Why a search found what it found: what each stage says of each hit.

use super::Hit;
use super::lexical::{self, Words};
use super::meaning::Similarity;
use super::postings::Postings;
use super::query::Query;
use super::schema::RANKED;
use super::vocabulary::LazyVocabulary;

/// A search, taken apart.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// What was looked for: one text for each need.
    pub needs: Vec<String>,
    /// Misspelt words, each with what was looked for instead.
    pub repairs: Vec<(String, String)>,
    /// Whether meaning was looked at too.
    pub is_by_meaning: bool,
    /// Whether the best hit fits; a search shows none where it does not.
    pub fits: bool,
    /// The hits, best first.
    pub hits: Vec<Explained>,
}

/// What each stage says of a hit. Of several needs, scores are those of the whole query.
#[derive(Debug, Clone)]
pub struct Explained {
    /// The hit, with its final score.
    pub hit: Hit,
    /// What the words found in each field add: a share of the words' score.
    pub fields: Vec<(&'static str, f32)>,
    /// How well the words match; 1 is as well as can be.
    pub words: f32,
    /// How near the meaning is: a cosine. `None` without one.
    pub meaning: Option<f32>,
    /// Both in one.
    pub fused: f32,
    /// The rank by words alone, counted from 1; `None` when no word matches.
    pub rank_by_words: Option<usize>,
    /// The rank by meaning alone.
    pub rank_by_meaning: Option<usize>,
    /// What the fused score was raised by, since the query names the server.
    pub server: f32,
    /// Whether the tool's exact name is in the query.
    pub is_named: bool,
    /// The rank before a language model reordered the hits, counted from 1; `None` without one.
    pub rank_before_model: Option<usize>,
}

/// The words' scores by field, of all documents.
pub(super) fn by_field(
    postings: &Postings,
    vocabulary: &LazyVocabulary,
    query: &Query,
    is_word: &impl Fn(&str) -> bool,
) -> Vec<Vec<f32>> {
    let mut fields = vec![postings.row(0.0); RANKED.len()];
    let mut best = 0.0;
    for need in &query.needs {
        for alternatives in lexical::needed(postings, vocabulary, need, is_word) {
            best += postings.add_word_by_field(&alternatives, &mut fields);
        }
    }
    fields
        .iter_mut()
        .flatten()
        .for_each(|score| *score /= f32::max(best, f32::MIN_POSITIVE));
    fields
}

/// The rank of document `at` by the scores in `row`, counted from 1; `None` when its score is zero.
pub(super) fn rank(row: &[f32], at: usize) -> Option<usize> {
    (row[at] > 0.0).then(|| 1 + row.iter().filter(|other| **other > row[at]).count())
}

/// What is told of one hit.
pub(super) struct Parts<'a> {
    pub(super) words: &'a Words,
    pub(super) similarity: Option<&'a Similarity>,
    pub(super) fields: &'a [Vec<f32>],
    pub(super) fused: &'a [f32],
    pub(super) servers: &'a [f32],
    pub(super) named: &'a [f32],
}

impl Parts<'_> {
    pub(super) fn of(&self, hit: Hit, at: usize) -> Explained {
        let meaning = self
            .similarity
            .map(|similarity| similarity.whole[at])
            .filter(|cosine| !cosine.is_nan());
        Explained {
            hit,
            fields: RANKED
                .iter()
                .zip(self.fields)
                .map(|(field, row)| (field.name, row[at]))
                .collect(),
            words: self.words.whole[at],
            meaning,
            fused: self.fused[at],
            rank_by_words: rank(&self.words.whole, at),
            rank_by_meaning: self
                .similarity
                .and_then(|similarity| rank(&similarity.whole, at)),
            server: self.servers[at],
            is_named: self.named[at] > 0.0,
            rank_before_model: None,
        }
    }
}
