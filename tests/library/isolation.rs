//! Several runners in one process, and nothing of the process in them.

use std::io;
use std::sync::{Arc, Mutex};

use mcpzip::{ErrorKind, Runner, Server};
use serde_json::{Value, json};
use tracing::instrument::WithSubscriber as _;

use crate::support::one_tool;

/// A place for log lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A runner with a secret of its own, which its server says on stderr and which stands in the error of another.
async fn run(home: &std::path::Path, name: &str, secret: &str) -> (String, String, Value) {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let work = async {
        let steps = json!([{ "say": format!("the key is {secret}, not {}", other(secret)) }, "surroundings"]);
        let runner = Runner::builder()
            .config_str(json!({ "mcpServers": { "broken": { "url": format!("http://127.0.0.1:9/{secret}?token={secret}") } } }).to_string())
            .server("x", one_tool(home, name, &steps).env("API_TOKEN", secret))
            .directories(home.join(name).join("cache"), home.join(name).join("state"))
            .build()
            .await
            .unwrap();
        let error = runner.start("broken").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let answer = runner
            .execute(&format!("x__{name}"), json!({}))
            .await
            .unwrap();
        let mut causes = format!("{error:?} {error}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            causes.push_str(&format!(" {cause} {cause:?}"));
            source = cause.source();
        }
        runner.shutdown().await;
        (causes, answer.parse().unwrap())
    };
    let (error, answer) = work.with_subscriber(subscriber).await;
    let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    (lines, error, answer)
}

fn other(secret: &str) -> &'static str {
    match secret {
        "secret-of-one" => "secret-of-two",
        _ => "secret-of-one",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runners_side_by_side_have_their_own_logs_and_secrets() {
    let home = tempfile::tempdir().unwrap();
    let (one, two) = tokio::join!(
        run(home.path(), "one", "secret-of-one"),
        run(home.path(), "two", "secret-of-two")
    );
    for (name, secret, (lines, error, _)) in
        [("one", "secret-of-one", one), ("two", "secret-of-two", two)]
    {
        assert!(!lines.is_empty(), "{name} logged nothing");
        assert!(!lines.contains(secret), "{lines}");
        assert!(!error.contains(secret), "{error}");
        let log = home.path().join(name).join("state/logs/x.log");
        let log = std::fs::read_to_string(log).unwrap();
        let expected = format!("the key is ***, not {}", other(secret));
        assert!(log.contains(&expected), "{log}");
        assert!(lines.contains("x__") && lines.contains("mcpzip"), "{lines}");
    }
}

#[tokio::test]
async fn nothing_of_the_environment_is_passed_unless_asked() {
    let home = tempfile::tempdir().unwrap();
    assert!(std::env::var("PATH").is_ok());
    let server = || one_tool(home.path(), "show", &json!(["surroundings"]));
    let variables = async |builder: mcpzip::Builder| {
        let runner = builder.server("x", server()).build().await.unwrap();
        let answer = runner.execute("x__show", json!({})).await.unwrap();
        answer.parse::<Value>().unwrap()["variables"].clone()
    };
    let none = variables(Runner::builder()).await;
    assert!(
        none.get("PATH").is_none() && none.get("HOME").is_none(),
        "{none}"
    );
    let some = variables(Runner::builder().environment([("PATH", "/opt/x")])).await;
    assert_eq!(some["PATH"], "/opt/x", "{some}");
    let unknown = Server::stdio("true").env("KEY", "${MCPZIP_TEST_UNSET}");
    let unset = Runner::builder().server("x", unknown).build().await;
    assert_eq!(unset.unwrap_err().kind(), ErrorKind::Config);
    let files: Vec<_> = std::fs::read_dir(home.path()).unwrap().collect();
    assert_eq!(files.len(), 2, "a script and its log: {files:?}");
}

#[tokio::test]
async fn a_secure_url_needs_the_feature_for_it() {
    let secure = Server::http("https://example.com/mcp");
    let built = Runner::builder().server("x", secure).build().await;
    let refused = built.err();
    let refused = refused.map(|error| (error.kind(), error.to_string().contains("feature `tls`")));
    let expected = (!cfg!(feature = "tls")).then_some((ErrorKind::Config, true));
    assert_eq!(refused, expected);
}
