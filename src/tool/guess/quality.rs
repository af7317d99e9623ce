//! The quality of guesses, measured on the annotated tools of the search benchmark, for `docs/classifier.md`.
//!
//! `cargo test --lib guess::quality -- --nocapture` prints the table, and the tools about which the guess is wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use serde_json::value::to_raw_value;

use crate::tool::definition::Definition;
use crate::tool::effect::Effect;

const PAGE: &str = include_str!("../../../docs/classifier.md");
const CLASSES: [Effect; 3] = [Effect::Read, Effect::Write, Effect::Destructive];

/// The declared and the suggested effect of a tool, and its name for the list of errors.
struct Judged {
    name: String,
    declared: Effect,
    suggested: Option<Effect>,
}

/// The judged tools of each server that has annotated ones, or `None` where the benchmark is not at hand.
fn judged() -> Option<BTreeMap<String, Vec<Judged>>> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../shared/search-bench/dev/corpus.json"
    );
    let servers: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(path).ok()?).expect("the benchmark is JSON");
    let servers = servers.iter().map(|server| {
        let name = server["server"].as_str().unwrap().to_owned();
        let tools = server["tools"].as_array().unwrap().iter();
        (name, tools.filter_map(judge).collect::<Vec<_>>())
    });
    Some(servers.filter(|(_, tools)| !tools.is_empty()).collect())
}

fn judge(tool: &Value) -> Option<Judged> {
    let definition = to_raw_value(tool).unwrap();
    let definition = Definition::parse(&definition).ok()?;
    // The specification's default for a tool that does not only read is that it destroys.
    let declared = match (definition.hints.read_only, definition.hints.destructive) {
        (Some(true), _) => Effect::Read,
        (_, Some(false)) => Effect::Write,
        (Some(false), None) | (_, Some(true)) => Effect::Destructive,
        (None, None) => return None,
    };
    Some(Judged {
        name: tool["name"].as_str().unwrap_or_default().to_owned(),
        declared,
        suggested: Effect::of(&definition),
    })
}

/// A share as a percentage, or a dash where there is nothing to share.
fn share(part: usize, whole: usize) -> String {
    match whole {
        0 => "–".to_owned(),
        _ => format!("{} %", (part * 200 + whole) / (2 * whole)),
    }
}

/// The rows of one set of servers.
fn rows(set: &str, tools: &[&Judged]) -> String {
    let mut rows = String::new();
    for class in CLASSES {
        let count = |is_meant: &dyn Fn(&Judged) -> bool| {
            tools.iter().filter(|judged| is_meant(judged)).count()
        };
        let declared = count(&|judged| judged.declared == class);
        let suggested = count(&|judged| judged.suggested == Some(class));
        let both = count(&|judged| judged.declared == class && judged.suggested == Some(class));
        let (precision, recall) = (share(both, suggested), share(both, declared));
        // Writing to a string does not fail.
        let _ = writeln!(
            rows,
            "| {set} | {} | {declared} | {suggested} | {both} | {precision} | {recall} |",
            class.word()
        );
    }
    let nothing = tools.iter().filter(|judged| judged.suggested.is_none());
    let _ = writeln!(rows, "| {set} | nothing | | {} | | | |", nothing.count());
    rows
}

#[test]
fn the_page_about_the_classifier_has_its_quality_on_the_search_benchmark() {
    let Some(servers) = judged() else {
        return;
    };
    let half = |skipped: usize| -> Vec<&Judged> {
        let servers = servers.values().skip(skipped).step_by(2);
        servers.flatten().collect()
    };
    let (chosen, held_out) = (half(0), half(1));
    let table = format!(
        "{}{}",
        rows("held out", &held_out),
        rows("chosen by", &chosen)
    );
    let names: Vec<&str> = servers.keys().map(String::as_str).collect();
    println!("{} servers: {}\n{table}", names.len(), names.join(", "));
    for judged in chosen.iter().chain(&held_out) {
        if judged.suggested != Some(judged.declared) {
            let (declared, suggested) = (judged.declared, judged.suggested);
            println!("{}: {declared:?}, guessed {suggested:?}", judged.name);
        }
    }
    assert!(
        PAGE.contains(&table),
        "docs/classifier.md has another table; the new one:\n{table}"
    );
}
