//! Lists of tools: pages, odd entries, changes; and edits of the configuration while `mcpzip` runs.

use serde_json::json;

use crate::support::http::{HttpServer, legacy};
use crate::support::script::{
    answer, change_tools, echo, error, exit, hang, line, result, sleep, up_to,
};
use crate::support::{Client, Server, Setup, until};

/// Waits until a search for `query` has `text` in its answer.
#[track_caller]
fn until_found(client: &mut Client, query: &str, text: &str) {
    until(&format!("`{text}` to be found"), || {
        client.search(query).contains(text).then_some(())
    });
}

/// Waits until a search for `query` does not have `text` in its answer any more.
#[track_caller]
fn until_gone(client: &mut Client, query: &str, text: &str) {
    until(&format!("`{text}` to be gone"), || {
        (!client.search(query).contains(text)).then_some(())
    });
}

#[test]
fn all_pages_are_read() {
    let server = (0..25).fold(Server::new().page_size(4), |server, at| {
        server.tool(&format!("tool{at}"), [answer("done")])
    });
    let setup = Setup::new().server("a", server);
    let mut client = setup.connect();
    for at in [0, 3, 4, 24] {
        assert_eq!(client.execute(&format!("a__tool{at}")).text(), "done");
    }
    assert_eq!(setup.home().count("a", "tools/list"), 7);
    client.finish();
}

#[test]
fn pages_that_go_in_a_circle_are_left() {
    let page = r#"{"tools":[{"name":"t","inputSchema":{}}],"nextCursor":"again"}"#;
    let setup = Setup::new().server("a", Server::new().on("tools/list", [result(page)]));
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    assert!(
        client
            .call("proxy_status", "{}")
            .text()
            .contains("pages repeat")
    );
    client.finish();
}

#[test]
fn a_list_that_is_too_long_costs_itself_alone() {
    #[track_caller]
    fn check(list: &'static str, method: &'static str, page: fn(usize) -> String, words: &str) {
        let web = HttpServer::start(move |request, reply| match request.rpc() {
            "initialize" => {
                let result = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": {}, "prompts": {}, "resources": {} },
                    "serverInfo": { "name": "web", "version": "1" },
                });
                reply.json(&request.answer(&result));
            }
            rpc if rpc == method => {
                let cursor = request.body["params"]["cursor"].as_str();
                let at = cursor.map_or(0, |cursor| cursor.parse().unwrap());
                let (id, entries) = (&request.body["id"], page(at));
                let members = format!(r#""{list}":[{entries}],"nextCursor":"{}""#, at + 1);
                reply.json(&format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{{members}}}}}"#
                ));
            }
            "prompts/list" => reply.json(&request.answer(&json!({ "prompts": [] }))),
            "resources/list" => reply.json(&request.answer(&json!({ "resources": [] }))),
            "resources/templates/list" => {
                reply.json(&request.answer(&json!({ "resourceTemplates": [] })));
            }
            _ => legacy(request, reply),
        });
        let setup = Setup::new().entry("web", &web.entry(json!({})));
        let mut client = setup.log_level("warn").start();
        client.shake_hands_as("2025-11-25", "{}");
        client.call("proxy_refresh", "{}").text();
        if list == "tools" {
            let status = client.call("proxy_status", "{}").text();
            assert!(status.contains(words), "{list}: {status}");
        } else {
            assert_eq!(client.execute("web__t").text(), "fine", "{list}");
        }
        client.close_stdin();
        client.wait();
        let said = client.stderr();
        assert!(said.contains(words), "{list}: {said}");
        assert!(web.count(method) <= 1001, "{list}: {}", web.count(method));
    }
    let digits = |_| vec!["1"; 3_000_000].join(",");
    let bytes = |_| format!(r#"{{"uri":"{}"}}"#, "x".repeat(10_000_000));
    check(
        "tools",
        "tools/list",
        digits,
        "it has more than 50000 entries",
    );
    check(
        "tools",
        "tools/list",
        |_| String::new(),
        "it has more than 1000 pages",
    );
    for (list, method) in [
        ("prompts", "prompts/list"),
        ("resources", "resources/list"),
        ("resourceTemplates", "resources/templates/list"),
    ] {
        check(list, method, digits, "it has more than 50000 entries");
        check(list, method, bytes, "it has more than 32 MB");
    }
}

#[test]
fn an_odd_tool_is_kept_or_flagged_and_never_costs_the_others() {
    let server = Server::new()
        .tool_as("no_schema", r#"{"name":"no_schema"}"#, [answer("done")])
        .tool_as(
            "boolean_schema",
            r#"{"name":"boolean_schema","inputSchema":true}"#,
            [answer("done")],
        )
        .tool_as(
            "odd_hint",
            r#"{"name":"odd_hint","inputSchema":{},"annotations":{"readOnlyHint":"yes"}}"#,
            [answer("done")],
        )
        .tool_as(
            "odd_text",
            r#"{"name":"odd_text","description":5,"title":[],"inputSchema":{}}"#,
            [answer("done")],
        )
        .tool_as(
            "surrogate",
            r#"{"name":"surrogate","description":"cut \ud83d","inputSchema":{"default":1e400}}"#,
            [answer("done")],
        )
        .tool_as(
            "a__b",
            r#"{"name":"a__b","inputSchema":{}}"#,
            [answer("done")],
        )
        .tool_as(
            "with space/ö",
            r#"{"name":"with space/ö","inputSchema":{}}"#,
            [answer("done")],
        )
        .entry("7")
        .entry("null")
        .entry(r#"{"description":"nameless"}"#)
        .entry(r#"{"name":5}"#)
        .entry(r#"{"name":""}"#)
        .entry(r#"{"name":"no_schema","inputSchema":{}}"#)
        .tool("plain", [answer("done")]);
    let mut client = Setup::new().server("a", server).connect();
    for name in [
        "no_schema",
        "boolean_schema",
        "odd_hint",
        "odd_text",
        "surrogate",
        "a__b",
        "with space/ö",
        "plain",
    ] {
        assert_eq!(
            client.execute(&format!("a__{name}")).text(),
            "done",
            "{name}"
        );
    }
    let status = client.call("proxy_status", "{}").text();
    assert!(status.contains("a: ready, 8 tools"), "{status}");
    for entry in 7..=12 {
        assert!(
            status.contains(&format!("entry {entry}: ")),
            "entry {entry} is not flagged: {status}"
        );
    }
    client.finish();
}

#[test]
fn odd_lists_fail_their_server_alone_and_are_explained() {
    for list in [r#"{"tools":5}"#, r#"{}"#, "[]", r#"{"tools":null}"#] {
        let setup = Setup::new()
            .server("odd", Server::new().on("tools/list", [result(list)]))
            .server("fine", Server::new().tool("t", [answer("done")]));
        let mut client = setup.connect();
        assert_eq!(client.execute("fine__t").text(), "done");
        client.call("proxy_refresh", r#"{"server":"odd"}"#).text();
        let status = client.call("proxy_status", "{}").text();
        assert!(
            status.contains("odd: failed") && status.contains("did not list its tools"),
            "{list}: {status}"
        );
        client.finish();
    }
}

#[test]
fn a_server_without_tools_is_no_failure() {
    let mut client = Setup::new().server("a", Server::new()).connect();
    client.call("proxy_refresh", "{}").text();
    assert!(
        client
            .call("proxy_status", "{}")
            .text()
            .contains("a: ready, 0 tools")
    );
    client.finish();
}

#[test]
fn a_server_that_says_its_tools_changed_is_listed_anew() {
    let after = r#"{"name":"after","description":"Repair bicycles.","inputSchema":{}}"#;
    let server = Server::new().tool("change", [change_tools(&[after]), answer("changed")]);
    let setup = Setup::new()
        .server("a", server)
        .server("b", Server::new().tool("other", [answer("done")]));
    let mut client = setup.connect();
    until_found(&mut client, "does other", "b__other");
    assert_eq!(client.execute("a__change").text(), "changed");
    until_found(&mut client, "repair a bicycle", "a__after");
    until_gone(&mut client, "does change", "a__change");
    assert_eq!(setup.home().count("b", "tools/list"), 1);
    client.finish();
}

#[test]
fn a_server_that_says_so_without_end_is_listed_now_and_then() {
    let said = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let noise = (0..200).map(|_| line(said)).chain([answer("done")]);
    let setup = Setup::new().server("a", Server::new().tool("t", noise.collect::<Vec<_>>()));
    let mut client = setup.connect();
    for _ in 0..3 {
        assert_eq!(client.execute("a__t").text(), "done");
    }
    client.finish();
    assert!(
        setup.home().count("a", "tools/list") <= 4,
        "{}",
        setup.home().count("a", "tools/list")
    );
}

#[test]
fn a_server_that_fails_keeps_the_tools_it_had() {
    let tools = r#"{"tools":[{"name":"t","description":"Repair bicycles.","inputSchema":{}}]}"#;
    let server = Server::new().on(
        "tools/list",
        [up_to(
            1,
            "tools/list",
            [result(tools)],
            [error(r#"{"code":-32603,"message":"out of order"}"#)],
        )],
    );
    let mut client = Setup::new().server("a", server).connect();
    until_found(&mut client, "repair bicycles", "a__t");
    client.call("proxy_refresh", "{}").text();
    let status = client.call("proxy_status", "{}").text();
    for part in ["a: failed, 1 tool", "kept from before", "out of order"] {
        assert!(status.contains(part), "`{part}` is not in {status}");
    }
    assert!(client.search("repair bicycles").contains("a__t"));
    client.finish();
}

#[test]
fn a_failed_listing_is_tried_again_by_itself() {
    let server = Server::new()
        .at_start([up_to(1, "start ", [exit(1)], [])])
        .tool("t", [answer("done")]);
    let setup = Setup::new().server("a", server);
    let mut client = setup.connect();
    until_found(&mut client, "t", "a__t");
    assert_eq!(setup.home().starts("a"), 2);
    client.finish();
}

#[test]
fn edits_of_the_configuration_are_picked_up_while_running() {
    let setup = Setup::new()
        .server("stays", Server::new().tool("keep", [answer("kept")]))
        .server("goes", Server::new().tool("leave", [answer("left")]));
    let mut client = setup.connect();
    until_found(&mut client, "does keep", "stays__keep");
    until_found(&mut client, "does leave", "goes__leave");

    let setup = setup
        .without("goes")
        .server("comes", Server::new().tool("arrive", [answer("arrived")]));
    setup.save();
    until_found(&mut client, "does arrive", "comes__arrive");
    until_gone(&mut client, "does leave", "goes__leave");
    assert_eq!(client.execute("comes__arrive").text(), "arrived");
    assert!(client.execute("goes__leave").is_tool_error());
    assert_eq!(client.execute("stays__keep").text(), "kept");
    assert_eq!(
        setup.home().starts("stays"),
        1,
        "an entry that stays keeps its connection"
    );
    until("the removed server to end", || {
        (setup.home().count("goes", "end of input") == 1).then_some(())
    });

    for broken in ["{ \"mcpServers\": {", "[]", ""] {
        setup.save_text(broken);
        client.wait_for_stderr("is not used");
        assert_eq!(client.execute("comes__arrive").text(), "arrived");
    }
    client.finish();
}

#[test]
fn a_changed_entry_is_started_anew_and_a_call_under_way_is_finished() {
    let server = || {
        Server::new()
            .tool("t", [echo()])
            .tool("slow", [sleep(2500), answer("done")])
    };
    let setup = Setup::new().server_with("a", server(), json!({ "env": { "GENERATION": "1" } }));
    let mut client = setup.connect();
    client.execute("a__t");
    let slow = client.begin_execute("a__slow");
    until("the call to arrive", || {
        (setup.home().count("a", "tools/call") == 2).then_some(())
    });
    let setup = setup.server_with("a", server(), json!({ "env": { "GENERATION": "2" } }));
    setup.save();
    until("the second start", || {
        (setup.home().starts("a") == 2).then_some(())
    });
    assert!(!client.execute("a__t").is_tool_error());
    assert_eq!(client.answer(slow).text(), "done");
    client.finish();
}

#[test]
fn a_broken_entry_beside_good_ones_costs_nobody_else() {
    let setup = Setup::new()
        .server("fine", Server::new().tool("t", [answer("done")]))
        .entry("number", "5")
        .entry("empty", "{}")
        .entry("bad__name", r#"{"command":"x"}"#)
        .entry("mcpzip", r#"{"command":"x"}"#)
        .entry("remote", r#"{"url":"http://127.0.0.1:1/mcp"}"#)
        .server("stuck", Server::new().on("tools/list", [hang()]));
    let mut client = setup.connect();
    assert_eq!(client.execute("fine__t").text(), "done");
    let status = client.call("proxy_status", "{}").text();
    for name in ["number", "empty"] {
        assert!(status.contains(&format!("{name}: faulty")), "{status}");
    }
    assert!(
        status.contains("`bad__name` is called `bad_name`"),
        "{status}"
    );
}

#[test]
fn prompts_that_never_come_do_not_hold_up_the_tools() {
    let server = Server::new()
        .tool("work", [answer("done")])
        .capabilities(r#"{"tools":{},"prompts":{}}"#)
        .on("prompts/list", [hang()]);
    let mut client = Setup::new().server("a", server).connect();
    // Prompts had ten seconds once, and a first search waits for four.
    assert!(client.search("work").contains("a__work"));
    assert_eq!(client.execute("a__work").text(), "done");
    client.finish();
}

#[test]
fn a_call_asks_a_server_at_once_that_could_not_be_listed() {
    let server = Server::new()
        .at_start([up_to(1, "start ", [exit(3)], [])])
        .tool("work", [answer("done")]);
    let mut client = Setup::new().server("a", server).connect();
    client.search("work");
    client.wait_for_stderr("tools not listed");
    assert_eq!(client.execute("a__work").text(), "done");
    assert_eq!(client.home().starts("a"), 2);
    client.finish();
}
