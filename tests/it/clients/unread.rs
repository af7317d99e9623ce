//! Files that cannot be read and names that cannot be written deny, are named, and cost as few others as possible.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

const GH: &str = r#"{"mcpServers": {"gh": {"command": "x"}}}"#;
const CONTINUE: &str =
    "name: a\nversion: 0.0.1\nschema: v1\nmcpServers:\n  - name: gh\n    command: x\n";
const W: &str = r#"{"mcpServers": {"w": {"command": "w-mcp"}}}"#;
const RUNS: &str = r#"{"mcpServers": {"mcpzip": {"command": "mcpzip", "args": ["serve"]}}}"#;

/// A link to a disk that is not mounted.
#[cfg(unix)]
fn unmounted(machine: &Machine, file: &str) -> String {
    let path = machine.home(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/nonexistent/dotfiles/x", &path).unwrap();
    path.display().to_string()
}

#[cfg(unix)]
#[test]
fn a_link_of_rules_that_leads_nowhere_is_no_missing_file() {
    let copilot = r#"{"mcpServers": {"gh": {"type": "local", "command": "x", "tools": ["*"]}}}"#;
    for (client, own, file) in [
        ("claude-code", GH, ".claude/settings.json"),
        ("claude-code", GH, ".claude"),
        ("claude-code", GH, ".claude/agents"),
        ("claude-code", GH, ".claude/agents/a.md"),
        ("gemini-cli", GH, ".gemini/policies"),
        ("gemini-cli", GH, ".gemini/mcp-server-enablement.json"),
        ("gemini-cli", GH, ".gemini/trustedFolders.json"),
        ("cursor", GH, ".cursor/cli-config.json"),
        ("copilot-cli", copilot, ".copilot/settings.json"),
    ] {
        let machine = Machine::new();
        machine.put(user_file(client), own);
        let path = unmounted(&machine, file);
        let report = machine.migrate_readable();
        assert_eq!(verdict(&report, "gh").0, "stays", "{file}: {report:#}");
        let unread = report["unreadable"].to_string();
        assert!(unread.contains(&path), "{file}: {report:#}");
    }
}

#[cfg(unix)]
#[test]
fn a_client_whose_file_or_rules_are_behind_such_a_link_gets_no_server_of_others() {
    for (own, file) in [
        (Some(RUNS), ".claude/settings.json"),
        (None, ".codeium/windsurf/mcp_config.json"),
        (None, ".codeium/windsurf"),
    ] {
        let machine = Machine::new();
        if let Some(own) = own {
            machine.put(user_file("claude-code"), own);
        }
        machine.put(user_file("kiro"), W);
        unmounted(&machine, file);
        let report = machine.migrate_readable();
        assert_eq!(verdict(&report, "w").0, "stays", "{file}: {report:#}");
    }
}

#[test]
fn a_broken_file_that_names_the_first_version_may_run_mcpzip() {
    let machine = Machine::new();
    machine.put(
        user_file("windsurf"),
        r#"{"mcpServers": {"p": {"command": "compressed-mcp-proxy",,"#,
    );
    machine.put(user_file("kiro"), W);
    let report = machine.migrate_readable();
    assert_eq!(verdict(&report, "w").0, "stays", "{report:#}");
}

#[test]
fn a_broken_list_of_projects_keeps_what_their_rules_may_be_about() {
    for (client, list) in [
        ("gemini-cli", ".gemini/trustedFolders.json"),
        ("cursor", ".cursor/projects/p/.workspace-trusted"),
    ] {
        let machine = Machine::new();
        machine.put(user_file(client), GH);
        machine.put(user_file("kiro"), W);
        let path = machine.put(list, "{");
        let report = machine.migrate_readable();
        let (said, why) = verdict(&report, "gh");
        let path = path.display().to_string();
        assert!(said == "stays" && why.contains(&path), "{report:#}");
        // That client does not run mcpzip.
        assert_eq!(verdict(&report, "w").0, "moves", "{report:#}");
    }
}

const PROFILE: &str = ".config/Code/User/profiles/ab";

#[test]
fn a_profile_of_vs_code_has_rules_without_servers_of_its_own() {
    let machine = Machine::new();
    machine.put(
        user_file("vscode"),
        r#"{"servers": {"gh": {"command": "x"}}}"#,
    );
    machine.put(
        &format!("{PROFILE}/settings.json"),
        r#"{"chat.tools.eligibleForAutoApproval": {"gh/rm": false}}"#,
    );
    let report = machine.migrate(&[]);
    let asked = &machine.servers()["gh"]["tools"]["ask"];
    assert_eq!(*asked, json!(["rm"]), "{report:#}");
}

#[cfg(unix)]
#[test]
fn profiles_of_vs_code_that_cannot_be_listed_or_read_are_not_empty() {
    for file in [".config/Code/User/profiles", &format!("{PROFILE}/mcp.json")] {
        let machine = Machine::new();
        machine.put(
            user_file("vscode"),
            r#"{"servers": {"gh": {"command": "x"}}}"#,
        );
        let path = unmounted(&machine, file);
        let report = machine.migrate_readable();
        assert_eq!(verdict(&report, "gh").0, "stays", "{file}: {report:#}");
        let unread = report["unreadable"].as_array().unwrap();
        assert!(
            unread.len() == 1 && unread[0]["file"] == path,
            "{file}: {report:#}"
        );
    }
}

#[test]
fn servers_in_a_form_that_is_not_known_are_named() {
    for list in [json!("x"), json!([{ "command": "x" }])] {
        let machine = Machine::new();
        let file = json!({ "mcpServers": list }).to_string();
        let path = machine.put(user_file("windsurf"), &file);
        machine.put(user_file("kiro"), W);
        let report = machine.migrate_readable();
        let unread = report["unreadable"].to_string();
        let path = path.display().to_string();
        assert!(
            unread.contains(&path) && unread.contains("has `mcpServers` in a form"),
            "{report:#}"
        );
        assert_eq!(verdict(&report, "w").0, "moves", "{report:#}");
    }
}

#[test]
fn a_text_in_another_encoding_or_without_yaml_is_read_as_far_as_it_can_be() {
    let opencode = r#"{"mcp": {"gh": {"type": "local", "command": ["x"]}}}"#;
    let head = b"---\ndescription: Hilfe f\xfcr mich\nNAME: mcp__gh__rm\n---\n".as_slice();
    for (client, own, file, text, moves) in [
        (
            "claude-code",
            GH,
            ".claude/commands/de/hilfe.md",
            head,
            true,
        ),
        (
            "claude-code",
            GH,
            ".claude/skills/a/README.md",
            b"\xff\xfe-\0",
            true,
        ),
        (
            "claude-code",
            GH,
            ".claude/skills/a/SKILL.md",
            b"\xff\xfe-\0",
            false,
        ),
        (
            "claude-code",
            GH,
            ".claude/agents/a.md",
            b"---\ndescription: f\xfcr\ndisallowedTools: mcp__gh__rm\n---\n",
            false,
        ),
        (
            "opencode",
            opencode,
            ".config/opencode/agent/r.md",
            b"---\ndescription: Use this: when you review\nmode: subagent\n---\n",
            true,
        ),
        (
            "opencode",
            opencode,
            ".config/opencode/agent/r.md",
            b"---\ndescription: Use this: when\ntools:\n  gh_rm: false\n---\n",
            false,
        ),
    ] {
        let machine = Machine::new();
        machine.put(user_file(client), own);
        let path = machine.put(file, "");
        std::fs::write(path, text).unwrap();
        let report = machine.run(&["migrate", "--yes", "--json"]).json();
        let expected = if moves { "moves" } else { "stays" };
        assert_eq!(verdict(&report, "gh").0, expected, "{file}: {report:#}");
    }
}

/// The states of mcpzip's servers.
fn states(machine: &Machine) -> Vec<Value> {
    let listed = machine.run(&["list"]).json();
    let servers = listed["servers"].as_array().unwrap().iter();
    servers.map(|server| server["state"].clone()).collect()
}

#[test]
fn a_name_of_a_tool_that_no_rule_can_have_makes_no_server_unusable() {
    for (name, pattern) in [
        ("my tool", json!(["my?tool"])),
        ("a,b", json!(["a?b"])),
        ("@read", json!(["?read"])),
        ("", Value::Null),
    ] {
        let machine = Machine::new();
        let gh = json!({ "command": "x", "disabledTools": [name] });
        let file = json!({ "mcpServers": { "gh": gh } });
        machine.put(user_file("windsurf"), &file.to_string());
        let report = machine.migrate(&[]);
        let denied = &machine.servers()["gh"]["tools"]["deny"];
        assert_eq!(*denied, pattern, "{name}: {report:#}");
        let states = states(&machine);
        assert!(!states.contains(&json!("invalid")), "{name}: {states:?}");
    }
    let machine = Machine::new();
    let config = r#"{"mcpServers": {"gh": {"command": "x"}, "ok": {"command": "x"}}}"#;
    machine.setup().save_text(config);
    machine.put(user_file("claude-code"), RUNS);
    machine.put(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__gh__my tool"]}}"#,
    );
    machine.migrate(&[]);
    for name in ["gh", "ok"] {
        let denied = &machine.servers()[name]["tools"]["deny"];
        assert_eq!(*denied, json!(["my?tool"]));
    }
    // A list of the only permitted tools would permit more.
    let machine = Machine::new();
    let limited = r#"{"mcpServers": {"gh": {"command": "x", "includeTools": ["my tool"]}}}"#;
    machine.put(user_file("gemini-cli"), limited);
    let report = machine.run(&["migrate", "--yes", "--json"]).json();
    assert_eq!(verdict(&report, "gh").0, "stays", "{report:#}");
}

#[test]
fn a_client_of_which_nothing_moves_withholds_no_server_of_others() {
    let machine = Machine::new();
    machine.put(
        user_file("claude-code"),
        r#"{"mcpServers": {"hub": {"command": "mcp-proxy", "args": ["x"]}}}"#,
    );
    machine.put(
        ".claude/settings.json",
        r#"{"deniedMcpServers": [{"serverName": "w"}]}"#,
    );
    machine.put(user_file("cursor"), W);
    let report = machine.migrate(&[]);
    assert_eq!(verdict(&report, "hub").0, "stays", "{report:#}");
    assert_eq!(verdict(&report, "w").0, "moves", "{report:#}");
}

#[test]
fn a_way_out_is_about_the_servers_of_its_run_alone() {
    let machine = Machine::new();
    let both = |gh: &str, other: &str| {
        let servers = json!({ "gh": { "command": gh }, "other": { "command": other } });
        json!({ "mcpServers": servers }).to_string()
    };
    machine.put(user_file("claude-code"), &both("x", "o"));
    machine.put(user_file("cursor"), &both("y", "p"));
    machine.put(
        ".claude/settings.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__gh__.*", "hooks": []}]}}"#,
    );
    let run = ["migrate", "--yes", "--json", "--client", "claude-code"];
    let refused = machine.run(&run).code(1);
    for way in [
        "`mcpzip migrate --client claude-code --only other`",
        "`mcpzip migrate --client claude-code --only gh --drop-rules`",
    ] {
        assert!(refused.stderr.contains(way), "{way}: {refused}");
    }
    let why = verdict(&refused.json(), "gh").1;
    let way = "`mcpzip migrate --client claude-code --scope user --only gh --drop-rules`";
    assert!(why.contains(way), "{why}");
}

#[test]
fn a_server_with_a_dot_in_its_name_that_undo_keeps_is_named() {
    let machine = Machine::new();
    machine.put(
        user_file("claude-code"),
        r#"{"mcpServers": {"my.gh": {"command": "x"}}}"#,
    );
    machine.migrate(&[]);
    let path = machine.setup().config_path();
    let edited = std::fs::read_to_string(&path)
        .unwrap()
        .replace("\"x\"", "\"x-2\"");
    std::fs::write(&path, edited).unwrap();
    let undone = machine.run(&["undo"]).code(0);
    assert!(
        undone.stderr.contains("`my.gh` stays in mcpzip"),
        "{undone}"
    );
}

#[test]
fn a_project_whose_list_of_servers_is_not_known_has_none_of_the_users() {
    let code = r#"{"servers": {"gh": {"command": "x"}}}"#;
    let copilot = r#"{"mcpServers": {"gh": {"type": "local", "command": "x", "tools": ["*"]}}}"#;
    for (client, own, file) in [
        ("cursor", GH, ".cursor/mcp.json"),
        ("claude-code", GH, ".mcp.json"),
        ("vscode", code, ".vscode/mcp.json"),
        ("kiro", GH, ".kiro/settings/mcp.json"),
        ("copilot-cli", copilot, ".mcp.json"),
        ("continue", CONTINUE, ".continue/mcpServers/a.yaml"),
    ] {
        let list = match client {
            "vscode" => r#"{"servers": "x"}"#,
            "continue" => "mcpServers: x",
            _ => r#"{"mcpServers": [{"command": "x"}]}"#,
        };
        for content in [Some("{{{"), Some(list), Some("[]"), None] {
            let machine = Machine::new();
            machine.put(user_file(client), own);
            let file = format!("p/{file}");
            let path = match content {
                Some(content) => machine.put(&file, content).display().to_string(),
                #[cfg(unix)]
                None => unmounted(&machine, &file),
                #[cfg(not(unix))]
                None => continue,
            };
            let mut command = machine.setup().command(&["migrate", "--yes", "--json"]);
            command.current_dir(machine.home("p"));
            let outcome = crate::support::command::run(command, "");
            let gh = machine.servers()["gh"].clone();
            assert_eq!(
                gh["projects"].as_array().map(Vec::len),
                Some(1),
                "{client} {content:?}: {gh} {outcome}"
            );
            assert!(outcome.to_string().contains(&path), "{client}: {outcome}");
        }
    }
}

#[test]
fn of_a_continue_project_with_too_many_files_no_server_moves_and_the_folder_is_named() {
    let machine = Machine::new();
    machine.put(user_file("continue"), CONTINUE);
    let file = |at: usize| format!("p/.continue/mcpServers/{at:04}.yaml");
    for at in 0..1001 {
        machine.put(&file(at), "mcpServers:\n  - name: own\n    command: y\n");
    }
    let run = |machine: &Machine| {
        let mut command = machine.setup().command(&["migrate", "--yes", "--json"]);
        command.current_dir(machine.home("p"));
        crate::support::command::run(command, "")
    };
    let outcome = run(&machine);
    let here = machine.servers();
    assert!(here["own"].is_null(), "{here} {outcome}");
    let projects = here["gh"]["projects"].as_array().map(Vec::len);
    assert_eq!(projects, Some(1), "{here} {outcome}");
    assert!(
        outcome.to_string().contains("more than 1,000 files"),
        "{outcome}"
    );
    // With fewer files, each of them counts.
    for at in 2..1001 {
        std::fs::remove_file(machine.home(&file(at))).unwrap();
    }
    let outcome = run(&machine);
    assert!(!machine.servers()["own"].is_null(), "{outcome}");
}
