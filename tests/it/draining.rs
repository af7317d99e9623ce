//! The end of `serve --http`: with `http.drain` calls in progress get their answers, and new requests go elsewhere.

use std::io::Read as _;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::gateway::{Call, Gateway, Incoming, initialize};
use crate::support::script::{answer, sleep};
use crate::support::{Server, Setup, until};

fn slow(milliseconds: u64, http: &Value) -> Setup {
    let slow = Server::new().tool("work", [sleep(milliseconds), answer("worked")]);
    Setup::new()
        .alone()
        .log_level("info")
        .server("slow", slow)
        .setting("http", http.clone())
}

/// Begins a call in a thread, which returns the whole answer as text.
fn begin(setup: &Setup, call: &Call) -> thread::JoinHandle<String> {
    let mut stream = call.clone().and_header("Connection", "close").begin();
    setup.home().wait_for("slow", "tools/call");
    thread::spawn(move || {
        let mut answer = Vec::new();
        // A connection that is cut gives what has come.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    })
}

fn terminate(gateway: &mut Gateway) {
    gateway.process().signal(Signal::TERM);
}

#[test]
fn calls_in_progress_are_answered_and_no_others_are_taken() {
    let setup = slow(1500, &json!({ "drain": "60s" }));
    let mut gateway = setup.serve(&[]);
    let call = begin(&setup, &gateway.modern_execute("slow__work", ""));
    terminate(&mut gateway);
    gateway
        .process()
        .wait_for_stderr("no new requests are taken");
    until("the address to be free", || {
        TcpStream::connect(gateway.address()).err()
    });
    let answer = call.join().unwrap();
    assert!(
        answer.contains("200 OK") && answer.contains("worked"),
        "{answer}"
    );
    let start = Instant::now();
    assert_eq!(gateway.process().wait().code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_second_signal_and_the_end_of_the_time_cancel_what_is_left() {
    for (drain, signals) in [("60s", 2), ("1s", 1)] {
        let setup = slow(60_000, &json!({ "drain": drain }));
        let mut gateway = setup.serve(&[]);
        let call = begin(&setup, &gateway.modern_execute("slow__work", ""));
        let start = Instant::now();
        terminate(&mut gateway);
        gateway
            .process()
            .wait_for_stderr("no new requests are taken");
        if signals == 2 {
            terminate(&mut gateway);
        }
        gateway.process().wait();
        assert!(start.elapsed() < Duration::from_secs(30), "{drain}");
        let answer = call.join().unwrap();
        assert!(
            answer.contains("may have acted") && !answer.contains("worked"),
            "{answer}"
        );
    }
}

#[test]
fn a_call_with_an_event_stream_hears_that_it_may_have_acted() {
    let setup = slow(60_000, &json!({ "drain": "5s" }));
    let mut gateway = setup.serve(&[]);
    let session = gateway.session();
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"execute_tool","arguments":{"name":"slow__work"}}}"#;
    let calls = [gateway.modern_execute("slow__work", ""), session.post(body)];
    let calls = calls.map(|call| begin(&setup, &call));
    until("both calls", || {
        (setup.home().count("slow", "tools/call") == 2).then_some(())
    });
    terminate(&mut gateway);
    gateway.process().wait();
    for call in calls {
        let answer = call.join().unwrap();
        assert!(
            answer.contains("text/event-stream") && answer.contains("may have acted"),
            "{answer}"
        );
    }
}

/// The stream of a client of HTTP+SSE that has begun the call with id 5.
fn begin_on_stream(setup: &Setup, gateway: &Gateway) -> Incoming {
    let stream = gateway.call("GET", "/sse");
    let mut stream = stream.header("Accept", "text/event-stream").open();
    let path = stream.event().unwrap().data;
    let post = |body: &str| {
        let post = gateway.call("POST", &path);
        let post = post.header("Content-Type", "application/json").body(body);
        assert_eq!(post.send().status, 202);
    };
    post(&initialize("2024-11-05", &json!({})));
    stream.message();
    post(
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"execute_tool","arguments":{"name":"slow__work"}}}"#,
    );
    setup.home().wait_for("slow", "tools/call");
    stream
}

#[test]
fn a_client_of_http_and_sse_gets_its_answer_before_the_end() {
    let setup = slow(1500, &json!({ "drain": "60s" }));
    let mut gateway = setup.serve(&[]);
    let mut stream = begin_on_stream(&setup, &gateway);
    let start = Instant::now();
    terminate(&mut gateway);
    let answer = stream.message();
    assert_eq!((answer.id(), answer.text().as_str()), ("5", "worked"));
    assert_eq!(stream.event(), None);
    assert_eq!(gateway.process().wait().code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_client_of_http_and_sse_hears_that_its_call_may_have_acted() {
    for http in [json!({ "drain": "1s" }), json!({})] {
        let setup = slow(60_000, &http);
        let mut gateway = setup.serve(&[]);
        let mut stream = begin_on_stream(&setup, &gateway);
        terminate(&mut gateway);
        let answer = stream.message();
        assert_eq!(answer.id(), "5");
        let told = answer.tool_error();
        assert!(told.contains("may have acted"), "{http}: {told}");
        assert_eq!(stream.event(), None);
        gateway.process().wait();
    }
}

#[test]
fn without_the_key_the_end_waits_for_no_call() {
    let setup = slow(60_000, &json!({}));
    let mut gateway = setup.serve(&[]);
    let call = begin(&setup, &gateway.modern_execute("slow__work", ""));
    let start = Instant::now();
    terminate(&mut gateway);
    gateway.process().wait();
    assert!(start.elapsed() < Duration::from_secs(30));
    assert!(!call.join().unwrap().contains("worked"));
}
