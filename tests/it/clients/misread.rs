//! Values of another type, unknown words and unknown forms where a client has its rules: none of them is read as a permission.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

/// The server `gh`, as most clients have it.
const GH: &str = r#"{"mcpServers": {"gh": {"command": "x"}}}"#;

/// A client, its file, one more file, and what becomes of `gh`: the rules of its entry, `stays`, or `off`.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const CLAUDE: &str = ".claude/settings.json";
const GEMINI: &str = ".gemini/policies/a.toml";
const GOOSE: &str = ".config/goose/permission.yaml";
const GOOSE_GH: &str = "extensions:\n  gh:\n    type: stdio\n    cmd: x\n    enabled: true\n";
const CODEX_AGENT: &str =
    "[mcp_servers.gh]\ncommand = \"x\"\n\n[agents.r]\nconfig_file = \"roles/r.toml\"\n";
const CURSOR: &str = ".cursor/cli-config.json";

const RULES: &[Row] = &[
    (
        "zed",
        r#"{"context_servers": {"gh": {"command": "x", "args": []}}, "agent": {"tool_permissions": {"tools": {"mcp:gh:rm": "deny"}}}}"#,
        "",
        "",
        r#"{"deny": ["rm"]}"#,
    ),
    (
        "zed",
        r#"{"context_servers": {"gh": {"command": "x", "args": []}}, "agent": {"tool_permissions": {"tools": {"mcp:gh:rm": "confirm"}}}}"#,
        "",
        "",
        r#"{"ask": ["rm"]}"#,
    ),
    (
        "zed",
        r#"{"context_servers": {"gh": {"command": "x", "args": []}}, "agent": {"tool_permissions": {"tools": {"mcp:gh:rm": {"default": "never"}}}}}"#,
        "",
        "",
        "stays",
    ),
    (
        "zed",
        r#"{"context_servers": {"gh": {"command": "x", "args": []}}, "agent": {"tool_permissions": {"tools": {"mcp:gh:rm": {"default": false}}}}}"#,
        "",
        "",
        "stays",
    ),
    (
        "zed",
        r#"{"context_servers": {"gh": {"command": "x", "args": []}}, "agent": {"tool_permissions": {"tools": {"mcp:gh:rm": false}}}}"#,
        "",
        "",
        "stays",
    ),
    (
        "zed",
        r#"{"context_servers": {"gh": {"command": "x", "args": []}}, "agent": {"tool_permissions": {"tools": [{"mcp:gh:rm": "deny"}]}}}"#,
        "",
        "",
        "stays",
    ),
    (
        "zed",
        r#"{"context_servers": {"gh": {"command": "x", "args": []}}, "agent": {"profiles": {"write": {"name": "Write", "context_servers": {"gh": {"tools": {"rm": "off"}}}}}}}"#,
        "",
        "",
        r#"{"deny": ["rm"]}"#,
    ),
    (
        "zed",
        r#"{"context_servers": {"gh": {"command": "x", "args": []}}, "agent": {"profiles": {"write": {"name": "Write", "context_servers": {"gh": false}}}}}"#,
        "",
        "",
        r#"{"deny": ["*"]}"#,
    ),
    (
        "opencode",
        r#"{"mcp": {"gh": {"type": "local", "command": ["x"]}}, "permission": {"*": "ask", "mcpzip_*": "allow"}}"#,
        "",
        "",
        r#"{"ask": ["*"]}"#,
    ),
    (
        "opencode",
        r#"{"mcp": {"gh": {"type": "local", "command": ["x"]}}, "permission": {"mcpzip_*": "allow"}, "agent": {"a": {"tools": {"*": false}}}}"#,
        "",
        "",
        "stays",
    ),
    (
        "opencode",
        r#"{"mcp": {"gh": {"type": "local", "command": ["x"]}}, "permission": {"gh_rm": "Deny"}}"#,
        "",
        "",
        "stays",
    ),
    (
        "goose",
        GOOSE_GH,
        GOOSE,
        "user:\n  never_allow: gh__rm\n",
        r#"{"deny": ["rm"]}"#,
    ),
    (
        "goose",
        GOOSE_GH,
        GOOSE,
        "user:\n  never_allow:\n    - tool: gh__rm\n",
        "stays",
    ),
    (
        "goose",
        GOOSE_GH,
        GOOSE,
        "user:\n  denied: [gh__rm]\n",
        "stays",
    ),
    ("goose", GOOSE_GH, GOOSE, "user: gh__rm\n", "stays"),
    ("goose", GOOSE_GH, GOOSE, "- gh__rm\n", "stays"),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"permissions": {"deny": "mcp__gh__rm"}}"#,
        r#"{"deny": ["rm"]}"#,
    ),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"permissions": {"ask": " mcp__gh__rm "}}"#,
        r#"{"ask": ["rm"]}"#,
    ),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"permissions": {"deny": [{"tool": "mcp__gh__rm"}]}}"#,
        "stays",
    ),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"permissions": {"deny": {"mcp__gh__rm": true}}}"#,
        "stays",
    ),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"permissions": ["mcp__gh__rm"]}"#,
        "stays",
    ),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"permissions": {"deny": ["mcp__(gh|x)__rm"]}}"#,
        "stays",
    ),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"permissions": {"deny": ["mcp__{gh,x}__rm"]}}"#,
        "stays",
    ),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"hooks": [{"PreToolUse": [{"matcher": "mcp__gh__.*"}]}]}"#,
        "stays",
    ),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"hooks": {"PreToolUse": {"matcher": "mcp__gh__.*"}}}"#,
        "stays",
    ),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"hooks": {"PreToolUse": "block.sh"}}"#,
        "stays",
    ),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"deniedMcpServers": {"serverName": "gh"}}"#,
        "stays",
    ),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"deniedMcpServers": ["gh"]}"#,
        "stays",
    ),
    (
        "claude-code",
        GH,
        CLAUDE,
        r#"{"allowedMcpServers": {"serverName": "other"}}"#,
        "stays",
    ),
    (
        "claude-code",
        GH,
        ".claude/agents/a.md",
        "---\nname: a\n\"disallowedTools\": mcp__gh__rm\n---\n",
        "stays",
    ),
    (
        "claude-code",
        GH,
        ".claude/agents/a.md",
        "---\nname: a\nhooks:\n  PreToolUse:\n    - matcher: \"mcp__gh__.*\"\n---\n",
        "stays",
    ),
    (
        "claude-code",
        GH,
        ".claude/agents/a.md",
        "---\nname: a\nhooks:\n  PreToolUse:\n    - matcher: Bash\n---\n",
        "null",
    ),
    (
        "codex",
        CODEX_AGENT,
        ".codex/roles/r.toml",
        "[mcp_servers.gh]\nenabled = false\n",
        "stays",
    ),
    (
        "codex",
        CODEX_AGENT,
        ".codex/roles/r.toml",
        "[mcp_servers.gh]\ncommand = \"x\"\nenabled_tools = [\"get\"]\n",
        "stays",
    ),
    (
        "codex",
        CODEX_AGENT,
        ".codex/roles/r.toml",
        "[mcp_servers.gh.tools.rm]\nenabled = false\n",
        "stays",
    ),
    (
        "codex",
        CODEX_AGENT,
        ".codex/agents/deep/a.toml",
        "name = \"a\"\n[mcp_servers.gh]\ndisabled_tools = [\"rm\"]\n",
        "stays",
    ),
    (
        "codex",
        CODEX_AGENT,
        ".codex/roles/r.toml",
        "model = \"m\"\n[mcp_servers.gl]\nenabled = false\n",
        "null",
    ),
    (
        "opencode",
        r#"{"mcp": {"gh": {"type": "local", "command": ["x"]}}}"#,
        ".config/opencode/agents/a.md",
        "---\ndescription: a\ntools:\n  gh_rm: false\n---\nText.\n",
        "stays",
    ),
    (
        "opencode",
        r#"{"mcp": {"gh": {"type": "local", "command": ["x"]}}}"#,
        ".config/opencode/agents/a.md",
        "---\ndescription: a\ntools:\n  bash: false\n---\nText.\n",
        "null",
    ),
    (
        "gemini-cli",
        GH,
        GEMINI,
        "[rule]\nmcpName = \"gh\"\ntoolName = \"rm\"\ndecision = \"deny\"\n",
        r#"{"deny": ["rm"]}"#,
    ),
    (
        "gemini-cli",
        GH,
        GEMINI,
        "[[rule]]\nmcpName = 1\ndecision = \"deny\"\n",
        "stays",
    ),
    (
        "gemini-cli",
        GH,
        GEMINI,
        "[[rule]]\nmcpName = \"gh\"\ntoolName = {name = \"rm\"}\ndecision = \"deny\"\n",
        "stays",
    ),
    (
        "gemini-cli",
        GH,
        GEMINI,
        "rule = [\"mcp_gh_rm\"]\n",
        "stays",
    ),
    // The rule with the highest priority applies; one that is limited frees nothing.
    (
        "gemini-cli",
        GH,
        GEMINI,
        "[[rule]]\nmcpName = \"gh\"\ndecision = \"deny\"\npriority = 1\n\n\
         [[rule]]\nmcpName = \"gh\"\ntoolName = \"read\"\ndecision = \"allow\"\npriority = 100\n\n\
         [[rule]]\nmcpName = \"gh\"\ntoolName = \"push\"\ndecision = \"ask_user\"\npriority = 100\n\n\
         [[rule]]\nmcpName = \"gh\"\ntoolName = \"rm\"\ndecision = \"allow\"\npriority = 100\nmodes = [\"yolo\"]\n",
        r#"{"allow": ["push", "read"], "ask": ["push"]}"#,
    ),
    (
        "gemini-cli",
        GH,
        GEMINI,
        "[[rule]]\nmcpName = \"gh\"\ndecision = \"deny\"\npriority = 100\n\n\
         [[rule]]\nmcpName = \"gh\"\ntoolName = \"read\"\ndecision = \"allow\"\npriority = 1\n",
        r#"{"deny": ["*"]}"#,
    ),
    (
        "gemini-cli",
        GH,
        GEMINI,
        "[[rule]]\nmcpName = \"gh\"\ntoolName = [\"rm\"]\ndecision = \"deny\"\npriority = 1\n\n\
         [[rule]]\ntoolName = \"mcp_gh_*\"\ndecision = \"allow\"\npriority = 100\n",
        "null",
    ),
    (
        "opencode",
        r#"{"mcp": {"gh": {"type": "local", "command": ["x"]}}, "permission": {"gh_*": "deny", "gh_push": "ask"}}"#,
        "",
        "",
        r#"{"allow": ["push"], "ask": ["push"]}"#,
    ),
    (
        "gemini-cli",
        GH,
        GEMINI,
        "[[rule]]\nmcpName = \"gh\"\ntoolName = \"rm\"\ndecision = \"Allowed\"\n",
        r#"{"deny": ["rm"]}"#,
    ),
    (
        "gemini-cli",
        GH,
        GEMINI,
        "[[safety_checker]]\ntoolName = \"mcp_gh_*\"\n[safety_checker.checker]\ntype = \"external\"\nname = \"c\"\n",
        "stays",
    ),
    (
        "gemini-cli",
        r#"{"mcpServers": {"gh": {"command": "x"}}, "mcp": {"excluded": "gh"}}"#,
        "",
        "",
        "off",
    ),
    (
        "gemini-cli",
        r#"{"mcpServers": {"gh": {"command": "x"}}, "mcp": {"allowed": "other"}}"#,
        "",
        "",
        "stays",
    ),
    (
        "codex",
        "[mcp_servers.gh]\ncommand = \"x\"\n[mcp_servers.gh.tools]\nrm = \"deny\"\n",
        "",
        "",
        "stays",
    ),
    (
        "codex",
        "[mcp_servers.gh]\ncommand = \"x\"\ntools = \"get\"\n",
        "",
        "",
        "stays",
    ),
    (
        "codex",
        "[mcp_servers.gh]\ncommand = \"x\"\n[mcp_servers.gh.tools.rm]\nenabled = \"false\"\n",
        "",
        "",
        "stays",
    ),
    (
        "codex",
        "[mcp_servers.gh]\ncommand = \"x\"\n[mcp_servers.gh.tools.rm]\napproval_mode = \"never\"\n",
        "",
        "",
        "stays",
    ),
    (
        "codex",
        "[mcp_servers.gh]\ncommand = \"x\"\n[mcp_servers.gh.tools.rm]\napproval_mode = [\"prompt\"]\n",
        "",
        "",
        "stays",
    ),
    (
        "codex",
        "[mcp_servers.gh]\ncommand = \"x\"\ndefault_tools_approval_mode = \"deny\"\n",
        "",
        "",
        "stays",
    ),
    (
        "codex",
        "[mcp_servers.gh]\ncommand = \"x\"\ndefault_tools_enabled = \"false\"\n",
        "",
        "",
        "stays",
    ),
    (
        "codex",
        "[mcp_servers.gh]\ncommand = \"x\"\nenabled = \"false\"\n",
        "",
        "",
        "off",
    ),
    (
        "cursor",
        GH,
        CURSOR,
        r#"{"permissions": ["Mcp(gh:rm)"]}"#,
        "stays",
    ),
    (
        "cursor",
        GH,
        CURSOR,
        r#"{"permissions": {"ask": ["Mcp(gh:rm)"]}}"#,
        r#"{"ask": ["rm"]}"#,
    ),
    (
        "cursor",
        GH,
        CURSOR,
        r#"{"permissions": {"block": ["Mcp(gh:rm)"]}}"#,
        "stays",
    ),
    (
        "cursor",
        GH,
        CURSOR,
        r#"{"permissions": {"deny": ["Mcp(gh/rm)"]}}"#,
        "stays",
    ),
    (
        "cursor",
        GH,
        CURSOR,
        r#"{"permissions": {"deny": ["Mcp(*:search_*)"]}}"#,
        "stays",
    ),
    ("cursor", GH, CURSOR, r#"["Mcp(gh:rm)"]"#, "stays"),
    (
        "kiro",
        r#"{"mcpServers": {"gh": {"command": "x", "disabled": "true"}}}"#,
        "",
        "",
        "off",
    ),
    (
        "windsurf",
        r#"{"mcpServers": {"gh": {"command": "x", "disabledTools": "rm"}}}"#,
        "",
        "",
        "stays",
    ),
    (
        "roo",
        r#"{"mcpServers": {"gh": {"command": "x", "disabledTools": [{"name": "rm"}]}}}"#,
        "",
        "",
        "stays",
    ),
    (
        "copilot-cli",
        r#"{"mcpServers": {"gh": {"type": "local", "command": "x", "tools": "get"}}}"#,
        "",
        "",
        "stays",
    ),
    (
        "copilot-cli",
        r#"{"mcpServers": {"gh": {"type": "local", "command": "x"}}}"#,
        ".copilot/settings.json",
        r#"{"disabledMcpServers": "gh"}"#,
        "off",
    ),
];

#[test]
fn a_rule_that_is_misread_is_no_permission() {
    let mut wrong = Vec::new();
    for (client, content, file, more, expected) in RULES {
        let machine = Machine::new();
        machine.put(user_file(client), content);
        if !file.is_empty() {
            machine.put(file, more);
        }
        machine.put(
            user_file("lm-studio"),
            r#"{"mcpServers": {"k": {"command": "k"}}}"#,
        );
        // Rules that stop a migration stop all of it: without `gh`, the rest moves.
        let outcome = machine.run(&["migrate", "--yes", "--json"]);
        let report = outcome.json();
        let (said, why) = verdict(&report, "gh");
        let entry = machine.servers()["gh"].clone();
        let mut seen = match said.as_str() {
            "stays" if !why.is_empty() && entry.is_null() => "stays".to_owned(),
            _ if entry["disabled"] == true => "off".to_owned(),
            _ => entry["tools"].to_string(),
        };
        if let Ok(tools) = serde_json::from_str::<Value>(expected)
            && entry["tools"] == tools
        {
            seen = (*expected).to_owned();
        }
        let rest = machine.run(&["migrate", "--yes", "--only", "k"]);
        assert!(matches!(rest.code, Some(0 | 6)), "{rest}");
        let is_kept = *expected != "stays" || machine.read(user_file(client)) == *content;
        if seen != *expected || machine.servers()["k"].is_null() || !is_kept {
            wrong.push(format!(
                "{client} {content} {more}: {expected}, not {seen} ({why})"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_denial_that_reaches_our_own_tools_keeps_us_from_being_connected() {
    for denied in [
        "Mcp(*:*)",
        "Mcp(*)",
        "Mcp(*:search_*)",
        "Mcp(mcpzip:execute_tool)",
    ] {
        let machine = Machine::new();
        machine.put(user_file("cursor"), GH);
        let denied = json!({ "permissions": { "deny": [denied] } });
        machine.put(CURSOR, &denied.to_string());
        let refused = machine.run(&["connect", "cursor"]).code(1);
        assert!(
            refused.stderr.contains("would not run"),
            "{denied}: {refused}"
        );
        let report = machine.migrate(&[]);
        let (said, why) = verdict(&report, "gh");
        assert!(
            said == "stays" && why.contains("would not run"),
            "{denied}: {said} {why}"
        );
        assert_eq!(machine.read(user_file("cursor")), GH, "{denied}");
    }
}

/// A client, a file with a hook that may look at the tools of `gh`, and one of the same form that does not.
const HOOKS: &[(&str, &str, &str, &str)] = &[
    (
        "cursor",
        ".cursor/hooks.json",
        r#"{"version": 1, "hooks": {"beforeMCPExecution": [{"command": "./look.sh"}]}}"#,
        r#"{"version": 1, "hooks": {"afterFileEdit": [{"command": "./look.sh"}]}}"#,
    ),
    (
        "cursor",
        ".cursor/hooks.json",
        r#"{"hooks": {"preToolUse": [{"command": "./look.sh", "matcher": "Shell|MCP:rm"}]}}"#,
        r#"{"hooks": {"preToolUse": [{"command": "./look.sh", "matcher": "Shell|Write"}]}}"#,
    ),
    (
        "windsurf",
        ".codeium/windsurf/hooks.json",
        r#"{"hooks": {"pre_mcp_tool_use": [{"command": "./look.sh"}]}}"#,
        r#"{"hooks": {"pre_run_command": [{"command": "./look.sh"}]}}"#,
    ),
    (
        "gemini-cli",
        ".gemini/settings.json",
        r#"{"mcpServers": {"gh": {"command": "x"}}, "hooks": {"BeforeTool": [{"matcher": "mcp_gh_.*", "hooks": []}]}}"#,
        r#"{"mcpServers": {"gh": {"command": "x"}}, "hooks": {"BeforeTool": [{"matcher": "^write_file$|^mcp_other_.*", "hooks": []}]}}"#,
    ),
    (
        "codex",
        ".codex/hooks.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__gh__rm", "hooks": []}]}}"#,
        r#"{"hooks": {"PreToolUse": [{"matcher": "^Bash$", "hooks": []}]}}"#,
    ),
    (
        "codex",
        ".codex/config.toml",
        "[mcp_servers.gh]\ncommand = \"x\"\n\n[[hooks.PreToolUse]]\nmatcher = \"mcp__.*\"\n",
        "[mcp_servers.gh]\ncommand = \"x\"\n\n[[hooks.Stop]]\nmatcher = \"mcp__.*\"\n",
    ),
    (
        "kiro",
        ".kiro/agents/a.json",
        r#"{"name": "a", "hooks": {"preToolUse": [{"matcher": "@gh/rm", "command": "./look.sh"}]}}"#,
        r#"{"name": "a", "hooks": {"preToolUse": [{"matcher": "fs_write", "command": "./look.sh"}]}}"#,
    ),
    (
        "kiro",
        ".kiro/hooks/a.json",
        r#"{"version": "v1", "hooks": [{"name": "a", "trigger": "PreToolUse", "matcher": "@gh"}]}"#,
        r#"{"version": "v1", "hooks": [{"name": "a", "trigger": "PreToolUse", "matcher": "@gh", "enabled": false}]}"#,
    ),
    (
        "copilot-cli",
        ".copilot/hooks/a.json",
        r#"{"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "./look.sh"}]}}"#,
        r#"{"version": 1, "hooks": {"sessionEnd": [{"type": "command", "bash": "./look.sh"}]}}"#,
    ),
];

#[test]
fn a_hook_of_any_client_keeps_the_servers_whose_calls_it_sees() {
    for (client, file, sees, sees_not) in HOOKS {
        for (hook, stays) in [(sees, true), (sees_not, false)] {
            let machine = Machine::new();
            match *client {
                "codex" => machine.put(user_file(client), "[mcp_servers.gh]\ncommand = \"x\"\n"),
                _ => machine.put(user_file(client), GH),
            };
            machine.put(file, hook);
            let outcome = machine.run(&["migrate", "--yes", "--json"]);
            let report = outcome.code(i32::from(stays)).json();
            let (said, why) = verdict(&report, "gh");
            assert_eq!(said == "stays", stays, "{client} {hook}: {said} {why}");
            if stays {
                assert_eq!(
                    report["blocking_rules"][0]["kind"], "hook",
                    "{hook}: {report:#}"
                );
            }
        }
    }
}

#[test]
fn tools_that_geminis_settings_leave_out_stay_out() {
    // A name without a server leaves out the tool of each server.
    for excluded in [
        r#""tools": {"exclude": ["mcp_gh_rm", "mcp_other_ls"]}"#,
        r#""tools": {"exclude": ["rm"]}"#,
        r#""excludeTools": ["gh__rm", "run_shell_command(rm)"]"#,
    ] {
        let machine = Machine::new();
        let content = format!(r#"{{"mcpServers": {{"gh": {{"command": "x"}}}}, {excluded}}}"#);
        machine.put(user_file("gemini-cli"), &content);
        let report = machine.migrate(&[]);
        let tools = &machine.servers()["gh"]["tools"];
        assert_eq!(*tools, json!({ "deny": ["rm"] }), "{excluded}: {report:#}");
    }
}
