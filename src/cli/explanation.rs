//! `mcpzip search --explain`: the scores of each hit by stage, as a table or JSON.

use serde_json::{Value, json};

use super::output::{Output, faint, strong};
use crate::search::{Explained, Explanation};

pub(super) fn show(explanation: &Explanation, output: &Output) {
    if output.is_json() {
        output.json(&value(explanation));
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
    let widest = explanation
        .hits
        .iter()
        .map(|hit| name(hit).len())
        .max()
        .unwrap_or(0)
        .max(4);
    let fields: Vec<&str> = explanation.hits.first().map_or(Vec::new(), |hit| {
        hit.fields.iter().map(|(field, _)| *field).collect()
    });
    let columns: String = fields.iter().map(|field| format!(" {field:>11}")).collect();
    output.line(faint(format!(
        "    {:widest$}   score   words meaning   fused  by words, meaning {columns}",
        "tool"
    )));
    for (rank, hit) in (1..).zip(&explanation.hits) {
        let rank_of =
            |rank: Option<usize>| rank.map_or_else(|| "-".to_owned(), |rank| format!("#{rank}"));
        let meaning = hit
            .meaning
            .map_or_else(|| "      -".to_owned(), |meaning| format!("{meaning:7.3}"));
        let fields: String = hit
            .fields
            .iter()
            .map(|(_, score)| format!(" {score:11.3}"))
            .collect();
        let pad = " ".repeat(widest - name(hit).len());
        let ranks = format!(
            "{:>8} {:>8}",
            rank_of(hit.rank_by_words),
            rank_of(hit.rank_by_meaning)
        );
        let (score, words, fused) = (hit.hit.score, hit.words, hit.fused);
        let row = format!("{score:7.3} {words:7.3} {meaning} {fused:7.3}  {ranks} {fields}");
        output.line(format!(
            "{rank:>3} {}{pad} {row}{}",
            strong(name(hit)),
            faint(remarks(hit))
        ));
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
    remarks
}

fn name(hit: &Explained) -> String {
    format!("{}__{}", hit.hit.server, hit.hit.tool)
}

fn value(explanation: &Explanation) -> Value {
    let hit = |hit: &Explained| {
        json!({
            "name": name(hit),
            "score": hit.hit.score,
            "words": hit.words,
            "fields": hit.fields.iter().map(|(field, score)| ((*field).to_owned(), json!(score))).collect::<serde_json::Map<_, _>>(),
            "meaning": hit.meaning,
            "fused": hit.fused,
            "rank_by_words": hit.rank_by_words,
            "rank_by_meaning": hit.rank_by_meaning,
            "server_factor": hit.server,
            "is_named": hit.is_named,
            "rank_before_model": hit.rank_before_model,
        })
    };
    json!({
        "needs": explanation.needs,
        "repairs": explanation.repairs.iter().map(|(written, meant)| json!({"written": written, "meant": meant})).collect::<Vec<_>>(),
        "by_meaning": explanation.is_by_meaning,
        "fits": explanation.fits,
        "hits": explanation.hits.iter().map(hit).collect::<Vec<_>>(),
    })
}
