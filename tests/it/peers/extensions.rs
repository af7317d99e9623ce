//! The extensions for interfaces and skills, with the servers of their authors behind `mcpzip` and the Inspector before it.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::clients::serve;
use super::install::Peers;
use super::process::{self, Ended};
use super::servers::{Entry, Scratch};
use super::{announce, peers};
use crate::support::Setup;

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
