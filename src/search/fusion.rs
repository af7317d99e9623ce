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
const UNKNOWN: f32 = 0.6;
/// The score the best tool must reach beyond chance: the best of many chance similarities grows with the logarithm of
/// their number. Bounds cover very few and very many tools, for which there are no measurements.
const CHANCE: f32 = 0.125;
const CHANCE_OF_MANY: f32 = 0.0275;
const BOUNDS: std::ops::RangeInclusive<f32> = 0.2..=0.32;

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

/// The score that the best tool of these servers must reach to fit, by the number of each one's tools.
///
/// The tools of one server resemble one another, so they are fewer chances than as many tools of many servers: about the
/// square root of their number. Otherwise a thousand operations of an interface would hide what other servers have.
pub(super) fn least(tools_of_servers: &[usize]) -> f32 {
    let chances = tools_of_servers.iter().map(|tools| (*tools as f32).sqrt());
    let chances = chances.sum::<f32>().max(1.0);
    (CHANCE + CHANCE_OF_MANY * chances.ln()).clamp(*BOUNDS.start(), *BOUNDS.end())
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
    fn the_best_of_many_must_fit_better() {
        let many = |servers: usize| least(&vec![10; servers]);
        let cuts: Vec<f32> = [0, 1, 5, 50, 200, 1_000, 5_000].map(many).into();
        assert!(
            cuts.is_sorted() && cuts[2] < cuts[3] && cuts[3] < cuts[4],
            "{cuts:?}"
        );
        assert!(cuts.iter().all(|cut| BOUNDS.contains(cut)), "{cuts:?}");
    }

    #[test]
    fn tools_of_one_server_are_fewer_chances_than_those_of_many() {
        let own = [8; 65];
        let alone = least(&own);
        let with = |others: &[usize]| least(&[&own[..], others].concat()) - alone;
        let (of_one, of_many) = (with(&[1_000]), with(&[2; 500]));
        assert!(of_one > 0.0 && of_many > 4.0 * of_one, "{of_one} {of_many}");
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
