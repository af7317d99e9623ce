//! Rules in files apart from the one with the servers: what they switch off, limit or ask about is so behind mcpzip, and one that is not
//! understood keeps the servers where they are.

use std::path::Path;

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};
use crate::support::command;

const GH: &str = r#"{"mcpServers": {"gh": {"command": "x"}}}"#;
const CONTINUE: &str = "name: me\nversion: 1.0.0\nmcpServers:\n  - name: gh\n    command: x\n";

/// Migrates in `directory`, which is below the home.
fn migrate(machine: &Machine, directory: &str) -> Value {
    std::fs::create_dir_all(machine.home(directory)).unwrap();
    let mut command = machine.setup().command(&["migrate", "--yes", "--json"]);
    command.current_dir(machine.home(directory));
    command::run(command, "").json()
}

#[track_caller]
fn assert_stays(report: &Value, why: &str) {
    let (said, reason) = verdict(report, "gh");
    assert!(
        said == "stays" && reason.contains(why),
        "{said} {reason}: {report:#}"
    );
}

/// A Claude Code that knows the project `work`, with the user's server `gh`, and that project's entry in its file.
fn claude(project: &Value) -> Machine {
    let machine = Machine::new();
    let work = machine.home("work");
    std::fs::create_dir_all(&work).unwrap();
    let mut file: Value = serde_json::from_str(GH).unwrap();
    file["projects"] = json!({ work.to_str().unwrap(): project });
    machine.put(user_file("claude-code"), &file.to_string());
    machine
}

fn hidden_in(project: &Path) -> Value {
    json!([format!("!{}", project.display())])
}

#[test]
fn what_gemini_mcp_disable_switched_off_is_off() {
    for (switches, is_off) in [
        (r#"{"gh": {"enabled": false}}"#, true),
        (r#"{"gh": {"enabled": "no"}}"#, true),
        (r#"{"gh": false}"#, true),
        (
            r#"{"gh": {"enabled": true}, "other": {"enabled": false}}"#,
            false,
        ),
        ("{}", false),
    ] {
        let machine = Machine::new();
        // The file has names in lower case.
        machine.put(user_file("gemini-cli"), &GH.replace("gh", "GH"));
        machine.put(".gemini/mcp-server-enablement.json", switches);
        let report = migrate(&machine, "");
        let gh = &machine.servers()["GH"];
        assert_eq!(gh["command"], "x", "{switches}: {report:#}");
        assert_eq!(gh["disabled"] == true, is_off, "{switches}: {report:#}");
    }
    for (switches, why) in [
        ("{", "mcp-server-enablement.json"),
        ("[]", "mcp-server-enablement.json"),
        (r#"{"mcpzip": {"enabled": false}}"#, "switched off"),
    ] {
        let machine = Machine::new();
        machine.put(user_file("gemini-cli"), GH);
        machine.put(".gemini/mcp-server-enablement.json", switches);
        assert_stays(&migrate(&machine, ""), why);
    }
}

#[test]
fn the_names_that_old_versions_of_gemini_had_for_lists_of_servers_count() {
    for (list, is_off) in [
        (r#""excludeMCPServers": ["GH"]"#, true),
        (r#""excludeMCPServers": ["other"]"#, false),
        (r#""allowMCPServers": ["other"]"#, true),
        (r#""allowMCPServers": ["gh"]"#, false),
        (r#""mcp": {"excluded": ["GH"]}"#, true),
    ] {
        let machine = Machine::new();
        let settings = GH.replacen('{', &format!("{{{list}, "), 1);
        machine.put(user_file("gemini-cli"), &settings);
        let report = migrate(&machine, "");
        let gh = &machine.servers()["gh"];
        assert_eq!(gh["command"], "x", "{list}: {report:#}");
        assert_eq!(gh["disabled"] == true, is_off, "{list}: {report:#}");
        let after: Value = serde_json::from_str(&machine.read(user_file("gemini-cli"))).unwrap();
        if let Some(allowed) = after["allowMCPServers"].as_array() {
            assert!(allowed.contains(&json!("mcpzip")), "{after:#}");
        }
        machine.undo();
        assert_eq!(machine.read(user_file("gemini-cli")), settings);
    }
    for list in [
        r#""allowMCPServers": {"gh": true}"#,
        r#""excludeMCPServers": ["mcpzip"]"#,
        r#""mcp": {"excluded": ["*"]}"#,
    ] {
        let machine = Machine::new();
        machine.put(
            user_file("gemini-cli"),
            &GH.replacen('{', &format!("{{{list}, "), 1),
        );
        assert_stays(&migrate(&machine, ""), "mcpzip would not run");
    }
}

#[test]
fn tools_that_gemini_always_asks_about_are_asked_about() {
    for (named, tools) in [
        (r#"["mcp_gh_rm", "mcp_other_rm"]"#, json!({ "ask": ["rm"] })),
        (
            r#"["rm", "run_shell_command(rm)"]"#,
            json!({ "ask": ["rm"] }),
        ),
        (r#"["mcp_gh_*"]"#, json!({ "ask": ["*"] })),
        // mcpzip's own tools are asked about, too.
        (r#"["mcp_*"]"#, Value::Null),
    ] {
        let machine = Machine::new();
        let settings = format!(r#"{{"tools": {{"confirmationRequired": {named}}}, "#);
        machine.put(user_file("gemini-cli"), &GH.replacen('{', &settings, 1));
        let report = migrate(&machine, "");
        assert_eq!(
            machine.servers()["gh"]["tools"],
            tools,
            "{named}: {report:#}"
        );
    }
}

#[test]
fn what_cursors_agent_has_switched_off_in_a_project_is_hidden_there() {
    let named = |machine: &Machine| {
        let work = std::fs::canonicalize(machine.home("work")).unwrap();
        let words = work
            .to_str()
            .unwrap()
            .split(|c: char| !c.is_ascii_alphanumeric());
        words
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("-")
    };
    for (list, is_hidden) in [
        (r#"["gh"]"#, true),
        (r#"["other"]"#, false),
        (r#"{"gh": true}"#, true),
        ("[", true),
    ] {
        for is_written in [false, true] {
            let machine = Machine::new();
            machine.put(user_file("cursor"), GH);
            let work = machine.put("work/file", "");
            let work = work.parent().unwrap();
            let directory = match is_written {
                true => ".cursor/projects/short".to_owned(),
                false => format!(".cursor/projects/{}", named(&machine)),
            };
            machine.put(&format!("{directory}/mcp-disabled.json"), list);
            if is_written {
                let trusted = json!({ "workspacePath": work }).to_string();
                machine.put(&format!("{directory}/.workspace-trusted"), &trusted);
            }
            let report = migrate(&machine, if is_written { "" } else { "work" });
            let gh = &machine.servers()["gh"];
            let expected = match is_hidden {
                true => hidden_in(work),
                false => Value::Null,
            };
            assert_eq!(gh["command"], "x", "{list}: {report:#}");
            assert_eq!(gh["projects"], expected, "{list}: {report:#}");
        }
    }
    // A project that is not known.
    for (list, stays) in [(r#"["gh"]"#, true), ("[", true), (r#"["other"]"#, false)] {
        let machine = Machine::new();
        machine.put(user_file("cursor"), GH);
        machine.put(".cursor/projects/somewhere-else/mcp-disabled.json", list);
        let report = migrate(&machine, "");
        match stays {
            true => assert_stays(&report, "mcp-disabled.json"),
            false => assert_eq!(machine.servers()["gh"]["command"], "x", "{report:#}"),
        }
    }
}

#[test]
fn continues_lists_of_tools_are_carried_over() {
    for (lists, tools) in [
        // As its command line agent makes the file.
        (
            "# cn tool permissions\n\nallow: []\n\nask: []\n\nexclude: []\n",
            Value::Null,
        ),
        ("exclude:\n  - rm\n", json!({ "deny": ["rm"] })),
        ("exclude: [gh_rm]\n", json!({ "deny": ["gh_rm", "rm"] })),
        (
            "ask:\n  - rm(*)\n  - Bash(rm*)\n  - Write\n",
            json!({ "ask": ["rm"] }),
        ),
        ("ask:\n  - '*'\nallow:\n  - ls\n", Value::Null),
    ] {
        let machine = Machine::new();
        machine.put(user_file("continue"), CONTINUE);
        machine.put(".continue/permissions.yaml", lists);
        let report = migrate(&machine, "");
        let gh = &machine.servers()["gh"];
        assert_eq!(gh["command"], "x", "{lists}: {report:#}");
        assert_eq!(gh["tools"], tools, "{lists}: {report:#}");
    }
    for lists in [
        // It is about the tools of mcpzip, too.
        "exclude:\n  - '*'\n",
        "exclude:\n  - rm(path)\n",
        "exclude:\n  rm: true\n",
        "deny:\n  - rm\n",
        "exclude: [",
        "- rm\n",
    ] {
        let machine = Machine::new();
        machine.put(user_file("continue"), CONTINUE);
        machine.put(".continue/permissions.yaml", lists);
        assert_stays(&migrate(&machine, ""), "permissions.yaml");
    }
}

#[test]
fn continues_own_folder_of_servers_is_the_users_wherever_mcpzip_runs() {
    for directory in ["work", ""] {
        let machine = Machine::new();
        machine.put(user_file("continue"), CONTINUE);
        machine.put(
            ".continue/mcpServers/a.json",
            r#"{"mcpServers": {"jj": {"command": "jj"}}}"#,
        );
        machine.put(
            ".continue/mcpServers/b.yaml",
            "name: b\nmcpServers:\n  - name: yy\n    command: yy\n",
        );
        std::fs::create_dir_all(machine.home("work")).unwrap();
        let before = machine.everything();
        let run = |arguments: &[&str]| {
            let mut command = machine.setup().command(arguments);
            command.current_dir(machine.home(directory));
            command::run(command, "").code(0)
        };
        let clients = run(&["clients", "--json"]).to_string();
        assert!(
            clients.contains("jj") && clients.contains("yy"),
            "{clients}"
        );
        let report = run(&["migrate", "--yes", "--json"]).json();
        for server in ["gh", "jj", "yy"] {
            assert_eq!(verdict(&report, server).0, "moves", "{report:#}");
            let entry = &machine.servers()[server];
            assert!(
                entry["disabled"].is_null() && entry["projects"].is_null(),
                "{entry}"
            );
        }
        let servers = report["servers"].as_array().unwrap();
        assert!(servers.iter().all(|it| it["scope"] == "user"), "{report:#}");
        assert!(!machine.read(".continue/mcpServers/a.json").contains("jj"));
        // Continue merges all of them.
        let clients = run(&["clients", "--json"]).json();
        let all = clients["clients"].as_array().unwrap().iter();
        let mut entries = all.filter(|it| it["client"] == "continue");
        let entries = entries.next().unwrap()["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 1, "{entries:#?}");
        let is_in_yaml = machine.read(user_file("continue")).contains("mcpzip");
        assert!(is_in_yaml, "{entries:#?}");
        let again = run(&["migrate", "--yes", "--json"]).json();
        assert_eq!(again["files"], json!([]), "{again:#}");
        machine.undo();
        assert_eq!(machine.everything(), before);
    }
}

/// Continue would read a new `config.yaml` in the place of `config.json`, and reads YAML files in its folder only with a header.
#[test]
fn continue_without_a_yaml_file_gets_the_entry_in_a_json_file_of_its_folder() {
    const OWN: &str = ".continue/mcpServers/mcpzip.json";
    let servers = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
    for (file, directory, arguments) in [
        (".continue/mcpServers/a.json", "", &["migrate", "--yes"][..]),
        (
            "work/.continue/mcpServers/a.json",
            "work",
            &["migrate", "--yes"],
        ),
        (user_file("cursor"), "", &["init", "--yes"]),
        (user_file("cursor"), "", &["connect", "continue"]),
    ] {
        let machine = Machine::new();
        machine.put(".continue/config.json", r#"{"models": []}"#);
        machine.put(file, servers);
        let before = machine.everything();
        let mut command = machine.setup().command(arguments);
        command.current_dir(machine.home(directory));
        let _ = command::run(command, "").code(0);
        assert!(
            !machine.home(user_file("continue")).exists(),
            "{arguments:?}"
        );
        let own: Value = serde_json::from_str(&machine.read(OWN)).unwrap();
        let entry = &own["mcpServers"]["mcpzip"];
        assert_eq!(entry["args"], json!(["serve"]), "{file}, {arguments:?}");
        machine.undo();
        assert_eq!(machine.everything(), before, "{arguments:?}");
    }
    let machine = Machine::new();
    machine.put(".continue/config.json", r#"{"models": []}"#);
    let before = machine.everything();
    let _ = machine.run(&["connect", "continue"]).code(0);
    let _ = machine.run(&["disconnect", "continue"]).code(0);
    assert_eq!(machine.everything(), before, "its own file is gone again");
    // A file that appears later gets no second entry.
    machine.put(user_file("cursor"), servers);
    let _ = machine.run(&["init", "--yes"]).code(0);
    machine.put(user_file("continue"), CONTINUE);
    let _ = machine.run(&["init", "--yes", "--client", "continue"]);
    assert!(!machine.read(user_file("continue")).contains("mcpzip"));
    assert!(machine.read(OWN).contains("mcpzip"));
}

#[test]
fn a_server_that_a_projects_policy_blocks_is_hidden_there() {
    for (policy, is_hidden) in [
        (r#"{"deniedMcpServers": [{"serverName": "gh"}]}"#, true),
        (r#"{"deniedMcpServers": [{"serverCommand": ["x"]}]}"#, true),
        (r#"{"deniedMcpServers": "gh"}"#, true),
        (r#"{"deniedMcpServers": [{"serverName": "other"}]}"#, false),
        (r#"{"allowedMcpServers": [{"serverName": "other"}]}"#, true),
        (r#"{"allowedMcpServers": [{"serverName": "gh"}]}"#, false),
    ] {
        for file in ["settings.json", "settings.local.json"] {
            let machine = claude(&json!({}));
            machine.put(&format!("work/.claude/{file}"), policy);
            let report = migrate(&machine, "");
            let gh = &machine.servers()["gh"];
            let expected = match is_hidden {
                true => hidden_in(&machine.home("work")),
                false => Value::Null,
            };
            assert_eq!(gh["command"], "x", "{policy}: {report:#}");
            assert_eq!(gh["projects"], expected, "{policy}: {report:#}");
        }
    }
}

#[test]
fn an_administrators_settings_that_claude_code_got_from_a_server_count() {
    let machine = claude(&json!({}));
    machine.put(
        ".claude/remote-settings.json",
        r#"{"permissions": {"deny": ["mcp__gh__rm"]}}"#,
    );
    let report = migrate(&machine, "");
    let tools = &machine.servers()["gh"]["tools"];
    assert_eq!(*tools, json!({ "deny": ["rm"] }), "{report:#}");
}

#[test]
fn a_project_that_is_no_absolute_path_keeps_its_servers_in_the_client() {
    for content in [
        r#"{"mcpServers": {"gh": {"command": "x"}}, "projects": {"work": {"disabledMcpServers": ["gh"]}}}"#,
        r#"{"projects": {"work": {"mcpServers": {"gh": {"command": "x"}}}}}"#,
    ] {
        let machine = Machine::new();
        machine.put(user_file("claude-code"), content);
        assert_stays(&migrate(&machine, ""), "work");
        let checked = machine.run(&["config", "check"]);
        assert!(!checked.to_string().contains("projects"), "{checked}");
    }
}

#[test]
fn a_reference_in_the_name_of_a_project_is_no_reference() {
    let machine = Machine::new();
    let work = machine.home("a${HOME}b");
    std::fs::create_dir_all(&work).unwrap();
    let key = work.to_str().unwrap();
    let file = json!({
        "mcpServers": { "gh": { "command": "x" } },
        "projects": { key: {
            "disabledMcpServers": ["gh"],
            "mcpServers": { "own": { "command": "y" } },
        } },
    });
    machine.put(user_file("claude-code"), &file.to_string());
    let report = migrate(&machine, "");
    let escaped = key.replace("${", "$${");
    let servers = machine.servers();
    assert_eq!(
        servers["gh"]["projects"],
        json!([format!("!{escaped}")]),
        "{report:#}"
    );
    assert_eq!(servers["own"]["projects"], json!([escaped]), "{report:#}");
    let _ = machine.run(&["config", "check"]).code(0);
}

#[cfg(unix)]
#[test]
fn a_configuration_that_gets_secrets_is_closed_to_others() {
    use std::os::unix::fs::PermissionsExt as _;

    const TOKEN: &str =
        r#"{"mcpServers": {"gh": {"command": "x", "env": {"TOKEN": "t0p-s3cret-value"}}}}"#;
    for (content, arguments, mode) in [
        (TOKEN, &[][..], 0o600),
        (TOKEN, &["--extract-secrets"], 0o644),
        (GH, &[], 0o644),
    ] {
        let machine = Machine::new();
        let config = machine.setup().config_path();
        std::fs::write(&config, r#"{"mcpServers": {}}"#).unwrap();
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&config, open).unwrap();
        machine.put(user_file("cursor"), content);
        let report = machine.migrate(arguments);
        let now = std::fs::metadata(&config).unwrap().permissions().mode() & 0o777;
        assert_eq!(now, mode, "{content} {arguments:?}: {report:#}");
        let is_said = report["warnings"]
            .to_string()
            .contains("other users could read");
        assert_eq!(is_said, mode == 0o600, "{report:#}");
    }
}
