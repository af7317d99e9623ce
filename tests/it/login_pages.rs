//! Logins by way of the client: whoever can send its user to a page is asked to, and the call goes on.

use serde_json::{Value, json};

use crate::support::authority::{Authority, Manner, browse, log_in};
use crate::support::script::answer;
use crate::support::{Client, Message, Server, Setup};

const URLS: &str = r#"{"elicitation":{"form":{},"url":{}}}"#;

fn greeted(setup: &Setup, capabilities: &str) -> Client {
    let mut client = setup.start();
    client.shake_hands_as("2025-11-25", capabilities);
    client
}

/// The question that a client with a handshake is asked, and its parameters.
#[track_caller]
fn question(client: &mut Client) -> (String, Value) {
    let asked = client.expect("a question", |message| {
        message.is_notification("elicitation/create")
    });
    (
        asked.id().to_owned(),
        serde_json::from_str(asked.params()).unwrap(),
    )
}

fn reply(client: &mut Client, id: &str, action: &str) {
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"{action}"}}}}"#
    ));
}

/// A call of a modern client, with these members beside the tool.
fn modern(client: &mut Client, tool: &str, members: &str) -> u64 {
    let call = format!(r#""name":"execute_tool","arguments":{{"name":"{tool}"}}{members}"#);
    client.begin_modern("tools/call", &call, URLS, "")
}

/// What a modern client is asked: its parameters, and the state to come back with.
#[track_caller]
fn needs(asked: &Message) -> (Value, String) {
    let result = asked.value();
    assert_eq!(result["resultType"], "input_required", "{result}");
    let request = &result["inputRequests"]["login"];
    assert_eq!(request["method"], "elicitation/create");
    (
        request["params"].clone(),
        result["requestState"].to_string(),
    )
}

#[test]
fn a_call_goes_on_after_its_user_has_logged_in() {
    let authority = Authority::start(Manner::default());
    let setup = authority
        .setup(json!({}))
        .server("b", Server::new().tool("v", [answer("too")]));
    let mut client = greeted(&setup.clone().log_level("trace"), URLS);
    // Two calls, one question.
    let calls = [
        client.begin_execute("web__t"),
        client.begin_execute("web__u"),
    ];
    let (id, asked) = question(&mut client);
    assert_eq!(asked["mode"], "url");
    assert!(
        asked["elicitationId"]
            .as_str()
            .is_some_and(|id| id.len() > 20),
        "{asked}"
    );
    let message = asked["message"].as_str().unwrap();
    assert!(
        message.starts_with("web: ") && message.contains(&authority.issuer("/one")),
        "{message}"
    );
    let url = asked["url"].as_str().unwrap();
    assert!(
        url.starts_with(&authority.issuer("/one/authorize?")),
        "{url}"
    );
    authority.is_silent("the question", &asked.to_string());
    // Others go on meanwhile.
    assert_eq!(client.execute("b__v").text(), "too");
    reply(&mut client, &id, "accept");
    assert!(browse(url).contains("logged in"));
    let complete = client.expect("the end", |message| {
        message.is_notification("notifications/elicitation/complete")
    });
    assert!(
        complete
            .params()
            .contains(asked["elicitationId"].as_str().unwrap()),
        "{}",
        complete.as_str()
    );
    for call in calls {
        assert_eq!(client.answer(call).text(), "fine");
    }
    assert_eq!(client.execute("web__t").text(), "fine");
    client.close_stdin();
    client.wait();
    authority.is_silent("stdout", &client.stdout());
    authority.is_silent("stderr", &client.stderr());
    assert_eq!(
        authority.read(|state| (state.registrations, state.token_requests)),
        (1, 1)
    );
    // What is kept serves every process after.
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
}

#[test]
fn a_user_who_has_been_there_need_not_tell_their_client() {
    let authority = Authority::start(Manner::default());
    let mut client = greeted(&authority.setup(json!({})), URLS);
    let call = client.begin_execute("web__t");
    let (_, asked) = question(&mut client);
    browse(asked["url"].as_str().unwrap());
    assert_eq!(client.answer(call).text(), "fine");
}

#[test]
fn a_user_who_declines_is_not_sent_anywhere() {
    let authority = Authority::start(Manner::default());
    let mut client = greeted(&authority.setup(json!({})), URLS);
    for action in ["decline", "cancel"] {
        let call = client.begin_execute("web__t");
        let (id, asked) = question(&mut client);
        reply(&mut client, &id, action);
        let said = client.answer(call).tool_error();
        assert!(
            said.contains("login needed: run `mcpzip login web`"),
            "{action}: {said}"
        );
        // Nobody listens for that login any more.
        let redirect = reqwest::Url::parse(asked["url"].as_str().unwrap()).unwrap();
        let redirect = redirect
            .query_pairs()
            .find(|(name, _)| name == "redirect_uri")
            .unwrap()
            .1
            .into_owned();
        let port = reqwest::Url::parse(&redirect).unwrap().port().unwrap();
        crate::support::until("the port to be closed", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).err()
        });
    }
    assert_eq!(authority.state().token_requests, 0);
}

#[test]
fn clients_that_cannot_send_anybody_anywhere_are_told_the_command() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    for capabilities in ["{}", r#"{"elicitation":{}}"#] {
        let mut client = greeted(&setup, capabilities);
        let said = client.execute("web__t").tool_error();
        assert!(
            said.contains("login needed: run `mcpzip login web`"),
            "{said}"
        );
        client.finish();
    }
    // Nor can a modern one for one of several calls.
    let mut client = setup.start();
    let several = r#""name":"execute_tool","arguments":{"calls":[{"name":"web__t"}]}"#;
    let id = client.begin_modern("tools/call", several, URLS, "");
    assert!(client.answer(id).result().contains("login needed"));
    assert_eq!(authority.state().registrations, 0);
}

#[test]
fn a_modern_client_is_asked_by_its_answer_and_comes_back() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    let mut client = setup.start();
    let id = modern(&mut client, "web__t", "");
    let (asked, state) = needs(&client.answer(id));
    assert_eq!(
        (&asked["mode"], asked.get("elicitationId")),
        (&json!("url"), None)
    );
    // It is asked for the same page again when it comes without a word.
    let id = modern(&mut client, "web__t", "");
    let (again, _) = needs(&client.answer(id));
    assert_eq!(again["url"], asked["url"]);
    // It may come back before its user is through.
    let agreed =
        format!(r#","requestState":{state},"inputResponses":{{"login":{{"action":"accept"}}}}"#);
    let id = modern(&mut client, "web__t", &agreed);
    assert!(browse(asked["url"].as_str().unwrap()).contains("logged in"));
    assert!(client.answer(id).result().contains("fine"));
    // And again when there is nothing to wait for any more.
    let id = modern(&mut client, "web__t", &agreed);
    assert!(client.answer(id).result().contains("fine"));
    assert_eq!(
        authority.read(|state| (state.registrations, state.token_requests)),
        (1, 1)
    );

    // The same when a login is over.
    authority.revoke(true);
    let id = modern(&mut client, "web__t", "");
    let (asked, state) = needs(&client.answer(id));
    let declined =
        format!(r#","requestState":{state},"inputResponses":{{"login":{{"action":"decline"}}}}"#);
    let id = modern(&mut client, "web__t", &declined);
    let said = client.answer(id);
    assert!(
        said.result()
            .contains("login needed: run `mcpzip login web`"),
        "{}",
        said.as_str()
    );
    assert!(!asked["url"].is_null());
}

#[test]
fn missing_scopes_are_asked_for_by_way_of_the_client() {
    let authority = Authority::start(Manner {
        needed: &["write"],
        ..Manner::default()
    });
    let setup = authority.setup(json!({}));
    log_in(&setup);
    let mut client = greeted(&setup, URLS);
    let call = client.begin_execute("web__t");
    let (id, asked) = question(&mut client);
    let url = asked["url"].as_str().unwrap();
    assert!(url.contains("scope=basic+write"), "{url}");
    reply(&mut client, &id, "accept");
    browse(url);
    assert_eq!(client.answer(call).text(), "fine");
    // What is never enough is asked for once in each call.
    authority.state().manner.needed = &["basic", "nobody-has-this"];
    let call = client.begin_execute("web__t");
    let (id, asked) = question(&mut client);
    reply(&mut client, &id, "accept");
    authority.state().manner.grants = Some("basic");
    browse(asked["url"].as_str().unwrap());
    let said = client.answer(call).tool_error();
    assert!(
        said.contains("nobody-has-this") || said.contains("would not change that"),
        "{said}"
    );
}
