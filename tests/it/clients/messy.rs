//! Files as people have them.

use serde_json::json;

use super::case::{CLIENTS, Case, Machine, user_file, verdict};

/// A server in a file of the form that most clients share.
const PLAIN: &str = r#"{"mcpServers": {"x": {"command": "x-mcp"}}}"#;

#[test]
fn what_stands_around_stays_to_the_byte() {
    for (client, before, after) in [
        (
            "cursor",
            "\u{feff}{\r\n\t\"mcpServers\" : {\r\n\t\t\"x\":{\"command\":\"x-mcp\"}\r\n\t} ,\r\n\t\"other\" : [ 1,2 ]\r\n}",
            "\u{feff}{\r\n\t\"mcpServers\" : {\r\n\t\t\"mcpzip\": {\r\n\t\t\t\"command\": \"MCPZIP\",\r\n\t\t\t\"args\": [\"serve\"]\r\n\t\t}\r\n\t} ,\r\n\t\"other\" : [ 1,2 ]\r\n}",
        ),
        (
            "zed",
            "// top\n{\n  // servers\n  \"context_servers\": {\n    // about x\n    \"x\": { \"command\": \"x-mcp\", \"args\": [] }, // here\n    /* end */\n  },\n  \"a\": 1.50e3, \"b\": \"\\u00e9\", // odd\n}\n// bottom",
            "// top\n{\n  // servers\n  \"context_servers\": {\n    // about x\n    /* end */\n    \"mcpzip\": {\n      \"command\": \"MCPZIP\",\n      \"args\": [\"serve\"],\n      \"env\": {}\n    },\n  },\n  \"a\": 1.50e3, \"b\": \"\\u00e9\", // odd\n}\n// bottom",
        ),
        (
            "lm-studio",
            "{\"mcpServers\":{\"x\":{\"command\":\"x-mcp\"},\"x\":{\"command\":\"x-mcp\",\"args\":[\"2\"]}},\"z\":18446744073709551617}",
            "{\"mcpServers\":{\"mcpzip\": {\"command\": \"MCPZIP\", \"args\": [\"serve\"]}},\"z\":18446744073709551617}",
        ),
        (
            "opencode",
            "{ /* all */ \"mcp\": { \"x\": { \"type\": \"local\", \"command\": [\"x-mcp\"] } }, \"keybinds\": {}, }",
            "{ /* all */ \"mcp\": { \"mcpzip\": {\"type\": \"local\", \"command\": [\"MCPZIP\", \"serve\"], \"enabled\": true} }, \"keybinds\": {}, }",
        ),
    ] {
        let entry = match client {
            "lm-studio" => json!({ "command": "x-mcp", "args": ["2"] }),
            _ => json!({ "command": "x-mcp" }),
        };
        Case::new(client, before)
            .moves("x", entry)
            .after(after)
            .check();
    }
}

#[test]
fn toml_keeps_its_layout() {
    for (before, after) in [
        (
            "mcp_servers.x.command = 'x-mcp' # dotted\n\n[tui]\nnotifications = [\n  \"a\", # one\n]\n",
            "[tui]\nnotifications = [\n  \"a\", # one\n]\n",
        ),
        (
            "model = \"m\"\r\n[mcp_servers.x]\r\ncommand = \"x-mcp\"\r\n# end\r\n",
            "model = \"m\"\r\n",
        ),
        (
            "# my file\n\n# about x\n[mcp_servers.x]\ncommand = \"x-mcp\"\n",
            "# my file\n\n# about x\n",
        ),
        (
            "[mcp_servers]\nx = { command = \"x-mcp\" }\n\n[[things]]\na = 1\n",
            "[[things]]\na = 1\n",
        ),
        (
            "instructions = \"\"\"\n[mcp_servers.y]\ncommand = 1\n\"\"\"\n[mcp_servers.x]\ncommand = \"x-mcp\"\n",
            "instructions = \"\"\"\n[mcp_servers.y]\n",
        ),
        (
            "features = { code_mode = true }\n[mcp_servers.x]\ncommand = \"x-mcp\"\n",
            "features = { code_mode = true }\n",
        ),
        (
            "[features]\ncode_mode = { direct_only_tool_namespaces = [\"mcp__a\"] }\n[mcp_servers.x]\ncommand = \"x-mcp\"\n",
            "[\"mcp__a\", \"mcp__mcpzip\"]",
        ),
    ] {
        let machine = Machine::new();
        machine.put(".codex/config.toml", before);
        machine.migrate(&["--client", "codex"]);
        let now = machine.read(".codex/config.toml");
        assert!(now.contains(after), "{after}\nis not in\n{now}");
        assert!(
            now.contains("mcp_servers.mcpzip")
                || now.contains("mcpzip = {")
                || now.contains("mcpzip]"),
            "{now}"
        );
        assert!(!now.contains("x-mcp"), "{now}");
        machine.undo();
        assert_eq!(machine.read(".codex/config.toml"), before);
    }
}

#[test]
fn yaml_keeps_its_layout() {
    for (before, after) in [
        (
            "# mine\nextensions:\n    x:   # the x\n        type: stdio\n        cmd: x-mcp\n        # last of x\n\n    # about y\n    y:\n        type: builtin\nPROMPT: |\n    extensions:\n        x: no\nEND: 'it''s'\n",
            "# mine\nextensions:\n\n    # about y\n    y:\n        type: builtin\n    mcpzip:\n",
        ),
        (
            "extensions:\n  x:\n    type: stdio\n    cmd: x-mcp\n",
            "extensions:\n  mcpzip:\n    name: mcpzip\n",
        ),
        (
            "A: 1\r\nextensions:\r\n  x:\r\n    type: stdio\r\n    cmd: x-mcp\r\nB: 2\r\n",
            "    timeout: 300\r\nB: 2\r\n",
        ),
        (
            "extensions:\n  x: {type: stdio, cmd: x-mcp, args: [], envs: {}} # short\nB: 2",
            "timeout: 300\nB: 2",
        ),
        (
            "---\n# one document\nextensions:\n  x:\n    type: stdio\n    cmd: \"x-mcp\"\n    args:\n    - \"a: b\"\n    - '#c'\n...\n",
            "---\n# one document\nextensions:\n  mcpzip:\n",
        ),
    ] {
        let machine = Machine::new();
        machine.put(user_file("goose"), before);
        let report = machine.migrate(&["--client", "goose"]);
        assert_eq!(verdict(&report, "x").0, "moves", "{report:#}");
        let now = machine.read(user_file("goose"));
        assert!(now.contains(after), "{after}\nis not in\n{now}");
        assert!(!now.contains("x-mcp"), "{now}");
        machine.undo();
        assert_eq!(machine.read(user_file("goose")), before);
    }
}

#[test]
fn what_cannot_be_edited_is_refused_and_stays() {
    for (client, content, reason) in [
        (
            "goose",
            "extensions: {x: {type: stdio, cmd: x-mcp}}\n",
            "braces",
        ),
        (
            "goose",
            "a: &b {type: stdio, cmd: x-mcp}\nextensions:\n  x: &x\n    type: stdio\n    cmd: x-mcp\n  y: *x\n",
            "edited",
        ),
        ("codex", "[mcp_servers.x]\r\ncommand = \"x-mcp\"\n", "CR LF"),
    ] {
        let machine = Machine::new();
        machine.put(user_file(client), content);
        let refused = machine
            .run(&["migrate", "--yes", "--client", client, "--only", "x"])
            .code(1);
        assert!(refused.stderr.contains(reason), "{refused}");
        assert_eq!(machine.read(user_file(client)), content);
        assert!(!machine.setup().config_path().exists());
    }
}

#[test]
fn a_broken_file_costs_nobody_else() {
    let machine = Machine::new();
    for (client, content) in [
        ("cursor", "{\"mcpServers\": {"),
        ("codex", "[mcp_servers"),
        ("goose", "extensions: [\n"),
        ("kiro", ""),
        ("windsurf", "[]"),
        ("zed", "// nothing\n"),
        ("copilot-cli", "{\"mcpServers\": []}"),
        ("roo", "{\"mcpServers\": null}"),
    ] {
        machine.put(user_file(client), content);
    }
    std::fs::write(machine.put(user_file("cline"), ""), b"\xff\xfe").unwrap();
    machine.put(user_file("lm-studio"), PLAIN);
    let report = machine.migrate_readable();
    assert_eq!(verdict(&report, "x"), ("moves".to_owned(), "x".to_owned()));
    let unreadable: Vec<&str> = report["unreadable"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["file"].as_str().unwrap())
        .collect();
    for client in ["cursor", "codex", "goose", "windsurf", "cline"] {
        assert!(
            unreadable
                .iter()
                .any(|file| file.ends_with(user_file(client))),
            "{client}: {unreadable:?}"
        );
    }
    assert_eq!(machine.read(user_file("cursor")), "{\"mcpServers\": {");
}

#[test]
fn forms_of_other_clients_are_understood() {
    Case::new(
        "claude-code",
        r#"{"mcpServers": {
            "untyped": {"url": "https://u.example/mcp"},
            "camel": {"type": "streamableHttp", "url": "https://c.example/mcp"},
            "dashes": {"type": "streamable-http", "url": "https://d.example/mcp"},
            "server": {"serverUrl": "https://s.example/mcp"},
            "http": {"httpUrl": "https://h.example/mcp"},
            "sse": {"type": "sse", "url": "https://e.example/sse", "headers": {}},
            "list": {"command": ["npx", "-y", "l"], "args": ["more"], "environment": {"A": 1, "B": true}},
            "off": {"command": "o", "isActive": false},
            "gone": {"command": "g", "disabled": true, "cwd": "/srv", "unknown": {"a": []}, "dev": 1}
        }}"#,
    )
    .moves("untyped", json!({ "url": "https://u.example/mcp" }))
    .moves("camel", json!({ "url": "https://c.example/mcp" }))
    .moves("dashes", json!({ "url": "https://d.example/mcp" }))
    .moves("server", json!({ "url": "https://s.example/mcp" }))
    .moves("http", json!({ "url": "https://h.example/mcp" }))
    .moves("sse", json!({ "type": "sse", "url": "https://e.example/sse" }))
    .moves("list", json!({ "command": "npx", "args": ["-y", "l", "more"], "env": { "A": "1", "B": "true" } }))
    .moves("off", json!({ "command": "o", "disabled": true }))
    .moves("gone", json!({ "command": "g", "cwd": "/srv", "disabled": true }))
    .check();
}

#[test]
fn older_forms_of_zed_are_understood() {
    Case::new(
        "zed",
        r#"{"context_servers": {
            "custom": {"source": "custom", "command": "c", "args": ["1"]},
            "nested": {"command": {"path": "/bin/n", "args": ["2"], "env": {"K": "v"}}, "settings": {}},
            "ext": {"settings": {"key": "v"}},
            "far": {"url": "https://f.example/mcp", "headers": {"A": "b"}, "enabled": false}
        }}"#,
    )
    .moves("custom", json!({ "command": "c", "args": ["1"] }))
    .moves("nested", json!({ "command": "/bin/n", "args": ["2"], "env": { "K": "v" } }))
    .moves("far", json!({ "url": "https://f.example/mcp", "headers": { "A": "b" }, "disabled": true }))
    .stays("ext", "comes from an extension")
    .check();
}

#[test]
fn names_are_made_such_as_a_server_may_have() {
    let machine = Machine::new();
    machine.put(
        user_file("claude-desktop"),
        r#"{"mcpServers": {
            "My Server (work)": {"command": "1"}, "a__b": {"command": "2"}, "ünï": {"command": "3"}, "": {"command": "4"},
            "MCPzip": {"command": "5"}, "a.b-c_d": {"command": "6"}, "my server (work": {"command": "7"}
        }}"#,
    );
    let report = machine.migrate(&[]);
    for (written, name) in [
        ("My Server (work)", "My-Server-work"),
        ("a__b", "a_b"),
        ("ünï", "n"),
        ("", "server"),
        ("MCPzip", "MCPzip-server"),
        ("a.b-c_d", "a.b-c_d"),
    ] {
        assert_eq!(
            verdict(&report, written),
            ("moves".to_owned(), name.to_owned())
        );
    }
    assert_eq!(
        verdict(&report, "my server (work"),
        (
            "conflicts".to_owned(),
            "my-server-work-claude-desktop".to_owned()
        )
    );
    assert_eq!(machine.servers().as_object().unwrap().len(), 7);
    let shown = machine.run(&["servers"]).code(4).json();
    let states: Vec<&str> = shown["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["state"].as_str().unwrap())
        .collect();
    assert!(!states.contains(&"faulty"), "{shown:#}");
}

#[test]
fn the_same_server_of_many_clients_is_one_and_another_of_its_name_is_told_apart() {
    let machine = Machine::new();
    machine.setup().save_text(
        "{\n  // mine\n  \"mcpServers\": {\n    \"x\": {\"command\": \"x-mcp\", \"idle_timeout\": \"never\"}\n  }\n}\n",
    );
    let config = std::fs::read_to_string(machine.setup().config_path()).unwrap();
    for client in ["cursor", "kiro", "lm-studio"] {
        machine.put(user_file(client), PLAIN);
    }
    machine.put(
        user_file("windsurf"),
        r#"{"mcpServers": {"x": {"command": "x-mcp", "args": ["other"]}}}"#,
    );
    machine.put(
        user_file("cline"),
        r#"{"mcpServers": {"X": {"command": "x-mcp", "args": ["third"]}}}"#,
    );
    let before = machine.everything();
    let report = machine.migrate(&[]);
    let verdicts: Vec<(&str, &str, &str)> = report["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            let text = |key: &str| item[key].as_str().unwrap();
            (text("client"), text("verdict"), text("name"))
        })
        .collect();
    assert_eq!(
        verdicts,
        [
            ("cursor", "moves", "x"),
            ("windsurf", "conflicts", "x-windsurf"),
            ("cline", "conflicts", "X-cline"),
            ("kiro", "moves", "x"),
            ("lm-studio", "moves", "x"),
        ]
    );
    let now = std::fs::read_to_string(machine.setup().config_path()).unwrap();
    assert!(
        now.starts_with(config.split("\n  }").next().unwrap()),
        "{now}"
    );
    assert!(
        now.contains("\"x-windsurf\"") && now.contains("\"X-cline\""),
        "{now}"
    );
    let settled = machine.everything();
    machine.migrate(&[]);
    assert_eq!(machine.everything(), settled);
    machine.undo();
    assert_eq!(machine.everything(), before);
}

#[cfg(unix)]
#[test]
fn a_link_a_mode_and_a_backup_are_kept() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let machine = Machine::new();
    let real = machine.put("dotfiles/cursor.json", PLAIN);
    std::fs::create_dir_all(machine.home(".cursor")).unwrap();
    symlink("../dotfiles/cursor.json", machine.home(".cursor/mcp.json")).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    let mode = || std::fs::metadata(&real).unwrap().permissions().mode() & 0o777;
    machine.migrate(&[]);
    assert!(
        std::fs::symlink_metadata(machine.home(".cursor/mcp.json"))
            .unwrap()
            .is_symlink()
    );
    assert!(std::fs::read_to_string(&real).unwrap().contains("mcpzip"));
    assert_eq!(mode(), 0o640);
    let config = std::fs::metadata(machine.setup().config_path()).unwrap();
    assert_eq!(
        config.permissions().mode() & 0o777,
        0o600,
        "secrets may be in it"
    );
    let runs = machine.run(&["undo", "--list"]).code(0).json();
    let backups = std::path::PathBuf::from(runs[0]["backups"].as_str().unwrap());
    let backup = std::fs::read_dir(&backups)
        .unwrap()
        .flatten()
        .find(|file| file.file_name().to_string_lossy().ends_with(".before"));
    let backup = backup.unwrap().path();
    assert_eq!(std::fs::read_to_string(&backup).unwrap(), PLAIN);
    assert_eq!(
        std::fs::metadata(&backup).unwrap().permissions().mode() & 0o777,
        0o600
    );
    machine.undo();
    assert_eq!(std::fs::read_to_string(&real).unwrap(), PLAIN);
    assert!(
        std::fs::symlink_metadata(machine.home(".cursor/mcp.json"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(mode(), 0o640);
}

#[test]
fn lists_outside_of_an_entry_that_switch_a_server_off_are_heeded() {
    Case::new(
        "gemini-cli",
        r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}, "mcp": {"excluded": ["a"]}}"#,
    )
    .moves("a", json!({ "command": "a", "disabled": true }))
    .moves("b", json!({ "command": "b" }))
    .check();
    Case::new(
        "gemini-cli",
        r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}, "mcp": {"allowed": ["a"]}}"#,
    )
    .moves("a", json!({ "command": "a" }))
    .moves("b", json!({ "command": "b", "disabled": true }))
    .check();
    let machine = Machine::new();
    machine.put(user_file("copilot-cli"), PLAIN);
    machine.put(".copilot/settings.json", r#"{"disabledMcpServers": ["x"]}"#);
    machine.migrate(&[]);
    assert_eq!(
        machine.servers()["x"],
        json!({ "command": "x-mcp", "disabled": true })
    );
}

#[test]
fn every_client_without_a_file_or_a_server_is_passed_over() {
    let machine = Machine::new();
    assert_eq!(machine.migrate(&[])["servers"], json!([]));
    for client in CLIENTS {
        let empty = match client {
            "codex" => "model = \"m\"\n",
            "goose" | "continue" => "a: 1\n",
            _ => "{\"other\": {}}",
        };
        machine.put(user_file(client), empty);
    }
    let before = machine.everything();
    assert_eq!(machine.migrate(&[])["servers"], json!([]));
    assert_eq!(machine.everything(), before);
}
