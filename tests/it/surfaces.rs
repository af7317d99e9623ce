//! The surface: how a client sees the servers' tools, decided once for its session.

use serde_json::{Value, json};

use crate::support::script::{answer, result};
use crate::support::{Client, Server, Setup, until};

/// A server with one tool of about 60 tokens.
fn few() -> Server {
    Server::new().tool("first", [answer("done")])
}

fn auto(small: usize) -> Setup {
    Setup::new()
        .server("a", few())
        .setting("surface", json!({ "mode": "auto", "small": small }))
}

fn names(client: &mut Client) -> Vec<String> {
    let list = client.ask("tools/list", "{}").value();
    let tools = list["tools"].as_array().cloned();
    tools
        .unwrap_or_else(|| panic!("no tools: {list}"))
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

const THREE: [&str; 3] = ["search_tools", "describe_tool", "execute_tool"];

/// Lists the servers' tools into the cache.
fn fill_cache(setup: &Setup) {
    setup.save();
    let _ = setup.run(&["servers"]).code(0);
}

fn decided(setup: &Setup) -> Vec<Value> {
    let status = setup.run(&["status", "--json"]).code(0).json();
    status["surface"]["decided"].as_array().unwrap().clone()
}

/// The tools of a new session of the client `name`.
fn of_session(setup: &Setup, name: &str) -> Vec<String> {
    let mut client = setup.start();
    client.shake_hands_named(name);
    let names = names(&mut client);
    client.finish();
    names
}

#[test]
fn a_small_set_is_shown_directly_and_status_says_why() {
    let setup = auto(2000);
    fill_cache(&setup);
    assert_eq!(of_session(&setup, "claude-code"), ["a__first"]);
    let decided = decided(&setup);
    assert_eq!(decided.len(), 1, "{decided:?}");
    assert_eq!(decided[0]["client"], "claude-code");
    assert_eq!(decided[0]["surface"], "direct");
    assert_eq!(decided[0]["tools"], 1);
    let reason = decided[0]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("1 tool with ") && reason.ends_with(" at most 2000"),
        "{reason}"
    );
}

#[test]
fn a_large_set_and_one_of_unknown_size_are_shown_by_the_three_tools() {
    let setup = auto(2000);
    // The cache is empty.
    assert_eq!(of_session(&setup, "claude-code"), THREE);
    assert!(decided(&setup).is_empty());
    let setup = auto(5);
    fill_cache(&setup);
    assert_eq!(of_session(&setup, "claude-code"), THREE);
    assert_eq!(decided(&setup)[0]["surface"], "tools");
}

#[test]
fn no_tools_are_of_unknown_size_and_those_that_wait_for_approval_count() {
    let automatic = || Setup::new().setting("surface", json!("auto"));
    let quarantined = json!({ "trust": "quarantine" });
    let prompts = Server::new()
        .capabilities(r#"{"prompts":{}}"#)
        .prompt("p", [result(r#"{"messages":[]}"#)]);
    let denied = json!({ "tools": { "deny": ["*"] } });
    for (what, setup) in [
        ("no server", automatic()),
        ("prompts only", automatic().server("a", prompts)),
        (
            "all denied",
            automatic().server_with("a", few(), denied.clone()),
        ),
        (
            "quarantine",
            automatic().server_with("a", few(), quarantined.clone()),
        ),
    ] {
        fill_cache(&setup);
        assert_eq!(of_session(&setup, "x"), THREE, "{what}");
        assert!(decided(&setup).is_empty(), "{what}");
    }
    let setup = automatic()
        .server("b", few())
        .server_with("a", few(), denied);
    fill_cache(&setup);
    assert_eq!(of_session(&setup, "x"), ["b__first"]);
    let many = (0..100).fold(Server::new(), |server, at| {
        server.tool(&format!("tool{at}"), [answer("done")])
    });
    for (waiting, expected) in [(few(), &["b__first"][..]), (many, &THREE)] {
        let setup = automatic()
            .server("b", few())
            .server_with("a", waiting, quarantined.clone());
        fill_cache(&setup);
        assert_eq!(of_session(&setup, "x"), expected);
    }
}

#[test]
fn a_decision_stays_until_the_tools_have_changed_by_half() {
    let definition =
        |name: &str| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
    let ten: Vec<String> = (0..10).map(|at| definition(&format!("tool{at}"))).collect();
    let with = |count: usize, small: usize| {
        let server = ten.iter().take(count);
        let server = server.fold(Server::new(), |server, tool| server.entry(tool));
        Setup::new()
            .server("a", server)
            .setting("surface", json!({ "mode": "auto", "small": small }))
    };
    let first = with(10, 10_000);
    fill_cache(&first);
    assert_eq!(of_session(&first, "x").len(), 10);
    let tokens = decided(&first)[0]["tokens"].as_u64().unwrap();
    // A limit just above the ten, so that two more would exceed it.
    let small = usize::try_from(tokens).unwrap() + 1;
    let setup = with(10, small);
    fill_cache(&setup);
    assert_eq!(of_session(&setup, "x").len(), 10);
    let grow = |count: usize| {
        let all: Vec<String> = (0..count)
            .map(|at| definition(&format!("tool{at}")))
            .collect();
        let server = all
            .iter()
            .fold(Server::new(), |server, tool| server.entry(tool));
        // The same entry, with other tools behind it.
        std::fs::write(setup.home().path("a.script.json"), server.to_json()).unwrap();
        let _ = setup.run(&["servers"]).code(0);
    };
    grow(12);
    assert_eq!(
        of_session(&setup, "x").len(),
        12,
        "a fifth more changes nothing"
    );
    grow(16);
    assert_eq!(of_session(&setup, "x"), THREE, "the set has grown by half");
    grow(10);
    assert_eq!(of_session(&setup, "x"), THREE, "less than half has gone");
}

#[test]
fn a_person_decides_for_a_client_or_for_a_session() {
    let setup = auto(2000).setting("clients", json!({ "codex": { "surface": "tools" } }));
    fill_cache(&setup);
    assert_eq!(of_session(&setup, "codex-mcp-client"), THREE);
    assert_eq!(of_session(&setup, "other"), ["a__first"]);
    for (arguments, expected) in [
        (&["serve", "--surface", "tools"][..], &THREE[..]),
        (&["serve", "--direct"], &["a__first"]),
    ] {
        let mut client = setup.start_with(arguments);
        client.shake_hands_named("codex-mcp-client");
        assert_eq!(names(&mut client), expected, "{arguments:?}");
        client.finish();
    }
    let wrong = setup.run(&["serve", "--surface", "all"]);
    assert!(wrong.stderr.contains("auto, tools or direct"), "{wrong:?}");
}

#[test]
fn clients_of_one_server_over_http_each_have_their_surface() {
    let setup = Setup::new()
        .server("a", few())
        .setting("clients", json!({ "direct-one": { "surface": "direct" } }));
    fill_cache(&setup);
    let gateway = setup.serve(&[]);
    let list = |client: &str| {
        gateway
            .modern_of(client, "tools/list", "")
            .send()
            .message()
            .value()
    };
    let listed = |list: Value| list["tools"][0]["name"].as_str().unwrap().to_owned();
    assert_eq!(listed(list("direct-one")), "a__first");
    assert_eq!(listed(list("another")), "search_tools");
    let call = |client: &str, name: &str| {
        let members = format!(r#""name":"{name}","arguments":{{}}"#);
        gateway
            .modern_of(client, "tools/call", &members)
            .send()
            .message()
    };
    assert_eq!(call("direct-one", "a__first").text(), "done");
    assert_eq!(call("another", "a__first").error_code(), -32602);
    assert_eq!(call("direct-one", "search_tools").error_code(), -32602);
}

#[test]
fn an_unreadable_decision_is_made_again() {
    let setup = auto(2000);
    fill_cache(&setup);
    assert_eq!(of_session(&setup, "x"), ["a__first"]);
    let directory = setup.home().path("state/surfaces");
    let file = until("the decision", || {
        let files = std::fs::read_dir(&directory).ok()?.flatten();
        files.map(|file| file.path()).find(|path| path.is_file())
    });
    for content in [&b""[..], b"{\"version\":99}", b"\xff"] {
        std::fs::write(&file, content).unwrap();
        assert_eq!(of_session(&setup, "x"), ["a__first"]);
        assert_eq!(decided(&setup).len(), 1);
    }
}

#[test]
fn a_wrong_surface_is_reported_and_the_default_applies() {
    let setup = Setup::new()
        .server("a", few())
        .setting("surface", json!("everything"))
        .setting("clients", json!({ "x": { "surface": 7 } }));
    fill_cache(&setup);
    assert_eq!(of_session(&setup, "x"), THREE);
    let doctor = setup.run(&["doctor"]);
    let text = format!("{}{}", doctor.stdout, doctor.stderr);
    assert!(
        text.contains("surface") && text.contains("everything"),
        "{text}"
    );
}

/// A server with a tool that declares to be read-only, one that declares both, and an unmarked one.
fn marked() -> Server {
    let tool = |name: &str, annotations: Value| {
        let schema = json!({ "type": "object", "properties": { "count": { "type": "integer" } } });
        json!({ "name": name, "inputSchema": schema, "annotations": annotations }).to_string()
    };
    let read = r#"{"content":[{"type":"text","text":"{\"a\":1,\"b\":2}"}]}"#;
    Server::new()
        .tool_as(
            "look",
            &tool("look", json!({ "readOnlyHint": true })),
            [result(read)],
        )
        .tool_as(
            "both",
            &tool(
                "both",
                json!({ "readOnlyHint": true, "destructiveHint": true }),
            ),
            [answer("gone")],
        )
        .tool_as("list_all", &tool("list_all", json!({})), [answer("listed")])
}

fn with_read_tool() -> Setup {
    Setup::new()
        .server("a", marked())
        .setting("surface", json!({ "read_tool": "on" }))
}

#[test]
fn execute_read_tool_runs_only_tools_that_declare_to_be_read_only() {
    let setup = with_read_tool();
    let mut client = setup.connect();
    let list = client.ask("tools/list", "{}").value();
    let twin = &list["tools"][2];
    assert_eq!(twin["name"], "execute_read_tool");
    assert_eq!(twin["annotations"]["readOnlyHint"], true);
    assert_eq!(list["tools"][3]["name"], "execute_tool");
    let call = r#"{"name":"a__look","arguments":{"count":"3"},"select":".b"}"#;
    let answer = client.call("execute_read_tool", call);
    assert_eq!(answer.text(), "2", "{answer:?}");
    for name in ["a__list_all", "a__both"] {
        let refused = client.call("execute_read_tool", &json!({ "name": name }).to_string());
        let text = refused.tool_error();
        assert!(
            text.contains(name) && text.contains("execute_tool"),
            "{text}"
        );
    }
    assert_eq!(client.execute("a__list_all").text(), "listed");
    for wrong in [
        r#"{"calls":[{"name":"a__look"}]}"#,
        r#"{"name":"a__look","timeout":5}"#,
        "{}",
        r#"{"name":"a__missing"}"#,
    ] {
        assert!(
            client.call("execute_read_tool", wrong).is_tool_error(),
            "{wrong}"
        );
    }
    client.finish();
    assert_eq!(
        setup.home().count("a", "\"both\""),
        0,
        "the server never got it"
    );
}

#[test]
fn execute_read_tool_is_unknown_where_it_is_not_listed() {
    let setup = Setup::new().server("a", marked());
    let mut client = setup.connect();
    assert_eq!(names(&mut client), THREE);
    let answer = client.call("execute_read_tool", r#"{"name":"a__look"}"#);
    assert_eq!(answer.error_code(), -32602);
}

#[test]
fn rules_and_the_audit_log_apply_to_execute_read_tool() {
    let setup = with_read_tool()
        .setting("tools", json!({ "deny": ["a__look"] }))
        .setting("audit", json!({ "arguments": "none" }));
    let mut client = setup.connect();
    let denied = client
        .call("execute_read_tool", r#"{"name":"a__look"}"#)
        .tool_error();
    assert!(
        denied.contains("deny") || denied.contains("denied"),
        "{denied}"
    );
    let unmarked = client.call("execute_read_tool", r#"{"name":"a__list_all"}"#);
    assert!(unmarked.is_tool_error());
    client.finish();
    let log = setup.run(&["audit", "--json"]).stdout;
    let mut lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let line = lines.find(|line| line["tool"] == "list_all");
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert_eq!(line["kind"], "refusal", "{line}");
    assert_eq!(line["outcome"], "refused", "{line}");
}

#[test]
fn auto_lists_execute_read_tool_for_codex_and_not_for_others() {
    let setup = auto(5);
    fill_cache(&setup);
    assert_eq!(of_session(&setup, "claude-code"), THREE);
    assert!(of_session(&setup, "codex-mcp-client").contains(&"execute_read_tool".to_owned()));
    let off = auto(5).setting(
        "surface",
        json!({ "mode": "auto", "small": 5, "read_tool": "off" }),
    );
    fill_cache(&off);
    assert_eq!(of_session(&off, "codex-mcp-client"), THREE);
}

#[test]
fn execute_read_tool_works_over_http() {
    let gateway = with_read_tool().serve(&[]);
    let call = |name: &str| {
        let arguments = json!({ "name": name });
        let members = format!(r#""name":"execute_read_tool","arguments":{arguments}"#);
        gateway.modern("tools/call", &members).send().message()
    };
    assert!(call("a__look").text().contains("\"a\":1"));
    assert!(call("a__list_all").tool_error().contains("execute_tool"));
    let session = gateway.session();
    let params = r#"{"name":"execute_read_tool","arguments":{"name":"a__look"}}"#;
    let answer = session.request(2, "tools/call", params).send().message();
    assert!(answer.text().contains("\"b\":2"));
}

#[test]
fn connect_warns_that_permissions_for_execute_tool_do_not_hold_for_single_tools() {
    let said = |setup: &Setup| {
        setup.save();
        let outcome = setup.run(&["connect", "claude-code", "--dry-run"]).code(0);
        outcome
            .stderr
            .contains("permissions in Claude Code for `execute_tool`")
    };
    assert!(said(&auto(2000)));
    let tools = json!({ "claude-code": { "surface": "tools" } });
    assert!(!said(&auto(2000).setting("clients", tools)));
    assert!(!said(&Setup::new().server("a", few())));
}

#[test]
fn warnings_about_permissions_are_about_the_surface_that_the_client_gets() {
    let setup = |surface: &str, projects: Value| {
        let profile = json!({ "servers": ["a"], "surface": surface, "projects": projects });
        Setup::new()
            .server("a", few())
            .setting("profiles", json!({ "d": profile }))
    };
    let said = |setup: &Setup, arguments: &[&str]| {
        setup.save();
        let command = [&["connect", "claude-code", "--dry-run"], arguments].concat();
        let said = setup.run(&command).code(0).stderr;
        said.lines()
            .find(|line| line.contains("may get the servers' tools under"))
            .map(str::to_owned)
    };
    let of_profile = |said: Option<String>| {
        let said = said.expect("a warning");
        assert!(
            said.contains("of the profile `d`")
                && said.contains(r#"`"profiles": {"d": {"surface": "tools"}}`"#),
            "{said}"
        );
    };
    for surface in ["direct", "auto"] {
        let setup = setup(surface, json!([]));
        of_profile(said(&setup, &["--profile", "d"]));
        assert_eq!(said(&setup, &[]), None);
        let tools = json!({ "claude-code": { "surface": "tools" } });
        of_profile(said(
            &setup.clone().setting("clients", tools),
            &["--profile", "d"],
        ));
        let own = json!({ "claude-code": { "profile": "d" } });
        of_profile(said(&setup.clone().setting("clients", own), &[]));
    }
    of_profile(said(&setup("direct", json!(["/nowhere"])), &[]));
    let tools = setup("tools", json!([])).setting("surface", json!("auto"));
    assert_eq!(said(&tools, &["--profile", "d"]), None);
    assert!(said(&tools, &[]).is_some());
}
