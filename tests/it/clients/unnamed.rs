//! Rules of clients that a run does not name: they can call what moves, so their rules hold for it.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

fn files() -> Value {
    json!({ "command": "mcp-server-filesystem", "args": ["/data"] })
}

/// Claude Code, which uses mcpzip and has the server `files`, and Cursor with the same server as `fs`.
fn machine(settings: &Value) -> Machine {
    let machine = Machine::new();
    let own = json!({ "command": "mcpzip", "args": ["serve"] });
    let file = json!({ "mcpServers": { "mcpzip": own, "files": files() } });
    machine.put(user_file("claude-code"), &file.to_string());
    machine.put(".claude/settings.json", &settings.to_string());
    let file = json!({ "mcpServers": { "fs": files() } });
    machine.put(user_file("cursor"), &file.to_string());
    machine
}

fn denial() -> Value {
    json!({ "permissions": { "deny": ["mcp__files__write_file"] } })
}

fn hook() -> Value {
    let run = json!({ "type": "command", "command": "./look.sh" });
    json!({ "hooks": { "PreToolUse": [{ "matcher": "mcp__files__.*", "hooks": [run] }] } })
}

#[test]
fn what_moves_gets_the_rules_of_clients_that_are_not_named() {
    for (command, arguments) in [
        ("migrate", ["--client", "cursor"].as_slice()),
        ("migrate", &["--only", "fs"]),
        ("init", &["--client", "cursor", "--no-test"]),
    ] {
        let machine = machine(&denial());
        let own = machine.read(user_file("claude-code"));
        let arguments = [&[command, "--yes", "--json"], arguments].concat();
        let report = machine.run(&arguments).code(0).json();
        let servers = machine.servers();
        assert_eq!(
            servers["fs"]["tools"],
            json!({ "deny": ["write_file"] }),
            "{arguments:?}: {report:#}"
        );
        assert!(servers["files"].is_null(), "{arguments:?}: {servers:#}");
        assert!(
            report.to_string().contains("`files` of Claude Code"),
            "{report:#}"
        );
        assert_eq!(machine.read(user_file("claude-code")), own);
    }
}

#[test]
fn a_rule_of_another_client_that_cannot_be_carried_over_stops_what_is_named() {
    let machine = machine(&hook());
    let migrate = ["migrate", "--yes", "--json", "--client", "cursor"];
    let report = machine.run(&migrate).code(1).json();
    let (said, why) = verdict(&report, "fs");
    assert!(said == "stays" && why.contains("Claude Code"), "{why}");
    // Servers of clients that are not named are not spoken of.
    assert_eq!(report["servers"].as_array().unwrap().len(), 1, "{report:#}");
    let absent = machine.run(&[&migrate[..], &["--only", "files"]].concat());
    assert!(
        absent.code(1).stderr.contains("no client has a server"),
        "`files` is not Cursor's"
    );
}

#[test]
fn what_another_proxy_had_gets_the_rules_of_clients() {
    let import = ["migrate", "--yes", "--json", "--from", "avelino"];
    let there = json!({ "mcpServers": { "fs": files() } }).to_string();
    // mcpzip may have it without the rule.
    for before in [None, Some(&there)] {
        let machine = machine(&denial());
        machine.put(".config/mcp/servers.json", &there);
        if let Some(before) = before {
            std::fs::write(machine.setup().config_path(), before).unwrap();
        }
        let report = machine.run(&import).code(0).json();
        assert_eq!(
            machine.servers()["fs"]["tools"],
            json!({ "deny": ["write_file"] }),
            "{report:#}"
        );
        let notes = report["notes"].to_string();
        assert!(notes.contains("`files` of Claude Code"), "{notes}");
    }
    let machine = machine(&hook());
    machine.put(".config/mcp/servers.json", &there);
    let report = machine.run(&import).code(1).json();
    let blocking = report["blocking"].to_string();
    assert!(
        blocking.contains("`fs`: Claude Code has the same server")
            && blocking.contains("hooks.PreToolUse"),
        "{report:#}"
    );
    assert!(!machine.setup().config_path().exists());
    let _ = machine
        .run(&[&import[..], &["--drop-rules"]].concat())
        .code(0);
    assert_eq!(machine.servers()["fs"], files());
}
