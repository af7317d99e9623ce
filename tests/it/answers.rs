//! Parts of results, stored results and several calls at once.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::script::{answer, result, sleep};
use crate::support::{Client, Server, Setup};

const ITEMS: &str = r#"{"content":[{"type":"text","text":"see data"},{"type":"image","data":"aW1n","mimeType":"image/png"}],"structuredContent":{"total":18446744073709551617,"items":[{"id":1,"name":"milk"},{"id":2,"name":"bread"}]}}"#;

fn shop() -> Setup {
    let failed = r#"{"content":[{"type":"text","text":"[\"sold out\"]"}],"isError":true}"#;
    let fenced = r#"{"content":[{"type":"text","text":"Here you are:\n```json\n{\"price\": 3}\n```"}]}"#;
    Setup::new().server(
        "shop",
        Server::new()
            .tool("list", [result(ITEMS)])
            .tool("buy", [result(failed)])
            .tool("price", [result(fenced)])
            .tool("talk", [answer("just words")])
            .tool("slow", [sleep(300), answer("slow")]),
    )
}

fn select(client: &mut Client, tool: &str, filter: &str) -> crate::support::Message {
    client.call("execute_tool", &json!({ "name": tool, "select": filter }).to_string())
}

#[test]
fn a_filter_leaves_the_part_that_was_asked_for() {
    let mut client = shop().connect();
    let chosen = select(&mut client, "shop__list", ".items[].name");
    assert_eq!(chosen.text().lines().collect::<Vec<_>>(), ["milk", "bread"]);
    assert!(!chosen.result().contains("structuredContent"), "clients would show it in place of the text");
    assert!(chosen.result().contains(r#"{"type":"image","data":"aW1n","mimeType":"image/png"}"#), "the image is gone");
    assert_eq!(select(&mut client, "shop__list", ".total").text(), "18446744073709551617");
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
    for (filter, error) in [(".items[", "no jq"), (".items.x", "failed"), ("empty", "nothing"), ("nosuch", "nosuch")] {
        let told = select(&mut client, "shop__list", filter).tool_error();
        assert!(told.contains(error), "{filter}: {told}");
        assert!(told.contains("{total: 18446744073709551617, items: array[2] of {id: 1, name: \"milk\"}}"), "{told}");
        let id = told.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap();
        let read =
            client.execute_with("mcpzip__read_result", &json!({ "id": id, "select": ".items | length" }).to_string());
        assert_eq!(read.text(), "2");
    }
    assert_eq!(setup.home().count("shop", "tools/call"), 4);
    client.finish();
}

#[test]
fn a_filter_never_hides_an_error_and_text_is_no_data() {
    let mut client = shop().connect();
    assert_eq!(select(&mut client, "shop__buy", "empty").tool_error(), "[\"sold out\"]");
    let told = select(&mut client, "shop__talk", ".x").tool_error();
    assert!(told.contains("not JSON") && told.contains("just words"), "{told}");
    client.finish();
}

#[test]
fn a_filter_that_never_ends_costs_an_error_within_two_seconds_and_nobody_else() {
    let mut client = shop().connect();
    client.execute("shop__talk");
    let start = Instant::now();
    let filters = ["def f: f; f", "[range(1e12)] | length", "[limit(1e9; repeat(\"x\" * 1000))] | length"];
    let ids: Vec<u64> = filters
        .iter()
        .map(|filter| client.begin("execute_tool", &json!({ "name": "shop__list", "select": filter }).to_string()))
        .collect();
    assert_eq!(client.execute("shop__talk").text(), "just words");
    assert!(start.elapsed() < Duration::from_secs(1), "a call beside it took {:?}", start.elapsed());
    for id in ids {
        let told = client.answer(id).tool_error();
        assert!(told.contains("ended after") || told.contains("memory") || told.contains("more than"), "{told}");
    }
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    client.finish();
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
    let lines: Vec<String> = (0..5000).map(|number| format!("line {number} of many")).collect();
    let text = lines.join("\n");
    let long = json!({ "content": [{ "type": "text", "text": text }] }).to_string();
    let server = Server::new().tool("long", [result(&long)]);
    let mut client = Setup::new().server("a", server).setting("results", json!({ "budget": 10_000 })).connect();
    let head = client.execute("a__long");
    let told = head.text();
    assert!(told.starts_with("line 0 of many\n"), "{told}");
    assert!(told.contains(&format!("of {} characters", text.len())), "{told}");
    assert!(told.len() < 6000, "{} characters", told.len());
    let id = told.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let mut read = |arguments: serde_json::Value| {
        let mut arguments = arguments;
        arguments["id"] = json!(id);
        client.execute_with("mcpzip__read_result", &arguments.to_string()).text()
    };
    assert!(read(json!({ "offset": 15, "limit": 14 })).starts_with("line 1 of many"));
    assert_eq!(read(json!({ "grep": "line 4321 " })), "4322: line 4321 of many");
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
    let mut client = Setup::new().server("a", server).setting("results", json!({ "budget": 0 })).connect();
    assert_eq!(client.execute("a__long").result(), long);
    client.finish();
}

#[test]
fn stored_results_go_with_the_client_that_made_the_call() {
    let setup = shop();
    let mut client = setup.connect();
    let told = select(&mut client, "shop__list", "empty").tool_error();
    let id = told.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let mut other = setup.connect();
    let arguments = json!({ "id": id }).to_string();
    assert!(other.execute_with("mcpzip__read_result", &arguments).tool_error().contains(&id));
    assert!(client.execute_with("mcpzip__read_result", &arguments).text().contains("see data"));
    client.finish();
    other.finish();
}

#[test]
fn several_calls_run_side_by_side_and_answer_in_order() {
    let mut client = shop().connect();
    client.execute("shop__talk");
    let mut calls = vec![json!({ "name": "shop__slow" }); 10];
    calls.push(json!({ "name": "shop__list", "select": ".items[0].name" }));
    calls.push(json!({ "name": "shop__nothing" }));
    calls.push(json!({ "name": "shop__buy" }));
    let start = Instant::now();
    let answered = client.call("execute_tool", &json!({ "calls": calls }).to_string());
    assert!(start.elapsed() < Duration::from_millis(2500), "ten calls of 300 ms took {:?}", start.elapsed());
    let value = answered.value();
    let texts: Vec<&str> =
        value["content"].as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect();
    assert_eq!(texts[..2], ["[1] shop__slow", "slow"]);
    assert_eq!(texts[20..22], ["[11] shop__list", "milk"]);
    assert_eq!(texts[22], "[12] shop__nothing failed");
    assert_eq!(texts[24..], ["[13] shop__buy failed", "[\"sold out\"]"]);
    assert!(value.get("isError").is_none(), "one failure is not the failure of all");
    for wrong in [json!([]), json!("x"), json!([7]), json!(vec![json!({ "name": "shop__talk" }); 33])] {
        let told = client.call("execute_tool", &json!({ "calls": wrong }).to_string()).tool_error();
        assert!(told.contains("1 to 32"), "{told}");
    }
    client.finish();
}
