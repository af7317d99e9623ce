//! Plans, undos and errors say what is so, and no more than once.

use std::process::Stdio;

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

const GH: &str = r#"{"mcpServers": {"gh": {"command": "gh-mcp"}}}"#;

/// The rules of a part of a report: what each says, and what becomes of it.
fn rules(report: &Value, part: &str) -> Vec<(String, String)> {
    let rules = report[part].as_array().unwrap().iter();
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap().to_owned();
    rules
        .map(|rule| (text(rule, "rule"), text(rule, "becomes")))
        .collect()
}

#[test]
fn a_rule_that_an_entry_does_not_get_does_not_become_one() {
    let machine = Machine::new();
    machine.put(
        user_file("goose"),
        "extensions:\n  gs:\n    type: stdio\n    cmd: e\n    enabled: true\n    available_tools: [read_thing]\n",
    );
    machine.put(
        ".config/goose/permission.yaml",
        "user:\n  ask_before: [gs__create_issue, gs__read_thing]\n",
    );
    let report = machine.migrate(&[]);
    let tools = &machine.servers()["gs"]["tools"];
    let becomes = rules(&report, "carried_rules");
    let of = |tool: &str| {
        let mut rules = becomes.iter();
        let (_, becomes) = rules.find(|(rule, _)| rule.contains(tool)).unwrap();
        becomes.clone()
    };
    assert_eq!(tools["ask"], json!(["read_thing"]), "{report:#}");
    assert_eq!(of("gs__read_thing"), "tools.ask read_thing");
    let idle = "nothing: mcpzip denies it by another rule";
    assert_eq!(of("gs__create_issue"), idle, "{report:#}");
}

#[test]
fn all_files_of_rules_that_cannot_be_read_are_named_at_once() {
    let machine = Machine::new();
    machine.put(user_file("cursor"), GH);
    let files = [".cursor/cli-config.json", ".config/cursor/cli-config.json"];
    for file in files {
        machine.put(file, "{");
    }
    let report = machine.migrate_readable();
    let (_, reason) = verdict(&report, "gh");
    for file in files {
        assert!(reason.contains(file), "{reason}");
    }
    assert!(reason.contains("correct them"), "{reason}");
}

#[test]
fn equal_limits_of_many_servers_are_one_line() {
    let machine = Machine::new();
    machine.put(
        user_file("claude-code"),
        r#"{"mcpServers": {"a": {"command": "a-mcp"}, "b": {"command": "b-mcp"}, "c": {"command": "c-mcp"}}}"#,
    );
    machine.put(
        user_file("continue"),
        "name: a\nversion: 0.0.1\nschema: v1\nmcpServers:\n  - name: d\n    command: d-mcp\n",
    );
    machine.put(".continue/permissions.yaml", "exclude:\n  - some_tool\n");
    let report = machine.migrate(&[]);
    let tightened = report["tightened"].as_array().unwrap();
    let lines = tightened.iter().filter_map(Value::as_str);
    let lines: Vec<&str> = lines.filter(|line| line.contains("some_tool")).collect();
    assert_eq!(lines.len(), 1, "{report:#}");
    assert!(
        lines[0].starts_with("each of `a`, `b`, `c` has"),
        "{report:#}"
    );
}

#[test]
fn an_undo_shows_no_value_that_is_gone_already() {
    let machine = Machine::new();
    machine.put(
        user_file("cursor"),
        r#"{"mcpServers": {"gh": {"command": "gh-mcp"}, "fs": {"command": "fs-mcp"}}}"#,
    );
    machine.migrate(&[]);
    let _ = machine.run(&["remove", "gh"]).code(0);
    let preview = machine.run(&["undo", "--dry-run"]).code(0).json();
    let effects = preview["effects"].to_string();
    assert!(effects.contains("mcpServers.fs"), "{preview:#}");
    let config = &preview["effects"][0]["removed"];
    assert_eq!(*config, json!(["mcpServers.fs"]), "{preview:#}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_of_which_only_a_part_is_undone_is_not_listed_as_done() {
    let machine = Machine::new();
    let pad = "x".repeat(200_000);
    machine.put(
        user_file("cursor"),
        &json!({ "pad": pad, "mcpServers": { "gh": { "command": "gh-mcp" } } }).to_string(),
    );
    machine.put(
        user_file("kiro"),
        r#"{"mcpServers": {"k": {"command": "k-mcp"}}}"#,
    );
    machine.migrate(&[]);
    // Cursor's file is larger than a process may write here, which is also so for root.
    let undo = machine.setup().command(&["undo", "--yes"]);
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 100; exec \"$@\"", "sh"])
        .arg(undo.get_program())
        .args(undo.get_args())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_clear();
    for (name, value) in undo.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    let outcome = crate::support::command::run(limited, "").code(1);
    let said = outcome.stderr.replace("\\n", "\n");
    assert!(said.contains("mcp.json"), "{outcome}");
    let state = |machine: &Machine| {
        let runs = machine.run(&["undo", "--list", "--json"]).code(0).json();
        runs[0]["state"].clone()
    };
    assert_eq!(state(&machine), "begun", "{outcome}");
    machine.undo();
    assert_eq!(state(&machine), "undone");
    assert!(machine.read(user_file("cursor")).contains("gh-mcp"));
    assert_eq!(machine.servers(), json!({}));
}

#[test]
fn what_a_killed_run_left_next_to_a_file_goes_with_the_undo() {
    let machine = Machine::new();
    machine.put(user_file("cursor"), GH);
    machine.migrate(&[]);
    let left = machine.put(".cursor/.mcp.json.17567.10.tmp", "{}");
    let other = machine.put(".cursor/.mcp.json.old.tmp", "{}");
    machine.undo();
    assert!(!left.exists(), "it is still there");
    assert!(other.exists(), "it is no file of mcpzip");
    let left = machine.put(".cursor/.mcp.json.17567.11.tmp", "{}");
    machine.migrate(&[]);
    assert!(!left.exists(), "it is still there");
}

#[test]
fn a_profile_of_zed_that_loses_its_tools_is_named() {
    let machine = Machine::new();
    machine.put(
        user_file("zed"),
        r#"{"context_servers": {"zz": {"command": "z", "args": []}}, "agent": {"profiles": {"mine": {"name": "Mine", "enable_all_context_servers": false, "context_servers": {"zz": {"tools": {"get": true}}}}}}}"#,
    );
    let report = machine.migrate(&[]);
    let lost = rules(&report, "lost_rules");
    let text = "this profile has no tools of mcpzip until it names that, too";
    assert!(
        lost.iter().any(|(_, becomes)| becomes == text),
        "{report:#}"
    );
    let doctor = machine.run(&["doctor", "--json"]);
    assert!(!doctor.stdout.contains("client-rule-lost"), "{doctor}");
}

#[test]
fn permissions_of_cursors_editor_are_listed() {
    let machine = Machine::new();
    machine.put(user_file("cursor"), GH);
    machine.put(
        ".cursor/permissions.json",
        r#"{"mcpAllowlist": ["gh:get", "other:x", "*:*", 1]}"#,
    );
    let report = machine.migrate(&[]);
    let lost = rules(&report, "lost_rules");
    assert_eq!(lost.len(), 1, "{report:#}");
    assert_eq!(lost[0].0, "gh:get", "{report:#}");
    // It only permits, so no server stays because of it.
    let machine = Machine::new();
    machine.put(user_file("cursor"), GH);
    machine.put(".cursor/permissions.json", "{");
    let report = machine.migrate_readable();
    assert_eq!(verdict(&report, "gh").0, "moves", "{report:#}");
}

#[test]
fn a_directory_in_the_place_of_the_configuration_is_named_as_one() {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.setup().config_path()).unwrap();
    for command in [&["list"][..], &["config", "show"], &["config", "check"]] {
        let outcome = machine.run(command).code(3);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(said.contains("move the directory away"), "{outcome}");
    }
}

#[test]
fn a_long_name_is_cut_and_said_once() {
    let machine = Machine::new();
    let long = "n".repeat(5000);
    machine.put(user_file("cursor"), GH);
    machine.migrate(&[]);
    for command in [
        &["add", &long, "--no-check", "--", "x"][..],
        &["remove", &long],
        &["call", &long],
        &["migrate", "--only", &long],
    ] {
        let outcome = machine.run(command);
        assert!(!outcome.stderr.is_empty(), "{outcome}");
        assert!(outcome.stderr.len() < 500, "{outcome}");
        assert!(outcome.stderr.matches("nnnn…").count() == 1, "{outcome}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_that_is_not_unicode_is_no_panic_in_json() {
    use std::os::unix::ffi::OsStrExt as _;
    let machine = Machine::new();
    let directory = machine.home("").join(std::ffi::OsStr::from_bytes(b"d\xff"));
    let project = directory.join(".cursor/mcp.json");
    let config = directory.join("config.json");
    std::fs::create_dir_all(project.parent().unwrap()).unwrap();
    std::fs::write(&project, r#"{"mcpServers": {}}"#).unwrap();
    let text =
        r#"{"mcpServers": {"a": {"command": "x", "env": {"TOKEN": "tok-0123456789abcdef"}}}}"#;
    std::fs::write(&config, text).unwrap();
    for (command, has_config) in [
        (&["connect", "cursor", "--scope", "project"][..], false),
        (
            &["connect", "cursor", "--scope", "project", "--dry-run"],
            false,
        ),
        (&["secret", "migrate", "--dry-run"], true),
        (&["config", "extract-secrets", "--dry-run"], true),
        (&["config", "extract-secrets", "--yes"], true),
        (&["config", "show"], true),
        (&["config", "check"], true),
        (&["config", "path"], true),
        (&["list"], true),
        (&["add", "b", "--no-check", "--", "x"], true),
        (&["remove", "b"], true),
        (&["doctor"], true),
        (&["status"], true),
        (&["migrate", "--dry-run"], true),
    ] {
        let mut run = machine.setup().command(&[command, &["--json"]].concat());
        run.current_dir(&directory);
        if has_config {
            run.arg("--config").arg(&config);
        }
        let outcome = crate::support::command::run(run, "");
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!said.contains("panicked"), "{command:?}: {outcome}");
        assert!(
            !said.contains("a fault inside mcpzip"),
            "{command:?}: {outcome}"
        );
    }
}
