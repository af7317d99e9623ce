//! Traces: what a collector gets, what servers are told, and that a collector which does not answer is nobody's problem.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::closed_port::ClosedPort;
use crate::support::gateway::Gateway;
use crate::support::http::{HttpServer, legacy};
use crate::support::script::{answer, echo, error, result};
use crate::support::{Client, Server, Setup, until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

/// A span as a collector got it.
#[derive(Debug, Clone)]
struct Span(Value);

impl Span {
    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }

    /// The text of an attribute, empty where there is none.
    fn says(&self, key: &str) -> &str {
        let attributes = self.0["attributes"]
            .as_array()
            .expect("a span has attributes");
        let found = attributes.iter().find(|attribute| attribute["key"] == key);
        found.map_or("", |attribute| {
            attribute["value"]["stringValue"]
                .as_str()
                .expect("it is a text")
        })
    }

    fn parent(&self) -> String {
        format!("00-{}-{}-01", self.text("traceId"), self.text("spanId"))
    }

    fn is_server(&self) -> bool {
        self.0["kind"] == 2
    }
}

/// A collector that takes everything.
fn collector() -> HttpServer {
    HttpServer::start(|_, reply| reply.json("{}"))
}

/// The spans that came, each of the form that the specification has.
fn spans(collector: &HttpServer) -> Vec<Span> {
    let mut spans = Vec::new();
    for request in collector.requests() {
        assert_eq!(
            (request.method.as_str(), request.path.as_str()),
            ("POST", "/v1/traces")
        );
        assert_eq!(request.header("content-type"), "application/json");
        for of_resource in request.body["resourceSpans"]
            .as_array()
            .expect("spans stand by resource")
        {
            for of_scope in of_resource["scopeSpans"].as_array().expect("and by scope") {
                assert_eq!(of_scope["scope"]["name"], "mcpzip");
                spans.extend(
                    of_scope["spans"]
                        .as_array()
                        .expect("they are a list")
                        .iter()
                        .cloned()
                        .map(Span),
                );
            }
        }
    }
    for span in &spans {
        let is_id = |key: &str, length: usize| {
            let id = span.text(key);
            id.len() == length
                && id
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        assert!(is_id("traceId", 32) && is_id("spanId", 16), "{span:?}");
        assert!(
            span.0.get("parentSpanId").is_none() || is_id("parentSpanId", 16),
            "{span:?}"
        );
        let time = |key: &str| {
            span.text(key)
                .parse::<u64>()
                .unwrap_or_else(|_| panic!("no time: {span:?}"))
        };
        assert!(
            time("startTimeUnixNano") > 0 && time("endTimeUnixNano") >= time("startTimeUnixNano"),
            "{span:?}"
        );
        assert!(
            [2, 3].map(Value::from).contains(&span.0["kind"]) && !span.text("name").is_empty(),
            "{span:?}"
        );
        let has_failed = !span.says("error.type").is_empty();
        assert_eq!(span.0["status"]["code"] == 2, has_failed, "{span:?}");
    }
    spans
}

/// Waits for the span of a name on one of the two sides of a request.
#[track_caller]
fn span(collector: &HttpServer, is_server: bool, name: &str) -> Span {
    until(&format!("the span `{name}`"), || {
        spans(collector)
            .into_iter()
            .find(|span| span.is_server() == is_server && span.text("name") == name)
    })
}

fn sent_to(collector: &HttpServer, setup: Setup) -> Setup {
    setup
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url(""))
        .variable("OTEL_BSP_SCHEDULE_DELAY", "20")
}

fn setup() -> Setup {
    Setup::new().server("a", Server::new().tool("t", [echo()]))
}

/// Executes `a__t`, which answers with what it was sent; the `_meta` of that.
#[track_caller]
fn meta_of(client: &mut Client, meta: &str) -> BTreeMap<String, Value> {
    let params =
        format!(r#"{{"name":"execute_tool","arguments":{{"name":"a__t"}},"_meta":{meta}}}"#);
    let sent = client.ask("tools/call", &params).value()["structuredContent"]["_meta"].clone();
    sent.as_object()
        .map(|meta| meta.clone().into_iter().collect())
        .unwrap_or_default()
}

#[test]
fn a_call_has_a_span_in_the_clients_trace_and_in_it_one_for_the_server() {
    let collector = collector();
    let mut client = sent_to(&collector, setup())
        .variable("OTEL_SERVICE_NAME", "gateway")
        .variable("OTEL_EXPORTER_OTLP_HEADERS", "x-key=collector%20key")
        .connect();
    let meta = meta_of(
        &mut client,
        &format!(r#"{{"traceparent":"{PARENT}","tracestate":"a=1,b=2","x":1}}"#),
    );
    let server = span(&collector, true, "tools/call execute_tool");
    let call = span(&collector, false, "tools/call t");
    assert_eq!(
        (server.text("traceId"), server.text("parentSpanId")),
        (TRACE, "00f067aa0ba902b7")
    );
    assert_eq!(
        (call.text("traceId"), call.text("parentSpanId")),
        (TRACE, server.text("spanId"))
    );
    assert_eq!(
        (server.text("traceState"), call.text("traceState")),
        ("a=1,b=2", "a=1,b=2")
    );
    // The tool's server goes on from the inner one.
    assert_eq!(meta["traceparent"], call.parent());
    assert_eq!(
        (meta["tracestate"].as_str(), &meta["x"], meta.len()),
        (Some("a=1,b=2"), &json!(1), 3)
    );
    for (key, said) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "execute_tool"),
        ("mcp.protocol.version", "2025-11-25"),
        ("network.transport", "pipe"),
        ("error.type", ""),
    ] {
        assert_eq!(server.says(key), said, "{key}");
    }
    for (key, said) in [
        ("gen_ai.tool.name", "t"),
        ("mcpzip.server", "a"),
        ("network.transport", "pipe"),
        ("error.type", ""),
    ] {
        assert_eq!(call.says(key), said, "{key}");
    }
    assert_eq!(server.says("jsonrpc.request.id"), "2");
    assert!(
        call.says("jsonrpc.request.id").parse::<u64>().is_ok(),
        "{call:?}"
    );
    let request = collector.requests().remove(0);
    assert_eq!(request.header("x-key"), "collector key");
    let resource = &request.body["resourceSpans"][0]["resource"]["attributes"];
    let name = json!({ "key": "service.name", "value": { "stringValue": "gateway" } });
    assert!(resource.as_array().unwrap().contains(&name), "{resource}");
    client.finish();
}

#[test]
fn a_request_outside_of_any_trace_begins_one() {
    let collector = collector();
    let mut client = sent_to(&collector, setup()).connect();
    let meta = meta_of(&mut client, "{}");
    let server = span(&collector, true, "tools/call execute_tool");
    assert!(server.0.get("parentSpanId").is_none(), "{server:?}");
    assert_eq!(
        meta["traceparent"],
        span(&collector, false, "tools/call t").parent()
    );
    assert_ne!(
        server.text("traceId"),
        span(&collector, true, "initialize").text("traceId")
    );
    // What cannot be understood is no trace.
    let meta = meta_of(&mut client, r#"{"traceparent":"00-1-2-3"}"#);
    assert!(
        meta["traceparent"].as_str().unwrap().len() == PARENT.len(),
        "{meta:?}"
    );
    client.finish();
}

#[test]
fn errors_are_told_by_their_kind() {
    let collector = collector();
    let server = Server::new()
        .tool("fails", [result(r#"{"content":[],"isError":true}"#)])
        .tool(
            "refuses",
            [error(
                r#"{"code":-32050,"message":"not hunter2-secret today"}"#,
            )],
        );
    let setup = Setup::new().server_with(
        "a",
        server,
        json!({ "env": { "API_TOKEN": "hunter2-secret" } }),
    );
    let mut client = sent_to(&collector, setup).connect();
    client.execute("a__fails");
    client.execute("a__refuses");
    client.ask("no/such", "{}");
    let failed = span(&collector, false, "tools/call fails");
    assert_eq!(
        (
            failed.says("error.type"),
            failed.says("rpc.response.status_code")
        ),
        ("tool_error", "")
    );
    let refused = span(&collector, false, "tools/call refuses");
    assert_eq!(
        (
            refused.says("error.type"),
            refused.says("rpc.response.status_code")
        ),
        ("-32050", "-32050")
    );
    assert_eq!(refused.0["status"]["message"], "not *** today");
    assert_eq!(
        span(&collector, true, "tools/call execute_tool").says("error.type"),
        "tool_error"
    );
    assert_eq!(
        span(&collector, true, "no/such").says("error.type"),
        "-32601"
    );
    client.finish();
}

#[test]
fn a_trace_that_is_not_recorded_passes_as_such() {
    let collector = collector();
    let mut client = sent_to(&collector, setup()).connect();
    let meta = meta_of(&mut client, &format!(r#"{{"traceparent":"{UNSAMPLED}"}}"#));
    let told = meta["traceparent"].as_str().unwrap();
    assert!(
        told.contains(TRACE) && told.ends_with("-00") && told != UNSAMPLED,
        "{told}"
    );
    // Spans go in order, so the first one would be there when the second is.
    client.ask("ping", "{}");
    span(&collector, true, "ping");
    assert!(
        !spans(&collector)
            .iter()
            .any(|span| span.text("traceId") == TRACE)
    );
    client.finish();
}

#[test]
fn the_last_spans_are_sent_at_the_end() {
    let collector = collector();
    let setup = sent_to(&collector, setup()).variable("OTEL_BSP_SCHEDULE_DELAY", "600000");
    // They have a second, which may not be enough for one run on a busy machine.
    until("the spans of a run", || {
        let mut client = setup.connect();
        meta_of(&mut client, "{}");
        client.finish();
        spans(&collector)
            .into_iter()
            .find(|span| span.text("name") == "tools/call t")
    });
}

#[test]
fn without_a_collector_a_trace_passes_as_it_came() {
    let mut client = setup().connect();
    for meta in [
        format!(r#"{{"traceparent":"{PARENT}","tracestate":"a=1","baggage":"b=2"}}"#),
        r#"{"traceparent":"00-1-2-3"}"#.to_owned(),
        r#"{"tracestate":"alone"}"#.to_owned(),
    ] {
        let sent: BTreeMap<String, Value> = serde_json::from_str(&meta).unwrap();
        assert_eq!(meta_of(&mut client, &meta), sent);
    }
    assert!(meta_of(&mut client, "{}").is_empty());
    client.finish();
}

/// A server behind HTTP, and what it is told with each call.
fn told(setup: Setup, headers: &[(&str, &str)], meta: &str) -> (String, Value) {
    let web = HttpServer::start(legacy);
    told_by(
        &setup.entry("web", &web.entry(json!({}))).serve(&[]),
        &web,
        headers,
        meta,
    )
}

fn told_by(
    gateway: &Gateway,
    web: &HttpServer,
    headers: &[(&str, &str)],
    meta: &str,
) -> (String, Value) {
    let more = format!(r#","_meta":{meta}"#);
    let call = gateway.session().execute(1, "web__t", &more);
    let call = headers
        .iter()
        .fold(call, |call, (name, value)| call.header(name, value));
    assert_eq!(call.send().message().text(), "fine");
    let request = web.first("tools/call");
    let states = (
        request.header("tracestate"),
        request.body["params"]["_meta"]["tracestate"].as_str(),
    );
    assert_eq!(states.0, states.1.unwrap_or_default());
    (
        request.header("traceparent").to_owned(),
        request.body["params"]["_meta"]["traceparent"].clone(),
    )
}

#[test]
fn over_http_a_trace_is_told_in_the_message_and_beside_it() {
    let other = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [("traceparent", PARENT), ("tracestate", "a=1")];
    assert_eq!(
        told(Setup::new(), &headers, "{}"),
        (PARENT.to_owned(), json!(PARENT))
    );
    // The message is the one that the protocol means.
    let meta = format!(r#"{{"traceparent":"{other}"}}"#);
    assert_eq!(
        told(Setup::new(), &headers, &meta),
        (other.to_owned(), json!(other))
    );
    assert_eq!(
        told(Setup::new(), &[("traceparent", "nonsense")], "{}"),
        (String::new(), Value::Null)
    );

    let collector = collector();
    let web = HttpServer::start(legacy);
    let gateway = sent_to(&collector, Setup::new().entry("web", &web.entry(json!({})))).serve(&[]);
    let (header, meta) = told_by(&gateway, &web, &headers, "{}");
    let call = span(&collector, false, "tools/call t");
    assert_eq!(
        (header.as_str(), meta),
        (call.parent().as_str(), json!(call.parent()))
    );
    assert_eq!(
        (call.says("network.transport"), call.says("server.address")),
        ("tcp", "127.0.0.1")
    );
    let server = span(&collector, true, "tools/call execute_tool");
    assert_eq!(
        (server.text("parentSpanId"), server.text("traceId")),
        ("00f067aa0ba902b7", TRACE)
    );
    let session = server.says("mcp.session.id");
    assert!(
        session.len() == 16 && server.says("network.protocol.name") == "http",
        "{server:?}"
    );
}

#[test]
fn a_collector_that_is_gone_or_silent_or_refuses_is_nobodys_problem() {
    let closed = ClosedPort::new();
    let silent = HttpServer::start(|_, reply| _ = reply.hang());
    let refusing = HttpServer::start(|_, reply| reply.whole("403 Forbidden", "", ""));
    for url in [
        format!("http://{}", closed.address()),
        silent.url(""),
        refusing.url(""),
    ] {
        let setup = setup()
            .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &url)
            .variable("OTEL_BSP_SCHEDULE_DELAY", "1");
        let mut client = setup.connect();
        for _ in 0..50 {
            assert!(meta_of(&mut client, "{}").contains_key("traceparent"));
        }
        client.finish();
    }
}

#[test]
fn a_collector_that_cannot_take_spans_just_now_gets_them_again() {
    let busy = std::sync::atomic::AtomicBool::new(true);
    let collector = HttpServer::start(move |_, reply| {
        if busy.swap(false, std::sync::atomic::Ordering::Relaxed) {
            reply.whole("503 Service Unavailable", "retry-after: 0\r\n", "");
        } else {
            reply.json("{}");
        }
    });
    let mut client = sent_to(
        &collector,
        Setup::new().server("a", Server::new().tool("t", [answer("done")])),
    )
    .connect();
    until("the same spans again", || {
        let requests = collector.requests();
        (requests.len() > 1).then(|| assert_eq!(requests[0].text, requests[1].text))
    });
    client.execute("a__t");
    span(&collector, false, "tools/call t");
    client.finish();
}

#[test]
fn over_http_a_span_has_the_identity_of_its_client_and_no_token() {
    let collector = collector();
    let setup = sent_to(&collector, setup())
        .alone()
        .setting("http", json!({ "auth": { "tokens": true } }));
    let made = setup.run(&["token", "create", "anna"]).code(0);
    let token = made.stdout.trim();
    let gateway = setup.serve(&[]);
    let call = gateway.modern_execute("a__t", "");
    let answer = call.and_header("Authorization", &format!("Bearer {token}"));
    assert_eq!(answer.send().status, 200);
    let server = span(&collector, true, "tools/call execute_tool");
    assert_eq!(server.says("user.id"), "token:anna", "{server:?}");
    let sent = collector.requests();
    assert!(sent.iter().all(|request| !request.text.contains(token)));
}
