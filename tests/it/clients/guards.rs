//! Rules that guard tools by patterns, expressions and files of their own: none of them is lost without a word.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

const EVERYTHING: &str = r#"{"mcpServers": {"everything": {"command": "everything-mcp"}, "other": {"command": "other-mcp"}}}"#;

fn servers_of(report: &Value, list: &str) -> Vec<String> {
    let rules = report[list].as_array().unwrap();
    let mut servers: Vec<String> = rules
        .iter()
        .map(|rule| rule["server"].as_str().unwrap().to_owned())
        .collect();
    servers.dedup();
    servers
}

#[test]
fn a_hook_whose_expression_may_match_a_server_keeps_it_at_its_client() {
    for (matcher, about) in [
        (json!("mcp__(everything|x)__.*"), &["everything"][..]),
        (json!(".*get-env"), &["everything", "other"]),
        (
            json!("^mcp__every[a-z]+__(get|print)-env$"),
            &["everything"],
        ),
        (json!("(Bash|.*env)"), &["everything", "other"]),
        (json!("^(?!mcp__other)mcp__.*"), &["everything", "other"]),
        (json!("mcp__everything("), &["everything", "other"]),
        (json!("*"), &["everything", "other"]),
        (json!(""), &["everything", "other"]),
        (Value::Null, &["everything", "other"]),
        (json!("Bash|Edit|Write"), &[]),
        (json!("^(Edit|Write)$"), &[]),
        (json!("mcp__(github|x)__.*"), &[]),
    ] {
        let machine = Machine::new();
        machine.put(user_file("claude-code"), EVERYTHING);
        let hook =
            json!({ "matcher": matcher, "hooks": [{ "type": "command", "command": "exit 2" }] });
        machine.put(
            ".claude/settings.json",
            &json!({ "hooks": { "PreToolUse": [hook] } }).to_string(),
        );
        let outcome = machine.run(&["migrate", "--yes", "--json"]);
        assert_eq!(
            outcome.code,
            Some(i32::from(!about.is_empty())),
            "{matcher}: {outcome}"
        );
        let report = outcome.json();
        assert_eq!(
            servers_of(&report, "blocking_rules"),
            about,
            "{matcher}: {report:#}"
        );
        for server in ["everything", "other"] {
            let stays = about.contains(&server) || !about.is_empty();
            assert_eq!(
                machine.servers()[server].is_null(),
                stays,
                "{matcher}: {server}"
            );
        }
    }
}

/// A client, its server `everything` and one more file; what the server's rules are afterwards.
const PATTERNS: &[(&str, &str, &str, &str, &str)] = &[
    (
        "opencode",
        r#"{"mcp": {"everything": {"type": "local", "command": ["e"]}}, "permission": {"*get-env*": "deny"}}"#,
        "",
        "",
        r#"{"deny": ["*get-env*"]}"#,
    ),
    (
        "opencode",
        r#"{"mcp": {"everything": {"type": "local", "command": ["e"]}}, "permission": {"*": "ask", "every*_get-env": "deny"}}"#,
        "",
        "",
        r#"{"deny": ["*_get-env", "get-env"]}"#,
    ),
    (
        "opencode",
        r#"{"mcp": {"everything": {"type": "local", "command": ["e"]}}, "tools": {"*env": false, "*get*": true}}"#,
        "",
        "",
        r#"{"deny": ["*env"]}"#,
    ),
    (
        "gemini-cli",
        r#"{"mcpServers": {"everything": {"command": "e"}}}"#,
        ".gemini/policies/mine.toml",
        "[[rule]]\nmcpName = \"everything\"\ntoolName = \"get-env\"\ndecision = \"deny\"\npriority = 100\n",
        r#"{"deny": ["get-env"]}"#,
    ),
    (
        "gemini-cli",
        r#"{"mcpServers": {"everything": {"command": "e"}}}"#,
        ".gemini/policies/mine.toml",
        "[[rule]]\ntoolName = [\"mcp_*_get-env\", \"everything__print\", \"run_shell_command\"]\ndecision = \"deny\"\n\n[[rule]]\nmcpName = \"every*\"\ndecision = \"ask_user\"\n",
        r#"{"ask": ["*"], "deny": ["*_get-env", "get-env", "print"]}"#,
    ),
    (
        "gemini-cli",
        r#"{"mcpServers": {"everything": {"command": "e"}}}"#,
        "system/policies/admin.toml",
        "[[rule]]\nmcpName = \"*\"\ntoolName = \"get-env\"\ndecision = \"deny\"\n",
        r#"{"deny": ["get-env"]}"#,
    ),
    (
        "goose",
        "extensions:\n  everything:\n    type: stdio\n    cmd: e\n    enabled: true\n",
        ".config/goose/permission.yaml",
        "user:\n  always_allow: [developer__shell]\n  ask_before: [everything__echo]\n  never_allow: [everything__get-env]\n",
        r#"{"ask": ["echo"], "deny": ["get-env"]}"#,
    ),
    (
        "cursor",
        r#"{"mcpServers": {"everything": {"command": "e"}}}"#,
        ".cursor/cli-config.json",
        r#"{"permissions": {"deny": ["Mcp(every*:get-env)", "Mcp(git*:rm)"]}}"#,
        r#"{"deny": ["get-env"]}"#,
    ),
    (
        "claude-code",
        r#"{"mcpServers": {"everything": {"command": "e"}}}"#,
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["*__get-env", "mcp__*print-env"]}}"#,
        r#"{"deny": ["*__get-env", "*print-env", "_get-env", "get-env"]}"#,
    ),
    (
        "zed",
        r#"{"context_servers": {"everything": {"command": "e", "args": []}}, "agent": {"profiles": {"write": {"name": "Write", "enable_all_context_servers": true, "context_servers": {"everything": {"tools": {"get-env": false}}}}}}}"#,
        "",
        "",
        r#"{"deny": ["get-env"]}"#,
    ),
];

#[test]
fn patterns_and_files_of_rules_become_rules_of_the_entry() {
    for (client, content, file, more, tools) in PATTERNS {
        let machine = Machine::new();
        let setup = machine.setup().clone().variable(
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
            machine.home("system/settings.json").to_str().unwrap(),
        );
        machine.put(user_file(client), content);
        if !file.is_empty() {
            machine.put(file, more);
        }
        let run = |arguments: &[&str]| crate::support::command::run(setup.command(arguments), "");
        let report = run(&["migrate", "--yes", "--json"]).code(0).json();
        let expected: Value = serde_json::from_str(tools).unwrap();
        assert_eq!(
            machine.servers()["everything"]["tools"],
            expected,
            "{client} {more}: {report:#}"
        );
    }
}

#[test]
fn a_condition_that_mcpzip_cannot_look_at_keeps_a_server_at_its_client() {
    let machine = Machine::new();
    machine.put(
        user_file("gemini-cli"),
        r#"{"mcpServers": {"everything": {"command": "e"}}}"#,
    );
    machine.put(
        ".gemini/policies/a.toml",
        "[[rule]]\nmcpName = \"everything\"\nargsPattern = \"secret\"\ndecision = \"deny\"\n",
    );
    let stopped = machine.run(&["migrate", "--yes"]).code(1);
    assert_eq!(
        servers_of(&stopped.json(), "blocking_rules"),
        ["everything"],
        "{stopped}"
    );
}

#[test]
fn rules_that_cannot_be_read_keep_the_servers_that_they_may_be_about() {
    for (client, content, file) in [
        ("claude-code", EVERYTHING, ".claude/settings.json"),
        ("gemini-cli", EVERYTHING, ".gemini/policies/a.toml"),
        ("cursor", EVERYTHING, ".cursor/cli-config.json"),
        (
            "goose",
            "extensions:\n  everything:\n    type: stdio\n    cmd: e\n",
            ".config/goose/permission.yaml",
        ),
    ] {
        let machine = Machine::new();
        machine.put(user_file(client), content);
        machine.put(file, "{\"permissions\": [");
        machine.put(
            user_file("kiro"),
            r#"{"mcpServers": {"k": {"command": "k"}}}"#,
        );
        let report = machine.migrate_readable();
        let (said, why) = verdict(&report, "everything");
        assert!(
            said == "stays" && why.contains("not known: it cannot be read: "),
            "{client}: {said} {why}"
        );
        assert!(machine.servers()["everything"].is_null() && !machine.servers()["k"].is_null());
    }
    // Of a project, they cost the servers this project only.
    let machine = Machine::new();
    machine.put(user_file("claude-code"), EVERYTHING);
    machine.put("work/.claude/settings.json", "{\"permissions\": [");
    let mut command = machine.setup().command(&["migrate", "--yes", "--json"]);
    command.current_dir(machine.home("work"));
    let report = crate::support::command::run(command, "").code(6).json();
    let projects = machine.servers()["everything"]["projects"].to_string();
    assert!(
        projects.contains("\"!") && projects.contains("work"),
        "{report:#}"
    );
}

#[test]
fn a_denial_of_cursor_in_any_form_keeps_its_server_or_its_rule() {
    let servers = r#"{"mcpServers": {"gh": {"command": "x"}}}"#;
    for (denied, reason) in [
        (r#"["Mcp(*:*)"]"#, "would not run"),
        (r#"["Mcp(*)"]"#, "would not run"),
        (r#"["mcp(gh:low)"]"#, "mcp(gh:low)"),
        (r#"["MCP(gh:x)"]"#, "MCP(gh:x)"),
        (r#"["Mcp( gh : sp )"]"#, "Mcp( gh : sp )"),
        (r#"["Mcp(gh:rm"]"#, "Mcp(gh:rm"),
        (r#"["*"]"#, "*"),
        (r#"["Mcp(gh:{a,b})"]"#, "Mcp(gh:{a,b})"),
        (r#""mcp:gh:rm""#, "mcp:gh:rm"),
        (r#"[{"server": "gh"}]"#, r#"{"server":"gh"}"#),
    ] {
        let machine = Machine::new();
        machine.put(user_file("cursor"), servers);
        machine.put(
            ".cursor/cli-config.json",
            &format!(r#"{{"permissions": {{"deny": {denied}}}}}"#),
        );
        let report = machine.run(&["migrate", "--yes", "--json"]).json();
        let (said, why) = verdict(&report, "gh");
        assert!(
            said == "stays" && why.contains(reason) && why.contains("cli-config.json"),
            "{denied}: {said} {why}"
        );
        if reason != "would not run" {
            let rule = &report["blocking_rules"][0];
            assert_eq!(rule["server"], "gh", "{denied}: {report:#}");
            assert_eq!(rule["key"], "permissions.deny", "{denied}: {report:#}");
            assert_eq!(rule["rule"], reason, "{denied}: {report:#}");
        }
        assert_eq!(machine.read(user_file("cursor")), servers, "{denied}");
    }
    for denied in [r#"["Mcp(gh:rm)"]"#, r#""Mcp(gh:rm)""#] {
        let machine = Machine::new();
        machine.put(user_file("cursor"), servers);
        machine.put(
            ".cursor/cli-config.json",
            &format!(r#"{{"permissions": {{"deny": {denied}}}}}"#),
        );
        machine.migrate(&[]);
        let rules = machine.servers()["gh"]["tools"]["deny"].to_string();
        assert_eq!(rules, r#"["rm"]"#, "{denied}");
    }
    // What is not about servers of MCP is no reason to stay.
    let machine = Machine::new();
    machine.put(user_file("cursor"), servers);
    machine.put(
        ".cursor/cli-config.json",
        r#"{"permissions": {"deny": ["Shell(rm)", "Read(.env)"]}}"#,
    );
    machine.migrate(&[]);
    assert_eq!(machine.servers()["gh"]["tools"], Value::Null);
}

#[test]
fn our_own_entry_comes_into_the_lists_of_what_may_run() {
    for (client, before, list) in [
        (
            "gemini-cli",
            r#"{"mcpServers": {"x": {"command": "x"}}, "mcp": {"allowed": ["x"]}}"#,
            &["mcp", "allowed"][..],
        ),
        (
            "zed",
            r#"{"context_servers": {"x": {"command": "x", "args": []}}, "agent": {"default_profile": "mine", "profiles": {"mine": {"name": "Mine", "context_servers": {"x": {"tools": {"get": true}}}}}}}"#,
            &["agent", "profiles", "mine", "context_servers"],
        ),
    ] {
        let machine = Machine::new();
        machine.put(user_file(client), before);
        let report = machine.migrate(&[]);
        let after: Value = serde_json::from_str(&machine.read(user_file(client))).unwrap();
        let listed = list.iter().fold(&after, |node, key| &node[*key]);
        assert!(
            listed.to_string().contains("mcpzip"),
            "{client}: {listed} {report:#}"
        );
        machine.undo();
        assert_eq!(machine.read(user_file(client)), before);
        let _ = machine.run(&["connect", client]).code(0);
        let after: Value = serde_json::from_str(&machine.read(user_file(client))).unwrap();
        let listed = list.iter().fold(&after, |node, key| &node[*key]);
        assert!(listed.to_string().contains("mcpzip"), "{client}: {listed}");
        let _ = machine.run(&["disconnect", client]).code(0);
        let after = machine.read(user_file(client));
        assert!(!after.contains("mcpzip"), "{client}: {after}");
    }
}

#[test]
fn the_users_own_list_of_permitted_servers_gets_our_entry() {
    let servers = r#"{"mcpServers": {"x": {"command": "x"}}}"#;
    let connected = r#"{"mcpServers": {"x": {"command": "x"}, "mcpzip": {"command": "mcpzip", "args": ["serve"]}}}"#;
    for (file, list, key) in [
        (servers, json!([{ "serverName": "x" }]), "serverName"),
        (
            servers,
            json!([{ "serverName": "mcpzip" }, { "serverCommand": ["x"] }]),
            "serverCommand",
        ),
        (connected, json!([{ "serverName": "x" }]), "serverName"),
    ] {
        let machine = Machine::new();
        machine.put(user_file("claude-code"), file);
        let settings = json!({ "model": "m", "allowedMcpServers": list }).to_string();
        machine.put(".claude/settings.json", &settings);
        let check = |command: &[&str]| {
            let outcome = machine.run(command).code(0);
            let after: Value =
                serde_json::from_str(&machine.read(".claude/settings.json")).unwrap();
            let rules = after["allowedMcpServers"].as_array().unwrap();
            let added = &rules[rules.len() - 1][key];
            assert!(
                rules.len() == list.as_array().unwrap().len() + 1
                    && added.to_string().contains("mcpzip"),
                "{after} {outcome}"
            );
            machine.undo();
            assert_eq!(machine.read(".claude/settings.json"), settings);
            assert_eq!(machine.read(user_file("claude-code")), file);
        };
        let preview = machine
            .run(&["migrate", "--dry-run", "--json"])
            .code(0)
            .json()["files"]
            .to_string();
        assert!(
            preview.contains("allowedMcpServers") && preview.contains(key),
            "{preview}"
        );
        check(&["migrate", "--yes"]);
        check(&["connect", "claude-code"]);
        check(&["init", "--client", "claude-code", "--yes"]);
    }
}

#[test]
fn a_disconnected_entry_leaves_no_permission_behind() {
    let servers = r#"{"mcpServers": {"x": {"command": "x"}}}"#;
    for list in [
        json!([{ "serverName": "x" }]),
        json!([{ "serverCommand": ["x"] }]),
    ] {
        let machine = Machine::new();
        machine.put(user_file("claude-code"), servers);
        let settings = json!({ "model": "m", "allowedMcpServers": list }).to_string();
        machine.put(".claude/settings.json", &settings);
        let _ = machine.run(&["connect", "claude-code"]).code(0);
        assert!(machine.read(".claude/settings.json").contains("mcpzip"));
        let _ = machine.run(&["disconnect", "claude-code"]).code(0);
        let after: Value = serde_json::from_str(&machine.read(".claude/settings.json")).unwrap();
        assert_eq!(after["allowedMcpServers"], list);
    }
}

#[test]
fn where_mcpzip_would_not_run_nothing_of_the_client_moves() {
    for (client, content, file, more) in [
        (
            "gemini-cli",
            r#"{"mcpServers": {"x": {"command": "x"}}, "mcp": {"excluded": ["mcpzip"]}}"#,
            "",
            "",
        ),
        (
            "gemini-cli",
            r#"{"mcpServers": {"x": {"command": "x"}}}"#,
            "system/settings.json",
            r#"{"mcp": {"allowed": ["x"]}}"#,
        ),
        (
            "claude-code",
            r#"{"mcpServers": {"x": {"command": "x"}}}"#,
            ".claude/settings.local.json",
            r#"{"allowedMcpServers": [{"serverName": "x"}]}"#,
        ),
        (
            "claude-code",
            r#"{"mcpServers": {"x": {"command": "x"}}}"#,
            ".claude/settings.local.json",
            r#"{"allowedMcpServers": [{"serverName": "mcpzip"}, {"serverCommand": ["x"]}]}"#,
        ),
        (
            "claude-code",
            r#"{"mcpServers": {"x": {"command": "x"}}}"#,
            ".claude/settings.json",
            r#"{"deniedMcpServers": [{"serverName": "mcpzip"}]}"#,
        ),
        (
            "copilot-cli",
            r#"{"mcpServers": {"x": {"type": "local", "command": "x"}}}"#,
            ".copilot/settings.json",
            r#"{"disabledMcpServers": ["mcpzip"]}"#,
        ),
        (
            "opencode",
            r#"{"mcp": {"x": {"type": "local", "command": ["x"]}}, "permission": {"*": "deny", "x_*": "allow"}}"#,
            "",
            "",
        ),
        (
            "kiro",
            r#"{"mcpServers": {"x": {"command": "x"}, "zip": {"command": "mcpzip", "args": ["serve"], "disabled": true}}}"#,
            "",
            "",
        ),
    ] {
        let machine = Machine::new();
        let setup = machine.setup().clone().variable(
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
            machine.home("system/settings.json").to_str().unwrap(),
        );
        machine.put(user_file(client), content);
        if !file.is_empty() {
            machine.put(file, more);
        }
        machine.put(
            user_file("cursor"),
            r#"{"mcpServers": {"c": {"command": "c"}}}"#,
        );
        let run = |arguments: &[&str]| crate::support::command::run(setup.command(arguments), "");
        let report = run(&["migrate", "--yes", "--json"]).code(0).json();
        let (said, why) = verdict(&report, "x");
        assert!(
            said == "stays" && why.contains("would not run"),
            "{client} {more}: {said} {why}"
        );
        assert!(
            report["warnings"].to_string().contains("would not run"),
            "{report:#}"
        );
        assert_eq!(machine.read(user_file(client)), content, "{client}");
        assert_eq!(machine.servers()["c"]["command"], "c", "{report:#}");
        let refused = run(&["connect", client]).code(1);
        assert!(
            refused.stderr.contains("would not run"),
            "{client}: {refused}"
        );
    }
}
