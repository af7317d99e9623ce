//! Measures how well the effects that tools' texts suggest (`@read?`, `@write?`, `@destructive?`) agree with what tools declare.
//!
//! `cargo run --release -p mcpzip-bench --example tool_effects -- BENCH/dev/corpus.json [MORE.json…]`
//!
//! A file is a list of `{"server": NAME, "tools": [DEFINITION…]}`. Its servers with annotated tools, in the order of their names, belong to the
//! half by which the words were chosen and to the other one by turns.
#![allow(clippy::print_stdout, reason = "a report")]

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context as _;
use mcpzip::internals::tool::{Definition, Effect};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Server {
    server: String,
    tools: Vec<Box<RawValue>>,
}

/// The tools of one declaration, by the effect that their texts suggest.
type Row = BTreeMap<&'static str, usize>;

fn main() -> anyhow::Result<()> {
    for path in std::env::args().skip(1) {
        let text = fs::read_to_string(&path).with_context(|| path.clone())?;
        let mut servers: Vec<Server> = serde_json::from_str(&text).with_context(|| path.clone())?;
        servers.sort_by(|a, b| a.server.cmp(&b.server));
        println!("{path}");
        let mut halves = [BTreeMap::new(), BTreeMap::new()];
        let mut names = [Vec::new(), Vec::new()];
        let mut annotated = 0;
        for server in &servers {
            let rows = rows(server);
            if !rows.is_empty() {
                let half = annotated % 2;
                annotated += 1;
                names[half].push(server.server.as_str());
                for (declared, suggested) in rows {
                    let row: &mut Row = halves[half].entry(declared).or_default();
                    *row.entry(suggested).or_default() += 1;
                }
            }
        }
        for (half, (rows, names)) in ["chosen by", "reported"]
            .iter()
            .zip(halves.iter().zip(&names))
        {
            println!("  {half}: {}", names.join(", "));
            for (declared, row) in rows {
                let count: usize = row.values().sum();
                let shown: Vec<String> = row
                    .iter()
                    .map(|(suggested, n)| format!("{suggested} {n}"))
                    .collect();
                println!(
                    "    declared {declared}: {count} tools, suggested: {}",
                    shown.join(", ")
                );
            }
        }
    }
    Ok(())
}

/// Of each annotated tool of a server, what it declares and what its texts suggest.
fn rows(server: &Server) -> Vec<(&'static str, &'static str)> {
    let definitions = server
        .tools
        .iter()
        .filter_map(|raw| Definition::parse(raw).ok());
    let annotated = definitions.filter_map(|definition| {
        let declared = match (definition.hints.read_only, definition.hints.destructive) {
            (Some(true), _) => "read",
            (_, Some(true)) => "destructive",
            (_, Some(false)) => "write",
            (Some(false), None) => "a change of some kind",
            (None, None) => return None,
        };
        Some((
            declared,
            Effect::of(&definition).map_or("nothing", Effect::word),
        ))
    });
    annotated.collect()
}
