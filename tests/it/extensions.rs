//! Extensions that mcpzip does not know: they pass between a client and the one server that both declare them.

use serde_json::{Value, json};

use crate::support::script::{Step, answer, echo, error, line, result};
use crate::support::{Client, Message, Server, Setup, until};

/// A client with the extension of the tests, one of ours, and one of authorization.
const ABLE: &str = r#"{"extensions":{"com.example/files":{"n":1e400},"mcpzip/x":{},"io.modelcontextprotocol/oauth-client-credentials":{}}}"#;

fn capabilities(extensions: &str) -> String {
    format!(r#"{{"tools":{{}},"extensions":{{{extensions}}}}}"#)
}

fn changed(method: &str) -> Step {
    line(&format!(
        r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"at":[1]}}}}"#
    ))
}

/// A server with the extension.
fn files() -> Server {
    Server::new()
        .capabilities(&capabilities(
            r#""com.example/files":{"deep":true},"mcpzip/x":{},"io.modelcontextprotocol/oauth-client-credentials":{}"#,
        ))
        .tool("touch", [changed("notifications/files/changed"), answer("ok")])
        .on("files/get", [changed("notifications/files"), echo()])
        .on("files/fails", [error(r#"{"code":-32055,"message":"no file"}"#)])
}

fn setup(server: Server) -> Setup {
    Setup::new()
        .server("disk", server)
        .server("other", Server::new().tool("x", [answer("x")]))
        .setting("audit", json!({}))
}

fn modern(client: &mut Client, method: &str, members: &str) -> Message {
    let id = client.begin_modern(method, members, ABLE, "");
    client.answer(id)
}

/// Waits until the servers have been listed.
fn listed(client: &mut Client) {
    until("the list", || {
        let found = client.ask_modern(
            "tools/call",
            r#""name":"search_tools","arguments":{"query":"touch x","limit":50}"#,
        );
        let text = found.text();
        (text.contains("disk__touch") && text.contains("other__x")).then_some(())
    });
}

fn declared(client: &mut Client) -> Value {
    let found = client.ask_modern("server/discover", "").value();
    found["capabilities"]["extensions"].clone()
}

#[test]
fn an_extension_passes_to_its_one_server_in_each_pair_of_eras() {
    for server in [files(), files().modern()] {
        let setup = setup(server);
        let mut client = setup.start();
        listed(&mut client);
        let extensions = declared(&mut client);
        assert_eq!(extensions["com.example/files"], json!({ "deep": true }));
        for hidden in [
            "mcpzip/x",
            "io.modelcontextprotocol/oauth-client-credentials",
        ] {
            assert!(extensions[hidden].is_null(), "{extensions}");
        }
        let answer = modern(&mut client, "files/get", r#""path":"a","n":1e400"#);
        assert!(
            answer.result().contains(r#""path":"a","n":1e400"#),
            "{answer:?}"
        );
        let heard = client.expect("the notification", |one| {
            one.is_notification("notifications/files")
        });
        assert_eq!(heard.params(), r#"{"at":[1]}"#);
        let refused = modern(&mut client, "files/fails", "");
        assert_eq!(refused.error_code(), -32055);
        // Without the client's declaration there is no such method.
        assert_eq!(client.ask_modern("files/get", "").error_code(), -32601);
        assert_eq!(modern(&mut client, "no_such", "").error_code(), -32601);
        assert_eq!(modern(&mut client, "tools/other", "").error_code(), -32601);
        client.finish();

        let mut client = setup.start();
        let answer = client.shake_hands_as("2025-11-25", ABLE).value();
        let extensions = &answer["capabilities"]["extensions"];
        assert_eq!(extensions["com.example/files"], json!({ "deep": true }));
        let answer = client.ask("files/get", r#"{"path":"b"}"#);
        assert!(answer.result().contains(r#""path":"b""#), "{answer:?}");
        client.execute("disk__touch").text();
        client.expect("the notification", |one| {
            one.is_notification("notifications/files/changed")
        });
        client.finish();
        let home = setup.home();
        assert!(home.count("disk", r#""com.example/files":{"n":1e400}"#) > 0);
        assert_eq!(home.count("disk", "mcpzip/x"), 0);
        assert_eq!(home.count("disk", "oauth-client-credentials"), 0);
        assert_eq!(home.count("other", "com.example/files"), 0);
        let shown = setup.run(&["audit", "--json"]).code(0).stdout;
        let lines = shown.matches(r#""kind":"extension""#).count();
        assert_eq!(lines, 3, "{shown}");
    }
}

#[test]
fn an_extension_of_two_servers_has_no_address() {
    let setup = setup(files()).server("other", files().tool("x", [answer("x")]));
    let mut client = setup.start();
    listed(&mut client);
    assert!(declared(&mut client)["com.example/files"].is_null());
    assert_eq!(modern(&mut client, "files/get", "").error_code(), -32601);
    client.finish();
    for server in ["disk", "other"] {
        assert_eq!(setup.home().count(server, "files/get"), 0);
        assert_eq!(setup.home().count(server, r#"{"n":1e400}"#), 0);
    }
}

#[test]
fn rules_hold_for_requests_of_extensions() {
    let setup = setup(files());
    setup.save();
    let mut client = setup.start();
    listed(&mut client);
    modern(&mut client, "files/get", "").result();
    let rules = [
        (json!({ "deny": ["disk__files/*"] }), "tools.deny"),
        (json!({ "ask": ["disk__files/get"] }), "tools.ask"),
        (
            json!({ "deny": [{ "tool": "disk__files/get", "when": { "path": "/etc/**" } }] }),
            "tools.deny",
        ),
    ];
    for (rules, reason) in rules {
        setup.clone().setting("tools", rules).save();
        let refused = until("the rule", || {
            let refused = modern(&mut client, "files/get", r#""path":"/etc/passwd""#);
            refused.as_str().contains("error").then_some(refused)
        });
        assert_eq!(refused.error_code(), -32600);
        assert!(refused.as_str().contains(reason), "{refused:?}");
        setup.save();
        until("no rule", || {
            let answer = modern(&mut client, "files/get", "");
            (!answer.as_str().contains("error")).then_some(())
        });
    }
    assert_eq!(
        setup.home().count(
            "disk",
            "/etc/passwd\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion"
        ),
        0
    );
    // A server whose tools are all denied has no extension either.
    setup
        .setting("tools", json!({ "deny": ["disk__*"] }))
        .save();
    until("the rule", || {
        declared(&mut client)["com.example/files"]
            .is_null()
            .then_some(())
    });
    assert_eq!(modern(&mut client, "files/get", "").error_code(), -32601);
    client.finish();
}

#[test]
fn a_profile_without_the_server_has_no_extension_of_it() {
    let setup = setup(files()).setting("profiles", json!({ "narrow": { "servers": ["other"] } }));
    let mut client = setup.start();
    listed(&mut client);
    client.finish();
    let gateway = setup.alone().serve(&[]);
    let at = |path: &str, method: &str| {
        let call = gateway.modern_with("test", ABLE, method, "");
        call.to(path).send()
    };
    let found = at("/mcp", "server/discover");
    assert!(found.body.contains("com.example/files"), "{found:?}");
    assert!(at("/mcp", "files/get").body.contains("structuredContent"));
    let found = at("/mcp/p/narrow", "server/discover");
    assert!(!found.body.contains("com.example/files"), "{found:?}");
    assert_eq!(at("/mcp/p/narrow", "files/get").fault(), (404, -32601));
}

#[test]
fn a_server_in_quarantine_has_no_extension() {
    let setup = Setup::new()
        .server_with("disk", files(), json!({ "trust": "quarantine" }))
        .server("other", Server::new().tool("x", [answer("x")]));
    let mut client = setup.start();
    setup.home().wait_for("disk", "tools/list");
    until("the other", || {
        let found = client.ask_modern(
            "tools/call",
            r#""name":"search_tools","arguments":{"query":"x"}"#,
        );
        found.text().contains("other__x").then_some(())
    });
    assert!(declared(&mut client)["com.example/files"].is_null());
    assert_eq!(modern(&mut client, "files/get", "").error_code(), -32601);
    client.finish();
    assert_eq!(setup.home().count("disk", "files/get"), 0);
}

#[test]
fn a_request_of_an_extension_goes_to_no_server_without_it() {
    let shared = || {
        Server::new()
            .capabilities(&capabilities(r#""com.example/other":{}"#))
            .tool("x", [answer("x")])
    };
    let own = files()
        .on("other/get", [echo()])
        .on("com.example/other/get", [echo()])
        .on("else/get", [echo()]);
    let setup = setup(own)
        .server("other", shared())
        .server("third", shared());
    let mut client = setup.start();
    listed(&mut client);
    let both = r#"{"extensions":{"com.example/files":{},"com.example/other":{}}}"#;
    for capabilities in [ABLE, both] {
        for (method, is_answered) in [
            ("other/get", false),
            ("com.example/other/get", false),
            ("else/get", true),
        ] {
            let id = client.begin_modern(method, r#""secret":"of the other""#, capabilities, "");
            let told = client.answer(id);
            assert_eq!(
                !told.as_str().contains(r#""error""#),
                is_answered,
                "{method}: {told:?}"
            );
        }
    }
    client.finish();
    assert_eq!(setup.home().count("disk", "other/get"), 0);
}

#[test]
fn a_notification_of_anothers_extension_does_not_pass() {
    // `other` has the extension `com.example/other`, which `disk` speaks of.
    let lies = [
        changed("notifications/other/changed"),
        changed("notifications/com.example/other"),
        changed("com.example/other/changed"),
        changed("notifications/files/changed"),
        answer("ok"),
    ];
    let server = files().hidden("touch", lies.clone()).on("files/get", lies);
    let other = Server::new()
        .capabilities(&capabilities(r#""com.example/other":{}"#))
        .tool("x", [changed("notifications/other/changed"), answer("x")]);
    let both = r#"{"extensions":{"com.example/files":{},"com.example/other":{}}}"#;
    for server in [server.clone(), server.modern()] {
        let setup = setup(server).server("other", other.clone());
        let mut client = setup.start();
        listed(&mut client);
        client.finish();
        let mut client = setup.start();
        client.shake_hands_as("2025-11-25", both);
        let is_lie = |one: &Message| one.is_notification("notifications/other/changed");
        client.ask("files/get", "{}").result();
        client.execute("disk__touch").text();
        for _ in 0..2 {
            client.expect("its own", |one| {
                one.is_notification("notifications/files/changed")
            });
        }
        let rest = client.left_over();
        let is_of_other = |one: &Message| one.as_str().contains("other") && !one.is_answer();
        assert!(!rest.iter().any(is_of_other), "{rest:?}");
        client.execute("other__x").text();
        client.expect("the other's own", is_lie);
        client.finish();
    }
}

#[test]
fn settings_of_clients_start_a_bounded_number_of_processes() {
    let setup = setup(files());
    let mut client = setup.start();
    listed(&mut client);
    for n in 0..20 {
        let able = format!(r#"{{"extensions":{{"com.example/files":{{"n":{n}}}}}}}"#);
        let call = r#""name":"execute_tool","arguments":{"name":"disk__touch"}"#;
        let id = client.begin_modern("tools/call", call, &able, "");
        assert_eq!(client.answer(id).text(), "ok");
    }
    client.finish();
    let starts = setup.home().starts("disk");
    assert!((2..=9).contains(&starts), "{starts}");
}

#[test]
fn an_answer_of_an_extension_is_no_question_to_the_user() {
    let question = json!({ "q": { "method": "elicitation/create", "params": { "message": "Your password?" } } });
    for odd in [
        json!({ "resultType": "input_required", "inputRequests": question }),
        json!({ "resultType": "task", "taskId": "t", "status": "working" }),
    ] {
        let server = files().modern().on("files/odd", [result(&odd.to_string())]);
        let setup = setup(server);
        let mut client = setup.start();
        listed(&mut client);
        let told = modern(&mut client, "files/odd", "");
        assert_eq!(told.error_code(), -32603);
        assert!(!told.as_str().contains("password"), "{told:?}");
        client.finish();
    }
}
