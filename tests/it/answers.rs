//! Parts of results, stored results and several calls at once.

use std::io::BufReader;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::gateway::Incoming;
use crate::support::script::{answer, await_cancel, echo, result, sleep};
use crate::support::{Client, Server, Setup, until};

const ITEMS: &str = r#"{"content":[{"type":"text","text":"see data"},{"type":"image","data":"aW1n","mimeType":"image/png"}],"structuredContent":{"total":18446744073709551617,"items":[{"id":1,"name":"milk"},{"id":2,"name":"bread"}]}}"#;

fn shop() -> Setup {
    let failed = r#"{"content":[{"type":"text","text":"[\"sold out\"]"}],"isError":true}"#;
    let fenced =
        r#"{"content":[{"type":"text","text":"Here you are:\n```json\n{\"price\": 3}\n```"}]}"#;
    Setup::new().server(
        "shop",
        Server::new()
            .tool("list", [result(ITEMS)])
            .tool("buy", [result(failed)])
            .tool("price", [result(fenced)])
            .tool("talk", [answer("just words")])
            .tool("slow", [sleep(1000), answer("slow")]),
    )
}

fn select(client: &mut Client, tool: &str, filter: &str) -> crate::support::Message {
    client.call(
        "execute_tool",
        &json!({ "name": tool, "select": filter }).to_string(),
    )
}

/// The id of a stored result, as a text names it.
fn stored_id(text: &str) -> String {
    let (_, rest) = text.split_once("\"id\":\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[test]
fn a_filter_leaves_the_part_that_was_asked_for() {
    let mut client = shop().connect();
    let chosen = select(&mut client, "shop__list", ".items[].name");
    assert_eq!(chosen.text().lines().collect::<Vec<_>>(), ["milk", "bread"]);
    assert!(
        !chosen.result().contains("structuredContent"),
        "clients would show it in place of the text"
    );
    assert!(
        chosen
            .result()
            .contains(r#"{"type":"image","data":"aW1n","mimeType":"image/png"}"#),
        "the image is gone"
    );
    assert_eq!(
        select(&mut client, "shop__list", ".total").text(),
        "18446744073709551617"
    );
    assert_eq!(select(&mut client, "shop__price", ".price").text(), "3");
    client.finish();
}

#[test]
fn without_a_filter_the_result_is_the_servers_own() {
    let mut client = shop().connect();
    assert_eq!(client.execute("shop__list").result(), ITEMS);
    client.finish();
}

#[test]
fn a_filter_that_fails_shows_the_shape_and_the_call_is_not_repeated() {
    let setup = shop();
    let mut client = setup.connect();
    for (filter, error) in [
        (".items[", "not valid jq"),
        (".items.x", "failed"),
        ("empty", "no output"),
        ("nosuch", "nosuch"),
    ] {
        let told = select(&mut client, "shop__list", filter).tool_error();
        assert!(told.contains(error), "{filter}: {told}");
        assert!(
            told.contains(
                "{total: 18446744073709551617, items: array[2] of {id: 1, name: \"milk\"}}"
            ),
            "{told}"
        );
        let id = stored_id(&told);
        let read = client.execute_with(
            "mcpzip__read_result",
            &json!({ "id": id, "select": ".items | length" }).to_string(),
        );
        assert_eq!(read.text(), "2");
    }
    assert_eq!(setup.home().count("shop", "tools/call"), 4);
    client.finish();
}

#[test]
fn a_filter_never_hides_an_error() {
    let mut client = shop().connect();
    assert_eq!(
        select(&mut client, "shop__buy", "empty").tool_error(),
        "[\"sold out\"]"
    );
    client.finish();
}

#[test]
fn a_filter_takes_a_part_of_a_text() {
    let log: Vec<String> = (0..500)
        .map(|n| format!("{n}: {}", if n % 100 == 7 { "Failed" } else { "fine" }))
        .collect();
    let two =
        r#"{"content":[{"type":"text","text":"{\"a\":1}"},{"type":"text","text":"{\"a\":2}"}]}"#;
    let picture = r#"{"content":[{"type":"image","data":"aW1n","mimeType":"image/png"}]}"#;
    let server = Server::new()
        .tool("log", [answer(&log.join("\n"))])
        .tool("two", [result(two)])
        .tool("picture", [result(picture)]);
    let mut client = Setup::new().server("a", server).connect();

    let chosen = select(&mut client, "a__log", r#"grep("failed") | head(2)"#).text();
    let (lines, source) = chosen.split_once("\n… of ").unwrap();
    assert_eq!(lines, "7: Failed\n107: Failed");
    let id = source.split('`').nth(1).unwrap();
    let rest = client.call(
        "execute_tool",
        &json!({ "name": "mcpzip__read_result", "arguments": { "id": id, "select": "lines | length" } })
            .to_string(),
    );
    assert_eq!(rest.text(), "500");
    // Several blocks are one text, of which each line can be data.
    assert_eq!(
        select(&mut client, "a__two", "lines[] | fromjson.a").text(),
        "1\n2"
    );

    let told = select(&mut client, "a__log", ".items").tool_error();
    assert!(
        told.contains(r#"The data: string[4899] "0: fine"#) && told.contains("`head(20)`"),
        "{told}"
    );
    // The call was made, and an agent must not believe that it failed.
    let told = select(&mut client, "a__picture", ".");
    assert!(
        !told.is_tool_error() && told.text().contains("The call was made."),
        "{told:?}"
    );
    assert!(told.result().contains("aW1n"), "{told:?}");
    client.finish();
}

#[test]
fn a_page_with_an_example_in_json_is_a_text() {
    let words = "Words about install.\n".repeat(30);
    let page = format!("# Install\n{words}```json\n{{\"command\": \"x\"}}\n```\nDone.");
    let after = json!({ "content": [
        { "type": "text", "text": "{\"a\":1}" },
        { "type": "text", "text": words },
    ] });
    let server = Server::new()
        .tool("page", [answer(&page)])
        .tool("after", [result(&after.to_string())])
        .tool("half", [answer(r#"["\ud83d", "b"]"#)]);
    let mut client = Setup::new().server("a", server).connect();
    let shown = |message: crate::support::Message| {
        let text = message.text();
        text.split("\n… ").next().unwrap().to_owned()
    };
    assert_eq!(
        shown(select(&mut client, "a__page", "head(1)")),
        "# Install"
    );
    assert_eq!(
        shown(select(&mut client, "a__page", "lines | length")),
        "35"
    );
    assert_eq!(
        shown(select(&mut client, "a__after", "tail(1)")),
        "Words about install."
    );
    assert_eq!(shown(select(&mut client, "a__half", ".[0]")), "\u{fffd}");
    client.finish();
}

#[test]
fn a_text_in_an_embedded_resource_is_a_text_of_the_result() {
    let lines: Vec<String> = (0..8_000).map(|at| format!("file line {at}")).collect();
    let file = json!({ "uri": "repo://x", "mimeType": "text/plain", "text": lines.join("\n") });
    let blob = json!({ "type": "resource", "resource": { "uri": "repo://y", "blob": "aW1n" } });
    let content = json!({ "content": [
        { "type": "text", "text": "downloaded" },
        { "type": "resource", "resource": file },
        blob,
    ] });
    let server = Server::new().tool("get", [result(&content.to_string())]);
    let mut client = Setup::new().server("a", server).connect();
    let cut = client.execute("a__get");
    assert!(cut.as_str().len() < 10_000, "{} bytes", cut.as_str().len());
    assert!(
        cut.text().starts_with("downloaded\nfile line 0\n"),
        "{cut:?}"
    );
    assert!(cut.result().contains("aW1n"), "a blob is no text: {cut:?}");
    let id = stored_id(&cut.text());
    let read = |client: &mut Client, part: serde_json::Value| {
        let mut arguments = json!({ "id": id });
        arguments
            .as_object_mut()
            .unwrap()
            .extend(part.as_object().unwrap().clone());
        let call = json!({ "name": "mcpzip__read_result", "arguments": arguments });
        client.call("execute_tool", &call.to_string()).text()
    };
    let found = read(&mut client, json!({ "grep": "line 777$" }));
    assert!(found.contains("file line 777"), "{found}");
    let found = read(&mut client, json!({ "select": "lines[779]" }));
    assert_eq!(found, "file line 778");
    let chosen = select(&mut client, "a__get", "lines | length");
    assert!(chosen.text().starts_with("8001\n"), "{chosen:?}");
    assert!(chosen.as_str().len() < 1000, "{chosen:?}");
    client.finish();
}

#[test]
fn a_filter_that_is_not_a_text_is_refused_before_the_call() {
    let setup = shop();
    let mut client = setup.connect();
    for filter in [json!(5), json!(["."]), json!({ "a": 1 }), json!(true)] {
        let alone = json!({ "name": "shop__list", "select": filter });
        let several = json!({ "calls": [alone] });
        for call in [&alone, &several] {
            let told = client.call("execute_tool", &call.to_string());
            assert!(
                told.text().contains("`select` must be a jq filter"),
                "{told:?}"
            );
        }
    }
    assert_eq!(setup.home().count("shop", "tools/call"), 0);
    let whole = json!({ "name": "shop__talk", "select": null }).to_string();
    assert_eq!(client.call("execute_tool", &whole).text(), "just words");
    client.finish();
}

#[test]
fn a_filter_that_never_ends_costs_an_error_within_two_seconds_and_nobody_else() {
    let mut client = shop().connect();
    client.execute("shop__talk");
    let filters = [
        "def f: f; f",
        "[range(1e12)] | length",
        "[limit(1e9; repeat(\"x\" * 1000))] | length",
    ];
    let ids: Vec<u64> = filters
        .iter()
        .map(|filter| {
            client.begin(
                "execute_tool",
                &json!({ "name": "shop__list", "select": filter }).to_string(),
            )
        })
        .collect();
    let beside = client.begin_execute("shop__talk");
    assert_eq!(client.answer(beside).text(), "just words");
    for &id in &ids {
        let told = client.answer(id).tool_error();
        assert!(
            told.contains("stopped after") || told.contains("memory") || told.contains("more than"),
            "{told}"
        );
    }
    client.check_order(beside, ids[0]);
    client.finish();
}

#[test]
fn endless_filters_of_one_client_keep_no_other_waiting() {
    let gateway = shop().serve(&[]);
    let params = |filter: &str| {
        format!(r#""name":"execute_tool","arguments":{{"name":"shop__list","select":"{filter}"}}"#)
    };
    let endless = params("def f: f; f");
    let harmless = gateway.modern_of("other", "tools/call", &params(".items | length"));
    harmless.send();
    let session = gateway.session();
    for has_session in [false, true] {
        let start = Instant::now();
        let waiting: Vec<_> = (0..128)
            .map(|number| {
                if has_session {
                    session
                        .request(number, "tools/call", &format!("{{{endless}}}"))
                        .begin()
                } else {
                    gateway.modern_of("greedy", "tools/call", &endless).begin()
                }
            })
            .collect();
        std::thread::sleep(Duration::from_millis(200));
        let begun = Instant::now();
        let answer = harmless.send();
        assert!(!answer.message().is_tool_error(), "{answer:?}");
        assert!(
            begun.elapsed() < Duration::from_secs(1),
            "{:?}",
            begun.elapsed()
        );
        // The wait for a worker is a part of the limit.
        let mut told = Vec::new();
        for stream in waiting {
            let (answer, _) = Incoming::read(BufReader::new(stream)).whole();
            told.push(answer.message().tool_error());
        }
        assert!(
            start.elapsed() < Duration::from_secs(6),
            "{:?}",
            start.elapsed()
        );
        assert!(told.iter().any(|told| told.contains("was stopped after")));
        assert!(
            told.iter()
                .any(|told| told.contains("could not start within")),
            "{told:#?}"
        );
    }
}

#[test]
fn a_filter_sees_no_variable_of_ours() {
    let mut client = shop().variable("SECRET_TOKEN", "hunter2").connect();
    let seen = select(&mut client, "shop__list", "env, $ENV").text();
    assert!(!seen.contains("hunter2"), "{seen}");
    client.finish();
}

#[test]
fn a_result_over_the_budget_is_stored_and_read_in_parts() {
    let lines: Vec<String> = (0..5000)
        .map(|number| format!("line {number} of many"))
        .collect();
    let text = lines.join("\n");
    let long = json!({ "content": [{ "type": "text", "text": text }] }).to_string();
    let server = Server::new().tool("long", [result(&long)]);
    let mut client = Setup::new()
        .server("a", server)
        .setting("results", json!({ "budget": 10_000 }))
        .connect();
    let head = client.execute("a__long");
    let told = head.text();
    assert!(told.starts_with("line 0 of many\n"), "{told}");
    assert!(
        told.contains(&format!("of {} characters", text.len())),
        "{told}"
    );
    assert!(told.len() < 6000, "{} characters", told.len());
    let id = stored_id(&told);
    let mut read = |arguments: serde_json::Value| {
        let mut arguments = arguments;
        arguments["id"] = json!(id);
        client
            .execute_with("mcpzip__read_result", &arguments.to_string())
            .text()
    };
    assert!(read(json!({ "offset": 15, "limit": 14 })).starts_with("line 1 of many"));
    assert_eq!(
        read(json!({ "grep": "line 4321 " })),
        "4322: line 4321 of many"
    );
    assert_eq!(read(json!({ "grep": "LINE 49.9 " })).lines().count(), 10);
    let mut whole = String::new();
    while whole.chars().count() < text.len() {
        let part = read(json!({ "offset": whole.len(), "limit": 30_000 }));
        whole.push_str(part.split("\n… ").next().unwrap());
    }
    assert_eq!(whole, text, "something was lost");
    client.finish();
}

#[test]
fn a_budget_of_zero_lets_everything_pass() {
    let long = json!({ "content": [{ "type": "text", "text": "x".repeat(300_000) }] }).to_string();
    let server = Server::new().tool("long", [result(&long)]);
    let mut client = Setup::new()
        .server("a", server)
        .setting("results", json!({ "budget": 0 }))
        .connect();
    assert_eq!(client.execute("a__long").result(), long);
    client.finish();
}

#[test]
fn stored_results_go_with_the_client_that_made_the_call() {
    let setup = shop();
    let mut client = setup.connect();
    let told = select(&mut client, "shop__list", "empty").tool_error();
    let id = stored_id(&told);
    let mut other = setup.connect();
    let arguments = json!({ "id": id }).to_string();
    assert!(
        other
            .execute_with("mcpzip__read_result", &arguments)
            .tool_error()
            .contains(&id)
    );
    assert!(
        client
            .execute_with("mcpzip__read_result", &arguments)
            .text()
            .contains("see data")
    );
    client.finish();
    other.finish();
}

#[test]
fn several_calls_run_side_by_side_and_answer_in_order() {
    let mut client = shop().connect();
    client.execute("shop__talk");
    let mut calls = vec![json!({ "name": "shop__slow" }); 29];
    calls.push(json!({ "name": "shop__list", "select": ".items[0].name" }));
    calls.push(json!({ "name": "shop__nothing" }));
    calls.push(json!({ "name": "shop__buy" }));
    let start = Instant::now();
    let answered = client.call("execute_tool", &json!({ "calls": calls }).to_string());
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "29 calls of a second took {:?}",
        start.elapsed()
    );
    let value = answered.value();
    let texts: Vec<&str> = value["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    assert_eq!(texts[..2], ["[1] shop__slow", "slow"]);
    assert_eq!(texts[58..60], ["[30] shop__list", "milk"]);
    assert_eq!(texts[60], "[31] shop__nothing failed");
    assert_eq!(texts[62..], ["[32] shop__buy failed", "[\"sold out\"]"]);
    assert!(
        value.get("isError").is_none(),
        "one failure is not the failure of all"
    );
    for wrong in [
        json!([]),
        json!("x"),
        json!([7]),
        json!(vec![json!({ "name": "shop__talk" }); 33]),
    ] {
        let told = client
            .call("execute_tool", &json!({ "calls": wrong }).to_string())
            .tool_error();
        assert!(told.contains("1 to 32"), "{told}");
    }
    client.finish();
}

#[test]
fn cancelling_several_calls_cancels_all_of_them() {
    let setup = Setup::new().server(
        "a",
        Server::new()
            .tool("wait", [await_cancel()])
            .tool("quick", [answer("done")]),
    );
    let mut client = setup.connect();
    client.execute("a__quick");
    let calls = vec![json!({ "name": "a__wait" }); 5];
    let id = client.begin("execute_tool", &json!({ "calls": calls }).to_string());
    until("the calls to arrive", || {
        (setup.home().count("a", r#""name":"wait""#) == 5).then_some(())
    });
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    until("all to be cancelled", || {
        (setup.home().count("a", "notifications/cancelled") == 5).then_some(())
    });
    assert_eq!(client.execute("a__quick").text(), "done");
    client.finish();
}

#[test]
fn what_was_repaired_is_in_meta_and_nowhere_else() {
    let definition = r#"{"name":"t","inputSchema":{"type":"object","properties":{"count":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}}}}"#;
    let mut client = Setup::new()
        .server("a", Server::new().tool_as("t", definition, [echo()]))
        .connect();
    let arguments = r#"{"count":"5","tags":"x"}"#;
    let made = client.execute_with("a__t", arguments);
    assert!(made.result().starts_with(
        r#"{"content":[],"structuredContent":{"name":"t","arguments":{"count":5,"tags":["x"]}}"#
    ));
    let repairs = &made.value()["_meta"]["mcpzip/repairs"];
    assert_eq!(
        repairs
            .as_array()
            .unwrap()
            .iter()
            .map(|repair| &repair["path"])
            .collect::<Vec<_>>(),
        ["count", "tags"]
    );
    assert!(
        repairs[0]["what"].as_str().unwrap().contains("string"),
        "{repairs}"
    );
    assert_eq!(made.text(), "", "the text is the server's");
    let plain = client.execute_with("a__t", r#"{"count":5}"#);
    assert_eq!(
        plain.result(),
        r#"{"content":[],"structuredContent":{"name":"t","arguments":{"count":5}}}"#
    );
    let calls =
        format!(r#"{{"calls":[{{"name":"a__t"}},{{"name":"a__t","arguments":{arguments}}}]}}"#);
    let several = client.call("execute_tool", &calls).value();
    assert_eq!(several["_meta"]["mcpzip/repairs"], json!([[], repairs]));
    let chosen = client.call(
        "execute_tool",
        &format!(r#"{{"name":"a__t","arguments":{arguments},"select":".name"}}"#),
    );
    assert_eq!(
        (
            chosen.text().as_str(),
            &chosen.value()["_meta"]["mcpzip/repairs"]
        ),
        ("t", repairs)
    );
    client.finish();
}

#[test]
fn a_client_that_shows_one_of_two_gets_that_one() {
    let both = r#"{"content":[{"type":"text","text":"{\"a\": 1}"}],"structuredContent":{"a":1},"later":1.0}"#;
    let setup = Setup::new().server("a", Server::new().tool("t", [result(both)]));
    for (name, expected) in [
        (
            "claude-code",
            r#"{"content":[],"structuredContent":{"a":1},"later":1.0}"#,
        ),
        (
            "opencode",
            r#"{"content":[{"type":"text","text":"{\"a\": 1}"}],"later":1.0}"#,
        ),
        (
            "copilot-cli",
            r#"{"content":[{"type":"text","text":"{\"a\": 1}"}],"later":1.0}"#,
        ),
        ("somebody", both),
    ] {
        let mut client = setup.start();
        client.shake_hands_named(name);
        assert_eq!(client.execute("a__t").result(), expected, "{name}");
        client.finish();
        let mut client = setup.start();
        let info =
            format!(r#""io.modelcontextprotocol/clientInfo":{{"name":"{name}","version":"1"}}"#);
        let call = r#""name":"execute_tool","arguments":{"name":"a__t"}"#;
        let id = client.begin_modern("tools/call", call, "{}", &info);
        let modern = format!(r#"{{"resultType":"complete",{}"#, &expected[1..]);
        assert_eq!(client.answer(id).result(), modern, "{name}");
        client.finish();
    }
    let setup = setup.setting("results", json!({ "duplicates": "keep" }));
    let mut client = setup.start();
    client.shake_hands_named("claude-code");
    assert_eq!(client.execute("a__t").result(), both);
    client.finish();
}

#[test]
fn in_compact_form_json_has_no_spaces_and_like_objects_are_a_table() {
    let rows = json!([
        { "identity": 1, "comment": "two  spaces" },
        { "identity": 2, "comment": null },
        { "identity": 3, "comment": "x" },
    ]);
    let pretty = serde_json::to_string_pretty(&rows).unwrap();
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    let mut both = text(&pretty);
    both["structuredContent"] = json!({ "result": rows });
    let mut failed = text(&pretty);
    failed["isError"] = true.into();
    let server = Server::new()
        .tool("text", [result(&text(&pretty).to_string())])
        .tool("both", [result(&both.to_string())])
        .tool("failed", [result(&failed.to_string())])
        .tool("words", [result(&text("not  json").to_string())]);
    let setup = Setup::new().server("a", server);
    let mut client = setup.connect();
    assert_eq!(client.execute("a__text").text(), pretty);
    client.finish();
    // The form counts for the budget.
    let setup = setup.setting(
        "results",
        json!({ "form": "compact", "budget": pretty.len() - 20 }),
    );
    let mut client = setup.connect();
    let table =
        r#"{"$columns":["comment","identity"],"$rows":[["two  spaces",1],[null,2],["x",3]]}"#;
    assert_eq!(client.execute("a__text").text(), table);
    assert_eq!(client.execute("a__both").result(), text(table).to_string());
    assert_eq!(client.execute("a__words").text(), "not  json");
    assert!(client.execute("a__failed").result().contains("isError"));
    assert_eq!(select(&mut client, "a__text", ".[1].identity").text(), "2");
    client.finish();
    let setup = setup.setting("results", json!({ "form": "small" }));
    let mut client = setup.connect();
    assert_eq!(client.execute("a__text").text(), pretty);
    client.finish();
}

#[test]
fn in_compact_form_data_of_any_depth_come_and_end_nothing() {
    let deep = format!("{}1 {}", "[".repeat(50_000), "]".repeat(50_000));
    let keys: Vec<String> = (0..30_000).map(|n| format!("\"k{n}\":1")).collect();
    let wide = format!("[{{{0}}},{{{0}}}]", keys.join(","));
    let text =
        |text: &str| result(&json!({ "content": [{ "type": "text", "text": text }] }).to_string());
    let server = Server::new()
        .tool("deep", [text(&deep)])
        .tool("wide", [text(&wide)]);
    let results = json!({ "form": "compact", "budget": 2_000_000 });
    let setup = Setup::new().server("a", server).setting("results", results);
    let mut client = setup.connect();
    assert_eq!(
        client.execute("a__deep").text(),
        deep.replace(' ', ""),
        "only the space is left out"
    );
    assert!(
        client
            .execute("a__wide")
            .text()
            .starts_with(r#"{"$columns":["k0","#)
    );
    client.finish();
}

#[test]
fn many_texts_next_to_large_data_cost_no_time() {
    let block = r#"{"type":"text","text":"{"}"#;
    let blocks = vec![block; 20_000].join(",");
    let large = "x".repeat(3_000_000);
    let many = format!(r#"{{"content":[{blocks}],"structuredContent":{{"a":"{large}","b":1}}}}"#);
    let server = Server::new().tool("many", [result(&many)]);
    let mut client = Setup::new().server("a", server).connect();
    let started = Instant::now();
    client.execute("a__many");
    assert!(started.elapsed() < Duration::from_secs(5));
    client.finish();
}

#[test]
fn the_form_of_a_tool_goes_before_that_of_a_client_and_that_before_the_one_of_all_results() {
    let pretty = serde_json::to_string_pretty(&json!({ "name": "a", "count": 1 })).unwrap();
    let short = r#"{"count":1,"name":"a"}"#;
    let both = json!({ "content": [{ "type": "text", "text": pretty }], "structuredContent": { "name": "a", "count": 1 } });
    let definition = |name: &str| {
        json!({ "name": name, "inputSchema": { "type": "object" }, "outputSchema": { "type": "object" } }).to_string()
    };
    let tool = |server: Server, name: &str| {
        server.tool_as(name, &definition(name), [result(&both.to_string())])
    };
    let server = ["plain", "whole", "short"]
        .into_iter()
        .fold(Server::new(), tool);
    let own =
        json!({ "override": { "whole": { "form": "as_is" }, "short": { "form": "compact" } } });
    let setup = Setup::new()
        .server_with("a", server, json!({ "tools": own }))
        .setting("results", json!({ "form": "as_is", "duplicates": "keep" }))
        .setting("clients", json!({ "small": { "form": "compact" } }));
    let expected = [
        ("other", [&*pretty, &*pretty, short]),
        ("small", [short, &*pretty, short]),
    ];
    for (client, forms) in expected {
        let mut session = setup.start();
        session.shake_hands_named(client);
        for (name, form) in ["plain", "whole", "short"].into_iter().zip(forms) {
            let answer = session.execute(&format!("a__{name}"));
            assert_eq!(answer.text(), form, "{client} {name}");
        }
        session.finish();
        // By its own name a tool has a schema of results, so the structured content stays.
        let mut session = setup.start_with(&["serve", "--direct"]);
        session.shake_hands_named(client);
        let list = session.ask("tools/list", "{}").value();
        for (index, (name, form)) in ["plain", "whole", "short"]
            .into_iter()
            .zip(forms)
            .enumerate()
        {
            let answer = session.call(&format!("a__{name}"), "{}");
            assert_eq!(answer.text(), form, "{client} {name}");
            let has_schema = list["tools"][index].get("outputSchema").is_some();
            assert_eq!(has_schema, name != "short", "{list}");
            let is_structured = answer.value().get("structuredContent").is_some();
            assert_eq!(is_structured, has_schema, "{client} {name}: {answer:?}");
        }
        session.finish();
    }
    let setup = setup.setting("results", json!({ "form": "compact" }));
    let mut session = setup.connect();
    assert_eq!(session.execute("a__plain").text(), short);
    assert_eq!(session.execute("a__whole").text(), pretty);
    session.finish();
}

#[test]
fn a_wrong_form_of_a_client_is_reported_and_that_of_a_tool_disables_its_server() {
    let server = || Server::new().tool("t", [result(r#"{"content":[]}"#)]);
    let setup = Setup::new()
        .server("a", server())
        .server_with(
            "b",
            server(),
            json!({ "tools": { "override": { "t": { "form": "small" } } } }),
        )
        .setting("clients", json!({ "x": { "form": 7 } }));
    let doctor = setup.run(&["doctor"]);
    let text = format!("{}{}", doctor.stdout, doctor.stderr);
    assert!(
        text.contains("clients.x.form") || text.contains("`form`"),
        "{text}"
    );
    assert!(text.contains("server-entry"), "{text}");
    assert_eq!(setup.home().starts("b"), 0);
}

#[test]
fn what_was_stored_is_kept_as_long_as_the_user_wants() {
    let setup = shop().setting("results", json!({ "kept_for": "2h" }));
    let mut client = setup.connect();
    let told = select(&mut client, "shop__list", "empty").tool_error();
    let id = stored_id(&told);
    client.finish();
    let mut later = setup.connect();
    let read = later.execute_with(
        "mcpzip__read_result",
        &json!({ "id": id, "select": ".items[1].name" }).to_string(),
    );
    assert_eq!(read.text(), "bread");
    later.finish();
}

#[cfg(unix)]
#[test]
fn after_a_kill_what_was_stored_is_readable_or_absent_and_counts_are_whole() {
    let long = json!({ "content": [{ "type": "text", "text": "some words ".repeat(30_000) }] })
        .to_string();
    let setup = Setup::new()
        .server("a", Server::new().tool("long", [result(&long)]))
        .setting("results", json!({ "kept_for": "1h" }));
    for round in 0..4 {
        let mut client = setup.connect();
        let told = client.execute("a__long").text();
        let id = stored_id(&told);
        for _ in 0..round {
            client.begin_execute("a__long");
        }
        // Counts are written when somebody wants to see them.
        client.begin("execute_tool", r#"{"name":"mcpzip__stats"}"#);
        std::thread::sleep(Duration::from_millis(40 * round));
        client.signal(rustix::process::Signal::KILL);
        client.wait();
        let mut next = setup.connect();
        let read = next.execute_with(
            "mcpzip__read_result",
            &json!({ "id": id, "limit": 10 }).to_string(),
        );
        assert!(
            read.text().starts_with("some words"),
            "an id that was told is readable"
        );
        next.finish();
    }
    for file in std::fs::read_dir(setup.home().path("state/results/common"))
        .unwrap()
        .flatten()
    {
        let path = file.path();
        if path.extension().is_some_and(|end| end == "json") {
            assert_eq!(
                std::fs::read_to_string(&path).unwrap(),
                long,
                "{}",
                path.display()
            );
        }
    }
    setup.run(&["stats", "--json"]).code(0).json();
    let days = std::fs::read_dir(setup.home().path("state/statistics"))
        .unwrap()
        .flatten();
    let names: Vec<String> = days
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        names.iter().all(|name| !name.ends_with(".damaged")),
        "{names:?}"
    );
}

#[test]
fn a_budget_holds_by_default_and_for_what_clients_show() {
    let data = json!({ "items": (0..9_000).map(|id| json!({ "id": id, "name": "milk" })).collect::<Vec<_>>() });
    let long =
        json!({ "content": [{ "type": "text", "text": "9000 items" }], "structuredContent": data })
            .to_string();
    let mut client = Setup::new()
        .server("a", Server::new().tool("long", [result(&long)]))
        .start();
    client.shake_hands_named("claude-code");
    let told = client.execute("a__long");
    assert!(
        !told.result().contains("structuredContent"),
        "a client would show it in place of the text"
    );
    let told = told.text();
    assert!(told.starts_with("9000 items\n{\"items\":[{"), "{told:.300}");
    assert!(
        told.contains("{items: array[9000] of {id: 0, name: \"milk\"}}"),
        "{told}"
    );
    let id = stored_id(&told);
    let read = client.execute_with(
        "mcpzip__read_result",
        &json!({ "id": id, "select": ".items[8999].id" }).to_string(),
    );
    assert_eq!(read.text(), "8999");
    client.finish();
}

#[test]
fn gain_counts_what_was_saved_and_what_was_paid() {
    let setup = shop();
    let mut client = setup.connect();
    client.ask("tools/list", "{}");
    client.ask("tools/list", "{}");
    client.search("buy something");
    client.call("describe_tool", r#"{"name":"shop__list"}"#);
    select(&mut client, "shop__list", ".items[].name");
    client.execute("shop__talk");
    client.finish();
    let with_agents = setup.run(&["gain", "--json"]).code(0).json();
    let _ = setup.run(&["call", "shop__talk", "{}"]).code(0);
    let gain = setup.run(&["gain", "--json"]).code(0).json();
    assert_eq!(
        (&gain["sum"], &gain["calls_by_hand"]),
        (&with_agents["sum"], &json!(1)),
        "a call by hand is in no sum"
    );
    assert_eq!(
        (&gain["tokenizer"], &gain["clients"]),
        (&json!("o200k_base"), &json!(1))
    );
    let sum = &gain["sum"];
    for paid in ["own", "searches", "descriptions", "wrapping"] {
        assert!(sum[paid].as_i64().unwrap() > 0, "{paid}: {sum}");
    }
    assert!(sum["definitions"].as_i64().unwrap() > 50, "{sum}");
    let part = |keys: &[&str]| {
        keys.iter()
            .map(|key| sum[*key].as_i64().unwrap())
            .sum::<i64>()
    };
    let net = part(&["definitions", "projected", "stored"])
        - part(&["own", "searches", "descriptions", "parts", "wrapping"]);
    assert_eq!(sum["net"], net);
    let shop = &gain["servers"][0];
    assert_eq!(
        (&shop["server"], &shop["clients"]),
        (&json!("shop"), &json!(1))
    );
    let tool = |name: &str| {
        let mut tools = shop["tools"].as_array().unwrap().iter();
        tools.find(|tool| tool["tool"] == name).unwrap().clone()
    };
    assert_eq!(tool("talk")["calls"], 1);
    let list = tool("list");
    assert_eq!(
        (&list["calls"], &list["projected"], &list["whole"]),
        (&json!(1), &json!(1), &json!(0))
    );
    let mut client = setup.connect();
    let failed = client.call(
        "execute_tool",
        r#"{"name":"shop__list","select":".items | nosuch"}"#,
    );
    failed.tool_error();
    client.finish();
    let after = setup.run(&["gain", "--json"]).code(0).json();
    assert_eq!(
        after["sum"]["projected"], sum["projected"],
        "a filter that failed saves nothing"
    );
    assert_eq!(
        setup
            .run(&["gain", "--json", "--since", "2099-01-01"])
            .code(0)
            .json()["clients"],
        0
    );
    assert!(
        setup
            .run(&["gain", "--since", "soon"])
            .code(2)
            .stderr
            .contains("7d")
    );
}

#[test]
fn session_logs_are_read_and_left_as_they_are() {
    let setup = Setup::new();
    let logs = setup.home().path("home/.claude/projects/-work-shop");
    std::fs::create_dir_all(&logs).unwrap();
    let used = r#"{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"mcp__shop__list","input":{"a":1}}]}}"#;
    let came = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"[1, 2, 3]"}]}}"#;
    let log = format!("{used}\n{came}\nnot JSON\n");
    std::fs::write(logs.join("s.jsonl"), &log).unwrap();
    let found = setup.run(&["gain", "--discover", "--json"]).code(0).json();
    assert_eq!(
        (&found["calls"], &found["sessions"], &found["logs"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(found["tools"][0]["tool"], "shop__list");
    assert!(found["tokens"].as_u64().unwrap() >= 5, "{found}");
    assert_eq!(std::fs::read_to_string(logs.join("s.jsonl")).unwrap(), log);
    let elsewhere = setup.variable("CLAUDE_CONFIG_DIR", "/no/such/place");
    assert!(
        elsewhere
            .run(&["gain", "--discover"])
            .code(1)
            .stderr
            .contains("/no/such/place")
    );
}
