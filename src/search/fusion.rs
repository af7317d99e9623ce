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
const LEAST: f32 = 0.0;

impl Scores {
    /// By words, and by meaning where it is told; and the score below which nothing counts as fitting.
    pub(super) fn of(words: &Words, likeness: Option<&Likeness>) -> (Self, f32) {
        let Some(likeness) = likeness else {
            return (Self { whole: words.whole.clone(), needs: words.needs.clone() }, 0.0);
        };
        let needs = words.needs.iter().zip(&likeness.needs).map(|(words, likeness)| fuse(words, likeness)).collect();
        (Self { whole: fuse(&words.whole, &likeness.whole), needs }, LEAST)
    }
}

fn fuse(words: &[f32], likeness: &[f32]) -> Vec<f32> {
    words.iter().zip(likeness).map(|(words, likeness)| MEANING * likeness.max(0.0) + (1.0 - MEANING) * words).collect()
}
