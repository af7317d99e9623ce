//! Search, calls, prompts and resources.

use std::time::Duration;

use mcpzip::{ErrorKind, Runner, Server};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{log, one_tool, scripted, tool, until};

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Sum {
    a: i64,
    b: i64,
}

fn echoing() -> Value {
    json!({ "tools": [tool("add", "Adds two numbers")], "calls": { "add": ["echo"] } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_found_described_and_called_with_types() {
    let home = tempfile::tempdir().unwrap();
    let server = scripted(home.path(), "math", &echoing());
    let runner = Runner::builder()
        .server("math", server)
        .build()
        .await
        .unwrap();
    let found = runner.search("add two numbers", 3).await.unwrap().found;
    assert_eq!(found[0].name, "math__add", "{found:?}");
    let described = runner.describe("math__add").await.unwrap();
    assert_eq!(described.qualified_name(), "math__add");
    assert_eq!(described.input_schema, json!({ "type": "object" }));
    let shown = json!({ "name": "add", "description": "Adds two numbers", "inputSchema": { "type": "object" } });
    assert_eq!(serde_json::to_value(&described).unwrap(), shown);
    let client = runner.client("math").unwrap();
    let tools = client.list_tools().await.unwrap();
    assert_eq!(tools, [described]);
    let sum = Sum { a: 1, b: 2 };
    let answer: Value = client.call("add", &sum).await.unwrap();
    assert_eq!(answer["arguments"], json!({ "a": 1, "b": 2 }), "{answer}");
    runner.shutdown().await;
}

#[tokio::test]
async fn a_filter_selects_from_a_result_in_this_process() {
    let home = tempfile::tempdir().unwrap();
    let server = scripted(home.path(), "math", &echoing());
    let runner = Runner::builder()
        .server("math", server)
        .build()
        .await
        .unwrap();
    let call = runner.execute("math__add", json!({ "a": 5 }));
    let selected = call.select(".arguments.a + 1").await.unwrap();
    assert_eq!(selected.text(), "6");
    assert_eq!(selected.parse::<i64>().unwrap(), 6);
    let wrong = runner
        .execute("math__add", json!({}))
        .select(".[")
        .await
        .unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Filter, "{wrong}");
}

#[tokio::test]
async fn errors_have_a_kind_for_what_a_program_does_about_them() {
    let kind = async |builder: mcpzip::Builder| builder.build().await.unwrap_err().kind();
    let text = |text: &str| Runner::builder().config_str(text);
    assert_eq!(kind(text("{")).await, ErrorKind::Config);
    assert_eq!(
        kind(text(r#"{"mcpServers":{"x":{}}}"#)).await,
        ErrorKind::Config
    );
    assert_eq!(
        kind(Runner::builder().config_file("/no/file")).await,
        ErrorKind::Config
    );
    let pinned = Server::stdio("x").setting("trust", "pin");
    assert_eq!(
        kind(Runner::builder().server("x", pinned)).await,
        ErrorKind::Config
    );

    for (name, server, word) in [
        (
            "x",
            Server::stdio("x").setting("nonsense", 1),
            "unknown key",
        ),
        ("x", Server::stdio("x").header("A", "b"), "no meaning"),
        ("a b", Server::stdio("x"), "a b"),
        ("x", Server::stdio(""), "server `x`: `command` is empty"),
    ] {
        let error = Runner::builder().server(name, server).build().await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(
            error.to_string().contains(word) && !error.to_string().contains("1:"),
            "{error}"
        );
    }

    let home = tempfile::tempdir().unwrap();
    let failing = json!([{ "result": { "isError": true, "content": [{ "type": "text", "text": "no such city" }] } }]);
    let refusing = json!([{ "error": { "code": -32000, "message": "overloaded" } }]);
    let strict =
        json!({ "name": "strict", "inputSchema": { "type": "object", "required": ["city"] } });
    let script = json!({ "tools": [tool("fail", "f"), tool("refuse", "r"), tool("slow", "s"), tool("denied", "d"), strict],
        "calls": { "fail": failing, "refuse": refusing, "slow": ["hang"] } });
    let runner = text(r#"{ "tools": { "deny": ["x__denied"] } }"#)
        .server("x", scripted(home.path(), "x", &script))
        .server("gone", Server::stdio("/no/such/program"))
        .build()
        .await
        .unwrap();
    let call = async |name: &str| {
        let call = runner
            .execute(name, json!({}))
            .timeout(Duration::from_millis(1500));
        call.await.unwrap_err()
    };
    for (name, expected) in [
        ("x__refuse", ErrorKind::Server),
        ("x__slow", ErrorKind::Timeout),
        ("x__strict", ErrorKind::Arguments),
        ("x__denied", ErrorKind::Denied),
        ("x__nothing", ErrorKind::UnknownTool),
        ("gone__tool", ErrorKind::Unavailable),
    ] {
        let error = call(name).await;
        assert_eq!(error.kind(), expected, "{name}: {error}");
    }
    let client = runner.client("x").unwrap();
    let failed = client
        .call::<_, Value>("fail", &json!({}))
        .await
        .unwrap_err();
    assert_eq!(
        (failed.kind(), failed.to_string()),
        (ErrorKind::Tool, "no such city".to_owned())
    );
    assert!(
        client
            .call_raw("fail", &json!({}))
            .await
            .unwrap()
            .is_error()
    );
    assert_eq!(
        runner.client("nowhere").unwrap_err().kind(),
        ErrorKind::UnknownServer
    );
    drop(runner);
    assert_eq!(
        client.list_tools().await.unwrap_err().kind(),
        ErrorKind::Ended
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_call_is_cancelled_at_its_server_and_others_go_on() {
    let home = tempfile::tempdir().unwrap();
    let script = json!({ "tools": [tool("slow", "s"), tool("add", "a")],
        "calls": { "slow": ["await_cancel", { "note": "the call was cancelled" }], "add": ["echo"] } });
    let server = scripted(home.path(), "x", &script);
    let runner = Runner::builder().server("x", server).build().await.unwrap();
    let client = runner.client("x").unwrap();
    runner.start("x").await.unwrap();
    let slow = tokio::spawn({
        let client = client.clone();
        async move { client.call_raw("slow", &json!({})).await }
    });
    until("the call arrives", || {
        log(home.path(), "x").contains(r#""slow""#)
    })
    .await;
    let more = (0..10).map(|a| client.clone().call_owned(a));
    let answers = futures_util::future::join_all(more).await;
    assert_eq!(answers, (0..10).collect::<Vec<_>>());
    slow.abort();
    until("the server reads of it", || {
        log(home.path(), "x").contains("the call was cancelled")
    })
    .await;
}

trait CallOwned {
    async fn call_owned(self, a: i64) -> i64;
}

impl CallOwned for mcpzip::Client {
    async fn call_owned(self, a: i64) -> i64 {
        let answer: Value = self.call("add", &json!({ "a": a })).await.unwrap();
        answer["arguments"]["a"].as_i64().unwrap()
    }
}

#[tokio::test]
async fn prompts_resources_and_completions_are_those_of_the_one_server() {
    let home = tempfile::tempdir().unwrap();
    let script = |own: &str| {
        json!({
            "prompts": [{ "name": "greet", "description": own }],
            "resources": [{ "uri": "notes://today", "name": own }],
            "templates": [{ "uriTemplate": "notes://{day}", "name": "day" }],
            "capabilities": { "prompts": {}, "resources": {}, "completions": {} },
            "gets": { "greet": [{ "result": { "messages": [], "description": own } }] },
            "reads": { "notes://today": [{ "result": { "contents": [{ "uri": "notes://today", "text": own }] } }] },
            "methods": { "completion/complete": [{ "result": { "completion": { "values": [own] } } }] },
        })
    };
    let builder = ["one", "two"]
        .into_iter()
        .fold(Runner::builder(), |builder, name| {
            builder.server(name, scripted(home.path(), name, &script(name)))
        });
    let runner = builder.build().await.unwrap();
    for name in ["one", "two"] {
        let client = runner.client(name).unwrap();
        let prompts = client.list_prompts().await.unwrap();
        assert_eq!(prompts[0].description.as_deref(), Some(name));
        let prompt = client.get_prompt("greet", &json!({})).await.unwrap();
        assert_eq!(prompt["description"], name);
        assert_eq!(client.list_resources().await.unwrap()[0].name, name);
        let templates = client.list_resource_templates().await.unwrap();
        assert_eq!(templates[0].uri, "notes://{day}");
        let read = client.read_resource("notes://today").await.unwrap();
        assert_eq!(read["contents"][0]["text"], name, "{read}");
        let values = client.complete_prompt("greet", "who", "").await.unwrap();
        assert_eq!(values, [name]);
    }
}

#[tokio::test]
async fn a_result_is_text_where_there_is_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let steps = json!([{ "result": { "content": [{ "type": "text", "text": "12:30" }] } }]);
    let server = one_tool(home.path(), "now", &steps);
    let runner = Runner::builder()
        .server("time", server)
        .build()
        .await
        .unwrap();
    let client = runner.client("time").unwrap();
    let time: String = client.call("now", &json!({})).await.unwrap();
    assert_eq!(time, "12:30");
    let wrong = client.call::<_, Sum>("now", &json!({})).await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Answer);
    assert!(std::error::Error::source(&wrong).is_some());
    let nothing = mcpzip::ToolResult::of(&()).unwrap();
    nothing.parse::<()>().unwrap();
    assert_eq!(nothing.parse::<Option<Sum>>().unwrap(), None);
    assert_eq!(nothing.parse::<String>().unwrap(), "");
    assert!(nothing.parse::<Sum>().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_does_not_wait_for_a_server_that_hangs_and_names_it() {
    let home = tempfile::tempdir().unwrap();
    let hanging = json!({ "methods": { "initialize": ["hang"] } });
    let runner = Runner::builder()
        .server("math", scripted(home.path(), "math", &echoing()))
        .server("slow", scripted(home.path(), "slow", &hanging));
    let runner = runner.build().await.unwrap();
    let begin = std::time::Instant::now();
    let search = runner.search("add two numbers", 3).await.unwrap();
    assert!(
        begin.elapsed() < Duration::from_secs(15),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(search.found[0].name, "math__add", "{search:?}");
    let [missing] = &search.not_searched[..] else {
        panic!("{search:?}")
    };
    assert!(missing.starts_with("slow (still being listed"), "{missing}");
}
