//! Too much at once: memory stays bounded, and others go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::Outcome;
use crate::support::http::{HttpServer, legacy};
use crate::support::process::{memory, peak};
use crate::support::script::{answer, deafen, fill, line};
use crate::support::{Client, Server, Setup, until};

pub(super) const OUTCOMES: &[Outcome] = &[
    Outcome {
        fault: "a server floods with unrequested messages, 100 MB of them",
        gets: "its answer, after them",
        after: "once the flood is over",
        then: "memory stays below 60 MB; other servers answer meanwhile",
    },
    Outcome {
        fault: "a server writes 300 MB without a line end",
        gets: "`more than the limit of 67108864`",
        after: "once the line is over",
        then: "memory stays below 120 MB; other servers answer meanwhile",
    },
    Outcome {
        fault: "a server lists 40 pages of 30 MB",
        gets: "`did not list its tools: it has more than 32 MB`; the tools that it listed before",
        after: "the second page",
        then: "memory stays below 120 MB; other servers answer",
    },
    Outcome {
        fault: "a client sends 200 MB of arguments for a server that does not read",
        gets: "`the requests in progress already have … bytes` for requests beyond 128 MB",
        after: "at once",
        then: "memory stays below 220 MB; other servers answer meanwhile",
    },
    Outcome {
        fault: "a client requests 240 MB of results, and does not read",
        gets: "all of them, once it reads",
        after: "as it reads",
        then: "memory stays below 130 MB; servers whose answers it does not read have to wait",
    },
];

pub(super) const MEGABYTE: usize = 1024 * 1024;

/// Checks that the process never had as much memory as `limit`, in megabytes.
#[track_caller]
pub(super) fn assert_peak(client: &Client, limit: usize) {
    let peak = peak(client.process()) / MEGABYTE;
    assert!(peak < limit, "{peak} MB");
}

#[test]
fn a_server_that_floods_fills_no_memory() {
    let news =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":""#;
    let flood = (0..100).map(|_| fill(news, MEGABYTE, r#""}}"#));
    let done =
        line(r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"done"}]}}"#);
    let setup = Setup::new()
        .server("bad", Server::new().tool("t", flood.chain([done])))
        .server("good", Server::new().tool("u", [answer("fine")]))
        .setting("search", json!({ "semantic": false }));
    let mut client = setup.log_level("error").connect();
    assert_eq!(client.execute("good__u").text(), "fine");
    let call = client.begin_execute("bad__t");
    for _ in 0..20 {
        assert_eq!(client.execute("good__u").text(), "fine");
    }
    assert_eq!(client.answer(call).text(), "done");
    assert_peak(&client, 60);
    client.finish();
}

#[test]
fn a_list_of_large_pages_fills_no_memory_and_leaves_the_list_before() {
    let is_large = Arc::new(AtomicBool::new(false));
    let (shared, padding) = (is_large.clone(), "x".repeat(30 * MEGABYTE));
    let web = HttpServer::start(move |request, reply| {
        if request.rpc() != "tools/list" || !shared.load(Ordering::Relaxed) {
            return legacy(request, reply);
        }
        let cursor = request.body["params"]["cursor"].as_str();
        let at: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let tool =
            json!({ "name": format!("large{at}"), "description": padding, "inputSchema": {} });
        let mut page = json!({ "tools": [tool] });
        if at < 39 {
            page["nextCursor"] = (at + 1).to_string().into();
        }
        reply.json(&request.answer(&page));
    });
    let setup = Setup::new()
        .entry("bad", &web.entry(json!({})))
        .server("good", Server::new().tool("u", [answer("fine")]))
        .setting("search", json!({ "semantic": false }));
    let mut client = setup.log_level("error").connect();
    assert_eq!(client.execute("bad__t").text(), "fine");
    is_large.store(true, Ordering::Relaxed);
    client.call("proxy_refresh", r#"{"server":"bad"}"#).text();
    let status = client.call("proxy_status", "{}").text();
    assert!(
        status.contains("did not list its tools: it has more than 32 MB"),
        "{status}"
    );
    assert_eq!(web.count("tools/list"), 3);
    assert_eq!(client.execute("bad__t").text(), "fine");
    assert_eq!(client.execute("good__u").text(), "fine");
    assert_peak(&client, 120);
    client.finish();
}

#[test]
fn a_line_without_an_end_fills_no_memory() {
    let endless = fill(
        r#"{"jsonrpc":"2.0","id":$id,"result":{"x":""#,
        300 * MEGABYTE,
        r#""}}"#,
    );
    let setup = Setup::new()
        .server("bad", Server::new().tool("t", [endless]))
        .server("good", Server::new().tool("u", [answer("fine")]))
        .setting("search", json!({ "semantic": false }));
    let mut client = setup.log_level("error").connect();
    assert_eq!(client.execute("good__u").text(), "fine");
    let call = client.begin_execute("bad__t");
    assert_eq!(client.execute("good__u").text(), "fine");
    let told = client.answer(call).tool_error();
    assert!(told.contains("more than the limit of 67108864"), "{told}");
    assert_peak(&client, 120);
    client.finish();
}

#[test]
fn a_client_that_sends_too_much_fills_no_memory() {
    const CALLS: usize = 10;
    let setup = Setup::new()
        .server("bad", Server::new().tool("t", [deafen()]))
        .server("good", Server::new().tool("u", [answer("fine")]))
        .setting("search", json!({ "semantic": false }));
    let mut client = setup.log_level("error").connect();
    assert_eq!(client.execute("good__u").text(), "fine");
    client.begin_execute("bad__t");
    let text = "x".repeat(20 * MEGABYTE);
    let calls: Vec<u64> = (0..CALLS)
        .map(|_| {
            client.begin(
                "execute_tool",
                &format!(r#"{{"name":"bad__t","arguments":{{"text":"{text}"}}}}"#),
            )
        })
        .collect();
    // 128 MB are taken, and no one of those comes to an end.
    for call in &calls[6..] {
        let refused = client.answer(*call);
        assert!(
            refused
                .as_str()
                .contains("the requests in progress already have 12"),
            "{}",
            refused.as_str()
        );
    }
    assert_eq!(client.execute("good__u").text(), "fine");
    assert_peak(&client, 220);
    client.close_stdin();
    client.signal(rustix::process::Signal::TERM);
    client.wait();
}

#[test]
fn a_client_that_does_not_read_fills_no_memory() {
    const CALLS: u64 = 60;
    let large = fill(
        r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":""#,
        4 * MEGABYTE,
        r#""}]}}"#,
    );
    let setup = Setup::new()
        .server("big", Server::new().tool("t", [large]))
        .setting("results", json!({ "budget": 0 }))
        .setting("search", json!({ "semantic": false }));
    let mut client = setup.log_level("error").connect();
    assert!(client.execute("big__t").text().len() >= 4 * MEGABYTE);
    client.stop_reading();
    let calls: Vec<u64> = (0..CALLS).map(|_| client.begin_execute("big__t")).collect();
    // Nothing more comes in once the memory has been the same for a while.
    let (mut before, mut same) = (0, 0);
    until("the memory to stay the same", || {
        std::thread::sleep(Duration::from_millis(100));
        let now = memory(client.process(), "VmRSS:");
        same = if now == before { same + 1 } else { 0 };
        before = now;
        (same >= 10).then_some(())
    });
    client.read_on();
    for call in calls {
        assert!(client.answer(call).text().len() >= 4 * MEGABYTE);
    }
    assert_peak(&client, 130);
    client.finish();
}
