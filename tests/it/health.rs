//! Checks of open connections over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::support::http::{HttpServer, Reply, Request, legacy, modern};
use crate::support::{Client, Setup, until};

/// A server that can go away and come back.
struct Mortal {
    server: HttpServer,
    is_dead: Arc<AtomicBool>,
}

impl Mortal {
    fn new(handler: fn(&Request, &mut Reply)) -> Self {
        let is_dead = Arc::new(AtomicBool::new(false));
        let gone = is_dead.clone();
        let server = HttpServer::start(move |request, reply| {
            if gone.load(Ordering::SeqCst) {
                return reply.vanish();
            }
            match request.rpc() {
                "ping" => reply.json(&request.answer(&json!({}))),
                _ => handler(request, reply),
            }
        });
        Self { server, is_dead }
    }

    fn setup(&self) -> Setup {
        Setup::new()
            .entry("web", &self.server.entry(json!({})))
            .setting("health_check", json!("200ms"))
    }
}

/// The line about `web` in the status of the built-in server.
fn state(client: &mut Client) -> String {
    let status = client.execute("mcpzip__status").text();
    let line = status.lines().find(|line| line.starts_with("web: "));
    line.unwrap_or_else(|| panic!("{status}")).to_owned()
}

#[track_caller]
fn is_known_to_be_gone(handler: fn(&Request, &mut Reply), question: &str) {
    let web = Mortal::new(handler);
    let mut client = web.setup().connect();
    assert_eq!(client.execute("web__u").text(), "fine");
    let asked = web.server.count(question);
    until("an open connection to be checked", || {
        (web.server.count(question) > asked + 1).then_some(())
    });
    assert!(state(&mut client).contains("ready"));
    let called = web.server.count("tools/call");
    web.is_dead.store(true, Ordering::SeqCst);
    let failed = until("the server to be known as gone", || {
        Some(state(&mut client)).filter(|state| !state.contains("ready"))
    });
    assert!(failed.contains("did not answer a health check"), "{failed}");
    assert_eq!(web.server.count("tools/call"), called);
    // Nothing is opened for the sake of a check.
    // The end of the lost session may still arrive.
    let asked = || web.server.count(question) + web.server.count("initialize");
    let before = asked();
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(asked(), before);
    web.is_dead.store(false, Ordering::SeqCst);
    assert_eq!(client.execute("web__u").text(), "fine");
}

#[test]
fn a_server_that_has_gone_is_known_before_the_next_call() {
    is_known_to_be_gone(legacy, "ping");
}

#[test]
fn a_modern_server_is_checked_without_a_ping() {
    is_known_to_be_gone(modern, "server/discover");
}

#[test]
fn a_server_without_an_open_connection_is_not_asked() {
    let web = Mortal::new(legacy);
    let setup = web.setup().setting("idle_timeout", json!("300ms"));
    let mut client = setup.connect();
    assert_eq!(client.execute("web__u").text(), "fine");
    until("each connection to be closed", || {
        (web.server.count("DELETE") == web.server.count("initialize")).then_some(())
    });
    let requests = web.server.requests().len();
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(web.server.requests().len(), requests);
    client.finish();
}

#[test]
fn checks_can_be_switched_off() {
    let web = Mortal::new(legacy);
    let setup = Setup::new()
        .entry("web", &web.server.entry(json!({})))
        .setting("health_check", json!("never"));
    let mut client = setup.connect();
    assert_eq!(client.execute("web__u").text(), "fine");
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(web.server.count("ping"), 0);
    client.finish();
}
