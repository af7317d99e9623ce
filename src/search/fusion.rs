//! Two opinions on every tool made one: how well its words match, and how near its meaning is.

use super::lexical::Words;
use super::meaning::Likeness;

/// Scores of every tool of an index.
pub(super) struct Scores {
    /// For the whole query.
    pub(super) whole: Vec<f32>,
    /// For each need of it.
    pub(super) needs: Vec<Vec<f32>>,
}

/// How much of a score is meaning; the rest is words.
const MEANING: f32 = 0.6;

/// What fits less than this does not fit.
pub(super) const LEAST: f32 = 0.0;

impl Scores {
    /// By words alone.
    pub(super) fn of_words(words: Words) -> Self {
        Self { whole: words.whole, needs: words.needs }
    }

    /// By words and meaning.
    pub(super) fn fused(words: &Words, likeness: &Likeness) -> Self {
        let needs = words.needs.iter().zip(&likeness.needs).map(|(words, likeness)| fuse(words, likeness)).collect();
        Self { whole: fuse(&words.whole, &likeness.whole), needs }
    }
}

fn fuse(words: &[f32], likeness: &[f32]) -> Vec<f32> {
    words.iter().zip(likeness).map(|(words, likeness)| MEANING * likeness.max(0.0) + (1.0 - MEANING) * words).collect()
}
