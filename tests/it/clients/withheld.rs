//! What a rule of one client withholds of a server is withheld of it, and of its equals, behind mcpzip, or the server stays in its client.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

/// Claude Code with the server `own` and Cursor with `mem`, of another program, and more files.
fn machine(files: &[(&str, &str)]) -> Machine {
    let machine = Machine::new();
    machine.put(
        user_file("claude-code"),
        r#"{"mcpServers": {"own": {"command": "own-mcp"}}}"#,
    );
    machine.put(
        user_file("cursor"),
        r#"{"mcpServers": {"mem": {"command": "mem-mcp", "args": ["x"]}}}"#,
    );
    for (file, content) in files {
        machine.put(file, content);
    }
    machine
}

fn settings(content: &str) -> [(&'static str, &str); 1] {
    [(".claude/settings.json", content)]
}

#[test]
fn a_rule_by_a_pattern_or_a_name_holds_for_the_server_of_another_client() {
    for (key, rule, tools) in [
        (
            "deny",
            "mcp__*__delete_entities",
            json!({ "deny": ["delete_entities"] }),
        ),
        ("deny", "mcp__me*__rm", json!({ "deny": ["rm"] })),
        ("deny", "mcp__mem__rm", json!({ "deny": ["rm"] })),
        ("ask", "mcp__*__push", json!({ "ask": ["push"] })),
        ("deny", "mcp__other__rm", Value::Null),
    ] {
        let rules = json!({ "permissions": { key: [rule] } }).to_string();
        let machine = machine(&settings(&rules));
        let report = machine.migrate(&[]);
        assert_eq!(
            machine.servers()["mem"]["tools"],
            tools,
            "{rule}: {report:#}"
        );
        let told = report["tightened"].to_string();
        assert_eq!(
            told.contains("`mem`") && told.contains("because of Claude Code's"),
            !tools.is_null(),
            "{rule}: {report:#}"
        );
    }
}

#[test]
fn a_pattern_holds_for_a_server_that_mcpzip_has_already_once_its_client_gets_mcpzip() {
    let rules = r#"{"permissions": {"deny": ["mcp__*__rm"]}}"#;
    let machine = machine(&settings(rules));
    machine
        .setup()
        .save_text(r#"{"mcpServers": {"old": {"command": "old-mcp"}}}"#);
    let report = machine.migrate(&[]);
    let servers = machine.servers();
    for name in ["old", "mem", "own"] {
        assert_eq!(
            servers[name]["tools"],
            json!({ "deny": ["rm"] }),
            "{report:#}"
        );
    }
}

#[test]
fn a_server_that_a_list_of_another_client_withholds_stays() {
    const URL: &str = r#"{"mcpServers": {"mem": {"url": "https://mem.example/mcp"}}}"#;
    let claude = ".claude/settings.json";
    let cursor = user_file("cursor");
    for files in [
        &[(claude, r#"{"allowedMcpServers": [{"serverName": "own"}]}"#)][..],
        &[(
            claude,
            r#"{"allowedMcpServers": [{"serverCommand": ["own-mcp"]}]}"#,
        )],
        &[(
            claude,
            r#"{"deniedMcpServers": [{"serverCommand": ["mem-mcp", "x"]}]}"#,
        )],
        &[(claude, r#"{"deniedMcpServers": [{"serverName": "mem"}]}"#)],
        &[
            (cursor, URL),
            (
                claude,
                r#"{"deniedMcpServers": [{"serverUrl": "https://mem.example/*"}]}"#,
            ),
        ],
        &[(claude, r#"{"permissions": {"deny": ["mcp__mem"]}}"#)],
        // A rule that cannot be carried over.
        &[(
            claude,
            r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__mem__.*", "hooks": []}]}}"#,
        )],
    ] {
        let machine = machine(files);
        let report = machine.migrate(&[]);
        let (said, why) = verdict(&report, "mem");
        assert!(
            said == "stays" && why.contains("Claude Code could call it through mcpzip"),
            "{files:?}: {report:#}"
        );
        assert_eq!(verdict(&report, "own").0, "moves", "{files:?}: {report:#}");
        assert!(machine.read(cursor).contains("\"mem\""), "{files:?}");
        // The user may give the rule up, and the plan names it.
        machine.undo();
        let report = machine.migrate(&["--drop-rules"]);
        assert_eq!(verdict(&report, "mem").0, "moves", "{files:?}: {report:#}");
        let warnings = report["warnings"].to_string();
        assert!(
            warnings.contains("Claude Code can call `mem` through mcpzip"),
            "{files:?}: {warnings}"
        );
    }
}

#[test]
fn a_hook_on_everything_keeps_the_servers_of_all_clients() {
    // It runs before `execute_tool`, too, but may refuse by the name of a tool.
    for matcher in ["*", "", "mcp__.*", "tool|mcp__mem__rm"] {
        let machine = Machine::new();
        machine.put(
            user_file("claude-code"),
            r#"{"mcpServers": {"mcpzip": {"command": "mcpzip", "args": ["serve"]}}}"#,
        );
        machine.put(
            user_file("cursor"),
            r#"{"mcpServers": {"mem": {"command": "mem-mcp"}}}"#,
        );
        machine.put(
            ".claude/settings.json",
            &json!({ "hooks": { "PreToolUse": [{ "matcher": matcher, "hooks": [] }] } })
                .to_string(),
        );
        let report = machine.migrate(&[]);
        let (said, why) = verdict(&report, "mem");
        assert!(
            said == "stays" && why.contains("Claude Code could call it"),
            "{matcher}: {said} {why}"
        );
    }
}

#[test]
fn a_client_whose_list_has_its_own_servers_alone_keeps_them_where_others_would_come_to_it() {
    // Claude Code's servers move first.
    for list in [
        r#""mcp": {"allowed": ["g"]}"#,
        r#""allowMCPServers": ["g"]"#,
    ] {
        let settings = format!(r#"{{"mcpServers": {{"g": {{"command": "g-mcp"}}}}, {list}}}"#);
        let machine = machine(&[(user_file("gemini-cli"), &settings)]);
        let report = machine.migrate(&[]);
        let (said, why) = verdict(&report, "g");
        assert!(
            said == "stays" && why.contains("Gemini CLI could call `own` of Claude Code"),
            "{list}: {report:#}"
        );
        assert!(!machine.read(user_file("gemini-cli")).contains("mcpzip"));
        assert_eq!(verdict(&report, "mem").0, "moves", "{list}: {report:#}");
    }
}

#[test]
fn an_equal_server_under_another_name_stays_too() {
    // Gemini's list withholds `g`, and the policy of Claude Code `c`.
    for (client, file, content, more) in [
        (
            "Gemini CLI",
            user_file("gemini-cli"),
            r#"{"mcpServers": {"own2": {"command": "own2-mcp"}, "g": {"command": "mem-mcp", "args": ["x"]}}, "mcp": {"excluded": ["g"]}}"#,
            "{}",
        ),
        (
            "Claude Code",
            user_file("claude-code"),
            r#"{"mcpServers": {"own": {"command": "own-mcp"}, "c": {"command": "mem-mcp", "args": ["x"]}}}"#,
            r#"{"deniedMcpServers": [{"serverName": "c"}]}"#,
        ),
    ] {
        let machine = machine(&[(file, content), (".claude/settings.json", more)]);
        let report = machine.migrate(&[]);
        let (said, why) = verdict(&report, "mem");
        assert!(
            said == "stays" && why.contains(&format!("{client} could call it")),
            "{report:#}"
        );
    }
}

#[test]
fn a_server_that_a_list_names_by_another_name_is_not_withheld() {
    // Claude Code runs the program itself.
    let machine = machine(&[
        (
            user_file("claude-code"),
            r#"{"mcpServers": {"own": {"command": "mem-mcp", "args": ["x"]}}}"#,
        ),
        (
            ".claude/settings.json",
            r#"{"allowedMcpServers": [{"serverName": "own"}]}"#,
        ),
    ]);
    let report = machine.migrate(&[]);
    assert_eq!(verdict(&report, "mem").0, "moves", "{report:#}");
}

/// Claude Code with `files`, which is off in the directory `p` of the home, and more files.
fn hidden(files: &[(&str, &str)]) -> (Machine, Value, Value) {
    let machine = Machine::new();
    let project = machine.home("p");
    std::fs::create_dir_all(&project).unwrap();
    let claude = json!({
        "mcpServers": { "files": { "command": "fs-mcp", "args": ["a"] } },
        "projects": { project.to_str().unwrap(): { "disabledMcpServers": ["files"] } },
    });
    machine.put(user_file("claude-code"), &claude.to_string());
    for (file, content) in files {
        machine.put(file, content);
    }
    let report = machine.migrate(&[]);
    let hidden = json!([format!("!{}", project.display())]);
    (machine, report, hidden)
}

#[test]
fn a_server_that_is_hidden_in_a_project_is_hidden_there_under_any_name() {
    let (machine, report, hidden) = hidden(&[
        (
            user_file("cursor"),
            r#"{"mcpServers": {"fs": {"command": "fs-mcp", "args": ["a"]}, "else": {"command": "else-mcp"}}}"#,
        ),
        (
            user_file("codex"),
            "[mcp_servers.more]\ncommand = \"fs-mcp\"\nargs = [\"a\"]\nenv = { A = \"1\" }\n",
        ),
    ]);
    let servers = machine.servers();
    for name in ["files", "fs", "more"] {
        assert_eq!(servers[name]["projects"], hidden, "{name}: {report:#}");
    }
    assert_eq!(servers["else"]["projects"], Value::Null, "{report:#}");
    let told = report["tightened"].to_string();
    assert!(
        told.contains("each of `fs`, `more` is hidden in "),
        "{told}"
    );
}

#[test]
fn a_project_whose_file_cannot_be_read_hides_equal_servers_too() {
    let (machine, report, hidden) = {
        let machine = Machine::new();
        let project = machine.home("p");
        machine.put("p/.claude/settings.json", "{");
        let claude = json!({
            "mcpServers": { "files": { "command": "fs-mcp", "args": ["a"] } },
            "projects": { project.to_str().unwrap(): {} },
        });
        machine.put(user_file("claude-code"), &claude.to_string());
        machine.put(
            user_file("cursor"),
            r#"{"mcpServers": {"fs": {"command": "fs-mcp", "args": ["a"]}}}"#,
        );
        let report = machine.migrate_readable();
        let hidden = json!([format!("!{}", project.display())]);
        (machine, report, hidden)
    };
    for name in ["files", "fs"] {
        assert_eq!(
            machine.servers()[name]["projects"],
            hidden,
            "{name}: {report:#}"
        );
    }
}

#[test]
fn what_the_same_client_shows_in_a_project_is_not_hidden_there() {
    let machine = Machine::new();
    let project = machine.home("p");
    std::fs::create_dir_all(&project).unwrap();
    let claude = json!({
        "mcpServers": {
            "gh": { "command": "gh-mcp", "env": { "MODE": "all" } },
            "gh-ro": { "command": "gh-mcp", "env": { "MODE": "read" } },
        },
        "projects": { project.to_str().unwrap(): { "disabledMcpServers": ["gh"] } },
    });
    machine.put(user_file("claude-code"), &claude.to_string());
    let report = machine.migrate(&[]);
    let servers = machine.servers();
    assert_ne!(servers["gh"]["projects"], Value::Null, "{report:#}");
    assert_eq!(servers["gh-ro"]["projects"], Value::Null, "{report:#}");
}

#[test]
fn a_server_of_the_project_alone_stays_where_another_client_hides_an_equal_one_there() {
    let machine = Machine::new();
    let project = machine.home("p");
    machine.put(
        "p/.cursor/mcp.json",
        r#"{"mcpServers": {"fs": {"command": "fs-mcp", "args": ["a"]}}}"#,
    );
    let claude = json!({
        "mcpServers": { "files": { "command": "fs-mcp", "args": ["a"] } },
        "projects": { project.to_str().unwrap(): { "disabledMcpServers": ["files"] } },
    });
    machine.put(user_file("claude-code"), &claude.to_string());
    let mut command = machine.setup().command(&["migrate", "--yes", "--json"]);
    command.current_dir(&project);
    let report = crate::support::command::run(command, "").code(0).json();
    let (said, why) = verdict(&report, "fs");
    assert!(
        said == "stays" && why.contains("Claude Code has the same server"),
        "{report:#}"
    );
}

#[test]
fn a_rule_that_merges_into_one_server_holds_for_its_equal_that_mcpzip_had() {
    let machine = Machine::new();
    let files = json!({ "command": "fs-mcp", "args": ["a"] });
    let config =
        json!({ "mcpServers": { "fs": files, "files": files, "else": { "command": "x" } } });
    machine.setup().save_text(&config.to_string());
    let claude = json!({ "mcpServers": { "files": files } });
    machine.put(user_file("claude-code"), &claude.to_string());
    machine.put(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__files__write_file"]}}"#,
    );
    let report = machine.migrate(&[]);
    let servers = machine.servers();
    for name in ["fs", "files"] {
        assert_eq!(
            servers[name]["tools"],
            json!({ "deny": ["write_file"] }),
            "{name}: {report:#}"
        );
    }
    assert_eq!(servers["else"]["tools"], Value::Null, "{report:#}");
    let told = report["tightened"].to_string();
    assert!(
        told.contains(
            "`fs` has one denied tool (`write_file`) for all clients, because of Claude Code's `deny`"
        ),
        "{report:#}"
    );
}

#[test]
fn a_list_is_to_be_extended_by_what_mcpzip_has_and_this_run_moves_alone() {
    let machine = Machine::new();
    machine
        .setup()
        .save_text(r#"{"mcpServers": {"here": {"command": "here-mcp"}}}"#);
    machine.put(
        user_file("gemini-cli"),
        r#"{"mcpServers": {"own": {"command": "own-mcp"}}, "mcp": {"allowed": ["own"]}}"#,
    );
    machine.put(
        user_file("kiro"),
        r#"{"mcpServers": {"apart": {"command": "apart-mcp"}}}"#,
    );
    let report = machine.migrate(&["--client", "gemini-cli"]);
    let (said, why) = verdict(&report, "own");
    assert!(
        said == "stays" && why.contains("add `here` to that list"),
        "{report:#}"
    );
}
