//! Claude Code as a host of interfaces (MCP Apps), in both eras: the program that embeds it reads the page of a tool and calls for it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::clients::APPS_HOST;
use super::model::{self, DONE, Progress};
use super::{PATIENCE, announce, install, peers};
use crate::peers::servers::Entry;
use crate::support::Setup;

/// The program that embeds Claude Code.
struct Embedder {
    child: Child,
    stdin: ChildStdin,
    messages: Receiver<Value>,
}

impl Embedder {
    /// Sends a request, and waits for its answer.
    #[track_caller]
    fn ask(&mut self, request: &Value) -> Value {
        let id = request["subtype"].clone();
        self.send(&json!({ "type": "control_request", "request_id": id, "request": request }));
        let answer = self.expect(|message| message["response"]["request_id"] == id);
        assert_eq!(answer["response"]["subtype"], "success", "{answer}");
        answer["response"]["response"].clone()
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    #[track_caller]
    fn expect(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.messages.recv_timeout(PATIENCE).expect("a message");
            if is_wanted(&message) {
                return message;
            }
        }
    }
}

impl Drop for Embedder {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn claude_code_reads_the_page_of_a_tool_and_calls_for_it_in_both_eras() {
    let Some(peers) = peers() else { return };
    let modules = install::apps_host().unwrap_or_else(|problem| panic!("{problem}"));
    let basic = Entry::new(peers.npm("mcp-server-basic-vanillajs"), &["--stdio"]);
    let debug = Entry::new(peers.npm("mcp-server-debug"), &["--stdio"]);
    for is_legacy in [false, true] {
        // Both servers have the same page, with the same URI.
        let setup = Setup::new()
            .entry("basic", &basic.to_json())
            .entry("again", &basic.to_json())
            .entry("debug", &debug.to_json())
            .setting("daemon", json!("off"));
        let _ = setup.run(&["tools"]).code(0);
        let progress = Arc::new(Progress::default());
        progress.release();
        let script = vec![(0, "basic__get-time", json!({}))];
        let model = model::start(APPS_HOST.name, 1, script, &progress);
        let mut command = APPS_HOST.command(&modules, &setup, &model);
        if is_legacy {
            command.env("MCP_PROTOCOL_NEGOTIATION", "legacy");
        }
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.stderr(Stdio::null()).spawn().unwrap();
        let (sender, messages) = channel();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            for message in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut host = Embedder {
            child,
            stdin,
            messages,
        };
        host.ask(&json!({ "subtype": "initialize" }));
        for server in ["basic", "again"] {
            let uri = format!("ui://{server}/get-time/mcp-app.html");
            let read = host
                .ask(&json!({ "subtype": "mcp_read_resource", "serverName": "zip", "uri": uri }));
            let page = &read["contents"][0];
            assert_eq!(page["uri"], uri, "legacy: {is_legacy}");
            let html = page["text"].as_str().unwrap();
            assert!(html.contains("Get Time App"), "{}", html.len());
        }
        // A page calls by its server's own names, also what is kept from the model.
        for (tool, member) in [("basic__get-time", "time"), ("debug-refresh", "counter")] {
            let tool = format!("mcp__zip__{tool}");
            let called = host.ask(&json!({ "subtype": "mcp_call", "tool": tool, "arguments": {} }));
            assert!(!called["structuredContent"][member].is_null(), "{called}");
        }
        host.send(&json!({ "type": "user", "message": { "role": "user", "content": "go" } }));
        let end = host.expect(|message| message["type"] == "result");
        assert!(end.to_string().contains(DONE), "{end}");
        let requests = model.requests();
        let first = requests.iter().find(|request| model::is_of_task(request));
        let first = &first.expect("the model was asked").text;
        assert!(first.contains("mcp__zip__debug__debug-tool"), "{first}");
        assert!(!first.contains("debug-refresh"), "{first}");
    }
    announce(
        "Claude Code 2.1.330 as a host of Apps reads pages and calls for them through mcpzip, in both eras",
    );
}
