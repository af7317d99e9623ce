//! Names that clients allow and `mcpzip` does not, and clients' profiles.

use serde_json::json;

use super::case::{Machine, user_file, verdict};
use crate::support::script::echo;
use crate::support::{Server, Setup, command};

#[test]
fn servers_of_a_profile_of_vs_code_move_too() {
    let machine = Machine::new();
    let file = ".config/Code/User/profiles/-1a2b/mcp.json";
    machine.put(
        file,
        r#"{"servers": {"x": {"type": "stdio", "command": "x-mcp"}}}"#,
    );
    let before = machine.everything();
    let report = machine.migrate(&[]);
    assert_eq!(verdict(&report, "x").0, "moves");
    assert_eq!(machine.servers(), json!({ "x": { "command": "x-mcp" } }));
    assert!(
        machine.read(file).contains("serve"),
        "{}",
        machine.read(file)
    );
    assert!(!machine.home(user_file("vscode")).exists());
    machine.undo();
    assert_eq!(machine.everything(), before);
}

#[test]
fn a_name_that_is_none_here_is_taken_under_a_safe_one_and_its_rules_hold() {
    let server = || {
        Server::new()
            .tool("read", [echo()])
            .tool("remove", [echo()])
    };
    let setup = Setup::new()
        .server("my server", server())
        .server("a__b", server())
        .setting(
            "tools",
            json!({ "deny": ["my server__remove", "A__B__rem*"] }),
        );
    setup.save();
    let listed = command::run(setup.command(&["list"]), "").code(0).json();
    for (at, name, written) in [(0, "a_b", "a__b"), (1, "my-server", "my server")] {
        let server = &listed["servers"][at];
        assert_eq!(server["name"], name);
        assert_eq!(server["written"], written);
    }
    let mut client = setup.start();
    client.shake_hands("2025-11-25");
    for name in ["my-server", "a_b"] {
        assert!(
            client
                .execute(&format!("{name}__read"))
                .result()
                .contains("content")
        );
        let denied = client.execute(&format!("{name}__remove"));
        assert!(
            denied.result().contains("\"isError\":true"),
            "{name}: {}",
            denied.result()
        );
    }
    client.finish();
    for (name, key) in [("my-server", "my server"), ("a__b", "a__b")] {
        let _ = command::run(setup.command(&["remove", name]), "").code(0);
        let text = std::fs::read_to_string(setup.config_path()).unwrap();
        assert!(!text.contains(&format!("\"{key}\":")), "{text}");
    }
}

#[test]
fn a_character_of_two_units_is_two_underscores_in_names_of_clients_in_javascript() {
    for (client, own, file, rules) in [
        (
            "claude-code",
            r#"{"mcpServers": {"emoji😀": {"command": "e"}}}"#,
            ".claude/settings.json",
            r#"{"permissions": {"deny": ["mcp__emoji____t3"]}}"#,
        ),
        (
            "goose",
            "extensions:\n  emoji😀:\n    type: stdio\n    cmd: e\n    enabled: true\n",
            ".config/goose/permission.yaml",
            "user:\n  never_allow:\n    - emoji___t3\n",
        ),
    ] {
        let machine = Machine::new();
        machine.put(user_file(client), own);
        machine.put(file, rules);
        let report = machine.migrate(&[]);
        let name = verdict(&report, "emoji😀").1;
        assert_eq!(
            machine.servers()[&name]["tools"],
            json!({ "deny": ["t3"] }),
            "{client}: {report:#}"
        );
    }
}

#[test]
fn a_list_of_permitted_tools_may_name_a_server_as_it_is_written() {
    let tools = Server::new()
        .tool("read", [echo()])
        .tool("remove", [echo()]);
    let setup = Setup::new()
        .server("my server", tools)
        .setting("tools", json!({ "allow": ["my server__read"] }));
    let mut client = setup.start();
    client.shake_hands("2025-11-25");
    for (tool, is_error) in [("read", false), ("remove", true)] {
        let told = client.execute(&format!("my-server__{tool}"));
        assert_eq!(
            told.result().contains("\"isError\":true"),
            is_error,
            "{tool}: {}",
            told.result()
        );
    }
    client.finish();
}

#[test]
fn a_way_out_tells_servers_of_nearly_one_name_apart() {
    let machine = Machine::new();
    let file = |name: &str| json!({ "mcpServers": { name: { "command": name } } }).to_string();
    machine.put(user_file("cursor"), &file("my db"));
    machine.put(
        ".cursor/cli-config.json",
        r#"{"permissions": {"deny": ["Mcp(my db:drop_*)"]}}"#,
    );
    machine.put(user_file("kiro"), &file("my-db"));
    let told = machine.run(&["migrate", "--yes"]).code(1).stderr;
    assert!(told.contains("--only my-db` moves"), "{told}");
    assert!(told.contains("(`my-db` is another one)"), "{told}");
}
