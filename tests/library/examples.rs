//! The examples for people, run as programs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{fake_server, tool};

/// An example with these arguments, its output piped.
fn example(name: &str, arguments: &[&str]) -> Command {
    let path = fake_server().with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let mut command = Command::new(path);
    command.args(arguments).stdout(Stdio::piped());
    command
}

/// What an example prints that ends well.
fn printed(name: &str, arguments: &[&str]) -> String {
    let output = example(name, arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{name}: {} {text}", output.status);
    text
}

/// The script and log of a server whose tools tell the time and count words.
fn clock(home: &Path) -> [String; 2] {
    let tools = [
        tool("get_time", "Tells the current time in a time zone"),
        tool("count", "Counts words"),
    ];
    let script = json!({ "tools": tools, "calls": { "get_time": ["echo"], "count": ["echo"] } });
    let path = home.join("clock.json");
    std::fs::write(&path, script.to_string()).unwrap();
    [path, home.join("clock.log")].map(|path| path.to_str().unwrap().to_owned())
}

/// A configuration with that server.
fn configuration(home: &Path) -> PathBuf {
    let config =
        json!({ "mcpServers": { "clock": { "command": fake_server(), "args": clock(home) } } });
    let path = home.join("mcp.json");
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

#[test]
fn call_one_tool_lists_and_calls() {
    let home = tempfile::tempdir().unwrap();
    let [script, log] = clock(home.path());
    let server = fake_server();
    let text = printed("call_one_tool", &[server.to_str().unwrap(), &script, &log]);
    assert!(
        text.starts_with("get_time: Tells the current time in a time zone\ncount: "),
        "{text}"
    );
    let calls = std::fs::read_to_string(log).unwrap();
    assert_eq!(calls.matches("\"tools/call\"").count(), 1, "{calls}");
}

#[test]
fn search_and_execute_and_the_agent_call_the_best_tool() {
    let home = tempfile::tempdir().unwrap();
    let config = configuration(home.path());
    let config = config.to_str().unwrap();
    let need = ["what time is it", r#"{"zone":"Asia/Tokyo"}"#];
    let text = printed("search_and_execute", &[config, need[0], need[1]]);
    assert!(text.contains("clock__get_time"), "{text}");
    let _ = printed("agent_loop", &[config]);
    let received = std::fs::read_to_string(home.path().join("clock.log")).unwrap();
    for argument in ["Asia/Tokyo", "UTC"] {
        assert_eq!(received.matches(argument).count(), 1, "{received}");
    }
}

#[test]
fn follow_events_prints_each_state() {
    let home = tempfile::tempdir().unwrap();
    let config = configuration(home.path());
    let text = printed("follow_events", &[config.to_str().unwrap()]);
    for part in ["clock is ready", "Starting {", "Ready {", "Stopped {"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn tools_from_closures_succeed_and_fail() {
    let text = printed("tools_from_closures", &[]);
    assert_eq!(
        text,
        "texts__count_words: 5\nis an error: true, invalid float literal\n"
    );
}

#[test]
fn own_transport_lists_the_tools_at_a_port() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for line in BufReader::new(stream.try_clone().unwrap()).lines() {
            let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let result = match message["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "tcp", "version": "1" },
                }),
                Some("tools/list") => json!({ "tools": [tool("ring", "Rings a bell")] }),
                _ => continue,
            };
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            writeln!(stream, "{answer}").unwrap();
        }
    });
    let text = printed("own_transport", &[&address]);
    assert_eq!(text, "remote__ring: Rings a bell\n");
    serving.join().unwrap();
}

/// Ends a program that serves until it is ended.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn embed_in_axum_serves_its_page_and_the_tools() {
    let home = tempfile::tempdir().unwrap();
    let config = configuration(home.path());
    let arguments = [config.to_str().unwrap(), "127.0.0.1:0"];
    let mut child = Ended(example("embed_in_axum", &arguments).spawn().unwrap());
    let mut url = String::new();
    let mut out = BufReader::new(child.0.stdout.take().unwrap());
    out.read_line(&mut url).unwrap();
    let address = url.trim().trim_start_matches("http://").trim_matches('/');
    let page = answer(
        address,
        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(page.ends_with("\r\n\r\nclock"), "{page}");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    } })
    .to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let initialized = answer(address, &request);
    assert!(
        initialized.starts_with("HTTP/1.1 200") && initialized.contains("serverInfo"),
        "{initialized}"
    );
}

/// The whole answer to an HTTP request.
fn answer(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
