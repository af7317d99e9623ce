//! Measures what a client's model is shown, in bytes and o200k tokens, and the size of the program.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::start::group;
use crate::peer::Request;
use crate::stand::{DIRECT, Stand};
use crate::table::{Bar, Table};
use crate::tools;

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let tokenizer = tiktoken_rs::o200k_base()?;
    let tokens = |text: &str| count(tokenizer.encode_ordinary(text).len());
    let servers = stand.many();
    let tools = servers.tools / 100 * 100;
    let ways = stand.ways.len();
    let mut rows = vec![vec![None; ways]; 6];
    for (way, profile) in stand.ways.iter().enumerate() {
        if way != DIRECT && profile.search("").is_none() {
            continue;
        }
        let mut peer = stand.start(way, &servers, stand.learned(way)?)?;
        peer.initialize()?;
        stand.prepare(way, &mut peer, &servers)?;
        let list: Value = serde_json::from_slice(peer.ask(&Request::method("tools/list"))?)?;
        let definitions = list["result"]["tools"].as_array().context("no tools")?;
        // One server has a share of the tools, but a client without a proxy shows those of all servers.
        let share = if way == DIRECT {
            count(servers.commands.len())
        } else {
            1.0
        };
        let shown: Vec<String> = definitions.iter().map(shown_to_models).collect();
        let all: f64 = shown.iter().map(|text| count(text.len())).sum();
        rows[0][way] = Some(all * share);
        rows[1][way] = Some(shown.iter().map(|text| tokens(text)).sum::<f64>() * share);
        if let Some(search) = profile.search(&tools::query(3)) {
            let text = peer.text(&search)?;
            rows[2][way] = Some(count(text.len()));
            rows[3][way] = Some(tokens(&text));
        }
        if let Some(describe) = profile.describe(3, &tools::name(3, 5)) {
            let text = peer.text(&describe)?;
            rows[4][way] = Some(count(text.len()));
            rows[5][way] = Some(tokens(&text));
        }
    }
    let mut rows = rows.into_iter();
    let mut add =
        |what: String, unit, bar| table.add(what, unit, bar, rows.next().unwrap_or_default());
    let shown = format!("definitions that a model is shown, {} tools", group(tools));
    add(shown.clone(), "bytes", Some(Bar::AtMost(1800.0)));
    add(shown, "tokens", Some(Bar::AtMost(450.0)));
    add(
        "an answer of five hits".to_owned(),
        "bytes",
        Some(Bar::AtMost(1600.0)),
    );
    add(
        "an answer of five hits".to_owned(),
        "tokens",
        Some(Bar::AtMost(400.0)),
    );
    let described = format!(
        "a description of a tool whose definition has {} bytes",
        tools::definition(3, 5).len()
    );
    add(described.clone(), "bytes", None);
    add(described, "tokens", None);
    let size = std::fs::metadata(&stand.mcpzip)?.len();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    table.add_own(
        "the program with its model",
        "MB",
        Some(Bar::AtMost(50.0)),
        size as f64 / 1e6,
    );
    Ok(())
}

/// Name, description and input schema, like `mcpzip::internals::tool::shown_to_models`. That function is not used here,
/// because `mcpzip-bench` only knows the program from outside.
fn shown_to_models(tool: &Value) -> String {
    json!({ "name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"] }).to_string()
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}
