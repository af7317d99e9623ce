//! `mcpzip search --explain`: the scores of each hit by stage, as text or JSON.

use super::output::{Output, faint, strong};
use crate::search::{Explained, Explanation};

pub(super) fn show(explanation: &Explanation, output: &Output) {
    if output.is_json() {
        output.json(&explanation.json());
        return;
    }
    if explanation.needs.len() > 1 {
        output.line(format!("needs: {}", explanation.needs.join(" | ")));
    }
    for (written, meant) in &explanation.repairs {
        output.line(format!("`{written}` is read as `{meant}`"));
    }
    if !explanation.is_by_meaning {
        output.line(faint(
            "by words alone: there is no search by meaning, or no tool is ready for it yet",
        ));
    }
    if let Some(words) = &explanation.words_of_model {
        output.line(format!("the language model also searched for `{words}`"));
    }
    for (rank, hit) in (1..).zip(&explanation.hits) {
        let score = |score: f32, rank: Option<usize>| match rank {
            Some(rank) => format!("{score:.3} (#{rank})"),
            None => format!("{score:.3}"),
        };
        output.line(format!(
            "{rank}. {}  {:.3}{}",
            strong(hit.name()),
            hit.hit.score,
            faint(remarks(hit))
        ));
        let meaning = hit.meaning.map_or_else(
            || "-".to_owned(),
            |meaning| score(meaning, hit.rank_by_meaning),
        );
        output.line(format!(
            "   words {}, meaning {meaning}, combined {:.3}",
            score(hit.words, hit.rank_by_words),
            hit.fused
        ));
        let fields = hit.fields.iter().filter(|(_, score)| *score > 0.0);
        let fields: Vec<String> = fields
            .map(|(field, score)| format!("{field} {score:.3}"))
            .collect();
        if !fields.is_empty() {
            output.line(faint(format!("   words in: {}", fields.join(", "))));
        }
    }
    if !explanation.fits {
        output.line("No tool fits: a search shows none of these.");
    }
}

/// Other reasons for the rank of a hit.
fn remarks(hit: &Explained) -> String {
    let mut remarks = String::new();
    if let Some(rank) = hit.rank_before_model {
        remarks.push_str(&format!("  #{rank} before the language model"));
    }
    if hit.is_named {
        remarks.push_str("  its name is in the query");
    }
    if hit.server > 1.0 {
        remarks.push_str(&format!("  its server is named: x {:.2}", hit.server));
    }
    if hit.habit > 0.0 {
        remarks.push_str(&format!("  called after such searches: + {:.3}", hit.habit));
    }
    remarks
}
