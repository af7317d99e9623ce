//! No client gets a server through mcpzip that its own files keep from it: one that runs mcpzip in any scope, is connected by `init`, has
//! the server switched off, or has rules that cannot be read.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

const MEM: &str = r#"{"mcpServers": {"mem": {"command": "mem-mcp"}}}"#;
const RUNS: &str = r#"{"mcpServers": {"mcpzip": {"command": "mcpzip", "args": ["serve"]}}}"#;
const SETTINGS: &str = ".claude/settings.json";
const DENIES_RM: &str = r#"{"permissions": {"deny": ["mcp__mem__rm"]}}"#;
const DENIES_MEM: &str = r#"{"deniedMcpServers": [{"serverName": "mem"}]}"#;

/// Cursor with `mem`, and more files.
fn machine(files: &[(&str, &str)]) -> Machine {
    let machine = Machine::new();
    machine.put(user_file("cursor"), MEM);
    for (file, content) in files {
        machine.put(file, content);
    }
    machine
}

/// An object of servers, one of which starts mcpzip.
fn with_mcpzip(name: &str, entry: &Value) -> String {
    let own = json!({ "command": "mcpzip", "args": ["serve"] });
    json!({ "mcpServers": { "mcpzip": own, name: entry } }).to_string()
}

#[track_caller]
fn assert_stays(report: &Value, server: &str, parts: &[&str]) {
    let (said, why) = verdict(report, server);
    let has_all = parts.iter().all(|part| why.contains(part));
    assert!(said == "stays" && has_all, "{report:#}");
}

#[test]
fn init_counts_the_clients_that_it_connects() {
    let init = ["init", "--yes", "--no-test", "--json"];
    // Claude Code has no server.
    for (settings, tools) in [
        (DENIES_MEM, None),
        (DENIES_RM, Some(json!({ "deny": ["rm"] }))),
        ("{}", Some(Value::Null)),
    ] {
        let machine = machine(&[(user_file("claude-code"), "{}"), (SETTINGS, settings)]);
        let report = machine.run(&init).code(0).json();
        let connected = report["clients"].to_string();
        assert!(connected.contains("claude-code"), "{report:#}");
        match tools {
            Some(tools) => assert_eq!(machine.servers()["mem"]["tools"], tools, "{report:#}"),
            None => {
                assert_eq!(machine.servers()["mem"], Value::Null, "{report:#}");
                let warnings = report["plan"]["warnings"].to_string();
                for part in [
                    "`mem` of Cursor stays: Claude Code could call it",
                    " leaves out Claude Code, so `mem` can move",
                    "--only mem --drop-rules",
                ] {
                    assert!(warnings.contains(part), "{part}: {warnings}");
                }
            }
        }
    }
}

#[test]
fn init_does_not_connect_a_client_whose_list_keeps_the_others_servers_out() {
    let settings = r#"{"mcpServers": {"g": {"command": "g-mcp"}}, "mcp": {"allowed": ["g"]}}"#;
    let gemini = user_file("gemini-cli");
    let machine = machine(&[(gemini, settings)]);
    let init = ["init", "--yes", "--no-test", "--json"];
    let report = machine.run(&init).code(0).json();
    assert_eq!(machine.read(gemini), settings);
    let warnings = report["plan"]["warnings"].to_string();
    for part in [
        "`g` of Gemini CLI stays: Gemini CLI could call `mem` of Cursor",
        "add `mem` to that list",
        "Gemini CLI is not connected: Gemini CLI could call `mem`",
        "`mcpzip connect gemini-cli` connects it all the same",
    ] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    assert!(!report["clients"].to_string().contains("gemini-cli"));
}

#[test]
fn init_does_not_connect_a_client_whose_hook_is_about_the_others_servers() {
    let claude = user_file("claude-code");
    let settings = r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__.*__rm", "hooks": []}]}}"#;
    let machine = machine(&[(claude, "{}"), (SETTINGS, settings)]);
    let init = ["init", "--yes", "--no-test", "--json"];
    let report = machine.run(&init).code(0).json();
    assert_eq!(verdict(&report["plan"], "mem").0, "moves", "{report:#}");
    let warnings = report["plan"]["warnings"].to_string();
    assert!(
        warnings.contains("Claude Code is not connected: Claude Code could call `mem`"),
        "{warnings}"
    );
    assert_eq!(machine.read(claude), "{}");
}

#[test]
fn init_compares_rules_with_the_configuration_that_it_makes() {
    let settings = r#"{"permissions": {"deny": ["mcp__git__push"]}}"#;
    let machine = machine(&[(user_file("claude-code"), "{}"), (SETTINGS, settings)]);
    let init = ["init", "--yes", "--no-test", "--json", "--server", "git"];
    let report = machine.run(&init).code(0).json();
    let warnings = report["plan"]["warnings"].to_string();
    assert!(
        warnings.contains("Claude Code can call `git` through mcpzip"),
        "{report:#}"
    );
}

#[test]
fn rules_of_a_client_that_are_not_known_keep_the_servers_of_others() {
    let claude = user_file("claude-code");
    let broken = r#"{"permissions": {"deny": ["mcp__mem__rm"]"#;
    for (code, files) in [
        (6, &[(claude, RUNS), (SETTINGS, broken)][..]),
        (
            0,
            &[
                (claude, RUNS),
                (
                    SETTINGS,
                    r#"{"permissions": {"deny": {"mcp__mem__rm": true}}}"#,
                ),
            ],
        ),
    ] {
        let machine = machine(files);
        let report = machine
            .run(&["migrate", "--yes", "--json"])
            .code(code)
            .json();
        let parts = [
            "its rules in",
            "settings.json are not known",
            "--only mem --drop-rules",
        ];
        assert_stays(&report, "mem", &parts);
        assert!(machine.read(user_file("cursor")).contains("mem-mcp"));
        let way_out = [
            "migrate",
            "--yes",
            "--json",
            "--only",
            "mem",
            "--drop-rules",
        ];
        let report = machine.run(&way_out).code(code).json();
        assert_eq!(verdict(&report, "mem").0, "moves", "{report:#}");
        let warnings = report["warnings"].to_string();
        assert!(
            warnings.contains("Claude Code can call `mem` through mcpzip, and its rules in"),
            "{warnings}"
        );
    }
    // A client that does not run mcpzip yet keeps its own servers, and no others.
    let own = r#"{"mcpServers": {"own": {"command": "own-mcp"}}}"#;
    let machine = machine(&[(claude, own), (SETTINGS, broken)]);
    let report = machine.migrate_readable();
    assert_eq!(verdict(&report, "mem").0, "moves", "{report:#}");
    assert_stays(&report, "own", &["the rules in", "--only own --drop-rules"]);
}

#[test]
fn a_file_of_servers_that_cannot_be_read_may_start_mcpzip() {
    let claude = user_file("claude-code");
    let broken = RUNS.strip_suffix('}').unwrap();
    for (file, settings, tools) in [
        (broken, DENIES_MEM, None),
        // Its own entries may have switches as well.
        (broken, DENIES_RM, None),
        ("{", DENIES_MEM, Some(Value::Null)),
    ] {
        let machine = machine(&[(claude, file), (SETTINGS, settings)]);
        let report = machine.migrate_readable();
        match tools {
            Some(tools) => assert_eq!(machine.servers()["mem"]["tools"], tools, "{report:#}"),
            None => assert_stays(&report, "mem", &["Claude Code could call it"]),
        }
    }
}

#[test]
fn switches_of_a_project_that_is_not_known_keep_the_servers_of_others() {
    let machine = Machine::new();
    machine.put(user_file("claude-code"), MEM);
    machine.put(user_file("cursor"), RUNS);
    machine.put(
        ".cursor/projects/somewhere-else/mcp-disabled.json",
        r#"["mem"]"#,
    );
    let report = machine.migrate(&[]);
    assert_stays(
        &report,
        "mem",
        &["Cursor could call it", "mcp-disabled.json"],
    );
}

#[test]
fn a_project_whose_rules_cannot_be_read_has_no_servers_of_others() {
    let machine = machine(&[("p/.claude/settings.json", "{")]);
    let project = machine.home("p");
    let mut claude: Value = serde_json::from_str(RUNS).unwrap();
    claude["projects"] = json!({ project.to_str().unwrap(): {} });
    machine.put(user_file("claude-code"), &claude.to_string());
    let report = machine.migrate_readable();
    assert_eq!(
        machine.servers()["mem"]["projects"],
        json!([format!("!{}", project.display())]),
        "{report:#}"
    );
    let told = report["tightened"].to_string();
    assert!(
        told.contains("rules of Claude Code are not known") && told.contains("p/.claude/settings"),
        "{told}"
    );
}

#[test]
fn a_server_that_is_switched_off_in_a_client_is_not_opened_to_it_by_another_one() {
    let mem = json!({ "command": "mem-mcp" });
    let off = json!({ "command": "mem-mcp", "disabled": true });
    let windsurf = user_file("windsurf");
    for (name, entry, more, arguments, client) in [
        ("mem", &off, None, &["--client", "cursor"][..], "windsurf"),
        ("memory", &off, None, &["--client", "cursor"], "windsurf"),
        // Both move, and none runs mcpzip yet.
        ("memory", &off, None, &[], "windsurf"),
        (
            "memory",
            &mem,
            Some((
                ".copilot/settings.json",
                r#"{"disabledMcpServers": ["memory"]}"#,
            )),
            &[],
            "copilot-cli",
        ),
        // By its name alone.
        (
            "other",
            &json!({ "command": "other-mcp" }),
            Some((
                ".gemini/mcp-server-enablement.json",
                r#"{"mem": {"enabled": false}}"#,
            )),
            &[],
            "gemini-cli",
        ),
    ] {
        let own = match arguments.is_empty() {
            true => json!({ "mcpServers": { name: entry } }).to_string(),
            false => with_mcpzip(name, entry),
        };
        let machine = machine(&[(user_file(client), &own)]);
        if let Some((file, content)) = more {
            machine.put(file, content);
        }
        let report = machine.migrate(arguments);
        assert_stays(
            &report,
            "mem",
            &["could call it through mcpzip", "--only mem --drop-rules"],
        );
        assert!(machine.read(user_file("cursor")).contains("mem-mcp"));
        if arguments.is_empty() {
            assert_eq!(verdict(&report, name).0, "moves", "{report:#}");
            // Nor later.
            let report = machine.migrate(&[]);
            assert_stays(&report, "mem", &["switched off"]);
            continue;
        }
        let report = machine.migrate(&["--client", "cursor", "--only", "mem", "--drop-rules"]);
        assert_eq!(verdict(&report, "mem").0, "moves", "{report:#}");
        let warnings = report["warnings"].to_string();
        assert!(
            warnings.contains("Windsurf can call `mem` through mcpzip"),
            "{warnings}"
        );
    }
    // Another program, and one that the client runs itself under another name.
    let runs = json!({ "command": "mcpzip", "args": ["serve"] });
    let both = json!({ "mcpServers": { "mcpzip": runs, "a": off, "b": mem } });
    let other = with_mcpzip("mem", &json!({ "command": "x", "disabled": true }));
    for own in [both.to_string(), other] {
        let machine = machine(&[(windsurf, &own)]);
        let report = machine.migrate(&["--client", "cursor"]);
        assert_eq!(verdict(&report, "mem").0, "moves", "{own}: {report:#}");
    }
    // One that mcpzip has keeps the client away from it.
    let machine = machine(&[(windsurf, &json!({ "mcpServers": { "a": off } }).to_string())]);
    machine.setup().save_text(MEM);
    let report = machine.migrate(&["--client", "windsurf"]);
    assert_stays(&report, "a", &["Windsurf could call `mem` through mcpzip"]);
    assert!(!machine.read(windsurf).contains("mcpzip"), "{report:#}");
    let report = machine.migrate(&["--client", "windsurf", "--drop-rules"]);
    assert_eq!(verdict(&report, "a").0, "moves", "{report:#}");
    let warnings = report["warnings"].to_string();
    assert!(
        warnings.contains("Windsurf can call `mem` through mcpzip"),
        "{report:#}"
    );
}

#[test]
fn a_server_that_is_refused_in_a_project_is_not_opened_there_under_another_name() {
    let machine = machine(&[(
        "p/.mcp.json",
        r#"{"mcpServers": {"x": {"command": "mem-mcp"}}}"#,
    )]);
    let project = machine.home("p");
    let mut claude: Value = serde_json::from_str(RUNS).unwrap();
    claude["projects"] = json!({ project.to_str().unwrap(): { "disabledMcpjsonServers": ["x"] } });
    machine.put(user_file("claude-code"), &claude.to_string());
    let migrate = |client: &str| {
        let arguments = ["migrate", "--yes", "--json", "--client", client];
        let mut command = machine.setup().command(&arguments);
        command.current_dir(&project);
        crate::support::command::run(command, "").code(0).json()
    };
    for earlier in [None, Some("claude-code")] {
        // The refused one may have moved before.
        let moved = earlier.map(&migrate);
        let report = migrate("cursor");
        let hidden = machine.servers()["mem"]["projects"].to_string();
        assert!(hidden.contains("/p\""), "{moved:#?} {report:#}");
        assert!(report["tightened"].to_string().contains("Claude Code's"));
        machine.undo();
    }
}

#[test]
fn a_client_that_runs_mcpzip_in_one_project_or_by_a_url_runs_it() {
    let claude = user_file("claude-code");
    let own = json!({ "command": "mcpzip", "args": ["serve"] });
    let project = |machine: &Machine| {
        let project = machine.home("p");
        std::fs::create_dir_all(&project).unwrap();
        project.to_str().unwrap().to_owned()
    };
    let url = json!({ "type": "http", "url": "http://127.0.0.1:8080/mcp" });
    for kind in ["local", "project", "url"] {
        let machine = machine(&[(SETTINGS, DENIES_RM)]);
        let p = project(&machine);
        let content = match kind {
            "local" => json!({ "projects": { p: { "mcpServers": { "mcpzip": own } } } }),
            "project" => json!({ "projects": { p: {} } }),
            _ => json!({ "mcpServers": { "mcpzip": url } }),
        };
        machine.put(claude, &content.to_string());
        if kind == "project" {
            machine.put("p/.mcp.json", RUNS);
        }
        let report = machine.migrate(&[]);
        assert_eq!(
            machine.servers(),
            json!({ "mem": { "command": "mem-mcp", "tools": { "deny": ["rm"] } } }),
            "{kind}: {report:#}"
        );
    }
}

#[test]
fn a_pattern_that_has_the_name_of_an_own_server_is_about_all() {
    let git = json!({ "command": "git-mcp" });
    for (rule, tools) in [
        ("mcp__*__git_push", json!({ "deny": ["git_push"] })),
        ("mcp__git__push", Value::Null),
    ] {
        let machine = Machine::new();
        machine.put(user_file("claude-code"), &with_mcpzip("git", &git));
        machine.put(
            user_file("cursor"),
            r#"{"mcpServers": {"git": {"command": "other-git"}}}"#,
        );
        let settings = json!({ "permissions": { "deny": [rule] } });
        machine.put(SETTINGS, &settings.to_string());
        let report = machine.migrate(&["--client", "cursor"]);
        assert_eq!(
            machine.servers()["git"]["tools"],
            tools,
            "{rule}: {report:#}"
        );
    }
}

#[test]
fn what_is_imported_gets_the_rules_of_clients_that_run_mcpzip() {
    let import = ["migrate", "--yes", "--json", "--from", "avelino"];
    let pattern = r#"{"permissions": {"deny": ["mcp__*__rm"]}}"#;
    for (claude, settings, tools) in [
        (RUNS, pattern, Some(json!({ "deny": ["rm"] }))),
        (RUNS, DENIES_MEM, None),
        (RUNS, "{", None),
        ("{}", DENIES_MEM, Some(Value::Null)),
    ] {
        let machine = Machine::new();
        machine.put(user_file("claude-code"), claude);
        machine.put(SETTINGS, settings);
        machine.put(".config/mcp/servers.json", MEM);
        let outcome = machine.run(&import);
        let report = outcome.json();
        let Some(tools) = tools else {
            let blocking = report["blocking"].to_string();
            assert!(
                outcome.code == Some(1) && blocking.contains("`mem`: Claude Code could call it"),
                "{outcome}"
            );
            assert!(!machine.setup().config_path().exists());
            continue;
        };
        assert_eq!(machine.servers()["mem"]["tools"], tools, "{report:#}");
        let notes = report["notes"].to_string();
        assert_eq!(
            notes.contains("because of Claude Code's `deny`"),
            !tools.is_null(),
            "{notes}"
        );
    }
}

#[test]
fn connect_warns_of_lists_of_servers_and_of_rules_that_cannot_be_read() {
    let lists = [
        (
            "gemini-cli",
            user_file("gemini-cli"),
            r#"{"mcp": {"excluded": ["mem"]}}"#,
            "`mcp.excluded`",
        ),
        ("claude-code", SETTINGS, DENIES_MEM, "`deniedMcpServers`"),
        (
            "claude-code",
            SETTINGS,
            r#"{"allowedMcpServers": [{"serverName": "own"}]}"#,
            "`allowedMcpServers`",
        ),
        (
            "claude-code",
            SETTINGS,
            r#"{"permissions": {"deny": {"mcp__mem__rm": true}}}"#,
            "its rules in",
        ),
        (
            "copilot-cli",
            ".copilot/settings.json",
            r#"{"disabledMcpServers": ["mem"]}"#,
            "it is switched off",
        ),
        (
            "windsurf",
            user_file("windsurf"),
            r#"{"mcpServers": {"m": {"command": "mem-mcp", "disabled": true}}}"#,
            "`mcpServers.m.disabled`",
        ),
    ];
    for (client, file, content, part) in lists {
        let machine = Machine::new();
        machine.setup().save_text(MEM);
        machine.put(file, content);
        let said = machine.run(&["connect", client]).code(0);
        assert!(
            said.stderr.contains("can call `mem` through mcpzip") && said.stderr.contains(part),
            "{client}: {said}"
        );
    }
}

#[test]
fn a_way_out_that_names_a_server_is_one_command_for_a_shell() {
    let machine = Machine::new();
    machine.put(
        user_file("claude-code"),
        r#"{"mcpServers": {"my files": {"command": "a"}, "his files": {"command": "b"}}}"#,
    );
    machine.put(
        SETTINGS,
        r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__my_files__.*", "hooks": []}]}}"#,
    );
    let stopped = machine.run(&["migrate", "--yes", "--json"]).code(1);
    for part in [
        "`mcpzip migrate --only 'his files'` moves",
        "`mcpzip migrate --only 'my files' --drop-rules` moves",
    ] {
        assert!(stopped.stderr.contains(part), "{part}: {stopped}");
    }
    assert_stays(
        &stopped.json(),
        "my files",
        &["--only 'my files' --drop-rules"],
    );
}
