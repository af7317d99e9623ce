//! What a repository brings along: its servers come over switched off, and its files cost no more than themselves.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::{Machine, verdict};
use crate::support::command::{self, Outcome};

/// Each client's file of a project's servers, with the server `evil` in it.
const PROJECTS: &[(&str, &str, &str)] = &[
    (
        "claude-code",
        ".mcp.json",
        r#"{"mcpServers": {"evil": {"command": "evil"}}}"#,
    ),
    (
        "cursor",
        ".cursor/mcp.json",
        r#"{"mcpServers": {"evil": {"command": "evil"}}}"#,
    ),
    (
        "vscode",
        ".vscode/mcp.json",
        r#"{"servers": {"evil": {"command": "evil"}}}"#,
    ),
    (
        "codex",
        ".codex/config.toml",
        "[mcp_servers.evil]\ncommand = \"evil\"\n",
    ),
    (
        "gemini-cli",
        ".gemini/settings.json",
        r#"{"mcpServers": {"evil": {"command": "evil", "trust": true}}}"#,
    ),
    (
        "zed",
        ".zed/settings.json",
        r#"{"context_servers": {"evil": {"command": "evil", "args": [], "enabled": true}}}"#,
    ),
    (
        "opencode",
        "opencode.json",
        r#"{"mcp": {"evil": {"type": "local", "command": ["evil"], "enabled": true}}}"#,
    ),
    (
        "roo",
        ".roo/mcp.json",
        r#"{"mcpServers": {"evil": {"command": "evil", "alwaysAllow": ["x"]}}}"#,
    ),
    (
        "continue",
        ".continue/mcpServers/a.yaml",
        "name: a\nmcpServers:\n  - name: evil\n    command: evil\n",
    ),
    (
        "kiro",
        ".kiro/settings/mcp.json",
        r#"{"mcpServers": {"evil": {"command": "evil", "disabled": false}}}"#,
    ),
    (
        "copilot-cli",
        ".github/mcp.json",
        r#"{"mcpServers": {"evil": {"type": "local", "command": "evil", "tools": ["*"]}}}"#,
    ),
];

const APPROVALS: [&str; 2] = [
    r#"{"enableAllProjectMcpServers": true}"#,
    r#"{"enabledMcpjsonServers": ["evil"]}"#,
];

/// Runs in the repository `work` of the home.
fn run_there(machine: &Machine, arguments: &[&str]) -> Outcome {
    let there = machine.home("work");
    std::fs::create_dir_all(&there).unwrap();
    let mut command = machine.setup().command(arguments);
    command.current_dir(there);
    command::run(command, "")
}

#[track_caller]
fn migrate_there(machine: &Machine) -> Value {
    run_there(machine, &["migrate", "--yes", "--json"])
        .code(0)
        .json()
}

#[test]
fn a_projects_server_comes_switched_off_whatever_its_repository_says() {
    for (client, file, content) in PROJECTS {
        let machine = Machine::new();
        machine.put(&format!("work/{file}"), content);
        for (at, approval) in ["settings.json", "settings.local.json"]
            .iter()
            .zip(APPROVALS)
        {
            machine.put(&format!("work/.claude/{at}"), approval);
        }
        let looked = run_there(&machine, &["migrate", "--dry-run"]).code(0);
        assert!(
            looked.stdout.contains("switched off") && looked.stdout.contains("mcpzip enable evil"),
            "{client}: {looked}"
        );
        let report = migrate_there(&machine);
        assert_eq!(verdict(&report, "evil").0, "moves", "{client}: {report:#}");
        assert_eq!(
            machine.servers()["evil"]["disabled"],
            true,
            "{client}: {report:#}"
        );
        assert_eq!(
            report["servers"][0]["disabled"], true,
            "{client}: {report:#}"
        );
        assert!(
            report["servers"][0]["notes"]
                .to_string()
                .contains("mcpzip enable evil")
                && report["warnings"].to_string().contains("switched off"),
            "{client}: {report:#}"
        );
    }
}

#[test]
fn a_file_of_the_users_own_approves_a_projects_server() {
    for approval in APPROVALS {
        let machine = Machine::new();
        machine.put("work/.mcp.json", PROJECTS[0].2);
        machine.put(".claude/settings.json", approval);
        let report = migrate_there(&machine);
        assert!(
            machine.servers()["evil"]["disabled"].is_null(),
            "{report:#}"
        );
        assert_eq!(report["servers"][0]["disabled"], false, "{report:#}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_makes_no_file_of_the_repository_the_users_own() {
    let machine = Machine::new();
    machine.put("work/.mcp.json", PROJECTS[0].2);
    machine.put("work/claude/settings.json", APPROVALS[0]);
    std::os::unix::fs::symlink(machine.home("work/claude"), machine.home(".claude")).unwrap();
    let report = migrate_there(&machine);
    assert_eq!(machine.servers()["evil"]["disabled"], true, "{report:#}");
}

#[cfg(unix)]
#[test]
fn a_repositorys_link_to_a_file_of_the_users_own_takes_no_server_out_of_it() {
    let machine = Machine::new();
    let own = r#"{"mcpServers": {"mine": {"command": "mine"}}}"#;
    machine.put(".cursor/mcp.json", own);
    machine.put("work/x", "");
    std::os::unix::fs::symlink(
        machine.home(".cursor/mcp.json"),
        machine.home("work/.mcp.json"),
    )
    .unwrap();
    let report = run_there(
        &machine,
        &["migrate", "--yes", "--json", "--client", "claude-code"],
    )
    .code(6)
    .json();
    assert_eq!(report["servers"], json!([]), "{report:#}");
    assert!(
        report["unreadable"].to_string().contains("link"),
        "{report:#}"
    );
    assert_eq!(machine.read(".cursor/mcp.json"), own);
}

#[test]
fn a_projects_server_is_not_switched_on_by_one_of_another_project() {
    let machine = Machine::new();
    let server = r#"{"mcpServers": {"web": {"type": "http", "url": "https://w.example"}}}"#;
    let one = machine.home("one").display().to_string();
    machine.put(
        ".claude.json",
        &json!({ "projects": { one: serde_json::from_str::<Value>(server).unwrap() } }).to_string(),
    );
    machine.put("work/.mcp.json", server);
    let report = migrate_there(&machine);
    let servers = machine.servers();
    assert_eq!(
        servers["web"]["projects"].as_array().unwrap().len(),
        1,
        "{report:#}"
    );
    assert!(servers["web"]["disabled"].is_null(), "{servers:#}");
    assert_eq!(servers["web-work"]["disabled"], true, "{servers:#}");
}

/// Puts something at `path` that must not be read.
#[cfg(unix)]
fn plant(machine: &Machine, file: &str, what: &str) {
    let path = machine.home(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    match what {
        "device" => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        "pipe" => {
            let status = std::process::Command::new("mkfifo").arg(path).status();
            assert!(status.unwrap().success());
        }
        "directory" => std::fs::create_dir(path).unwrap(),
        _ => std::fs::File::create(path)
            .unwrap()
            .set_len(1 << 33)
            .unwrap(),
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_is_no_regular_one_or_too_large_costs_itself_alone() {
    const FILES: [&str; 8] = [
        "work/.claude/settings.json",
        "work/.mcp.json",
        "work/.cursor/mcp.json",
        "work/.cursor/cli.json",
        "work/.claude/agents/a.md",
        "work/.kiro/agents/a.json",
        ".kiro/settings/mcp.json",
        ".config/zed/settings.json",
    ];
    for (file, what) in FILES
        .iter()
        .flat_map(|file| ["device", "pipe", "directory", "large"].map(|what| (*file, what)))
    {
        let machine = Machine::new();
        if file != ".kiro/settings/mcp.json" {
            machine.put(
                ".kiro/settings/mcp.json",
                r#"{"mcpServers": {"k": {"command": "k"}}}"#,
            );
        }
        machine.put(".claude.json", r#"{"mcpServers": {"l": {"command": "l"}}}"#);
        machine.put(
            ".cursor/mcp.json",
            r#"{"mcpServers": {"c": {"command": "c"}}}"#,
        );
        machine.put(".codex/config.toml", "[mcp_servers.u]\ncommand = \"u\"\n");
        plant(&machine, file, what);
        for command in [
            ["doctor", "--json"].as_slice(),
            &["init", "--dry-run", "--yes", "--json", "--no-test"],
            &["migrate", "--yes", "--json"],
        ] {
            let began = Instant::now();
            let outcome = run_there(&machine, command);
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "{file} {what}: {outcome}"
            );
            assert!(
                command[0] == "init"
                    || what == "directory" && file.contains("/agents/")
                    || outcome
                        .to_string()
                        .contains(file.rsplit('/').next().unwrap()),
                "{file} {what} {command:?} says nothing: {outcome}"
            );
        }
        // A file of the user's servers that cannot be read may start mcpzip, and have switches for all servers.
        let is_unsure = file.starts_with('.');
        let expected = (!is_unsure).then_some("u");
        let moved = machine.servers();
        assert_eq!(moved["u"]["command"].as_str(), expected, "{file} {what}");
    }
}
