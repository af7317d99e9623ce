//! Notifications, subscriptions, completions and log levels of one session never reach or change another that shares its server's process.

use serde_json::{Value, json};

use super::Shared;
use crate::support::script::{answer, await_cancel, line, result, sleep};
use crate::support::{Client, Message, Server, Setup, until};

fn updated(uri: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
    )
}

/// Two sessions of one directory, which share the process of the server `a`.
fn two(server: Server) -> (Shared, Client, Client) {
    let setup = Shared::new(Setup::new().server("a", server));
    let (mut first, mut second) = (setup.connect(), setup.connect());
    for client in [&mut first, &mut second] {
        client.execute("a__t");
    }
    assert_eq!(setup.home().starts("a"), 1, "they do not share the server");
    (setup, first, second)
}

fn is_update(message: &Message, uri: &str) -> bool {
    message.is_notification("notifications/resources/updated") && message.as_str().contains(uri)
}

fn follow(client: &mut Client, uri: &str) {
    let uri = json!({ "uri": uri }).to_string();
    assert_eq!(client.ask("resources/subscribe", &uri).result(), "{}");
}

/// The updates that a client got, after a call that came later on the same connection.
fn updates(client: &mut Client) -> usize {
    client.execute("a__t");
    client
        .stdout()
        .matches("notifications/resources/updated")
        .count()
}

fn followed() -> Server {
    let content = |uri: &str| {
        let content = json!({ "contents": [{ "uri": uri, "text": "x" }] });
        [result(&content.to_string())]
    };
    Server::new()
        .resource("file:///x", content("file:///x"))
        .resource("file:///y", content("file:///y"))
        .tool(
            "touch",
            [
                line(&updated("file:///x")),
                line(&updated("file:///y")),
                answer("touched"),
            ],
        )
        .tool("t", [answer("done")])
}

#[test]
fn an_update_reaches_the_sessions_that_follow_the_resource_and_no_other() {
    let (setup, mut first, mut second) = two(followed());
    follow(&mut first, "file:///x");
    // The call of one session makes the server tell of both.
    second.execute("a__touch");
    first.expect("an update of x", |message| is_update(message, "file:///x"));
    assert_eq!((updates(&mut first), updates(&mut second)), (1, 0));
    follow(&mut second, "file:///y");
    first.execute("a__touch");
    second.expect("an update of y", |message| is_update(message, "file:///y"));
    first.expect("an update of x", |message| is_update(message, "file:///x"));
    assert_eq!((updates(&mut first), updates(&mut second)), (2, 1));
    assert!(
        !first
            .stdout()
            .contains(r#"updated","params":{"uri":"file:///y"#)
    );
    assert!(
        !second
            .stdout()
            .contains(r#"updated","params":{"uri":"file:///x"#)
    );
    assert_eq!(setup.home().count("a", "resources/unsubscribe"), 0);
}

#[test]
fn a_session_that_unfollows_or_ends_takes_the_resource_from_no_other() {
    let (setup, mut first, mut second) = two(followed());
    for client in [&mut first, &mut second] {
        follow(client, "file:///x");
    }
    assert_eq!(setup.home().count("a", "resources/subscribe"), 1);
    first.ask("resources/unsubscribe", r#"{"uri":"file:///x"}"#);
    first.execute("a__touch");
    second.expect("an update of x", |message| is_update(message, "file:///x"));
    assert_eq!(updates(&mut first), 0);
    follow(&mut first, "file:///x");
    follow(&mut first, "file:///y");
    first.finish();
    // Only the resource that no session follows any more is unsubscribed.
    until("the server is told", || {
        (setup.home().count("a", "resources/unsubscribe") == 1).then_some(())
    });
    second.execute("a__touch");
    second.expect("an update of x", |message| is_update(message, "file:///x"));
    let log = setup.home().log("a");
    let given_up = log.lines().find(|line| line.contains("unsubscribe"));
    assert!(given_up.unwrap().contains("file:///y"), "{log}");
    assert_eq!(updates(&mut second), 2);
}

#[test]
fn a_refused_subscription_of_one_session_ends_none_of_another() {
    let refusal = r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32602,"message":"not y"}}"#;
    let server = followed().on(
        "resources/subscribe",
        [crate::support::script::if_params(
            "file:///y",
            [line(refusal)],
            [result("{}")],
        )],
    );
    let (setup, mut first, mut second) = two(server);
    follow(&mut first, "file:///x");
    let refused = second.ask("resources/subscribe", r#"{"uri":"file:///y"}"#);
    assert!(
        refused.error()["message"]
            .as_str()
            .unwrap()
            .contains("not y")
    );
    second.execute("a__touch");
    first.expect("an update of x", |message| is_update(message, "file:///x"));
    assert_eq!((updates(&mut first), updates(&mut second)), (1, 0));
    drop(setup);
}

#[test]
fn completions_with_equal_ids_reach_the_session_that_asked() {
    let completion = |value: &str| {
        let found = json!({ "completion": { "values": [value], "total": 1, "hasMore": false } });
        result(&found.to_string())
    };
    let server = Server::new()
        .prompt("p", [result(r#"{"messages":[]}"#)])
        .capabilities(r#"{"tools":{},"prompts":{},"completions":{}}"#)
        .on(
            "completion/complete",
            [crate::support::script::if_params(
                "first",
                [sleep(300), completion("for the first")],
                [completion("for the second")],
            )],
        )
        .tool("t", [answer("done")]);
    let (setup, mut first, mut second) = two(server);
    let ask = |client: &mut Client, word: &str| {
        let reference = json!({ "type": "ref/prompt", "name": "a__p" });
        let params = json!({ "ref": reference, "argument": { "name": "n", "value": word } });
        client.send(&json!({ "jsonrpc": "2.0", "id": "same", "method": "completion/complete", "params": params }).to_string());
    };
    let values = |message: &Message| -> Value { message.value()["completion"]["values"].clone() };
    // The one that is asked first is answered last.
    ask(&mut first, "first");
    ask(&mut second, "second");
    assert_eq!(
        values(&second.answer_to(r#""same""#)),
        json!(["for the second"])
    );
    assert_eq!(
        values(&first.answer_to(r#""same""#)),
        json!(["for the first"])
    );
    assert_eq!(setup.home().starts("a"), 1);
}

#[test]
fn progress_with_equal_tokens_reaches_the_session_of_the_call() {
    let progress = |text: &str| {
        line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$token,"progress":1,"message":"{text}"}}}}"#
        ))
    };
    let server = Server::new()
        .tool("one", [sleep(200), progress("of one"), answer("one")])
        .tool("two", [sleep(200), progress("of two"), answer("two")])
        .tool("t", [answer("done")]);
    let (_setup, mut first, mut second) = two(server);
    let begin = |client: &mut Client, tool: &str| {
        let params = json!({ "name": "execute_tool", "arguments": { "name": tool }, "_meta": { "progressToken": 7 } });
        client.request("tools/call", &params.to_string())
    };
    let (one, two) = (begin(&mut first, "a__one"), begin(&mut second, "a__two"));
    first.answer(one);
    second.answer(two);
    let (first, second) = (first.stdout(), second.stdout());
    assert!(
        first.contains("of one") && !first.contains("of two"),
        "{first}"
    );
    assert!(
        second.contains("of two") && !second.contains("of one"),
        "{second}"
    );
}

#[test]
fn a_cancelled_call_of_one_session_cancels_no_equal_one_of_another() {
    let server = Server::new()
        .tool("hang", [await_cancel()])
        .tool("slow", [sleep(700), answer("not cancelled")])
        .tool("t", [answer("done")]);
    let (setup, mut first, mut second) = two(server);
    let call = |client: &mut Client, tool: &str| {
        let params = json!({ "name": "execute_tool", "arguments": { "name": tool } });
        client.send(
            &json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params })
                .to_string(),
        );
    };
    call(&mut first, "a__hang");
    call(&mut second, "a__slow");
    setup.home().wait_for("a", "slow");
    first.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#);
    setup.home().wait_for("a", "notifications/cancelled");
    assert_eq!(second.answer_to("77").text(), "not cancelled");
    assert_eq!(setup.home().count("a", "notifications/cancelled"), 1);
}

fn logging() -> Server {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"a note"}}"#;
    Server::new()
        .capabilities(r#"{"tools":{},"logging":{}}"#)
        .on("logging/setLevel", [result("{}")])
        .tool("t", [line(note), answer("done")])
}

#[test]
fn the_log_level_of_a_session_quiets_the_server_for_no_other() {
    let setup = Shared::new(Setup::new().server("a", logging()));
    let mut quiet = setup.connect();
    quiet.ask("logging/setLevel", r#"{"level":"error"}"#);
    quiet.execute("a__t");
    setup.home().wait_for("a", r#""level":"error""#);
    // A session that sets no level gets everything, as it would without the other one.
    let mut other = setup.connect();
    setup.home().wait_for("a", r#""level":"debug""#);
    other.execute("a__t");
    other.expect("the note", |message| message.as_str().contains("a note"));
    quiet.execute("a__t");
    assert!(!quiet.stdout().contains("a note"));
    assert_eq!(setup.home().starts("a"), 1);
}

#[test]
fn a_log_message_goes_to_the_session_whose_call_is_in_progress() {
    let (_setup, mut first, mut second) = two(logging());
    let before = second.stdout().matches("a note").count();
    for _ in 0..5 {
        first.execute("a__t");
    }
    second.ask("ping", "{}");
    assert_eq!(second.stdout().matches("a note").count(), before);
}
