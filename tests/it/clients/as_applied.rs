//! Lists, defaults and switches of clients are read as the client applies them: its own form of an entry, its order, its directory.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

const GH: &str = r#"{"mcpServers": {"gh": {"command": "gh-mcp"}}}"#;
const MEM: &str = r#"{"mcpServers": {"mem": {"command": "mem-mcp"}}}"#;

#[test]
fn a_list_of_servers_is_compared_with_the_entry_as_it_is_written() {
    let remote = json!({ "command": "npx", "args": ["-y", "mcp-remote", "https://x.example/mcp"] });
    let command = json!({ "serverCommand": ["npx", "-y", "mcp-remote", "https://x.example/mcp"] });
    let url = json!({ "serverUrl": "https://x.example/*" });
    let local = json!({ "command": "./srv" });
    for (entry, is_local, list, rule, reason) in [
        (&remote, false, "deniedMcpServers", &command, "blocked by"),
        // Behind mcpzip it is the URL that is called.
        (&remote, false, "deniedMcpServers", &url, "blocked by"),
        (&remote, false, "allowedMcpServers", &command, ""),
        (
            &remote,
            false,
            "allowedMcpServers",
            &url,
            "does not have it",
        ),
        (
            &local,
            true,
            "deniedMcpServers",
            &json!({ "serverCommand": ["./srv"] }),
            "blocked by",
        ),
    ] {
        let machine = Machine::new();
        std::fs::create_dir_all(machine.home("p")).unwrap();
        let servers = json!({ "mcpServers": { "r": entry } });
        let content = match is_local {
            true => json!({ "projects": { machine.home("p").to_str().unwrap(): servers } }),
            false => servers,
        };
        machine.put(user_file("claude-code"), &content.to_string());
        let settings = json!({ list: [rule] });
        machine.put(".claude/settings.json", &settings.to_string());
        let report = machine.migrate(&[]);
        let (said, why) = verdict(&report, "r");
        assert_eq!(
            said == "stays",
            !reason.is_empty(),
            "{entry} {settings}: {why}"
        );
        assert!(why.contains(reason), "{entry} {settings}: {why}");
    }
}

#[test]
fn a_list_of_servers_holds_for_one_of_mcpzips_that_no_client_could_run() {
    for entry in [
        json!({ "command": "mem-mcp", "sandbox": "strict" }),
        json!({ "openapi": "https://api.example/openapi.json" }),
        json!({ "graphql": "https://api.example/graphql" }),
    ] {
        let machine = Machine::new();
        let config = json!({ "mcpServers": { "mem": entry } });
        machine.setup().save_text(&config.to_string());
        machine.put(user_file("claude-code"), GH);
        machine.put(
            ".claude/settings.json",
            r#"{"deniedMcpServers": [{"serverName": "mem"}]}"#,
        );
        let report = machine.migrate(&[]);
        let (said, why) = verdict(&report, "gh");
        assert!(
            said == "stays" && why.contains("Claude Code could call `mem`"),
            "{entry}: {said} {why}"
        );
    }
}

/// Zed with mcpzip, whose default refuses tools.
const REFUSING: &str = r#"{"context_servers": {"mcpzip": {"command": "mcpzip", "args": ["serve"]}}, "agent": {"tool_permissions": {"default": "deny", "tools": {
    "mcp:mcpzip:search_tools": {"default": "allow"}, "mcp:mcpzip:describe_tool": {"default": "allow"}, "mcp:mcpzip:execute_tool": {"default": "allow"}}}}}"#;

#[test]
fn a_default_that_refuses_tools_holds_for_the_servers_of_other_clients() {
    let machine = Machine::new();
    machine.put(user_file("cursor"), MEM);
    machine.put(user_file("zed"), REFUSING);
    let report = machine.migrate(&[]);
    let (said, why) = verdict(&report, "mem");
    assert!(
        said == "stays" && why.contains("Zed could call it") && why.contains("default"),
        "{report:#}"
    );
}

#[test]
fn of_a_server_behind_a_default_that_refuses_tools_those_with_their_own_are_left() {
    let machine = Machine::new();
    let own = r#""mcp:gh:read": {"default": "allow"}, "mcp:gh:push": {"default": "confirm"}, "mcp:gh:rm": {"always_allow": [{"pattern": "x"}]},"#;
    let refusing = REFUSING.replace(
        r#"{"mcpzip": {"command": "mcpzip", "args": ["serve"]}}"#,
        r#"{"gh": {"command": "gh-mcp", "args": []}}"#,
    );
    let refusing = refusing.replace(r#""tools": {"#, &format!(r#""tools": {{{own}"#));
    machine.put(user_file("zed"), &refusing);
    let report = machine.migrate(&[]);
    assert_eq!(
        machine.servers()["gh"]["tools"],
        json!({ "allow": ["push", "read"], "ask": ["push"] }),
        "{report:#}"
    );
}

/// Cursor with `gh` and Kiro with `mem`; the directory `p`, which Claude Code knows, has denials of Cursor.
fn denied_in_project(denied: &str) -> (Machine, Value) {
    let machine = Machine::new();
    let denied = json!({ "permissions": { "deny": [denied] } });
    machine.put("p/.cursor/cli.json", &denied.to_string());
    let known = json!({ "projects": { machine.home("p").to_str().unwrap(): {} } });
    machine.put(user_file("claude-code"), &known.to_string());
    machine.put(user_file("cursor"), GH);
    machine.put(user_file("kiro"), MEM);
    let report = machine.migrate(&[]);
    (machine, report)
}

#[test]
fn a_denial_of_all_tools_in_one_project_stops_nothing_as_it_goes_on_to_hold() {
    for denied in ["Mcp(*:*)", "Mcp(*)"] {
        let (machine, report) = denied_in_project(denied);
        for name in ["gh", "mem"] {
            let entry = &machine.servers()[name];
            assert_eq!(verdict(&report, name).0, "moves", "{denied}: {report:#}");
            assert_eq!(
                (&entry["tools"], &entry["projects"]),
                (&Value::Null, &Value::Null)
            );
        }
    }
    // One of some tools becomes a rule, whether mcpzip has such a tool or not.
    let (machine, report) = denied_in_project("Mcp(*:search_*)");
    let tools = &machine.servers()["gh"]["tools"];
    assert_eq!(*tools, json!({ "deny": ["search_*"] }), "{report:#}");
}

#[test]
fn a_file_of_settings_without_an_ending_is_no_hook() {
    let machine = Machine::new();
    machine.put(user_file("gemini-cli"), GH);
    let path = machine.put("admin/settings", r#"{"tools": {"exclude": ["mcp_gh_rm"]}}"#);
    let setup = machine
        .setup()
        .clone()
        .variable("GEMINI_CLI_SYSTEM_SETTINGS_PATH", path.to_str().unwrap());
    let migrated = crate::support::command::run(setup.command(&["migrate", "--yes", "--json"]), "");
    let report = migrated.code(0).json();
    let tools = &machine.servers()["gh"]["tools"];
    assert_eq!(*tools, json!({ "deny": ["rm"] }), "{report:#}");
}

#[test]
fn the_hooks_of_plugins_are_unknown_where_their_list_is() {
    for (list, code) in [
        ("{", 6),
        (r#"{"plugins": "all"}"#, 0),
        (r#"{"plugins": {"guard@m": [{"path": "/x"}]}}"#, 0),
    ] {
        let machine = Machine::new();
        machine.put(user_file("claude-code"), GH);
        machine.put(".claude/plugins/installed_plugins.json", list);
        let report = machine
            .run(&["migrate", "--yes", "--json"])
            .code(code)
            .json();
        let (said, why) = verdict(&report, "gh");
        assert!(
            said == "stays" && why.contains("installed_plugins.json are not known: it "),
            "{list}: {said} {why}"
        );
    }
}

#[test]
fn a_server_in_the_old_place_of_vs_code_is_named() {
    let machine = Machine::new();
    machine.put(
        ".config/Code/User/settings.json",
        r#"{"mcp": {"servers": {"gh": {"command": "gh-mcp"}}}}"#,
    );
    let report = machine.migrate(&[]);
    let (said, why) = verdict(&report, "gh");
    assert!(
        said == "stays" && why.contains("moves it to `mcp.json`"),
        "{report:#}"
    );
}

#[test]
fn of_an_equal_server_that_is_off_no_tools_are_there_twice() {
    for (is_off, is_told) in [(true, false), (false, true)] {
        let machine = Machine::new();
        let servers = json!({ "mcpServers": {
            "one": { "command": "gh-mcp" },
            "two": { "command": "gh-mcp", "disabled": is_off },
        } });
        machine.put(user_file("kiro"), &servers.to_string());
        let report = machine.migrate(&[]);
        let warnings = report["warnings"].to_string();
        assert_eq!(warnings.contains("twice"), is_told, "{report:#}");
    }
}

#[cfg(unix)]
#[test]
fn where_there_is_no_client_the_next_step_is_named() {
    use crate::support::terminal::Terminal;
    let machine = Machine::new();
    machine.setup().save();
    let Some(terminal) = Terminal::run(&machine.setup().command(&["clients"])) else {
        return;
    };
    terminal.shows("`mcpzip connect CLIENT`");
    let report = machine.run(&["doctor", "--json"]).json();
    assert!(
        report.to_string().contains("`mcpzip connect --help` lists"),
        "{report:#}"
    );
}
