//! Mistakes of the program, and servers that are gone: errors with the right kind, and no panic.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use mcpzip::{
    BoxFuture, Embedder, Error, ErrorKind, HttpOptions, Runner, Server, Streams, Tool, Tools,
    Transport,
};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf};

use crate::support::{one_tool, scripted, tool};

#[tokio::test]
async fn a_setting_of_another_form_is_an_error_and_no_panic() {
    let stdio = || Server::stdio("x");
    let http = || Server::http("http://127.0.0.1:1/mcp");
    for server in [
        stdio().setting("env", "A=B").env("A", "B"),
        stdio().setting("env", json!(["A"])).env("A", "B"),
        http().setting("headers", 5).header("A", "B"),
    ] {
        let built = Runner::builder().server("x", server).build().await;
        assert_eq!(built.unwrap_err().kind(), ErrorKind::Config);
    }
    let none = stdio().setting("env", Value::Null).env("A", "B");
    assert!(Runner::builder().server("x", none).build().await.is_ok());
}

/// A model whose dimensions are `first`, and one more each time; without a `first`, it panics.
struct Growing {
    first: Option<usize>,
    asked: AtomicUsize,
}

impl Embedder for Growing {
    fn model(&self) -> String {
        "growing-1".to_owned()
    }

    fn dimensions(&self) -> usize {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        self.first.expect("on purpose").wrapping_add(asked)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        Ok(texts.iter().map(|_| vec![1.0; 16]).collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_usable_dimensions_is_an_error_of_the_builder() {
    let with = |first| {
        let asked = AtomicUsize::new(0);
        Runner::builder().embedder(Growing { first, asked })
    };
    for first in [None, Some(0), Some(1_000_000), Some(usize::MAX)] {
        let built = with(first).build().await;
        assert_eq!(built.unwrap_err().kind(), ErrorKind::Config, "{first:?}");
    }
    let sing = Tool::new("sing", "Sings a song", json!({ "type": "object" }));
    let tools = Tools::new().tool(sing, async |_: Value| Ok::<_, String>("la"));
    let growing = with(Some(16)).server("choir", Server::inside(tools));
    let runner = growing.build().await.unwrap();
    for _ in 0..5 {
        let found = runner.search("a song", 1).await.unwrap().found;
        assert_eq!(found[0].name, "choir__sing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_token_that_protects_nothing_is_refused() {
    let runner = Runner::builder().build().await.unwrap();
    for token in ["", " ", "two words", "line\nend", "gedöns"] {
        let options = HttpOptions::new("0.0.0.0", 0).token(token);
        let served = runner.serve_http(options.clone()).await.map(|_| ());
        let mounted = runner.router(options).await.map(|_| ());
        for outcome in [served, mounted] {
            let error = outcome.expect_err(token);
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains("HttpOptions::token"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_filter_reads_no_variable_and_does_not_end_the_program() {
    let echo = Tool::new("echo", "Echoes", json!({ "type": "object" }));
    let tools = Tools::new().tool(echo, async |any: Value| Ok::<_, String>(any));
    let runner = Runner::builder().server("x", Server::inside(tools));
    let runner = runner.build().await.unwrap();
    assert!(std::env::vars().next().is_some());
    let selected = async |filter: &str| {
        let call = runner.execute("x__echo", json!({ "a": 1 })).select(filter);
        call.await.map(|result| result.text())
    };
    assert_eq!(selected("env").await.unwrap(), "{}");
    for filter in ["halt", "halt_error", "halt(3)"] {
        let error = selected(filter).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Filter);
        assert!(!error.to_string().contains("panicked"), "{filter}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_unavailable_for_every_request() {
    let home = tempfile::tempdir().unwrap();
    let script = json!({ "tools": [tool("add", "Adds")], "calls": { "add": ["echo"] }, "prompts": [{ "name": "greet" }],
        "gets": { "greet": [{ "result": { "messages": [] } }] }, "capabilities": { "tools": {}, "prompts": {}, "completions": {} },
        "methods": { "completion/complete": [{ "result": { "completion": { "values": "none" } } }] } });
    let runner = Runner::builder()
        .server("x", scripted(home.path(), "x", &script))
        .build()
        .await
        .unwrap();
    let client = runner.client("x").unwrap();
    client.get_prompt("greet", &json!({})).await.unwrap();
    let unknown = client.get_prompt("nothing", &json!({})).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Arguments, "{unknown}");
    let odd = client
        .complete_prompt("greet", "who", "")
        .await
        .unwrap_err();
    assert_eq!(odd.kind(), ErrorKind::Answer, "{odd}");

    // It is known, and does not start any more.
    runner.stop("x").await.unwrap();
    std::fs::remove_file(home.path().join("x.json")).unwrap();
    let called = runner.execute("x__add", json!({})).await.unwrap_err();
    let prompt = client.get_prompt("greet", &json!({})).await.unwrap_err();
    for error in [called, prompt] {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(std::error::Error::source(&error).is_some() || error.to_string().contains("ended"));
    }
}

#[tokio::test]
async fn errors_of_calls_give_no_advice_to_agents() {
    let home = tempfile::tempdir().unwrap();
    let rules = r#"{ "tools": { "deny": ["x__denied"], "ask": ["x__asked"] } }"#;
    let tools = ["slow", "denied", "asked"].map(|name| tool(name, "A tool"));
    let script = json!({ "tools": tools, "calls": { "slow": ["hang"] } });
    let runner = Runner::builder()
        .config_str(rules)
        .server("x", scripted(home.path(), "x", &script))
        .server("gone", Server::stdio("/no/such/program"))
        .server("die", one_tool(home.path(), "die", &json!([{ "exit": 1 }])))
        .build()
        .await
        .unwrap();
    for name in [
        "x__slow",
        "x__denied",
        "x__asked",
        "x__qzv",
        "gone__tool",
        "die__die",
        "nowhere__tool",
    ] {
        let call = runner.execute(name, json!({}));
        let error = call.timeout(Duration::from_millis(500)).await.unwrap_err();
        let text = error.to_string();
        for advice in [
            "Next:",
            "tell the user",
            "search_tools",
            "execute_tool",
            "use another tool",
            "call again",
            "`timeout` (seconds)",
        ] {
            assert!(!text.contains(advice), "{name}: {text}");
        }
    }
}

/// A value whose drop panics.
struct Explosive;

impl Drop for Explosive {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

/// Waits for ever with an [`Explosive`].
async fn explosive<T>() -> T {
    let _explosive = Explosive;
    std::future::pending().await
}

/// A transport that is [`explosive`].
struct Mined;

impl Transport for Mined {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, Error>> {
        Box::pin(explosive())
    }
}

#[tokio::test]
async fn a_panic_in_the_drop_of_a_future_ends_with_it() {
    let mine = Tool::new("mine", "Waits", json!({ "type": "object" }));
    let tools = Tools::new().tool(mine, async |_: Value| {
        explosive::<Result<(), String>>().await
    });
    let runner = Runner::builder()
        .server("inside", Server::inside(tools))
        .server("over", Server::over(Mined))
        .build()
        .await
        .unwrap();
    let limit = Duration::from_millis(100);
    for _ in 0..2 {
        let call = runner.execute("inside__mine", json!({})).timeout(limit);
        assert_eq!(call.await.unwrap_err().kind(), ErrorKind::Timeout);
        let dropped = runner.execute("inside__mine", json!({}));
        assert!(tokio::time::timeout(limit, dropped).await.is_err());
        let (started, stopped) = tokio::join!(runner.start("over"), async {
            tokio::time::sleep(limit).await;
            runner.stop("over").await
        });
        assert!(stopped.unwrap());
        assert_eq!(started.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    runner.shutdown().await;
}

#[test]
fn a_runtime_without_timers_is_an_error_and_nothing_waits() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let built = runtime.unwrap().block_on(Runner::builder().build());
    assert_eq!(built.unwrap_err().kind(), ErrorKind::Config);
}

/// An input that has as many blank lines as are wanted, at once.
struct Blank;

impl AsyncRead for Blank {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        buffer.put_slice(&vec![b'\n'; buffer.remaining()]);
        Poll::Ready(Ok(()))
    }
}

/// A transport with [`Blank`].
struct Flooded;

impl Transport for Flooded {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, Error>> {
        Box::pin(async { Ok(Streams::new(Blank, tokio::io::sink())) })
    }
}

#[tokio::test]
async fn a_transport_that_floods_in_large_reads_leaves_the_thread_to_others() {
    let runner = Runner::builder().server("flood", Server::over(Flooded));
    let runner = runner.build().await.unwrap();
    let others = async {
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        started = runner.start("flood") => panic!("{started:?}"),
        done = tokio::time::timeout(Duration::from_secs(20), others) => done.expect("the thread is kept"),
    }
    runner.shutdown().await;
}

#[tokio::test]
async fn a_server_of_the_program_keeps_the_restrictions_of_the_entry_that_it_replaces() {
    let home = tempfile::tempdir().unwrap();
    let text =
        r#"{ "mcpServers": { "x": { "command": "other", "tools": { "deny": ["work"] } } } }"#;
    let build = async |server: mcpzip::Server| {
        let builder = Runner::builder().config_str(text).server("x", server);
        builder.build().await.unwrap()
    };
    let server = || crate::support::one_tool(home.path(), "work", &json!(["echo"]));
    let denied = build(server()).await.execute("x__work", json!({})).await;
    assert_eq!(denied.unwrap_err().kind(), ErrorKind::Denied);
    let own = build(server().setting("tools", json!({}))).await;
    assert!(own.execute("x__work", json!({})).await.is_ok());
}
