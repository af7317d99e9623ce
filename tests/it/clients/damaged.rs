//! Files that are odd, damaged, gone or locked: each costs its own client at most.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use super::case::{Case, Machine, user_file, verdict};

const PLAIN: &str = r#"{"mcpServers": {"x": {"command": "x-mcp"}}}"#;

#[test]
fn a_codex_file_without_a_final_newline_is_edited() {
    for content in [
        "[mcp_servers.x]\ncommand = \"x-mcp\"\n\n[tui]\na = 1",
        "[mcp_servers.x]\r\ncommand = \"x-mcp\"\r\n\r\n[tui]\r\na = 1",
        "[mcp_servers.x]\ncommand = \"x-mcp\"",
    ] {
        Case::new("codex", content)
            .moves("x", json!({ "command": "x-mcp" }))
            .check();
    }
}

#[test]
fn a_file_that_cannot_be_edited_costs_its_client_only() {
    let machine = Machine::new();
    let goose = "extensions: {x: {type: stdio, cmd: g-mcp}}\n";
    machine.put(user_file("goose"), goose);
    machine.put(
        user_file("cursor"),
        r#"{"mcpServers": {"y": {"command": "y-mcp"}}}"#,
    );
    let report = machine.migrate(&[]);
    assert_eq!(verdict(&report, "y").0, "moves");
    let (stays, reason) = verdict(&report, "x");
    assert!(
        stays == "stays" && reason.contains("cannot be edited") && reason.contains("braces"),
        "{report:#}"
    );
    assert_eq!(machine.read(user_file("goose")), goose);
    assert_eq!(machine.servers(), json!({ "y": { "command": "y-mcp" } }));
}

#[test]
fn a_lock_that_was_left_behind_is_taken_over_or_named() {
    let old = SystemTime::now() - Duration::from_secs(60);
    for kind in ["file", "directory with a file"] {
        let machine = Machine::new();
        machine.put(user_file("claude-code"), PLAIN);
        let lock = machine.home(".claude.json.lock");
        if kind == "file" {
            fs::write(&lock, "").unwrap();
        } else {
            machine.put(".claude.json.lock/x", "");
        }
        fs::File::open(&lock).unwrap().set_modified(old).unwrap();
        let before = machine.everything();
        let refused = machine.run(&["migrate", "--yes"]).code(1);
        assert!(
            refused.stderr.contains(".claude.json.lock") && refused.stderr.contains("remove it"),
            "{kind}: {refused}"
        );
        assert_eq!(machine.everything(), before, "{kind}");
    }
}

#[test]
fn a_file_that_was_deleted_since_is_back_after_an_undo() {
    let machine = Machine::new();
    let path = machine.put(user_file("cursor"), PLAIN);
    let _ = machine.migrate(&[]);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let report = machine.undo();
    assert!(report.to_string().contains("\"back\""), "{report:#}");
    assert_eq!(machine.read(user_file("cursor")), PLAIN);
    assert!(!machine.setup().config_path().exists());
}

#[test]
fn half_a_character_makes_no_file_unreadable() {
    let content = r#"{"s": "cut \ud83d", "mcpServers": {"x": {"command": "x-mcp"}, "y": {"command": "y-mcp", "args": ["\udc00"]}}, "\ud83d": 1}"#;
    for client in ["claude-code", "cursor"] {
        let machine = Machine::new();
        machine.put(user_file(client), content);
        let before = machine.everything();
        let report = machine.migrate(&[]);
        assert_eq!(verdict(&report, "x").0, "moves", "{report:#}");
        let (stays, reason) = verdict(&report, "y");
        assert!(
            stays == "stays" && reason.contains("an unpaired surrogate"),
            "{report:#}"
        );
        let after = machine.read(user_file(client));
        for part in [
            r#""s": "cut \ud83d""#,
            r#""args": ["\udc00"]"#,
            r#""\ud83d": 1"#,
        ] {
            assert!(after.contains(part), "{part} in {after}");
        }
        machine.undo();
        assert_eq!(machine.everything(), before);
    }
}

#[test]
fn what_else_is_in_a_large_file_stays_to_the_byte() {
    let history = |size: usize| {
        let entry = r#"{"display": "do \"this\" \ud83d ]}[{ \\", "pastedContents": {}}"#;
        vec![entry; size].join(", ")
    };
    let project = |name: &str, size: usize| {
        format!(
            r#""/{name}": {{"history": [{}], "mcpServers": {{"{name}": {{"command": "{name}-mcp"}}}}, "lastCost": 1}}"#,
            history(size)
        )
    };
    // Twice the same history, and one that is gone with its project's other values in between.
    let content = format!(
        "{{\"numStartups\": 1, \"projects\": {{{}, {}, {}}}, \"mcpServers\": {{\"x\": {{\"command\": \"x-mcp\"}}}}, \"tips\": [{}]}}",
        project("a", 2000),
        project("b", 1000),
        project("c", 2000),
        history(100)
    );
    let machine = Machine::new();
    machine.put(user_file("claude-code"), &content);
    let before = machine.everything();
    let looked = machine.run(&["migrate", "--dry-run"]).code(0);
    assert!(looked.stdout.len() < 20_000, "{}", looked.stdout.len());
    let report = machine.migrate(&[]);
    for server in ["a", "b", "c", "x"] {
        assert_eq!(verdict(&report, server).0, "moves", "{report:#}");
    }
    let after = machine.read(user_file("claude-code"));
    assert_eq!(after.matches("pastedContents").count(), 5100);
    assert!(after.ends_with(&format!("\"tips\": [{}]}}", history(100))));
    machine.undo();
    assert_eq!(machine.everything(), before);
}

#[test]
fn many_servers_leave_a_large_file_in_few_passes() {
    let machine = Machine::new();
    let servers: serde_json::Map<_, _> = (0..60)
        .map(|number| {
            (
                format!("s{number}"),
                json!({ "command": format!("c{number}") }),
            )
        })
        .collect();
    let project = |number| {
        let own = json!({ format!("l{number}"): { "command": format!("d{number}") } });
        let own = if number < 40 { own } else { json!({}) };
        json!({ "history": ["x".repeat(400)], "mcpServers": own })
    };
    let projects: serde_json::Map<_, _> = (0..5_000)
        .map(|number| (format!("/home/me/p{number}"), project(number)))
        .collect();
    let content = json!({ "mcpServers": servers, "projects": projects });
    machine.put(
        ".claude.json",
        &serde_json::to_string_pretty(&content).unwrap(),
    );
    let before = machine.read(".claude.json");
    let begun = Instant::now();
    machine.migrate(&[]);
    let took = begun.elapsed();
    // A pass for each server takes minutes.
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(machine.servers().as_object().unwrap().len(), 100);
    machine.undo();
    assert_eq!(machine.read(".claude.json"), before);
}

#[test]
fn a_run_whose_record_is_damaged_is_named_and_others_are_undone() {
    for damage in ["{", "", "[]"] {
        let machine = Machine::new();
        let cursor = machine.put(user_file("cursor"), PLAIN);
        machine.migrate(&["--client", "cursor"]);
        let of = |at: usize| {
            let runs = machine.run(&["undo", "--list", "--json"]).code(0).json();
            runs[at]["id"].as_str().unwrap().to_owned()
        };
        let earlier = of(0);
        machine.put(
            user_file("windsurf"),
            r#"{"mcpServers": {"y": {"command": "y-mcp"}}}"#,
        );
        machine.migrate(&["--client", "windsurf"]);
        let run = of(0);
        let directory = machine.setup().home().path("state/undo").join(&run);
        fs::write(directory.join("record.json"), damage).unwrap();
        let runs = machine.run(&["undo", "--list", "--json"]).code(0).json();
        assert_eq!(runs[0]["state"], "damaged", "{runs}");
        for arguments in [
            &["undo"][..],
            &["undo", "--json"],
            &["undo", "--dry-run"],
            &["undo", &run],
        ] {
            let refused = machine.run(arguments).code(1);
            for part in [
                run.as_str(),
                "record.json",
                "mcp_config.json.before",
                "undo --list",
            ] {
                assert!(refused.stderr.contains(part), "{part}: {refused}");
            }
            assert!(!refused.stderr.contains("nothing to undo"), "{refused}");
        }
        let report = machine.run(&["doctor", "--json"]).stdout;
        assert!(
            report.contains("run-damaged") && report.contains(&run),
            "{report}"
        );
        // A later run is undone as before, and an earlier one by its name.
        machine.put(
            user_file("kiro"),
            r#"{"mcpServers": {"z": {"command": "z-mcp"}}}"#,
        );
        machine.migrate(&["--client", "kiro"]);
        machine.undo();
        assert!(machine.read(user_file("kiro")).contains("z-mcp"));
        let _ = machine.run(&["undo", &earlier]).code(0);
        assert_eq!(fs::read_to_string(&cursor).unwrap(), PLAIN);
        fs::remove_dir_all(&directory).unwrap();
        let refused = machine.run(&["undo"]).code(1);
        assert!(refused.stderr.contains("nothing to undo"), "{refused}");
    }
}

#[cfg(unix)]
#[test]
fn a_configuration_behind_a_link_that_leads_nowhere_is_named_and_not_made() {
    let machine = Machine::new();
    machine.put(user_file("cursor"), PLAIN);
    let target = machine.home("dotfiles/mcpzip/config.json");
    let config = machine.setup().config_path();
    std::os::unix::fs::symlink(&target, &config).unwrap();
    for arguments in [
        &["migrate", "--yes"][..],
        &["connect", "cursor"],
        &["add", "y", "--no-check", "--", "y-mcp"],
        &["servers"],
        &["doctor"],
    ] {
        let told = machine.run(arguments);
        let all = format!("{}{}", told.stdout, told.stderr);
        let all = all.replace(|c: char| c.is_whitespace(), " ");
        assert!(
            all.contains("is a link to") && all.contains("remove the link"),
            "{told}"
        );
        assert!(!machine.home("dotfiles").exists(), "{told}");
        assert!(config.is_symlink());
    }
}
