//! Logins in a store of the program.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use mcpzip::{BoxFuture, Error, ErrorKind, LoginStore, Runner};
use serde_json::{Value, json};

/// An MCP server that wants a token, with the authorization server that gives one to the client `me`.
#[derive(Clone, Default)]
struct Service {
    base: Arc<Mutex<String>>,
    tokens: Arc<AtomicUsize>,
}

impl Service {
    async fn start() -> Self {
        let service = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        service.base.lock().unwrap().clone_from(&base);
        let answering = service.clone();
        let router = axum::Router::new().fallback(move |request: Request| {
            let service = answering.clone();
            async move { service.answer(request).await }
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        service
    }

    async fn answer(&self, request: Request) -> Response {
        let base = self.base.lock().unwrap().clone();
        let path = request.uri().path().to_owned();
        if path.starts_with("/.well-known/oauth-protected-resource") {
            let resource = format!("{base}/mcp");
            return json_of(&json!({ "resource": resource, "authorization_servers": [base] }));
        }
        if path.starts_with("/.well-known/") {
            return json_of(&json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"), "token_endpoint": format!("{base}/token"),
                "response_types_supported": ["code"], "grant_types_supported": ["client_credentials"],
                "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            }));
        }
        if path == "/token" {
            let number = self.tokens.fetch_add(1, Ordering::Relaxed);
            let token = format!("token-{number}-of-the-service");
            return json_of(
                &json!({ "access_token": token, "token_type": "Bearer", "expires_in": 3600 }),
            );
        }
        let given = request.headers().get("authorization").cloned();
        if !given.is_some_and(|token| token.as_bytes().starts_with(b"Bearer token-")) {
            let challenge = format!(
                "Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\""
            );
            return (
                reqwest::StatusCode::UNAUTHORIZED,
                [("www-authenticate", challenge)],
            )
                .into_response();
        }
        if request.method() != "POST" {
            return reqwest::StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await;
        let message: Value = serde_json::from_slice(&body.unwrap()).unwrap();
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "web", "version": "1" },
            }),
            "tools/list" => {
                json!({ "tools": [{ "name": "greet", "inputSchema": { "type": "object" } }] })
            }
            "tools/call" => json!({ "content": [{ "type": "text", "text": "hello" }] }),
            _ => return reqwest::StatusCode::ACCEPTED.into_response(),
        };
        json_of(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
    }

    async fn runner(&self, store: &Memory) -> Runner {
        let oauth = json!({ "grant": "client_credentials", "client_id": "me", "client_secret": "a-secret-of-mine" });
        let url = format!("{}/mcp", self.base.lock().unwrap());
        let config = json!({ "mcpServers": { "web": { "url": url, "oauth": oauth } } });
        let builder = Runner::builder().config_str(config.to_string());
        builder.login_store(store.clone()).build().await.unwrap()
    }
}

fn json_of(value: &Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Fault {
    #[default]
    None,
    Full,
    Panic,
}

#[derive(Clone, Default)]
struct Memory {
    records: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    fault: Arc<Mutex<Fault>>,
}

impl LoginStore for Memory {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, Error>> {
        Box::pin(async move { Ok(self.records.lock().unwrap().get(name).cloned()) })
    }

    fn save<'a>(&'a self, name: &'a str, record: Vec<u8>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let fault = *self.fault.lock().unwrap();
            assert!(fault != Fault::Panic, "on purpose");
            if fault == Fault::Full {
                return Err(Error::refusal("the store is full"));
            }
            self.records.lock().unwrap().insert(name.to_owned(), record);
            Ok(())
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.records.lock().unwrap().remove(name);
            Ok(())
        })
    }
}

async fn greeting(runner: &Runner) -> Result<String, Error> {
    let result = runner.execute("web__greet", json!({})).await?;
    Ok(result.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_the_program_keeps_logins_for_the_next_runner() {
    let service = Service::start().await;
    let store = Memory::default();
    for _ in 0..2 {
        let runner = service.runner(&store).await;
        assert_eq!(greeting(&runner).await.unwrap(), "hello");
        runner.shutdown().await;
    }
    assert_eq!(service.tokens.load(Ordering::Relaxed), 1);
    let records = store.records.lock().unwrap().clone();
    let (name, record) = records.first_key_value().unwrap();
    assert!(name.starts_with("web-") && records.len() == 1, "{name}");
    assert!(String::from_utf8_lossy(record).contains("token-0-of-the-service"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_store_holds_of_others_is_no_login() {
    let service = Service::start().await;
    let store = Memory::default();
    let runner = service.runner(&store).await;
    greeting(&runner).await.unwrap();
    runner.shutdown().await;
    for damage in ["", "{", "{\"version\":9}", "\u{0}\u{1}"] {
        for record in store.records.lock().unwrap().values_mut() {
            *record = damage.as_bytes().to_vec();
        }
        let runner = service.runner(&store).await;
        assert_eq!(greeting(&runner).await.unwrap(), "hello", "{damage}");
        runner.shutdown().await;
    }
    assert_eq!(service.tokens.load(Ordering::Relaxed), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_or_panics_fails_the_login_in_words() {
    for (fault, words) in [
        (Fault::Full, "the store is full"),
        (Fault::Panic, "the store for logins panicked"),
    ] {
        let service = Service::start().await;
        let store = Memory::default();
        *store.fault.lock().unwrap() = fault;
        let runner = service.runner(&store).await;
        let error = greeting(&runner).await.unwrap_err();
        let mut text = error.to_string();
        let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(&error);
        while let Some(next) = cause {
            text.push_str(&format!(": {next}"));
            cause = next.source();
        }
        assert!(text.contains(words), "{:?} {text}", error.kind());
        assert!(!text.contains("of-the-service"), "{text}");
        assert!(
            matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Login),
            "{:?}",
            error.kind()
        );
        // It goes on when the store does.
        *store.fault.lock().unwrap() = Fault::None;
        runner.restart("web").await.unwrap();
        assert_eq!(greeting(&runner).await.unwrap(), "hello");
        runner.shutdown().await;
    }
}
