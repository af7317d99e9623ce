//! Many clients over HTTP at once that send too much, or do not read: memory stays bounded, and others go on.

use std::io::{BufReader, Write as _};
use std::net::TcpStream;

use serde_json::json;

use super::Outcome;
use super::floods::{MEGABYTE, assert_peak};
use crate::support::gateway::{Gateway, Incoming};
use crate::support::script::{answer, deafen, fill};
use crate::support::{Server, Setup, until};

pub(super) const OUTCOMES: &[Outcome] = &[
    Outcome {
        fault: "clients over HTTP send 17 MB each, for a server that does not read",
        gets: "those beyond 128 MB: HTTP 503 with `Retry-After: 5`",
        after: "2 s",
        then: "memory stays below 200 MB; short messages are accepted meanwhile, and large ones after the clients have left",
    },
    Outcome {
        fault: "clients over HTTP request 16 MB each, and do not read",
        gets: "up to 128 MB of answers, once they read; in place of the others, `the response was dropped`",
        after: "at once",
        then: "memory stays below 240 MB; other clients are answered meanwhile",
    },
];

/// What waits for an answer to come.
fn read(stream: TcpStream) -> Incoming {
    Incoming::read(BufReader::new(stream))
}

fn serve(big: Server) -> Gateway {
    let setup = Setup::new()
        .server("big", big)
        .server("good", Server::new().tool("u", [answer("fine")]));
    let setup = setup
        .setting("results", json!({ "budget": 0 }))
        .setting("http", json!({ "metrics": true }))
        .setting("search", json!({ "semantic": false }));
    let gateway = setup.serve(&[]);
    others_are_served(&gateway);
    gateway
}

/// Calls the server that has no fault.
#[track_caller]
fn others_are_served(gateway: &Gateway) {
    let answer = gateway.modern_execute("good__u", "").send();
    assert_eq!(answer.message().text(), "fine");
}

fn large_call(gateway: &Gateway, tool: &str) -> crate::support::gateway::Call {
    let text = "x".repeat(17 * MEGABYTE);
    let members = format!(
        r#""name":"execute_tool","arguments":{{"name":"{tool}","arguments":{{"text":"{text}"}}}}"#
    );
    gateway.modern("tools/call", &members)
}

/// How many calls servers have not answered yet.
fn under_way(gateway: &Gateway) -> usize {
    let figures = gateway.call("GET", "/metrics").send().body;
    let figure = figures
        .lines()
        .find_map(|line| line.strip_prefix(r#"mcpzip_calls_in_flight{server="big"} "#));
    figure.map_or(0, |figure| figure.parse().unwrap())
}

#[test]
fn clients_that_send_too_much_fill_no_memory() {
    let mut gateway = serve(Server::new().tool("t", [deafen()]));
    let taken: Vec<_> = (1..=7)
        .map(|count| {
            let stream = large_call(&gateway, "big__t").begin();
            until("the call to be taken", || {
                (under_way(&gateway) == count).then_some(())
            });
            stream
        })
        .collect();

    // What it does not take, it does not read either: an error of writing is none.
    let call = large_call(&gateway, "good__u");
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    let _ = stream.write_all(&call.bytes());
    let refused = read(stream);
    assert_eq!(
        (refused.status(), refused.header("retry-after")),
        (503, "5")
    );
    others_are_served(&gateway);

    drop(taken);
    until("room for a large message", || {
        let mut stream = TcpStream::connect(gateway.address()).unwrap();
        let _ = stream.write_all(&call.bytes());
        (read(stream).status() == 200).then_some(())
    });
    assert_peak(gateway.process(), 200);
}

#[test]
fn clients_that_do_not_read_fill_no_memory() {
    let large = fill(
        r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":""#,
        16 * MEGABYTE,
        r#""}]}}"#,
    );
    let mut gateway = serve(Server::new().tool("t", [large]));
    let streams: Vec<_> = (0..12)
        .map(|_| gateway.modern_execute("big__t", "").begin())
        .collect();
    gateway
        .process()
        .wait_for_stderr("a response was dropped, because clients have left too many unread");
    others_are_served(&gateway);

    let (mut whole, mut dropped) = (0, 0);
    for stream in streams {
        // Whoever has read nothing for ten seconds, as may be on a busy machine, is cut off.
        let Ok(answer) = std::panic::catch_unwind(|| read(stream).whole().0.message()) else {
            continue;
        };
        if answer.is_tool_error() {
            assert!(
                answer.text().contains("the response was dropped"),
                "{}",
                answer.text()
            );
            dropped += 1;
        } else {
            assert_eq!(answer.text().len(), 16 * MEGABYTE);
            whole += 1;
        }
    }
    println!("{whole} came and {dropped} did not");
    assert_peak(gateway.process(), 240);
}
