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
    let program = crate::support::program::mcpzip().display().to_string();
    let named = [
        (json!(["serve", "--config", "/nowhere/c.json"]), json!({})),
        (json!(["serve", "--config=/nowhere/c.json"]), json!({})),
        (json!(["--config=/nowhere/c.json", "serve"]), json!({})),
        (
            json!(["serve"]),
            json!({ "MCPZIP_CONFIG": "/nowhere/c.json" }),
        ),
    ];
    for (args, env) in named {
        let machine = Machine::new();
        let own = json!({ "command": program, "args": args, "env": env });
        let before = json!({ "mcpServers": { "mcpzip": own, "extra": { "command": "x" } } });
        let before = before.to_string();
        machine.put(user_file("cursor"), &before);
        let report = machine.migrate(&[]);
        let (said, why) = verdict(&report, "extra");
        assert!(
            said == "stays" && why.contains("`mcpzip migrate --config /nowhere/c.json`"),
            "{args} {env}: {report:#}"
        );
        assert_eq!(machine.read(user_file("cursor")), before);
    }
}

#[test]
fn servers_that_the_profile_of_an_entry_does_not_have_stay() {
    let config = |servers: &[&str]| {
        json!({ "mcpServers": { "a": { "command": "a" } }, "profiles": { "r": { "servers": servers } } })
            .to_string()
    };
    let program = crate::support::program::mcpzip().display().to_string();
    let named = [
        (json!(["serve", "--profile", "r"]), json!({})),
        (json!(["serve", "--profile=r"]), json!({})),
        (json!(["serve"]), json!({ "MCPZIP_PROFILE": "r" })),
    ];
    let migrate = ["migrate", "--yes", "--json"];
    let init = ["init", "--yes", "--json", "--no-test"];
    for (args, env) in named {
        let own = json!({ "command": program, "args": args, "env": env });
        let servers =
            json!({ "mcpzip": own, "a": { "command": "a" }, "extra": { "command": "x" } });
        let before = json!({ "mcpServers": servers }).to_string();
        for command in [&migrate[..], &init, &["migrate", "--dry-run", "--json"]] {
            let machine = Machine::new();
            machine.setup().save_text(&config(&["a"]));
            machine.put(user_file("cursor"), &before);
            let report = machine.run(command).code(0).json();
            let plan = report.get("plan").unwrap_or(&report);
            let why = "mcpzip has the profile `r` in Cursor, where it would be missing; name it in `profiles.r.servers`";
            assert!(plan.to_string().contains(why), "{args} {env}: {report:#}");
            assert_eq!(verdict(plan, "a").0, "moves", "{report:#}");
            assert!(machine.read(user_file("cursor")).contains("extra"));
            assert_eq!(machine.servers()["extra"], Value::Null, "{report:#}");
        }
        // As the reason says: once the profile has it, it moves.
        for servers in [&["a", "extra"][..], &["*"]] {
            let machine = Machine::new();
            machine.setup().save_text(&config(servers));
            machine.put(user_file("cursor"), &before);
            let report = machine.migrate(&[]);
            assert_eq!(verdict(&report, "extra").0, "moves", "{report:#}");
            let connect = ["connect", "cursor", "--profile", "r"];
            let known = machine.run(&connect).code(0).json();
            assert_eq!(known["changed"], false, "{known:#}");
        }
    }
}
