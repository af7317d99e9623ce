//! Who may speak to `mcpzip serve --http`, and what it says before it serves.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::gateway::{Gateway, initialize};
use crate::support::script::{answer, hang};
use crate::support::{Server, Setup, until};

fn setup() -> Setup {
    Setup::new().server("a", Server::new().tool("t", [answer("done")]))
}

#[track_caller]
fn check_host(gateway: &Gateway, host: &str, status: u16) {
    assert_eq!(
        gateway
            .modern("server/discover", "")
            .header("Host", host)
            .send()
            .status,
        status,
        "Host: {host}"
    );
}

#[track_caller]
fn check_origin(gateway: &Gateway, origin: &str, status: u16) {
    assert_eq!(
        gateway
            .modern("server/discover", "")
            .header("Origin", origin)
            .send()
            .status,
        status,
        "Origin: {origin}"
    );
}

#[test]
fn a_foreign_name_for_this_machine_is_refused() {
    let gateway = setup().serve(&[]);
    for host in [
        "localhost",
        "localhost:1",
        "127.0.0.1",
        "127.1.2.3:99",
        "[::1]:8",
        "LOCALHOST",
    ] {
        check_host(&gateway, host, 200);
    }
    for host in [
        "evil.example.com",
        "evil.example.com:80",
        "localhost.evil.com",
        "0.0.0.0",
        "192.168.0.1",
        "",
    ] {
        check_host(&gateway, host, 403);
    }
    assert_eq!(
        gateway
            .modern("server/discover", "")
            .without("Host")
            .send()
            .fault(),
        (403, -32600)
    );
    assert_eq!(
        gateway
            .call("GET", "/sse")
            .header("Host", "evil.example.com")
            .send()
            .status,
        403
    );
}

#[test]
fn pages_of_other_machines_are_refused_unless_they_are_listed() {
    let gateway = setup().serve(&[
        "--allow-origin",
        "https://App.example.com",
        "--allow-origin",
        "vscode-webview://x",
    ]);
    for origin in [
        "http://localhost:3000",
        "http://127.0.0.1",
        "https://[::1]:1",
        "https://app.example.com",
        "vscode-webview://x",
    ] {
        check_origin(&gateway, origin, 200);
    }
    for origin in [
        "https://evil.com",
        "null",
        "https://app.example.com:444",
        "http://app.example.com",
        "ext://localhost",
        "x",
    ] {
        check_origin(&gateway, origin, 403);
    }
}

#[test]
fn origins_of_the_variable_are_listed_next_to_those_of_arguments_and_file() {
    let variable = "https://one.example.com  https://two.example.com";
    let gateway = setup()
        .variable("MCPZIP_HTTP_ORIGINS", variable)
        .setting("http", json!({ "origins": ["https://file.example.com"] }))
        .serve(&["--allow-origin", "https://flag.example.com"]);
    for name in ["one", "two", "file", "flag"] {
        check_origin(&gateway, &format!("https://{name}.example.com"), 200);
    }
    check_origin(&gateway, "https://three.example.com", 403);
}

#[test]
fn a_variable_that_is_no_origin_is_refused_with_its_name() {
    let outcome = setup()
        .variable("MCPZIP_HTTP_ORIGINS", "https://one.example.com *")
        .run(&["serve", "--http", "127.0.0.1:0"]);
    let outcome = outcome.code(3);
    assert!(
        outcome.stderr.contains("`MCPZIP_HTTP_ORIGINS`: `*`"),
        "{outcome}"
    );
}

#[test]
fn a_browser_is_told_what_a_listed_page_may_do_and_no_other() {
    let gateway = setup().serve(&["--allow-origin", "https://app.example.com"]);
    let preflight = |origin: &str| {
        gateway
            .call("OPTIONS", "/mcp")
            .header("Origin", origin)
            .header("Access-Control-Request-Method", "POST")
            .send()
    };
    let allowed = preflight("https://app.example.com");
    assert_eq!(
        (
            allowed.status,
            allowed.header("access-control-allow-origin")
        ),
        (204, "https://app.example.com")
    );
    assert!(
        allowed
            .header("access-control-allow-headers")
            .contains("Mcp-Session-Id")
    );
    for (origin, status) in [("https://evil.com", 403), ("http://localhost:3000", 405)] {
        let refused = preflight(origin);
        assert_eq!(
            (
                refused.status,
                refused.header("access-control-allow-origin")
            ),
            (status, ""),
            "{origin}"
        );
    }
    let answer = gateway
        .modern("server/discover", "")
        .header("Origin", "https://app.example.com")
        .send();
    assert_eq!(
        answer.header("access-control-expose-headers"),
        "Mcp-Session-Id, WWW-Authenticate"
    );
}

#[test]
fn a_token_is_wanted_of_everybody_where_there_is_one() {
    let mut gateway = setup().variable("MCPZIP_TOKEN", "s3cret-token").serve(&[]);
    let discover = gateway.modern("server/discover", "");
    let refused = discover.send();
    assert_eq!(
        (refused.fault(), refused.header("www-authenticate")),
        ((401, -32600), "Bearer")
    );
    let status = |shown| {
        let request = discover.clone().header("Authorization", shown);
        request.send().status
    };
    for shown in [
        "Bearer wrong",
        "Bearer s3cret-toke",
        "Bearer s3cret-token2",
        "Basic s3cret-token",
        "s3cret-token",
        "Bearer",
    ] {
        assert_eq!(status(shown), 401, "{shown}");
    }
    for shown in ["Bearer s3cret-token", "bearer  s3cret-token"] {
        assert_eq!(status(shown), 200, "{shown}");
    }
    assert_eq!(gateway.call("GET", "/sse").send().status, 401);
    assert_eq!(gateway.call("DELETE", "/mcp").send().status, 401);
    assert_eq!(gateway.call("GET", "/healthz").send().status, 200);
    assert!(
        !gateway.process().stderr().contains("s3cret"),
        "the token was printed"
    );
}

#[test]
fn another_address_needs_a_token() {
    let setup = setup();
    let refused = setup.run(&["serve", "--http", "0.0.0.0:0"]).code(1);
    assert!(
        refused.stderr.contains("--token-file") && refused.stderr.contains("MCPZIP_TOKEN"),
        "{refused}"
    );
    let path = setup.home().path("token");
    std::fs::write(&path, "from-the-file\n").unwrap();
    let gateway = setup
        .variable("MCPZIP_TOKEN", "not-this-one")
        .serve_at("0.0.0.0:0", &["--token-file", path.to_str().unwrap()]);
    let discover = gateway
        .modern("server/discover", "")
        .header("Authorization", "Bearer from-the-file");
    assert_eq!(
        discover
            .clone()
            .header("Host", "gateway.example.com:80")
            .send()
            .status,
        200
    );
    let from = |origin: &str| {
        discover
            .clone()
            .header("Host", "gateway.example.com")
            .header("Origin", origin)
            .send()
            .status
    };
    assert_eq!(from("https://gateway.example.com"), 200);
    assert_eq!(from("https://evil.com"), 403);
    assert_eq!(from("http://localhost"), 403);
    assert_eq!(discover.without("Authorization").send().status, 401);
}

#[cfg(unix)]
#[test]
fn a_token_file_that_others_can_read_is_named_and_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let setup = setup();
    let path = setup.home().path("token");
    std::fs::write(&path, "t0ken-of-mine").unwrap();
    for (mode, warns) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut gateway = setup.serve(&["--token-file", path.to_str().unwrap()]);
        assert_eq!(
            gateway.process().stderr().contains("chmod 600"),
            warns,
            "{mode:o}"
        );
        assert_eq!(gateway.modern("server/discover", "").send().status, 401);
    }
}

#[test]
fn what_cannot_work_is_said_before_anything_is_served() {
    let setup = setup();
    for address in [
        "99999",
        "localhost:",
        "http://localhost",
        "127.0.0.1:99999",
        "",
    ] {
        let refused = setup.run(&["serve", "--http", address]).code(2);
        assert!(refused.stderr.contains("127.0.0.1:8080"), "{refused}");
    }
    let refused = setup
        .run(&["serve", "--http", "127.0.0.1:0", "--allow-origin", "*"])
        .code(2);
    assert!(
        refused.stderr.contains("https://app.example.com"),
        "{refused}"
    );
    let _ = setup.run(&["serve", "--token-file", "x"]).code(2);
    let refused = setup
        .run(&["serve", "--http", "127.0.0.1:0", "--token-file", "nowhere"])
        .code(1);
    assert!(refused.stderr.contains("nowhere"), "{refused}");
    let empty = setup.home().path("empty");
    std::fs::write(&empty, "\n").unwrap();
    let _ = setup
        .run(&[
            "serve",
            "--http",
            "127.0.0.1:0",
            "--token-file",
            empty.to_str().unwrap(),
        ])
        .code(1);
    let gateway = setup.serve(&[]);
    let taken = setup
        .run(&["serve", "--http", &gateway.address().to_string()])
        .code(1);
    assert!(
        taken.stderr.contains(&gateway.address().to_string()),
        "{taken}"
    );
}

#[test]
fn the_url_is_said_whatever_the_log_level() {
    let mut gateway = setup()
        .variable("MCPZIP_TOKEN", "t0ken")
        .log_level("off")
        .serve(&[]);
    assert_eq!(
        gateway.process().stderr(),
        format!("serving MCP on http://{}/mcp\n", gateway.address())
    );
    assert_eq!(gateway.process().stdout(), "");
}

#[test]
fn the_end_of_stdin_is_not_the_end() {
    let mut gateway = setup().serve(&[]);
    gateway.process().close_stdin();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(gateway.call("GET", "/healthz").send().status, 200);
}

#[test]
fn it_is_ready_when_the_configuration_and_the_cache_are_read() {
    let setup = Setup::new()
        .server("slow", Server::new().at_start([hang()]))
        .entry("broken", r#"{"command":"no-such-program"}"#);
    let start = std::time::Instant::now();
    let gateway = setup.serve(&[]);
    until("readiness", || {
        let answer = gateway.call("GET", "/readyz").send();
        assert_eq!(answer.header("content-type"), "application/json");
        (answer.status == 200).then_some(())
    });
    // A server has 30 s to list its tools.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn silent_connections_shut_nobody_out_and_end_soon() {
    let token = ("MCPZIP_TOKEN", "right-token-right-token");
    let gateway = setup().variable(token.0, token.1).serve(&[]);
    let call = || {
        gateway
            .modern_execute("a__t", "")
            .header("Authorization", &format!("Bearer {}", token.1))
    };
    let (answer, kept) = call().open().whole();
    assert_eq!(answer.message().text(), "done");
    let start = Instant::now();
    let silent: Vec<TcpStream> = (0..700)
        .map(|number| {
            let mut stream = TcpStream::connect(gateway.address()).unwrap();
            if number % 2 == 0 {
                // As silent as nothing, as no request was let in.
                stream
                    .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                    .unwrap();
            }
            stream
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(call().send().message().text(), "done");
    // A client that is known keeps its connection.
    let (answer, kept) = call().send_on(kept);
    assert_eq!(answer.message().text(), "done");
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    for mut stream in silent {
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        // Reset or closed: it has ended.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let took = start.elapsed();
    assert!(
        took < Duration::from_secs(15),
        "they were there for {took:?}"
    );
    assert_eq!(call().send_on(kept).0.message().text(), "done");
}

#[test]
fn bodies_that_do_not_come_shut_nobody_out() {
    let gateway = setup().serve(&[]);
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         content-length: 100000\r\n\r\n{{",
        gateway.address()
    );
    let unfinished: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut stream = TcpStream::connect(gateway.address()).unwrap();
            // One that has given way already may be closed.
            let _ = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    let begun = Instant::now();
    let answer = gateway.modern_execute("a__t", "").send();
    assert_eq!(answer.message().text(), "done");
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    drop(unfinished);
}

#[test]
fn handshakes_end_no_session_that_is_used() {
    let gateway = setup().serve(&[]);
    let session = gateway.session();
    let call = || session.request(1, "tools/list", "{}").send();
    assert_eq!(call().status, 200);
    let mut refused = None;
    for _ in 0..1_060 {
        let answer = gateway.post(&initialize("2025-11-25", &json!({}))).send();
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("there is room for so many sessions");
    assert_eq!((refused.status, refused.header("retry-after")), (503, "5"));
    assert_eq!(call().status, 200);
    // Those that were opened and left make room soon.
    until("room for a session", || {
        let answer = gateway.post(&initialize("2025-11-25", &json!({}))).send();
        (answer.status == 200).then_some(())
    });
    assert_eq!(call().status, 200);
}

#[test]
fn a_header_that_decides_on_access_stands_there_once() {
    let gateway = setup().serve(&["--allow-origin", "https://app.example.com"]);
    for (name, values) in [
        ("Host", ["localhost", "evil.example.com"]),
        ("Host", ["evil.example.com", "localhost"]),
        (
            "Origin",
            ["https://app.example.com", "https://evil.example.com"],
        ),
        (
            "Origin",
            ["https://evil.example.com", "https://app.example.com"],
        ),
        ("Authorization", ["Bearer a", "Bearer b"]),
    ] {
        let call = gateway.modern("server/discover", "").without(name);
        let call = values
            .iter()
            .fold(call, |call, value| call.and_header(name, value));
        let answer = call.send();
        assert_eq!(answer.status, 400, "{name}: {answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), "");
        assert!(answer.body.contains("more than once"), "{answer:?}");
    }
}

#[test]
fn without_a_token_it_says_who_can_call_the_tools() {
    let open = "every user and every program of this machine can call all tools";
    let mut gateway = setup().serve(&[]);
    gateway.process().wait_for_stderr(open);
    let mut gateway = setup().variable("MCPZIP_TOKEN", "right-token").serve(&[]);
    let stderr = gateway.process().stderr();
    assert!(!stderr.contains(open), "{stderr}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_silent_connection_is_probed_so_that_one_of_a_machine_that_is_gone_ends() {
    let gateway = setup().serve(&[]);
    let stream = TcpStream::connect(gateway.address()).unwrap();
    let port = stream.local_addr().unwrap().port();
    // The system's table names the other end, and a timer: `02` counts the time until a probe.
    until("a timer for probes", || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let mut rows = table.lines().map(|row| row.split_whitespace().collect());
        let ours = rows.find(|row: &Vec<&str>| row[2].ends_with(&format!(":{port:04X}")));
        ours.is_some_and(|row| row[5].starts_with("02:"))
            .then_some(())
    });
}
