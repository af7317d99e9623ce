//! Access tokens that are no JWTs: the issuer says whether they are valid.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use reqwest::Url;
use serde_json::{Value, json};

use super::{As as _, Session, execute, roles, setup, token};
use crate::support::http::HttpServer;
use crate::support::{Setup, until};

const AUDIENCE: &str = "https://mcp.example.com/mcp";

/// An issuer of opaque tokens. Without an answer in `tokens`, one is not active; without `tokens`, it fails.
struct Issuer {
    server: HttpServer,
    tokens: Arc<Mutex<Option<BTreeMap<String, Value>>>>,
}

impl Issuer {
    fn start() -> Self {
        let tokens: Arc<Mutex<Option<BTreeMap<String, Value>>>> =
            Arc::new(Mutex::new(Some(BTreeMap::new())));
        let known = tokens.clone();
        let server = HttpServer::start(move |request, reply| {
            let credentials = STANDARD.encode("gateway:p%40ss%20word");
            let is_us = request.header("authorization") == format!("Basic {credentials}");
            let form = Url::parse(&format!("http://form?{}", request.text)).unwrap();
            let asked = form.query_pairs().find(|(name, _)| name == "token");
            if let Some((_, token)) = &asked
                && token.starts_with("slow-")
            {
                std::thread::sleep(Duration::from_secs(4));
            }
            let known = known.lock().clone();
            match (known, asked) {
                (Some(known), Some((_, token))) if is_us => {
                    let answer = known.get(&*token).cloned();
                    let answer = answer.unwrap_or_else(|| json!({ "active": false }));
                    reply.json(&answer.to_string());
                }
                (Some(_), _) => reply.whole("401 Unauthorized", "", ""),
                (None, _) => reply.whole("500 Internal Server Error", "", "token-of-nobody"),
            }
        });
        Self { server, tokens }
    }

    fn url(&self) -> String {
        self.server.url("").trim_end_matches('/').to_owned()
    }

    fn setup(&self, tool_scopes: &Value) -> Setup {
        let mut roles = roles();
        roles["dev"]["groups"] = json!(["developers"]);
        let oauth = json!({
            "issuer": self.url(), "audience": AUDIENCE, "scopes": ["mcp"],
            "introspection_url": self.server.url("/introspect"), "client_id": "gateway", "client_secret": "${GATEWAY_SECRET}",
        });
        setup()
            .variable("GATEWAY_SECRET", "p@ss word")
            .setting(
                "http",
                json!({ "auth": { "tokens": true, "oauth": oauth, "tool_scopes": tool_scopes } }),
            )
            .setting("roles", roles)
    }

    /// Makes a token valid, with these members in place of the usual ones.
    fn give(&self, token: &str, members: &Value) {
        let mut answer = json!({ "active": true, "sub": "anna", "aud": AUDIENCE, "scope": "mcp other", "groups": ["developers"] });
        for (name, value) in members.as_object().unwrap() {
            match value {
                Value::Null => drop(answer.as_object_mut().unwrap().remove(name)),
                value => answer[name] = value.clone(),
            }
        }
        let mut tokens = self.tokens.lock();
        let tokens = tokens.get_or_insert_default();
        tokens.insert(token.to_owned(), answer);
    }

    fn asked(&self) -> usize {
        self.server.requests().len()
    }
}

#[test]
fn an_opaque_token_counts_if_the_issuer_says_that_it_is_for_this_server() {
    let issuer = Issuer::start();
    let setup = issuer.setup(&json!({}));
    let mut gateway = setup.serve(&[]);
    issuer.give("opaque-of-anna", &json!({}));
    for _ in 0..5 {
        assert_eq!(
            execute(&gateway, "git__log", "opaque-of-anna"),
            "200 the log"
        );
    }
    assert_eq!(issuer.asked(), 1, "an answer counts for the next requests");
    for (at, (members, status)) in [
        (json!({ "active": false }), "401"),
        (json!({ "aud": null }), "401"),
        (json!({ "aud": "https://mcp.example.com/" }), "401"),
        (json!({ "iss": "https://other.example.com" }), "401"),
        (json!({ "exp": 1000 }), "401"),
        (json!({ "exp": "never" }), "401"),
        (json!({ "nbf": 99_999_999_999_u64 }), "401"),
        (json!({ "sub": null }), "401"),
        (json!({ "token_type": "refresh_token" }), "401"),
        (json!({ "cnf": { "jkt": "x" } }), "401"),
        (json!({ "active": "true" }), "503"),
        (json!({ "scope": "other" }), "403"),
        (json!({ "groups": ["staff"] }), "403"),
        (json!({ "iss": issuer.url(), "token_type": "Bearer", "aud": ["x", AUDIENCE], "exp": 99_999_999_999_u64 }), "200"),
    ]
    .into_iter()
    .enumerate()
    {
        let token = format!("opaque-{at}");
        issuer.give(&token, &members);
        let said = execute(&gateway, "git__log", &token);
        assert!(said.starts_with(status), "{members}: {said}");
    }
    // An unknown token is asked about once in ten seconds.
    let before = issuer.asked();
    for _ in 0..5 {
        assert!(execute(&gateway, "git__log", "opaque-unknown").starts_with("401"));
    }
    assert_eq!(issuer.asked(), before + 1);
    let stderr = gateway.process().stderr();
    assert!(
        !stderr.contains("opaque-") && !stderr.contains("p@ss"),
        "{stderr}"
    );
}

#[test]
fn a_token_that_the_issuer_revokes_ends_within_ten_seconds_with_what_it_opened() {
    let issuer = Issuer::start();
    let setup = issuer.setup(&json!({}));
    let gateway = setup.serve(&[]);
    issuer.give("opaque-of-anna", &json!({}));
    let session = Session::open(&gateway, "opaque-of-anna");
    let mut stream = session.listen(&gateway);
    // Its answer is renewed while the session stays.
    let before = issuer.asked();
    until("the issuer to be asked again", || {
        (issuer.asked() > before).then_some(())
    });
    let said = session
        .execute(&gateway, "git__log", "opaque-of-anna")
        .send();
    assert_eq!(said.status, 200, "{said:?}");
    issuer.tokens.lock().as_mut().unwrap().clear();
    let start = Instant::now();
    while stream.event().is_some() {}
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    let said = session
        .execute(&gateway, "git__log", "opaque-of-anna")
        .send();
    assert_eq!(said.status, 401, "{said:?}");
}

#[test]
fn unknown_tokens_of_strangers_do_not_delay_those_in_use() {
    let issuer = Issuer::start();
    let setup = issuer.setup(&json!({}));
    let gateway = setup.serve(&[]);
    issuer.give("opaque-of-anna", &json!({}));
    let session = Session::open(&gateway, "opaque-of-anna");
    let _stream = session.listen(&gateway);
    // Each takes the turn of some tokens for four seconds.
    let calls = (0..96).map(|at| {
        let token = format!("slow-{at}");
        gateway.modern_execute("git__log", "").by(&token).begin()
    });
    let strangers: Vec<_> = calls.collect();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(15) {
        let call = session.execute(&gateway, "git__log", "opaque-of-anna");
        assert_eq!(super::said(call), "200 the log", "{:?}", start.elapsed());
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(strangers);
}

#[test]
fn nobody_gets_in_while_the_issuer_does_not_answer() {
    let issuer = Issuer::start();
    let setup = issuer.setup(&json!({}));
    let mut gateway = setup.serve(&[]);
    *issuer.tokens.lock() = None;
    for _ in 0..3 {
        let said = execute(&gateway, "git__log", "opaque-of-anna");
        assert!(
            said.starts_with("503 identities cannot be checked now"),
            "{said}"
        );
    }
    gateway
        .process()
        .wait_for_stderr("tokens cannot be checked at the issuer");
    let stderr = gateway.process().stderr();
    assert_eq!(
        stderr.matches("cannot be checked at the issuer").count(),
        1,
        "{stderr}"
    );
    assert!(!stderr.contains("token-of-nobody"), "{stderr}");
    issuer.give("opaque-of-anna", &json!({}));
    assert_eq!(
        execute(&gateway, "git__log", "opaque-of-anna"),
        "200 the log"
    );
    // An answer outlives the issuer for ten seconds.
    *issuer.tokens.lock() = None;
    assert_eq!(
        execute(&gateway, "git__log", "opaque-of-anna"),
        "200 the log"
    );
    until("the last answer to be too old", || {
        execute(&gateway, "git__log", "opaque-of-anna")
            .starts_with("503")
            .then_some(())
    });
}

#[test]
fn a_tool_may_need_a_scope_and_the_client_is_told_which() {
    let issuer = Issuer::start();
    let scopes = json!({ "git__log": "git:read", "vault__*": "vault" });
    let setup = issuer.setup(&scopes);
    let other = token(&setup, &["ci", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    issuer.give("opaque-low", &json!({ "scope": "mcp vault" }));
    issuer.give("opaque-high", &json!({ "scope": "mcp git:read" }));
    for call in [
        gateway.modern_execute("git__log", "").by("opaque-low"),
        Session::open(&gateway, "opaque-low").execute(&gateway, "git__log", "opaque-low"),
    ] {
        let answer = call.send();
        assert_eq!(answer.status, 403, "{answer:?}");
        let challenge = answer.header("www-authenticate");
        let expected = r#"Bearer error="insufficient_scope", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="git:read mcp vault""#;
        assert_eq!(challenge, expected);
        assert!(
            answer.body.contains("needs the scope git:read"),
            "{answer:?}"
        );
    }
    // The session goes on with the next token.
    let session = Session::open(&gateway, "opaque-low");
    let said = session.execute(&gateway, "git__log", "opaque-high").send();
    assert_eq!(said.status, 200, "{said:?}");
    let said = session.execute(&gateway, "git__log", "opaque-low").send();
    assert_eq!(said.status, 403, "{said:?}");
    // Among several calls, it is the answer to the one.
    let calls = r#"{"name":"execute_tool","arguments":{"calls":[{"name":"git__log"}]}}"#;
    let said = session
        .request(&gateway, "tools/call", calls, "opaque-low")
        .send();
    assert_eq!(said.status, 200, "{said:?}");
    assert!(said.body.contains("needs the scope git:read"), "{said:?}");
    assert_eq!(execute(&gateway, "git__log", &other), "200 the log");
    // Nothing was sent for those.
    assert_eq!(setup.home().count("git", "tools/call"), 2);
}

#[test]
fn settings_of_introspection_and_scopes_that_are_not_understood_keep_the_server_from_starting() {
    let oauth = |more: Value| {
        let mut oauth = json!({ "issuer": "https://a.example.com", "audience": "https://b/mcp" });
        oauth
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({ "oauth": oauth })
    };
    for auth in [
        oauth(json!({ "introspection_url": "https://a.example.com/i" })),
        oauth(json!({ "introspection_url": "https://a.example.com/i", "client_id": "x" })),
        oauth(
            json!({ "introspection_url": "https://a.example.com/i", "client_id": "x", "client_secret": "" }),
        ),
        oauth(
            json!({ "introspection_url": "http://a.example.com/i", "client_id": "x", "client_secret": "y" }),
        ),
        oauth(json!({ "client_id": "x", "client_secret": "y" })),
        json!({ "tokens": true, "tool_scopes": { "git__*": "" } }),
        json!({ "tokens": true, "tool_scopes": { "git__*": "a\"b" } }),
        json!({ "tokens": true, "tool_scopes": { "@nothing": "a" } }),
        json!({ "tokens": true, "tool_scopes": { "!git__*": "a" } }),
        json!({ "tokens": true, "tool_scopes": ["a"] }),
        json!({ "tool_scopes": { "git__*": "a" } }),
    ] {
        let setup = setup().setting("http", json!({ "auth": auth }));
        let said = super::settings::refused(&setup, 3);
        assert!(said.contains("does not start"), "{auth}: {said}");
    }
}

#[test]
fn doctor_asks_the_issuer_about_a_token_that_no_client_has() {
    let issuer = Issuer::start();
    let setup = issuer.setup(&json!({}));
    let is_found = || {
        let report = setup.run(&["doctor", "--json"]).stdout;
        report.contains("issuer-unusable")
    };
    assert!(!is_found());
    assert_eq!(issuer.asked(), 1);
    *issuer.tokens.lock() = None;
    assert!(is_found());
}
