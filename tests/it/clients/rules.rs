//! Rules of the clients that name servers and tools.

use serde_json::Value;

use super::case::{Machine, user_file};

const GITHUB: &str = r#"{"mcpServers": {"github": {"command": "github-mcp"}, "other": {"command": "other-mcp"}}, "projects": {"PROJECT": {"disabledMcpServers": [], "allowedTools": []}}}"#;

/// A Claude Code with the server `github`, `other`, and one more file.
fn claude(file: &str, content: &str) -> Machine {
    let machine = Machine::new();
    machine.put(user_file("claude-code"), GITHUB);
    machine.put(file, content);
    machine
}

fn kinds(report: &Value, list: &str) -> Vec<String> {
    let rules = report[list].as_array().unwrap();
    rules
        .iter()
        .map(|rule| format!("{} {}", rule["kind"].as_str().unwrap(), rule["server"].as_str().unwrap()))
        .collect()
}

#[test]
fn a_rule_that_protects_stops_the_migration() {
    for (file, content) in [
        (".claude/settings.json", r#"{"permissions": {"deny": ["mcp__github__delete_repo"]}}"#),
        (".claude/settings.json", r#"{"permissions": {"deny": ["Bash(rm *)", "mcp__github"]}}"#),
        (".claude/settings.local.json", r#"{"permissions": {"deny": ["mcp__github__*"]}}"#),
        (".claude/settings.json", r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__github__.*", "hooks": []}]}}"#),
        (
            ".claude/settings.json",
            r#"{"hooks": {"PreToolUse": [{"matcher": "Bash|mcp__git.*__delete.*", "hooks": []}]}}"#,
        ),
        (
            ".claude/agents/careful.md",
            "---\nname: careful\ndisallowedTools: mcp__github__delete_repo, Bash\n---\nBe careful.\n",
        ),
    ] {
        let machine = claude(file, content);
        let before = machine.everything();
        let stopped = machine.run(&["migrate", "--yes"]).code(1);
        assert!(stopped.stderr.contains("`github`") && stopped.stderr.contains("--drop-rules"), "{content}: {stopped}");
        assert_eq!(kinds(&stopped.json(), "blocking_rules").len(), 1, "{stopped}");
        assert_eq!(machine.everything(), before, "{content}");

        machine.migrate(&["--only", "other"]);
        assert!(machine.read(".claude.json").contains("github-mcp"));
        let report = machine.migrate(&["--drop-rules"]);
        assert_eq!(kinds(&report, "lost_rules").len(), 1, "{report:#}");
        assert!(!machine.read(".claude.json").contains("github-mcp"));
    }
}

#[test]
fn a_server_that_is_off_in_a_project_would_be_on_there() {
    let machine = claude(".claude/x", "");
    machine.put(
        user_file("claude-code"),
        &GITHUB.replace(r#""disabledMcpServers": []"#, r#""disabledMcpServers": ["github"]"#),
    );
    let stopped = machine.run(&["migrate", "--yes"]).code(1);
    assert_eq!(kinds(&stopped.json(), "blocking_rules"), ["deny github"], "{stopped}");
}

#[test]
fn a_rule_that_protects_nothing_is_listed_and_stops_nothing() {
    for (file, content, kind) in [
        (".claude/settings.json", r#"{"permissions": {"allow": ["mcp__github__get_issue"]}}"#, "allow github"),
        (".claude/settings.json", r#"{"permissions": {"ask": ["mcp__github"]}}"#, "ask github"),
        (
            ".claude/settings.json",
            r#"{"hooks": {"PostToolUse": [{"matcher": "mcp__github__get_issue", "hooks": []}]}}"#,
            "tools github",
        ),
        (
            ".claude/agents/reader.md",
            "---\nname: reader\ntools:\n  - Read\n  - mcp__github__get_issue\n---\n",
            "tools github",
        ),
        (".claude/skills/a/SKILL.md", "---\nname: a\nallowed-tools: mcp__github__get_issue\n---\n", "tools github"),
        (".claude/commands/x/y.md", "---\nallowed-tools: Bash, mcp__github__get_issue\n---\n", "tools github"),
    ] {
        let machine = claude(file, content);
        let report = machine.migrate(&[]);
        assert_eq!(kinds(&report, "lost_rules"), [kind], "{content}: {report:#}");
        assert_eq!(report["lost_rules"][0]["file"], machine.home(file).to_str().unwrap());
    }
}

#[test]
fn rules_about_others_or_about_all_servers_stop_nothing() {
    for rule in ["mcp__gitlab__x", "mcp__githubber", "mcp__*", "Bash", "mcp__git__hub"] {
        let machine = claude(".claude/settings.json", &format!(r#"{{"permissions": {{"deny": ["{rule}"]}}}}"#));
        let report = machine.migrate(&[]);
        assert!(kinds(&report, "lost_rules").is_empty(), "{rule}: {report:#}");
    }
}

#[test]
fn lists_of_tools_in_an_entry_are_rules_too() {
    for (client, content, kind) in [
        ("windsurf", r#"{"mcpServers": {"x": {"command": "x", "disabledTools": ["rm"]}}}"#, Some("deny x")),
        ("gemini-cli", r#"{"mcpServers": {"x": {"command": "x", "includeTools": ["get"]}}}"#, Some("deny x")),
        ("gemini-cli", r#"{"mcpServers": {"x": {"command": "x", "trust": true}}}"#, None),
        (
            "copilot-cli",
            r#"{"mcpServers": {"x": {"type": "local", "command": "x", "tools": ["get"]}}}"#,
            Some("deny x"),
        ),
        ("codex", "[mcp_servers.x]\ncommand = \"x\"\nenabled_tools = [\"get\"]\n", Some("deny x")),
        ("codex", "[mcp_servers.x]\ncommand = \"x\"\n[mcp_servers.x.tools.rm]\napproval_mode = \"prompt\"\n", None),
        ("codex", "[mcp_servers.x]\ncommand = \"x\"\ndefault_tools_approval_mode = \"prompt\"\n", Some("deny x")),
        ("goose", "extensions:\n  x:\n    type: stdio\n    cmd: x\n    available_tools: [get]\n", Some("deny x")),
        (
            "opencode",
            r#"{"mcp": {"x": {"type": "local", "command": ["x"]}}, "tools": {"x_rm*": false}}"#,
            Some("deny x"),
        ),
        (
            "opencode",
            r#"{"mcp": {"x": {"type": "local", "command": ["x"]}}, "agent": {"a": {"permission": {"x_*": "deny"}}}}"#,
            Some("deny x"),
        ),
        (
            "zed",
            r#"{"context_servers": {"x": {"command": "x", "args": []}}, "agent": {"tool_permissions": {"tools": {"mcp:x:rm": {"default": "deny"}}}}}"#,
            Some("deny x"),
        ),
        ("roo", r#"{"mcpServers": {"x": {"command": "x", "alwaysAllow": ["get"]}}}"#, None),
    ] {
        let machine = Machine::new();
        machine.put(user_file(client), content);
        match kind {
            Some(kind) => {
                let stopped = machine.run(&["migrate", "--yes"]).code(1);
                assert_eq!(kinds(&stopped.json(), "blocking_rules"), [kind], "{content}: {stopped}");
                assert_eq!(machine.read(user_file(client)), content);
            }
            None => {
                let report = machine.migrate(&[]);
                assert_eq!(kinds(&report, "lost_rules").len(), 1, "{content}: {report:#}");
            }
        }
        machine.migrate(&["--drop-rules"]);
        assert!(!machine.servers()["x"].is_null(), "{content}");
        machine.undo();
        assert_eq!(machine.read(user_file(client)), content);
    }
}
