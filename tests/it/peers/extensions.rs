//! The extensions for interfaces and skills, with the servers of their authors behind `mcpzip` and the Inspector before it.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::clients::serve;
use super::install::{Peers, python_with_tasks};
use super::process::{self, Ended};
use super::servers::{Entry, Scratch};
use super::{announce, peers};
use crate::support::{Client, Message, Setup, until};

const PATIENCE: Duration = Duration::from_secs(120);

/// One request of the Inspector through `mcpzip` with this configuration.
fn inspect(peers: &Peers, setup: &Setup, arguments: &[&str]) -> Ended {
    setup.save();
    let mut command = Command::new(&peers.new_node);
    command
        .arg(peers.npm("mcp-inspector"))
        .arg("--cli")
        .args(arguments)
        .arg("--")
        .args(serve(setup))
        .env("HOME", setup.home().path("home"));
    process::run(&mut command, "", PATIENCE).expect("the Inspector runs")
}

fn printed(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[test]
fn the_inspector_finds_the_interface_of_a_tool_that_it_calls_through_mcpzip() {
    let Some(peers) = peers() else { return };
    let basic = Entry::new(peers.npm("mcp-server-basic-vanillajs"), &["--stdio"]);
    // The same server twice, so that both have the same URI.
    let setup = Setup::new()
        .entry("basic", &basic.to_json())
        .entry("again", &basic.to_json())
        .setting("daemon", json!("off"));
    let _ = setup.run(&["tools"]).code(0);
    for server in ["basic", "again"] {
        let tool = format!("{server}__get-time");
        let call = ["--method", "tools/call", "--tool-name", &tool];
        let ended = inspect(
            peers,
            &setup,
            &[&call[..], &["--app-info", "--advertise-apps"]].concat(),
        );
        let answer = printed(&ended);
        let info = answer.to_string();
        assert!(
            info.contains(r#""hasApp":true"#) && info.contains(&format!("ui://{server}/")),
            "{answer}"
        );
    }
    announce("The Inspector finds the interfaces of two servers with the same URI through mcpzip");
}

#[test]
fn the_inspector_verifies_skills_through_mcpzip() {
    let Some(peers) = peers() else { return };
    let scratch = Scratch::new();
    let skills = scratch.path().join("skills/refunds");
    std::fs::create_dir_all(skills.join("rules")).unwrap();
    let instructions = "---\nname: refunds\ndescription: Give customers their money back.\n---\nRead rules/days.md.\n";
    std::fs::write(skills.join("SKILL.md"), instructions).unwrap();
    std::fs::write(skills.join("rules/days.md"), "At most 30 days.\n").unwrap();
    let server = peers.script("skills_server.mjs");
    let directory = scratch.path().join("skills");
    let entry = json!({ "command": peers.new_node, "args": [server, directory] });
    // The skills of the same folder, from the local disk.
    let setup = Setup::new()
        .entry("shop", &entry.to_string())
        .entry("team", &json!({ "skills": directory }).to_string())
        .setting("daemon", json!("off"));
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    for skill in ["shop__refunds", "team__refunds"] {
        let read = client.execute(skill);
        assert!(read.as_str().contains("Read rules/days.md."), "{read:?}");
    }
    client.finish();
    let ended = inspect(peers, &setup, &["--method", "skills/list", "--verify"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for server in ["skill://shop/", "skill://team/"] {
        assert!(ended.stdout.contains(server), "{ended:?}");
    }
    announce(
        "The Inspector verifies the digests of the skills of a server and of a folder through mcpzip",
    );
}

/// A call of a tool of the server `lab` in the revision 2026-07-28.
fn called(client: &mut Client, tool: &str, arguments: &Value, more: &str, able: &str) -> Message {
    let call = json!({ "name": format!("lab__{tool}"), "arguments": arguments });
    let members = format!(r#""name":"execute_tool","arguments":{call}{more}"#);
    let id = client.begin_modern("tools/call", &members, able, "");
    client.answer(id)
}

/// The state of a task, once it is not working any more.
fn ended(client: &mut Client, id: &str, able: &str) -> Value {
    until("the end of the task", || {
        let about = format!(r#""taskId":{}"#, json!(id));
        let request = client.begin_modern("tasks/get", &about, able, "");
        let state = client.answer(request).value();
        (state["status"] != "working").then_some(state)
    })
}

#[test]
fn tasks_of_another_implementation_work_through_mcpzip() {
    let Some(peers) = peers() else { return };
    let python = python_with_tasks().unwrap_or_else(|problem| panic!("{problem}"));
    // It speaks both eras, and has tasks in the later one.
    let entry =
        json!({ "command": python, "args": [peers.script("tasks_server.py")], "era": "modern" });
    let setup = Setup::new()
        .entry("lab", &entry.to_string())
        .setting("daemon", json!("off"));
    let _ = setup.run(&["tools"]).code(0);
    let mut client = setup.start();
    let numbers = json!({ "a": 6, "b": 7 });
    let able = r#"{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    // A client with tasks gets them, by ids of mcpzip.
    for (tool, result) in [("add", "13"), ("multiply", "42")] {
        let made = called(&mut client, tool, &numbers, "", able).value();
        assert_eq!(made["resultType"], "task", "{made}");
        let id = made["taskId"].as_str().unwrap().to_owned();
        assert!(id.starts_with("mcpzip-"), "{made}");
        let end = ended(&mut client, &id, able);
        let text = end["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!((&end["status"], text), (&json!("completed"), result));
    }
    // It is asked by the task, and answers there.
    let made = called(&mut client, "ask", &json!({}), "", able).value();
    let id = made["taskId"].as_str().unwrap().to_owned();
    let asks = ended(&mut client, &id, able);
    assert_eq!(asks["status"], "input_required", "{asks}");
    let requests = asks["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["params"]["message"], "lab: Which name?");
    let answers = json!({ key: { "action": "accept", "content": { "value": "Ann" } } });
    let update = format!(r#""taskId":{},"inputResponses":{answers}"#, json!(id));
    let request = client.begin_modern("tasks/update", &update, able, "");
    client.answer(request).result();
    let end = until("the answer", || {
        let state = ended(&mut client, &id, able);
        (state["status"] == "completed").then_some(state)
    });
    assert!(end.to_string().contains("Hello, Ann."), "{end}");
    // A client without tasks waits, and is asked in the answer to its call.
    let plain = r#"{"elicitation":{"form":{}}}"#;
    let product = called(&mut client, "multiply", &numbers, "", plain).text();
    assert_eq!(product, "42");
    let asked = called(&mut client, "ask", &json!({}), "", plain).value();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let requests = asked["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap();
    let answers = json!({ key: { "action": "accept", "content": { "value": "Bob" } } });
    let more = format!(
        r#","inputResponses":{answers},"requestState":{}"#,
        asked["requestState"]
    );
    let answer = called(&mut client, "ask", &json!({}), &more, plain).text();
    assert_eq!(answer, "Hello, Bob.");
    client.finish();
    announce(
        "Tasks of FastMCP 4.1.4 work through mcpzip, for clients with and without the extension",
    );
}
