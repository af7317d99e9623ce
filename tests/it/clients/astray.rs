//! An entry for mcpzip that starts another program or uses another configuration: servers that move behind it must not be lost.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

/// A client's file with an entry for mcpzip that has a key of the user's, and with one more server.
fn file(command: &str, args: &[&str]) -> String {
    let own = json!({ "command": command, "args": args, "env": { "MINE": "1" } });
    json!({ "mcpServers": { "mcpzip": own, "extra": { "command": "x" } } }).to_string()
}

fn entries(machine: &Machine, client: &str) -> Value {
    let after: Value = serde_json::from_str(&machine.read(user_file(client))).unwrap();
    after["mcpServers"].clone()
}

/// Checks that `extra` has left `client`, whose entry starts this program now for the reason `why`.
#[track_caller]
fn starts_this(machine: &Machine, client: &str, before: &str, report: &Value, why: &str) {
    let after = entries(machine, client);
    let own = &after["mcpzip"];
    let program = json!(crate::support::program::mcpzip());
    assert_eq!(own["command"], program, "{report:#}");
    assert_eq!(
        (&own["args"], &own["env"]),
        (&json!(["serve"]), &json!({ "MINE": "1" })),
        "{report:#}"
    );
    assert_eq!(after["extra"], Value::Null, "{report:#}");
    assert_eq!(machine.servers()["extra"]["command"], "x");
    let warnings = report["warnings"].to_string();
    assert!(
        warnings.contains("starts this mcpzip from now on") && warnings.contains(why),
        "{report:#}"
    );
    machine.undo();
    assert_eq!(machine.read(user_file(client)), before);
}

#[test]
fn an_entry_whose_program_is_gone_starts_this_one_when_servers_move() {
    let before = file("/home/me/go/bin/mcpzip", &["serve"]);
    for client in ["claude-code", "cursor"] {
        let machine = Machine::new();
        machine.put(user_file(client), &before);
        let report = machine.migrate(&[]);
        starts_this(&machine, client, &before, &report, "does not exist");
        let init = ["init", "--yes", "--json", "--no-test"];
        let report = machine.run(&init).code(0).json()["plan"].clone();
        starts_this(&machine, client, &before, &report, "does not exist");
    }
}

#[cfg(unix)]
#[test]
fn an_entry_that_starts_an_older_version_starts_this_one_when_servers_move() {
    use std::os::unix::fs::PermissionsExt as _;

    for (answer, is_mended) in [
        ("mcpzip 0.1.0", true),
        (concat!("mcpzip ", env!("CARGO_PKG_VERSION")), false),
    ] {
        let machine = Machine::new();
        let old = machine.put("old/mcpzip", &format!("#!/bin/sh\necho {answer}\n"));
        std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).unwrap();
        let before = file(old.to_str().unwrap(), &["serve"]);
        machine.put(user_file("cursor"), &before);
        let report = machine.migrate(&[]);
        if is_mended {
            starts_this(&machine, "cursor", &before, &report, "version 0.1.0");
        } else {
            let kept = entries(&machine, "cursor");
            assert_eq!(kept["mcpzip"]["command"], json!(old), "{report:#}");
            assert_eq!(kept["extra"], Value::Null, "{report:#}");
        }
    }
}

#[test]
fn servers_stay_behind_an_entry_with_another_configuration() {
    let machine = Machine::new();
    let program = crate::support::program::mcpzip().display().to_string();
    let before = file(&program, &["serve", "--config", "/nowhere/c.json"]);
    machine.put(user_file("cursor"), &before);
    let report = machine.migrate(&[]);
    let (said, why) = verdict(&report, "extra");
    assert!(
        said == "stays" && why.contains("`mcpzip migrate --config /nowhere/c.json`"),
        "{report:#}"
    );
    assert_eq!(machine.read(user_file("cursor")), before);
}
