//! What servers ask and tell their clients in the midst of a call, for every pair of protocol eras.

use serde_json::{Value, json};

use crate::support::http::HttpServer;
use crate::support::script::{
    Step, answer, answer_with, ask, await_cancel, error, if_params, line, result, sleep, up_to,
};
use crate::support::{Client, Message, Server, Setup, until};

const ALL: &str =
    r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true},"extra":{}}"#;
const FORM: &str =
    r#"{"message":"Which one?","requestedSchema":{"type":"object","z":1e400,"properties":{}}}"#;

/// A legacy server whose tool asks the client before it answers.
fn asking(method: &str, params: &str) -> Server {
    Server::new().tool(
        "t",
        [ask("q-1", method, params), answer_with(r#""said":$answer"#)],
    )
}

/// A modern server whose tool needs input before it answers.
fn needing(requests: &str) -> Server {
    let needs = format!(
        r#"{{"resultType":"input_required","inputRequests":{requests},"requestState":"s \u00e9"}}"#
    );
    let done = line(
        r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete","content":[],"structuredContent":$params}}"#,
    );
    Server::new()
        .modern()
        .tool("t", [if_params("requestState", [done], [result(&needs)])])
}

fn greeted(setup: &Setup, capabilities: &str) -> Client {
    let mut client = setup.start();
    client.shake_hands_as("2025-11-25", capabilities);
    client
}

#[track_caller]
fn question(client: &mut Client, method: &str) -> Message {
    client.expect(method, |message| message.is_notification(method))
}

fn params(message: &Message) -> Value {
    serde_json::from_str(&message.params().replace("1e400", "1")).unwrap()
}

/// The result as a value, its one number that is too large for that replaced.
fn readable(message: &Message) -> Value {
    serde_json::from_str(&message.result().replace("1e400", "1")).unwrap()
}

#[track_caller]
fn reply(client: &mut Client, question: &Message, result: &str) {
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
        question.id()
    ));
}

fn modern(client: &mut Client, members: &str, capabilities: &str) -> Message {
    let call = format!(r#""name":"execute_tool","arguments":{{"name":"s__t"}}{members}"#);
    let id = client.begin_modern("tools/call", &call, capabilities, "");
    client.answer(id)
}

#[test]
fn a_legacy_server_asks_a_legacy_client() {
    let answer = r#"{"action":"accept","content":{"n":1e400}}"#;
    for (method, sent) in [
        ("elicitation/create", FORM),
        ("sampling/createMessage", r#"{"messages":[],"maxTokens":5}"#),
        ("roots/list", "{}"),
    ] {
        let setup = Setup::new().server("s", asking(method, sent));
        let mut client = greeted(&setup, ALL);
        let id = client.begin_execute("s__t");
        let asked = question(&mut client, method);
        assert_eq!(params(&asked)["_meta"]["mcpzip/server"], "s", "{method}");
        if method == "elicitation/create" {
            assert_eq!(params(&asked)["message"], "s: Which one?");
            assert!(
                asked
                    .params()
                    .contains(r#"{"type":"object","z":1e400,"properties":{}}"#)
            );
        }
        reply(&mut client, &asked, answer);
        assert_eq!(
            client.answer(id).result(),
            format!(r#"{{"content":[],"structuredContent":{{"said":{answer}}}}}"#)
        );
        client.finish();
    }
}

#[test]
fn a_server_is_told_what_its_client_can_be_asked_and_nothing_else() {
    for (capabilities, declared) in [
        ("{}", r#""capabilities":{},"#),
        (
            r#"{"elicitation":{},"tasks":{}}"#,
            r#""capabilities":{"elicitation":{}},"#,
        ),
        (
            ALL,
            r#""capabilities":{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true}},"#,
        ),
    ] {
        let setup = Setup::new().server("s", asking("sampling/createMessage", "{}"));
        let mut client = greeted(&setup, capabilities);
        let id = client.begin_execute("s__t");
        if capabilities == ALL {
            let asked = question(&mut client, "sampling/createMessage");
            reply(&mut client, &asked, "{}");
        }
        let answer = client.answer(id);
        let refused = answer
            .result()
            .contains("no client declares support for `sampling/createMessage`");
        assert_eq!(refused, capabilities != ALL, "{}", answer.as_str());
        assert_eq!(
            setup.home().count("s", declared),
            setup.home().starts("s"),
            "{}",
            setup.home().log("s")
        );
        client.finish();
    }
}

#[test]
fn a_refusal_of_the_client_reaches_the_server_and_the_call_goes_on() {
    let setup = Setup::new().server("s", asking("elicitation/create", FORM));
    let mut client = greeted(&setup, ALL);
    let id = client.begin_execute("s__t");
    let asked = question(&mut client, "elicitation/create");
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-1,"message":"no \ud83d"}}}}"#,
        asked.id()
    ));
    let answer = client.answer(id);
    assert!(
        answer
            .result()
            .contains(r#"{"said":{"code":-1,"message":"no \ud83d"}}"#),
        "{}",
        answer.as_str()
    );
    client.finish();
}

#[test]
fn a_cancelled_call_takes_its_question_back() {
    let server = Server::new().tool("t", [ask("q-1", "elicitation/create", FORM)]);
    let setup = Setup::new().server("s", server.tool("u", [answer("fine")]));
    let mut client = greeted(&setup, ALL);
    let id = client.begin_execute("s__t");
    let asked = question(&mut client, "elicitation/create");
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    let taken_back = question(&mut client, "notifications/cancelled");
    assert_eq!(params(&taken_back)["requestId"].to_string(), asked.id());
    assert_eq!(client.execute("s__u").text(), "fine");
    client.finish();
}

#[test]
fn a_call_waits_for_its_client_longer_than_for_its_server() {
    let setup = Setup::new().server_with(
        "s",
        asking("elicitation/create", FORM),
        json!({ "timeout": "2s" }),
    );
    let mut client = greeted(&setup, ALL);
    let id = client.begin_execute("s__t");
    let asked = question(&mut client, "elicitation/create");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    reply(&mut client, &asked, r#"{"action":"decline"}"#);
    assert!(client.answer(id).result().contains("decline"));
    client.finish();
}

#[test]
fn a_server_asks_for_roots_before_any_call() {
    let server = Server::new().on(
        "tools/list",
        [ask("r", "roots/list", "{}"), result(r#"{"tools":[]}"#)],
    );
    let setup = Setup::new().server("s", server);
    let mut client = greeted(&setup, ALL);
    let asked = question(&mut client, "roots/list");
    reply(&mut client, &asked, r#"{"roots":[{"uri":"file:///x"}]}"#);
    until("the answer", || {
        (setup
            .home()
            .count("s", r#""result":{"roots":[{"uri":"file:///x"}]}"#)
            > 0)
        .then_some(())
    });
    client.finish();
}

#[test]
fn a_modern_server_needs_input_of_a_legacy_client() {
    let requests = format!(
        r#"{{"one":{{"method":"elicitation/create","params":{FORM}}},"two":{{"method":"roots/list"}}}}"#
    );
    let setup = Setup::new().server("s", needing(&requests));
    let mut client = greeted(&setup, ALL);
    let id = client.begin_execute("s__t");
    let one = question(&mut client, "elicitation/create");
    let two = question(&mut client, "roots/list");
    assert_eq!(params(&one)["message"], "s: Which one?");
    reply(&mut client, &two, r#"{"roots":[]}"#);
    reply(
        &mut client,
        &one,
        r#"{"action":"accept","content":{"n":1e400}}"#,
    );
    let answer = client.answer(id);
    let expected = concat!(
        r#""inputResponses":{"one":{"action":"accept","content":{"n":1e400}},"two":{"roots":[]}},"#,
        r#""requestState":"s \u00e9""#
    );
    assert!(answer.result().contains(expected), "{}", answer.as_str());
    assert!(answer.result().contains(
        r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}}"#
    ));
    client.finish();
}

#[test]
fn a_modern_server_that_asks_what_the_client_cannot_do_is_no_answer() {
    let setup = Setup::new().server("s", needing(r#"{"one":{"method":"roots/list"}}"#));
    let mut client = greeted(&setup, "{}");
    let text = client.execute("s__t").tool_error();
    assert!(text.contains("does not support `roots/list`"), "{text}");
    client.finish();
}

#[test]
fn a_legacy_server_asks_a_modern_client() {
    let setup = Setup::new().server("s", asking("elicitation/create", FORM));
    let mut client = setup.start();
    let asked = modern(&mut client, "", ALL);
    let needs = readable(&asked);
    assert_eq!(needs["resultType"], "input_required");
    let request = &needs["inputRequests"]["question-1"];
    assert_eq!(
        (&request["method"], &request["params"]["message"]),
        (&json!("elicitation/create"), &json!("s: Which one?"))
    );
    assert!(
        asked
            .result()
            .contains(r#"{"type":"object","z":1e400,"properties":{}}"#)
    );
    let state = needs["requestState"].to_string();

    // An answer to something else leaves the question open, under a new token.
    let asked = modern(
        &mut client,
        &format!(r#","requestState":{state},"inputResponses":{{"other":{{}}}}"#),
        ALL,
    );
    let again = readable(&asked);
    assert_eq!(
        again["inputRequests"]["question-1"]["method"],
        "elicitation/create"
    );
    let newer = again["requestState"].to_string();
    assert_ne!(newer, state);

    // A token opens nothing but what it was given for, and only once.
    let call = format!(
        r#""name":"execute_tool","arguments":{{"name":"s__t","arguments":{{"a":1}}}},"requestState":{newer}"#
    );
    let id = client.begin_modern("tools/call", &call, ALL, "");
    assert_eq!(client.answer(id).error_code(), -32602);
    let stale = modern(&mut client, &format!(r#","requestState":{state}"#), ALL);
    assert!(
        stale.error()["message"]
            .as_str()
            .unwrap()
            .contains("unknown or has expired"),
        "{}",
        stale.as_str()
    );

    let said = r#"{"action":"accept","content":{"n":1e400}}"#;
    let retry = format!(r#","inputResponses":{{"question-1":{said}}},"requestState":{newer}"#);
    let answer = modern(&mut client, &retry, ALL);
    let expected = format!(
        r#"{{"resultType":"complete","content":[],"structuredContent":{{"said":{said}}}}}"#
    );
    assert_eq!(answer.result(), expected);
    assert_eq!(
        setup.home().count("s", r#""method":"tools/call""#),
        1,
        "the call was made once"
    );
    client.finish();
}

#[test]
fn a_modern_client_that_cannot_be_asked_is_not() {
    let setup = Setup::new().server("s", asking("elicitation/create", FORM));
    let mut client = setup.start();
    let answer = modern(&mut client, "", "{}");
    assert!(
        answer
            .result()
            .contains("no client declares support for `elicitation/create`"),
        "{}",
        answer.as_str()
    );
    client.finish();
}

#[test]
fn a_modern_server_and_a_modern_client_speak_through() {
    let requests = format!(r#"{{"k\u00e9y":{{"method":"elicitation/create","params":{FORM}}}}}"#);
    let setup = Setup::new().server("s", needing(&requests));
    let mut client = setup.start();
    let asked = modern(&mut client, "", ALL);
    assert!(
        asked.result().contains(r#""resultType":"input_required""#),
        "{}",
        asked.as_str()
    );
    assert!(asked.result().contains(r#""requestState":"s \u00e9""#));
    assert!(
        asked
            .result()
            .contains(r#""k\u00e9y":{"method":"elicitation/create""#)
    );
    assert!(
        asked.result().contains(r#""message":"s: Which one?""#) && asked.result().contains("1e400")
    );
    let retry = r#","inputResponses":{"k\u00e9y":{"action":"decline"}},"requestState":"s \u00e9""#;
    let answer = modern(&mut client, retry, ALL);
    assert!(answer.result().contains(&retry[1..]), "{}", answer.as_str());
    client.finish();
}

const PLACES: &str = r#"{"code":-32042,"message":"log in","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://a.example/","message":"Log in"}]}}"#;

#[test]
fn a_user_who_has_to_be_somewhere_first_is_sent_there() {
    let first_no = up_to(1, "tools/call", [error(PLACES)], [answer("welcome")]);
    let setup = Setup::new().server("s", Server::new().tool("t", [first_no]));
    let mut client = greeted(&setup, ALL);
    let refused = client.execute("s__t");
    let refused: Value = serde_json::from_str(refused.as_str()).unwrap();
    let place = &refused["error"]["data"]["elicitations"][0];
    assert_eq!(refused["error"]["code"], -32042, "{refused}");
    assert_eq!(place["url"], "https://a.example/", "{refused}");
    assert_eq!(place["message"], "s: Log in", "{refused}");
    assert_eq!(place["_meta"]["mcpzip/server"], "s", "{refused}");
    assert_eq!(client.execute("s__t").text(), "welcome");
    client.finish();

    let setup = Setup::new().server("s", Server::new().tool("t", [error(PLACES)]));
    let mut client = greeted(&setup, r#"{"elicitation":{}}"#);
    assert!(
        client
            .execute("s__t")
            .tool_error()
            .contains("https://a.example/")
    );
    client.finish();

    let first_no = up_to(1, "tools/call", [error(PLACES)], [answer("welcome")]);
    let setup = Setup::new().server("s", Server::new().tool("t", [first_no]));
    let mut client = setup.start();
    let asked = modern(&mut client, "", ALL);
    let place = &asked.value()["inputRequests"]["place-1"];
    assert_eq!(
        (&place["params"]["url"], &place["params"]["message"]),
        (&json!("https://a.example/"), &json!("s: Log in"))
    );
    let state = asked.value()["requestState"].to_string();
    let retry =
        format!(r#","inputResponses":{{"place-1":{{"action":"accept"}}}},"requestState":{state}"#);
    assert_eq!(modern(&mut client, &retry, ALL).text(), "welcome");
    assert_eq!(
        setup.home().count("s", "requestState"),
        0,
        "a legacy server knows no such thing"
    );
    client.finish();
}

/// Requests of a modern client for the tool, the prompt and the resource of the server `s`.
const REQUESTS: [(&str, &str); 3] = [
    (
        "tools/call",
        r#""name":"execute_tool","arguments":{"name":"s__t"}"#,
    ),
    ("prompts/get", r#""name":"s__p""#),
    ("resources/read", r#""uri":"doc:x""#),
];

/// A server that gives this answer to everything.
fn saying(step: &Step) -> Server {
    let one = || [step.clone()];
    Server::new()
        .tool("t", one())
        .prompt("p", one())
        .resource("doc:x", one())
}

#[test]
fn a_question_reaches_no_client_that_has_not_declared_it() {
    let form =
        r#"{"message":"Your password?","requestedSchema":{"type":"object","properties":{}}}"#;
    let url = r#"{"message":"Your password?","mode":"url","url":"https://evil.example/password","elicitationId":"e"}"#;
    let tools = r#"{"messages":[],"maxTokens":5,"tools":[{"name":"password"}]}"#;
    let of = |method: &str, params: &str| {
        format!(r#"{{"q":{{"method":"{method}","params":{params}}}}}"#)
    };
    for (requests, capabilities) in [
        (of("elicitation/create", form), "{}"),
        (
            of("elicitation/create", form),
            r#"{"elicitation":{"url":{}}}"#,
        ),
        (of("elicitation/create", url), r#"{"elicitation":{}}"#),
        (of("sampling/createMessage", tools), r#"{"sampling":{}}"#),
        (of("password/ask", form), ALL),
        (r#"["password"]"#.to_owned(), ALL),
    ] {
        for kind in ["input_required", r"input\u005frequired"] {
            let needs = format!(
                r#"{{"resultType":"{kind}","inputRequests":{requests},"requestState":"s"}}"#
            );
            for server in [saying(&result(&needs)), saying(&result(&needs)).modern()] {
                let setup = Setup::new().server("s", server);
                let mut client = setup.start();
                for (method, members) in REQUESTS {
                    let id = client.begin_modern(method, members, capabilities, "");
                    let told = client.answer(id);
                    let text = told.as_str();
                    assert!(
                        !text.contains("password"),
                        "{method} {capabilities}: {text}"
                    );
                    assert!(text.contains("has not declared"), "{text}");
                }
                client.finish();
            }
        }
    }
}

#[test]
fn an_error_that_is_a_question_reaches_no_client_that_has_not_declared_it() {
    let unasked = r#"{"elicitation":{}}"#;
    let form = PLACES.replace(r#""mode":"url""#, r#""mode":"form""#);
    let texts = [
        PLACES.to_owned(),
        PLACES.replace("-32042", r#""-32042""#),
        PLACES.replace("-32042", "-32042.0"),
        PLACES.replace("-32042", "-3.2042e4"),
        PLACES.replace(r#""code":-32042"#, r#""code":-1,"c\u006fde":"-32042""#),
    ];
    let [_, odd @ ..] = &texts;
    let mut cases: Vec<(&str, &str)> = texts.iter().map(|one| (one.as_str(), unasked)).collect();
    cases.extend(odd.iter().map(|one| (one.as_str(), ALL)));
    cases.push((form.as_str(), ALL));
    for (refusal, capabilities) in cases {
        let setup = Setup::new().server("s", saying(&error(refusal)));
        // One of each era.
        let mut legacy = setup.start_with(&["serve", "--direct"]);
        legacy.shake_hands_as("2025-11-25", capabilities);
        let mut modern = setup.start_with(&["serve", "--direct"]);
        let [_, others @ ..] = REQUESTS;
        for (method, members) in [("tools/call", r#""name":"s__t""#)]
            .into_iter()
            .chain(others)
        {
            let told = until("an answer of the server", || {
                let told = legacy.ask(method, &format!("{{{members}}}"));
                told.as_str().contains("log in").then_some(told)
            });
            assert_eq!(told.error_code(), -32603, "{refusal}: {}", told.as_str());
            if refusal == form {
                // For a modern client this is the question that the server might have asked.
                continue;
            }
            let told = until("an answer of the server", || {
                let id = modern.begin_modern(method, members, capabilities, "");
                let told = modern.answer(id);
                told.as_str().contains("log in").then_some(told)
            });
            assert_eq!(told.error_code(), -32603, "{refusal}: {}", told.as_str());
        }
        legacy.finish();
        modern.finish();
    }
}

#[test]
fn a_missing_capability_is_said_in_words_of_ours() {
    let demand = |required: &str| {
        error(&format!(
            r#"{{"code":-32021,"message":"cannot ask","data":{{"requiredCapabilities":{required},"more":"raw"}}}}"#
        ))
    };
    let both = r#"{"elicitation":{"form":{},"url":{}},"extensions":{"x.example/y":{}}}"#;
    for (required, declared, expected) in [
        (
            r#"{"elicitation":{}}"#,
            "{}",
            Some(json!({ "elicitation": {} })),
        ),
        (
            both,
            r#"{"elicitation":{}}"#,
            Some(json!({ "elicitation": { "url": {} } })),
        ),
        (
            r#"{"sampling":{"tools":{}}}"#,
            r#"{"sampling":{}}"#,
            Some(json!({ "sampling": { "tools": {} } })),
        ),
        // It says so of what was declared, or of what no client can declare through us.
        (r#"{"elicitation":{}}"#, ALL, None),
        (r#"{"extensions":{"x.example/y":{}}}"#, ALL, None),
        ("7", "{}", None),
    ] {
        let setup = Setup::new().server("s", saying(&demand(required)).modern());
        let mut client = setup.start();
        for (method, members) in REQUESTS {
            let id = client.begin_modern(method, members, declared, "");
            let told = client.answer(id);
            let text = told.as_str();
            match &expected {
                Some(required) => {
                    let refused = told.error();
                    assert_eq!(refused["code"], -32021, "{text}");
                    assert_eq!(refused["data"], json!({ "requiredCapabilities": required }));
                    assert!(refused["message"].as_str().unwrap().contains("server `s`"));
                }
                None => assert!(
                    !text.contains("-32021") && text.contains("cannot ask"),
                    "{text}"
                ),
            }
        }
        client.finish();
    }
}

#[test]
fn a_legacy_server_asks_in_no_way_that_its_client_has_not_declared() {
    let url = r#"{"message":"m","mode":"url","url":"https://a.example/","elicitationId":"e"}"#;
    let tools = r#"{"messages":[],"maxTokens":5,"toolChoice":{"mode":"auto"}}"#;
    for (method, sent, capabilities) in [
        ("elicitation/create", url, r#"{"elicitation":{}}"#),
        ("elicitation/create", FORM, r#"{"elicitation":{"url":{}}}"#),
        ("sampling/createMessage", tools, r#"{"sampling":{}}"#),
    ] {
        let setup = Setup::new().server("s", asking(method, sent));
        let mut client = greeted(&setup, capabilities);
        let told = client.execute("s__t");
        assert!(
            told.result().contains("-32602") && told.result().contains("this kind of"),
            "{}",
            told.as_str()
        );
        client.finish();
        let mut client = setup.start();
        let told = modern(&mut client, "", capabilities);
        assert!(told.result().contains("this kind of"), "{}", told.as_str());
        client.finish();
    }
    // The wish for a task is for clients that mcpzip does not have; its answer is a plain one.
    let wish = FORM.replacen('{', r#"{"task":{"ttl":1},"#, 1);
    let setup = Setup::new().server("s", asking("elicitation/create", &wish));
    let mut client = greeted(&setup, ALL);
    let id = client.begin_execute("s__t");
    let asked = question(&mut client, "elicitation/create");
    assert!(params(&asked)["task"].is_null(), "{}", asked.params());
    reply(&mut client, &asked, r#"{"action":"decline"}"#);
    assert!(client.answer(id).result().contains("decline"));
    client.finish();
    let mut client = setup.start();
    let asked = modern(&mut client, "", ALL);
    let request = &readable(&asked)["inputRequests"]["question-1"];
    assert!(request["params"]["task"].is_null(), "{request}");
    client.finish();
}

#[test]
fn only_the_server_that_sent_a_user_to_a_place_says_that_this_is_done() {
    let place = |id: &str| {
        format!(
            r#"{{"message":"m","mode":"url","url":"https://a.example/","elicitationId":"{id}"}}"#
        )
    };
    let done = |id: &str| {
        line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{{"elicitationId":"{id}"}}}}"#
        ))
    };
    let asking = Server::new()
        .tool(
            "ask",
            [
                ask("q", "elicitation/create", &place("e1")),
                answer("asked"),
            ],
        )
        .tool("done", [done("e1"), done("e2"), answer("done")]);
    let other = Server::new()
        .tool("lie", [done("e1"), done("e2"), answer("lied")])
        .tool(
            "ask",
            [
                ask("q", "elicitation/create", &place("e1")),
                answer_with(r#""said":$answer"#),
            ],
        );
    let setup = Setup::new().server("one", asking).server("other", other);
    let mut client = greeted(&setup, ALL);
    let id = client.begin_execute("one__ask");
    let asked = question(&mut client, "elicitation/create");
    reply(&mut client, &asked, r#"{"action":"accept"}"#);
    assert_eq!(client.answer(id).text(), "asked");
    assert_eq!(client.execute("other__lie").text(), "lied");
    // Nor does it take the id, which the client could not tell apart.
    let told = client.execute("other__ask");
    assert!(
        told.result().contains("the same `elicitationId`"),
        "{}",
        told.as_str()
    );
    assert_eq!(client.execute("one__done").text(), "done");
    let method = "notifications/elicitation/complete";
    let heard = client.expect("the end", |one| one.is_notification(method));
    assert_eq!(heard.params(), r#"{"elicitationId":"e1"}"#);
    assert_eq!(client.execute("one__done").text(), "done");
    let rest = client.left_over();
    assert!(
        !rest.iter().any(|one| one.is_notification(method)),
        "{rest:?}"
    );
    client.finish();
}

#[test]
fn several_calls_at_once_do_not_ask_a_modern_client_back() {
    let setup = Setup::new().server("s", asking("elicitation/create", FORM));
    let mut client = setup.start();
    let call = r#""name":"execute_tool","arguments":{"calls":[{"name":"s__t"},{"name":"s__t"}]}"#;
    let id = client.begin_modern("tools/call", call, ALL, "");
    assert!(
        client
            .answer(id)
            .result()
            .contains("no client declares support")
    );
    client.finish();
}

#[test]
fn a_cancelled_request_of_a_modern_client_ends_the_call() {
    let setup = Setup::new().server("s", Server::new().tool("t", [await_cancel()]));
    let mut client = setup.start();
    let call = r#""name":"execute_tool","arguments":{"name":"s__t"}"#;
    let id = client.begin_modern("tools/call", call, ALL, "");
    setup.home().wait_for("s", "tools/call");
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    setup.home().wait_for("s", "notifications/cancelled");
    client.finish();
}

const LOGS: [(&str, &str); 2] = [("debug", "small"), ("error", "large")];

fn logging() -> Server {
    let notes = LOGS.map(|(level, data)| {
        let params = json!({ "level": level, "logger": "db", "data": data });
        line(
            &json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
                .to_string(),
        )
    });
    Server::new().tool("t", notes.into_iter().chain([sleep(20), answer("done")]))
}

/// What was logged to the client until the call was answered.
fn logged(client: &Client) -> Vec<String> {
    let left = client.left_over();
    let logs = left
        .iter()
        .filter(|message| message.is_notification("notifications/message"));
    logs.map(|log| {
        format!(
            "{} {}",
            params(log)["logger"].as_str().unwrap(),
            params(log)["data"].as_str().unwrap()
        )
    })
    .collect()
}

#[test]
fn log_messages_reach_clients_that_want_them() {
    let setup = Setup::new().server("s", logging());
    let mut client = setup.connect();
    assert_eq!(client.execute("s__t").text(), "done");
    assert_eq!(logged(&client), ["s/db small", "s/db large"]);
    client.finish();

    let mut client = setup.connect();
    assert_eq!(
        client
            .ask("logging/setLevel", r#"{"level":"warning"}"#)
            .result(),
        "{}"
    );
    assert_eq!(
        client
            .ask("logging/setLevel", r#"{"level":"loud"}"#)
            .error_code(),
        -32602
    );
    assert_eq!(client.execute("s__t").text(), "done");
    assert_eq!(logged(&client), ["s/db large"]);
    setup.home().wait_for("s", r#"{"level":"warning"}"#);
    client.finish();

    for (level, wanted) in [
        ("", vec![]),
        ("debug", vec!["s/db small", "s/db large"]),
        ("error", vec!["s/db large"]),
    ] {
        let mut client = setup.start();
        let meta = if level.is_empty() {
            String::new()
        } else {
            format!(r#""io.modelcontextprotocol/logLevel":"{level}""#)
        };
        let call = r#""name":"execute_tool","arguments":{"name":"s__t"}"#;
        let id = client.begin_modern("tools/call", call, "{}", &meta);
        assert_eq!(client.answer(id).text(), "done");
        assert_eq!(logged(&client), wanted, "{level}");
        client.finish();
    }
}

#[test]
fn clients_that_can_be_asked_different_things_have_connections_of_their_own() {
    let setup = Setup::new().server("s", asking("elicitation/create", FORM));
    let mut client = setup.start();
    let answer = modern(&mut client, "", "{}");
    assert!(answer.result().contains("no client declares support"));
    let asked = modern(&mut client, "", ALL);
    assert!(
        asked.result().contains("input_required"),
        "{}",
        asked.as_str()
    );
    let again = modern(&mut client, "", "{}");
    assert!(again.result().contains("no client declares support"));
    assert_eq!(setup.home().starts("s"), 2);
    client.finish();
}

#[test]
fn a_server_asks_on_the_stream_of_the_call_over_http() {
    let web = HttpServer::with_tool(|request, reply| {
        reply.events("");
        reply.raw(b"data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"Well?\"}}\n\n");
        reply.wait_for("the answer to the question", |request| {
            request.body["id"] == "q"
        });
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[]}}}}"#,
            request.body["id"]
        );
        reply.raw(format!("data: {answer}\n\n").as_bytes());
    });
    let setup = Setup::new().entry("web", &web.entry(json!({})));
    let mut client = greeted(&setup, ALL);
    let id = client.begin_execute("web__t");
    let asked = question(&mut client, "elicitation/create");
    assert_eq!(params(&asked)["message"], "web: Well?");
    reply(&mut client, &asked, r#"{"action":"accept","content":{}}"#);
    assert_eq!(client.answer(id).result(), r#"{"content":[]}"#);
    let posted = web
        .requests()
        .into_iter()
        .find(|request| request.body["id"] == "q")
        .expect("the answer was posted");
    assert_eq!(
        posted.body["result"],
        json!({ "action": "accept", "content": {} })
    );
    assert_eq!(posted.header("mcp-session-id"), "session-1");
    client.finish();
}
