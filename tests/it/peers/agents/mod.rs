//! Five real agents: side by side, where they share a daemon and its servers, and each with the surface that `auto` gives it.

mod apps_host;
mod clients;
mod model;
mod surfaces;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::servers::{Entry, everything};
use super::{announce, install, peers, process};
use crate::support::process::Mark;
use crate::support::{Setup, command};
use clients::AGENTS;
use model::{DONE, Progress, Script};

/// Agents start slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Each agent writes its name on the board of a shared server, and reads there the names of all.
fn task(agent: &str) -> Script {
    let execute = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let line = json!({ "line": visit(agent) });
    let search = json!({ "query": "write a line on the board" });
    vec![
        (0, "search_tools", search),
        (0, "execute_tool", execute("board__write_line", line)),
        (2, "execute_tool", execute("board__read_board", json!({}))),
        (
            0,
            "execute_tool",
            execute("everything__echo", json!({ "message": agent })),
        ),
    ]
}

fn visit(agent: &str) -> String {
    format!("visit-of-{agent}")
}

#[test]
fn five_agents_side_by_side_share_one_daemon_and_its_servers() {
    let Some(peers) = peers() else { return };
    let programs = install::agents().unwrap_or_else(|problem| panic!("{problem}"));
    let (setup, mark) = setup(peers);
    let progress = Arc::new(Progress::default());
    let start = Instant::now();
    let running: Vec<_> = AGENTS
        .iter()
        .map(|agent| {
            let script = task(agent.name);
            let model = model::start(agent.name, AGENTS.len(), script, &progress);
            let mut command = agent.command(&programs, &setup, &model);
            std::thread::spawn(move || process::run(&mut command, "", PATIENCE))
        })
        .collect();
    // Each agent has made all its calls, and its model has not yet said that the task is done.
    let calls = task("any").len();
    while progress.with(calls) < AGENTS.len()
        && start.elapsed() < PATIENCE
        && running.iter().all(|agent| !agent.is_finished())
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = command::run(setup.command(&["daemon", "status", "--json"]), "")
        .code(0)
        .json();
    let shown = command::run(setup.command(&["status", "--json"]), "")
        .code(0)
        .json();
    let processes = mark.processes();
    progress.release();
    let ended: Vec<_> = running
        .into_iter()
        .map(|agent| agent.join().unwrap())
        .collect();
    let _ = command::run(setup.command(&["daemon", "stop"]), "");

    for (agent, ended) in AGENTS.iter().zip(ended) {
        let ended = ended.unwrap_or_else(|problem| panic!("{}: {problem}", agent.name));
        let is_content = ended.code == Some(0) && ended.stdout.contains(DONE);
        assert!(is_content, "{}: {ended}", agent.name);
    }
    for (agent, request) in progress.requests() {
        let visits = AGENTS.map(|other| visit(other.name));
        for part in visits.iter().chain([&format!("Echo: {agent}")]) {
            assert!(request.contains(part), "{agent} read no {part}");
        }
    }
    let sessions = status["daemon"]["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), AGENTS.len(), "{status}");
    assert_eq!(status["alone"], json!([]));
    let running = &shown["daemon"]["running"]["sessions"];
    assert_eq!(
        running.as_array().map(Vec::len),
        Some(AGENTS.len()),
        "{shown}"
    );
    let count = |server: &str| {
        let of_server = processes
            .iter()
            .filter(|process| process.command.contains(server));
        of_server.count()
    };
    assert_eq!(count("board.mjs"), 1, "{processes:#?}");
    // It is for all sessions, so its handshake does not say what the client can be asked, which differs between the agents.
    let older = count("mcp-server-everything");
    assert_eq!(older, 1, "{processes:#?}");
    announce(&format!(
        "Five agents over one daemon: {:.1} s, {older} processes of the server of the older era",
        start.elapsed().as_secs_f64()
    ));
}

/// Two servers for the sessions of all directories, whose processes have the mark.
fn setup(peers: &install::Peers) -> (Setup, Mark) {
    let setup = Setup::new();
    let mark = setup.home().mark.clone();
    let shared = |entry: Entry, era: &str| {
        let entry = entry.variable(Mark::VARIABLE, mark.to_string()).to_json();
        let mut entry: Value = serde_json::from_str(&entry).unwrap();
        entry["share"] = json!("all");
        entry["era"] = json!(era);
        entry.to_string()
    };
    let board = peers.script("board.mjs").display().to_string();
    let board = shared(Entry::new("node".into(), &[&board]), "modern");
    let everything = shared(everything(peers), "auto");
    let setup = setup
        .entry("board", &board)
        .entry("everything", &everything)
        .setting("daemon", json!({ "mode": "auto", "idle": "60s" }))
        .daemon_as_configured();
    // From now on the servers are known, and a search answers at once.
    let listed = setup.run(&["tools"]).code(0);
    assert!(listed.stdout.contains("board__read_board"), "{listed}");
    (setup, mark)
}
