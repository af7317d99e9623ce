//! Real clients of both generations before `mcpzip`: each lists the three tools, searches, describes and executes, and
//! finds nothing to complain about.

use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::direct::Direct;
use super::install::Peers;
use super::served::Served;
use super::{announce, peers, process, servers, table};
use crate::support::{Setup, program};

const PATIENCE: Duration = Duration::from_secs(120);

const TOOLS: [&str; 3] = ["search_tools", "describe_tool", "execute_tool"];

/// What a client saw; `tests/peers/README.md` says how it tells.
#[derive(Debug, Deserialize)]
struct Report {
    protocol: String,
    server: String,
    instructions: String,
    tools: Vec<Value>,
    results: Vec<Value>,
    complaints: Vec<String>,
}

/// A client and how it connects.
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) mode: &'static str,
    /// The revision that it and `mcpzip` agree on.
    protocol: &'static str,
    program: fn(&Peers) -> Vec<std::path::PathBuf>,
}

pub(super) const PEERS: [Peer; 6] = [
    Peer {
        name: "Python mcp 1.30.0",
        mode: "legacy",
        protocol: "2025-11-25",
        program: python_1,
    },
    Peer {
        name: "Python mcp 2.3.0",
        mode: "legacy",
        protocol: "2025-11-25",
        program: python_2,
    },
    Peer {
        name: "Python mcp 2.3.0",
        mode: "auto",
        protocol: "2026-07-28",
        program: python_2,
    },
    Peer {
        name: "TypeScript sdk 1.32.2",
        mode: "legacy",
        protocol: "2025-11-25",
        program: typescript_1,
    },
    Peer {
        name: "TypeScript client 2.4.0",
        mode: "legacy",
        protocol: "2025-11-25",
        program: typescript_2,
    },
    Peer {
        name: "TypeScript client 2.4.0",
        mode: "auto",
        protocol: "2026-07-28",
        program: typescript_2,
    },
];

fn python_1(peers: &Peers) -> Vec<std::path::PathBuf> {
    vec![peers.python(1, "python"), peers.script("client_v1.py")]
}

fn python_2(peers: &Peers) -> Vec<std::path::PathBuf> {
    vec![peers.python(2, "python"), peers.script("client_v2.py")]
}

fn typescript_1(peers: &Peers) -> Vec<std::path::PathBuf> {
    vec!["node".into(), peers.script("client_v1.mjs")]
}

fn typescript_2(peers: &Peers) -> Vec<std::path::PathBuf> {
    vec!["node".into(), peers.script("client_v2.mjs")]
}

#[test]
fn real_clients_use_the_three_tools_and_do_not_complain() {
    let Some(peers) = peers() else { return };
    // The clients give their servers few variables, so the file has to say that each runs alone.
    let setup = Setup::new()
        .entry("everything", &servers::everything(peers).to_json())
        .setting("daemon", json!("off"));
    // From now on the server is known, and a search answers at once.
    let listed = setup.run(&["tools"]).code(0);
    assert!(listed.stdout.contains("everything__echo"), "{listed}");
    let definition = definition_of_echo(peers);
    let mut rows = vec![
        ["client", "mode", "transport", "revision", "time", "outcome"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut failed = 0;
    let mut note = |what: [&str; 4], see: &dyn Fn() -> Result<(), String>| {
        let start = Instant::now();
        let outcome = see();
        failed += usize::from(outcome.is_err());
        let time = format!("{:.1} s", start.elapsed().as_secs_f64());
        let outcome =
            outcome.map_or_else(|problem| format!("FAILED: {problem}"), |()| "ok".to_owned());
        rows.push(
            what.map(str::to_owned)
                .into_iter()
                .chain([time, outcome])
                .collect(),
        );
    };
    let served = Served::start(&mut setup.command(&["serve", "--http", "127.0.0.1:0"]));
    for (transport, server) in [
        ("stdio", serve(&setup)),
        ("HTTP", vec![format!("{}/mcp", served.address)]),
    ] {
        for peer in &PEERS {
            note([peer.name, peer.mode, transport, peer.protocol], &|| {
                let report = peer.report(peers, &setup, &server)?;
                same("protocol", &report.protocol.as_str(), &peer.protocol)?;
                same("server", &report.server.as_str(), &"mcpzip")?;
                same(
                    "start of the instructions",
                    &report.instructions.get(..12),
                    &Some("everything ("),
                )?;
                same("complaints", &report.complaints, &Vec::new())?;
                check(&report.tools, &report.results, &definition)
            });
        }
        note(
            ["Inspector 2.12.0", "cli --strict", transport, "2025-11-25"],
            &|| {
                let (tools, results) = inspect(peers, &setup, &server)?;
                check(&tools, &results, &definition)
            },
        );
    }
    let table = table(&rows);
    announce(&format!("Real clients before mcpzip\n{table}"));
    assert_eq!(failed, 0, "{table}");
}

/// Clients of every library, all at once: one daemon serves them, and nothing tells them that they share it.
#[cfg(target_os = "linux")]
#[test]
fn real_clients_side_by_side_share_one_daemon() {
    let Some(peers) = peers() else { return };
    let setup = Setup::new()
        .entry("everything", &servers::everything(peers).to_json())
        .setting("daemon", json!({ "mode": "auto", "idle": "60s" }))
        .daemon_as_configured();
    // From now on the server is known, and a search answers at once.
    let listed = setup.run(&["tools"]).code(0);
    assert!(listed.stdout.contains("everything__echo"), "{listed}");
    let (definition, server) = (definition_of_echo(peers), serve(&setup));
    let see = |peer: &Peer| {
        let report = peer.report(peers, &setup, &server)?;
        same("protocol", &report.protocol.as_str(), &peer.protocol)?;
        same("complaints", &report.complaints, &Vec::new())?;
        check(&report.tools, &report.results, &definition)
    };
    let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let running: Vec<_> = PEERS.iter().map(|peer| scope.spawn(|| see(peer))).collect();
        let ended = running.into_iter().map(|client| client.join());
        ended
            .map(|outcome| outcome.expect("it does not panic"))
            .collect()
    });
    let _ = setup.run(&["daemon", "stop"]).code(0);
    for (peer, outcome) in PEERS.iter().zip(outcomes) {
        assert_eq!(outcome, Ok(()), "{} {}", peer.name, peer.mode);
    }
    let log = std::fs::read_to_string(setup.home().path("state/logs/mcpzip.log")).unwrap();
    // One of them starts a process more, to see which revision it speaks.
    let attached = log.matches("attached to the daemon").count();
    assert!(attached >= PEERS.len(), "{log}");
    assert_eq!(log.matches("the daemon is there").count(), 1, "{log}");
}

/// Runs a client with its calls of `everything`, and checks what it saw.
#[cfg(target_os = "linux")]
pub(super) fn uses(
    peer: &Peer,
    peers: &Peers,
    setup: &Setup,
    server: &[String],
) -> Result<(), String> {
    let report = peer.report(peers, setup, server)?;
    same("protocol", &report.protocol.as_str(), &peer.protocol)?;
    same("complaints", &report.complaints, &Vec::new())?;
    let definition = definition_of_echo(peers);
    check(&report.tools, &report.results, &definition)
}

/// What each client does: find, understand and call a tool, then err in two ways.
fn calls() -> Vec<(&'static str, Value)> {
    let execute = |name: &str, arguments: Value| {
        (
            "execute_tool",
            json!({ "name": name, "arguments": arguments }),
        )
    };
    vec![
        ("search_tools", json!({ "query": "echo a message back" })),
        ("describe_tool", json!({ "name": "everything__echo" })),
        execute("everything__echo", json!({ "message": "grüße 🌍" })),
        execute(
            "everything__get-structured-content",
            json!({ "location": "Chicago" }),
        ),
        execute("everything__get-sum", json!({ "a": "two", "b": 3 })),
        execute("everything__no-such-tool", json!({})),
    ]
}

fn check(tools: &[Value], results: &[Value], definition: &str) -> Result<(), String> {
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    same("tools", &names, &TOOLS.to_vec())?;
    let [search, describe, echo, structured, unfit, unknown] = results else {
        return Err(format!("{} results", results.len()));
    };
    let text = |result: &Value| {
        result["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let holds = |what: &str, result: &Value, part: &str, is_error: bool| {
        let fits = text(result).contains(part) && (result["isError"] == true) == is_error;
        if fits {
            Ok(())
        } else {
            Err(format!("{what}: {result}"))
        }
    };
    holds("search", search, "everything__echo(message: string)", false)?;
    holds("describe", describe, definition, false)?;
    same(
        "echo",
        &echo["content"],
        &json!([{ "type": "text", "text": "Echo: grüße 🌍" }]),
    )?;
    let weather = &structured["structuredContent"];
    same(
        "text and structure",
        &serde_json::from_str::<Value>(&text(structured))
            .ok()
            .as_ref(),
        &Some(weather),
    )?;
    holds(
        "unfit arguments",
        unfit,
        "everything__get-sum(a: number, b: number)",
        true,
    )?;
    holds("an unknown tool", unknown, "no-such-tool", true)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, seen: &T, wanted: &T) -> Result<(), String> {
    if seen == wanted {
        Ok(())
    } else {
        Err(format!("{what}: {seen:?}, not {wanted:?}"))
    }
}

/// In the server's own bytes.
fn definition_of_echo(peers: &Peers) -> String {
    let tools = Direct::connect(&servers::everything(peers), &peers.node_directory()).tools();
    let echo = tools
        .iter()
        .find(|raw| raw.get().contains(r#""name":"echo""#));
    echo.expect("the server has the tool `echo`")
        .get()
        .to_owned()
}

/// The command that a client starts; what it logs would be taken for a complaint.
pub(super) fn serve(setup: &Setup) -> Vec<String> {
    let paths = [
        ("--config", setup.config_path()),
        ("--cache-dir", setup.cache_path()),
        ("--state-dir", setup.home().path("state")),
    ];
    let paths = paths
        .iter()
        .flat_map(|(flag, path)| [(*flag).to_owned(), path.display().to_string()]);
    let start = [
        program::mcpzip().display().to_string(),
        "serve".to_owned(),
        "--log".to_owned(),
        "error".to_owned(),
    ];
    start.into_iter().chain(paths).collect()
}

/// Runs a client to its end.
fn run(command: &mut Command, setup: &Setup) -> Result<process::Ended, String> {
    process::run(command.env("HOME", setup.home().path("home")), "", PATIENCE)
}

/// The JSON that a client printed.
fn printed<T: for<'a> Deserialize<'a>>(ended: &process::Ended) -> Result<T, String> {
    serde_json::from_str(&ended.stdout).map_err(|error| format!("{error}: {ended}"))
}

/// Fails when a client ended badly, or complained.
fn is_content(ended: &process::Ended) -> Result<(), String> {
    let is_content = ended.code == Some(0) && ended.stderr.is_empty();
    if is_content {
        Ok(())
    } else {
        Err(format!("it complains: {ended}"))
    }
}

impl Peer {
    /// `server` is a command, or a URL.
    fn report(&self, peers: &Peers, setup: &Setup, server: &[String]) -> Result<Report, String> {
        let program = (self.program)(peers);
        let mut command = Command::new(&program[0]);
        let calls = json!(calls()).to_string();
        command
            .args(&program[1..])
            .args([self.mode, &calls])
            .args(server);
        let ended = run(&mut command, setup)?;
        is_content(&ended)?;
        printed(&ended)
    }
}

/// The Inspector makes one request per run. It also judges whether the tools' schemas fit the models of all vendors.
fn inspect(
    peers: &Peers,
    setup: &Setup,
    server: &[String],
) -> Result<(Vec<Value>, Vec<Value>), String> {
    let inspector = |arguments: &[String]| {
        let mut command = Command::new(&peers.new_node);
        command.arg(peers.npm("mcp-inspector")).arg("--cli");
        match server {
            [url] => command.args([url, "--transport", "http"]).args(arguments),
            _ => command.args(arguments).arg("--").args(server),
        };
        let ended = run(&mut command, setup)?;
        let answer: Value = printed(&ended)?;
        // It tells a tool's own error by its exit code, and on stderr.
        let is_reported =
            ended.code == Some(5) && ended.stderr.contains(r#""code":"tool_is_error""#);
        if answer["isError"] == true && is_reported {
            Ok(answer)
        } else {
            is_content(&ended).map(|()| answer)
        }
    };
    let list = ["--method", "tools/list", "--strict"].map(str::to_owned);
    let tools = inspector(&list)?["tools"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut results = Vec::new();
    for (tool, arguments) in calls() {
        let mut call = ["--method", "tools/call", "--tool-name", tool]
            .map(str::to_owned)
            .to_vec();
        for (name, value) in arguments.as_object().expect("arguments are an object") {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            call.extend(["--tool-arg".to_owned(), format!("{name}={value}")]);
        }
        results.push(inspector(&call)?);
    }
    Ok((tools, results))
}
