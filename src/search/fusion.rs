//! Combines two scores of each tool: the match of its words and the similarity of its meaning.
//!
//! Both are absolute: 1 is the maximum for every query, so a weighted sum needs no normalization over the other tools.
//! The weight of the words depends on their certainty: if some tool matches every word, tools that match many words
//! are right; if the best tool matches one word of five, that word is often a coincidence.

use super::lexical::{Scores, Words};
use super::meaning::Similarity;

/// The weight of the words if none matches, and the weight added if all match. Meaning has the rest.
const WORDS: f32 = 0.15;
const SURE_WORDS: f32 = 0.3;
/// The assumed similarity of a tool without a vector whose words match perfectly.
pub(super) const UNKNOWN: f32 = 0.6;

impl Scores {
    /// Combines words and meaning; words alone without meaning.
    pub(super) fn of(words: &Words, similarity: Option<&Similarity>) -> Self {
        let Some(similarity) = similarity else {
            return Self {
                whole: words.whole.clone(),
                needs: words.needs.clone(),
            };
        };
        let needs = words
            .needs
            .iter()
            .zip(&similarity.needs)
            .map(|(words, similarity)| fuse(words, similarity))
            .collect();
        Self {
            whole: fuse(&words.whole, &similarity.whole),
            needs,
        }
    }
}

fn fuse(words: &[f32], similarity: &[f32]) -> Vec<f32> {
    let best = words.iter().copied().fold(0.0, f32::max).min(1.0);
    let share = WORDS + SURE_WORDS * best;
    let fuse = |(words, similarity): (&f32, &f32)| {
        let similarity = if similarity.is_nan() {
            UNKNOWN * words
        } else {
            similarity.max(0.0)
        };
        (1.0 - share) * similarity + share * words
    };
    words.iter().zip(similarity).map(fuse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(words: &[f32], similarity: &[f32]) -> usize {
        let fused = fuse(words, similarity);
        (0..fused.len())
            .max_by(|a, b| fused[*a].total_cmp(&fused[*b]))
            .unwrap()
    }

    #[test]
    fn sure_words_win_over_a_vague_likeness() {
        assert_eq!(first(&[1.0, 0.2], &[0.3, 0.6]), 0);
        assert_eq!(first(&[0.8, 0.1], &[0.35, 0.5]), 0);
    }

    #[test]
    fn likeness_decides_where_words_are_few() {
        assert_eq!(first(&[0.2, 0.0], &[0.2, 0.6]), 1);
        assert_eq!(first(&[0.0, 0.0], &[0.2, 0.3]), 1);
    }

    #[test]
    fn a_tool_without_a_vector_is_found_by_its_words() {
        assert_eq!(first(&[0.9, 0.3], &[f32::NAN, 0.5]), 0);
        assert_eq!(first(&[0.2, 0.2], &[f32::NAN, 0.5]), 1);
        assert!(fuse(&[0.0], &[f32::NAN])[0] < f32::EPSILON);
    }

    #[test]
    fn without_likeness_words_stand_as_they_are() {
        let words = Words {
            whole: vec![0.5, 0.0],
            needs: vec![vec![0.5, 0.0]],
            repairs: Vec::new(),
        };
        let scores = Scores::of(&words, None);
        assert_eq!((scores.whole, scores.needs), (words.whole, words.needs));
    }
}
