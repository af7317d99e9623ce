//! Resources of all servers by their URIs, what they are told apart by, and who hears of their changes.

use serde_json::{Value, json};

use crate::support::script::{change, echo, error, exit, line, result, say, sleep};
use crate::support::{Client, Message, Server, Setup, until};

const UPDATED: &str = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"URI","n":1e400}}"#;

fn content(text: &str) -> crate::support::script::Step {
    result(&format!(
        r#"{{"contents":[{{"uri":"own:{text}","text":"{text}","n":1e400}}]}}"#
    ))
}

fn whole(text: &str) -> String {
    format!(r#"{{"contents":[{{"uri":"own:{text}","text":"{text}","n":1e400}}]}}"#)
}

fn updated(uri: &str) -> crate::support::script::Step {
    line(&UPDATED.replace("URI", uri))
}

#[track_caller]
fn read(client: &mut Client, uri: &str) -> Message {
    client.ask("resources/read", &json!({ "uri": uri }).to_string())
}

fn uris(message: &Message, list: &str, key: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(&message.result().replace("1e400", "1")).unwrap();
    value[list]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry[key].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
fn news(client: &mut Client) -> Message {
    client.expect("news of a resource", |message| {
        message.is_notification("notifications/resources/updated")
    })
}

#[test]
fn resources_are_listed_and_read_by_their_uris_and_shared_ones_told_apart() {
    let odd = r#"{"uri":"odd:x", "size":1e400,"name":"\ud83d"}"#;
    let setup = Setup::new()
        .server(
            "a",
            Server::new()
                .resource_as("odd:x", odd, [content("odd")])
                .resource("file:///x", [content("ax")]),
        )
        .server("b", Server::new().resource("file:///x", [content("bx")]));
    let mut client = setup.connect();
    let list = client.ask("resources/list", "{}");
    assert!(list.result().contains(odd), "{}", list.result());
    let seen: Vec<_> = [
        "odd:x",
        "mcpzip://a/file%3A%2F%2F%2Fx",
        "mcpzip://b/file%3A%2F%2F%2Fx",
    ]
    .into();
    for uri in &seen {
        assert!(
            list.result().contains(&format!(r#""uri":"{uri}""#)),
            "{uri}: {}",
            list.result()
        );
    }
    for (uri, text) in seen.iter().zip(["odd", "ax", "bx"]) {
        assert_eq!(read(&mut client, uri).result(), whole(text), "{uri}");
    }
    let ambiguous = read(&mut client, "file:///x").error();
    assert_eq!(ambiguous["code"], -32602);
    for uri in &seen[1..] {
        assert!(
            ambiguous["message"].as_str().unwrap().contains(*uri),
            "{ambiguous}"
        );
    }
    assert_eq!(client.ask("resources/read", "{}").error_code(), -32602);
    client.finish();
}

#[test]
fn templates_are_told_apart_so_that_they_can_still_be_expanded() {
    let server = || {
        Server::new()
            .template("file:///d/{name}")
            .on("resources/read", [echo()])
    };
    let setup = Setup::new()
        .server("a", server().template("a:{+rest}"))
        .server("b", server().template("a:long/{x}{?q}"));
    let mut client = setup.connect();
    let list = client.ask("resources/templates/list", "{}");
    assert_eq!(
        uris(&list, "resourceTemplates", "uriTemplate"),
        [
            "mcpzip://a/file%3A%2F%2F%2Fd%2F{name}",
            "a:{+rest}",
            "mcpzip://b/file%3A%2F%2F%2Fd%2F{name}",
            "a:long/{x}{?q}"
        ]
    );
    for (uri, server, own) in [
        (
            "mcpzip://b/file%3A%2F%2F%2Fd%2Fx%20y",
            "b",
            "file:///d/x%20y",
        ),
        ("a:any/thing", "a", "a:any/thing"),
        ("a:long/1?q=2", "b", "a:long/1?q=2"),
    ] {
        let answer = read(&mut client, uri);
        assert!(
            answer.result().contains(&format!(r#"{{"uri":"{own}"}}"#)),
            "{uri}: {}",
            answer.result()
        );
        assert!(
            setup
                .home()
                .log(server)
                .contains(&format!(r#""uri":"{own}""#)),
            "{uri} did not reach {server}"
        );
    }
    let ambiguous = read(&mut client, "file:///d/1").error();
    assert!(
        ambiguous["message"]
            .as_str()
            .unwrap()
            .contains("mcpzip://a/file%3A%2F%2F%2Fd%2F1"),
        "{ambiguous}"
    );
    client.finish();
}

#[test]
fn what_is_not_listed_is_read_from_the_server_that_has_it() {
    let other = r#"{"code":-32002,"message":"nothing here","data":{"uri":"x"}}"#;
    let setup = Setup::new()
        .server(
            "a",
            Server::new()
                .resource("a:1", [])
                .on("resources/read", [error(other)]),
        )
        .server(
            "b",
            Server::new()
                .resource("file:///docs/1", [])
                .reading("file:///docs/2", [content("near")]),
        )
        .server(
            "c",
            Server::new()
                .resource("c:1", [])
                .reading("far:1", [content("far")]),
        )
        .server("tools", Server::new().tool("t", [echo()]));
    let mut client = setup.connect();
    client.ask("resources/list", "{}");
    assert_eq!(read(&mut client, "file:///docs/2").result(), whole("near"));
    assert_eq!(
        setup.home().count("a", "resources/read"),
        0,
        "the likeliest server is asked first"
    );
    assert_eq!(read(&mut client, "far:1").result(), whole("far"));
    let missing = read(&mut client, "none:1").error();
    assert_eq!(
        (missing["code"].as_i64(), &missing["data"]["uri"]),
        (Some(-32002), &json!("none:1"))
    );
    let modern = client
        .ask_modern("resources/read", r#""uri":"none:1""#)
        .error();
    assert_eq!(
        (modern["code"].as_i64(), &modern["data"]["uri"]),
        (Some(-32602), &json!("none:1"))
    );
    assert_eq!(setup.home().count("tools", "resources/read"), 0);
    let uri = r#"{"uri":"far:\ud83d"}"#;
    assert_eq!(client.ask("resources/read", uri).error_code(), -32002);
    assert!(
        setup.home().log("a").contains(uri),
        "the server got another URI"
    );
    client.finish();
    let mut client = Setup::new().connect();
    assert_eq!(read(&mut client, "none:1").error_code(), -32002);
    client.finish();
}

#[test]
fn a_modern_client_gets_contents_it_can_cache() {
    let fresh = r#"{"ttlMs":7.5,"cacheScope":"public","resultType":"complete","contents":[]}"#;
    let setup = Setup::new()
        .server("old", Server::new().resource("o:1", [content("o")]))
        .server(
            "new",
            Server::new().modern().resource("n:1", [result(fresh)]),
        );
    let mut client = setup.start();
    let list = client.ask_modern("resources/list", "").value();
    assert_eq!(
        list["ttlMs"], 0,
        "the list of a server is stale at once: {list}"
    );
    let content = client.ask_modern("resources/read", r#""uri":"o:1""#);
    let expected = whole("o").replacen(
        '{',
        r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","#,
        1,
    );
    assert_eq!(content.result(), expected);
    assert_eq!(
        client
            .ask_modern("resources/read", r#""uri":"n:1""#)
            .result(),
        fresh
    );
    client.finish();
}

#[test]
fn changed_lists_are_told_to_clients_of_both_eras() {
    let after = r#"{"uri":"file:///after","name":"n"}"#;
    let server = Server::new()
        .resource("file:///before", [])
        .tool("change", [change("resources", &[after]), echo()]);
    let mut client = Setup::new().server("a", server).connect();
    assert_eq!(
        uris(&client.ask("resources/list", "{}"), "resources", "uri"),
        ["file:///before"]
    );
    client.begin_modern(
        "subscriptions/listen",
        r#""notifications":{"resourcesListChanged":true}"#,
        "{}",
        "",
    );
    let acknowledged = client.expect("the acknowledgement", |message| {
        message.is_notification("notifications/subscriptions/acknowledged")
    });
    assert!(
        acknowledged
            .params()
            .contains(r#""notifications":{"resourcesListChanged":true}"#)
    );
    client.execute("a__change");
    let told = |message: &Message| message.is_notification("notifications/resources/list_changed");
    client.expect("the news of a session", |message| {
        told(message) && !message.as_str().contains("subscriptionId")
    });
    client.expect("the news of a subscription", |message| {
        told(message) && message.as_str().contains("subscriptionId")
    });
    assert_eq!(
        uris(&client.ask("resources/list", "{}"), "resources", "uri"),
        ["file:///after"]
    );
    client.finish();
}

#[test]
fn a_resource_that_is_followed_is_told_of_until_it_is_not() {
    let server = Server::new().resource("file:///x", [content("x")]).tool(
        "touch",
        [updated("file:///x"), updated("file:///y"), echo()],
    );
    let setup = Setup::new()
        .server("a", server)
        .setting("idle_timeout", json!("200ms"));
    let mut client = setup.connect();
    let uri = r#"{"uri":"file:///x"}"#;
    assert_eq!(client.ask("resources/subscribe", uri).result(), "{}");
    assert_eq!(setup.home().count("a", "resources/subscribe"), 1);
    // On a busy machine it was closed after it was listed, and started again for the subscription.
    let starts = setup.home().starts("a");
    // A followed server is not closed for idleness.
    std::thread::sleep(std::time::Duration::from_millis(700));
    client.execute("a__touch");
    assert_eq!(
        news(&mut client).params(),
        r#"{"uri":"file:///x","n":1e400}"#
    );
    assert_eq!(setup.home().starts("a"), starts, "it was closed");
    assert_eq!(client.ask("resources/unsubscribe", uri).result(), "{}");
    until("the server to hear of it", || {
        (setup.home().count("a", "resources/unsubscribe") == 1).then_some(())
    });
    client.execute("a__touch");
    client.execute("a__touch");
    assert_eq!(
        client.stdout().matches("resources/updated").count(),
        1,
        "only what is followed is told"
    );
    until("an idle server to be closed", || {
        setup.home().log("a").contains("end of input").then_some(())
    });
    client.finish();
}

#[test]
fn a_subscription_after_a_lost_connection_is_answered_when_the_next_one_has_it() {
    let server = Server::new()
        .at_start([sleep(300)])
        .resource("file:///x", [content("x")])
        .tool("die", [exit(1)]);
    let setup = Setup::new().server("a", server);
    let mut client = setup.connect();
    let uri = r#"{"uri":"file:///x"}"#;
    assert_eq!(client.ask("resources/subscribe", uri).result(), "{}");
    assert!(client.execute("a__die").is_tool_error());
    assert_eq!(client.ask("resources/subscribe", uri).result(), "{}");
    assert_eq!(
        setup.home().count("a", "resources/subscribe"),
        2,
        "the answer was about the lost connection"
    );
    client.finish();
}

#[test]
fn what_all_listeners_want_is_asked_for_once_and_again_after_a_reconnect() {
    let server = Server::new()
        .resource("file:///x", [])
        .resource("file:///y", [])
        .tool(
            "touch",
            [updated("file:///x"), updated("file:///y"), echo()],
        )
        .tool("die", [exit(1)]);
    let setup = Setup::new().server("a", server);
    let mut client = setup.connect();
    client.ask("resources/list", "{}");
    let id = client.begin_modern(
        "subscriptions/listen",
        r#""notifications":{"resourceSubscriptions":["file:///x","file:///y","nowhere:at-all"]}"#,
        "{}",
        "",
    );
    let acknowledged = client.expect("the acknowledgement", |message| {
        message.is_notification("notifications/subscriptions/acknowledged")
    });
    assert!(
        acknowledged.params().contains("file:///y"),
        "{}",
        acknowledged.params()
    );
    client.ask("resources/subscribe", r#"{"uri":"file:///x"}"#);
    let asked = || setup.home().count("a", "\"resources/subscribe\"");
    until("both to be followed", || (asked() >= 2).then_some(()));
    let before = asked();
    client.execute("a__die");
    until("the server to be asked again", || {
        (asked() >= 2 * before).then_some(())
    });
    client.execute("a__touch");
    for marked in [false, true] {
        client.expect("news", |message| {
            message.is_notification("notifications/resources/updated")
                && message.as_str().contains("file:///x")
                && message.as_str().contains("subscriptionId") == marked
        });
    }
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    until("what only the subscription wanted to be given up", || {
        setup
            .home()
            .log("a")
            .lines()
            .any(|line| line.contains("unsubscribe") && line.contains("file:///y"))
            .then_some(())
    });
    assert!(
        !setup
            .home()
            .log("a")
            .lines()
            .any(|line| line.contains("unsubscribe") && line.contains("file:///x"))
    );
    client.finish();
}

#[test]
fn shared_resources_are_followed_by_what_tells_them_apart() {
    let server = || {
        Server::new()
            .resource("file:///x", [])
            .tool("touch", [updated("file:///x"), echo()])
    };
    let setup = Setup::new().server("a", server()).server("b", server());
    let mut client = setup.connect();
    client.ask("resources/list", "{}");
    assert_eq!(
        client
            .ask("resources/subscribe", r#"{"uri":"file:///x"}"#)
            .error_code(),
        -32602
    );
    let apart = r#"{"uri":"mcpzip://b/file%3A%2F%2F%2Fx"}"#;
    assert_eq!(client.ask("resources/subscribe", apart).result(), "{}");
    client.execute("a__touch");
    client.execute("b__touch");
    assert_eq!(
        news(&mut client).params(),
        r#"{"uri":"mcpzip://b/file%3A%2F%2F%2Fx","n":1e400}"#
    );
    assert_eq!(client.stdout().matches("resources/updated").count(), 1);
    assert_eq!(setup.home().count("a", "resources/subscribe"), 0);
    client.finish();
}

#[test]
fn a_server_that_does_not_tell_of_changes_or_refuses_is_an_error() {
    let setup = Setup::new()
        .server(
            "mute",
            Server::new()
                .resource("m:1", [])
                .capabilities(r#"{"resources":{}}"#),
        )
        .server(
            "strict",
            Server::new().resource("s:1", []).on(
                "resources/subscribe",
                [error(r#"{"code":-32002,"message":"not that one"}"#)],
            ),
        );
    let mut client = setup.connect();
    let mute = client
        .ask("resources/subscribe", r#"{"uri":"m:1"}"#)
        .error();
    assert!(
        mute["message"]
            .as_str()
            .unwrap()
            .contains("does not announce changes"),
        "{mute}"
    );
    let strict = client
        .ask("resources/subscribe", r#"{"uri":"s:1"}"#)
        .error();
    assert!(
        strict["message"].as_str().unwrap().contains("not that one"),
        "{strict}"
    );
    assert_eq!(setup.home().count("mute", "resources/subscribe"), 0);
    client.finish();
}

#[test]
fn the_era_of_a_server_is_remembered_across_starts() {
    let modern = || {
        Server::new()
            .modern()
            .tool("t", [result(r#"{"resultType":"complete","content":[]}"#)])
    };
    let setup = Setup::new().alone().server("a", modern());
    let mut client = setup.connect();
    client.execute("a__t");
    let asked = |method: &str| setup.home().count("a", &format!("\"method\":\"{method}\""));
    assert_eq!((asked("initialize"), asked("server/discover")), (1, 1));
    client.finish();
    let mut client = setup.connect();
    client.execute("a__t");
    assert_eq!(
        (asked("initialize"), asked("server/discover")),
        (1, 2),
        "it is opened modern at once"
    );
    assert_eq!(setup.home().starts("a"), 3);
    client.finish();
    // Another version of the server, which does not speak the modern era any more.
    for older in [
        Server::new(),
        Server::new().on("server/discover", [say("what is that?"), exit(1)]),
    ] {
        modern_then(&setup, older);
    }
}

/// The server is known to be modern, and is `older` at the next start.
#[track_caller]
fn modern_then(setup: &Setup, older: Server) {
    let fine = result(r#"{"resultType":"complete","content":[]}"#);
    let mut client = setup
        .clone()
        .server("a", Server::new().modern().tool("t", [fine.clone()]))
        .connect();
    client.execute("a__t");
    client.call("proxy_refresh", "{}");
    client.finish();
    let before = setup.home().starts("a");
    let mut client = setup.clone().server("a", older.tool("t", [fine])).connect();
    assert!(
        !client.execute("a__t").is_tool_error(),
        "the first call falls back"
    );
    assert_eq!(
        setup.home().starts("a"),
        before + 2,
        "each era gets a process of its own"
    );
    client.finish();
}
