//! Many connections and sessions of one person, or of strangers: the others and the health checks still get through.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{As as _, Session, execute, said, setup, token};
use crate::support::gateway::{Gateway, Incoming, initialize};

#[track_caller]
fn is_healthy(gateway: &Gateway) {
    for path in ["/healthz", "/readyz"] {
        let start = Instant::now();
        assert_eq!(gateway.call("GET", path).send().status, 200, "{path}");
        assert!(start.elapsed() < Duration::from_secs(3), "{path}");
    }
}

#[test]
fn strangers_who_wait_for_an_answer_keep_nobody_out() {
    let auth = json!({
        "tokens": true,
        "authorization_server": { "url": "http://127.0.0.1:1", "client_documents": ["localhost"] },
    });
    let setup = setup().setting("http", json!({ "auth": auth }));
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let session = Session::open(&gateway, &anna);
    let mut stream = session.listen(&gateway);
    // It takes connections and says nothing.
    let stalling = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = stalling.local_addr().unwrap().port();
    let strangers: Vec<TcpStream> = (0..650)
        .map(|number| {
            let path =
                format!("/oauth/authorize?client_id=https%3A%2F%2Flocalhost%3A{port}%2F{number}");
            gateway.call("GET", &path).begin()
        })
        .collect();
    is_healthy(&gateway);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    let call = session.execute(&gateway, "git__log", &anna);
    assert_eq!(said(call), "200 the log");
    drop(strangers);
    let _ = setup.run(&["token", "revoke", "anna"]).code(0);
    while stream.event().is_some() {}
}

#[test]
fn one_person_with_many_streams_locks_nobody_out() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let mallory = token(&setup, &["mallory", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let of_anna = Session::open(&gateway, &anna);
    let stream = of_anna.listen(&gateway);
    let streams: Vec<Incoming> = (0..540)
        .map(|_| {
            let call = gateway.call("GET", "/sse").by(&mallory);
            call.header("Accept", "text/event-stream").open()
        })
        .collect();
    let refused = streams.iter().filter(|stream| stream.status() != 200);
    assert_eq!(
        refused.count(),
        0,
        "newer ones take the place of older ones"
    );
    is_healthy(&gateway);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    let call = of_anna.execute(&gateway, "git__log", &anna);
    assert_eq!(said(call), "200 the log");
    drop((stream, streams));
}

#[test]
fn one_person_with_many_sessions_ends_none_of_another() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let mallory = token(&setup, &["mallory", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let before = Session::open(&gateway, &anna);
    let first = Session::open(&gateway, &mallory);
    let open = || {
        let call = gateway.post(&initialize("2025-11-25", &json!({})));
        call.by(&mallory).send().status
    };
    assert!((0..1060).all(|_| open() == 200));
    let after = Session::open(&gateway, &anna);
    for session in [before, after] {
        let call = session.execute(&gateway, "git__log", &anna);
        assert_eq!(said(call), "200 the log");
    }
    let ended = first.execute(&gateway, "git__log", &mallory);
    assert!(
        said(ended).starts_with("404"),
        "her oldest session has ended"
    );
}
