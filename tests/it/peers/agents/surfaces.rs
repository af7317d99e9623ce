//! Each agent solves a task with the surface that `auto` gives it, beside a plain entry of the server.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use super::clients::{AGENTS, Agent};
use super::model::{self, DONE, Progress, Script};
use super::{PATIENCE, announce, install, peers, process};
use crate::support::script::result;
use crate::support::{Server, Setup};

/// The tool that the task needs, and its answer.
const TOOL: &str = "shop_stock";
const ANSWER: &str = "7 lamps in the shop";

/// The sizes of the server: of the smaller one, `auto` shows the tools directly once they are known.
const SIZES: [usize; 2] = [6, 120];

/// A server with this many tools of two parameters each.
fn shop(tools: usize) -> Server {
    let schema = json!({
        "type": "object",
        "properties": {
            "item": { "type": "string", "description": "The name of the item" },
            "place": { "type": "string", "description": "The shop or storehouse" },
        },
        "required": ["item"],
    });
    let tool = |name: &str, description: &str| {
        json!({
            "name": name, "description": description, "inputSchema": schema,
            "annotations": { "readOnlyHint": true },
        })
        .to_string()
    };
    let answer = json!({ "content": [{ "type": "text", "text": ANSWER }] }).to_string();
    let stock = tool(TOOL, "Counts how many of an item are in stock.");
    // A revision that all agents know.
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
        "serverInfo": { "name": "shop", "version": "1" },
    });
    let server = Server::new()
        .on("initialize", [result(&hello.to_string())])
        .tool_as(TOOL, &stock, [result(&answer)]);
    (1..tools).fold(server, |server, number| {
        let name = format!("report_{number}");
        let text = format!("Writes report number {number} about the sales of an item.");
        server.tool_as(&name, &tool(&name, &text), [result(&answer)])
    })
}

fn by_search() -> Script {
    let call = json!({ "name": format!("shop__{TOOL}"), "arguments": { "item": "lamp" } });
    vec![
        (
            0,
            "search_tools",
            json!({ "query": "how many of an item are in stock" }),
        ),
        (0, "execute_tool", call),
    ]
}

fn directly() -> Script {
    vec![(0, TOOL, json!({ "item": "lamp" }))]
}

/// What the model got: the tokens of the first request; all requests, their tokens and bytes.
struct Seen {
    first: usize,
    requests: usize,
    all: usize,
    bytes: usize,
}

/// Has `agent` solve the task by this script.
fn solve(
    agent: &Agent,
    server: Option<Value>,
    modules: &Path,
    setup: &Setup,
    script: Script,
    o200k: &CoreBPE,
) -> Seen {
    let progress = Arc::new(Progress::default());
    progress.release();
    let calls = script.len();
    let model = model::start(agent.name, 1, script, &progress);
    let mut command = match server {
        Some(server) => agent.command_with(server, modules, setup, &model),
        None => agent.command(modules, setup, &model),
    };
    let ended = process::run(&mut command, "", PATIENCE)
        .unwrap_or_else(|problem| panic!("{}: {problem}", agent.name));
    let is_content = ended.code == Some(0) && ended.stdout.contains(DONE);
    assert!(is_content, "{}: {ended}", agent.name);
    let requests = model.requests();
    let of_task = requests.iter().filter(|request| model::is_of_task(request));
    let tokens: Vec<usize> = of_task
        .clone()
        .map(|request| o200k.encode_ordinary(&request.text).len())
        .collect();
    assert_eq!(tokens.len(), calls + 1, "{}", agent.name);
    let last = of_task.clone().next_back().expect("there is one");
    assert!(last.text.contains(ANSWER), "{}: {}", agent.name, last.text);
    Seen {
        first: tokens[0],
        requests: tokens.len(),
        all: tokens.iter().sum(),
        bytes: of_task.map(|request| request.text.len()).sum(),
    }
}

#[test]
fn each_agent_solves_a_task_with_the_surface_that_auto_gives_it() {
    if peers().is_none() {
        return;
    }
    let modules = install::agents().unwrap_or_else(|problem| panic!("{problem}"));
    let o200k = tiktoken_rs::o200k_base().unwrap();
    let of_agent = |agent: &Agent| -> Vec<String> {
        let lines = SIZES.map(|tools| {
            let setup = Setup::new()
                .server("shop", shop(tools))
                .setting("surface", json!("auto"))
                .setting("daemon", json!("off"));
            setup.save();
            let config: Value =
                serde_json::from_str(&std::fs::read_to_string(setup.config_path()).unwrap())
                    .unwrap();
            let entry = config["mcpServers"]["shop"].clone();
            let run = |server: Option<Value>, script: Script| {
                solve(agent, server, &modules, &setup, script, &o200k)
            };
            let plain = run(Some(entry), directly());
            // The servers are not known yet.
            let first = run(None, by_search());
            let settled = match tools == SIZES[0] {
                true => run(None, directly()),
                false => run(None, by_search()),
            };
            let cell = |seen: &Seen| {
                let (first, all, requests) = (seen.first, seen.all, seen.requests);
                format!("{first}; {all} in {requests}, {} kB", seen.bytes / 1000)
            };
            let cells = [&plain, &first, &settled].map(cell);
            format!("| {}, {tools} | {} |", agent.name, cells.join(" | "))
        });
        lines.to_vec()
    };
    let lines: Vec<String> = std::thread::scope(|scope| {
        let running = AGENTS
            .each_ref()
            .map(|agent| scope.spawn(|| of_agent(agent)));
        let lines = running.into_iter().map(|lines| lines.join().unwrap());
        lines.flatten().collect()
    });
    announce(&format!(
        "| agent, tools | plain entry | `auto`, first session | `auto`, later |\n|---|---|---|---|\n{}",
        lines.join("\n")
    ));
}
