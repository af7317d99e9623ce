//! Rules of the clients that name servers and tools.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};
use crate::support::Server;
use crate::support::script::answer;

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
        .map(|rule| {
            format!(
                "{} {}",
                rule["kind"].as_str().unwrap(),
                rule["server"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn a_rule_that_cannot_be_carried_over_stops_the_migration() {
    for (file, content) in [
        (
            ".claude/settings.json",
            r#"{"permissions": {"deny": ["mcp__github__create_issue(repo:x)"]}}"#,
        ),
        (
            ".claude/settings.json",
            r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__github__.*", "hooks": []}]}}"#,
        ),
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
        let looked = machine.run(&["migrate", "--dry-run"]).code(1);
        assert_eq!(looked.stderr, stopped.stderr, "{content}");
        assert_eq!(looked.json(), stopped.json(), "{content}");
        assert!(
            stopped.stderr.contains("`github`") && stopped.stderr.contains("--drop-rules"),
            "{content}: {stopped}"
        );
        assert_eq!(
            kinds(&stopped.json(), "blocking_rules").len(),
            1,
            "{stopped}"
        );
        assert_eq!(machine.everything(), before, "{content}");

        machine.migrate(&["--only", "other"]);
        assert!(machine.read(".claude.json").contains("github-mcp"));
        let report = machine.migrate(&["--drop-rules"]);
        assert_eq!(kinds(&report, "lost_rules").len(), 1, "{report:#}");
        assert!(!machine.read(".claude.json").contains("github-mcp"));
        assert_eq!(
            machine.read(file),
            content,
            "the client's own rules are the user's"
        );
    }
}

#[test]
fn what_was_denied_or_asked_about_is_so_behind_mcpzip() {
    for (file, permissions, tools) in [
        (
            ".claude/settings.json",
            r#"{"deny": ["mcp__github__delete_repo"]}"#,
            json!({ "deny": ["delete_repo"] }),
        ),
        (
            ".claude/settings.json",
            r#"{"deny": ["Bash(rm *)", "mcp__github"]}"#,
            json!({ "deny": ["*"] }),
        ),
        (
            ".claude/settings.local.json",
            r#"{"deny": ["mcp__github__*"]}"#,
            json!({ "deny": ["*"] }),
        ),
        (
            ".claude/settings.json",
            r#"{"deny": ["mcp__*__delete_*"]}"#,
            json!({ "deny": ["delete_*"] }),
        ),
        (
            ".claude/settings.json",
            r#"{"ask": ["mcp__github"]}"#,
            json!({ "ask": ["*"] }),
        ),
        (
            ".claude/settings.json",
            r#"{"allow": ["mcp__github__get"], "ask": ["mcp__github__set"], "deny": ["mcp__github__a", "mcp__git*__b"]}"#,
            json!({ "ask": ["set"], "deny": ["a", "b"] }),
        ),
        (
            "work/.claude/settings.json",
            r#"{"deny": ["mcp__github__x"]}"#,
            json!({ "deny": ["x"] }),
        ),
    ] {
        let content = format!(r#"{{"permissions": {permissions}}}"#);
        let machine = claude(file, &content);
        let project = machine.home("work").display().to_string();
        machine.put(
            user_file("claude-code"),
            &GITHUB.replace("PROJECT", &project),
        );
        let before = machine.everything();
        let report = machine.migrate(&[]);
        assert_eq!(
            machine.servers()["github"]["tools"],
            tools,
            "{content}: {report:#}"
        );
        assert_eq!(machine.read(file), content);
        if file.starts_with("work") {
            assert_eq!(report["carried_rules"][0]["project"], project, "{report:#}");
        }
        machine.undo();
        assert_eq!(machine.everything(), before);
    }
}

#[test]
fn a_server_that_is_off_in_a_project_is_not_there_in_it() {
    let machine = claude(".claude/x", "");
    let off = GITHUB.replace(
        r#""disabledMcpServers": []"#,
        r#""disabledMcpServers": ["github"]"#,
    );
    let project = machine.home("work").display().to_string();
    machine.put(user_file("claude-code"), &off.replace("PROJECT", &project));
    let report = machine.migrate(&[]);
    assert_eq!(
        kinds(&report, "carried_rules"),
        ["deny github"],
        "{report:#}"
    );
    assert_eq!(
        machine.servers()["github"]["projects"],
        json!([format!("!{project}")])
    );
    assert!(machine.servers()["other"]["projects"].is_null());
}

#[test]
fn two_clients_with_other_rules_get_the_stricter_ones_and_are_told() {
    let machine = Machine::new();
    let one = r#"{"mcpServers": {"x": {"command": "x", "disabledTools": ["rm"]}}}"#;
    machine.put(user_file("windsurf"), one);
    let two = r#"{"mcpServers": {"x": {"command": "x", "includeTools": ["get", "rm"]}}}"#;
    machine.put(user_file("gemini-cli"), two);
    let report = machine.migrate(&[]);
    assert_eq!(
        machine.servers(),
        json!({ "x": { "command": "x", "tools": { "allow": ["get", "rm"], "deny": ["rm"] } } })
    );
    let notes = report["servers"].to_string();
    assert!(
        notes.contains("stricter rules than it had in mcpzip")
            && notes.contains("stricter rules that it has in mcpzip"),
        "{notes}"
    );
    let tightened = report["tightened"].to_string();
    for line in [
        "`x` has 2 allowed tools for all clients, because of Gemini CLI's `includeTools`",
        "`x` has one denied tool (`rm`) for all clients, because of Windsurf's `disabledTools`",
    ] {
        assert!(tightened.contains(line), "{line}: {tightened}");
    }
    // A client that comes later restricts what is there already, and its undo gives it back.
    let settled = std::fs::read_to_string(machine.setup().config_path()).unwrap();
    machine.put(
        user_file("kiro"),
        r#"{"mcpServers": {"x": {"command": "x", "disabledTools": ["get"]}}}"#,
    );
    machine.migrate(&[]);
    assert_eq!(
        machine.servers()["x"]["tools"],
        json!({ "allow": ["get", "rm"], "deny": ["get", "rm"] })
    );
    machine.undo();
    assert_eq!(
        std::fs::read_to_string(machine.setup().config_path()).unwrap(),
        settled
    );
}

#[test]
fn the_rules_hold_where_they_came_from_another_client() {
    let machine = claude(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__github__greet"]}}"#,
    );
    let setup = machine
        .setup()
        .clone()
        .server("github", Server::new().tool("greet", [answer("hello")]));
    setup.save();
    let entry = machine.servers()["github"].clone();
    let file = json!({ "mcpServers": { "github": entry } }).to_string();
    std::fs::remove_file(setup.config_path()).unwrap();
    machine.put(user_file("claude-code"), &file);
    machine.migrate(&[]);
    let refused = machine.run(&["call", "github__greet", "{}"]).code(1);
    assert!(refused.stderr.contains("rules"), "{refused}");
}

#[test]
fn a_rule_that_protects_nothing_is_listed_and_stops_nothing() {
    for (file, content, kind) in [
        (
            ".claude/settings.json",
            r#"{"permissions": {"allow": ["mcp__github__get_issue"]}}"#,
            "allow github",
        ),
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
        (
            ".claude/skills/a/SKILL.md",
            "---\nname: a\nallowed-tools: mcp__github__get_issue\n---\n",
            "tools github",
        ),
        (
            ".claude/commands/x/y.md",
            "---\nallowed-tools: Bash, mcp__github__get_issue\n---\n",
            "tools github",
        ),
    ] {
        let machine = claude(file, content);
        let report = machine.migrate(&[]);
        assert_eq!(
            kinds(&report, "lost_rules"),
            [kind],
            "{content}: {report:#}"
        );
        assert_eq!(
            report["lost_rules"][0]["file"],
            machine.home(file).to_str().unwrap()
        );
        assert!(machine.servers()["github"]["tools"].is_null());
    }
}

#[test]
fn a_rule_holds_for_the_same_server_under_another_name() {
    let machine = claude(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__github__delete_repo"]}}"#,
    );
    let all: Value = serde_json::from_str(GITHUB).unwrap();
    let mut entry = all["mcpServers"]["github"].clone();
    entry["disabledTools"] = json!(["merge"]);
    let other = json!({ "mcpServers": { "hub": entry, "x": { "command": "x" } } });
    machine.put(user_file("kiro"), &other.to_string());
    let report = machine.migrate(&[]);
    let servers = machine.servers();
    let both = json!(["delete_repo", "merge"]);
    assert_eq!(servers["github"]["tools"]["deny"], both, "{report:#}");
    assert_eq!(servers["hub"]["tools"]["deny"], both, "{report:#}");
    assert!(servers["x"]["tools"].is_null());
    let limits = report["tightened"].to_string();
    for line in [
        "`hub` has one denied tool (`delete_repo`) for all clients, because of `github`",
        "`github` has one denied tool (`merge`) for all clients, because of `hub`",
    ] {
        assert!(limits.contains(line), "{line}: {limits}");
    }
}

/// A server of Kiro that runs the program of Claude Code's `github`.
fn put_hub(machine: &Machine) {
    let all: Value = serde_json::from_str(GITHUB).unwrap();
    let entry = &all["mcpServers"]["github"];
    let hub = json!({ "mcpServers": { "hub": entry, "x": { "command": "x" } } });
    machine.put(user_file("kiro"), &hub.to_string());
}

#[test]
fn a_rule_about_a_server_that_stays_holds_for_an_equal_one_that_moves() {
    let machine = claude(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__github__delete_repo"], "ask": ["mcp__github__merge"]}}"#,
    );
    put_hub(&machine);
    let report = machine.migrate(&["--only", "hub", "--only", "x"]);
    let servers = machine.servers();
    assert!(servers["github"].is_null(), "{report:#}");
    assert_eq!(
        servers["hub"]["tools"]["deny"],
        json!(["delete_repo"]),
        "{report:#}"
    );
    assert_eq!(servers["hub"]["tools"]["ask"], json!(["merge"]));
    assert!(servers["x"]["tools"].is_null());
    let limits = report["tightened"].to_string();
    assert!(
        limits.contains("because of `github` of Claude Code, which runs the same program or URL"),
        "{limits}"
    );
}

#[test]
fn a_rule_that_cannot_be_carried_over_keeps_an_equal_server_of_another_client() {
    let machine = claude(
        ".claude/settings.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__github__.*", "hooks": []}]}}"#,
    );
    put_hub(&machine);
    // It stays, which does not keep the other one of its name.
    machine.put(user_file("cursor"), r#"{"mcpServers": {"x": {}}}"#);
    let stopped = machine.run(&["migrate", "--yes"]).code(1);
    assert!(
        stopped
            .stderr
            .contains("`mcpzip migrate --only other --only x` moves the other servers"),
        "{stopped}"
    );
    let stopped = machine.run(&["migrate", "--yes", "--only", "hub"]).code(1);
    assert!(stopped.stdout.contains("would not hold"), "{stopped}");
    let _ = machine
        .run(&["migrate", "--yes", "--only", "other", "--only", "x"])
        .code(0);
    let servers = machine.servers();
    assert!(
        servers["hub"].is_null() && servers["x"].is_object(),
        "{servers:#}"
    );
    let _ = machine.migrate(&["--drop-rules"]);
    assert!(machine.servers()["hub"].is_object());
}

#[test]
fn a_rule_that_was_carried_over_is_no_reason_for_a_warning() {
    let machine = claude(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__github__delete_repo"]}}"#,
    );
    let _ = machine.migrate(&[]);
    let warned = |machine: &Machine| {
        let told = machine.run(&["connect", "claude-code"]).code(0);
        told.stderr.contains("permissions.deny")
    };
    assert!(!warned(&machine));
    machine.put(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__github__delete_repo", "mcp__github__merge"]}}"#,
    );
    assert!(warned(&machine));
}

#[test]
fn rules_about_others_or_about_all_servers_stop_nothing() {
    for rule in [
        "mcp__gitlab__x",
        "mcp__githubber",
        "mcp__*",
        "Bash",
        "mcp__git__hub",
    ] {
        let machine = claude(
            ".claude/settings.json",
            &format!(r#"{{"permissions": {{"deny": ["{rule}"]}}}}"#),
        );
        let report = machine.migrate(&[]);
        assert!(
            kinds(&report, "lost_rules").is_empty(),
            "{rule}: {report:#}"
        );
    }
}

/// A client's file with the server `x`, and what its rules come to; nothing where they stop the migration.
const IN_ENTRIES: &[(&str, &str, Option<&str>)] = &[
    (
        "windsurf",
        r#"{"mcpServers": {"x": {"command": "x", "disabledTools": ["rm"]}}}"#,
        Some(r#"{"deny": ["rm"]}"#),
    ),
    (
        "kiro",
        r#"{"mcpServers": {"x": {"command": "x", "disabledTools": ["rm", "mv"]}}}"#,
        Some(r#"{"deny": ["mv", "rm"]}"#),
    ),
    (
        "roo",
        r#"{"mcpServers": {"x": {"command": "x", "disabledTools": []}}}"#,
        Some("null"),
    ),
    (
        "gemini-cli",
        r#"{"mcpServers": {"x": {"command": "x", "includeTools": ["get(a)"]}}}"#,
        Some(r#"{"allow": ["get"]}"#),
    ),
    (
        "gemini-cli",
        r#"{"mcpServers": {"x": {"command": "x", "includeTools": []}}}"#,
        Some(r#"{"allow": []}"#),
    ),
    (
        "gemini-cli",
        r#"{"mcpServers": {"x": {"command": "x", "includeTools": ["a", "b"], "excludeTools": ["b"]}}}"#,
        Some(r#"{"allow": ["a", "b"], "deny": ["b"]}"#),
    ),
    (
        "gemini-cli",
        r#"{"mcpServers": {"x": {"command": "x", "trust": true}}}"#,
        Some("null"),
    ),
    (
        "copilot-cli",
        r#"{"mcpServers": {"x": {"type": "local", "command": "x", "tools": ["get"]}}}"#,
        Some(r#"{"allow": ["get"]}"#),
    ),
    (
        "copilot-cli",
        r#"{"mcpServers": {"x": {"type": "local", "command": "x", "tools": []}}}"#,
        Some(r#"{"allow": []}"#),
    ),
    (
        "claude-code",
        r#"{"mcpServers": {"x": {"command": "x", "tools": {"rm": "deny"}}}}"#,
        None,
    ),
    (
        "codex",
        "[mcp_servers.x]\ncommand = \"x\"\nenabled_tools = [\"get\"]\n",
        Some(r#"{"allow": ["get"]}"#),
    ),
    (
        "codex",
        "[mcp_servers.x]\ncommand = \"x\"\ndisabled_tools = [\"rm\"]\n",
        Some(r#"{"deny": ["rm"]}"#),
    ),
    (
        "codex",
        "[mcp_servers.x]\ncommand = \"x\"\n[mcp_servers.x.tools.rm]\napproval_mode = \"prompt\"\n",
        Some(r#"{"ask": ["rm"]}"#),
    ),
    (
        "codex",
        "[mcp_servers.x]\ncommand = \"x\"\n[mcp_servers.x.tools.rm]\nenabled = false\n",
        Some(r#"{"deny": ["rm"]}"#),
    ),
    (
        "codex",
        "[mcp_servers.x]\ncommand = \"x\"\n[mcp_servers.x.tools.rm]\napproval_mode = \"approve\"\n",
        Some("null"),
    ),
    (
        "codex",
        "[mcp_servers.x]\ncommand = \"x\"\ndefault_tools_approval_mode = \"prompt\"\n",
        Some(r#"{"ask": ["*"]}"#),
    ),
    (
        "codex",
        "[mcp_servers.x]\ncommand = \"x\"\ndefault_tools_enabled = false\n",
        None,
    ),
    (
        "goose",
        "extensions:\n  x:\n    type: stdio\n    cmd: x\n    available_tools: [get]\n",
        Some(r#"{"allow": ["get"]}"#),
    ),
    (
        "goose",
        "extensions:\n  x:\n    type: stdio\n    cmd: x\n    available_tools: []\n",
        Some("null"),
    ),
    (
        "opencode",
        r#"{"mcp": {"x": {"type": "local", "command": ["x"]}}, "tools": {"x_rm*": false}}"#,
        Some(r#"{"deny": ["rm*"]}"#),
    ),
    (
        "opencode",
        r#"{"mcp": {"x": {"type": "local", "command": ["x"]}}, "tools": {"x_*": false, "x_get": true, "xy_z": false}}"#,
        Some(r#"{"allow": ["get"]}"#),
    ),
    (
        "opencode",
        r#"{"mcp": {"x": {"type": "local", "command": ["x"]}}, "permission": {"x_*": "ask", "x_rm": "deny"}}"#,
        Some(r#"{"ask": ["*"], "deny": ["rm"]}"#),
    ),
    (
        "opencode",
        r#"{"mcp": {"x": {"type": "local", "command": ["x"]}}, "permission": {"x_rm": {"*": "ask", "a*": "allow"}}}"#,
        Some(r#"{"ask": ["rm"]}"#),
    ),
    (
        "opencode",
        r#"{"mcp": {"x": {"type": "local", "command": ["x"]}}, "agent": {"a": {"permission": {"x_rm": {"*": "ask", "a*": "allow"}}}}}"#,
        Some(r#"{"ask": ["rm"]}"#),
    ),
    (
        "opencode",
        r#"{"mcp": {"x": {"type": "local", "command": ["x"]}}, "permission": {"x_rm": {"*": "ask", "a*": "deny"}}}"#,
        None,
    ),
    // What `*.txt` leaves out stays denied.
    (
        "opencode",
        r#"{"mcp": {"x": {"type": "local", "command": ["x"]}}, "permission": {"x_*": "deny", "x_rm": {"*.txt": "ask"}}}"#,
        Some(r#"{"deny": ["*"], "ask": ["rm"]}"#),
    ),
    (
        "opencode",
        r#"{"mcp": {"x": {"type": "local", "command": ["x"]}}, "agent": {"a": {"permission": {"x_*": "deny"}}}}"#,
        None,
    ),
    (
        "zed",
        r#"{"context_servers": {"x": {"command": "x", "args": []}}, "agent": {"tool_permissions": {"tools": {"mcp:x:rm": {"default": "deny"}, "mcp:x:mv": {"default": "confirm"}}}}}"#,
        Some(r#"{"ask": ["mv"], "deny": ["rm"]}"#),
    ),
    (
        "zed",
        r#"{"context_servers": {"x": {"command": "x", "args": []}}, "agent": {"tool_permissions": {"tools": {"mcp:x:rm": {"default": "allow", "always_deny": [{"pattern": "/"}]}}}}}"#,
        None,
    ),
    (
        "roo",
        r#"{"mcpServers": {"x": {"command": "x", "alwaysAllow": ["get"]}}}"#,
        Some("null"),
    ),
    (
        "cline",
        r#"{"mcpServers": {"x": {"command": "x", "autoApprove": ["get"]}}}"#,
        Some("null"),
    ),
    (
        "kiro",
        r#"{"mcpServers": {"x": {"command": "x", "autoApprove": ["*"]}}}"#,
        Some("null"),
    ),
];

#[test]
fn lists_of_tools_in_a_file_become_rules_of_the_entry() {
    for (client, content, tools) in IN_ENTRIES {
        let machine = Machine::new();
        machine.put(user_file(client), content);
        if tools.is_none() {
            let stopped = machine.run(&["migrate", "--yes"]).code(1);
            assert_eq!(
                kinds(&stopped.json(), "blocking_rules"),
                ["deny x"],
                "{content}: {stopped}"
            );
            assert_eq!(machine.read(user_file(client)), *content);
        }
        let report = machine.migrate(&["--drop-rules"]);
        let expected: Value = serde_json::from_str(tools.unwrap_or("null")).unwrap();
        assert_eq!(
            machine.servers()["x"]["tools"],
            expected,
            "{client} {content}: {report:#}"
        );
        machine.undo();
        assert_eq!(machine.read(user_file(client)), *content);
    }
}

#[test]
fn cursors_permissions_are_carried_over() {
    let machine = Machine::new();
    machine.put(
        user_file("cursor"),
        r#"{"mcpServers": {"x": {"command": "x"}}}"#,
    );
    machine.put(
        ".cursor/cli-config.json",
        r#"{"permissions": {"allow": ["Mcp(x:get)"], "deny": ["Mcp(x:rm)", "Shell(rm)"]}}"#,
    );
    machine.migrate(&[]);
    assert_eq!(machine.servers()["x"]["tools"], json!({ "deny": ["rm"] }));
}

#[test]
fn what_a_policy_blocks_does_not_get_around_it() {
    for policy in [
        r#"{"deniedMcpServers": [{"serverName": "github"}]}"#,
        r#"{"deniedMcpServers": [{"serverCommand": ["github-mcp"]}]}"#,
        r#"{"allowedMcpServers": [{"serverName": "other"}, {"serverName": "mcpzip"}]}"#,
    ] {
        let machine = claude(".claude/settings.json", policy);
        let report = machine.migrate(&[]);
        let (said, why) = verdict(&report, "github");
        assert!(
            said == "stays" && why.contains("is blocked"),
            "{policy}: {said}: {why}"
        );
        assert!(machine.servers()["github"].is_null() && !machine.servers()["other"].is_null());
    }
}

/// A Claude Code with the server `git` in the project `p`, its settings, and a Codex with another `git`.
fn two_gits(entry: &str, settings: &str, codex: &str) -> Machine {
    let machine = Machine::new();
    let project = machine.home("p");
    std::fs::create_dir_all(&project).unwrap();
    let servers = json!({ "git": serde_json::from_str::<Value>(entry).unwrap() });
    let claude = json!({ "projects": { project.to_str().unwrap(): { "mcpServers": servers } } });
    machine.put(user_file("claude-code"), &claude.to_string());
    machine.put(".claude/settings.json", settings);
    machine.put(user_file("codex"), codex);
    machine
}

#[test]
fn a_rule_also_holds_for_the_same_program_in_a_project() {
    let entry = r#"{"command": "git-mcp", "args": []}"#;
    let deny = r#"{"permissions": {"deny": ["mcp__git__get-env"]}}"#;
    let codex = "[mcp_servers.git]\ncommand = \"git-mcp\"\n";
    for (settings, codex, key, tool) in [
        (deny, codex.to_owned(), "deny", "get-env"),
        (
            "{}",
            format!("{codex}enabled_tools = [\"echo\"]\n"),
            "allow",
            "echo",
        ),
    ] {
        let machine = two_gits(entry, settings, &codex);
        let report = machine.migrate(&[]);
        let servers = machine.servers();
        for name in ["git", "git-codex"] {
            assert_eq!(
                servers[name]["tools"][key],
                json!([tool]),
                "{servers:#} {report:#}"
            );
        }
    }
}

#[test]
fn another_server_of_the_same_name_has_none_of_its_rules_and_the_plan_says_so() {
    let entry = r#"{"command": "git-mcp", "args": ["all"]}"#;
    let deny = r#"{"permissions": {"deny": ["mcp__git__get-env"]}}"#;
    let machine = two_gits(entry, deny, "[mcp_servers.git]\ncommand = \"git-mcp\"\n");
    let report = machine.migrate(&[]);
    let servers = machine.servers();
    assert!(servers["git-codex"]["tools"].is_null(), "{servers:#}");
    let warnings = report["warnings"].to_string();
    assert!(
        warnings.contains("`git-codex` does not have the rules of `git`"),
        "{warnings}"
    );
}

#[test]
fn a_plan_says_which_servers_are_off_and_what_a_merged_one_loses() {
    let machine = Machine::new();
    machine
        .setup()
        .save_text(r#"{"mcpServers": {"git": {"command": "git-mcp"}}}"#);
    machine.put(
        user_file("claude-code"),
        r#"{"mcpServers": {"web": {"command": "web-mcp"}}}"#,
    );
    machine.put(
        user_file("codex"),
        "[mcp_servers.git]\ncommand = \"git-mcp\"\nenabled = false\ntool_timeout_sec = 300\n\
         [mcp_servers.own]\ncommand = \"own-mcp\"\nenabled = false\n",
    );
    // Without the rules, because Codex has switched off a server that mcpzip has on.
    let report = machine
        .run(&["migrate", "--dry-run", "--drop-rules", "--json"])
        .code(0)
        .json();
    let notes = |client: &str, server: &str| {
        let servers = report["servers"].as_array().unwrap();
        let found = servers
            .iter()
            .find(|one| one["client"] == client && one["server"] == server);
        found.unwrap()["notes"].to_string()
    };
    let of_codex = notes("codex", "git");
    assert!(
        of_codex.contains("is switched off in Codex, and on here")
            && of_codex.contains("its time limit of 300s is not taken over"),
        "{report:#}"
    );
    assert!(!notes("claude-code", "web").contains("switched off"));
    assert_eq!(notes("codex", "own"), "[]", "{report:#}");
    if let Some(terminal) = crate::support::terminal::Terminal::run(&machine.setup().command(&[
        "migrate",
        "--dry-run",
        "--drop-rules",
    ])) {
        let screen = terminal.shows("[exit 0]");
        assert!(screen.contains("moves own, switched off"), "{screen}");
        assert!(!screen.contains("moves web, switched off"), "{screen}");
    }
}
