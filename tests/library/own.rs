//! Parts of the program: tools inside it, and a transport of its own.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use mcpzip::{
    BoxFuture, Embedder, Error, ErrorKind, Event, Runner, Server, State, Streams, Tool, ToolResult,
    ToolSource, Tools, Transport,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader, DuplexStream, ReadBuf,
};

use crate::support::until;

#[derive(Deserialize)]
struct Terms {
    a: i64,
    b: i64,
}

fn sums() -> Tools {
    let number = json!({ "type": "integer" });
    let schema = json!({ "type": "object", "properties": { "a": number, "b": number }, "required": ["a", "b"] });
    let any = json!({ "type": "object" });
    Tools::new()
        .tool(
            Tool::new("add", "Adds two numbers", schema),
            async |terms: Terms| terms.a.checked_add(terms.b).ok_or("the sum is too large"),
        )
        .tool(
            Tool::new("break_down", "Breaks down", any.clone()),
            async |_: Value| {
                assert!(std::hint::black_box(false), "on purpose");
                Ok::<_, String>("never")
            },
        )
        .tool(
            Tool::new("weather", "Says how warm it is", any),
            async |_: Value| Ok::<_, String>(json!({ "degrees": 21 })),
        )
}

#[tokio::test(flavor = "multi_thread")]
async fn closures_are_tools_that_are_found_and_called() {
    let runner = Runner::builder()
        .server("sums", Server::inside(sums()))
        .build()
        .await
        .unwrap();
    let found = runner.search("add numbers", 1).await.unwrap().found;
    assert_eq!(found[0].name, "sums__add");
    let client = runner.client("sums").unwrap();
    let sum: i64 = client
        .call("add", &json!({ "a": 1, "b": 2 }))
        .await
        .unwrap();
    assert_eq!(sum, 3);
    let weather = client.call_raw("weather", &json!({})).await.unwrap();
    assert_eq!(weather.structured().unwrap()["degrees"], 21);
    let unfit = client.call_raw("add", &json!({ "a": "one" })).await;
    assert_eq!(unfit.unwrap_err().kind(), ErrorKind::Arguments);
    let too_large = json!({ "a": i64::MAX, "b": 1 });
    let failed = client.call::<_, i64>("add", &too_large).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Tool);
    assert_eq!(failed.to_string(), "the sum is too large");
    let unknown = client.call_raw("subtract", &json!({})).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::UnknownTool);
}

#[tokio::test]
async fn a_panic_in_a_tool_fails_its_call_only() {
    let runner = Runner::builder()
        .server("sums", Server::inside(sums()))
        .build()
        .await
        .unwrap();
    let client = runner.client("sums").unwrap();
    let broken = client.call_raw("break_down", &json!({})).await.unwrap();
    assert!(broken.is_error() && broken.text().contains("panicked"));
    assert!(client.call_raw("weather", &json!({})).await.is_ok());
    assert_eq!(runner.status("sums").unwrap().state, State::Ready);
}

#[tokio::test]
async fn rules_hold_for_tools_inside_the_program() {
    let runner = Runner::builder()
        .config_str(r#"{ "tools": { "deny": ["sums__add"] } }"#)
        .server("sums", Server::inside(sums()))
        .build()
        .await
        .unwrap();
    let denied = runner.execute("sums__add", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(denied.unwrap_err().kind(), ErrorKind::Denied);
    assert!(runner.execute("sums__weather", json!({})).await.is_ok());
}

/// A source whose tools grow.
struct Growing(AtomicUsize);

impl ToolSource for Growing {
    fn tools(&self) -> Vec<Tool> {
        let known = self.0.fetch_add(1, Ordering::Relaxed);
        let tool = |number| {
            Tool::new(
                format!("tool_{number}"),
                "Works",
                json!({ "type": "object" }),
            )
        };
        (0..=known).map(tool).collect()
    }

    fn call<'a>(&'a self, tool: &'a str, _: Value) -> BoxFuture<'a, Result<ToolResult, Error>> {
        Box::pin(async move { ToolResult::of(tool) })
    }
}

#[tokio::test]
async fn a_restart_lists_the_tools_of_a_source_again() {
    let server = Server::inside(Growing(AtomicUsize::default()));
    let runner = Runner::builder()
        .server("grows", server)
        .build()
        .await
        .unwrap();
    runner.start("grows").await.unwrap();
    let before = runner.status("grows").unwrap().tools;
    runner.restart("grows").await.unwrap();
    assert_eq!(runner.status("grows").unwrap().tools, before + 1);
}

#[tokio::test]
async fn other_tools_of_the_same_name_have_no_older_list() {
    let home = tempfile::tempdir().unwrap();
    let build = async |tool: &str| {
        let tool = Tool::new(tool, "Works", json!({ "type": "object" }));
        let tools = Tools::new().tool(tool, async |_: Value| Ok::<_, String>("done"));
        let (cache, state) = (home.path().join("cache"), home.path().join("state"));
        Runner::builder()
            .server("own", Server::inside(tools))
            .directories(cache, state)
            .build()
            .await
            .unwrap()
    };
    let first = build("first").await;
    first.execute("own__first", json!({})).await.unwrap();
    first.shutdown().await;
    let second = build("second").await;
    let tools = second.client("own").unwrap().list_tools().await.unwrap();
    assert_eq!(tools[0].name, "second");
}

/// A server at the other end of a pipe inside the program, which lives until the third line if it is `short`.
async fn serve(stream: DuplexStream, is_short: bool) {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "pipe", "version": "1" },
            }),
            Some("tools/list") => {
                json!({ "tools": [{ "name": "where", "inputSchema": { "type": "object" } }] })
            }
            Some("tools/call") if is_short => return,
            Some("tools/call") => json!({ "content": [{ "type": "text", "text": "in a pipe" }] }),
            _ => continue,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        writer
            .write_all(format!("{answer}\n").as_bytes())
            .await
            .unwrap();
    }
}

/// A transport whose first connection ends in the middle of a call.
struct Pipe(Arc<AtomicUsize>);

impl Transport for Pipe {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, Error>> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(1024);
            tokio::spawn(serve(far, number == 0));
            let (reader, writer) = tokio::io::split(near);
            Ok(Streams::new(reader, writer))
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transport_of_the_program_connects_again_after_its_end() {
    let opened = Arc::new(AtomicUsize::default());
    let runner = Runner::builder()
        .server("pipe", Server::over(Pipe(opened.clone())))
        .build()
        .await
        .unwrap();
    let client = runner.client("pipe").unwrap();
    assert_eq!(client.list_tools().await.unwrap()[0].name, "where");
    let lost = client.call_raw("where", &json!({})).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Lost);
    let result = client.call_raw("where", &json!({})).await.unwrap();
    assert_eq!(result.text(), "in a pipe");
    assert_eq!(opened.load(Ordering::Relaxed), 2);
    assert!(runner.stop("pipe").await.unwrap());
    until("the stopped server is not idle", || {
        runner.status("pipe").unwrap().state == State::Idle
    })
    .await;
}

/// A transport that has no way, or panics.
struct Closed {
    panics: bool,
}

impl Transport for Closed {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, Error>> {
        assert!(!self.panics, "on purpose");
        Box::pin(async { Err(Error::refusal("the tunnel is down")) })
    }
}

#[tokio::test]
async fn a_transport_that_fails_or_panics_makes_its_server_unavailable() {
    let runner = Runner::builder()
        .server("down", Server::over(Closed { panics: false }))
        .server("broken", Server::over(Closed { panics: true }))
        .server("sums", Server::inside(sums()))
        .build()
        .await
        .unwrap();
    for (server, reason) in [("down", "the tunnel is down"), ("broken", "panicked")] {
        let error = runner.start(server).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert!(runner.start("sums").await.is_ok());
}

/// A transport whose first connection never answers, and counts its end.
#[derive(Clone, Default)]
struct Silent {
    opened: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
}

impl Transport for Silent {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, Error>> {
        let (number, ended) = (
            self.opened.fetch_add(1, Ordering::Relaxed),
            self.ended.clone(),
        );
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(1024);
            tokio::spawn(async move {
                if number > 0 {
                    return serve(far, false).await;
                }
                let mut lines = BufReader::new(far).lines();
                while let Ok(Some(_)) = lines.next_line().await {}
                ended.fetch_add(1, Ordering::Relaxed);
            });
            let (reader, writer) = tokio::io::split(near);
            Ok(Streams::new(reader, writer))
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_a_start_in_progress() {
    let silent = Silent::default();
    let runner = Runner::builder()
        .server("silent", Server::over(silent.clone()))
        .build()
        .await
        .unwrap();
    let runner = Arc::new(runner);
    let state = || runner.status("silent").unwrap().state;
    let starting = tokio::spawn({
        let runner = runner.clone();
        async move { runner.start("silent").await }
    });
    until("nothing was opened", || {
        silent.opened.load(Ordering::Relaxed) == 1
    })
    .await;
    assert_eq!(state(), State::Starting);
    let mut events = runner.events();
    assert!(runner.stop("silent").await.unwrap());
    let started = tokio::time::timeout(Duration::from_secs(5), starting);
    let error = started.await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.to_string().contains("server `silent` was stopped"),
        "{error}"
    );
    assert_eq!(state(), State::Idle);
    until("the connection is open", || {
        silent.ended.load(Ordering::Relaxed) == 1
    })
    .await;
    // An attempt that failed would be repeated by now.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(
        (state(), silent.opened.load(Ordering::Relaxed)),
        (State::Idle, 1)
    );
    let server = || "silent".to_owned();
    assert_eq!(
        events.next().await,
        Some(Event::Starting { server: server() })
    );
    assert_eq!(
        events.next().await,
        Some(Event::Stopped { server: server() })
    );
    let client = runner.client("silent").unwrap();
    assert_eq!(client.list_tools().await.unwrap()[0].name, "where");
}

#[tokio::test]
async fn a_stop_at_once_after_a_start_and_a_restart_leave_no_surprise() {
    let silent = Silent::default();
    let runner = Runner::builder()
        .server("silent", Server::over(silent.clone()))
        .build()
        .await
        .unwrap();
    let (started, stopped) = tokio::join!(runner.start("silent"), runner.stop("silent"));
    assert!(started.is_err() && stopped.is_ok());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(runner.status("silent").unwrap().state, State::Idle);
    silent.opened.store(0, Ordering::Relaxed);
    let (started, restarted) = tokio::join!(runner.start("silent"), async {
        until("nothing was opened", || {
            silent.opened.load(Ordering::Relaxed) == 1
        })
        .await;
        runner.restart("silent").await
    });
    restarted.unwrap();
    assert!(started.is_err());
    assert_eq!(runner.status("silent").unwrap().state, State::Ready);
}

/// An input that always has a line, or panics.
struct Flood {
    panics: bool,
}

impl AsyncRead for Flood {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        assert!(!self.panics, "on purpose");
        buffer.put_slice(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n");
        Poll::Ready(Ok(()))
    }
}

impl Transport for Flood {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, Error>> {
        let input = Self {
            panics: self.panics,
        };
        Box::pin(async { Ok(Streams::new(input, tokio::io::sink())) })
    }
}

#[test]
fn a_transport_that_always_has_input_leaves_the_thread_to_others() {
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let runner = Runner::builder()
                .server("flood", Server::over(Flood { panics: false }))
                .server("sums", Server::inside(sums()))
                .build()
                .await
                .unwrap();
            let (started, ()) = tokio::join!(runner.start("flood"), async {
                let sum = runner.execute("sums__add", json!({ "a": 1, "b": 2 }));
                assert_eq!(sum.await.unwrap().text(), "3");
                runner.shutdown().await;
            });
            sender.send(started.unwrap_err().kind()).unwrap();
        });
    });
    let kind = ended.recv_timeout(Duration::from_secs(20));
    assert_eq!(kind.expect("the thread is kept"), ErrorKind::Ended);
}

#[tokio::test]
async fn a_panic_in_the_streams_of_a_transport_ends_its_connection_only() {
    let runner = Runner::builder()
        .server("broken", Server::over(Flood { panics: true }))
        .server("sums", Server::inside(sums()))
        .build()
        .await
        .unwrap();
    let started = tokio::time::timeout(Duration::from_secs(5), runner.start("broken"));
    let error = started.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
    assert!(runner.start("sums").await.is_ok());
}

/// A model that knows two subjects, gives too few vectors if it is `broken`, and panics at a word.
struct Subjects {
    is_broken: bool,
}

impl Embedder for Subjects {
    fn model(&self) -> String {
        "subjects-1".to_owned()
    }

    fn dimensions(&self) -> usize {
        3
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        if self.is_broken {
            return Ok(Vec::new());
        }
        let has = |text: &str, words: [&str; 2]| words.iter().any(|word| text.contains(word));
        let vector = |text: &&str| {
            assert!(!text.contains("explode"), "on purpose");
            let (cats, money) = (has(text, ["cat", "feline"]), has(text, ["pay", "salary"]));
            vec![f32::from(u8::from(cats)), f32::from(u8::from(money)), 0.1]
        };
        Ok(texts.iter().map(vector).collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_of_the_program_finds_tools_by_meaning() {
    let build = async |is_broken| {
        let any = json!({ "type": "object" });
        let done = async |_: Value| Ok::<_, String>("done");
        let tools = Tools::new()
            .tool(Tool::new("feed", "Feeds a cat", any.clone()), done)
            .tool(Tool::new("transfer", "Makes a bank pay", any), done);
        Runner::builder()
            .server("home", Server::inside(tools))
            .embedder(Subjects { is_broken })
            .build()
            .await
            .unwrap()
    };
    let runner = build(false).await;
    let best = async |need: &str| {
        let found = runner.search(need, 1).await.unwrap().found;
        found.first().map(|found| found.name.clone())
    };
    let end = Instant::now() + Duration::from_secs(20);
    while best("feline").await.as_deref() != Some("home__feed") {
        assert!(Instant::now() < end, "the vectors are not used");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(best("salary").await.as_deref(), Some("home__transfer"));
    assert_eq!(
        best("explode bank").await.as_deref(),
        Some("home__transfer"),
        "after a panic, words decide"
    );
    let broken = build(true).await;
    let found = broken.search("bank", 1).await.unwrap().found;
    assert_eq!(found[0].name, "home__transfer");
}
