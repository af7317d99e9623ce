//! The user's rules and the built-in server.

use serde_json::{Value, json};

use crate::support::script::{answer, answer_with, ask, echo};
use crate::support::{Client, Server, Setup};

const FORMS: &str = r#"{"elicitation":{}}"#;

fn setup(rules: Value) -> Setup {
    let server = Server::new()
        .tool("long", [answer(&"a line of text\\n".repeat(400))])
        .tool("short", [echo()]);
    Setup::new()
        .server("shop", server)
        .setting("results", json!({ "budget": 1000 }))
        .setting("management", json!("full"))
        .setting("approvals", json!({ "wait": "1s" }))
        .setting("tools", rules)
}

/// The built-in tools that can be called, of these.
fn callable(client: &mut Client) -> Vec<&'static str> {
    ["status", "stats", "servers", "read_result"]
        .into_iter()
        .filter(|tool| {
            let arguments = match *tool {
                "servers" => r#"{"operation":"list"}"#,
                "read_result" => r#"{"id":"none"}"#,
                _ => "{}",
            };
            let answer = client.execute_with(&format!("mcpzip__{tool}"), arguments);
            let told = answer.as_str();
            !told.contains("denied by the user's rules")
                && !told.contains("require the user's consent")
        })
        .collect()
}

#[test]
fn rules_hold_for_the_built_in_server_as_for_any_other() {
    let all = ["status", "stats", "servers", "read_result"];
    for (rules, expected) in [
        (json!({}), &all[..]),
        (json!({ "deny": ["mcpzip__*"] }), &[][..]),
        (
            json!({ "deny": ["MCPZIP__Status"] }),
            &["stats", "servers", "read_result"],
        ),
        (
            json!({ "deny": ["@write"] }),
            &["status", "stats", "read_result"],
        ),
        (json!({ "deny": ["*"] }), &["read_result"]),
        (
            json!({ "deny": ["mcpzip__read_result"] }),
            &["status", "stats", "servers"],
        ),
        // A list of what is allowed lets in what it names, and the rest of results that it allowed.
        (json!({ "allow": ["shop__*"] }), &["read_result"]),
        (
            json!({ "allow": ["shop__*", "mcpzip__status"] }),
            &["status", "read_result"],
        ),
        (
            json!({ "allow": ["@read"] }),
            &["status", "stats", "read_result"],
        ),
        (json!({ "allow": [] }), &["read_result"]),
        (
            json!({ "allow": ["shop__*"], "deny": ["mcpzip__read_*"] }),
            &[],
        ),
        (json!({ "ask": ["*"] }), &["read_result"]),
        (json!({ "ask": ["mcpzip__*"] }), &[]),
    ] {
        let mut client = setup(rules.clone()).connect();
        assert_eq!(callable(&mut client), expected, "{rules}");
        let is_status = expected.contains(&"status");
        let found = client.search("status of every connected MCP server");
        let is_found = found.contains("mcpzip__status(");
        assert!(
            is_status || !is_found || rules.get("ask").is_some(),
            "{rules}: {found}"
        );
        for older in ["proxy_status", "proxy_refresh"] {
            let is_denied = client.call(older, "{}").is_tool_error();
            let is_rule =
                rules.to_string().to_lowercase().contains("status") && older == "proxy_refresh";
            assert!(is_rule || is_denied != is_status, "{rules}: {older}");
        }
        client.finish();
    }
}

#[test]
fn a_user_is_asked_before_a_built_in_tool_where_the_rules_say_so() {
    for (action, is_done) in [("accept", true), ("decline", false)] {
        let setup = setup(json!({ "ask": ["mcpzip__servers"] }));
        let mut client = setup.start();
        client.shake_hands_as("2025-11-25", FORMS);
        let call = json!({ "name": "mcpzip__servers", "arguments": { "operation": "disable", "names": ["shop"] } });
        let id = client.begin("execute_tool", &call.to_string());
        let asked = client.expect("a question", |message| {
            message.is_notification("elicitation/create")
        });
        assert!(asked.params().contains("`mcpzip__servers`") && asked.params().contains("shop"));
        client.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"{action}"}}}}"#,
            asked.id()
        ));
        let answer = client.answer(id);
        assert_eq!(answer.as_str().contains("did not agree"), !is_done);
        let file = std::fs::read_to_string(setup.config_path()).unwrap();
        assert_eq!(file.contains(r#""disabled""#), is_done, "{file}");
        client.finish();
    }
}

#[test]
fn a_modern_client_is_asked_before_a_built_in_tool_too() {
    let setup = setup(json!({ "ask": ["mcpzip__*"] }));
    let mut client = setup.connect();
    let mut call = |members: &str| {
        let call =
            format!(r#""name":"execute_tool","arguments":{{"name":"mcpzip__status"}}{members}"#);
        let id = client.begin_modern("tools/call", &call, FORMS, "");
        client.answer(id)
    };
    let asked = call("").value();
    assert_eq!(asked["resultType"], "input_required");
    let state = &asked["requestState"];
    let told = call(&format!(
        r#","inputResponses":{{"consent":{{"action":"accept"}}}},"requestState":{state}"#
    ));
    assert!(told.text().contains("shop: "));
    client.finish();
}

#[test]
fn an_open_call_is_no_consent_to_another_call() {
    let form = r#"{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}"#;
    let open = Server::new().tool(
        "t",
        [
            ask("q-1", "elicitation/create", form),
            answer_with(r#""said":$answer"#),
        ],
    );
    let setup = setup(json!({ "ask": ["mcpzip__servers", "shop__short"] })).server("open", open);
    let mut client = setup.connect();
    let call = |name: &str, state: &Value| {
        let arguments = json!({ "operation": "disable", "names": ["shop"] });
        format!(
            r#""name":"execute_tool","arguments":{{"name":"{name}","arguments":{arguments}}},"requestState":{state}"#
        )
    };
    let begun = r#""name":"execute_tool","arguments":{"name":"open__t"}"#;
    let id = client.begin_modern("tools/call", begun, FORMS, "");
    let asked = client.answer(id).value();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let state = &asked["requestState"];
    for name in ["mcpzip__servers", "shop__short"] {
        for capabilities in [FORMS, r#"{"sampling":{}}"#] {
            let id = client.begin_modern("tools/call", &call(name, state), capabilities, "");
            client.answer(id).tool_error();
        }
        // A client that cannot be asked, with a handshake.
        let id = client.request("tools/call", &format!("{{{}}}", call(name, state)));
        let refused = client.answer(id).tool_error();
        assert!(refused.contains("waits for approval"), "{refused}");
    }
    let file = std::fs::read_to_string(setup.config_path()).unwrap();
    assert!(!file.contains(r#""disabled""#), "{file}");
    assert_eq!(setup.home().count("shop", "tools/call"), 0);
    client.finish();
}

#[test]
fn under_a_list_of_what_is_allowed_a_long_result_is_still_read_to_its_end() {
    let mut client = setup(json!({ "allow": ["shop__long"] })).connect();
    let text = client.execute("shop__long").text();
    assert!(text.contains("mcpzip__read_result"), "{text}");
    let after = text.split(r#""id":""#).nth(1).unwrap();
    let id = after.split('"').next().unwrap();
    let rest = client.execute_with(
        "mcpzip__read_result",
        &json!({ "id": id, "offset": 1000, "limit": 20 }).to_string(),
    );
    assert!(rest.text().contains("line"), "{}", rest.as_str());
    client.finish();
}
