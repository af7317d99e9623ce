//! Servers of projects: there behind mcpzip in the same project, and nowhere else.

use serde_json::json;

use super::case::{Machine, user_file};
use crate::support::Server;
use crate::support::script::answer;

#[test]
fn a_server_that_is_off_in_the_home_directory_is_hidden_below_it_and_the_plan_says_so() {
    let machine = Machine::new();
    let off = |project: std::path::PathBuf| {
        let project = project.components().collect::<std::path::PathBuf>();
        let projects = json!({ project.to_str().unwrap(): { "disabledMcpServers": ["files"] } });
        json!({ "mcpServers": { "files": { "command": "files-mcp" } }, "projects": projects })
    };
    for (project, is_warned) in [(machine.home(""), true), (machine.home("one"), false)] {
        let file = off(project.clone());
        machine.put(user_file("claude-code"), &file.to_string());
        let report = machine.migrate(&[]);
        let hidden = machine.servers()["files"]["projects"].clone();
        let hidden = hidden[0].as_str().unwrap().to_owned();
        let hidden = std::path::Path::new(hidden.strip_prefix('!').unwrap());
        assert!(
            project.starts_with(hidden) && hidden.starts_with(&project),
            "{report:#}"
        );
        let warnings = report["warnings"].to_string();
        assert_eq!(
            warnings.contains("`files` is hidden in") && warnings.contains("in all folders below"),
            is_warned,
            "{warnings}"
        );
        machine.undo();
    }
}

#[test]
fn servers_of_a_project_become_servers_of_that_project() {
    let machine = Machine::new();
    let here = machine
        .home("")
        .components()
        .collect::<std::path::PathBuf>();
    let here = here.to_str().unwrap();
    machine.put(
        ".claude.json",
        r#"{"mcpServers": {"u": {"command": "u"}}, "projects": {"/work/one": {"mcpServers": {"l": {"command": "l"}}}}}"#,
    );
    machine.put(
        ".claude/settings.local.json",
        r#"{"enableAllProjectMcpServers": true}"#,
    );
    for (file, content) in [
        (
            ".mcp.json",
            r#"{"mcpServers": {"p1": {"command": "p"}, "p9": {"type": "http", "url": "https://p.example"}}}"#,
        ),
        (
            ".vscode/mcp.json",
            r#"{"servers": {"p2": {"command": "p", "args": ["${workspaceFolder}/x"]}}}"#,
        ),
        (
            ".continue/mcpServers/a.yaml",
            "name: a\nmcpServers:\n  - name: p3\n    command: p\n",
        ),
        (
            ".continue/mcpServers/b.json",
            r#"{"mcpServers": {"p4": {"command": "p", "args": ["4"]}}}"#,
        ),
        (
            ".github/mcp.json",
            r#"{"mcpServers": {"p5": {"command": "./bin/p", "cwd": "sub"}}}"#,
        ),
        (
            ".roo/mcp.json",
            r#"{"mcpServers": {"p6": {"command": "p", "args": ["6"]}}}"#,
        ),
        (
            ".zed/settings.json",
            r#"{"context_servers": {"p7": {"command": "p", "args": ["7"]}}}"#,
        ),
        (
            "opencode.jsonc",
            r#"{"mcp": {"p8": {"type": "local", "command": ["p", "8"]}}}"#,
        ),
    ] {
        machine.put(file, content);
    }
    let before = machine.everything();
    let report = machine.migrate(&[]);
    let project = json!([here]);
    let entry = |args: &[&str]| json!({ "command": "p", "args": args, "cwd": here, "disabled": true, "projects": project });
    assert_eq!(
        machine.servers(),
        json!({
            "u": { "command": "u" },
            "l": { "command": "l", "cwd": "/work/one", "projects": ["/work/one"] },
            "p1": { "command": "p", "cwd": here, "projects": project },
            "p9": { "url": "https://p.example", "projects": project },
            "p2": entry(&[&format!("{here}/x")]),
            // In the home directory, Continue's folder is the user's own.
            "p3": { "command": "p" },
            "p4": { "command": "p", "args": ["4"] },
            "p5": { "command": format!("{here}/bin/p"), "cwd": format!("{here}/sub"), "disabled": true, "projects": project },
            "p6": entry(&["6"]),
            "p7": entry(&["7"]),
            "p8": entry(&["8"]),
        }),
        "{report:#}"
    );
    // The entry is in the user's own file: a project's may be everybody's.
    assert!(
        !machine.read(".mcp.json").contains("mcpzip")
            && !machine.read(".vscode/mcp.json").contains("mcpzip")
    );
    assert!(
        machine.read(user_file("vscode")).contains("mcpzip")
            && machine.read(".claude.json").contains("mcpzip")
    );
    assert!(
        report["warnings"]
            .to_string()
            .contains("may be shared with others"),
        "{report:#}"
    );
    let settled = machine.everything();
    machine.migrate(&[]);
    assert_eq!(
        machine.everything(),
        settled,
        "a second run changed something"
    );
    machine.undo();
    assert_eq!(machine.everything(), before);
}

#[test]
fn scopes_are_moved_as_they_are_asked_for() {
    let machine = Machine::new();
    machine.put(
        ".claude.json",
        r#"{"mcpServers": {"u": {"command": "u"}}, "projects": {"/one": {"mcpServers": {"l": {"command": "l"}}}}}"#,
    );
    machine.put(".mcp.json", r#"{"mcpServers": {"p": {"command": "p"}}}"#);
    machine.migrate(&["--scope", "local"]);
    assert_eq!(
        machine
            .servers()
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["l"]
    );
    let text = machine.read(".claude.json");
    assert!(
        text.contains(r#""u": {"command": "u"}"#) && text.contains("alwaysLoad"),
        "{text}"
    );
    assert!(machine.read(".mcp.json").contains(r#""p""#));
}

#[test]
fn two_projects_may_have_servers_of_one_name() {
    let machine = Machine::new();
    machine.put(
        ".claude.json",
        r#"{"projects": {
            "/work/one": {"mcpServers": {"db": {"command": "db", "args": ["1"]}, "same": {"type": "http", "url": "https://s.example"}}},
            "/work/two": {"mcpServers": {"db": {"command": "db", "args": ["2"]}, "same": {"type": "http", "url": "https://s.example"}}}
        }}"#,
    );
    let report = machine.migrate(&[]);
    assert_eq!(
        machine.servers(),
        json!({
            "db": { "command": "db", "args": ["1"], "cwd": "/work/one", "projects": ["/work/one"] },
            "same": { "url": "https://s.example", "projects": ["/work/one", "/work/two"] },
            "db-two": { "command": "db", "args": ["2"], "cwd": "/work/two", "projects": ["/work/two"] },
        }),
        "{report:#}"
    );
    let settled = machine.everything();
    machine.migrate(&[]);
    assert_eq!(machine.everything(), settled);
}

#[test]
fn a_server_that_was_not_approved_yet_comes_switched_off() {
    for (settings, state) in [
        ("{}", Some(true)),
        (r#"{"disabledMcpjsonServers": ["p"]}"#, Some(true)),
        (r#"{"enabledMcpjsonServers": ["p"]}"#, None),
    ] {
        let machine = Machine::new();
        machine.put(".mcp.json", r#"{"mcpServers": {"p": {"command": "p"}}}"#);
        machine.put(".claude/settings.local.json", settings);
        let report = machine.migrate(&[]);
        assert_eq!(
            machine.servers()["p"]["disabled"].as_bool(),
            state,
            "{settings}: {report:#}"
        );
        assert_eq!(
            report
                .to_string()
                .contains("no file of your own approves it"),
            settings == "{}",
            "{report:#}"
        );
        assert_eq!(
            report["servers"]
                .to_string()
                .contains("`disabledMcpjsonServers` of Claude Code refuses it"),
            settings.contains("disabled"),
            "{report:#}"
        );
        assert_eq!(
            report["warnings"]
                .to_string()
                .contains("no file of your own approves these"),
            settings == "{}",
            "{report:#}"
        );
    }
}

#[test]
fn a_moved_server_answers_in_its_project_and_nowhere_else() {
    let machine = Machine::new();
    let setup = machine
        .setup()
        .clone()
        .server("db", Server::new().tool("greet", [answer("hello")]));
    setup.save();
    let entry = machine.servers()["db"].clone();
    std::fs::remove_file(setup.config_path()).unwrap();
    let project = machine.home("work");
    std::fs::create_dir_all(&project).unwrap();
    let projects =
        json!({ "projects": { project.to_str().unwrap(): { "mcpServers": { "db": entry } } } });
    machine.put(".claude.json", &projects.to_string());
    machine.migrate(&[]);
    let refused = machine.run(&["call", "db__greet", "{}"]).code(4);
    assert!(refused.stderr.contains("only"), "{refused}");
    let mut there = machine.setup().command(&["call", "db__greet", "{}"]);
    there.current_dir(&project);
    let answered = crate::support::command::run(there, "").code(0);
    assert!(answered.stdout.contains("hello"), "{answered}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_that_is_not_unicode_stops_a_run_in_words() {
    use std::os::unix::ffi::OsStrExt as _;
    let machine = Machine::new();
    let name = std::ffi::OsStr::from_bytes(b"d\xff");
    let project = machine.home("").join(name);
    let file = project.join(".cursor/mcp.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, r#"{"mcpServers": {"gh": {"command": "x"}}}"#).unwrap();
    let before = machine.everything();
    for way in ["--dry-run", "--yes"] {
        let mut command = machine.setup().command(&["migrate", way, "--json"]);
        command.current_dir(&project);
        let outcome = crate::support::command::run(command, "").code(1);
        assert!(outcome.stderr.contains("is not Unicode"), "{outcome}");
        assert_eq!(super::case::verdict(&outcome.json(), "gh").0, "moves");
        assert_eq!(machine.everything(), before, "{outcome}");
    }
}
