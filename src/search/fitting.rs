//! Decides whether any tool fits a query, by a logistic rule over four properties of the query's scores.
//!
//! The best score alone does not tell: a query of general words is a little like every tool, and a long one in other
//! words than the tools' is not very like even the right one. The spread of the similarities over all tools shows the first,
//! the number of words the second. The rule does not count tools, except that fewer than 20 have too little of a spread, so an interface
//! of a thousand operations does not change what else is found. `tools/embedding/fitting.py` finds the weights; `docs/search.md` says how often the rule is wrong.

use super::fusion::UNKNOWN;
use super::lexical::Words;
use super::meaning::Similarity;

/// The weight of each property relative to the best combined score, and the sum that is needed.
const WORDS: f32 = 0.33;
const SPREAD: f32 = 5.97;
const ASKED: f32 = 0.342;
const NEEDED: f32 = 1.29;
/// The spreads that were measured; few tools may have a smaller or larger one by chance.
const SPREADS: std::ops::RangeInclusive<f32> = 0.06..=0.13;
/// The least spread for so few tools that theirs says nothing: a user who has them rather sees a wrong one than none.
const FEW: f32 = 20.0;
const SPREAD_OF_FEW: f32 = 0.09;
/// More words than this do not make a query longer: there are no measurements.
const MOST_ASKED: usize = 6;

/// Whether the best tool fits a query of `asked` different words, of those whose entry in `permitted` is above zero.
/// `fused` are the combined scores.
pub(super) fn fits(
    fused: &[f32],
    words: &Words,
    similarity: &Similarity,
    permitted: &[f32],
    asked: usize,
) -> bool {
    let (mut best_fused, mut best_words) = (0.0f32, 0.0f32);
    let (mut count, mut sum, mut squares) = (0.0f32, 0.0f32, 0.0f32);
    for doc in (0..fused.len()).filter(|doc| permitted[*doc] > 0.0) {
        let (words, meaning) = (words.whole[doc], similarity.whole[doc]);
        let meaning = if meaning.is_nan() {
            UNKNOWN * words
        } else {
            meaning
        };
        best_fused = best_fused.max(fused[doc]);
        best_words = best_words.max(words);
        count += 1.0;
        sum += meaning;
        squares += meaning * meaning;
    }
    if count == 0.0 {
        return false;
    }
    let mean = sum / count;
    let spread = (squares / count - mean * mean).max(0.0).sqrt();
    let least = if count < FEW {
        SPREAD_OF_FEW
    } else {
        *SPREADS.start()
    };
    let spread = spread.clamp(least, *SPREADS.end());
    let asked = (1.0 + asked.min(MOST_ASKED) as f32).ln();
    best_fused + WORDS * best_words + SPREAD * spread + ASKED * asked >= NEEDED
}

#[cfg(test)]
mod tests {
    use super::super::lexical::Scores;
    use super::*;

    /// Whether the best of some tools fits, by the match of each one's words and its similarity.
    fn is_found(tools: &[(f32, f32)], asked: usize) -> bool {
        is_permitted(tools, &vec![1.0; tools.len()], asked)
    }

    fn is_permitted(tools: &[(f32, f32)], permitted: &[f32], asked: usize) -> bool {
        let words = Words {
            whole: tools.iter().map(|(words, _)| *words).collect(),
            needs: Vec::new(),
            repairs: Vec::new(),
        };
        let similarity = Similarity {
            whole: tools.iter().map(|(_, meaning)| *meaning).collect(),
            needs: Vec::new(),
        };
        let scores = Scores::of(&words, Some(&similarity));
        fits(&scores.whole, &words, &similarity, permitted, asked)
    }

    /// A tool with this similarity, and a hundred others with these in turn.
    fn among(meaning: f32, others: &[f32]) -> Vec<(f32, f32)> {
        let others = others.iter().copied().cycle().take(100);
        std::iter::once(meaning)
            .chain(others)
            .map(|meaning| (0.0, meaning))
            .collect()
    }

    #[test]
    fn a_query_that_is_as_like_as_others_to_every_tool_fits_none() {
        assert!(is_found(&among(0.55, &[0.0, 0.1, 0.2, 0.3]), 4));
        assert!(!is_found(&among(0.55, &[0.2, 0.25]), 2));
        assert!(!is_found(&among(0.3, &[0.1, 0.15]), 4));
    }

    #[test]
    fn a_longer_query_needs_less() {
        let tools = among(0.55, &[0.0, 0.1, 0.2]);
        assert!(!is_found(&tools, 1));
        assert!(is_found(&tools, 6));
        assert!(!is_found(&among(0.1, &[0.0, 0.05]), 1_000));
    }

    #[test]
    fn excluded_tools_do_not_count() {
        let tools = [(0.9, 0.9), (0.0, 0.05)];
        assert!(is_found(&tools, 3));
        assert!(!is_permitted(&tools, &[0.0, 1.0], 3));
        assert!(!is_permitted(&tools, &[0.0, 0.0], 3));
    }

    #[test]
    fn a_tool_without_a_vector_fits_by_its_words() {
        assert!(is_found(&[(0.9, f32::NAN), (0.0, 0.05)], 3));
    }
}
