//! Rules in files of clients other than their settings, and in forms of these files that are easily misread.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};
use crate::support::command;

const GH: &str = r#"{"mcpServers": {"gh": {"command": "x"}}}"#;
const OPENCODE: &str = r#"{"mcp": {"gh": {"type": "local", "command": ["x"]}}}"#;
const CODEX: &str = "[mcp_servers.gh]\ncommand = \"x\"\n";
const RUNS: &str = r#"{"mcpServers": {"mcpzip": {"command": "mcpzip", "args": ["serve"]}}}"#;

/// A client, its file, another file and its content.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// Hooks, and denials of one agent.
const KEPT: &[Row] = &[
    (
        "claude-code",
        GH,
        ".claude/agents/x.md",
        "---\nname: x\nhooks: {PreToolUse: [{matcher: \"mcp__gh__.*\", hooks: []}]}\n---\n",
    ),
    (
        "claude-code",
        GH,
        ".claude/agents/x.md",
        "---\nname: x\nhooks:\n  PreToolUse:\n    - \"matcher\": \"mcp__gh__.*\"\n      hooks: []\n---\n",
    ),
    (
        "claude-code",
        GH,
        ".claude/skills/x/SKILL.md",
        "---\nhooks:\n  PreToolUse:\n    - hooks: []\n  PostToolUse:\n    - matcher: Edit\n      hooks: []\n---\n",
    ),
    // A description that is not YAML, before hooks that are, and before some that are not.
    (
        "claude-code",
        GH,
        ".claude/agents/x.md",
        "---\ndescription: Examples: one: two\nhooks:\n  PreToolUse:\n    - matcher: mcp__gh__.*\n      hooks: []\n---\n",
    ),
    (
        "claude-code",
        GH,
        ".claude/agents/x.md",
        "---\nname: x\nhooks:\n  PreToolUse: [\n---\n",
    ),
    (
        "claude-code",
        GH,
        ".claude/agents/a/b/c/d/e/f/x.md",
        "---\ndisallowedTools: mcp__gh__rm\n---\n",
    ),
    (
        "claude-code",
        GH,
        "plugin/agents/x.md",
        "---\ndisallowedTools: [mcp__gh__rm]\n---\n",
    ),
    (
        "gemini-cli",
        GH,
        ".gemini/extensions/guard/hooks/hooks.json",
        r#"{"hooks": {"BeforeTool": [{"matcher": "mcp_gh_.*", "hooks": []}]}}"#,
    ),
    (
        "gemini-cli",
        GH,
        ".gemini/extensions/guard/hooks/hooks.json",
        r#"{"hooks": {"BeforeToolSelection": [{"hooks": []}]}}"#,
    ),
    (
        "cursor",
        GH,
        "known/.cursor/hooks.json",
        r#"{"version": 1, "hooks": {"beforeMCPExecution": [{"command": "./look.sh"}]}}"#,
    ),
    (
        "opencode",
        OPENCODE,
        ".config/opencode/plugins/guard.js",
        "export const guard = () => ({ \"tool.execute.before\": check })\n",
    ),
    (
        "opencode",
        OPENCODE,
        "known/.opencode/plugin/guard.ts",
        "export { guard } from \"../lib/guard\"\n",
    ),
    (
        "codex",
        CODEX,
        ".codex/managed_config.toml",
        "[[hooks.PreToolUse]]\nmatcher = \"mcp__gh__.*\"\n",
    ),
];

/// A home with the client's file and the other one, in which Cursor trusts the directory `known` and Claude Code has a plugin.
fn machine((client, user, file, content): &Row) -> Machine {
    let machine = Machine::new();
    machine.put(user_file(client), user);
    machine.put(file, content);
    std::fs::create_dir_all(machine.home("known")).unwrap();
    let trusted = json!({ "workspacePath": machine.home("known") });
    machine.put(
        ".cursor/projects/known/.workspace-trusted",
        &trusted.to_string(),
    );
    let plugins = json!({ "plugins": { "x@m": [{ "installPath": machine.home("plugin") }] } });
    machine.put(
        ".claude/plugins/installed_plugins.json",
        &plugins.to_string(),
    );
    machine
}

#[test]
fn a_hook_or_a_denial_of_an_agent_keeps_a_server_wherever_it_is_written() {
    for row in KEPT {
        // A rule that cannot be carried over ends the run.
        let report = machine(row).run(&["migrate", "--yes", "--json"]).json();
        assert_eq!(verdict(&report, "gh").0, "stays", "{row:?}: {report:#}");
    }
}

#[test]
fn what_only_looks_like_a_hook_keeps_nothing() {
    for row in [
        (
            "claude-code",
            GH,
            ".claude/agents/x.md",
            "---\ndescription: Examples: hooks: PreToolUse\ntools: Read, mcp__gh__rm\n---\n",
        ),
        (
            "claude-code",
            GH,
            ".claude/agents/x.md",
            "---\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: []\n---\n",
        ),
        (
            "opencode",
            OPENCODE,
            ".config/opencode/plugins/notify.js",
            "export const notify = () => ({ event: tell })\n",
        ),
        (
            "cursor",
            GH,
            ".claude/settings.json",
            r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": []}]}}"#,
        ),
    ] {
        let report = machine(&row).migrate(&[]);
        assert_eq!(verdict(&report, "gh").0, "moves", "{row:?}: {report:#}");
    }
}

#[test]
fn a_question_for_one_agent_or_about_parameters_is_asked_for_all() {
    for (row, asked) in [
        (
            (
                "opencode",
                OPENCODE,
                ".config/opencode/opencode.jsonc",
                r#"{"agent": {"plan": {"permission": {"gh_rm": "ask"}}}}"#,
            ),
            "rm",
        ),
        (
            (
                "opencode",
                OPENCODE,
                ".config/opencode/agents/r.md",
                "---\npermission:\n  gh_*: ask\n---\n",
            ),
            "*",
        ),
        (
            (
                "codex",
                CODEX,
                ".codex/agents/r.toml",
                "[mcp_servers.gh.tools.rm]\napproval_mode = \"prompt\"\n",
            ),
            "rm",
        ),
        (
            (
                "codex",
                CODEX,
                ".codex/agents/r.toml",
                "[mcp_servers.gh]\ndefault_tools_approval_mode = \"prompt\"\n",
            ),
            "*",
        ),
        (
            (
                "claude-code",
                GH,
                ".claude/settings.json",
                r#"{"permissions": {"ask": ["mcp__gh__rm(path:/x)"]}}"#,
            ),
            "rm",
        ),
    ] {
        let machine = machine(&row);
        let report = machine.migrate(&[]);
        let gh = &machine.servers()["gh"];
        assert_eq!(
            gh["tools"],
            json!({ "ask": [asked] }),
            "{row:?}: {report:#}"
        );
        assert_eq!(report["lost_rules"], json!([]), "{row:?}");
        assert_eq!(report["carried_rules"][0]["outcome"], "asked", "{row:?}");
    }
}

#[test]
fn denials_in_settings_that_are_laid_over_others_come_over() {
    for row in [
        (
            "codex",
            CODEX,
            ".codex/managed_config.toml",
            "[mcp_servers.gh]\ndisabled_tools = [\"rm\"]\n",
        ),
        (
            "cursor",
            GH,
            "known/.cursor/cli.json",
            r#"{"permissions": {"deny": ["Mcp(gh:rm)"]}}"#,
        ),
    ] {
        let machine = machine(&row);
        let report = machine.migrate(&[]);
        let denied = &machine.servers()["gh"]["tools"]["deny"];
        assert_eq!(*denied, json!(["rm"]), "{row:?}: {report:#}");
    }
    let machine = Machine::new();
    machine.put(user_file("opencode"), OPENCODE);
    let mut command = machine.setup().command(&["migrate", "--yes"]);
    command.env(
        "OPENCODE_CONFIG_CONTENT",
        r#"{"permission": {"gh_rm": "deny"}}"#,
    );
    let _ = command::run(command, "").code(0);
    assert_eq!(machine.servers()["gh"]["tools"]["deny"], json!(["rm"]));
}

#[test]
fn what_an_agent_or_a_package_loses_is_listed() {
    for (row, text) in [
        (
            (
                "claude-code",
                GH,
                ".claude/agents/x.md",
                "---\nname: x\nmcpServers:\n  - gh\n---\n",
            ),
            "gh",
        ),
        (
            (
                "cursor",
                GH,
                "known/.claude/settings.local.json",
                r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__.*rm", "hooks": []}]}}"#,
            ),
            "mcp__.*rm",
        ),
        (
            (
                "opencode",
                OPENCODE,
                "opencode.json",
                r#"{"plugin": ["some-guard"]}"#,
            ),
            "some-guard",
        ),
    ] {
        let machine = machine(&row);
        let mut command = machine.setup().command(&["migrate", "--yes", "--json"]);
        command.current_dir(machine.home(""));
        let report = command::run(command, "").code(0).json();
        let lost = report["lost_rules"].as_array().unwrap();
        assert!(
            lost.iter().any(|rule| rule.to_string().contains(text)),
            "{row:?}: {report:#}"
        );
        assert_eq!(verdict(&report, "gh").0, "moves");
    }
}

#[test]
fn a_denial_of_the_tools_of_mcpzip_keeps_the_servers_of_claude_code() {
    for rule in ["mcp__mcpzip", "mcp__mcpzip__*", "mcp__*__search_*"] {
        let machine = Machine::new();
        machine.put(user_file("claude-code"), GH);
        let settings = json!({ "permissions": { "deny": [rule] } });
        machine.put(".claude/settings.json", &settings.to_string());
        let report = machine.migrate(&[]);
        let (verdict, why) = verdict(&report, "gh");
        assert!(verdict == "stays" && why.contains(rule), "{report:#}");
    }
}

#[test]
fn a_server_that_is_refused_in_a_known_project_is_hidden_there() {
    for at_user in [true, false] {
        let machine = Machine::new();
        let project = machine.home("work").display().to_string();
        let refusal = json!({ "disabledMcpjsonServers": ["db"] });
        let own = if at_user { refusal.clone() } else { json!({}) };
        let mut user: Value = serde_json::from_str(RUNS).unwrap();
        user["projects"] = json!({ project.as_str(): own });
        machine.put(user_file("claude-code"), &user.to_string());
        let db = r#"{"mcpServers": {"db": {"command": "db-mcp"}}}"#;
        machine.put("work/.mcp.json", db);
        if !at_user {
            machine.put("work/.claude/settings.local.json", &refusal.to_string());
        }
        machine.put(user_file("cursor"), db);
        let report = machine.migrate(&["--client", "cursor"]);
        let hidden = json!([format!("!{project}")]);
        assert_eq!(machine.servers()["db"]["projects"], hidden, "{report:#}");
    }
}

#[test]
fn a_profile_that_starts_no_servers_limits_no_one_else() {
    let machine = Machine::new();
    let servers = r#"{"servers": {"gh": {"command": "x"}}}"#;
    machine.put(user_file("vscode"), servers);
    let profile = ".config/Code/User/profiles/ab";
    machine.put(&format!("{profile}/mcp.json"), servers);
    let access = r#"{"chat.mcp.access": "none"}"#;
    machine.put(&format!("{profile}/settings.json"), access);
    let report = machine.migrate(&[]);
    assert_eq!(
        machine.servers(),
        json!({ "gh": { "command": "x" } }),
        "{report:#}"
    );
    assert_eq!(machine.read(&format!("{profile}/mcp.json")), servers);
}
