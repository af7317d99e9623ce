//! Rules in files that are easily overlooked, and rules of one client about the servers of another.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};
use crate::support::command;

const GIT: &str = r#"{"mcpServers": {"git": {"command": "git-mcp"}}}"#;
const WEB: &str = r#"{"mcpServers": {"web": {"command": "web-mcp"}}}"#;
const OPENCODE: &str = r#"{"mcp": {"git": {"type": "local", "command": ["git-mcp"]}}}"#;
const GEMINI_POLICY: &str =
    "[[rule]]\ntoolName = \"mcp_git_rm\"\ndecision = \"deny\"\npriority = 5\n";
const OPENCODE_RULE: &str = r#"{"permission": {"git_rm": "deny"}}"#;

/// A client, its file, another file and its content, and a variable that is set.
const CARRIED: &[(&str, &str, &str, &str, &str)] = &[
    (
        "opencode",
        OPENCODE,
        ".config/opencode/opencode.jsonc",
        OPENCODE_RULE,
        "",
    ),
    (
        "opencode",
        OPENCODE,
        ".config/opencode/config.json",
        OPENCODE_RULE,
        "",
    ),
    (
        "opencode",
        OPENCODE,
        "work/.opencode/opencode.json",
        OPENCODE_RULE,
        "",
    ),
    (
        "opencode",
        OPENCODE,
        "elsewhere/more.json",
        OPENCODE_RULE,
        "OPENCODE_CONFIG=elsewhere/more.json",
    ),
    (
        "cursor",
        GIT,
        "elsewhere/cursor/cli-config.json",
        r#"{"permissions": {"deny": ["Mcp(git:rm)"]}}"#,
        "XDG_CONFIG_HOME=elsewhere",
    ),
    (
        "gemini-cli",
        GIT,
        "admin/company.json",
        r#"{"tools": {"exclude": ["mcp_git_rm"]}}"#,
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH=admin/company.json",
    ),
    (
        "cursor",
        GIT,
        "known/.cursor/cli.json",
        r#"{"permissions": {"deny": ["Mcp(git:rm)"]}}"#,
        "",
    ),
    (
        "gemini-cli",
        GIT,
        ".gemini/extensions/guard/policies/a.toml",
        GEMINI_POLICY,
        "",
    ),
    (
        "gemini-cli",
        GIT,
        ".gemini/extensions/guard/gemini-extension.json",
        r#"{"name": "guard", "excludeTools": ["mcp_git_rm"]}"#,
        "",
    ),
    (
        "gemini-cli",
        r#"{"policyPaths": ["~/elsewhere"], "mcpServers": {"git": {"command": "git-mcp"}}}"#,
        "elsewhere/a.toml",
        GEMINI_POLICY,
        "",
    ),
    (
        "gemini-cli",
        r#"{"adminPolicyPaths": ["elsewhere/a.policy"], "mcpServers": {"git": {"command": "git-mcp"}}}"#,
        "elsewhere/a.policy",
        GEMINI_POLICY,
        "",
    ),
    (
        "gemini-cli",
        GIT,
        "known/.gemini/policies/a.toml",
        GEMINI_POLICY,
        "",
    ),
    (
        "goose",
        "extensions:\n  git:\n    name: my git\n    type: stdio\n    cmd: git-mcp\n",
        ".config/goose/permission.yaml",
        "user:\n  never_allow: [mygit__rm]\n",
        "",
    ),
];

fn migrate(machine: &Machine, variable: &str) -> command::Outcome {
    let mut command = machine.setup().command(&["migrate", "--yes", "--json"]);
    std::fs::create_dir_all(machine.home("work")).unwrap();
    command.current_dir(machine.home("work"));
    if let Some((name, file)) = variable.split_once('=') {
        command.env(name, machine.home(file));
    }
    command::run(command, "")
}

#[test]
fn rules_in_every_file_that_a_client_reads_come_over() {
    for (client, content, file, more, variable) in CARRIED {
        let machine = Machine::new();
        machine.put(user_file(client), content);
        let known = machine.home("known");
        let known = json!({ "projects": { known.to_str().unwrap(): {} } });
        machine.put(user_file("claude-code"), &known.to_string());
        machine.put(file, more);
        let report = migrate(&machine, variable).code(0).json();
        assert_eq!(
            report["carried_rules"][0]["becomes"], "tools.deny rm",
            "{client} {file}: {report:#}"
        );
    }
}

#[test]
fn hooks_of_plugins_and_conditional_settings_and_lists_of_literal_names_keep_a_server() {
    let machine = Machine::new();
    machine.put(user_file("claude-code"), GIT);
    let plugin = machine.home("plugin").display().to_string();
    let installed = json!({ "plugins": { "guard@m": [{ "installPath": plugin }] } });
    machine.put(
        ".claude/plugins/installed_plugins.json",
        &installed.to_string(),
    );
    machine.put(
        "plugin/hooks/hooks.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__git__.*", "hooks": []}]}}"#,
    );
    let report = migrate(&machine, "").json();
    assert_eq!(verdict(&report, "git").0, "stays", "{report:#}");
    for (client, content) in [
        (
            "codex",
            "[mcp_servers.git]\ncommand = \"git-mcp\"\nenabled_tools = [\"*\"]\n",
        ),
        (
            "zed",
            r#"{"context_servers": {"git": {"command": "git-mcp", "args": []}}, "linux": {"agent": {"tool_permissions": {"tools": {"mcp:git:rm": {"default": "deny"}}}}}}"#,
        ),
    ] {
        let machine = Machine::new();
        machine.put(user_file(client), content);
        let report = migrate(&machine, "").json();
        assert_eq!(verdict(&report, "git").0, "stays", "{client}: {report:#}");
    }
}

#[test]
fn hooks_that_the_manifest_of_a_plugin_names_keep_a_server() {
    let of = |matcher: &str| json!({ "PreToolUse": [{ "matcher": matcher, "hooks": [] }] });
    let (git, bash) = (of("mcp__git__.*"), of("Bash"));
    for (named, is_kept) in [
        (json!("./cfg/git.json"), true),
        (json!(["./cfg/bash.json", "./cfg/git.json"]), true),
        (json!("${CLAUDE_PLUGIN_ROOT}/cfg/git.json"), true),
        (git.clone(), true),
        (json!({ "hooks": git }), true),
        (json!([git]), true),
        // Their hooks are not known.
        (json!("./cfg/none.json"), true),
        (json!("./cfg/broken.json"), true),
        (json!("./cfg/other.json"), true),
        (json!(7), true),
        (json!("./cfg/bash.json"), false),
        (json!("./cfg/text.json"), false),
        (json!(["${CLAUDE_PLUGIN_ROOT}/cfg/bash.json", bash]), false),
        (json!([]), false),
    ] {
        let machine = Machine::new();
        machine.put(user_file("claude-code"), GIT);
        let plugins =
            json!({ "plugins": { "guard@m": [{ "installPath": machine.home("plugin") }] } });
        let manifest = json!({ "name": "guard", "hooks": named });
        for (file, content) in [
            (".claude/plugins/installed_plugins.json", plugins),
            ("plugin/.claude-plugin/plugin.json", manifest),
            ("plugin/cfg/git.json", json!({ "hooks": git })),
            ("plugin/cfg/bash.json", json!({ "hooks": bash })),
            ("plugin/cfg/other.json", json!({ "rules": git })),
            ("plugin/cfg/text.json", json!({ "description": "x" })),
        ] {
            machine.put(file, &content.to_string());
        }
        machine.put("plugin/cfg/broken.json", "{");
        let report = migrate(&machine, "").json();
        let (said, why) = verdict(&report, "git");
        assert_eq!(said == "stays", is_kept, "{named}: {report:#}");
        if named == "./cfg/none.json" {
            assert!(why.contains("it is not there"), "{why}");
        }
    }
}

#[cfg(unix)]
#[test]
fn links_that_lead_in_circles_below_skills_do_not_hold_a_migration_up() {
    let machine = Machine::new();
    machine.put(user_file("claude-code"), GIT);
    machine.put("work/.claude/skills/x/SKILL.md", "---\nname: x\n---\n");
    for link in 0..60 {
        let path = machine.home(&format!("work/.claude/skills/link{link}"));
        std::os::unix::fs::symlink(".", path).unwrap();
    }
    let started = std::time::Instant::now();
    let _ = migrate(&machine, "").code(0);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn connecting_a_client_warns_of_its_rules_about_servers_behind_mcpzip() {
    for (client, file, rules) in [
        (
            "claude-code",
            ".claude/settings.json",
            r#"{"permissions": {"deny": ["mcp__git__rm"]}}"#,
        ),
        (
            "cursor",
            ".cursor/cli-config.json",
            r#"{"permissions": {"deny": ["Mcp(git:rm)"]}}"#,
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            r#"{"permission": {"git_rm": "ask"}}"#,
        ),
    ] {
        let machine = Machine::new();
        machine.setup().save_text(GIT);
        machine.put(file, rules);
        let connect = machine.setup().command(&["connect", client]);
        let connected = command::run(connect, "").code(0);
        assert!(
            connected.stderr.contains("can call `git` through mcpzip"),
            "{client}: {connected}"
        );
        machine.setup().save_text("{");
        let connect = machine.setup().command(&["connect", client]);
        let connected = command::run(connect, "").code(0);
        assert!(
            connected.stderr.contains("could not be compared"),
            "{client}: {connected}"
        );
        // A server that no rule names is no reason for a warning.
        machine.setup().save_text(WEB);
        let connect = machine.setup().command(&["connect", client]);
        let connected = command::run(connect, "").code(0);
        assert!(
            !connected.stderr.contains("through mcpzip, where"),
            "{client}: {connected}"
        );
    }
}

#[test]
fn a_question_before_all_tools_is_kept_where_ours_need_none() {
    let machine = Machine::new();
    machine.put(user_file("gemini-cli"), GIT);
    machine.put(
        ".gemini/policies/all.toml",
        "[[rule]]\ntoolName = \"*\"\ndecision = \"ask_user\"\npriority = 1\n\n\
         [[rule]]\nmcpName = \"mcpzip\"\ndecision = \"allow\"\npriority = 2\n",
    );
    let report = migrate(&machine, "").code(0).json();
    let config = std::fs::read_to_string(machine.setup().config_path()).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(
        config["mcpServers"]["git"]["tools"]["ask"],
        json!(["*"]),
        "{report}"
    );
}
