//! `show`: tools of servers that stand next to the three meta-tools.

use serde_json::{Value, json};

use crate::support::script::{answer, change_tools, echo, sleep};
use crate::support::{Client, Message, Server, Setup};

const THREE: [&str; 3] = ["search_tools", "describe_tool", "execute_tool"];

/// An odd definition, to compare bytes.
const DEFINITION: &str = r#"{"description":"odd","name":"add","inputSchema":{"type":"object","x":1e400,"properties":{"text":{"type":"string"}}},"annotations":{"z":null},"outputSchema":{"type":"object"}}"#;

fn notes() -> Server {
    Server::new()
        .tool_as("add", DEFINITION, [echo()])
        .tool("remove", [answer("removed")])
        .tool("list_all", [answer("listed")])
}

fn shop() -> Server {
    Server::new()
        .tool("buy", [answer("bought")])
        .tool("add", [answer("added")])
}

fn showing(patterns: &Value) -> Setup {
    Setup::new()
        .server("notes", notes())
        .server("shop", shop())
        .setting("show", patterns.clone())
}

fn names_of(list: &Message) -> Vec<String> {
    // No number type holds it.
    let list = list.result().replace("1e400", "1");
    let list: Value = serde_json::from_str(&list).unwrap();
    let tools = list["tools"].as_array().expect("there are tools");
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

fn names(client: &mut Client) -> Vec<String> {
    names_of(&client.ask("tools/list", "{}"))
}

/// The three tools and those of servers.
fn three_and(shown: &[&str]) -> Vec<String> {
    let all = THREE.iter().chain(shown);
    all.map(|name| (*name).to_owned()).collect()
}

fn doctor(setup: &Setup) -> String {
    let doctor = setup.run(&["doctor"]);
    format!("{}{}", doctor.stdout, doctor.stderr)
}

#[test]
fn shown_tools_stand_next_to_the_three_in_their_servers_own_bytes() {
    // The cache is empty: the list waits for the servers named.
    let setup = showing(&json!(["notes__*", "shop__Buy"]));
    let mut client = setup.start();
    let greeting = client.shake_hands("2025-11-25").value();
    assert_eq!(greeting["capabilities"]["tools"]["listChanged"], true);
    let list = client.ask("tools/list", "{}");
    let expected = three_and(&[
        "notes__add",
        "notes__remove",
        "notes__list_all",
        "shop__buy",
    ]);
    assert_eq!(names_of(&list), expected);
    let own = DEFINITION.replace(r#""name":"add""#, r#""name":"notes__add""#);
    assert!(list.result().contains(&own), "{list:?}");
    let called = client.call("notes__add", r#"{"text":"a", "n":1e400}"#);
    assert!(called.result().contains("1e400"), "{called:?}");
    assert_eq!(client.call("shop__buy", "{}").text(), "bought");
    assert_eq!(client.execute("shop__add").text(), "added");
    assert_eq!(client.execute("notes__remove").text(), "removed");
    // A tool that is not listed is not called by its name.
    let other = client.call("shop__add", "{}");
    assert_eq!(other.error_code(), -32602);
    for wrong in ["add", "buy", "notes__nothing", "mcpzip__status", "nothing"] {
        assert_eq!(client.call(wrong, "{}").error_code(), -32602, "{wrong}");
    }
    client.finish();
}

#[test]
fn a_denied_or_held_tool_is_neither_shown_nor_called_by_its_name() {
    let setup = Setup::new()
        .server_with("notes", notes(), json!({ "tools": { "deny": ["remove"] } }))
        .server_with("held", notes(), json!({ "trust": "quarantine" }))
        .setting("show", json!(["notes__*", "held__*", "shop__*"]))
        .server("shop", shop())
        .setting(
            "tools",
            json!({ "deny": ["shop__buy"], "ask": ["notes__add"] }),
        );
    let mut client = setup.connect();
    let expected = three_and(&["notes__add", "notes__list_all", "shop__add"]);
    assert_eq!(names(&mut client), expected);
    for name in ["notes__remove", "held__add", "shop__buy"] {
        let refused = client.call(name, "{}").tool_error();
        assert!(refused.contains(name), "{refused}");
    }
    // The client cannot ask its user.
    let asked = client.call("notes__add", "{}");
    assert!(asked.is_tool_error(), "{asked:?}");
    client.finish();
    for (server, tool) in [
        ("notes", "remove"),
        ("notes", "add"),
        ("held", "add"),
        ("shop", "buy"),
    ] {
        let call = format!("\"name\":\"{tool}\"");
        let log = setup.home().log(server);
        let mut calls = log.lines().filter(|line| line.contains("tools/call"));
        assert!(!calls.any(|line| line.contains(&call)), "{log}");
    }
    let doctor = doctor(&setup);
    assert!(
        doctor.contains("show-unused") && doctor.contains("held back"),
        "{doctor}"
    );
}

#[test]
fn an_adapted_tool_is_shown_as_adapted() {
    let definition = DEFINITION.replace("1e400", "1");
    let server = Server::new().tool_as("add", &definition, [echo()]);
    let own = json!({ "override": { "add": { "name": "new_note", "description": "Writes.", "arguments": { "text": { "fixed": "x" } } } } });
    let setup = Setup::new()
        .server_with("notes", server, json!({ "tools": own }))
        .setting("show", json!(["notes__new_note"]));
    let mut client = setup.connect();
    let list = client.ask("tools/list", "{}");
    assert_eq!(names_of(&list), three_and(&["notes__new_note"]));
    assert!(!list.result().contains("\"text\""), "{list:?}");
    let called = client.call("notes__new_note", "{}");
    assert!(called.result().contains(r#""text":"x""#), "{called:?}");
    assert!(
        client
            .call("notes__new_note", r#"{"text":"y"}"#)
            .is_tool_error()
    );
    client.finish();
}

#[test]
fn a_client_has_its_own_shown_tools() {
    let setup = showing(&json!(["shop__buy"])).setting(
        "clients",
        json!({ "codex": { "show": ["notes__add"] }, "plain": { "show": [] }, "whole": { "surface": "direct" } }),
    );
    for (client, expected) in [
        ("codex-mcp-client", three_and(&["notes__add"])),
        ("plain", three_and(&[])),
        ("other", three_and(&["shop__buy"])),
    ] {
        let mut session = setup.start();
        session.shake_hands_named(client);
        assert_eq!(names(&mut session), expected, "{client}");
        session.finish();
    }
    let mut session = setup.start();
    session.shake_hands_named("whole");
    assert_eq!(names(&mut session).len(), 5, "direct lists each tool once");
    session.finish();
}

#[test]
fn the_list_of_shown_tools_follows_the_servers() {
    let other = r#"{"name":"new","inputSchema":{"type":"object"}}"#;
    let server = Server::new().tool("old", [change_tools(&[other]), answer("changed")]);
    let setup = Setup::new()
        .server("s", server)
        .setting("show", json!(["s__*"]));
    let mut client = setup.connect();
    assert_eq!(names(&mut client), three_and(&["s__old"]));
    assert_eq!(client.call("s__old", "{}").text(), "changed");
    let changed = |message: &Message| message.is_notification("notifications/tools/list_changed");
    client.expect("news of other tools", changed);
    while names(&mut client) != three_and(&["s__new"]) {
        client.expect("news of other tools", changed);
    }
    client.finish();
}

#[test]
fn shown_tools_come_from_the_cache_while_their_server_is_dead_and_another_is_never_awaited() {
    let setup = showing(&json!(["notes__add"]));
    setup.save();
    let _ = setup.run(&["servers"]).code(0);
    let slow = Server::new().at_start([sleep(60_000)]);
    let setup = setup.server("slow", slow);
    let start = std::time::Instant::now();
    let mut client = setup.connect();
    assert_eq!(names(&mut client), three_and(&["notes__add"]));
    assert!(start.elapsed().as_secs() < 30);
    drop(client);
    let setup = setup
        .entry("gone", r#"{"command":"/nowhere/to/be/found"}"#)
        .setting("show", json!(["gone__x", "shop__buy"]));
    let mut client = setup.connect();
    assert_eq!(names(&mut client), three_and(&["shop__buy"]));
    let failed = client.call("gone__x", "{}").tool_error();
    assert!(failed.contains("`gone`"), "{failed}");
    drop(client);
}

#[test]
fn shown_tools_work_over_http_with_and_without_a_session() {
    let setup = showing(&json!(["shop__buy"]));
    let gateway = setup.serve(&[]);
    let list = gateway.modern("tools/list", "").send().message();
    assert_eq!(names_of(&list), three_and(&["shop__buy"]));
    let call = |name: &str| {
        let members = format!(r#""name":"{name}","arguments":{{}}"#);
        gateway.modern("tools/call", &members).send().message()
    };
    assert_eq!(call("shop__buy").text(), "bought");
    assert_eq!(call("shop__add").error_code(), -32602);
    let session = gateway.session();
    let list = session.request(2, "tools/list", "{}").send().message();
    assert_eq!(names_of(&list), three_and(&["shop__buy"]));
    let call = session.request(3, "tools/call", r#"{"name":"shop__buy","arguments":{}}"#);
    assert_eq!(call.send().message().text(), "bought");
}

#[test]
fn a_long_name_is_cut_for_clients_that_cut_it() {
    let long = "x".repeat(70);
    let setup = Setup::new()
        .server("s", Server::new().tool(&long, [answer("done")]))
        .setting("show", json!(["s__*"]));
    for (name, longest) in [("claude-code", 64), ("gemini-cli-mcp-client", 46)] {
        let mut client = setup.start();
        client.shake_hands_named(name);
        let shown = names(&mut client).pop().unwrap();
        assert_eq!(shown.len(), longest, "{shown}");
        assert_eq!(client.call(&shown, "{}").text(), "done");
        client.finish();
    }
}

#[test]
fn a_wrong_show_is_reported_and_lists_nothing() {
    for (wrong, said) in [
        (json!("notes__add"), "a list of tools"),
        (json!({ "notes": "add" }), "a list of tools"),
        (json!(["*"]), "`server__tool`"),
        (json!(["*__add"]), "`server__tool`"),
        (json!(["notes__add", "add"]), "`server__tool`"),
        (json!([7]), "`server__tool`"),
    ] {
        let setup = showing(&wrong);
        let mut client = setup.connect();
        assert_eq!(names(&mut client), THREE, "{wrong}");
        client.finish();
        let doctor = doctor(&setup);
        assert!(
            doctor.contains("config-odd") && doctor.contains(said),
            "{doctor}"
        );
    }
}

#[test]
fn doctor_says_which_patterns_list_nothing() {
    let setup = showing(&json!(["nowhere__x", "notes__nothing", "shop__*"])).setting(
        "clients",
        json!({ "codex": { "surface": "direct", "show": ["shop__buy"] } }),
    );
    let said = doctor(&setup);
    for expected in [
        "`nowhere__x` in `show`: there is no such server",
        "`notes__nothing` in `show`: `notes` has no such tool",
        "`clients.codex.show` does nothing",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(!said.contains("`shop__*`"), "{said}");
    let status = setup.run(&["status", "--json"]).code(0).json();
    let show = json!(["nowhere__x", "notes__nothing", "shop__*"]);
    assert_eq!(status["surface"]["show"], show);
}

#[test]
fn calls_of_shown_tools_are_counted_and_audited() {
    let setup = showing(&json!(["shop__buy"])).setting("audit", json!({}));
    let mut client = setup.connect();
    names(&mut client);
    client.call("shop__buy", "{}");
    client.execute("shop__buy");
    client.finish();
    let log = setup.run(&["audit", "--json"]).stdout;
    let buys = log.lines().filter(|line| line.contains("\"tool\":\"buy\""));
    assert_eq!(buys.count(), 2, "{log}");
    let gain = setup.run(&["gain", "--json"]).code(0).json();
    let tool = &gain["servers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|server| server["server"] == "shop");
    assert_eq!(tool.unwrap()["tools"][0]["calls"], 2, "{gain}");
    assert_eq!(
        gain["sum"]["wrapping"], 9,
        "the call by its own name has no text around it"
    );
}

#[test]
fn gain_proposes_the_tools_that_clients_call_again_and_again() {
    let setup =
        showing(&json!(["notes__add"])).setting("tools", json!({ "deny": ["notes__list_all"] }));
    let mut client = setup.connect();
    names(&mut client);
    for _ in 0..4 {
        client.execute("shop__buy");
        client.execute("notes__add");
    }
    client.execute("shop__add");
    client.finish();
    let gain = setup.run(&["gain", "--json"]).code(0).json();
    let candidates = gain["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 1, "{gain}");
    assert_eq!(candidates[0]["tool"], "shop__buy");
    assert_eq!(candidates[0]["calls"], 4);
    assert!(candidates[0]["tokens"].as_u64().unwrap() > 5, "{gain}");
}

#[test]
fn connect_and_migrate_warn_of_tools_with_interfaces_where_the_client_shows_them() {
    let board = json!({
        "name": "show", "description": "Shows.", "inputSchema": { "type": "object" },
        "_meta": { "ui": { "resourceUri": "ui://board/main" } },
    });
    let board = Server::new().tool_as("show", &board.to_string(), [echo()]);
    let setup = Setup::new().server("board", board).server("shop", shop());
    setup.save();
    let said = |command: &[&str]| setup.run(command).code(0).stderr;
    let connect = ["connect", "cursor", "--dry-run"];
    // Nothing is known of the servers yet.
    assert!(said(&connect).contains("tools of servers that have one"));
    let _ = setup.run(&["servers"]);
    let told = said(&connect);
    assert!(told.contains("tools of `board` that have one"), "{told}");
    let other = said(&["connect", "gemini-cli", "--dry-run"]);
    assert!(!other.contains("own names"), "{other}");
    let own = json!({ "mcpServers": { "other": { "command": "other-server" } } });
    let file = setup.home().path("home/.cursor/mcp.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, own.to_string()).unwrap();
    let migrate = ["migrate", "--dry-run", "--client", "cursor", "--json"];
    let plan = setup.run(&migrate).json()["warnings"].to_string();
    assert!(plan.contains("tools of `board` that have one"), "{plan}");
}

#[test]
fn connect_and_migrate_warn_that_permissions_for_execute_tool_do_not_hold_for_shown_tools() {
    let setup = showing(&json!(["shop__buy"]));
    setup.save();
    let said = "`shop__buy` under their own names";
    let connect = setup.run(&["connect", "claude-code", "--dry-run"]).code(0);
    assert!(connect.stderr.contains(said), "{}", connect.stderr);
    let own = json!({ "mcpServers": { "other": { "command": "other-server" } } });
    std::fs::write(setup.home().path("home/.claude.json"), own.to_string()).unwrap();
    let migrate = ["migrate", "--dry-run", "--client", "claude-code", "--json"];
    let plan = setup.run(&migrate).json();
    assert!(plan["warnings"].to_string().contains(said), "{plan}");
    let plain = Setup::new().server("shop", shop());
    plain.save();
    std::fs::write(plain.home().path("home/.claude.json"), own.to_string()).unwrap();
    let plan = plain.run(&migrate).json();
    assert!(
        !plan["warnings"].to_string().contains("own names"),
        "{plan}"
    );
}
