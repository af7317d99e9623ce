//! Measures the tokens of results with real servers: whole, with the default settings, and with a sensible `select`.
//! Also those of definitions, searches and descriptions. Prints a page in Markdown.
//!
//! `cargo run --release -p mcpzip-bench --example answer_tokens -- DIRECTORY > docs/answers.md`
//!
//! The servers of `calls.json` are installed under DIRECTORY with npm and pip, in the versions given there, and the
//! data that they read is created there. The binary `mcpzip` is taken from the directory above this program's: build it
//! first, in the same profile.

mod client;
mod servers;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use client::Client;

/// The calls to make.
const PLAN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/examples/answer_tokens/calls.json"
);

/// The content of [`PLAN`].
#[derive(Debug, Deserialize)]
struct Plan {
    servers: serde_json::Map<String, Value>,
    before: Vec<Call>,
    calls: Vec<Call>,
    searches: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Call {
    tool: String,
    arguments: Value,
    select: Option<String>,
}

/// Tokens of one call's result.
struct Row<'a> {
    call: &'a Call,
    raw: usize,
    /// The estimate that `mcpzip gain` would make.
    estimated: usize,
    /// Text and structured content together, which some clients send to their models.
    both: usize,
    default: usize,
    /// With `"form": "compact"`.
    compact: usize,
    /// Whether the server's text is JSON.
    is_json: bool,
    selected: Option<usize>,
}

fn main() -> anyhow::Result<()> {
    let directory = std::env::args()
        .nth(1)
        .context("usage: answer_tokens DIRECTORY")?;
    let directory = std::path::absolute(directory)?;
    let plan: Plan = serde_json::from_str(&std::fs::read_to_string(PLAN)?)?;
    let page = servers::serve_page()?;
    let fill_in = |text: &str| {
        text.replace("DATA", &directory.join("data").to_string_lossy())
            .replace("PAGE", &page)
    };
    servers::make_data(&directory.join("data"))?;
    let entries = servers::install(&directory, &plan.servers, &fill_in)?;
    let filled = |value: &Value| serde_json::from_str::<Value>(&fill_in(&value.to_string()));

    let whole = json!({ "mcpServers": entries, "results": { "budget": 0, "duplicates": "keep" } });
    let mut whole = Client::start(&mcpzip()?, &directory.join("whole"), &whole)?;
    let mut usual = Client::start(
        &mcpzip()?,
        &directory.join("usual"),
        &json!({ "mcpServers": entries }),
    )?;
    let compact = json!({ "mcpServers": entries, "results": { "form": "compact" } });
    let mut compact = Client::start(&mcpzip()?, &directory.join("compact"), &compact)?;
    for client in [&mut whole, &mut usual, &mut compact] {
        client.wait_for_servers()?;
    }
    for call in &plan.before {
        // An earlier run may have made these calls already.
        whole.execute(&call.tool, &filled(&call.arguments)?, None)?;
    }
    let o200k = tiktoken_rs::o200k_base()?;
    let mut rows = Vec::new();
    for call in &plan.calls {
        let arguments = filled(&call.arguments)?;
        let raw = whole.execute(&call.tool, &arguments, None)?;
        let default = usual.execute(&call.tool, &arguments, None)?;
        let shorter = compact.execute(&call.tool, &arguments, None)?;
        let selected = call
            .select
            .as_ref()
            .map(|filter| usual.execute(&call.tool, &arguments, Some(filter)));
        let selected = selected.transpose()?;
        for answer in [&raw, &default, &shorter].into_iter().chain(&selected) {
            anyhow::ensure!(
                answer["isError"] != true,
                "{} answered {answer:.600}",
                call.tool
            );
        }
        rows.push(Row {
            call,
            raw: shown(&o200k, &raw),
            estimated: estimated(&raw),
            both: text_tokens(&o200k, &raw) + structured_tokens(&o200k, &raw),
            default: shown(&o200k, &default),
            compact: shown(&o200k, &shorter),
            is_json: is_json(&raw),
            selected: selected.map(|answer| shown(&o200k, &answer)),
        });
    }
    let mut out = std::io::stdout().lock();
    write_head(&mut out, &plan)?;
    write_rows(&mut out, &rows)?;
    write_definitions(&mut out, &o200k, &mut usual, &directory, &entries, &plan)
}

fn write_head(out: &mut impl std::io::Write, plan: &Plan) -> std::io::Result<()> {
    writeln!(out, "# What answers cost\n")?;
    writeln!(
        out,
        "Made by `cargo run --release -p mcpzip-bench --example answer_tokens -- DIRECTORY`, which installs the servers below and calls"
    )?;
    writeln!(
        out,
        "them through `mcpzip`; `crates/bench/examples/answer_tokens/calls.json` has every call. Tokens are those of o200k.\n"
    )?;
    for (name, entry) in &plan.servers {
        let package = match (&entry["npm"], entry["pypi"].as_array()) {
            (Value::String(package), _) => format!("npm `{package}`"),
            (_, Some(packages)) => {
                format!(
                    "PyPI {}",
                    packages
                        .iter()
                        .filter_map(Value::as_str)
                        .map(|p| format!("`{p}`"))
                        .collect::<Vec<_>>()
                        .join(", ")
                )
            }
            _ => String::new(),
        };
        writeln!(out, "- {name}: {package}")?;
    }
    writeln!(out, "\n## Results\n")?;
    writeln!(
        out,
        "- *raw*: the server's own result, as shown by clients that show the text, or the structured content if there is no text"
    )?;
    writeln!(
        out,
        "- *both*: text and structured content, as shown by clients that show both"
    )?;
    writeln!(
        out,
        "- *default*: through `mcpzip` with default settings; a result over the budget is stored, and its start is shown"
    )?;
    writeln!(
        out,
        "- *compact*: with `\"results\": {{\"form\": \"compact\"}}`"
    )?;
    writeln!(
        out,
        "- *select*: the part of the JSON or text that an agent would ask for, with the note about the stored result\n"
    )
}

fn write_rows(out: &mut impl std::io::Write, rows: &[Row<'_>]) -> std::io::Result<()> {
    writeln!(
        out,
        "| call | raw | both | default | compact | select | filter |\n|---|---:|---:|---:|---:|---:|---|"
    )?;
    let mut sums = [0; 5];
    for Row {
        call,
        raw,
        both,
        default,
        compact,
        selected,
        ..
    } in rows
    {
        let select = selected.map_or_else(|| "–".to_owned(), |tokens| tokens.to_string());
        let filter = call
            .select
            .as_deref()
            .map(|filter| format!("`{}`", filter.replace('|', "\\|")))
            .unwrap_or_default();
        writeln!(
            out,
            "| {} | {raw} | {both} | {default} | {compact} | {select} | {filter} |",
            call.tool
        )?;
        for (sum, tokens) in sums.iter_mut().zip([
            *raw,
            *both,
            *default,
            *compact,
            selected.unwrap_or(*default),
        ]) {
            *sum += tokens;
        }
    }
    let [raw, both, default, compact, best] = sums;
    writeln!(
        out,
        "| **{} calls** | **{raw}** | **{both}** | **{default}** | **{compact}** | **{best}** | with a filter if there is one, else the default |",
        rows.len()
    )?;
    let stored: Vec<&Row<'_>> = rows.iter().filter(|row| row.raw != row.default).collect();
    let (whole, heads) = stored
        .iter()
        .fold((0, 0), |sums, row| (sums.0 + row.raw, sums.1 + row.default));
    writeln!(
        out,
        "\n{} of {} results were over the budget: they were stored, and {heads} of their {whole} tokens were shown. If an agent reads more of a stored result, it pays for that part. The other {} results came as the servers gave them.",
        stored.len(),
        rows.len(),
        rows.len() - stored.len()
    )?;
    let texts = rows
        .iter()
        .filter(|row| row.is_json && row.raw == row.default);
    let (count, plain, compact) = texts.fold((0, 0, 0), |sums, row| {
        (sums.0 + 1, sums.1 + row.raw, sums.2 + row.compact)
    });
    writeln!(
        out,
        "\nThe {count} of them whose text is JSON cost {plain} tokens as the servers gave them and {compact} in compact form. Some results over the budget fit into it in compact form, and are then shown whole."
    )?;
    let (with, chosen) = rows
        .iter()
        .filter_map(|row| Some((row.raw, row.selected?)))
        .fold((0, 0), |sums, row| (sums.0 + row.0, sums.1 + row.1));
    let selectable = rows.iter().filter(|row| row.selected.is_some()).count();
    writeln!(
        out,
        "\nThe {selectable} calls with a filter cost {with} tokens raw and {chosen} with it. For a short result, a filter costs more than it saves."
    )?;
    let texts: Vec<&Row<'_>> = rows.iter().filter(|row| row.estimated > 0).collect();
    let (exact, estimate) = texts.iter().fold((0, 0), |sums, row| {
        (sums.0 + row.raw, sums.1 + row.estimated)
    });
    let off: Vec<f64> = texts
        .iter()
        .map(|row| (row.estimated as f64 / row.raw.max(1) as f64 - 1.0).abs())
        .collect();
    let mean = off.iter().sum::<f64>() / off.len().max(1) as f64;
    writeln!(
        out,
        "\nThe estimate that `mcpzip gain` uses for results: {estimate} for these {exact} tokens of text, {:.0} % off on average for one result.",
        mean * 100.0
    )
}

fn write_definitions(
    out: &mut impl std::io::Write,
    o200k: &CoreBPE,
    client: &mut Client,
    directory: &Path,
    entries: &Value,
    plan: &Plan,
) -> anyhow::Result<()> {
    let count = |text: &str| o200k.encode_ordinary(text).len();
    let definition = mcpzip::internals::tool::shown_to_models;
    let mut direct = Client::start_direct(
        &mcpzip()?,
        &directory.join("usual"),
        &json!({ "mcpServers": entries }),
    )?;
    let listed = direct.tools()?;
    let all: usize = listed.iter().map(|tool| count(&definition(tool))).sum();
    let own: usize = client
        .tools()?
        .iter()
        .map(|tool| count(&definition(tool)))
        .sum();
    writeln!(
        out,
        "\n## Definitions\n\nThe tokens that clients without a tool search of their own show to their models: name, description and input schema of each tool.\n"
    )?;
    writeln!(out, "| server | tools | tokens |\n|---|---:|---:|")?;
    for name in plan.servers.keys() {
        let of_server: Vec<&Value> = listed
            .iter()
            .filter(|tool| {
                tool["name"]
                    .as_str()
                    .is_some_and(|tool| tool.starts_with(&format!("{name}__")))
            })
            .collect();
        let tokens: usize = of_server.iter().map(|tool| count(&definition(tool))).sum();
        writeln!(out, "| {name} | {} | {tokens} |", of_server.len())?;
    }
    writeln!(
        out,
        "| **all** | **{}** | **{all}** |\n| **mcpzip** | **3** | **{own}** |",
        listed.len()
    )?;

    writeln!(
        out,
        "\n## Searches\n\nEach search has five hits, and each hit shows enough to call the tool.\n\n| query | tokens |\n|---|---:|"
    )?;
    let mut sum = 0;
    for query in &plan.searches {
        let tokens = shown(
            o200k,
            &client.call("search_tools", &json!({ "query": query }))?,
        );
        sum += tokens;
        writeln!(out, "| {query} | {tokens} |")?;
    }
    writeln!(out, "| **mean** | **{}** |", sum / plan.searches.len())?;

    writeln!(
        out,
        "\n## Descriptions\n\nAnswers of `describe_tool` for the tools above: their definitions verbatim, with output schemas and the server's instructions.\n"
    )?;
    let mut names: Vec<&str> = plan.calls.iter().map(|call| call.tool.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut costs = Vec::new();
    for name in &names {
        costs.push(shown(
            o200k,
            &client.call("describe_tool", &json!({ "name": name }))?,
        ));
    }
    costs.sort_unstable();
    let mean = costs.iter().sum::<usize>() / costs.len();
    writeln!(
        out,
        "| tools | mean | least | p50 | most |\n|---:|---:|---:|---:|---:|\n| {} | {mean} | {} | {} | {} |",
        costs.len(),
        costs[0],
        costs[costs.len() / 2],
        costs[costs.len() - 1]
    )?;
    Ok(())
}

/// The estimate of `mcpzip gain` for a result that the client shows as text.
fn estimated(result: &Value) -> usize {
    let texts = result["content"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|block| block["text"].as_str());
    texts.map(mcpzip::internals::tool::tokens_of).sum()
}

/// Whether the text is a JSON object or array.
fn is_json(result: &Value) -> bool {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let data: Result<Value, _> = serde_json::from_str(text);
    data.is_ok_and(|data| data.is_object() || data.is_array())
}

/// Tokens of what a client shows: the text, or the structured content if there is no text.
fn shown(o200k: &CoreBPE, result: &Value) -> usize {
    match text_tokens(o200k, result) {
        0 => structured_tokens(o200k, result),
        tokens => tokens,
    }
}

fn text_tokens(o200k: &CoreBPE, result: &Value) -> usize {
    let blocks = result["content"].as_array().into_iter().flatten();
    let tokens = |block: &Value| match block["type"].as_str() {
        Some("text") => o200k
            .encode_ordinary(block["text"].as_str().unwrap_or_default())
            .len(),
        // Links become text. Other content, such as images, is not counted.
        Some("resource_link") => o200k.encode_ordinary(&block.to_string()).len(),
        _ => 0,
    };
    blocks.map(tokens).sum()
}

fn structured_tokens(o200k: &CoreBPE, result: &Value) -> usize {
    match &result["structuredContent"] {
        Value::Null => 0,
        structured => o200k.encode_ordinary(&structured.to_string()).len(),
    }
}

/// The binary, one directory above the examples.
fn mcpzip() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let directory = own
        .parent()
        .and_then(Path::parent)
        .context("this program is in no directory")?;
    let program = directory.join(format!("mcpzip{}", std::env::consts::EXE_SUFFIX));
    anyhow::ensure!(
        program.exists(),
        "there is no {}; build it before",
        program.display()
    );
    Ok(program)
}
