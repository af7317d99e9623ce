//! Servers on every framework and transport behind one `mcpzip`: each is listed, searched, described and called.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::install::Peers;
use super::served::Served;
use super::{announce, peers, table};
use crate::support::{Client, Setup};

/// Many interpreters start at once, perhaps on a busy machine.
const ALL_STARTED: Duration = Duration::from_secs(90);

/// A framework that servers are written with.
struct Framework {
    name: &'static str,
    /// The program, with what comes before the transport's name.
    program: fn(&Peers) -> Vec<PathBuf>,
    /// How it is reached, and in which eras.
    ways: &'static [(Way, &'static [&'static str])],
    tools: usize,
}

/// How a server is reached, and its word for that.
#[derive(Debug, Clone, Copy)]
enum Way {
    Stdio(&'static str),
    Http(&'static str),
    Sse(&'static str),
}

/// What an entry says: nothing of the era, or that it shall be the modern one.
const AUTO: &[&str] = &["auto"];
const BOTH: &[&str] = &["auto", "modern"];

const FRAMEWORKS: [Framework; 7] = [
    Framework {
        name: "server-everything 2026.8.31",
        program: |peers| {
            let bound = [
                "--import".into(),
                peers.script("loopback.mjs"),
                peers.npm("mcp-server-everything"),
            ];
            [vec!["node".into()], bound.to_vec()].concat()
        },
        ways: &[
            (Way::Stdio("stdio"), AUTO),
            (Way::Http("streamableHttp"), AUTO),
            (Way::Sse("sse"), AUTO),
        ],
        tools: 13,
    },
    Framework {
        name: "FastMCP 1.x (mcp 1.30.0)",
        program: |peers| python(peers, 1, "mcp.server.fastmcp", "FastMCP"),
        ways: &[
            (Way::Stdio("stdio"), AUTO),
            (Way::Http("streamable-http"), AUTO),
            (Way::Sse("sse"), AUTO),
        ],
        tools: 2,
    },
    Framework {
        name: "FastMCP 2.14.7",
        program: |peers| python(peers, 1, "fastmcp", "FastMCP"),
        ways: &[
            (Way::Stdio("stdio"), AUTO),
            (Way::Http("streamable-http"), AUTO),
            (Way::Sse("sse"), AUTO),
        ],
        tools: 2,
    },
    Framework {
        name: "Python SDK 2.3.0",
        program: |peers| python(peers, 2, "mcp.server", "MCPServer"),
        ways: &[
            (Way::Stdio("stdio"), BOTH),
            (Way::Http("streamable-http"), BOTH),
        ],
        tools: 2,
    },
    Framework {
        name: "TypeScript SDK 1.32.2",
        program: |peers| vec!["node".into(), peers.script("server_v1.mjs")],
        ways: &[
            (Way::Stdio("stdio"), AUTO),
            (Way::Http("streamable-http"), AUTO),
        ],
        tools: 2,
    },
    Framework {
        name: "TypeScript SDK 2.4.0",
        program: |peers| vec!["node".into(), peers.script("server_v2.mjs")],
        ways: &[
            (Way::Stdio("stdio"), BOTH),
            (Way::Http("streamable-http"), BOTH),
        ],
        tools: 2,
    },
    Framework {
        name: "rmcp 3.9.0",
        program: |peers| vec![peers.rmcp_server()],
        ways: &[(Way::Stdio("stdio"), BOTH)],
        tools: 2,
    },
];

fn python(peers: &Peers, generation: u32, module: &str, class: &str) -> Vec<PathBuf> {
    vec![
        peers.python(generation, "python"),
        peers.script("server.py"),
        module.into(),
        class.into(),
    ]
}

impl Framework {
    /// The server's entries in a configuration, one for each era, and the server itself where `mcpzip` does not start it.
    fn start(&self, peers: &Peers, way: Way, eras: &[&str]) -> (Vec<String>, Option<Served>) {
        let program = (self.program)(peers);
        let serve = |word: &str| {
            let mut command = Command::new(&program[0]);
            Served::start(command.args(&program[1..]).arg(word).env("PORT", "0"))
        };
        let (mut entry, served) = match way {
            Way::Stdio(word) => {
                let args: Vec<PathBuf> =
                    program[1..].iter().cloned().chain([word.into()]).collect();
                (json!({ "command": program[0], "args": args }), None)
            }
            Way::Http(word) => {
                let served = serve(word);
                (
                    json!({ "url": format!("{}/mcp", served.address) }),
                    Some(served),
                )
            }
            Way::Sse(word) => {
                let served = serve(word);
                (
                    json!({ "type": "sse", "url": format!("{}/sse", served.address) }),
                    Some(served),
                )
            }
        };
        let entries = eras.iter().map(|era| {
            entry["era"] = json!(era);
            entry.to_string()
        });
        (entries.collect(), served)
    }
}

/// One server behind `mcpzip`.
struct Row {
    name: String,
    framework: &'static Framework,
    way: Way,
    era: &'static str,
}

#[test]
fn servers_on_every_framework_and_transport_are_listed_found_described_and_called() {
    let Some(peers) = peers() else { return };
    let ways = FRAMEWORKS.iter().flat_map(|framework| {
        framework
            .ways
            .iter()
            .map(move |way| (framework, way.0, way.1))
    });
    // The interpreters start side by side.
    let started: Vec<_> = std::thread::scope(|scope| {
        let start = |(framework, way, eras): (&'static Framework, Way, &'static [&'static str])| {
            scope.spawn(move || (framework, way, eras, framework.start(peers, way, eras)))
        };
        let starts: Vec<_> = ways.map(start).collect();
        starts
            .into_iter()
            .map(|start| start.join().expect("the server starts"))
            .collect()
    });
    let mut setup = Setup::new();
    let mut rows = Vec::new();
    for (framework, way, eras, (entries, _)) in &started {
        for (era, entry) in eras.iter().zip(entries) {
            let name = format!("s{}", rows.len());
            setup = setup.entry(&name, entry);
            rows.push(Row {
                name,
                framework,
                way: *way,
                era,
            });
        }
    }
    let mut client = setup.connect();
    let ready = until_ready(&mut client, rows.len());
    let mut table_rows = vec![
        [
            "server",
            "transport",
            "era",
            "revision",
            "list",
            "search",
            "describe",
            "execute",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let log = client.stderr();
    let mut failed = 0;
    for row in &rows {
        let steps = row.steps(&mut client, &ready);
        failed += steps.iter().filter(|step| step.is_err()).count();
        let cells = steps.map(|step| {
            step.map_or_else(|problem| format!("FAILED: {problem}"), |()| "ok".to_owned())
        });
        let transport = match row.way {
            Way::Stdio(_) => "stdio",
            Way::Http(_) => "Streamable HTTP",
            Way::Sse(_) => "SSE",
        };
        let start =
            [row.framework.name, transport, row.era, &row.revision(&log)].map(str::to_owned);
        table_rows.push(start.into_iter().chain(cells).collect());
    }
    let table = table(&table_rows);
    announce(&format!(
        "Servers on every framework and transport behind mcpzip\n{table}"
    ));
    assert_eq!(failed, 0, "{table}");
    client.finish();
}

/// The status, once all servers are ready or the time is up.
fn until_ready(client: &mut Client, count: usize) -> String {
    let start = Instant::now();
    loop {
        let status = client.call("proxy_status", "{}").text();
        let is_ready =
            |line: &&str| line.contains(": ready, ") && !line.contains(": ready, 0 tools");
        if status.lines().filter(is_ready).count() == count || start.elapsed() > ALL_STARTED {
            return status;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

impl Row {
    /// The protocol revision that is spoken with it.
    fn revision(&self, log: &str) -> String {
        let mut connections = log
            .lines()
            .filter(|line| line.contains(&format!("server={} revision=", self.name)));
        let revision = connections
            .next_back()
            .and_then(|line| line.split("revision=").nth(1));
        revision.unwrap_or("none").trim().to_owned()
    }

    fn steps(&self, client: &mut Client, status: &str) -> [Result<(), String>; 4] {
        let name = &self.name;
        let wanted = format!("{name}: ready, {} tools,", self.framework.tools);
        let line = status
            .lines()
            .find(|line| line.starts_with(&format!("{name}: ")))
            .unwrap_or_default();
        let list = holds(line, &wanted);
        let query = json!({ "query": "echo a message back", "server": name });
        let search = client.call("search_tools", &query.to_string()).text();
        let search = holds(&search, &format!("{name}__echo(message: string)"));
        let described = client
            .call(
                "describe_tool",
                &json!({ "name": format!("{name}__echo") }).to_string(),
            )
            .text();
        let describe = holds(&described, r#""name":"echo""#);
        let result = client.execute_with(
            &format!("{name}__echo"),
            &json!({ "message": "grüße 🌍" }).to_string(),
        );
        let execute = holds(&result.text(), "Echo: grüße 🌍");
        [list, search, describe, execute]
    }
}

fn holds(text: &str, part: &str) -> Result<(), String> {
    if text.contains(part) {
        Ok(())
    } else {
        Err(text.to_owned())
    }
}
