//! `mcpzip gain --discover`: what the MCP tools of Claude Code cost, by its session logs. The logs are only read, and
//! nothing leaves the machine.

use std::collections::{BTreeMap, HashSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use super::account::WRAPPING;
use super::report::{bar, grouped};
use super::transcript::{McpCall, calls};
use crate::cli::diagnostics::Exit;
use crate::cli::output::{Output, faint, strong};
use crate::cli::tokens::{ENCODING, Tokens};
use crate::config::{Environment, ResultOptions, env};
use crate::day::Day;
use crate::files::open_regular;
use crate::statistics::aligned;

/// Levels of directories below `projects`: project, session, and the session's agents.
const LEVELS: usize = 4;

/// Length of a shortened result in characters, and of the note that goes with it in tokens.
const HEAD: usize = 4000;
const NOTE: u64 = 90;

/// Average tokens of a search with five hits (docs/answers.md).
const SEARCH: u64 = 150;

/// The sums over all logs.
#[derive(Debug, Default, Serialize)]
struct Discovery {
    tokenizer: &'static str,
    logs: usize,
    /// Logs that could not be read.
    unreadable: usize,
    /// Sessions in which MCP tools were called.
    sessions: u64,
    calls: u64,
    /// Arguments and results, each counted once.
    tokens: u64,
    /// Results, counted again for each later answer of the model in the session.
    carried: u64,
    /// Estimated tokens through mcpzip without `select`: results over the budget are shortened, each tool is searched
    /// for once per session, and [`WRAPPING`] is added per call.
    tokens_with_mcpzip: u64,
    tools: Vec<ToolCost>,
}

#[derive(Debug, Default, Serialize)]
struct ToolCost {
    tool: String,
    calls: u64,
    /// Results that are JSON, of which `select` could have taken a part.
    json: u64,
    tokens: u64,
    carried: u64,
    largest: u64,
}

pub(super) fn run(
    directory: Option<PathBuf>,
    since: Option<Day>,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let directory = match directory {
        Some(directory) => directory,
        None => claude_directory(environment)
            .context("no home directory is known; pass the logs with --logs")?,
    };
    if !directory.is_dir() {
        return Err(Exit::failed(format!(
            "there are no session logs at `{}`; pass another directory with --logs",
            directory.display()
        )));
    }
    let discovery = {
        let _spinner = output.spinner("reading session logs");
        discover(&directory, since)?
    };
    if output.is_json() {
        output.json(&discovery);
    } else {
        print(&discovery, output);
    }
    Ok(())
}

fn claude_directory(environment: &Environment) -> Option<PathBuf> {
    let named = environment
        .get(env::CLAUDE_CONFIG_DIR.name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    Some(
        named
            .or_else(|| Some(environment.home()?.join(".claude")))?
            .join("projects"),
    )
}

fn discover(directory: &Path, since: Option<Day>) -> anyhow::Result<Discovery> {
    let tokens = Tokens::load()?;
    let since = since.map(|day| day.to_string());
    let mut paths = Vec::new();
    logs_below(directory, LEVELS, &mut paths);
    paths.sort();
    let mut found = Discovery {
        tokenizer: ENCODING,
        logs: paths.len(),
        ..Discovery::default()
    };
    let mut known = HashSet::new();
    let mut tools: BTreeMap<String, ToolCost> = BTreeMap::new();
    for path in paths {
        let read =
            open_regular(&path).and_then(|file| calls(BufReader::new(file), since.as_deref()));
        let Ok(calls) = read else {
            found.unreadable += 1;
            continue;
        };
        let mut searched = HashSet::new();
        // The log of a resumed session repeats the calls of the earlier one.
        for call in calls
            .into_iter()
            .filter(|call| known.insert(call.id.clone()))
        {
            let name = format!("{}__{}", call.server, call.tool);
            let cost = Cost::of(&call, &tokens);
            searched.insert(name.clone());
            found.calls += 1;
            found.tokens += cost.input + cost.output;
            found.carried += cost.output * call.turns;
            found.tokens_with_mcpzip += cost.input + cost.shortened + WRAPPING;
            let tool = tools.entry(name).or_default();
            tool.calls += 1;
            tool.json += u64::from(cost.is_json);
            tool.tokens += cost.input + cost.output;
            tool.carried += cost.output * call.turns;
            tool.largest = tool.largest.max(cost.output);
        }
        found.sessions += u64::from(!searched.is_empty());
        found.tokens_with_mcpzip += searched.len() as u64 * SEARCH;
    }
    found.tools = tools
        .into_iter()
        .map(|(tool, cost)| ToolCost { tool, ..cost })
        .collect();
    found
        .tools
        .sort_by_key(|tool| std::cmp::Reverse(tool.tokens));
    Ok(found)
}

/// The cost of one call, in tokens.
struct Cost {
    input: u64,
    output: u64,
    /// The result shortened to the default budget.
    shortened: u64,
    is_json: bool,
}

impl Cost {
    fn of(call: &McpCall, tokens: &Tokens) -> Self {
        let text = call.output.as_deref().unwrap_or_default();
        let output = tokens.count(text) as u64;
        let budget = ResultOptions::default().budget;
        let is_over = text.chars().count() > budget;
        let head = || tokens.count(&text.chars().take(HEAD).collect::<String>()) as u64;
        Self {
            input: tokens.count(&call.input) as u64,
            output,
            shortened: if is_over { head() + NOTE } else { output },
            is_json: text.trim_start().starts_with(['{', '['])
                && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok(),
        }
    }
}

/// Collects the logs in `directory` and below it.
fn logs_below(directory: &Path, levels: usize, found: &mut Vec<PathBuf>) {
    // A directory that cannot be read is skipped.
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && levels > 1 => logs_below(&path, levels - 1, found),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|end| end == "jsonl") => {
                found.push(path);
            }
            _ => {}
        }
    }
}

fn print(found: &Discovery, output: &Output) {
    let number = |number: u64| grouped(i64::try_from(number).unwrap_or(i64::MAX));
    let plural = |count: u64, noun: &str| {
        format!(
            "{} {noun}{}",
            number(count),
            if count == 1 { "" } else { "s" }
        )
    };
    output.line(format!(
        "{} {}",
        strong(format!(
            "{} of MCP tools in {}",
            plural(found.calls, "call"),
            plural(found.sessions, "session")
        )),
        faint(format!(
            "{} logs, tokens of {}",
            found.logs, found.tokenizer
        ))
    ));
    if found.unreadable > 0 {
        output.line(faint(format!(
            "{} logs could not be read",
            found.unreadable
        )));
    }
    if found.calls == 0 {
        return;
    }
    output.line(format!(
        "  arguments and results, once         {:>14}",
        number(found.tokens)
    ));
    output.line(format!(
        "  the same through mcpzip, no select  {:>14}",
        number(found.tokens_with_mcpzip)
    ));
    output.line(format!(
        "  results, in every turn they stayed  {:>14}",
        number(found.carried)
    ));
    let longest = found
        .tools
        .iter()
        .map(|tool| tool.tokens)
        .max()
        .unwrap_or(0);
    let mut rows = vec![
        ["tool", "calls", "JSON", "largest", "carried", "tokens", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(found.tools.iter().take(20).map(|tool| {
        let numbers = [
            tool.calls,
            tool.json,
            tool.largest,
            tool.carried,
            tool.tokens,
        ]
        .map(number);
        let bar = std::iter::once(format!("{:<24}", bar(tool.tokens, longest)));
        std::iter::once(tool.tool.clone())
            .chain(numbers)
            .chain(bar)
            .collect()
    }));
    output.line(format!("\n{}", aligned(&rows)));
    output.line(faint(
        "of results that are JSON, `select` takes the part that is needed; definitions are not in these logs",
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_counts_once_and_large_results_are_shortened() {
        let home = tempfile::tempdir().unwrap();
        let large = "word ".repeat(40_000);
        let log = |id: &str, text: &str| {
            format!(
                concat!(
                    r#"{{"message":{{"id":"m","role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"mcp__a__t","input":{{}}}}]}}}}"#,
                    "\n",
                    r#"{{"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}]}}}}"#,
                    "\n",
                    r#"{{"message":{{"id":"n","role":"assistant","content":[]}}}}"#,
                    "\n"
                ),
                id = id,
                text = text
            )
        };
        let project = home.path().join("-work-project");
        std::fs::create_dir_all(project.join("session/subagents")).unwrap();
        std::fs::write(project.join("one.jsonl"), log("t1", &large)).unwrap();
        std::fs::write(project.join("copy.jsonl"), log("t1", &large)).unwrap();
        std::fs::write(
            project.join("session/subagents/agent.jsonl"),
            log("t2", "[1, 2]"),
        )
        .unwrap();
        std::fs::write(project.join("notes.txt"), "no log").unwrap();
        let found = discover(home.path(), None).unwrap();
        assert_eq!((found.logs, found.sessions, found.calls), (3, 2, 2));
        let tool = &found.tools[0];
        assert_eq!((tool.tool.as_str(), tool.calls, tool.json), ("a__t", 2, 1));
        assert!(
            tool.largest > 39_000 && found.carried >= tool.largest,
            "{tool:?}"
        );
        assert!(
            found.tokens_with_mcpzip < 2_500,
            "{}",
            found.tokens_with_mcpzip
        );
    }
}
