//! Servers over Streamable HTTP that fail, in either era.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::Outcome;
use super::http::{Comes, Failing, Row, Step, call, check};
use crate::support::http::{HttpServer, Reply, Request, legacy, modern};

/// What a broken server does in place of an answer.
type Does = fn(&Request, &mut Reply);

const GZIP: &str = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"jsonrpc\"";
const LOST: &str = "went away during the call … it may or may not have acted";
const IN_TIME: &str = "gave no answer within 400ms … the call was cancelled";
const ENDED: &str = "the stream ended before the answer … it may or may not have acted";
const TOOLS_CHANGED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// What holds in either era.
const BOTH: &[(Row, Does)] = &[
    (
        call("it never answers a call", Comes::Late, IN_TIME),
        |_, reply| _ = reply.hang(),
    ),
    (
        call("it stops in the head of an answer", Comes::Late, IN_TIME),
        |_, reply| {
            reply.raw(b"HTTP/1.1 200 OK\r\ncontent-ty");
            reply.hang();
        },
    ),
    (
        call("it stops in the body of an answer", Comes::Late, IN_TIME),
        |_, reply| {
            reply.raw(HEAD);
            reply.hang();
        },
    ),
    (
        call("it stops in the middle of an event", Comes::Late, IN_TIME),
        |_, reply| {
            reply.events("");
            reply.raw(b"data: {\"jsonrpc\"");
            reply.hang();
        },
    ),
    (
        call(
            "it refuses a call with a text that never ends",
            Comes::Late,
            IN_TIME,
        ),
        |_, reply| {
            reply.raw(b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 100\r\n\r\nthe data");
            reply.hang();
        },
    ),
    (
        call("it answers after the call's limit", Comes::Late, IN_TIME),
        |request, reply| {
            std::thread::sleep(Duration::from_millis(800));
            reply.json(&request.result("late"));
        },
    ),
    (
        call(
            "it closes the connection instead of answering",
            Comes::Error,
            LOST,
        ),
        |_, reply| reply.vanish(),
    ),
    (
        call(
            "it resets the connection in the middle of a body",
            Comes::Error,
            LOST,
        ),
        |_, reply| {
            reply.raw(HEAD);
            reply.reset();
        },
    ),
    (
        call("its body is cut short", Comes::Error, LOST),
        |_, reply| {
            reply.raw(HEAD);
            reply.vanish();
        },
    ),
    (
        call(
            "its stream of events ends in the middle of an event",
            Comes::Error,
            ENDED,
        ),
        |_, reply| {
            reply.events("");
            reply.raw(b"data: {\"jsonrpc\":\"2.0\",\"id\"");
        },
    ),
    (
        call("it sends something that is not HTTP", Comes::Error, LOST),
        |_, reply| {
            reply.raw(b"HELLO WORLD\r\n\r\n");
            reply.vanish();
        },
    ),
    (call("its head has 8 MB", Comes::Error, LOST), |_, reply| {
        reply.raw(b"HTTP/1.1 200 OK\r\n");
        let line = format!("x-flood: {}\r\n", "x".repeat(8000));
        for _ in 0..1000 {
            reply.raw(line.as_bytes());
        }
        reply.vanish();
    }),
    (
        call("its gzip is cut short", Comes::Error, LOST),
        |request, reply| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(request.result("fine").as_bytes()).unwrap();
            let body = gzip.finish().unwrap();
            reply.whole_bytes("200 OK", GZIP, &body[..body.len() - 9]);
        },
    ),
    (
        call("its gzip is not gzip", Comes::Error, LOST),
        |_, reply| {
            reply.whole_bytes("200 OK", GZIP, b"this is no gzip");
        },
    ),
    (
        call("its body comes in small pieces", Comes::Answer, ""),
        |request, reply| {
            let body = request.result("fine");
            reply.raw(
                format!(
                    "HTTP/1.1 200 OK\r\n{JSON}content-length: {}\r\n\r\n",
                    body.len()
                )
                .as_bytes(),
            );
            drip(reply, &body);
        },
    ),
    (
        call("its event comes in small pieces", Comes::Answer, ""),
        |request, reply| {
            reply.events("");
            drip(reply, &format!("data: {}\n\n", request.result("fine")));
        },
    ),
    (
        call(
            "it sends garbage between its events: comments, unknown fields, empty events, invalid JSON, invalid UTF-8",
            Comes::Answer,
            "",
        ),
        |request, reply| {
            reply.events("");
            reply.raw(b": hello\n\nodd: 1\nid: 1\ndata:\n\nevent: ping\ndata: x\n\ndata: {\"json\n\ndata: [DONE]\n\n");
            reply.raw(b"data: \xc3\x28\0\n\n\r\n\r\n");
            reply.event(request.result("fine").as_bytes());
        },
    ),
    (
        call(
            "one of its events is half a message",
            Comes::Error,
            "sent an answer that cannot be read",
        ),
        |request, reply| {
            reply.events("");
            reply.raw(b"data: {\"jsonrpc\":\n\n");
            reply.event(request.result("fine").as_bytes());
        },
    ),
    (
        call(
            "it answers a call with an HTML page",
            Comes::Error,
            "answered with `text/html` instead of JSON",
        ),
        |_, reply| {
            reply.whole(
                "200 OK",
                "content-type: text/html; charset=utf-8\r\n",
                "<html>",
            );
        },
    ),
    (
        call(
            "its answer is not JSON",
            Comes::Error,
            "sent an answer that cannot be read",
        ),
        |_, reply| {
            reply.json("{\"jsonrpc\":");
        },
    ),
    (
        call(
            "it accepts a call with 202, and sends nothing more",
            Comes::Error,
            "it accepted the request without an answer",
        ),
        |_, reply| reply.whole("202 Accepted", "", ""),
    ),
    (
        call(
            "it answers with an unknown id",
            Comes::Error,
            "it answers another request",
        ),
        |_, reply| {
            reply.json(r#"{"jsonrpc":"2.0","id":999999,"result":{}}"#);
        },
    ),
    (
        call(
            "it answers with an unknown id, and then with the right one",
            Comes::Answer,
            "",
        ),
        |request, reply| {
            reply.events("");
            reply.event(br#"{"jsonrpc":"2.0","id":999999,"result":{}}"#);
            reply.event(request.result("fine").as_bytes());
        },
    ),
    (
        call(
            "it answers twice, the second time with an error",
            Comes::Answer,
            "",
        ),
        |request, reply| {
            reply.events("");
            reply.event(request.result("fine").as_bytes());
            let error = json!({ "jsonrpc": "2.0", "id": request.body["id"], "error": { "code": -1, "message": "no" } });
            reply.event(error.to_string().as_bytes());
        },
    ),
    (
        call(
            "it sends `notifications/tools/list_changed` five hundred times, then answers",
            Comes::Answer,
            "",
        ),
        |request, reply| {
            reply.events("");
            for _ in 0..500 {
                reply.event(TOOLS_CHANGED);
            }
            reply.event(request.result("fine").as_bytes());
        },
    ),
    (
        call(
            "it requires a login (401)",
            Comes::Error,
            "refused the `Authorization` of its `headers` (HTTP 401) … person",
        ),
        |_, reply| {
            reply.whole("401 Unauthorized", "", "who are you");
        },
    ),
    (
        call(
            "it refuses the call (403), and repeats mcpzip's credentials in its text",
            Comes::Error,
            "requires a login (HTTP 403): ***",
        ),
        |request, reply| {
            reply.whole("403 Forbidden", JSON, request.header("authorization"));
        },
    ),
    (
        call(
            "429 with `Retry-After: 7`",
            Comes::Error,
            "HTTP 429, to be tried again after 7 s: slow down … call again later",
        ),
        |_, reply| {
            reply.whole("429 Too Many Requests", "retry-after: 7\r\n", "slow down");
        },
    ),
    (
        call(
            "429 until a date",
            Comes::Error,
            "HTTP 429, to be tried again after Wed, 21 Oct 2026 … call again later",
        ),
        |_, reply| {
            reply.whole(
                "429 Too Many Requests",
                "retry-after: Wed, 21 Oct 2026 07:28:00 GMT\r\n",
                "",
            );
        },
    ),
    (
        call(
            "500",
            Comes::Error,
            "answered with HTTP 500: the database is down … it may have acted",
        ),
        |_, reply| {
            reply.whole(
                "500 Internal Server Error",
                "content-type: text/plain\r\n",
                "the database\nis down",
            );
        },
    ),
    (
        call(
            "502 from a proxy in front of it",
            Comes::Error,
            "answered with HTTP 502 … a web page with the title \"Bad gateway\" … it may have acted",
        ),
        |_, reply| {
            reply.whole(
                "502 Bad Gateway",
                "content-type: text/html\r\n",
                "<html>\n<head><title>Bad gateway</title></head><body>nginx",
            );
        },
    ),
    (
        call(
            "503 with `Retry-After: 120`",
            Comes::Error,
            "HTTP 503, to be tried again after 120 s: busy … call again later",
        ),
        |_, reply| {
            reply.whole("503 Service Unavailable", "retry-after: 120\r\n", "busy");
        },
    ),
    (
        call(
            "400 with a JSON-RPC error in it",
            Comes::Error,
            "was refused by its server: no such thing",
        ),
        |request, reply| {
            let error = json!({ "code": -32602, "message": "no such thing" });
            let body = json!({ "jsonrpc": "2.0", "id": request.body["id"], "error": error });
            reply.whole("400 Bad Request", JSON, &body.to_string());
        },
    ),
    (
        call(
            "it redirects to another origin",
            Comes::Error,
            "redirects to `http://example.com`, which is not followed",
        ),
        |_, reply| {
            reply.whole(
                "307 Temporary Redirect",
                "location: http://example.com/mcp?x=1\r\n",
                "",
            );
        },
    ),
    (
        call(
            "it redirects in a way that would lose the call (302)",
            Comes::Error,
            "redirects to … which is not followed",
        ),
        |_, reply| reply.whole("302 Found", "location: /other\r\n", ""),
    ),
    (
        call(
            "it announces 100 GB",
            Comes::Error,
            "more than the limit of 67108864",
        ),
        |_, reply| {
            reply.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n{");
        },
    ),
    (
        list(
            "it never lists its tools",
            Comes::Late,
            "not known: it is still being listed",
        ),
        |_, reply| {
            _ = reply.hang();
        },
    ),
    (
        list(
            "it closes the connection when its tools are listed",
            Comes::Error,
            "went away during the call",
        ),
        |_, reply| {
            reply.vanish();
        },
    ),
    (
        list(
            "500 for its list",
            Comes::Error,
            "answered with HTTP 500: the database is down",
        ),
        |_, reply| {
            reply.whole("500 Internal Server Error", "", "the database is down");
        },
    ),
    (
        list(
            "its list is not JSON",
            Comes::Error,
            "sent an answer that cannot be read",
        ),
        |_, reply| {
            reply.json("{\"tools\"");
        },
    ),
    (
        list(
            "its stream ends in the middle of its list",
            Comes::Error,
            "the stream ended before the answer",
        ),
        |_, reply| {
            reply.events("");
            reply.raw(b"data: {\"jsonrpc\":\"2.0\",");
        },
    ),
    (
        shake(
            "it never answers the handshake",
            Comes::Late,
            "not known: it is still being listed",
        ),
        |_, reply| {
            _ = reply.hang();
        },
    ),
    (
        shake(
            "it closes the connection in the handshake",
            Comes::Error,
            "connection closed",
        ),
        |_, reply| reply.vanish(),
    ),
    (
        shake(
            "its handshake is not JSON",
            Comes::Error,
            "sent an answer that cannot be read",
        ),
        |_, reply| {
            reply.json("{\"jsonrpc\"");
        },
    ),
    (
        shake(
            "it answers the handshake with an HTML page",
            Comes::Error,
            "answered with `text/html` instead of JSON",
        ),
        |_, reply| {
            reply.whole(
                "200 OK",
                "content-type: text/html\r\n",
                "<html>sign in</html>",
            );
        },
    ),
    (
        shake(
            "its stream ends in the middle of the handshake",
            Comes::Error,
            "the stream ended before the answer",
        ),
        |_, reply| {
            reply.events("");
            reply.raw(b"data: {\"jsonrpc\":\"2.0\",");
        },
    ),
    (
        shake(
            "500 in the handshake",
            Comes::Error,
            "HTTP 500: the database is down",
        ),
        |_, reply| {
            reply.whole("500 Internal Server Error", "", "the database is down");
        },
    ),
    (
        shake(
            "429 in the handshake",
            Comes::Error,
            "HTTP 429, to be tried again after 3 s",
        ),
        |_, reply| {
            reply.whole("429 Too Many Requests", "retry-after: 3\r\n", "");
        },
    ),
    (
        shake(
            "401 in the handshake",
            Comes::Error,
            "refused the `Authorization` of its `headers` (HTTP 401)",
        ),
        |_, reply| {
            reply.whole("401 Unauthorized", "", "");
        },
    ),
    (
        shake("404 for every request", Comes::Error, "HTTP 404"),
        |_, reply| reply.whole("404 Not Found", "", ""),
    ),
];

/// What there was up to 2025-11-25 alone.
const LEGACY: &[(Row, Does)] = &[
    (
        call(
            "before 2026-07-28: it uses the call's id for a request of its own, then answers",
            Comes::Answer,
            "",
        ),
        |request, reply| {
            reply.events("");
            let ping = json!({ "jsonrpc": "2.0", "id": request.body["id"], "method": "ping" });
            reply.event(ping.to_string().as_bytes());
            reply.event(request.result("fine").as_bytes());
        },
    ),
    (
        Row {
            fault: "before 2026-07-28: it sends `notifications/tools/list_changed` five hundred times outside of a request",
            at: Step::Listen,
            comes: Comes::Answer,
            gets: "",
        },
        |_, reply| {
            reply.events("");
            for _ in 0..500 {
                reply.event(TOOLS_CHANGED);
            }
            reply.hang();
        },
    ),
    (
        Row {
            fault: "before 2026-07-28: its stream for messages outside of requests ends in the middle of an event, again and again",
            at: Step::Listen,
            comes: Comes::Answer,
            gets: "",
        },
        |_, reply| {
            reply.events("");
            reply.raw(b"retry: 1\ndata: {\"jsonrpc\"");
        },
    ),
];

const JSON: &str = "content-type: application/json\r\n";

const fn list(fault: &'static str, comes: Comes, gets: &'static str) -> Row {
    Row {
        fault,
        at: Step::List,
        comes,
        gets,
    }
}

const fn shake(fault: &'static str, comes: Comes, gets: &'static str) -> Row {
    Row {
        fault,
        at: Step::Handshake,
        comes,
        gets,
    }
}

fn drip(reply: &mut Reply, text: &str) {
    for drip in text.as_bytes().chunks(7) {
        std::thread::sleep(Duration::from_millis(2));
        reply.raw(drip);
    }
}

pub(super) fn outcomes() -> impl Iterator<Item = Outcome> {
    BOTH.iter().chain(LEGACY).map(|(row, _)| row.outcome())
}

/// A server that does as `does` says at the step of `row`, and as `plain` otherwise, as one without a fault does.
fn failing(row: Row, does: Does, plain: Does) -> Failing {
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = is_broken.clone();
    let web = HttpServer::start(move |request, reply| {
        let here = match (request.rpc(), row.at) {
            ("tools/call", Step::Call) => request.body["params"]["name"] == "t",
            // A modern server refuses the older handshake in good order, and an older one has no other ways in.
            ("initialize", Step::Handshake) => plain as usize != modern as Does as usize,
            ("server/discover", Step::Handshake)
            | ("tools/list", Step::List)
            | ("GET", Step::Listen) => true,
            _ => false,
        };
        match (here && broken.load(Ordering::SeqCst), request.rpc()) {
            (true, _) => does(request, reply),
            (false, "server/discover") if plain as usize == legacy as Does as usize => {
                reply.whole("404 Not Found", "", "");
            }
            (false, _) => plain(request, reply),
        }
    });
    Failing {
        row,
        web,
        members: json!({}),
        is_broken,
    }
}

#[test]
fn a_fault_of_an_older_server_is_told_and_costs_nobody_else() {
    let servers: Vec<_> = BOTH
        .iter()
        .chain(LEGACY)
        .map(|(row, does)| failing(*row, *does, legacy))
        .collect();
    check(&servers);
}

#[test]
fn a_fault_of_a_modern_server_is_told_and_costs_nobody_else() {
    let servers: Vec<_> = BOTH
        .iter()
        .map(|(row, does)| failing(*row, *does, modern))
        .collect();
    check(&servers);
}
