//! What goes wrong between us and a server behind HTTP: on the way there, with TLS, with proxies, and with what it sends.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use rcgen::date_time_ymd;
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::faults::Outcome;
use crate::support::closed_port::ClosedPort;
use crate::support::http::{HttpServer, Reply, Request, legacy};
#[cfg(target_os = "linux")]
use crate::support::process::peak;
use crate::support::proxy::Proxy;
use crate::support::script::answer;
use crate::support::tls::{Authority, TlsServer};
use crate::support::{SOON, Server, Setup};

/// A name that no name server knows, so that only a proxy leads to it.
const NOWHERE: &str = "mcp.invalid";

const REFUSED: Outcome = Outcome {
    fault: "nothing listens at its address",
    gets: "cannot be reached: Connection refused",
    after: "at once",
    then: SOON_AGAIN,
};
const NAMELESS: Outcome = Outcome {
    fault: "its host name does not exist",
    gets: "its host name cannot be resolved",
    after: "at once",
    then: SOON_AGAIN,
};
const UNTRUSTED: Outcome = Outcome {
    fault: "its certificate is signed by an authority that this machine does not trust",
    gets: "offers no secure connection (TLS): its certificate is not signed by an authority",
    after: "at once",
    then: NOTHING_SENT,
};
const OTHER_HOST: Outcome = Outcome {
    fault: "its certificate is for another host",
    gets: "its certificate is for another host than its URL names: mcp.example.com",
    after: "at once",
    then: NOTHING_SENT,
};
const EXPIRED: Outcome = Outcome {
    fault: "its certificate has expired",
    gets: "its certificate has expired",
    after: "at once",
    then: NOTHING_SENT,
};
const EARLY: Outcome = Outcome {
    fault: "its certificate is valid from next year on",
    gets: "its certificate is not valid yet",
    after: "at once",
    then: NOTHING_SENT,
};
const PLAIN: Outcome = Outcome {
    fault: "its URL says `https://`, and it does not speak TLS",
    gets: "its URL should begin with `http://`",
    after: "at once",
    then: NOTHING_SENT,
};
const SILENT: Outcome = Outcome {
    fault: "it accepts a connection, and sends nothing (TLS)",
    gets: "no connection was made in time",
    after: "10 s, or the call's limit",
    then: NOTHING_SENT,
};
const PROXY: Outcome = Outcome {
    fault: "its proxy is missing, refuses, requires a login, or sends nothing",
    gets: "the connection through its proxy failed",
    after: "at once",
    then: NOTHING_SENT,
};
const BOMB: Outcome = Outcome {
    fault: "its answer of 2 MB unpacks to 160 MB: one text, one event, many lines of one event",
    gets: "more than the limit of 67108864",
    after: "when that much has arrived",
    then: "memory stays below 140 MB; others are answered meanwhile",
};
const ENDLESS: Outcome = Outcome {
    fault: "its answer never ends, as one text or one event",
    gets: "more than the limit of 67108864",
    after: "when that much has arrived",
    then: "memory stays below 160 MB; others are answered meanwhile",
};
const CHATTY: Outcome = Outcome {
    fault: "its stream of comments, or of unrequested messages, never ends",
    gets: "gave no answer within 1s",
    after: "the call's limit",
    then: "memory stays below 160 MB; others are answered meanwhile",
};
const REDIRECT: Outcome = Outcome {
    fault: "it redirects to another origin (301, 302, 303, 307, 308)",
    gets: "which is not followed",
    after: "at once",
    then: "nothing was sent there",
};

/// What goes wrong on the way there, or comes without an end.
pub(crate) const OUTCOMES: &[Outcome] = &[
    REFUSED, NAMELESS, UNTRUSTED, OTHER_HOST, EXPIRED, EARLY, PLAIN, SILENT, PROXY, REDIRECT, BOMB,
    ENDLESS, CHATTY,
];

const SOON_AGAIN: &str = "other servers answer meanwhile; a new call tries again";
const NOTHING_SENT: &str = "nothing was sent; other servers answer meanwhile";

/// The text of a call that fails, which no secret is in; another server answers meanwhile.
#[track_caller]
fn failure(setup: Setup) -> String {
    let mut client = setup
        .server("b", Server::new().tool("v", [answer("too")]))
        .connect();
    let call = client.begin_execute("web__t");
    assert_eq!(client.execute("b__v").text(), "too");
    let text = client.answer(call).tool_error();
    assert!(
        !text.contains("sesame-open") && !client.stderr().contains("sesame-open"),
        "{text}\n{}",
        client.stderr()
    );
    client.finish();
    text
}

#[track_caller]
fn check_works(setup: &Setup) {
    let mut client = setup.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    client.finish();
}

/// A setup with a server at `url`.
fn at(url: &str, members: Value) -> Setup {
    let mut entry = json!({ "url": url });
    entry
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    Setup::new().entry("web", &entry.to_string())
}

#[test]
fn a_certificate_is_trusted_where_the_configuration_says_so() {
    let authority = Authority::new();
    let web = HttpServer::with_tool(legacy);
    let tls = TlsServer::before(web.address(), authority.identity("127.0.0.1", |_| {}));
    let url = format!("https://{}/mcp", tls.address());

    let text = failure(at(&url, json!({})));
    assert!(text.contains(UNTRUSTED.gets), "{text}");
    assert!(text.contains("`ca_file` in its configuration"), "{text}");
    assert_eq!((web.requests().len(), tls.connections()), (0, 0));

    let setup = at(&url, json!({ "ca_file": "authority.pem" }));
    authority.save(setup.home());
    check_works(&setup);
    let text = failure(setup.entry("web", &json!({ "url": url }).to_string()));
    assert!(
        text.contains("`web__t` failed: ") && text.contains("nothing was sent; check its entry"),
        "{text}"
    );
    let setup = at(&url, json!({})).setting("ca_file", json!("authority.pem"));
    authority.save(setup.home());
    check_works(&setup);
}

/// Other systems verify certificates by themselves, and know no such variable.
#[cfg(target_os = "linux")]
#[test]
fn the_trusted_certificates_are_those_of_the_environment() {
    let authority = Authority::new();
    let web = HttpServer::with_tool(legacy);
    let tls = TlsServer::before(web.address(), authority.identity("127.0.0.1", |_| {}));
    let setup = at(&format!("https://{}/mcp", tls.address()), json!({}));
    let path = authority.save(setup.home());
    check_works(
        &setup
            .clone()
            .variable("SSL_CERT_FILE", path.to_str().unwrap()),
    );
    let text = failure(setup.variable("SSL_CERT_FILE", "/nowhere"));
    assert!(
        text.contains("this machine has no certificates to trust, or `SSL_CERT_FILE` names"),
        "{text}"
    );
}

#[test]
fn what_is_wrong_with_a_certificate_is_told() {
    let authority = Authority::new();
    let web = HttpServer::with_tool(legacy);
    let other = authority.identity("mcp.example.com", |_| {});
    let valid = |from: i32, to: i32| {
        authority.identity("127.0.0.1", |params| {
            (params.not_before, params.not_after) =
                (date_time_ymd(from, 2, 3), date_time_ymd(to, 2, 3));
        })
    };
    for (identity, words) in [
        (other, OTHER_HOST.gets),
        (valid(2001, 2002), EXPIRED.gets),
        (valid(4000, 4001), EARLY.gets),
    ] {
        let tls = TlsServer::before(web.address(), identity);
        let setup = at(
            &format!("https://{}/mcp", tls.address()),
            json!({ "ca_file": "authority.pem" }),
        );
        authority.save(setup.home());
        let text = failure(setup);
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(web.requests().len(), 0);
}

/// Says this to whoever comes, whatever they say.
fn speaker(words: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(words.as_bytes());
        }
    });
    address
}

#[test]
fn a_server_that_does_not_speak_tls_is_told_apart() {
    for words in ["HTTP/1.1 400 Bad Request\r\n\r\n", ""] {
        let text = failure(at(&format!("https://{}/mcp", speaker(words)), json!({})));
        assert!(
            text.contains("no secure connection (TLS)") && text.contains(PLAIN.gets),
            "{text}"
        );
    }
}

#[test]
fn a_connection_that_does_not_come_about_is_given_up() {
    // It accepts, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let start = Instant::now();
    let text = failure(at(
        &format!("https://{}/mcp", silent.local_addr().unwrap()),
        json!({}),
    ));
    assert!(text.contains(SILENT.gets), "{text}");
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[test]
fn a_proxy_leads_to_servers_elsewhere() {
    let authority = Authority::new();
    let web = HttpServer::with_tool(legacy);
    let tls = TlsServer::before(web.address(), authority.identity(NOWHERE, |_| {}));
    let proxy = Proxy::to(tls.address());
    let setup = || {
        let headers = json!({ "Authorization": "Bearer sesame-open" });
        let setup = at(
            &format!("https://{NOWHERE}/mcp"),
            json!({ "ca_file": "authority.pem", "headers": headers }),
        );
        authority.save(setup.home());
        setup
    };
    let with_entry = |members: Value| {
        let url = format!("https://{NOWHERE}/mcp");
        let setup = at(&url, members);
        authority.save(setup.home());
        setup.variable("HTTPS_PROXY", &proxy.url("http"))
    };

    check_works(&setup().variable("HTTPS_PROXY", &proxy.url("http")));
    let asked = proxy.asked();
    assert!(
        asked[0].starts_with("CONNECT mcp.invalid:443 HTTP/1.1\r\n"),
        "{asked:?}"
    );
    assert!(
        asked[0]
            .to_ascii_lowercase()
            .contains("proxy-authorization: basic bwu6c2vzyw1llw9wzw4="),
        "{asked:?}"
    );
    assert!(
        !asked.join("").contains("Bearer"),
        "the server's credentials went to the proxy: {asked:?}"
    );
    assert_eq!(
        web.first("tools/call").header("authorization"),
        "Bearer sesame-open"
    );

    check_works(&setup().variable("all_proxy", &proxy.url("socks5h")));
    assert_eq!(proxy.asked().last().unwrap(), "mcp.invalid:443");
    check_works(
        &setup()
            .setting("proxy", json!(proxy.url("http")))
            .variable("HTTPS_PROXY", "http://127.0.0.1:9"),
    );

    // Each of these wants no proxy, and so finds no such host.
    let before = proxy.asked().len();
    for setup in [
        setup()
            .variable("HTTPS_PROXY", &proxy.url("http"))
            .variable("NO_PROXY", "example.com,.invalid"),
        setup()
            .variable("HTTPS_PROXY", "")
            .variable("HTTP_PROXY", &proxy.url("http")),
        with_entry(json!({ "proxy": "none" })),
    ] {
        let text = failure(setup);
        assert!(text.contains("its host name cannot be resolved"), "{text}");
    }
    assert_eq!(proxy.asked().len(), before);
}

#[test]
fn a_plain_server_elsewhere_is_asked_through_its_proxy() {
    // Of a plain proxy a request is all there is: the server plays it.
    let web = HttpServer::with_tool(legacy);
    check_works(&at("http://mcp.invalid/mcp", json!({})).variable("HTTP_PROXY", &web.url("")));
    assert_eq!(web.first("tools/call").path, "http://mcp.invalid/mcp");
}

#[test]
fn a_server_on_this_machine_needs_no_proxy() {
    let authority = Authority::new();
    let web = HttpServer::with_tool(legacy);
    let tls = TlsServer::before(web.address(), authority.identity("localhost", |_| {}));
    let proxy = Proxy::refusing("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    for url in [
        web.url("/mcp"),
        format!("https://localhost:{}/mcp", tls.address().port()),
    ] {
        let setup = at(&url, json!({ "ca_file": "authority.pem" }))
            .setting("proxy", json!(proxy.url("http")));
        authority.save(setup.home());
        check_works(&setup.variable("ALL_PROXY", &proxy.url("http")));
    }
    assert!(proxy.asked().is_empty());
}

#[test]
fn a_proxy_that_does_not_lead_there_is_named() {
    let port = ClosedPort::new();
    let closed = |scheme: &str| format!("{scheme}://me:sesame-open@{}", port.address());
    let refusing = Proxy::refusing("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    let strict =
        Proxy::refusing("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n");
    let deaf = Proxy::refusing("");
    for (proxy, words) in [
        (
            closed("http"),
            "the connection through its proxy failed (Connection refused",
        ),
        (
            closed("socks5h"),
            "the connection through its proxy failed (",
        ),
        (
            refusing.url("http"),
            "the connection through its proxy failed (tunnel error: unsuccessful)",
        ),
        (
            strict.url("http"),
            "the connection through its proxy failed (tunnel error: proxy authorization required)",
        ),
        (
            deaf.url("http"),
            "the connection through its proxy failed (",
        ),
    ] {
        let text = failure(at("https://mcp.invalid/mcp", json!({ "proxy": proxy })));
        assert!(text.contains(words) && text.contains(PROXY.gets), "{text}");
    }
}

#[test]
fn a_redirect_never_takes_a_request_to_another_origin() {
    let other = HttpServer::with_tool(legacy);
    for status in [
        "301 Moved Permanently",
        "302 Found",
        "303 See Other",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let location = format!("location: {}\r\n", other.url("/mcp"));
        let web = HttpServer::with_tool(move |_, reply| reply.whole(status, &location, ""));
        let text = failure(at(
            &web.url("/mcp"),
            json!({ "headers": { "X-Key": "sesame-open" } }),
        ));
        let expected = format!("redirects to `{}`, {}", other.url(""), REDIRECT.gets);
        assert!(text.contains(&expected), "{text}");
    }
    assert_eq!(other.requests().len(), 0);
}

/// What `write` writes, as gzip.
fn packed(write: impl FnOnce(&mut GzEncoder<Vec<u8>>) -> std::io::Result<()>) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    write(&mut gzip).unwrap();
    gzip.finish().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_compressed_bomb_is_cut_off_in_bounded_memory() {
    const UNPACKED: usize = 240 * 1024 * 1024;
    let bomb = |start: &str| {
        packed(|gzip| {
            gzip.write_all(start.as_bytes())?;
            let piece = vec![b'x'; 1024 * 1024];
            (0..UNPACKED / piece.len()).try_for_each(|_| gzip.write_all(&piece))
        })
    };
    let json = bomb(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""#);
    let one_line = bomb("data: ");
    let many_lines = packed(|gzip| {
        let piece = b"data: xxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(32 * 1024);
        (0..UNPACKED / piece.len()).try_for_each(|_| gzip.write_all(&piece))?;
        gzip.write_all(b"\n")
    });
    for (kind, body) in [
        ("application/json", json),
        ("text/event-stream", one_line),
        ("text/event-stream", many_lines),
    ] {
        assert!(
            body.len() < 4 * 1024 * 1024,
            "{} bytes are no bomb",
            body.len()
        );
        let headers = format!("content-type: {kind}\r\ncontent-encoding: gzip\r\n");
        let web =
            HttpServer::with_tool(move |_, reply| reply.whole_bytes("200 OK", &headers, &body));
        let setup =
            at(&web.url("/mcp"), json!({})).server("b", Server::new().tool("v", [answer("too")]));
        let mut client = setup.connect();
        assert_eq!(client.execute("web__u").text(), "fine");
        let call = client.begin_execute("web__t");
        assert_eq!(client.execute("b__v").text(), "too");
        let text = client.answer(call).tool_error();
        assert!(text.contains(BOMB.gets), "{kind}: {text}");
        let peak = peak(client.process());
        assert!(peak < 140 * 1024 * 1024, "{kind}: {peak} bytes");
        client.finish();
    }
}

/// Answers `t` by `call`, which never comes to an end, and checks that others go on and that `limit`, in seconds, or
/// another one ends each of `count` calls.
#[track_caller]
fn check_endless(
    count: usize,
    limit: f64,
    words: &str,
    call: impl Fn(&Request, &mut Reply) + Send + Sync + 'static,
) {
    let web = HttpServer::with_tool(call);
    let setup =
        at(&web.url("/mcp"), json!({})).server("b", Server::new().tool("v", [answer("too")]));
    let mut client = setup.connect();
    for tool in ["web__u", "b__v"] {
        client.execute(tool);
    }
    let start = Instant::now();
    let call = json!({ "name": "web__t", "timeout": limit }).to_string();
    let calls: Vec<u64> = (0..count)
        .map(|_| client.begin("execute_tool", &call))
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    let others = Instant::now();
    assert_eq!(client.execute("web__u").text(), "fine");
    assert_eq!(client.execute("b__v").text(), "too");
    assert!(
        others.elapsed() < SOON,
        "others waited for {:?}",
        others.elapsed()
    );
    for call in calls {
        let text = client.answer(call).tool_error();
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        start.elapsed() < SOON + Duration::from_secs_f64(limit),
        "{:?}",
        start.elapsed()
    );
    #[cfg(target_os = "linux")]
    {
        let peak = peak(client.process());
        assert!(peak < 160 * 1024 * 1024, "{peak} bytes");
    }
    client.finish();
}

/// Writes `piece` again and again until nobody listens.
fn flood(reply: &mut Reply, head: &str, piece: &[u8]) {
    reply.raw(head.as_bytes());
    while reply.raw(piece) {}
}

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

#[test]
fn an_answer_without_an_end_is_cut_off_and_delays_nobody() {
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    check_endless(1, 50.0, ENDLESS.gets, move |_, reply| {
        flood(reply, CHUNKED, &chunk);
    });
    let line = [b'x'; 0x10000];
    check_endless(1, 50.0, ENDLESS.gets, move |_, reply| {
        flood(reply, &format!("{EVENTS}data: "), &line);
    });
    let comments = b": still here\n\n".repeat(1000);
    check_endless(3, 1.0, CHATTY.gets, move |_, reply| {
        flood(reply, EVENTS, &comments);
    });
    let events =
        b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n"
            .repeat(1000);
    check_endless(3, 1.0, CHATTY.gets, move |_, reply| {
        flood(reply, EVENTS, &events);
    });
}

#[test]
fn a_server_that_cannot_be_reached_is_told_apart() {
    let port = ClosedPort::new();
    for (url, row) in [
        (
            format!("http://{}/mcp?token=sesame-open", port.address()),
            REFUSED,
        ),
        ("http://server.invalid/mcp".to_owned(), NAMELESS),
    ] {
        let text = failure(at(&url, json!({})));
        assert!(text.contains(row.gets), "{text}");
    }
}

#[test]
fn a_connection_that_its_server_closed_is_not_used_again() {
    // It keeps no connection, and does not say so.
    let web = HttpServer::start(|request, reply| {
        legacy(request, reply);
        reply.vanish();
    });
    let mut client = at(&web.url("/mcp"), json!({})).connect();
    for _ in 0..20 {
        assert_eq!(client.execute("web__t").text(), "fine");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(web.count("tools/call"), 20);
    client.finish();
}

#[test]
fn a_server_that_closes_connections_without_a_word_costs_one_call_at_most() {
    // The next request is on its way by then.
    let web = HttpServer::start(|request, reply| {
        legacy(request, reply);
        std::thread::sleep(Duration::from_millis(1));
        reply.vanish();
    });
    let mut client = at(&web.url("/mcp"), json!({})).connect();
    let failures = (0..50)
        .filter(|_| client.execute("web__t").text() != "fine")
        .count();
    assert!(failures <= 1, "{failures} of 50");
    client.finish();
}

#[test]
fn calls_run_side_by_side_over_one_connection_of_http2() {
    const CALLS: usize = 30;
    let authority = Authority::new();
    let all = Arc::new(Barrier::new(CALLS));
    let server = TlsServer::start(
        authority.identity("127.0.0.1", |_| {}),
        &["h2", "http/1.1"],
        move |stream| {
            let all = all.clone();
            async move {
                assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
                let mut connection = h2::server::handshake(stream).await.unwrap();
                let mut answers = JoinSet::new();
                while let Some(Ok((request, reply))) = connection.accept().await {
                    answers.spawn(answer_over_http2(request, reply, all.clone()));
                }
            }
        },
    );
    let url = format!("https://{}/mcp", server.address());
    let setup = at(
        &url,
        json!({ "ca_file": "authority.pem", "headers": { "X-Key": "a-key" } }),
    );
    authority.save(setup.home());
    let mut client = setup.connect();
    // None is answered before all have come.
    let calls: Vec<u64> = (0..CALLS)
        .map(|number| {
            client.begin(
                "execute_tool",
                &format!(r#"{{"name":"web__t","arguments":{{"number":{number}}}}}"#),
            )
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(client.answer(call).text(), format!("{number} with a-key"));
    }
    assert_eq!(server.connections(), 1);
    client.finish();
}

async fn answer_over_http2(
    request: http::Request<h2::RecvStream>,
    mut reply: h2::server::SendResponse<bytes::Bytes>,
    all: Arc<Barrier>,
) {
    let (head, mut stream) = request.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece.unwrap();
        stream.flow_control().release_capacity(piece.len()).unwrap();
        body.extend_from_slice(&piece);
    }
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "two", "version": "1" },
        }),
        Some("tools/list") => {
            json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] })
        }
        Some("tools/call") => {
            all.wait().await;
            let key = head.headers["x-key"].to_str().unwrap();
            let text = format!("{} with {key}", message["params"]["arguments"]["number"]);
            json!({ "content": [{ "type": "text", "text": text }] })
        }
        _ => Value::Null,
    };
    let response = http::Response::builder();
    if result.is_null() {
        let status = if head.method == http::Method::POST {
            202
        } else {
            405
        };
        reply
            .send_response(response.status(status).body(()).unwrap(), true)
            .unwrap();
        return;
    }
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
    let head = response
        .header("content-type", "application/json")
        .body(())
        .unwrap();
    reply
        .send_response(head, false)
        .unwrap()
        .send_data(answer.into(), true)
        .unwrap();
}
