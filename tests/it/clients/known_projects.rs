//! Rules in the files of a project that a client's file names: they count wherever a migration runs.

use serde_json::json;

use super::case::{Machine, user_file, verdict};
use crate::support::command;

const GH: &str = r#"{"mcpServers": {"gh": {"command": "x"}}}"#;
const CODEX: &str = "[mcp_servers.gh]\ncommand = \"x\"\n";
const COPILOT: &str =
    r#"{"mcpServers": {"gh": {"type": "local", "command": "x", "tools": ["*"]}}}"#;
const ZED: &str = r#"{"context_servers": {"gh": {"command": "x", "args": []}}}"#;
const OPENCODE: &str = r#"{"mcp": {"gh": {"type": "local", "command": ["x"]}}}"#;
const VS_CODE: &str = r#"{"servers": {"gh": {"command": "x"}}}"#;

/// A client, its file, and a project's file with what it says.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// Files that deny the tool `rm`.
const DENIES: &[Row] = &[
    (
        "cursor",
        GH,
        ".cursor/cli.json",
        r#"{"permissions": {"deny": ["Mcp(gh:rm)"]}}"#,
    ),
    (
        "gemini-cli",
        GH,
        ".gemini/policies/a.toml",
        "[[rule]]\nmcpName = \"gh\"\ntoolName = \"rm\"\ndecision = \"deny\"\npriority = 5\n",
    ),
    (
        "zed",
        ZED,
        ".zed/settings.json",
        r#"{"agent": {"tool_permissions": {"tools": {"mcp:gh:rm": {"default": "deny"}}}}}"#,
    ),
];

/// Files with a hook, or with a rule of one agent, that would stop working.
const BLOCKS: &[Row] = &[
    (
        "cursor",
        GH,
        ".cursor/hooks.json",
        r#"{"version": 1, "hooks": {"beforeMCPExecution": [{"command": "./look.sh"}]}}"#,
    ),
    (
        "kiro",
        GH,
        ".kiro/hooks/a.kiro.hook",
        r#"{"when": {"type": "preToolUse"}, "then": {"type": "runCommand", "command": "x"}}"#,
    ),
    (
        "kiro",
        GH,
        ".kiro/agents/a.json",
        r#"{"name": "a", "hooks": {"preToolUse": [{"matcher": "@gh/rm", "command": "x"}]}}"#,
    ),
    (
        "gemini-cli",
        GH,
        ".gemini/settings.json",
        r#"{"hooks": {"BeforeTool": [{"matcher": "mcp_gh_.*", "hooks": []}]}}"#,
    ),
    (
        "codex",
        CODEX,
        ".codex/hooks.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__gh__rm", "hooks": []}]}}"#,
    ),
    (
        "codex",
        CODEX,
        ".codex/config.toml",
        "[[hooks.PreToolUse]]\nmatcher = \"mcp__gh__.*\"\n",
    ),
    (
        "windsurf",
        GH,
        ".windsurf/hooks.json",
        r#"{"hooks": {"pre_mcp_tool_use": [{"command": "./look.sh"}]}}"#,
    ),
    (
        "copilot-cli",
        COPILOT,
        ".github/hooks/a.json",
        r#"{"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "x"}]}}"#,
    ),
    (
        "vscode",
        VS_CODE,
        ".github/hooks/a.json",
        r#"{"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "x"}]}}"#,
    ),
    ("cline", GH, ".clinerules/hooks/PreToolUse", "#!/bin/sh\n"),
    (
        "opencode",
        OPENCODE,
        ".opencode/agent/a.md",
        "---\ntools:\n  gh_rm: false\n---\n",
    ),
];

/// A client that has `gh`, and the project `work` with a file, which Claude Code's file names.
fn machine((client, user, file, content): &Row) -> Machine {
    let machine = Machine::new();
    machine.put(&format!("work/{file}"), content);
    let work = machine.home("work").display().to_string();
    let projects = json!({ "projects": { work: {} } });
    machine.put(user_file("claude-code"), &projects.to_string());
    machine.put(user_file(client), user);
    machine
}

/// Migrates in `directory` below the home.
fn migrate(machine: &Machine, directory: &str) -> command::Outcome {
    let mut command = machine.setup().command(&["migrate", "--yes", "--json"]);
    command.current_dir(machine.home(directory));
    command::run(command, "")
}

#[test]
fn what_a_known_project_denies_is_denied_wherever_the_migration_runs() {
    for (row, directory) in DENIES
        .iter()
        .flat_map(|row| ["", "work"].map(|at| (row, at)))
    {
        let machine = machine(row);
        let report = migrate(&machine, directory).code(0).json();
        let tools = &machine.servers()["gh"]["tools"];
        let expected = json!({ "deny": ["rm"] });
        assert_eq!(*tools, expected, "{row:?} in {directory:?}: {report:#}");
    }
}

#[test]
fn what_a_known_project_guards_stays_wherever_the_migration_runs() {
    for (row, directory) in BLOCKS
        .iter()
        .flat_map(|row| ["", "work"].map(|at| (row, at)))
    {
        let machine = machine(row);
        let report = migrate(&machine, directory).code(1).json();
        let rule = &report["blocking_rules"][0];
        let file = machine.home("work").join(row.2).display().to_string();
        assert_eq!(rule["file"], file, "{row:?} in {directory:?}: {report:#}");
        assert_eq!(verdict(&report, "gh").0, "stays", "{row:?}: {report:#}");
    }
}

#[test]
fn claude_codes_settings_count_in_a_project_that_only_codex_names() {
    let machine = Machine::new();
    let work = machine.home("work").display().to_string();
    machine.put(
        user_file("codex"),
        &format!("[projects.{work:?}]\ntrust_level = \"trusted\"\n"),
    );
    machine.put(user_file("claude-code"), GH);
    machine.put(
        "work/.claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__gh__rm"]}}"#,
    );
    let report = migrate(&machine, "").code(0).json();
    let tools = &machine.servers()["gh"]["tools"];
    assert_eq!(*tools, json!({ "deny": ["rm"] }), "{report:#}");
}

#[test]
fn a_projects_server_that_is_disabled_in_its_project_comes_switched_off() {
    // The directory of the file, the project that the decision is kept for, and what becomes of the server.
    for (at, key, is_off, projects) in [
        ("work", "", false, vec!["work"]),
        ("work", "work", true, vec!["work"]),
        ("work/part", "work", true, vec!["work/part"]),
        ("work", "work/part", false, vec!["work", "!work/part"]),
        ("work", "other", false, vec!["work"]),
    ] {
        let machine = Machine::new();
        let path = |directory: &str| machine.home(directory).display().to_string();
        machine.put("work/.git/HEAD", "");
        machine.put(&format!("{at}/.mcp.json"), GH);
        machine.put(
            ".claude/settings.json",
            r#"{"enabledMcpjsonServers": ["gh"]}"#,
        );
        let known = json!({ "projects": { path(key): { "disabledMcpServers": ["gh"] } } });
        machine.put(user_file("claude-code"), &known.to_string());
        let report = migrate(&machine, at).code(0).json();
        let gh = &machine.servers()["gh"];
        assert_eq!(gh["disabled"] == true, is_off, "{at} {key}: {report:#}");
        let absolute = |project: &&str| match project.strip_prefix('!') {
            Some(project) => format!("!{}", path(project)),
            None => path(project),
        };
        let expected: Vec<String> = projects.iter().map(absolute).collect();
        assert_eq!(gh["projects"], json!(expected), "{at} {key}: {report:#}");
    }
}

/// A client, its file, and a file or directory of rules that cannot be read.
const UNREADABLE: &[(&str, &str, &str)] = &[
    ("claude-code", GH, ".claude/agents"),
    ("claude-code", GH, ".claude/agents/a.md"),
    ("claude-code", GH, ".claude/skills"),
    ("claude-code", GH, ".claude/commands/a.md"),
    ("gemini-cli", GH, ".gemini/policies"),
    ("kiro", GH, ".kiro/hooks"),
    ("kiro", GH, ".kiro/hooks/a.kiro.hook"),
    ("kiro", GH, ".kiro/agents"),
    ("kiro", GH, ".kiro/agents/a.json"),
    ("copilot-cli", COPILOT, ".copilot/hooks"),
    ("vscode", VS_CODE, ".copilot/hooks"),
    ("cline", GH, "Documents/Cline/Hooks/PreToolUse"),
    ("opencode", OPENCODE, ".config/opencode/agent"),
    ("opencode", OPENCODE, ".config/opencode/agents/a.md"),
];

/// Puts a file or directory at `path` that not even the superuser can read: a link to itself.
#[cfg(unix)]
fn unreadable(machine: &Machine, file: &str) -> String {
    let path = machine.home(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let name = path.file_name().unwrap();
    std::os::unix::fs::symlink(name, &path).unwrap();
    path.display().to_string()
}

#[cfg(unix)]
#[test]
fn rules_that_cannot_be_read_or_listed_keep_the_servers_that_they_may_be_about() {
    for (client, user, file) in UNREADABLE {
        let machine = Machine::new();
        machine.put(user_file(client), user);
        machine.put(
            user_file("lm-studio"),
            r#"{"mcpServers": {"k": {"command": "k"}}}"#,
        );
        let path = unreadable(&machine, file);
        let outcome = machine.run(&["migrate", "--yes", "--json"]);
        let report = outcome.code(6).json();
        let (said, why) = verdict(&report, "gh");
        assert!(
            said == "stays" && why.contains(&path),
            "{client} {file}: {report:#}"
        );
        let named = report["unreadable"].to_string();
        assert!(named.contains(&path), "{client} {file}: {report:#}");
        assert_eq!(machine.read(user_file(client)), *user, "{client} {file}");
        assert_eq!(machine.servers()["k"]["command"], "k", "{client} {file}");
    }
}

#[cfg(unix)]
#[test]
fn rules_of_a_known_project_that_cannot_be_listed_hide_the_servers_there() {
    for file in [".claude/agents", ".claude/agents/a.md"] {
        let machine = Machine::new();
        let work = machine.home("work").display().to_string();
        let content =
            json!({ "mcpServers": { "gh": { "command": "x" } }, "projects": { work.clone(): {} } });
        machine.put(user_file("claude-code"), &content.to_string());
        unreadable(&machine, &format!("work/{file}"));
        let report = machine.migrate_readable();
        let projects = &machine.servers()["gh"]["projects"];
        assert_eq!(*projects, json!([format!("!{work}")]), "{file}: {report:#}");
    }
}

/// A directory that the system does not let be listed, as most unreadable ones are. The superuser may list it.
#[cfg(unix)]
#[test]
fn a_directory_of_rules_that_may_not_be_listed_is_named_with_the_reason() {
    use std::os::unix::fs::PermissionsExt as _;
    let machine = Machine::new();
    machine.put(user_file("claude-code"), GH);
    machine.put(
        ".claude/agents/a.md",
        "---\ndisallowedTools: mcp__gh__rm\n---\n",
    );
    let directory = machine.home(".claude/agents");
    let set = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&directory, mode).unwrap();
    };
    set(0o000);
    if std::fs::read_dir(&directory).is_ok() {
        eprintln!("SKIPPED: this user may list every directory");
        return;
    }
    let report = machine.migrate_readable();
    set(0o700);
    let (said, why) = verdict(&report, "gh");
    assert!(said == "stays" && why.contains("denied"), "{report:#}");
    assert_eq!(
        report["unreadable"].as_array().unwrap().len(),
        1,
        "{report:#}"
    );
}
