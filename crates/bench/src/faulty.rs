//! A server that fails on request. Each of its tools is a fault; otherwise it behaves well.

use std::io::{BufRead as _, Write as _};
use std::process::exit;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

/// The faults by the names of their tools. The first one is a good answer.
pub(crate) const FAULTS: [&str; 10] = [
    "answer", "fail", "exit", "hang", "late", "garbage", "half", "twice", "flood", "change",
];

/// Longer than the time limit of the soak's calls.
const LATE: Duration = Duration::from_secs(5);

/// Serves stdin until it ends.
pub(crate) fn run() -> Result<()> {
    let mut version = 0;
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else {
            continue;
        };
        let id = &message["id"];
        if id.is_null() {
            continue;
        }
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "faulty", "version": "1" },
            }),
            "tools/list" => json!({ "tools": tools(version) }),
            "tools/call" => {
                version += 1;
                let name = message["params"]["name"].as_str().unwrap_or_default();
                fault(name, id)?;
                json!({ "content": [{ "type": "text", "text": "done" }], "isError": name == "fail" })
            }
            _ => json!({}),
        };
        say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())?;
    }
    Ok(())
}

/// The definitions: a tool for each fault, and one whose definition changes with `version`.
fn tools(version: usize) -> Vec<Value> {
    let names = FAULTS
        .iter()
        .map(|name| (*name).to_owned())
        .chain([format!("version_{version}")]);
    names
        .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }))
        .collect()
}

/// Does the fault that precedes the answer, if there is one.
fn fault(name: &str, id: &Value) -> Result<()> {
    match name {
        "exit" => exit(3),
        "hang" => std::thread::sleep(3 * LATE),
        "late" => std::thread::sleep(LATE),
        "garbage" => say("no message at all\n{\"jsonrpc\":\"2.0\",\"id\":\n[1,2\n\u{0}")?,
        "half" => {
            let mut output = std::io::stdout().lock();
            write!(
                output,
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":["
            )?;
            output.flush()?;
            exit(4);
        }
        "twice" => say(
            &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": 1, "message": "no" } })
                .to_string(),
        )?,
        "flood" => {
            let line = "x".repeat(200);
            for _ in 0..2000 {
                say(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": line } })
                    .to_string())?;
            }
        }
        "change" => say(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)?,
        _ => {}
    }
    Ok(())
}

fn say(line: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(line.as_bytes())?;
    output.write_all(b"\n")?;
    Ok(output.flush()?)
}
