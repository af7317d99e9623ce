//! The explanation of a search: the scores of each stage for each hit.

use serde_json::{Value, json};

use super::Hit;
use super::lexical::{self, Words};
use super::meaning::Similarity;
use super::postings::Postings;
use super::query::Query;
use super::schema::RANKED;
use super::vocabulary::LazyVocabulary;

/// A search with its intermediate results.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The texts that were searched: one per need.
    pub needs: Vec<String>,
    /// Misspelt words, each with its replacement.
    pub repairs: Vec<(String, String)>,
    /// Whether meaning was used.
    pub is_by_meaning: bool,
    /// Whether the best hit fits. If it does not, a search returns no hits.
    pub fits: bool,
    /// The words of the language model, by which it was searched once more.
    pub words_of_model: Option<String>,
    /// The hits, best first.
    pub hits: Vec<Explained>,
}

/// The scores of one hit. With several needs they are those of the whole query.
#[derive(Debug, Clone)]
pub struct Explained {
    /// The hit, with its final score.
    pub hit: Hit,
    /// The contribution of each field, as a share of the words' score.
    pub fields: Vec<(&'static str, f32)>,
    /// The score of the words; 1 is a perfect match.
    pub words: f32,
    /// The cosine similarity. `None` without a vector.
    pub meaning: Option<f32>,
    /// The combined score of words and meaning.
    pub fused: f32,
    /// The rank by words alone, counted from 1. `None` if no word matches.
    pub rank_by_words: Option<usize>,
    /// The rank by meaning alone.
    pub rank_by_meaning: Option<usize>,
    /// The amount added because the query names the server.
    pub server: f32,
    /// Whether the tool's exact name is in the query.
    pub is_named: bool,
    /// The amount added because the tool was called after such searches.
    pub habit: f32,
    /// The rank before a language model reordered the hits, counted from 1. `None` without one.
    pub rank_before_model: Option<usize>,
}

impl Explained {
    /// The tool's name, as a call has it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}__{}", self.hit.server, self.hit.tool)
    }
}

impl Explanation {
    /// As `mcpzip search --explain --json` prints it.
    #[must_use]
    pub fn json(&self) -> Value {
        let hit = |hit: &Explained| {
            json!({
                "name": hit.name(),
                "score": hit.hit.score,
                "words": hit.words,
                "fields": hit.fields.iter().map(|(field, score)| ((*field).to_owned(), json!(score))).collect::<serde_json::Map<_, _>>(),
                "meaning": hit.meaning,
                "fused": hit.fused,
                "rank_by_words": hit.rank_by_words,
                "rank_by_meaning": hit.rank_by_meaning,
                "server_factor": hit.server,
                "is_named": hit.is_named,
                "habit": hit.habit,
                "rank_before_model": hit.rank_before_model,
            })
        };
        json!({
            "needs": self.needs,
            "repairs": self.repairs.iter().map(|(written, meant)| json!({"written": written, "meant": meant})).collect::<Vec<_>>(),
            "by_meaning": self.is_by_meaning,
            "fits": self.fits,
            "words_of_model": self.words_of_model,
            "hits": self.hits.iter().map(hit).collect::<Vec<_>>(),
        })
    }
}

/// The words' scores by field, for all documents.
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

/// The rank of document `at` by the scores in `row`, counted from 1. `None` if its score is zero.
pub(super) fn rank(row: &[f32], at: usize) -> Option<usize> {
    (row[at] > 0.0).then(|| 1 + row.iter().filter(|other| **other > row[at]).count())
}

/// The inputs of one hit's explanation.
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
            habit: 0.0,
            rank_before_model: None,
        }
    }
}
