//! What `mcpzip serve --http` says to its clients: sessions of the older revisions, requests of the newest, and both
//! side by side.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::gateway::{Call, Gateway, Incoming, initialize};
#[cfg(target_os = "linux")]
use crate::support::process::peak;
use crate::support::script::{Step, answer, await_cancel, fill, line, result, sleep};
use crate::support::{SOON, Server, Setup, until};

/// A gateway in front of one server `a` whose tool `t` does these steps.
fn gateway(steps: impl IntoIterator<Item = Step>) -> Gateway {
    Setup::new()
        .server("a", Server::new().tool("t", steps))
        .serve(&[])
}

/// Waits until the fake server has noted so many lines with `text`.
#[track_caller]
fn noted(gateway: &mut Gateway, text: &str, count: usize) {
    until(text, || {
        (gateway.process().home().count("a", text) >= count).then_some(())
    });
}

const PROGRESS: &str = r#","_meta":{"progressToken":"p"}"#;

fn progress() -> Step {
    line(
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}}"#,
    )
}

#[test]
fn each_revision_with_a_session_is_served() {
    let gateway = gateway([answer("done")]);
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = gateway.session_of(version, &json!({}));
        assert!(
            session.id().len() >= 20 && session.id().bytes().all(|byte| byte.is_ascii_graphic())
        );
        let answer = session
            .execute(1, "a__t", "")
            .header("MCP-Protocol-Version", version)
            .send();
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, "application/json")
        );
        assert_eq!(answer.message().text(), "done");
    }
    let answer = gateway.post(&initialize("1999-01-01", &json!({}))).send();
    assert_eq!(answer.message().value()["protocolVersion"], "2025-11-25");
}

#[test]
fn a_handshake_without_a_version_opens_no_session() {
    let answer = gateway([])
        .post(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#)
        .send();
    assert_eq!(
        (answer.status, answer.message().error_code()),
        (200, -32602)
    );
    assert_eq!(answer.header("mcp-session-id"), "");
}

#[test]
fn a_session_must_be_named_and_known_and_ends_when_it_is_deleted() {
    let gateway = gateway([answer("done")]);
    let session = gateway.session();
    let list = session.request(1, "tools/list", "{}");
    assert_eq!(list.send().status, 200);
    assert_eq!(
        list.clone().without("Mcp-Session-Id").send().fault(),
        (400, -32600)
    );
    assert_eq!(
        list.clone()
            .header("Mcp-Session-Id", "guessed")
            .send()
            .fault(),
        (404, -32600)
    );
    assert_eq!(session.delete().status, 200);
    assert_eq!(list.send().status, 404);
    assert_eq!(session.delete().status, 404);
    assert_eq!(gateway.call("DELETE", "/mcp").send().status, 400);
}

/// Servers on stdio read a message per line, so a break between tokens would begin a message that no rule has seen.
#[test]
fn line_breaks_of_a_client_reach_no_server() {
    let forged = r#"{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"delete","arguments":{}}}"#;
    let disk = Server::new()
        .tool("touch", [answer("touched")])
        .tool("delete", [answer("deleted")]);
    let setup = Setup::new().server_with("disk", disk, json!({ "tools": { "deny": ["delete"] } }));
    let gateway = setup.serve(&[]);
    for (end, large) in [("\n", ""), ("\r", ""), ("\r\n", &*"x".repeat(1 << 20))] {
        let arguments =
            format!(r#"{{"a":{end}{forged}{end},"b":{end}[1],"large":"{large}"{end}}}"#);
        let call = format!(
            r#""name":"execute_tool",{end}"arguments":{{"name":"disk__touch","arguments":{arguments}}}"#
        );
        let answer = gateway.modern("tools/call", &call).send();
        assert!(answer.body.contains("touched"), "{answer:?}");
        let answer = gateway
            .session()
            .execute(1, "disk__touch", &format!(r#","x":{end}1"#))
            .send();
        assert_eq!(answer.status, 200);
    }
    let log = setup.home().log("disk");
    let calls: Vec<_> = log
        .lines()
        .filter(|line| line.contains("tools/call"))
        .collect();
    assert!(!calls.is_empty());
    for line in log.lines() {
        assert!(!line.starts_with(&format!("< {forged}")), "{line}");
    }
}

#[test]
fn an_ended_session_cancels_its_requests_and_closes_its_stream() {
    let mut gateway = gateway([await_cancel(), answer("late")]);
    let session = gateway.session();
    let mut stream = session.listen();
    let waiting = session.execute(1, "a__t", "").begin();
    noted(&mut gateway, "tools/call", 1);
    assert_eq!(session.delete().status, 200);
    noted(&mut gateway, "notifications/cancelled", 1);
    assert_eq!(stream.event(), None);
    let (answer, _) = Incoming::read(std::io::BufReader::new(waiting)).whole();
    assert_eq!(
        (answer.header("content-type"), answer.body.as_str()),
        ("text/event-stream", "")
    );
}

#[test]
fn what_wants_no_answer_is_accepted_without_one() {
    let gateway = gateway([]);
    let session = gateway.session();
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"no"}}"#,
    ] {
        let answer = session.post(body).send();
        assert_eq!((answer.status, answer.body.as_str()), (202, ""), "{body}");
    }
}

#[test]
fn the_version_header_must_name_a_known_revision() {
    let gateway = gateway([]);
    let session = gateway.session_of("2025-06-18", &json!({}));
    let list = session.request(1, "tools/list", "{}");
    for (version, status) in [
        ("2025-06-18", 200),
        ("2025-03-26", 200),
        ("1999-01-01", 400),
        ("nonsense", 400),
    ] {
        assert_eq!(
            list.clone()
                .header("MCP-Protocol-Version", version)
                .send()
                .status,
            status,
            "{version}"
        );
    }
}

#[test]
fn a_batch_is_answered_as_an_array_where_the_revision_has_batches() {
    let gateway = gateway([answer("done")]);
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"b","method":"tools/list"}]"#;
    let old = gateway.session_of("2025-03-26", &json!({}));
    let answers: Value = serde_json::from_str(&old.post(batch).send().body).unwrap();
    assert_eq!(answers.as_array().unwrap().len(), 2);
    let none = old
        .post(r#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#)
        .send();
    assert_eq!((none.status, none.body.as_str()), (202, ""));
    assert_eq!(gateway.session().post(batch).send().fault(), (400, -32600));
}

#[test]
fn what_is_no_message_is_refused_with_a_reason() {
    let gateway = gateway([]);
    let session = gateway.session();
    assert_eq!(session.post("{nonsense").send().fault(), (400, -32700));
    assert_eq!(session.post("").send().fault(), (400, -32700));
    assert_eq!(
        session
            .post(r#"{"jsonrpc":"2.0","id":3,"method":5}"#)
            .send()
            .fault(),
        (400, -32600)
    );
    let ping = session.request(1, "ping", "{}");
    assert_eq!(
        ping.clone()
            .header("Content-Type", "text/plain")
            .send()
            .fault(),
        (415, -32600)
    );
    assert_eq!(
        ping.clone().without("Content-Type").send().fault(),
        (415, -32600)
    );
    assert_eq!(
        ping.clone()
            .header("Content-Type", "Application/JSON; charset=utf-8")
            .send()
            .status,
        200
    );
    assert_eq!(
        ping.clone().header("Accept", "text/html").send().fault(),
        (406, -32600)
    );
    for accept in ["*/*", "application/json", "application/*, text/*"] {
        assert_eq!(
            ping.clone()
                .header("Accept", accept)
                .send()
                .header("content-type"),
            "application/json",
            "{accept}"
        );
    }
    let events = ping.header("Accept", "text/event-stream").send();
    assert_eq!(events.header("content-type"), "text/event-stream");
    assert_eq!(events.message().result(), "{}");
}

#[test]
fn a_message_over_the_limit_is_refused_by_its_size() {
    let gateway = gateway([]);
    let session = gateway.session();
    let declared = session.post("").header("Content-Length", "67108865").send();
    assert_eq!(declared.fault(), (413, -32600));
    assert!(
        declared.message().error()["message"]
            .as_str()
            .unwrap()
            .contains("67108864"),
        "{declared:?}"
    );
    // Without a declared length, it is counted.
    let mut stream = session
        .post("")
        .without("Content-Length")
        .header("Transfer-Encoding", "chunked")
        .begin();
    let chunk = [
        b"100000\r\n".to_vec(),
        vec![b' '; 0x10_0000],
        b"\r\n".to_vec(),
    ]
    .concat();
    for _ in 0..65 {
        if stream.write_all(&chunk).is_err() {
            break;
        }
    }
    assert_eq!(
        Incoming::read(std::io::BufReader::new(stream)).status(),
        413
    );
}

#[test]
fn a_large_message_is_taken() {
    let gateway = gateway([answer("done")]);
    let arguments = format!(r#","filler":"{}""#, "x".repeat(10_000_000));
    assert_eq!(
        gateway
            .session()
            .execute(1, "a__t", &arguments)
            .send()
            .message()
            .text(),
        "done"
    );
}

#[test]
fn other_methods_and_places_are_refused() {
    let gateway = gateway([]);
    for method in ["PUT", "PATCH", "OPTIONS"] {
        let answer = gateway.call(method, "/mcp").send();
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, "GET, POST, DELETE"),
            "{method}"
        );
    }
    let without_session = gateway
        .call("GET", "/mcp")
        .header("Accept", "text/event-stream")
        .send();
    assert_eq!(
        (without_session.status, without_session.header("allow")),
        (405, "POST")
    );
    assert_eq!(gateway.call("GET", "/elsewhere").send().status, 404);
}

#[test]
fn a_call_with_progress_is_answered_by_a_stream_that_ends_behind_the_answer() {
    let gateway = gateway([progress(), sleep(50), answer("done")]);
    let mut stream = gateway.session().execute(1, "a__t", PROGRESS).open();
    assert_eq!(
        (stream.status(), stream.header("content-type")),
        (200, "text/event-stream")
    );
    assert_eq!(stream.header("x-accel-buffering"), "no");
    assert_eq!(stream.header("cache-control"), "no-cache, no-transform");
    let progress = stream.message();
    assert!(progress.is_notification("notifications/progress"));
    assert_eq!(
        serde_json::from_str::<Value>(progress.params()).unwrap()["progressToken"],
        "p"
    );
    assert_eq!(stream.message().text(), "done");
    assert_eq!(stream.event(), None);
}

#[test]
fn a_client_that_takes_json_only_gets_the_answer_alone() {
    let gateway = gateway([progress(), answer("done")]);
    let answer = gateway
        .session()
        .execute(1, "a__t", PROGRESS)
        .header("Accept", "application/json")
        .send();
    assert_eq!(
        (
            answer.header("content-type"),
            answer.message().text().as_str()
        ),
        ("application/json", "done")
    );
}

#[test]
fn a_slow_call_shows_that_something_is_going_on() {
    let gateway = gateway([await_cancel()]);
    // There is no answer, so what comes is the head alone.
    let stream = gateway.session().execute(1, "a__t", "").open();
    assert_eq!(stream.header("content-type"), "text/event-stream");
}

#[test]
fn a_server_asks_the_client_of_its_call_and_gets_the_answer() {
    let question = r#"{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}}"#;
    let mut gateway = gateway([line(question), sleep(800), answer("done")]);
    let session = gateway.session_of("2025-11-25", &json!({ "elicitation": {} }));
    let other = gateway.session_of("2025-11-25", &json!({ "elicitation": {} }));
    let mut silent = other.listen();
    let mut stream = session.execute(1, "a__t", "").open();
    let asked = stream.message();
    assert!(
        asked.as_str().contains(r#""method":"elicitation/create""#),
        "{asked:?}"
    );
    let reply = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#,
        asked.id()
    );
    assert_eq!(session.post(&reply).send().status, 202);
    assert_eq!(stream.message().text(), "done");
    assert_eq!(
        gateway.process().home().count("a", r#""action":"decline""#),
        1
    );
    assert_eq!(other.delete().status, 200);
    assert_eq!(silent.event(), None);
}

/// A log message that belongs to no call.
fn unasked(text: &str) -> Step {
    line(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{text}"}}}}"#
    ))
}

#[test]
fn unasked_messages_come_on_the_stream_that_was_opened_last() {
    let gateway = gateway([answer("done"), sleep(300), unasked("hello")]);
    let session = gateway.session();
    let mut old = session.listen();
    let mut new = session.listen();
    assert_eq!(old.event(), None);
    let mut other = gateway.session().listen();
    assert_eq!(
        session.execute(1, "a__t", "").send().message().text(),
        "done"
    );
    for stream in [&mut new, &mut other] {
        assert!(stream.message().params().contains("hello"));
    }
}

#[test]
fn sessions_see_their_own_messages_only() {
    let gateway = gateway([progress(), sleep(300), progress(), answer("$id")]);
    let sessions = [gateway.session(), gateway.session()];
    let mut streams: Vec<Incoming> = (0..2)
        .map(|at| {
            sessions[at]
                .execute(
                    1,
                    "a__t",
                    &format!(r#","_meta":{{"progressToken":"of {at}"}}"#),
                )
                .open()
        })
        .collect();
    for (at, stream) in streams.iter_mut().enumerate() {
        for _ in 0..2 {
            assert!(stream.message().params().contains(&format!("of {at}")));
        }
        assert_eq!(stream.message().id(), "1");
        assert_eq!(stream.event(), None);
    }
}

#[test]
fn a_legacy_client_that_leaves_does_not_cancel_and_a_notification_does() {
    let mut gateway = gateway([await_cancel(), answer("late")]);
    let session = gateway.session();
    drop(session.execute(1, "a__t", "").begin());
    noted(&mut gateway, "tools/call", 1);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(
        gateway
            .process()
            .home()
            .count("a", "notifications/cancelled"),
        0
    );
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(session.post(cancel).send().status, 202);
    noted(&mut gateway, "notifications/cancelled", 1);
}

#[test]
fn a_modern_client_needs_no_session_and_is_answered_in_its_form() {
    let gateway = gateway([answer("done")]);
    let discovered = gateway.modern("server/discover", "").send();
    assert_eq!(discovered.status, 200);
    assert_eq!(
        discovered.message().value()["supportedVersions"],
        json!(["2026-07-28"])
    );
    let call = gateway
        .modern_execute("a__t", "")
        .header("Mcp-Session-Id", "nonsense")
        .header("Last-Event-ID", "5");
    let answer = call.send();
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/json")
    );
    assert_eq!(answer.header("mcp-session-id"), "");
    assert_eq!(answer.message().value()["resultType"], "complete");
    assert_eq!(answer.message().text(), "done");
    assert_eq!(
        gateway
            .post(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#)
            .header("MCP-Protocol-Version", "2026-07-28")
            .send()
            .status,
        202
    );
}

#[test]
fn the_headers_of_a_modern_request_must_say_what_its_body_says() {
    let gateway = gateway([answer("done")]);
    let call = || gateway.modern_execute("a__t", "");
    assert_eq!(
        call()
            .header("Mcp-Name", "=?base64?ZXhlY3V0ZV90b29s?=")
            .send()
            .message()
            .text(),
        "done"
    );
    assert_eq!(
        call().header("Mcp-Name", "  execute_tool  ").send().status,
        200
    );
    for (what, wrong) in [
        ("no version", call().without("MCP-Protocol-Version")),
        (
            "another version",
            call().header("MCP-Protocol-Version", "2025-11-25"),
        ),
        ("no method", call().without("Mcp-Method")),
        ("another method", call().header("Mcp-Method", "tools/list")),
        ("another case", call().header("Mcp-Method", "TOOLS/CALL")),
        ("no name", call().without("Mcp-Name")),
        ("another name", call().header("Mcp-Name", "search_tools")),
        (
            "a name in broken base64",
            call().header("Mcp-Name", "=?base64?ZXhlY3V0ZV90b29s!?="),
        ),
    ] {
        let answer = wrong.send();
        assert_eq!(answer.fault(), (400, -32020), "{what}");
        assert_eq!(answer.message().id(), "7", "{what}");
    }
}

#[test]
fn the_faults_of_a_modern_request_have_their_status() {
    let gateway = gateway([answer("done")]);
    let request = |method: &str, meta: &str, version: &str| {
        gateway
            .post(&format!(
                r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{{{meta}}}}}"#
            ))
            .header("MCP-Protocol-Version", version)
            .header("Mcp-Method", method)
    };
    let version =
        |version: &str| format!(r#""io.modelcontextprotocol/protocolVersion":"{version}""#);
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    let current = version("2026-07-28");
    for meta in [
        String::new(),
        format!(r#""_meta":{{{current}}}"#),
        format!(r#""_meta":{{{capabilities}}}"#),
    ] {
        let answer = request("tools/list", &meta, "2026-07-28").send();
        assert_eq!(
            (answer.fault(), answer.message().id()),
            ((400, -32602), "\"x\""),
            "{meta}"
        );
    }
    for unknown in ["2031-01-01", "v999.0.0", "2025-11-25"] {
        let meta = format!(r#""_meta":{{{},{capabilities}}}"#, version(unknown));
        let answer = request("tools/list", &meta, unknown).send();
        assert_eq!(answer.fault(), (400, -32022), "{unknown}");
        assert_eq!(
            answer.message().error()["data"],
            json!({ "supported": ["2026-07-28"], "requested": unknown })
        );
    }
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "unknown/method",
    ] {
        assert_eq!(
            gateway.modern(method, "").send().fault(),
            (404, -32601),
            "{method}"
        );
    }
    let unknown_tool = gateway.modern("tools/call", r#""name":"nothing""#).send();
    assert_eq!(unknown_tool.fault(), (200, -32602));
    for method in ["GET", "DELETE"] {
        let call = gateway
            .call(method, "/mcp")
            .header("MCP-Protocol-Version", "2026-07-28");
        let answer = call.header("Accept", "text/event-stream").send();
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, "POST"),
            "{method}"
        );
    }
    let batch = gateway.post(&format!("[{}]", initialize("2025-11-25", &json!({}))));
    assert_eq!(
        batch
            .header("MCP-Protocol-Version", "2026-07-28")
            .send()
            .fault(),
        (400, -32600)
    );
}

#[test]
fn a_modern_client_that_leaves_cancels() {
    let mut gateway = gateway([await_cancel(), answer("late")]);
    // Before the head of the answer is there,
    let connection = gateway.modern_execute("a__t", "").begin();
    noted(&mut gateway, "tools/call", 1);
    drop(connection);
    noted(&mut gateway, "notifications/cancelled", 1);
    // and in its stream.
    let stream = gateway
        .modern_execute("a__t", "")
        .header("Accept", "text/event-stream")
        .open();
    noted(&mut gateway, "tools/call", 2);
    drop(stream);
    noted(&mut gateway, "notifications/cancelled", 2);
}

#[cfg(unix)]
#[test]
fn a_subscription_is_acknowledged_and_ends_in_good_order() {
    let mut gateway = gateway([]);
    let mut stream = gateway
        .modern(
            "subscriptions/listen",
            r#""notifications":{"toolsListChanged":true}"#,
        )
        .open();
    assert!(
        stream
            .message()
            .is_notification("notifications/subscriptions/acknowledged")
    );
    gateway.process().signal(rustix::process::Signal::TERM);
    let end = stream.message();
    assert_eq!(
        (end.id(), end.value()["resultType"].as_str()),
        ("7", Some("complete"))
    );
    assert_eq!(stream.event(), None);
    assert!(gateway.process().wait().success());
}

#[test]
fn a_connection_carries_requests_of_both_eras_in_turn() {
    let gateway = gateway([answer("done")]);
    let session = gateway.session();
    let (_, mut connection) = session.request(1, "ping", "{}").open().whole();
    for _ in 0..3 {
        for call in [
            session.execute(1, "a__t", ""),
            gateway.modern_execute("a__t", ""),
        ] {
            let (answer, back) = call.send_on(connection);
            assert_eq!(answer.message().text(), "done");
            connection = back;
        }
    }
}

#[test]
fn many_calls_in_flight_run_side_by_side() {
    let gateway = gateway([sleep(500), answer("done")]);
    let session = gateway.session();
    session.execute(999, "a__t", "").send();
    let start = Instant::now();
    let calls: Vec<_> = (0..256)
        .map(|id| session.execute(id, "a__t", "").begin())
        .collect();
    for (id, stream) in calls.into_iter().enumerate() {
        let (answer, _) = Incoming::read(std::io::BufReader::new(stream)).whole();
        assert_eq!(
            (answer.message().id(), answer.message().text().as_str()),
            (id.to_string().as_str(), "done")
        );
    }
    assert!(
        start.elapsed() < SOON,
        "one after the other: {:?}",
        start.elapsed()
    );
}

#[test]
fn a_large_result_passes_whole_in_both_forms() {
    let setup = Setup::new().server(
        "a",
        Server::new().tool(
            "t",
            [fill(
                r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":""#,
                10_000_000,
                r#""}]}}"#,
            )],
        ),
    );
    let gateway = setup
        .setting("results", serde_json::json!({ "budget": 0 }))
        .serve(&[]);
    let session = gateway.session();
    for accept in ["application/json", "text/event-stream"] {
        let answer = session
            .execute(1, "a__t", "")
            .header("Accept", accept)
            .send();
        assert_eq!(answer.header("content-type"), accept);
        assert_eq!(answer.message().text().len(), 10_000_000, "{accept}");
    }
}

#[test]
fn odd_bytes_pass_in_both_forms() {
    let odd = [
        r#"{"content":[{"type":"hologram","data":[1,2]}],"structuredContent":{"a":1.0,"b":-0.0,"c":1E+2,"d":1e400},"extra":1,"extra":2}"#,
        r#"{"content":[{"type":"text","text":"cut \ud83d \u00e9\/\n\r\u2028"}]}"#,
        "{\"content\":[{\"type\":\"text\",\"text\":\"\u{2028}\u{85}\u{1f600}\u{7f}\"}]}",
        r#"{ "content" :	[ ] , "isError" : false }"#,
    ];
    let tools = odd.iter().enumerate();
    let server = tools.fold(Server::new(), |server, (at, json)| {
        server.tool(&format!("t{at}"), [result(json)])
    });
    let gateway = Setup::new().server("a", server).serve(&[]);
    let session = gateway.session();
    for (at, expected) in odd.iter().enumerate() {
        for accept in ["application/json", "text/event-stream"] {
            let call = session
                .execute(1, &format!("a__t{at}"), "")
                .header("Accept", accept);
            assert_eq!(call.send().message().result(), *expected, "{accept}");
        }
    }
}

#[test]
fn a_client_that_does_not_read_delays_nobody_and_costs_little() {
    let text = "x".repeat(1_000_000);
    let notice = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$token,"progress":1,"message":"{text}"}}}}"#
    );
    let flood: Vec<Step> = (0..200)
        .map(|_| line(&notice))
        .chain([answer("done")])
        .collect();
    let server = Server::new()
        .tool("flood", flood)
        .tool("quick", [answer("quick")]);
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unused_mut, reason = "only Linux says how much memory it took")
    )]
    let mut gateway = Setup::new().server("a", server).serve(&[]);
    let session = gateway.session();
    session.execute(0, "a__quick", "").send();
    let mut stuck: Vec<_> = (1..4)
        .map(|id| session.execute(id, "a__flood", PROGRESS).begin())
        .collect();
    stuck
        .iter_mut()
        .for_each(|stream| stream.read_exact(&mut [0; 1000]).unwrap());
    let start = Instant::now();
    for id in 10..20 {
        assert_eq!(
            session.execute(id, "a__quick", "").send().message().text(),
            "quick"
        );
    }
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    #[cfg(target_os = "linux")]
    {
        let peak = peak(gateway.process().process());
        // 600 MB were sent by the server.
        assert!(peak < 200_000_000, "{peak} bytes");
    }
}

#[test]
fn old_clients_get_everything_on_one_stream() {
    let mut gateway = gateway([progress(), answer("done")]);
    let mut stream = gateway
        .call("GET", "/sse")
        .header("Accept", "text/event-stream")
        .open();
    let endpoint = stream.event().unwrap();
    assert_eq!(endpoint.kind, "endpoint");
    let path = endpoint.data;
    assert!(path.starts_with('/'), "{path}");
    let post = |body: &str| -> Call {
        gateway
            .call("POST", &path)
            .header("Content-Type", "application/json")
            .body(body)
    };
    assert_eq!(
        post(&initialize("2024-11-05", &json!({}))).send().status,
        202
    );
    assert_eq!(stream.message().value()["protocolVersion"], "2024-11-05");
    let call = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"execute_tool","arguments":{"name":"a__t"},"_meta":{"progressToken":"p"}}}"#;
    assert_eq!(post(call).send().status, 202);
    assert!(stream.message().is_notification("notifications/progress"));
    let answer = stream.message();
    assert_eq!((answer.id(), answer.text().as_str()), ("5", "done"));
    assert_eq!(post("{nonsense").send().fault(), (400, -32700));
    assert_eq!(
        gateway
            .call("POST", "/message?sessionId=guessed")
            .header("Content-Type", "application/json")
            .send()
            .status,
        404
    );
    assert_eq!(gateway.call("POST", "/message").send().status, 400);
    assert_eq!(gateway.call("POST", "/sse").send().status, 405);
    // The two transports do not know each other's sessions.
    let id = path.split_once('=').unwrap().1;
    assert_eq!(
        gateway
            .post(call)
            .header("Mcp-Session-Id", id)
            .send()
            .status,
        404
    );
    drop(stream);
    until("the session to end", || {
        (post(call).send().status == 404).then_some(())
    });
    gateway.process();
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_at_once_and_what_is_under_way_is_told() {
    let mut gateway = gateway([await_cancel()]);
    let session = gateway.session();
    let mut listening = session.listen();
    let mut old = gateway
        .call("GET", "/sse")
        .header("Accept", "text/event-stream")
        .open();
    assert_eq!(old.event().unwrap().kind, "endpoint");
    let waiting = session.execute(1, "a__t", "").begin();
    noted(&mut gateway, "tools/call", 1);
    let start = Instant::now();
    gateway.process().signal(rustix::process::Signal::TERM);
    assert!(gateway.process().wait().success());
    let elapsed = start.elapsed();
    assert!(elapsed < SOON, "it took {elapsed:?}");
    assert_eq!((listening.event(), old.event()), (None, None));
    let (answer, _) = Incoming::read(std::io::BufReader::new(waiting)).whole();
    // A status of 503 would let a balancer repeat a call that may have acted.
    assert_eq!(answer.status, 200);
    let told = answer.message().tool_error();
    assert!(told.contains("may have acted"), "{told}");
    assert_eq!(answer.message().id(), "1");
}

#[cfg(unix)]
#[test]
fn a_silent_stream_says_that_it_is_still_there() {
    let mut gateway = Setup::new().serve(&[]);
    let mut stream = gateway.session().listen();
    stream.priming_event();
    let start = Instant::now();
    assert_eq!(stream.comment(), ": still here\n\n");
    assert!(
        start.elapsed() > Duration::from_secs(10),
        "no sooner than it needs to"
    );
    gateway.process().signal(rustix::process::Signal::TERM);
    assert_eq!(stream.event().map(|event| event.data), None);
}

#[test]
fn of_too_many_sessions_one_that_was_only_opened_goes_and_a_used_one_stays() {
    let gateway = Setup::new().serve(&[]);
    let open = || gateway.post(&initialize("2025-11-25", &json!({}))).send();
    let oldest = open().header("mcp-session-id").to_owned();
    let held = gateway.session();
    let _stream = held.listen();
    let refused = (0..1_060)
        .map(|_| open())
        .find(|answer| answer.status != 200);
    assert_eq!(refused.map(|answer| answer.status), Some(503));
    until("room for a session", || {
        (open().status == 200).then_some(())
    });
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let lost = gateway.post(ping).header("Mcp-Session-Id", &oldest).send();
    assert_eq!(lost.fault().0, 404);
    assert_eq!(held.request(1, "ping", "{}").send().status, 200);
}
