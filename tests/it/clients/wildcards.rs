//! Rules about all servers: they refuse the tools of mcpzip as well, which a person learns before anything moves.

use serde_json::json;

use super::case::{Machine, user_file, verdict};

const GH: &str = r#"{"mcpServers": {"gh": {"command": "x"}}}"#;

fn claude(file: &str, settings: &str) -> Machine {
    let machine = Machine::new();
    machine.put(user_file("claude-code"), GH);
    machine.put(file, settings);
    machine
}

#[test]
fn a_denial_of_all_servers_keeps_those_of_claude_code_and_says_what_to_change() {
    for rule in ["mcp__*", "mcp__*__*", "*", "mcp__**", "mcp__m*"] {
        for file in [".claude/settings.json", ".claude/settings.local.json"] {
            let settings = json!({ "permissions": { "deny": [rule] } }).to_string();
            let machine = claude(file, &settings);
            let before = machine.everything();
            let report = machine.migrate(&[]);
            let (is, why) = verdict(&report, "gh");
            assert!(
                is == "stays" && why.contains(&format!("`{rule}`")) && why.contains("in its place"),
                "{rule}: {report:#}"
            );
            assert_eq!(machine.everything(), before, "{rule}");
            let refused = machine.run(&["connect", "claude-code"]).code(1);
            assert!(refused.stderr.contains(rule), "{refused}");
        }
    }
    // One server of a pattern is that alone.
    let settings = r#"{"permissions": {"deny": ["mcp__g*"]}}"#;
    let machine = claude(".claude/settings.json", settings);
    let report = machine.migrate(&[]);
    let gh = &machine.servers()["gh"];
    let is_denied = gh.is_null() || gh["tools"]["deny"] == json!(["*"]);
    assert!(is_denied, "{report:#}");
}

#[test]
fn where_claude_code_refuses_what_no_rule_permits_only_that_is_permitted() {
    let settings = |allow: &[&str]| {
        json!({ "permissions": { "defaultMode": "dontAsk", "allow": allow } }).to_string()
    };
    let listed = ["mcp__gh__get", "Bash(ls)", "mcp__gh__list_*"];
    let machine = claude(".claude/settings.json", &settings(&listed));
    let report = machine.migrate(&[]);
    let (is, why) = verdict(&report, "gh");
    assert!(
        is == "stays" && why.contains("dontAsk") && why.contains("mcp__mcpzip"),
        "{report:#}"
    );
    // As the message says.
    let permitting = [&listed[..], &["mcp__mcpzip"]].concat();
    machine.put(".claude/settings.json", &settings(&permitting));
    let report = machine.migrate(&[]);
    assert_eq!(verdict(&report, "gh").0, "moves", "{report:#}");
    assert_eq!(
        machine.servers()["gh"]["tools"],
        json!({ "allow": ["get", "list_*"] })
    );
    let machine = claude(
        ".claude/settings.json",
        &settings(&["mcp__gh", "mcp__mcpzip__*"]),
    );
    machine.migrate(&[]);
    assert!(machine.servers()["gh"]["tools"].is_null());
    // Without a permission for any of its tools nothing of it opens.
    let machine = claude(".claude/settings.json", &settings(&["mcp__mcpzip"]));
    let report = machine.migrate(&[]);
    let gh = &machine.servers()["gh"];
    let is_shut = gh.is_null() || gh["tools"]["allow"] == json!([]);
    assert!(is_shut, "{report:#}");
}

#[test]
fn exclusions_of_all_tools_keep_the_servers_of_other_clients() {
    for (client, servers, file, rules, text) in [
        (
            "gemini-cli",
            r#"{"mcpServers": {"gh": {"command": "x"}}, "tools": {"exclude": ["mcp_mcpzip_*"]}}"#,
            "notes.txt",
            "",
            "mcp_mcpzip_*",
        ),
        (
            "gemini-cli",
            GH,
            ".gemini/policies/all.toml",
            "[[rule]]\nmcpName = \"mcp*\"\ndecision = \"deny\"\npriority = 1\n",
            "mcp*",
        ),
        (
            "continue",
            "mcpServers:\n  - name: gh\n    command: x\n",
            ".continue/permissions.yaml",
            "exclude:\n  - mcp__mcpzip__*\n",
            "mcp__mcpzip__*",
        ),
        (
            "cursor",
            GH,
            ".cursor/cli-config.json",
            r#"{"permissions": {"deny": ["Mcp(*:*)"]}}"#,
            "Mcp(*:*)",
        ),
    ] {
        let machine = Machine::new();
        machine.put(user_file(client), servers);
        machine.put(file, rules);
        let report = machine.migrate(&[]);
        let (is, why) = verdict(&report, "gh");
        assert!(
            is == "stays" && why.contains(text),
            "{client} {text}: {report:#}"
        );
    }
}

#[test]
fn a_pattern_of_vs_code_asks_about_no_other_tool_of_a_list() {
    let codex = "[mcp_servers.gh]\ncommand = \"x\"\n";
    let asking = "[mcp_servers.gh.tools.read_row]\napproval_mode = \"prompt\"\n";
    for (list, more, ask) in [
        (r#"["read_row", "write_row"]"#, "", json!(null)),
        (r#"["read_row", "drop_table"]"#, "", json!(["drop_table"])),
        (r#"["read_row", "write_row"]"#, asking, json!(["read_row"])),
    ] {
        let machine = Machine::new();
        machine.put(
            user_file("vscode"),
            r#"{"servers": {"vs": {"command": "vs-mcp"}}}"#,
        );
        machine.put(
            ".config/Code/User/settings.json",
            r#"{"chat.tools.eligibleForAutoApproval": {"drop_table": false}}"#,
        );
        let list = format!("{codex}enabled_tools = {list}\n{more}");
        machine.put(user_file("codex"), &list);
        let report = machine.migrate(&[]);
        let tools = &machine.servers()["gh"]["tools"];
        assert_eq!(tools["ask"], ask, "{list}: {report:#}");
        let limits = report["tightened"].to_string();
        assert_eq!(
            limits.contains("VS Code"),
            ask == json!(["drop_table"]),
            "{limits}"
        );
    }
}

#[test]
fn a_rule_that_changes_nothing_is_not_listed_as_a_limit() {
    let machine = Machine::new();
    machine.put(
        user_file("vscode"),
        r#"{"servers": {"vs": {"command": "vs-mcp"}}}"#,
    );
    machine.put(
        ".config/Code/User/settings.json",
        r#"{"chat.tools.eligibleForAutoApproval": {"drop": false}}"#,
    );
    machine.put(
        user_file("codex"),
        "[mcp_servers.gh]\ncommand = \"x\"\ndisabled_tools = [\"drop\"]\n",
    );
    let report = machine.migrate(&[]);
    let limits = report["tightened"].to_string();
    assert!(!limits.contains("`gh`"), "{limits}");
}
