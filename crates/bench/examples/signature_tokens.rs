//! Measures the tokens of search hits over a corpus of real tools.
//!
//! `cargo run --release -p mcpzip-bench --example signature_tokens -- CORPUS.json [SHOW]`. The corpus has the form
//! `[{"server": …, "tools": [{"name": …, "description": …, "inputSchema": …}]}]`. SHOW is a number of hits to print.

use std::io::Write;

use anyhow::Context;
use mcpzip::internals::tool::{Definition, ServerName, render_hit, render_hits};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Server {
    server: String,
    tools: Vec<Box<RawValue>>,
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .context("usage: signature_tokens CORPUS.json [SHOW]")?;
    let show: usize = arguments.next().map_or(Ok(0), |n| n.parse())?;
    let corpus: Vec<Server> = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
    let mut tools = Vec::new();
    for server in &corpus {
        let name: String = server
            .server
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(64)
            .collect();
        let name = ServerName::new(&name)?;
        for tool in &server.tools {
            if let Ok(definition) = Definition::parse(tool) {
                tools.push((name.clone(), definition));
            }
        }
    }
    let o200k = tiktoken_rs::o200k_base()?;
    let tokens = |text: &str| o200k.encode_ordinary(text).len();
    let mut out = std::io::stdout().lock();

    let started = std::time::Instant::now();
    let hits: Vec<String> = tools
        .iter()
        .map(|(server, definition)| render_hit(server, definition))
        .collect();
    let each = started.elapsed() / u32::try_from(hits.len())?;
    writeln!(out, "{} tools, {each:?} a hit", hits.len())?;
    summary(
        &mut out,
        "tokens per hit",
        hits.iter().map(|hit| tokens(hit)).collect(),
    )?;
    summary(
        &mut out,
        "bytes per hit",
        hits.iter().map(String::len).collect(),
    )?;

    let (mut callable, mut small) = (0, 0);
    for ((_, definition), hit) in tools.iter().zip(&hits) {
        if definition.parameters.len() <= 6 {
            small += 1;
            let whole = is_callable(definition, hit.lines().next().unwrap_or_default());
            callable += usize::from(whole);
            if !whole && show > 0 {
                writeln!(out, "not callable: {hit}")?;
            }
        }
    }
    let share = 100.0 * f64::from(callable as u32) / f64::from(small as u32);
    writeln!(
        out,
        "up to six parameters: {small} tools, {share:.1} % callable from the signature alone"
    )?;

    let mut random = Random(1);
    for (count, limit) in [(5, 400), (10, 800)] {
        let mut measured = Vec::new();
        for _ in 0..2_000 {
            let sample: Vec<_> = (0..count)
                .map(|_| &tools[random.below(tools.len())])
                .collect();
            measured.push(tokens(
                &render_hits(
                    sample
                        .iter()
                        .map(|(server, definition)| (server, definition)),
                    limit,
                )
                .join("\n"),
            ));
        }
        let over = measured.iter().filter(|tokens| **tokens > limit).count();
        summary(
            &mut out,
            &format!("tokens of {count} random hits ({over} of 2000 above {limit})"),
            measured,
        )?;
    }
    // The longest hits together make the worst answer.
    let mut order: Vec<usize> = (0..hits.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(tokens(&hits[*at])));
    for (count, limit) in [(5, 400), (10, 800)] {
        let worst = render_hits(
            order
                .iter()
                .take(count)
                .map(|at| (&tools[*at].0, &tools[*at].1)),
            limit,
        )
        .join("\n");
        writeln!(
            out,
            "tokens of the {count} longest hits: {}",
            tokens(&worst)
        )?;
    }
    for _ in 0..show {
        writeln!(out, "{}", hits[random.below(hits.len())])?;
    }
    Ok(())
}

fn summary(out: &mut impl Write, what: &str, mut numbers: Vec<usize>) -> std::io::Result<()> {
    numbers.sort_unstable();
    let at = |percent: usize| numbers[(numbers.len() - 1) * percent / 100];
    let mean = numbers.iter().sum::<usize>() as f64 / numbers.len() as f64;
    writeln!(
        out,
        "{what}: mean {mean:.1}, p50 {}, p95 {}, p99 {}, max {}",
        at(50),
        at(95),
        at(99),
        at(100)
    )
}

/// Whether `line` shows every required parameter with its type and all values of its enum. This is checked against the
/// schema, independently of the code that wrote the line.
fn is_callable(definition: &Definition<'_>, line: &str) -> bool {
    definition
        .parameters
        .iter()
        .filter(|parameter| parameter.required)
        .all(|parameter| {
            let quoted = Value::from(parameter.name.as_str()).to_string();
            let shown = [parameter.name.as_str(), quoted.as_str()]
                .iter()
                .find_map(|name| {
                    let label = format!("{name}: ");
                    ["(", ", "].iter().find_map(|before| {
                        line.split_once(&format!("{before}{label}"))
                            .map(|(_, after)| after)
                    })
                });
            let Some(shown) = shown else { return false };
            let schema: Value = serde_json::from_str(parameter.schema.get()).unwrap_or_default();
            let values = schema["enum"]
                .as_array()
                .or_else(|| schema["items"]["enum"].as_array());
            let typed =
                !shown.starts_with("any") && !shown.starts_with('…') && !shown.starts_with("{…}");
            typed
                && values.is_none_or(|values| {
                    values
                        .iter()
                        .all(|value| shown.contains(&value.to_string()))
                })
        })
}

/// A repeatable random number generator (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap_or_default()
    }
}
