//! Servers over HTTP+SSE that fail: one stream has all that they say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::Outcome;
use super::http::{Comes, Failing, Row, Step, call, check};
use crate::support::http::{HttpServer, Reply, Request};

/// What a broken server does in place of saying the answer, and what it answers the POST with if that is not 202.
type Does = fn(&Request, &Stream, &mut Reply) -> Posted;

/// What becomes of the POST itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Posted {
    Accepted,
    Answered,
}

/// The way to the client.
#[derive(Clone, Default)]
struct Stream(Arc<Mutex<Option<Sender<Vec<u8>>>>>);

impl Stream {
    fn raw(&self, bytes: &[u8]) {
        if let Some(sender) = &*self.0.lock().unwrap() {
            // A client that is gone needs no telling.
            let _ = sender.send(bytes.to_vec());
        }
    }

    fn event(&self, message: &str) {
        self.raw(format!("event: message\ndata: {message}\n\n").as_bytes());
    }

    fn end(&self) {
        *self.0.lock().unwrap() = None;
    }
}

const LOST: &str =
    "went away during the call … it ended its event stream … it may or may not have acted";
const IN_TIME: &str = "gave no answer within 400ms … the call was cancelled";

const CASES: &[(Row, Does)] = &[
    (
        call("it never answers a call", Comes::Late, IN_TIME),
        |_, _, _| Posted::Accepted,
    ),
    (
        call("it never answers the POST", Comes::Late, IN_TIME),
        |_, _, reply| {
            reply.hang();
            Posted::Answered
        },
    ),
    (
        call("it stops in the middle of an event", Comes::Late, IN_TIME),
        |_, stream, _| {
            stream.raw(b"event: message\ndata: {\"jsonrpc\"\n");
            let stream = stream.clone();
            // The rest keeps it apart from the next answer.
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(800));
                stream.raw(b"\n");
            });
            Posted::Accepted
        },
    ),
    (
        call("it answers after the call's limit", Comes::Late, IN_TIME),
        |request, stream, _| {
            let (stream, answer) = (stream.clone(), request.result("late"));
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(800));
                stream.event(&answer);
            });
            Posted::Accepted
        },
    ),
    (
        call("it ends its stream in a call", Comes::Error, LOST),
        |_, stream, _| {
            stream.end();
            Posted::Accepted
        },
    ),
    (
        call(
            "it ends its stream in the middle of an event",
            Comes::Error,
            LOST,
        ),
        |_, stream, _| {
            stream.raw(b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\"");
            stream.end();
            Posted::Accepted
        },
    ),
    (
        call(
            "it refuses the POST (503)",
            Comes::Error,
            "HTTP 503: full … call again later",
        ),
        |_, _, reply| {
            reply.whole("503 Service Unavailable", "", "full");
            Posted::Answered
        },
    ),
    (
        call(
            "it closes the connection of the POST",
            Comes::Error,
            "went away during the call",
        ),
        |_, _, reply| {
            reply.vanish();
            Posted::Answered
        },
    ),
    (
        call("its event comes in small pieces", Comes::Answer, ""),
        |request, stream, _| {
            for drip in format!("event: message\ndata: {}\n\n", request.result("fine"))
                .as_bytes()
                .chunks(7)
            {
                std::thread::sleep(Duration::from_millis(2));
                stream.raw(drip);
            }
            Posted::Accepted
        },
    ),
    (
        call(
            "it sends garbage between its events: comments, unknown kinds, empty events, invalid JSON, invalid UTF-8",
            Comes::Answer,
            "",
        ),
        |request, stream, _| {
            stream.raw(b": hello\n\nodd: 1\ndata:\n\nevent: ping\ndata: x\n\nevent: message\ndata: {\"jsonrpc\":\n\n");
            stream.raw(b"data: \xc3\x28\0\n\n\r\n\r\n");
            stream.event(&request.result("fine"));
            Posted::Accepted
        },
    ),
    (
        call(
            "its answer is not JSON",
            Comes::Error,
            "sent an answer that cannot be read",
        ),
        |request, stream, _| {
            stream.event(&format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{]}}"#,
                request.body["id"]
            ));
            Posted::Accepted
        },
    ),
    (
        call(
            "it answers with an unknown id, then with the right one, and once more",
            Comes::Answer,
            "",
        ),
        |request, stream, _| {
            stream.event(r#"{"jsonrpc":"2.0","id":999999,"result":{}}"#);
            stream.event(&request.result("fine"));
            stream.event(&request.result("again"));
            Posted::Accepted
        },
    ),
    (
        call(
            "it uses the call's id for a request of its own, then answers",
            Comes::Answer,
            "",
        ),
        |request, stream, _| {
            stream.event(
                &json!({ "jsonrpc": "2.0", "id": request.body["id"], "method": "ping" })
                    .to_string(),
            );
            stream.event(&request.result("fine"));
            Posted::Accepted
        },
    ),
    (
        call(
            "it sends `notifications/tools/list_changed` five hundred times, then answers",
            Comes::Answer,
            "",
        ),
        |request, stream, _| {
            for _ in 0..500 {
                stream.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
            }
            stream.event(&request.result("fine"));
            Posted::Accepted
        },
    ),
    (
        Row {
            fault: "it never lists its tools",
            at: Step::List,
            comes: Comes::Late,
            gets: "not known: it is still being listed",
        },
        |_, _, _| Posted::Accepted,
    ),
    (
        Row {
            fault: "it ends its stream when its tools are listed",
            at: Step::List,
            comes: Comes::Error,
            gets: "went away during the call",
        },
        |_, stream, _| {
            stream.end();
            Posted::Accepted
        },
    ),
    (
        Row {
            fault: "it never answers the handshake",
            at: Step::Handshake,
            comes: Comes::Late,
            gets: "not known: it is still being listed",
        },
        |_, _, _| Posted::Accepted,
    ),
    (
        Row {
            fault: "it ends its stream in the handshake",
            at: Step::Handshake,
            comes: Comes::Error,
            gets: "it ended its event stream",
        },
        |_, stream, _| {
            stream.end();
            Posted::Accepted
        },
    ),
    (
        Row {
            fault: "it never sends its `endpoint` event",
            at: Step::Listen,
            comes: Comes::Late,
            gets: "not known: it is still being listed",
        },
        |_, _, reply| {
            reply.events("");
            reply.raw(b": wait\n\n");
            reply.hang();
            Posted::Answered
        },
    ),
    (
        Row {
            fault: "its stream ends before its `endpoint` event",
            at: Step::Listen,
            comes: Comes::Error,
            gets: "is not an HTTP+SSE server",
        },
        |_, _, reply| {
            reply.events("");
            Posted::Answered
        },
    ),
    (
        Row {
            fault: "its `endpoint` event names another origin",
            at: Step::Listen,
            comes: Comes::Error,
            gets: "redirects to `http://127.0.0.1:9`, which is not followed",
        },
        |_, _, reply| {
            reply.events("");
            reply.raw(b"event: endpoint\ndata: http://127.0.0.1:9/messages\n\n");
            reply.hang();
            Posted::Answered
        },
    ),
    (
        Row {
            fault: "404 for every request",
            at: Step::Listen,
            comes: Comes::Error,
            gets: "HTTP 404",
        },
        |_, _, reply| {
            reply.whole("404 Not Found", "", "");
            Posted::Answered
        },
    ),
];

pub(super) fn outcomes() -> impl Iterator<Item = Outcome> {
    CASES.iter().map(|(row, _)| row.outcome())
}

fn failing(row: Row, does: Does) -> Failing {
    let is_broken = Arc::new(AtomicBool::new(true));
    let (broken, stream) = (is_broken.clone(), Stream::default());
    let web = HttpServer::start(move |request, reply| {
        let here = match (request.rpc(), row.at) {
            ("tools/call", Step::Call) => request.body["params"]["name"] == "t",
            ("initialize", Step::Handshake)
            | ("tools/list", Step::List)
            | ("GET", Step::Listen) => true,
            _ => false,
        };
        if here && broken.load(Ordering::SeqCst) {
            if does(request, &stream, reply) == Posted::Accepted {
                reply.whole("202 Accepted", "", "");
            }
            return;
        }
        let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
        match request.rpc() {
            "GET" => return serve(&stream, reply),
            "initialize" => stream.event(&request.answer(&json!({
                "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                "serverInfo": { "name": "old", "version": "1" },
            }))),
            "tools/list" => {
                stream.event(&request.answer(&json!({ "tools": [tool("t"), tool("u")] })));
            }
            "tools/call" => stream.event(&request.result("fine")),
            _ => {}
        }
        reply.whole("202 Accepted", "", "");
    });
    Failing {
        row,
        web,
        members: json!({ "type": "sse" }),
        is_broken,
    }
}

/// Says where to post, and then whatever is to be said, until the stream is ended or another one is opened.
fn serve(stream: &Stream, reply: &mut Reply) {
    let (sender, receiver) = channel();
    *stream.0.lock().unwrap() = Some(sender);
    reply.events("");
    reply.raw(b"event: endpoint\ndata: /messages\n\n");
    for bytes in receiver {
        reply.raw(&bytes);
    }
}

#[test]
fn a_fault_of_a_server_over_one_stream_is_told_and_costs_nobody_else() {
    let servers: Vec<_> = CASES
        .iter()
        .map(|(row, does)| failing(*row, *does))
        .collect();
    check(&servers);
}
