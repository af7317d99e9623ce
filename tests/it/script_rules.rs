//! What holds in a script as outside of one: consent, profiles, projects, pins, identities, and the limits between sessions.

use serde_json::{Value, json};

use super::pins;
use super::scripts::{run, setup};
use crate::support::script::answer;
use crate::support::{Client, Message, Server, Setup, until};

const FORMS: &str = r#"{"elicitation":{"form":{}}}"#;

const DELETE_ALL: &str = "const notes = await tools.notes.list();\n\
    return await all(notes.map(({ id }) => tools.notes.delete({ id })))";

/// Scripts call all tools, and a rule asks about those that delete.
fn asking() -> Setup {
    setup()
        .setting("scripts", json!({ "allow": "all" }))
        .setting("tools", json!({ "ask": ["notes__delete"] }))
        .setting("approvals", json!({ "wait": "30s" }))
}

fn connect(setup: &Setup) -> Client {
    let mut client = setup.start();
    client.shake_hands_as("2025-11-25", FORMS);
    client.call("proxy_refresh", "{}").text();
    client
}

/// Runs a script, answers its questions so, and returns them with its answer.
fn run_and_say(client: &mut Client, code: &str, action: &str) -> (Vec<String>, Message) {
    let call = json!({ "name": "mcpzip__run", "arguments": { "code": code } });
    let id = client.begin("execute_tool", &call.to_string());
    let mut questions = Vec::new();
    loop {
        let message = client.expect("a question or the answer", |message| {
            message.is_notification("elicitation/create") || message.id() == id.to_string()
        });
        if !message.as_str().contains("elicitation/create") {
            return (questions, message);
        }
        questions.push(message.params().to_owned());
        let question = message.id();
        client.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{question},"result":{{"action":"{action}"}}}}"#
        ));
    }
}

#[test]
fn the_user_is_asked_once_with_the_list_of_calls() {
    let setup = asking();
    let mut client = connect(&setup);
    let (questions, answered) = run_and_say(&mut client, DELETE_ALL, "accept");
    assert_eq!(questions.len(), 1, "{questions:?}");
    for part in [
        "May a script make these calls?",
        r#"1. `notes__delete` with {\"id\":1}"#,
        r#"2. `notes__delete` with {\"id\":2}"#,
    ] {
        assert!(questions[0].contains(part), "{part}: {questions:?}");
    }
    assert_eq!(answered.text(), r#"["deleted","deleted"]"#);
    let (questions, answered) = run_and_say(&mut client, DELETE_ALL, "decline");
    let told = answered.tool_error();
    assert_eq!(questions.len(), 1);
    assert!(told.contains("the user did not agree"), "{told}");
    // A later call was not in the list.
    let later = "await tools.notes.delete({ id: 1 }); await tools.notes.delete({ id: 2 })";
    let (questions, answered) = run_and_say(&mut client, later, "accept");
    let told = answered.tool_error();
    assert_eq!(questions.len(), 1);
    assert!(told.contains("asks the user once"), "{told}");
    // Consent is for one call each, not for the same call again.
    let twice = "await tools.notes.delete({ id: 1 }); await tools.notes.delete({ id: 1 })";
    let (questions, answered) = run_and_say(&mut client, twice, "accept");
    assert_eq!(questions.len(), 1);
    assert!(answered.tool_error().contains("asks the user once"));
    assert_eq!(setup.home().count("notes", "\"name\":\"delete\""), 4);
    client.finish();
}

#[test]
fn a_modern_client_is_asked_by_the_answer_and_repeats_the_script() {
    let setup = asking();
    let mut client = setup.connect();
    let mut execute = |code: &str, more: &str| {
        let arguments = json!({ "name": "mcpzip__run", "arguments": { "code": code } });
        let members = format!(r#""name":"execute_tool","arguments":{arguments}{more}"#);
        let id = client.begin_modern("tools/call", &members, FORMS, "");
        client.answer(id)
    };
    let say = |action: &str, asked: &Value| {
        let state = &asked["requestState"];
        format!(r#","inputResponses":{{"consent":{{"action":"{action}"}}}},"requestState":{state}"#)
    };
    let asked = execute(DELETE_ALL, "").value();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = asked["inputRequests"]["consent"]["params"]["message"].to_string();
    assert!(question.contains("2. `notes__delete`"), "{question}");
    let deletes = || setup.home().count("notes", "\"name\":\"delete\"");
    assert_eq!(deletes(), 0);
    let other = DELETE_ALL.replace("{ id })))", "{ id: id + 1 })))");
    let told = execute(&other, &say("accept", &asked)).tool_error();
    assert!(told.contains("belongs to another request"), "{told}");
    assert_eq!(deletes(), 0);
    let done = execute(DELETE_ALL, &say("accept", &asked));
    assert_eq!(done.text(), r#"["deleted","deleted"]"#);
    let asked = execute(DELETE_ALL, "").value();
    let told = execute(DELETE_ALL, &say("decline", &asked)).tool_error();
    assert!(told.contains("did not agree"), "{told}");
    assert_eq!(deletes(), 2);
    client.finish();
}

#[test]
fn consent_to_the_script_and_to_its_calls_are_two_questions() {
    let setup = asking().setting("tools", json!({ "ask": ["notes__delete", "mcpzip__run"] }));
    let mut client = connect(&setup);
    let (questions, answered) = run_and_say(&mut client, DELETE_ALL, "accept");
    assert_eq!(questions.len(), 2, "{questions:?}");
    assert_eq!(answered.text(), r#"["deleted","deleted"]"#);
    client.finish();
    let mut client = setup.connect();
    let arguments = json!({ "name": "mcpzip__run", "arguments": { "code": DELETE_ALL } });
    let mut more = String::new();
    for asked in ["the code", "the calls", "the answer"] {
        let members = format!(r#""name":"execute_tool","arguments":{arguments}{more}"#);
        let id = client.begin_modern("tools/call", &members, FORMS, "");
        let answered = client.answer(id);
        if asked == "the answer" {
            assert_eq!(answered.text(), r#"["deleted","deleted"]"#);
            break;
        }
        let state = &answered.value()["requestState"];
        assert!(state.is_string(), "{asked}: {}", answered.as_str());
        more = format!(
            r#","inputResponses":{{"consent":{{"action":"accept"}}}},"requestState":{state}"#
        );
    }
    client.finish();
}

#[test]
fn a_client_that_cannot_ask_waits_for_a_person_unless_the_script_has_acted() {
    let setup = asking().server("other", Server::new().tool("act", [answer("acted")]));
    let mut client = setup.connect();
    let told = run(
        &mut client,
        "await tools.other.act(); await tools.notes.delete({ id: 1 })",
    )
    .tool_error();
    assert!(
        told.contains("`other__act`, which may have acted"),
        "{told}"
    );
    let call = json!({ "name": "mcpzip__run", "arguments": { "code": DELETE_ALL } });
    let id = client.begin("execute_tool", &call.to_string());
    let asked = until("a question", || {
        let listed = setup.run(&["approvals", "list", "--json"]).code(0).json();
        listed.as_array().unwrap().first().cloned()
    });
    assert!(asked.to_string().contains("notes__delete"), "{asked}");
    let denied = asked["id"].as_str().unwrap();
    let _ = setup.run(&["approvals", "deny", denied]).code(0);
    let told = client.answer(id).tool_error();
    assert!(told.contains("did not agree"), "{told}");
    assert_eq!(setup.home().count("notes", "\"name\":\"delete\""), 0);
    client.finish();
}

/// Checks that a script fails with a text that has this part, in a session that is started so.
#[track_caller]
fn check_refused(mut client: Client, code: &str, expected: &str) {
    client.call("proxy_refresh", "{}").text();
    let told = run(&mut client, code).tool_error();
    assert!(told.contains(expected), "`{expected}` is not in: {told}");
    client.finish();
}

#[test]
fn profiles_and_projects_hold_in_a_script() {
    let profiled = setup()
        .server(
            "vault",
            Server::new().read_only_tool("read", [answer("a secret")]),
        )
        .setting(
            "profiles",
            json!({ "work": { "servers": ["notes", "mcpzip"] } }),
        );
    let mut client = profiled.start_with(&["serve", "--profile", "work"]);
    client.shake_hands("2025-11-25");
    check_refused(client, "await tools.vault.read()", "vault__read");

    let elsewhere = Setup::new()
        .server_with(
            "vault",
            Server::new().read_only_tool("read", [answer("a secret")]),
            json!({ "projects": ["/nowhere/at/all"] }),
        )
        .setting("scripts", json!(true));
    check_refused(elsewhere.connect(), "await tools.vault.read()", "vault");
    assert_eq!(elsewhere.home().count("vault", "tools/call"), 0);
}

#[test]
fn a_tool_that_waits_for_approval_is_not_called_by_a_script() {
    let setup = pins::under("pin", pins::turning()).setting("scripts", json!({ "allow": "all" }));
    let mut client = pins::listed_twice(&setup);
    let held = pins::is_held(&mut client, "web__read");
    let told = run(&mut client, "await tools.web.read()").tool_error();
    assert!(told.contains(held.lines().next().unwrap()), "{told}");
    assert_eq!(setup.home().count("web", "tools/call"), 0);
    client.finish();
}

#[test]
fn a_script_over_http_has_the_identity_and_the_results_of_its_session() {
    let long = "word ".repeat(40_000);
    let gateway = setup()
        .server("big", Server::new().read_only_tool("read", [answer(&long)]))
        .serve(&[]);
    let execute = |session: &crate::support::gateway::HttpSession, name: &str, arguments: Value| {
        let call = json!({ "name": "execute_tool", "arguments": { "name": name, "arguments": arguments } });
        session
            .request(7, "tools/call", &call.to_string())
            .send()
            .message()
    };
    let (one, other) = (gateway.session(), gateway.session());
    let script = |code: &str| json!({ "code": code });
    let joined = execute(
        &one,
        "mcpzip__run",
        script("globalThis.kept = 1; return await tools.notes.text()"),
    );
    assert_eq!(joined.text(), "plain words");
    // Neither variables nor stored results of a session are in reach of another's script.
    let seen = execute(&other, "mcpzip__run", script("return typeof kept"));
    assert_eq!(seen.text(), "undefined");
    let stored = execute(&one, "big__read", json!({})).text();
    let (_, rest) = stored
        .split_once(r#""id":""#)
        .expect("the answer has an id");
    let id = rest.split(['"', '`']).next().unwrap();
    let code = format!("return await tools.mcpzip.read_result({{ id: '{id}', limit: 4 }})");
    let own = execute(&one, "mcpzip__run", script(&code));
    assert!(own.text().contains("word"), "{}", own.text());
    let others = execute(&other, "mcpzip__run", script(&code)).tool_error();
    assert!(!others.contains("word word"), "{others}");
}

#[test]
fn the_result_of_a_hostile_tool_that_is_evaluated_reaches_no_more_than_the_script() {
    let hostile = "(async () => { try { await tools.notes.delete({}) } catch (error) { return error.message } })()";
    let setup = setup().server(
        "evil",
        Server::new().read_only_tool("read", [answer(hostile)]),
    );
    let mut client = setup.connect();
    let told = run(&mut client, "return await eval(await tools.evil.read())").text();
    assert!(told.contains("does not declare to be read-only"), "{told}");
    let told = run(
        &mut client,
        "return await new Function('return ' + await tools.evil.read())()",
    );
    assert!(told.text().contains("does not declare"), "{}", told.text());
    assert_eq!(setup.home().count("notes", "\"name\":\"delete\""), 0);
    client.finish();
}

#[test]
fn describe_tool_shows_types_that_are_shorter_than_the_schema() {
    let definition = r#"{"name":"create-issue","description":"Creates an issue. It needs a login.","inputSchema":{"type":"object","properties":{"owner":{"type":"string","description":"Who owns it"},"labels":{"type":"array","items":{"type":"string"}}},"required":["owner"]},"outputSchema":{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}}"#;
    let setup = setup().server(
        "hub",
        Server::new().tool_as("create-issue", definition, [answer("{}")]),
    );
    let mut client = setup.connect();
    let typed = client.call(
        "describe_tool",
        r#"{"names":["hub__create-issue","notes__text"],"as":"types"}"#,
    );
    assert_eq!(
        typed.text(),
        "// Creates an issue\ntools.hub[\"create-issue\"](args: {\n  labels?: string[]\n  // Who owns it\n  owner: string\n}): \
         Promise<{\n  number: number\n}>\n\n// Does text\ntools.notes.text(): Promise<unknown>"
    );
    let whole = client.call("describe_tool", r#"{"name":"hub__create-issue"}"#);
    assert!(typed.text().len() < whole.text().len());
    let refused = client.call("describe_tool", r#"{"name":"notes__text","as":"rust"}"#);
    assert!(refused.tool_error().contains("`as` must be"));
    for (is_on, setup) in [
        (true, setup.clone()),
        (false, setup.setting("scripts", json!(false))),
    ] {
        let mut client = setup.connect();
        let listed = client.ask("tools/list", "{}");
        assert_eq!(listed.result().contains("TypeScript"), is_on);
        client.finish();
    }
    client.finish();
}
