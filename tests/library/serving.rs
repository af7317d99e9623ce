//! Servers of a runner, served on as one.

use mcpzip::{ErrorKind, HttpOptions, Runner, Server};
use serde_json::json;

use crate::support::one_tool;

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_serves_its_servers_to_another_one_over_http() {
    let home = tempfile::tempdir().unwrap();
    let inner = Runner::builder()
        .server(
            "notes",
            one_tool(home.path(), "create_note", &json!(["echo"])),
        )
        .build()
        .await
        .unwrap();
    let options = HttpOptions::new("127.0.0.1", 0).token("word-of-the-test");
    let server = inner.serve_http(options).await.unwrap();
    let remote = Server::http(server.url());
    let build = async |remote: Server| {
        Runner::builder()
            .server("all", remote)
            .build()
            .await
            .unwrap()
    };
    let stranger = build(remote.clone()).await;
    assert!(stranger.start("all").await.is_err(), "it needs no token");
    let outer = build(remote.header("Authorization", "Bearer word-of-the-test")).await;
    let client = outer.client("all").unwrap();
    let tools = client.list_tools().await.unwrap();
    assert!(
        tools.iter().any(|tool| tool.name == "execute_tool"),
        "{tools:?}"
    );
    let arguments = json!({ "name": "notes__create_note", "arguments": { "title": "milk" } });
    let answer = client.call_raw("execute_tool", &arguments).await.unwrap();
    assert!(answer.into_value().to_string().contains("milk"));
    let address = server.address();
    server.shutdown().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    assert!(
        inner.execute("notes__create_note", json!({})).await.is_ok(),
        "the runner goes on"
    );
}

#[tokio::test]
async fn an_address_for_other_machines_needs_a_token() {
    let runner = Runner::builder().build().await.unwrap();
    let open = runner
        .serve_http(HttpOptions::new("0.0.0.0", 0))
        .await
        .unwrap_err();
    assert_eq!(open.kind(), ErrorKind::Io);
    let wrong = HttpOptions::new("127.0.0.1", 0).origin("not an origin");
    assert_eq!(
        runner.serve_http(wrong).await.unwrap_err().kind(),
        ErrorKind::Io
    );
    let server = runner
        .serve_http(HttpOptions::new("127.0.0.1", 0))
        .await
        .unwrap();
    let address = server.address();
    drop(server);
    crate::support::until("it outlives its handle", || {
        std::net::TcpStream::connect(address).is_err()
    })
    .await;
}
