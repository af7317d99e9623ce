//! A server without `mcpzip` before it: what it says to a plain client, in its own bytes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;

use super::servers::Entry;
use crate::support::message::Message;

const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to a server, greeted; it ends with this.
#[derive(Debug)]
pub(super) struct Direct {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    next_id: u64,
}

impl Direct {
    /// Starts the server of `entry` in `directory` and shakes hands as `mcpzip` does: with no capabilities.
    pub(super) fn connect(entry: &Entry, directory: &std::path::Path) -> Self {
        let mut command = Command::new(&entry.command);
        command
            .args(&entry.args)
            .envs(entry.env.iter().cloned())
            .current_dir(directory);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // Ends with the server, or when nobody asks any more.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut direct = Self {
            child,
            stdin,
            lines,
            next_id: 1,
        };
        let client = json!({ "name": "direct", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        direct.ask("initialize", &hello.to_string());
        direct.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        direct
    }

    /// Every tool's definition, in the server's own bytes.
    pub(super) fn tools(&mut self) -> Vec<Box<RawValue>> {
        #[derive(serde::Deserialize)]
        struct Tools {
            tools: Vec<Box<RawValue>>,
        }
        let answer = self.ask("tools/list", "{}");
        let tools: Tools = serde_json::from_str(answer.result()).expect("it lists tools");
        assert_eq!(
            answer.value()["nextCursor"],
            json!(null),
            "there is one page"
        );
        tools.tools
    }

    /// The result of a call; `arguments` is a JSON text.
    pub(super) fn call(&mut self, tool: &str, arguments: &str) -> Message {
        self.ask(
            "tools/call",
            &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#),
        )
    }

    fn ask(&mut self, method: &str, params: &str) -> Message {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
        loop {
            let line = self
                .lines
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("no answer to {method} {params}"));
            let message = Message::new(line);
            if message.is_answer() && message.id() == id.to_string() {
                return message;
            }
        }
    }

    fn send(&mut self, line: &str) {
        self.stdin
            .write_all(format!("{line}\n").as_bytes())
            .expect("the server reads its stdin");
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        // One of the servers outlives the end of its input.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
