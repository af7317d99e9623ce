//! Servers behind HTTP: both transports, both eras. What goes wrong is in `faults` and `http_faults`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::faults::Outcome;
use crate::support::http::{HttpServer, Reply, Request, legacy, modern};
use crate::support::script::answer;
use crate::support::{Client, SOON, Server, Setup, until};

/// What a session and a stream that are lost come to.
pub(crate) const OUTCOMES: &[Outcome] = &[
    Outcome {
        fault: "it has lost its session (404, or a 400 that says so), and eight calls are in flight",
        gets: "the answers",
        after: "at once",
        then: "one new session was made for all of them",
    },
    Outcome {
        fault: "its stream breaks off in a call, and can be resumed",
        gets: "the answer",
        after: "the pause that the server asks for",
        then: "the call was sent once",
    },
];

fn event(data: &str) -> String {
    format!("event: message\ndata: {data}\n\n")
}

fn client(web: &HttpServer, members: serde_json::Value) -> Client {
    Setup::new().entry("web", &web.entry(members)).connect()
}

#[test]
fn a_session_is_opened_kept_and_given_back() {
    let web = HttpServer::with_tool(legacy);
    let entry = web.entry(json!({ "headers": { "X-Key": "a-secret" } }));
    let mut client = Setup::new().alone().entry("web", &entry).connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    client.finish();
    let first = web.first("initialize");
    assert_eq!(
        (
            first.header("mcp-protocol-version"),
            first.header("mcp-session-id")
        ),
        ("", "")
    );
    assert_eq!(
        first.header("accept"),
        "application/json, text/event-stream"
    );
    for method in [
        "notifications/initialized",
        "tools/list",
        "tools/call",
        "GET",
        "DELETE",
    ] {
        let request = web.first(method);
        assert_eq!(request.header("mcp-session-id"), "session-1", "{method}");
        assert_eq!(
            request.header("mcp-protocol-version"),
            "2025-11-25",
            "{method}"
        );
        assert_eq!(request.header("x-key"), "a-secret", "{method}");
        assert_eq!(
            (request.header("mcp-method"), request.path.as_str()),
            ("", "/mcp"),
            "{method}"
        );
    }
    assert_eq!(web.count("DELETE"), 1);
}

/// Answers `t` by `call`, and checks what the agent is told; the tool beside it works before and after.
#[track_caller]
fn around(
    call: impl Fn(&Request, &mut Reply) + Send + Sync + 'static,
    check: impl FnOnce(&mut Client),
) -> HttpServer {
    let web = HttpServer::with_tool(call);
    let setup = Setup::new().entry(
        "web",
        &web.entry(json!({ "headers": { "Authorization": "Bearer sesame-open" } })),
    );
    let mut client = setup
        .server("b", Server::new().tool("v", [answer("too")]))
        .connect();
    assert_eq!(client.execute("web__u").text(), "fine");
    check(&mut client);
    assert_eq!(client.execute("web__u").text(), "fine");
    assert_eq!(client.execute("b__v").text(), "too");
    client.finish();
    web
}

#[test]
fn answers_pass_however_they_come() {
    let result = r#"{"content":[{"type":"text","text":"a\nb"}],"odd":1e400}"#;
    let wrapped = move |request: &Request| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
            request.body["id"]
        )
    };
    #[track_caller]
    fn check(result: &str, call: impl Fn(&Request, &mut Reply) + Send + Sync + 'static) {
        around(call, |client| {
            assert_eq!(client.execute("web__t").result(), result);
        });
    }
    check(result, move |request, reply| reply.json(&wrapped(request)));
    check(result, move |request, reply| {
        reply.json(&format!("[{}]", wrapped(request)));
    });
    check(result, move |request, reply| {
        reply.events("");
        reply.raw(b": hello\n\nid: 1\ndata:\n\n");
        reply.raw(
            event(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#).as_bytes(),
        );
        let (head, tail) = (event(&wrapped(request)), event("{"));
        let (start, end) = head.split_at(40);
        reply.raw(start.as_bytes());
        std::thread::sleep(Duration::from_millis(20));
        reply.raw(format!("{end}{tail}").as_bytes());
    });
    // Line breaks between tokens would break the line that goes to the client.
    check(r#"{"content": [],  "a": 1 }"#, |request, reply| {
        let body = format!(
            "{{\n\"jsonrpc\":\"2.0\",\r\n\"id\":{},\"result\":{{\"content\": [], \n\"a\": 1\n}}}}",
            request.body["id"]
        );
        reply.json(&body);
    });
}

#[test]
fn a_servers_own_requests_are_answered_during_a_call() {
    let web = around(
        |request, reply| {
            reply.events("");
            reply.raw(event(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).as_bytes());
            reply.raw(
                event(
                    r#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{}}"#,
                )
                .as_bytes(),
            );
            for id in ["p", "s"] {
                reply.wait_for("the answer to its own request", |request| {
                    request.body["id"] == id
                });
            }
            reply.raw(event(&request.result("done")).as_bytes());
        },
        |client| assert_eq!(client.execute("web__t").text(), "done"),
    );
    let answers = web.requests();
    let answer = |id: &str| {
        answers
            .iter()
            .find(|request| request.body["id"] == id)
            .unwrap()
            .body
            .clone()
    };
    assert_eq!(answer("p")["result"], json!({}));
    assert_eq!(answer("s")["error"]["code"], -32601);
}

#[test]
fn a_stall_ends_with_the_limit_and_the_server_is_told() {
    let web = around(
        |_, reply| {
            reply.events("");
            reply.hang();
        },
        |client| {
            let start = Instant::now();
            let text = client
                .call("execute_tool", r#"{"name":"web__t","timeout":0.3}"#)
                .tool_error();
            assert!(text.contains("gave no answer within"), "{text}");
            assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        },
    );
    let call = web
        .requests()
        .into_iter()
        .find(|request| request.body["params"]["name"] == "t")
        .unwrap();
    until("the cancellation", || {
        (web.count("notifications/cancelled") == 1).then_some(())
    });
    assert_eq!(
        web.first("notifications/cancelled").body["params"]["requestId"],
        call.body["id"]
    );
}

#[test]
fn a_redirect_to_the_same_origin_is_followed() {
    let web = HttpServer::start(|request, reply| match request.path.as_str() {
        "/mcp" => reply.whole("307 Temporary Redirect", "location: /mcp/\r\n", ""),
        _ => legacy(request, reply),
    });
    let mut client = client(
        &web,
        json!({ "headers": { "Authorization": "Bearer sesame" } }),
    );
    assert_eq!(client.execute("web__t").text(), "fine");
    client.finish();
    let last = web
        .requests()
        .into_iter()
        .rfind(|request| request.path == "/mcp/")
        .unwrap();
    assert_eq!(last.header("authorization"), "Bearer sesame");
}

#[test]
fn a_redirect_that_is_not_followed_is_told_as_it_is() {
    let long = format!("/{}", "x".repeat(1000));
    for (status, location, words, others) in [
        (
            "301 Moved Permanently",
            "/mcp/",
            "/mcp/`, which is not followed: its URL in the configuration is out of date",
            "without end",
        ),
        (
            "301 Moved Permanently",
            &*long,
            "xxx…`, which is not followed",
            &long,
        ),
        (
            "308 Permanent Redirect",
            "/mcp",
            "redirects without end; the last redirect is to `http://",
            "out of date",
        ),
    ] {
        let header = format!("location: {location}\r\n");
        let web = HttpServer::start(move |_, reply| reply.whole(status, &header, ""));
        let mut client = client(&web, json!({}));
        let text = client.execute("web__t").tool_error();
        client.finish();
        assert!(text.contains(words) && !text.contains(others), "{text}");
    }
}

#[test]
fn a_session_that_is_gone_is_opened_anew_once_for_all() {
    for (status, body) in [
        ("404 Not Found", ""),
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID"}}"#,
        ),
    ] {
        let sessions = Arc::new(AtomicUsize::new(0));
        let counted = sessions.clone();
        let web = HttpServer::start(move |request, reply| {
            let current = format!("session-{}", counted.load(Ordering::SeqCst));
            match request.rpc() {
                "initialize" => {
                    let session = counted.fetch_add(1, Ordering::SeqCst) + 1;
                    let result = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": { "name": "w", "version": "1" } });
                    let headers = format!(
                        "content-type: application/json\r\nmcp-session-id: session-{session}\r\n"
                    );
                    reply.whole("200 OK", &headers, &request.answer(&result));
                }
                "tools/call" if request.header("mcp-session-id") != current => {
                    // All of them are refused before the new session is there.
                    std::thread::sleep(Duration::from_millis(100));
                    reply.whole(status, "content-type: application/json\r\n", body);
                }
                _ => legacy(request, reply),
            }
        });
        let mut client = client(&web, json!({}));
        assert_eq!(client.execute("web__t").text(), "fine");
        // As after a restart of the server: it knows none of its sessions.
        sessions.fetch_add(10, Ordering::SeqCst);
        let calls: Vec<u64> = (0..8).map(|_| client.begin_execute("web__t")).collect();
        for call in calls {
            assert_eq!(client.answer(call).text(), "fine", "{status}");
        }
        assert_eq!(web.count("initialize"), 2, "{status}");
        client.finish();
    }
}

#[test]
fn a_stream_that_breaks_off_goes_on_where_it_was() {
    let web = HttpServer::start(|request, reply| match request.rpc() {
        "tools/call" => {
            reply.events("");
            let id = &request.body["id"];
            reply.raw(format!("retry: 50\nid: call-{id}\ndata:\n\n").as_bytes());
            reply.vanish();
        }
        "GET" if !request.header("last-event-id").is_empty() => {
            let id = request
                .header("last-event-id")
                .strip_prefix("call-")
                .unwrap();
            reply.events("");
            let result = r#"{"content":[{"type":"text","text":"resumed"}]}"#;
            reply.raw(
                event(&format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
                ))
                .as_bytes(),
            );
        }
        _ => legacy(request, reply),
    });
    let mut client = client(&web, json!({}));
    assert_eq!(client.execute("web__t").text(), "resumed");
    assert_eq!(web.count("tools/call"), 1);
    client.finish();
}

/// Its tools have names that no header can carry, and one never answers.
fn odd(request: &Request, reply: &mut Reply) {
    match request.rpc() {
        "tools/list" => {
            let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
            let tools = json!({ "resultType": "complete", "tools": [tool("grüße"), tool("slow")] });
            reply.json(&request.answer(&tools));
        }
        "tools/call" if request.body["params"]["name"] == "slow" => {
            reply.events("");
            assert!(reply.hang(), "the exchange was not given up");
        }
        _ => modern(request, reply),
    }
}

#[test]
fn a_modern_server_is_found_out_and_gets_its_headers() {
    let web = HttpServer::start(odd);
    let mut client = client(&web, json!({}));
    assert_eq!(client.execute("web__grüße").text(), "fine");
    client
        .call("execute_tool", r#"{"name":"web__slow","timeout":0.2}"#)
        .tool_error();
    client.finish();
    assert_eq!(
        (
            web.count("initialize"),
            web.count("GET"),
            web.count("DELETE")
        ),
        (1, 0, 0)
    );
    assert_eq!(
        (
            web.count("notifications/initialized"),
            web.count("notifications/cancelled")
        ),
        (0, 0)
    );
    let call = web.first("tools/call");
    assert_eq!(call.header("mcp-method"), "tools/call");
    assert_eq!(call.header("mcp-name"), "=?base64?Z3LDvMOfZQ==?=");
    assert_eq!(call.header("mcp-protocol-version"), "2026-07-28");
    assert_eq!(
        call.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(
        web.first("server/discover").header("mcp-method"),
        "server/discover"
    );
}

#[test]
fn arguments_go_into_headers_where_the_tool_asks_for_it() {
    let web = HttpServer::start(|request, reply| match request.rpc() {
        "tools/list" => {
            let tool = |name: &str, kind: &str| {
                let region = json!({ "type": kind, "x-mcp-header": "Region" });
                json!({ "name": name, "inputSchema": { "type": "object", "properties": { "region": region } } })
            };
            let tools = json!({ "resultType": "complete", "tools": [tool("t", "string"), tool("odd", "number")] });
            reply.json(&request.answer(&tools));
        }
        _ => modern(request, reply),
    });
    let mut client = client(&web, json!({ "era": "modern" }));
    assert_eq!(
        client.execute_with("web__t", r#"{"region":"eu-1"}"#).text(),
        "fine"
    );
    assert_eq!(web.first("tools/call").header("mcp-param-region"), "eu-1");
    assert!(client.execute("web__odd").tool_error().contains("web__odd"));
    assert_eq!(web.count("tools/call"), 1);
    client.finish();
}

#[test]
fn a_fixed_argument_goes_into_its_header_in_a_call_by_the_tools_own_name() {
    let web = HttpServer::start(|request, reply| match request.rpc() {
        "tools/list" => {
            let region = json!({ "type": "string", "x-mcp-header": "Region" });
            let tool = json!({ "name": "t", "inputSchema": { "type": "object", "properties": { "region": region } } });
            let tools = json!({ "resultType": "complete", "tools": [tool] });
            reply.json(&request.answer(&tools));
        }
        _ => modern(request, reply),
    });
    let fixed = json!({ "t": { "arguments": { "region": { "fixed": "eu-1" } } } });
    let entry = web.entry(json!({ "era": "modern", "tools": { "override": fixed } }));
    let setup = Setup::new().entry("web", &entry);
    let mut client = setup.start_with(&["serve", "--direct"]);
    client.shake_hands("2025-11-25");
    assert_eq!(client.call("web__t", "{}").text(), "fine");
    let call = web.first("tools/call");
    assert_eq!(call.body["params"]["arguments"]["region"], "eu-1");
    assert_eq!(call.header("mcp-param-region"), "eu-1");
    client.finish();
}

#[test]
fn the_era_of_the_configuration_is_kept_to() {
    let web = HttpServer::start(odd);
    let mut client = client(&web, json!({ "era": "modern" }));
    assert_eq!(client.execute("web__grüße").text(), "fine");
    client.finish();
    assert_eq!(web.count("initialize"), 0);

    let web = HttpServer::start(odd);
    let mut client = self::client(&web, json!({ "era": "legacy" }));
    let text = client.execute("web__t").tool_error();
    assert!(text.contains("it speaks the modern era only"), "{text}");
    client.finish();
    assert_eq!(web.count("server/discover"), 0);
}

/// A server of 2024-11-05: messages come back on the event stream.
fn old(endpoint: &'static str) -> HttpServer {
    let stream: Arc<std::sync::Mutex<Option<std::sync::mpsc::Sender<String>>>> = Arc::default();
    HttpServer::start(move |request, reply| {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/mcp") => {
                let (sender, receiver) = std::sync::mpsc::channel();
                *stream.lock().unwrap() = Some(sender);
                reply.events("");
                reply.raw(format!("event: endpoint\ndata: {endpoint}\n\n").as_bytes());
                for message in receiver {
                    reply.raw(event(&message).as_bytes());
                }
            }
            ("POST", "/messages") => {
                let say = |message: String| {
                    stream
                        .lock()
                        .unwrap()
                        .as_ref()
                        .unwrap()
                        .send(message)
                        .unwrap();
                };
                match request.rpc() {
                "initialize" => say(request.answer(&json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": { "name": "old", "version": "1" } }))),
                "tools/list" => say(request.answer(&json!({ "tools": [{ "name": "t", "inputSchema": {} }, { "name": "refused", "inputSchema": {} }, { "name": "bye", "inputSchema": {} }] }))),
                "tools/call" if request.body["params"]["name"] == "refused" => return reply.whole("503 Service Unavailable", "", "full"),
                "tools/call" if request.body["params"]["name"] == "bye" => *stream.lock().unwrap() = None,
                "tools/call" => say(request.result("done")),
                _ => {}
            }
                reply.whole("202 Accepted", "", "");
            }
            _ => reply.whole("404 Not Found", "", ""),
        }
    })
}

#[test]
fn the_older_transport_is_spoken_when_asked_for_and_when_found() {
    for members in [json!({ "type": "sse" }), json!({})] {
        let web = old("/messages");
        let mut client = client(&web, members);
        assert_eq!(client.execute("web__t").text(), "done");
        let text = client.execute("web__refused").tool_error();
        assert!(text.contains("HTTP 503: full"), "{text}");
        let text = client.execute("web__bye").tool_error();
        assert!(text.contains("it ended its event stream"), "{text}");
        assert_eq!(client.execute("web__t").text(), "done");
        client.finish();
    }
}

#[test]
fn an_old_server_cannot_send_us_elsewhere() {
    let web = old("http://127.0.0.1:9/messages");
    let mut client = client(&web, json!({ "type": "sse" }));
    let text = client.execute("web__t").tool_error();
    assert!(text.contains("redirects to `http://127.0.0.1:9`"), "{text}");
    client.finish();
}
