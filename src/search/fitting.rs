//! Decides whether any tool fits a query, by a logistic rule over four properties of the query's scores.
//!
//! The best similarity alone does not tell: a query of general words is a little like every tool, and a long one in other
//! words than the tools' is not very like even the right one. The spread of the similarities over all tools shows the first,
//! the number of words the second. The rule does not count tools, so an interface of a thousand operations does not change
//! what else is found. `tools/embedding/fitting.py` finds the weights; `docs/search.md` says how often the rule is wrong.

use super::fusion::UNKNOWN;
use super::lexical::Words;
use super::meaning::Similarity;

/// The weight of each property relative to the best similarity, and the sum that is needed.
const WORDS: f32 = 0.5;
const SPREAD: f32 = 6.6;
const ASKED: f32 = 0.38;
const NEEDED: f32 = 1.5;
/// The spreads that were measured; few tools may have a smaller or larger one by chance.
const SPREADS: std::ops::RangeInclusive<f32> = 0.06..=0.13;
/// More words than this do not make a query longer: there are no measurements.
const MOST_ASKED: usize = 8;

/// Whether the best tool fits a query of `asked` different words, of those whose entry in `permitted` is above zero.
pub(super) fn fits(
    words: &Words,
    similarity: &Similarity,
    permitted: &[f32],
    asked: usize,
) -> bool {
    let mut best = (0.0f32, 0.0f32);
    let (mut count, mut sum, mut squares) = (0.0f32, 0.0f32, 0.0f32);
    let scores = words.whole.iter().zip(&similarity.whole).zip(permitted);
    for ((words, meaning), _) in scores.filter(|(_, permitted)| **permitted > 0.0) {
        let meaning = if meaning.is_nan() {
            UNKNOWN * words
        } else {
            *meaning
        };
        best = (best.0.max(meaning), best.1.max(*words));
        count += 1.0;
        sum += meaning;
        squares += meaning * meaning;
    }
    if count == 0.0 {
        return false;
    }
    let mean = sum / count;
    let spread = (squares / count - mean * mean).max(0.0).sqrt();
    let spread = spread.clamp(*SPREADS.start(), *SPREADS.end());
    let asked = (1.0 + asked.min(MOST_ASKED) as f32).ln();
    best.0 + WORDS * best.1 + SPREAD * spread + ASKED * asked >= NEEDED
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a tool with this similarity fits among a hundred with the others in turn.
    fn is_found(meaning: f32, others: &[f32], asked: usize) -> bool {
        let mut whole: Vec<f32> = others.iter().copied().cycle().take(100).collect();
        whole.push(meaning);
        let words = Words {
            whole: vec![0.0; whole.len()],
            needs: Vec::new(),
            repairs: Vec::new(),
        };
        let permitted = vec![1.0; whole.len()];
        let similarity = Similarity {
            whole,
            needs: Vec::new(),
        };
        fits(&words, &similarity, &permitted, asked)
    }

    #[test]
    fn a_query_that_is_as_like_as_others_to_every_tool_fits_none() {
        assert!(is_found(0.5, &[0.0, 0.1, 0.2, 0.3], 4));
        assert!(!is_found(0.5, &[0.2, 0.25], 2));
        assert!(!is_found(0.3, &[0.1, 0.15], 4));
    }

    #[test]
    fn a_longer_query_needs_less() {
        assert!(!is_found(0.45, &[0.0, 0.1, 0.2], 1));
        assert!(is_found(0.45, &[0.0, 0.1, 0.2], 6));
        assert!(!is_found(0.1, &[0.0, 0.1, 0.2], 1_000));
    }

    #[test]
    fn excluded_tools_do_not_count() {
        let words = Words {
            whole: vec![0.9, 0.0],
            needs: Vec::new(),
            repairs: Vec::new(),
        };
        let similarity = Similarity {
            whole: vec![0.9, 0.05],
            needs: Vec::new(),
        };
        assert!(fits(&words, &similarity, &[1.0, 1.0], 3));
        assert!(!fits(&words, &similarity, &[0.0, 1.0], 3));
        assert!(!fits(&words, &similarity, &[0.0, 0.0], 3));
    }

    #[test]
    fn a_tool_without_a_vector_fits_by_its_words() {
        let words = Words {
            whole: vec![0.9, 0.0],
            needs: Vec::new(),
            repairs: Vec::new(),
        };
        let similarity = Similarity {
            whole: vec![f32::NAN, 0.05],
            needs: Vec::new(),
        };
        assert!(fits(&words, &similarity, &[1.0, 1.0], 3));
    }
}
