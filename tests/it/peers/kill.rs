//! Real servers are killed in a call.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::servers::{Entry, everything};
use super::{install, peers};
use crate::support::process::{Mark, Process, signal};
use crate::support::{Client, Setup, until};

/// After it, a call that was begun is with its server. Nothing outside the two can tell.
const ARRIVED: Duration = Duration::from_millis(300);

#[test]
fn a_killed_server_fails_its_call_alone_and_comes_back() {
    let Some(peers) = peers() else { return };
    let (mut client, mark) = connect(peers);
    let entity = json!({ "name": "Ada", "entityType": "person", "observations": [] });
    let create =
        json!({ "name": "memory__create_entities", "arguments": { "entities": [entity] } })
            .to_string();
    assert!(!client.execute("memory__read_graph").is_tool_error());

    let memory = process(&mark, "server-memory");
    // It will not answer, so that the call is certainly under way.
    signal(memory.id, Signal::STOP);
    let lost = client.begin("execute_tool", &create);
    let kept = client.begin("execute_tool", &long_running(2));
    std::thread::sleep(ARRIVED);
    signal(memory.id, Signal::KILL);

    let error = client.answer(lost).tool_error();
    assert!(error.contains("`memory`"), "it names the server: {error}");
    assert!(
        !client.answer(kept).is_tool_error(),
        "the call to another server goes on"
    );
    let graph = client.execute("memory__read_graph").text();
    assert!(
        !graph.contains("Ada"),
        "a call that may have acted was made again: {graph}"
    );
    assert!(
        !client.call("execute_tool", &create).is_tool_error(),
        "the next call works"
    );
    client.finish();
}

#[test]
fn a_call_that_only_reads_survives_the_end_of_its_server() {
    let Some(peers) = peers() else { return };
    let (mut client, mark) = connect(peers);
    assert_eq!(
        client
            .execute_with("everything__echo", r#"{"message":"a"}"#)
            .text(),
        "Echo: a"
    );

    let call = client.begin("execute_tool", &long_running(2));
    std::thread::sleep(ARRIVED);
    signal(process(&mark, "server-everything").id, Signal::KILL);

    assert!(
        client.answer(call).text().contains("completed"),
        "it is annotated as read-only, and made again"
    );
    client.finish();
}

fn connect(peers: &install::Peers) -> (Client, Mark) {
    let setup = Setup::new();
    let mark = setup.home().mark.clone();
    let marked = |entry: Entry| entry.variable(Mark::VARIABLE, mark.to_string()).to_json();
    let memory = Entry::new(peers.npm("mcp-server-memory"), &[]).variable(
        "MEMORY_FILE_PATH",
        setup.home().path("memory.jsonl").display().to_string(),
    );
    let setup = setup
        .entry("everything", &marked(everything(peers)))
        .entry("memory", &marked(memory));
    (setup.connect(), mark)
}

fn long_running(seconds: u32) -> String {
    let arguments = json!({ "duration": seconds, "steps": seconds });
    json!({ "name": "everything__trigger-long-running-operation", "arguments": arguments })
        .to_string()
}

fn process(mark: &Mark, program: &str) -> Process {
    until(&format!("a process of {program}"), || {
        mark.processes()
            .into_iter()
            .find(|process| process.command.contains(program))
    })
}
