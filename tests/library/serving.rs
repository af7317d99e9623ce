//! Servers of a runner, served on as one.

use mcpzip::{ErrorKind, HttpOptions, Runner, Server};
use serde_json::json;

use crate::support::{get, one_tool, scripted, tool};

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
    assert_eq!(open.kind(), ErrorKind::Config);
    assert!(open.to_string().contains("HttpOptions::token"), "{open}");
    let wrong = HttpOptions::new("127.0.0.1", 0).origin("not an origin");
    assert_eq!(
        runner.serve_http(wrong).await.unwrap_err().kind(),
        ErrorKind::Config
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

/// A service of the program with its own page and the router of a runner, below `path` if there is one.
async fn mounted(router: axum::Router, path: Option<&str>) -> String {
    let page = axum::routing::get(async || "the page of the program");
    let service = axum::Router::new().route("/", page);
    let service = match path {
        Some(path) => service.nest(path, router),
        None => service.merge(router),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, service).await });
    format!("http://{address}{}", path.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_router_serves_within_a_service_of_the_program() {
    let home = tempfile::tempdir().unwrap();
    let notes = one_tool(home.path(), "create_note", &json!(["echo"]));
    let runner = Runner::builder().server("notes", notes).build().await;
    let runner = runner.unwrap();
    for (path, kind) in [(None, "http"), (None, "sse"), (Some("/tools"), "http")] {
        let options = HttpOptions::new("127.0.0.1", 0).token("word-of-the-test");
        let base = mounted(runner.router(options).await.unwrap(), path).await;
        let page = get(base.replace("/tools", "")).await;
        assert_eq!(page.text().await.unwrap(), "the page of the program");
        let end = if kind == "sse" { "sse" } else { "mcp" };
        let remote = Server::http(format!("{base}/{end}")).setting("type", kind);
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
        let arguments = json!({ "name": "notes__create_note", "arguments": { "title": "milk" } });
        let answer = client.call_raw("execute_tool", &arguments).await.unwrap();
        assert!(answer.into_value().to_string().contains("milk"));
    }
}

#[tokio::test]
async fn a_router_ends_with_its_runner_and_needs_a_token_or_a_word_for_other_machines() {
    let runner = Runner::builder().build().await.unwrap();
    let open = HttpOptions::new("0.0.0.0", 80);
    let refused = runner.router(open.clone()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Config);
    let word = runner.serve_http(open.clone().protected_by_program());
    assert!(word.await.is_err(), "the word is for routers");
    assert!(runner.router(open.protected_by_program()).await.is_ok());
    let router = runner.router(HttpOptions::new("127.0.0.1", 0)).await;
    let base = mounted(router.unwrap(), None).await;
    runner.shutdown().await;
    let after = get(format!("{base}/mcp")).await;
    assert_eq!(after.status().as_u16(), 503);
    let page = get(base).await;
    assert_eq!(page.status().as_u16(), 200, "the service goes on");
}

#[tokio::test]
async fn identities_that_the_library_does_not_check_are_not_served_without() {
    let runner = Runner::builder()
        .config_str(r#"{ "http": { "auth": { "tokens": true } } }"#)
        .build()
        .await
        .unwrap();
    let options = HttpOptions::new("127.0.0.1", 0).token("word-of-the-test");
    let served = runner.serve_http(options.clone()).await.unwrap_err();
    assert_eq!(served.kind(), ErrorKind::Config);
    assert!(served.to_string().contains("http.auth"), "{served}");
    assert!(runner.router(options).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_of_an_agent_is_neither_offered_nor_are_calls_with_one_made() {
    let home = tempfile::tempdir().unwrap();
    let notes = one_tool(home.path(), "create_note", &json!(["echo"]));
    let runner = Runner::builder().server("notes", notes).build().await;
    let runner = runner.unwrap();
    let server = runner.serve_http(HttpOptions::new("127.0.0.1", 0)).await;
    let agent = Runner::builder().server("all", Server::http(server.as_ref().unwrap().url()));
    let agent = agent.build().await.unwrap();
    let tools = agent.client("all").unwrap().list_tools().await.unwrap();
    let tools = serde_json::to_string(&tools).unwrap();
    assert!(
        !tools.contains("select") && !tools.contains("jq"),
        "{tools}"
    );
    let described = runner.describe("mcpzip__read_result").await.unwrap();
    assert!(!format!("{described:?}").contains("jq"), "{described:?}");
    let mut call = json!({ "name": "notes__create_note", "arguments": {}, "select": "." });
    let refused = agent.execute("all__execute_tool", &call).await.unwrap();
    assert!(refused.is_error(), "{}", refused.text());
    assert!(
        refused.text().contains("nothing was called"),
        "{}",
        refused.text()
    );
    let log = || crate::support::log(home.path(), "create_note");
    assert!(!log().contains("tools/call"), "{}", log());
    call.as_object_mut().unwrap().remove("select");
    let done = agent.execute("all__execute_tool", call).await.unwrap();
    assert!(!done.is_error() && log().contains("tools/call"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_own_filter_of_a_tool_is_applied_for_agents_and_the_program() {
    let home = tempfile::tempdir().unwrap();
    let items = json!({ "items": [{ "id": 1 }, { "id": 2 }] });
    let list = json!([{ "result": { "content": [], "structuredContent": items } }]);
    let script = json!({ "tools": [tool("list", "Lists"), tool("odd", "Lists"), tool("loop", "Lists"), tool("flood", "Lists")],
        "calls": { "list": list, "odd": list, "loop": list, "flood": list } });
    let filters = json!({ "override": {
        "list": { "select": ".items[].id" },
        "odd": { "select": ".items.id" },
        "loop": { "select": "last(range(100000000))" },
        "flood": { "select": "range(1000) | \"a\" * 100000" },
    } });
    for surface in ["tools", "direct"] {
        let shop = scripted(home.path(), "shop", &script).setting("tools", filters.clone());
        let runner = Runner::builder()
            .config_str(json!({ "surface": surface }).to_string())
            .server("shop", shop);
        let runner = runner.build().await.unwrap();
        let server = runner.serve_http(HttpOptions::new("127.0.0.1", 0)).await;
        let agent = Runner::builder().server("all", Server::http(server.as_ref().unwrap().url()));
        let agent = agent.build().await.unwrap();
        let called = async |tool: &str| {
            let client = agent.client("all").unwrap();
            let result = match surface {
                "direct" => client.call_raw(&format!("shop__{tool}"), &json!({})).await,
                _ => {
                    let call = json!({ "name": format!("shop__{tool}"), "arguments": {} });
                    client.call_raw("execute_tool", &call).await
                }
            };
            result.unwrap()
        };
        assert_eq!(called("list").await.text(), "1\n2", "{surface}");
        let own = runner.execute("shop__list", json!({})).await.unwrap();
        assert_eq!(own.text(), "1\n2");
        // A filter that fails, or does too much, is not applied; the agent hears so, or gets the whole result.
        for (tool, reason) in [
            ("odd", "the filter failed"),
            ("loop", "the filter was stopped"),
            ("flood", "an output of more than 8 MB"),
        ] {
            let result = called(tool).await;
            match surface {
                "direct" => assert_eq!(result.structured(), Some(&items), "{tool}"),
                _ => assert!(result.text().contains(reason), "{tool}: {}", result.text()),
            }
        }
        assert_eq!(called("list").await.text(), "1\n2", "others go on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_any_depth_do_not_end_a_program_that_filters_them() {
    let home = tempfile::tempdir().unwrap();
    let deep = "[".repeat(300_000) + &"]".repeat(300_000);
    let steps = json!([{ "result": { "content": [{ "type": "text", "text": deep }] } }]);
    let filter = json!({ "override": { "list": { "select": ".[0]" } } });
    let runner = Runner::builder()
        .server("plain", one_tool(home.path(), "read", &steps))
        .server(
            "shop",
            one_tool(home.path(), "list", &steps).setting("tools", filter),
        );
    let runner = runner.build().await.unwrap();
    let own = runner.execute("plain__read", json!({})).select(".[0]");
    let error = own.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Filter);
    assert!(error.to_string().contains("128 levels"), "{error}");
    let whole = runner.execute("shop__list", json!({})).await.unwrap();
    assert_eq!(whole.text().len(), deep.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_over_the_budget_is_cut_or_stored_for_agents() {
    let home = tempfile::tempdir().unwrap();
    let text = "many words ".repeat(30_000);
    let steps = json!([{ "result": { "content": [{ "type": "text", "text": text }] } }]);
    for has_directories in [false, true] {
        let mut builder = Runner::builder()
            .config_str(r#"{ "results": { "budget": 20000 } }"#)
            .server("x", one_tool(home.path(), "read", &steps));
        if has_directories {
            builder = builder.directories(home.path().join("cache"), home.path().join("state"));
        }
        let runner = builder.build().await.unwrap();
        let server = runner.serve_http(HttpOptions::new("127.0.0.1", 0)).await;
        let agent = Runner::builder().server("all", Server::http(server.as_ref().unwrap().url()));
        let agent = agent.build().await.unwrap();
        let call = json!({ "name": "x__read", "arguments": {} });
        let shown = agent
            .execute("all__execute_tool", call)
            .await
            .unwrap()
            .text();
        let length = shown.chars().count();
        assert!(shown.contains("the first of 330000 characters"), "{length}");
        assert!(!shown.contains("jq"), "{length}");
        match has_directories {
            true => assert!(
                shown.contains("mcpzip__read_result") && length < 6_000,
                "{length}"
            ),
            false => {
                assert!(
                    shown
                        .ends_with("The rest is not stored, because there is no directory for it.")
                );
                assert!((15_000..20_200).contains(&length), "{length}");
            }
        }
        let whole = runner.execute("x__read", json!({})).await.unwrap();
        assert_eq!(whole.text().len(), text.len(), "the program gets it whole");
    }
}
