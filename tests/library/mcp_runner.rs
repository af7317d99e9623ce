//! The examples in the README of mcp-runner, as they are written with this library (`docs/library.md` compares the two).

use mcpzip::{ErrorKind, HttpOptions, Runner, Server, State};
use serde_json::{Value, json};

use crate::support::{fake_server, get, scripted, tool};

/// Its configuration, with scripted servers in place of those that it downloads.
fn configuration(home: &std::path::Path) -> Value {
    let entry = |name: &str| {
        let script = json!({
            "tools": [tool(name, "Fetches a URL")],
            "calls": { name: ["echo"] },
            "resources": [{ "uri": "file:///notes", "name": "notes" }],
        });
        scripted(home, name, &script);
        let file = |ending: &str| home.join(format!("{name}.{ending}"));
        json!({ "command": fake_server(), "args": [file("json"), file("log")] })
    };
    json!({
        "mcpServers": { "fetch": entry("fetch"), "filesystem": entry("filesystem") },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn its_quick_start_works() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config.json");
    std::fs::write(&path, configuration(home.path()).to_string()).unwrap();
    let runner = Runner::builder().config_file(&path).build().await.unwrap();
    for (server, outcome) in runner.start_all().await {
        outcome.unwrap_or_else(|error| panic!("{server}: {error}"));
    }
    let client = runner.client("fetch").unwrap();
    let tools = client.list_tools().await.unwrap();
    let shown: Vec<_> = tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool.description.as_str()))
        .collect();
    assert_eq!(shown, [("fetch", "Fetches a URL")]);
    let url = "https://modelcontextprotocol.io";
    let result: Value = client.call("fetch", &json!({ "url": url })).await.unwrap();
    assert_eq!(result["arguments"]["url"], url);
    let resources = client.list_resources().await.unwrap();
    assert_eq!(resources[0].uri, "file:///notes");
    assert!(runner.stop("fetch").await.unwrap());
    let states: Vec<_> = runner
        .statuses()
        .into_iter()
        .map(|it| (it.server, it.state))
        .collect();
    assert_eq!(
        states,
        [
            ("fetch".to_owned(), State::Idle),
            ("filesystem".to_owned(), State::Ready)
        ]
    );
}

#[tokio::test]
async fn its_three_ways_to_a_configuration_are_there() {
    let home = tempfile::tempdir().unwrap();
    let json = configuration(home.path()).to_string();
    let path = home.path().join("config.json");
    std::fs::write(&path, &json).unwrap();
    let of_file = Runner::builder().config_file(path).build().await.unwrap();
    let of_text = Runner::builder().config_str(json).build().await.unwrap();
    assert_eq!(of_file.servers(), of_text.servers());
    let by_hand = Server::stdio("uvx").args(["mcp-server-fetch"]);
    let by_hand = Runner::builder()
        .server("fetch", by_hand)
        .build()
        .await
        .unwrap();
    assert_eq!(by_hand.servers(), ["fetch"]);
}

#[tokio::test]
async fn its_section_for_the_proxy_is_refused_because_it_protects_something() {
    let proxy = json!({ "authenticate": { "bearer": { "token": "your-secure-token" } } });
    let text = json!({ "mcpServers": {}, "sseProxy": proxy }).to_string();
    let error = Runner::builder()
        .config_str(text)
        .build()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("sseProxy"), "{error}");
}

#[tokio::test]
async fn its_errors_have_kinds() {
    let runner = Runner::builder().build().await.unwrap();
    let shown = match runner.client("nowhere") {
        Ok(_) => "success",
        Err(error) if error.kind() == ErrorKind::UnknownServer => "server not found",
        Err(error) if error.kind() == ErrorKind::Unavailable => "communication error",
        Err(_) => "other error",
    };
    assert_eq!(shown, "server not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_proxy_is_served_with_its_settings() {
    let home = tempfile::tempdir().unwrap();
    let configuration = configuration(home.path());
    let runner = Runner::builder()
        .config_str(configuration.to_string())
        .build()
        .await
        .unwrap();
    let (host, token) = ("127.0.0.1", "your-secure-token");
    // Its port is fixed; a test takes a free one.
    let page = "https://app.example.com";
    let options = HttpOptions::new(host, 0).token(token).origin(page);
    let server = runner.serve_http(options).await.unwrap();
    let refused = get(format!("http://{}/sse", server.address())).await;
    assert_eq!(refused.status().as_u16(), 401);
    let asked = reqwest::Client::new()
        .request(reqwest::Method::OPTIONS, server.url())
        .header("Origin", page)
        .header("Access-Control-Request-Method", "POST")
        .send();
    let permitted = asked.await.unwrap();
    assert_eq!(permitted.headers()["access-control-allow-origin"], page);
    let sse = Server::http(format!("http://{}/sse", server.address()))
        .setting("type", "sse")
        .header("Authorization", format!("Bearer {token}"));
    let client = Runner::builder()
        .server("proxy", sse)
        .build()
        .await
        .unwrap();
    let arguments =
        json!({ "name": "fetch__fetch", "arguments": { "url": "https://example.com" } });
    let call = client.client("proxy").unwrap();
    let answer = call.call_raw("execute_tool", &arguments).await.unwrap();
    assert!(
        answer
            .into_value()
            .to_string()
            .contains("https://example.com")
    );
}
