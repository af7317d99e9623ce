//! Prompts of all servers in one list, and the way of each to its server; completions.

use serde_json::{Value, json};

use crate::support::script::{change, echo, error, hang, if_params, result, up_to};
use crate::support::{Client, Message, Server, Setup, until};

const ODD: &str = r#"{"title":"\ud83d", "n":1e400,"name":"odd","arguments":[ {"name":"a"} ]}"#;

fn names(message: &Message) -> Vec<String> {
    let value: Value = serde_json::from_str(
        &message
            .result()
            .replace("1e400", "1")
            .replace("\\ud83d", ""),
    )
    .unwrap();
    let prompts = value["prompts"].as_array().unwrap();
    prompts
        .iter()
        .map(|prompt| prompt["name"].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
fn listed(client: &mut Client) -> Vec<String> {
    names(&client.ask("prompts/list", "{}"))
}

#[test]
fn prompts_of_all_servers_are_listed_and_reached_by_their_joined_names() {
    let setup = Setup::new()
        .server(
            "a",
            Server::new()
                .prompt_as("odd", ODD, [echo()])
                .prompt("both", [echo()]),
        )
        .server(
            "b",
            Server::new()
                .prompt("both", [echo()])
                .prompt("x__y", [echo()]),
        )
        .server("none", Server::new());
    let mut client = setup.start();
    let capabilities = client.shake_hands("2025-11-25").value()["capabilities"].clone();
    assert_eq!(capabilities["prompts"], json!({ "listChanged": true }));
    let list = client.ask("prompts/list", "{}");
    assert_eq!(names(&list), ["a__odd", "a__both", "b__both", "b__x__y"]);
    let odd = r#"{"title":"\ud83d","n":1e400,"name":"a__odd","arguments":[ {"name":"a"} ]}"#;
    assert!(list.result().contains(odd), "{}", list.result());
    for (name, server, own) in [
        ("a__odd", "a", "odd"),
        ("odd", "a", "odd"),
        ("b__both", "b", "both"),
        ("b__x__y", "b", "x__y"),
    ] {
        let got = client.ask(
            "prompts/get",
            &format!(r#"{{"name":"{name}","arguments":{{"a": "\ud83d"}},"x":1e400}}"#),
        );
        assert_eq!(
            got.result(),
            format!(
                r#"{{"content":[],"structuredContent":{{"name":"{own}","arguments":{{"a": "\ud83d"}},"x":1e400}}}}"#
            )
        );
        assert!(setup.home().count(server, "prompts/get") > 0);
    }
    let ambiguous = client.ask("prompts/get", r#"{"name":"both"}"#).error();
    assert_eq!(ambiguous["code"], -32602);
    assert!(
        ambiguous["message"]
            .as_str()
            .unwrap()
            .contains("a__both or b__both"),
        "{ambiguous}"
    );
    let unknown = client.ask("prompts/get", r#"{"name":"a__ood"}"#).error();
    assert_eq!(unknown["code"], -32602);
    assert!(
        unknown["message"]
            .as_str()
            .unwrap()
            .contains("did you mean a__odd"),
        "{unknown}"
    );
    assert_eq!(
        client.ask("prompts/get", r#"{"name":5}"#).error_code(),
        -32602
    );
    client.finish();
}

#[test]
fn a_modern_client_gets_what_its_era_requires() {
    let setup = Setup::new().server(
        "a",
        Server::new().prompt("p", [result(r#"{"messages":[],"x":1e400}"#)]),
    );
    let mut client = setup.start();
    let offered = client.ask_modern("server/discover", "").value()["capabilities"].clone();
    assert_eq!(
        (&offered["prompts"], &offered["completions"]),
        (&json!({ "listChanged": true }), &json!({}))
    );
    let list = client.ask_modern("prompts/list", "").value();
    assert_eq!(list["resultType"], "complete");
    assert_eq!(
        (list["ttlMs"].as_u64(), list["cacheScope"].as_str()),
        (Some(60_000), Some("private"))
    );
    let got = client.ask_modern("prompts/get", r#""name":"a__p""#);
    assert_eq!(
        got.result(),
        r#"{"resultType":"complete","messages":[],"x":1e400}"#
    );
    client.finish();
}

#[test]
fn many_prompts_come_in_pages_each_once() {
    let server = |count: usize| {
        (0..count).fold(Server::new().page_size(100), |server, at| {
            server.prompt(&format!("p{at}"), [])
        })
    };
    let mut client = Setup::new()
        .server("a", server(700))
        .server("b", server(500))
        .connect();
    let (mut seen, mut cursor, mut pages) = (Vec::new(), json!({}), 0);
    loop {
        let page = client.ask("prompts/list", &cursor.to_string());
        let found = names(&page);
        assert!(found.len() <= 500, "{} on a page", found.len());
        seen.extend(found);
        pages += 1;
        let Some(next) = page.value().get("nextCursor").cloned() else {
            break;
        };
        cursor = json!({ "cursor": next });
    }
    let expected = (0..700)
        .map(|at| format!("a__p{at}"))
        .chain((0..500).map(|at| format!("b__p{at}")));
    assert_eq!(seen, expected.collect::<Vec<_>>());
    assert_eq!(pages, 3);
    for cursor in [json!("x"), json!(5), json!("")] {
        assert_eq!(
            client
                .ask("prompts/list", &json!({ "cursor": cursor }).to_string())
                .error_code(),
            -32602
        );
    }
    client.finish();
}

#[test]
fn errors_and_failures_of_a_server_are_errors() {
    let refusal = r#"{"code":-32077,"message":"no","data":{"n":1e400}}"#;
    let setup = Setup::new()
        .server(
            "a",
            Server::new()
                .prompt("refused", [error(refusal)])
                .prompt("odd", [result("[]")]),
        )
        .server_with(
            "slow",
            Server::new().prompt("hung", [hang()]),
            json!({ "timeout": "300ms" }),
        );
    let mut client = setup.connect();
    assert!(
        client
            .ask("prompts/get", r#"{"name":"refused"}"#)
            .as_str()
            .contains(&format!(r#""error":{refusal}"#))
    );
    assert_eq!(
        client.ask("prompts/get", r#"{"name":"odd"}"#).error_code(),
        -32603
    );
    let hung = client.ask("prompts/get", r#"{"name":"hung"}"#).error();
    assert!(
        hung["message"]
            .as_str()
            .unwrap()
            .contains("server `slow` gave no answer within 300ms"),
        "{hung}"
    );
    client.finish();
}

#[test]
fn a_changed_list_is_told_and_shown() {
    let after = r#"{"name":"after"}"#;
    let server = Server::new()
        .prompt("before", [])
        .tool("change", [change("prompts", &[after]), echo()]);
    let setup = Setup::new().server("a", server);
    let mut client = setup.connect();
    assert_eq!(listed(&mut client), ["a__before"]);
    // The first list was news too, where it came after the handshake.
    client.left_over();
    client.execute("a__change");
    until("the new prompt", || {
        (listed(&mut client) == ["a__after"]).then_some(())
    });
    client.expect("the news", |message| {
        message.is_notification("notifications/prompts/list_changed")
    });
    client.finish();
}

#[test]
fn a_list_that_fails_costs_nothing_else_and_keeps_what_was_known() {
    let refused = error(r#"{"code":-32603,"message":"broken"}"#);
    let page = result(r#"{"prompts":[{"name":"p"}]}"#);
    let flaky = Server::new().tool("t", [echo()]).prompt("p", [echo()]).on(
        "prompts/list",
        [up_to(1, "\"prompts/list\"", [page], [refused.clone()])],
    );
    let setup = Setup::new()
        .server("flaky", flaky)
        .server(
            "broken",
            Server::new()
                .tool("t", [echo()])
                .prompt("p", [])
                .on("prompts/list", [refused]),
        )
        .server(
            "missing",
            Server::new()
                .tool("t", [echo()])
                .capabilities(r#"{"tools":{},"prompts":{},"resources":{}}"#),
        );
    let mut client = setup.connect();
    assert_eq!(listed(&mut client), ["flaky__p"]);
    client.call("proxy_refresh", "{}");
    assert_eq!(setup.home().count("flaky", "\"prompts/list\""), 2);
    assert_eq!(listed(&mut client), ["flaky__p"]);
    let status = client.call("proxy_status", "{}").text();
    for server in [
        "flaky: ready, 1 tool, 1 prompt",
        "broken: ready, 1 tool",
        "missing: ready, 1 tool",
    ] {
        assert!(status.contains(server), "{status}");
    }
    client.finish();
}

#[test]
fn a_server_with_prompts_and_no_tools_is_no_failure() {
    let unknown = error(r#"{"code":-32601,"message":"unknown method"}"#);
    let server = |capabilities: &str| {
        Server::new()
            .prompt("p", [])
            .capabilities(capabilities)
            .on("tools/list", [unknown.clone()])
    };
    let setup = Setup::new()
        .server("fine", server(r#"{"prompts":{}}"#))
        .server("odd", server(r#"{"prompts":{},"tools":{}}"#));
    let mut client = setup.connect();
    assert_eq!(listed(&mut client), ["fine__p"]);
    client.call("proxy_refresh", "{}");
    let status = client.call("proxy_status", "{}").text();
    assert!(
        status.contains("fine: ready, 0 tools, 1 prompt") && status.contains("odd: failed"),
        "{status}"
    );
    client.finish();
}

#[test]
fn lists_are_known_at_the_next_start_before_any_server_runs() {
    let server = Server::new()
        .prompt_as("odd", ODD, [])
        .resource("file:///a", [])
        .template("x:{y}");
    let setup = Setup::new().server("a", server);
    let mut client = setup.connect();
    assert_eq!(listed(&mut client), ["a__odd"]);
    let first = client.ask("prompts/list", "{}").result().to_owned();
    client.finish();
    let setup = setup.server("a", Server::new().on("initialize", [hang()]));
    let mut client = setup.connect();
    assert_eq!(client.ask("prompts/list", "{}").result(), first);
    assert!(
        client
            .ask("resources/list", "{}")
            .result()
            .contains(r#"{"uri":"file:///a","name":"file:///a"}"#)
            || client
                .ask("resources/list", "{}")
                .result()
                .contains(r#""uri":"file:///a""#)
    );
    assert!(
        client
            .ask("resources/templates/list", "{}")
            .result()
            .contains("x:{y}")
    );
    drop(client);
}

#[test]
fn completions_go_to_the_server_that_has_the_prompt_or_the_template() {
    let complete = result(r#"{"completion":{"values":["one"],"n":1e400}}"#);
    let capabilities = r#"{"prompts":{},"resources":{},"completions":{}}"#;
    let asked = if_params(
        r#""ref":{"type":"ref/prompt","name":"p","x":1}"#,
        [complete],
        [echo()],
    );
    let able = Server::new()
        .prompt("p", [])
        .template("t:{a}")
        .capabilities(capabilities);
    let setup = Setup::new()
        .server("able", able.clone().on("completion/complete", [asked]))
        .server("other", able.on("completion/complete", [echo()]))
        .server("unable", Server::new().prompt("q", []));
    let mut client = setup.connect();
    let mut complete = |reference: &str| {
        let params = format!(r#"{{"ref":{reference},"argument":{{"name":"a","value":"\ud83d"}}}}"#);
        client.ask("completion/complete", &params)
    };
    assert_eq!(
        complete(r#"{"type":"ref/prompt","name":"able__p","x":1}"#).result(),
        r#"{"completion":{"values":["one"],"n":1e400}}"#
    );
    let apart = complete(r#"{"type":"ref/resource","uri":"mcpzip://other/t%3A{a}"}"#);
    assert!(
        apart
            .result()
            .contains(r#"{"ref":{"type":"ref/resource","uri":"t:{a}"},"argument":{"name":"a","value":"\ud83d"}}"#),
        "{}",
        apart.result()
    );
    assert!(
        complete(r#"{"type":"ref/resource","uri":"t:{a}"}"#).error()["message"]
            .as_str()
            .unwrap()
            .contains("other")
    );
    assert_eq!(
        complete(r#"{"type":"ref/prompt","name":"unable__q"}"#).value(),
        json!({ "completion": { "values": [], "total": 0, "hasMore": false } })
    );
    for odd in [
        r#"{"type":"ref/prompt","name":"nothing"}"#,
        r#"{"type":"ref/what"}"#,
        "5",
    ] {
        assert_eq!(complete(odd).error_code(), -32602, "{odd}");
    }
    client.finish();
}

#[test]
fn what_is_not_to_be_seen_is_not_there() {
    let server = || {
        Server::new()
            .prompt("p", [echo()])
            .resource("file:///a", [echo()])
    };
    let setup = Setup::new().server("a", server()).server_with(
        "b",
        server(),
        json!({ "expose": { "prompts": false } }),
    );
    let mut client = setup.connect();
    assert_eq!(listed(&mut client), ["a__p"]);
    assert_eq!(
        client.ask("prompts/get", r#"{"name":"b__p"}"#).error_code(),
        -32602
    );
    client.finish();
    let setup = setup.setting("expose", json!({ "prompts": false, "resources": false }));
    let mut client = setup.start();
    let capabilities = client.shake_hands("2025-11-25").value()["capabilities"].clone();
    for feature in ["prompts", "resources", "completions"] {
        assert!(
            capabilities.get(feature).is_none(),
            "{feature} is declared: {capabilities}"
        );
    }
    for method in [
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "completion/complete",
    ] {
        assert_eq!(client.ask(method, "{}").error_code(), -32601, "{method}");
    }
    client.finish();
}
