//! Events of the audit log other than calls of a session, clients over HTTP, and copies of the lines for other programs.

use serde_json::{Value, json};

use crate::support::closed_port::ClosedPort;
use crate::support::command::{self, Outcome};
use crate::support::http::{HttpServer, legacy};
use crate::support::script::echo;
use crate::support::{Server, Setup, until};

fn setup(audit: Value) -> Setup {
    Setup::new()
        .alone()
        .server("hub", Server::new().tool("echo", [echo()]))
        .setting("audit", audit)
}

/// Runs a command with the configuration as it is, which [`Setup::run`] writes anew.
fn run(setup: &Setup, arguments: &[&str]) -> Outcome {
    command::run(setup.command(arguments), "")
}

/// The lines of one kind, oldest first.
fn lines(setup: &Setup, kind: &str) -> Vec<Value> {
    let shown = run(setup, &["audit", "--json"]).code(0).stdout;
    let lines = shown.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["kind"] == kind)
        .collect()
}

#[test]
fn clients_over_http_are_named_with_and_without_a_session() {
    let setup = setup(json!({}));
    let gateway = setup.serve(&[]);
    let session = gateway.session();
    assert_eq!(session.execute(1, "hub__echo", "").send().status, 200);
    let other = gateway.session();
    assert_eq!(other.execute(1, "hub__echo", "").send().status, 200);
    let modern = gateway.modern_execute("hub__echo", "");
    assert_eq!(modern.send().status, 200);
    let calls = lines(&setup, "call");
    assert_eq!(calls.len(), 3, "{calls:?}");
    for call in &calls {
        assert_eq!(call["client"], "test", "{call}");
        assert_eq!(call["version"], "1", "{call}");
    }
    assert_ne!(calls[0]["session"], calls[1]["session"]);
}

#[test]
fn edits_of_the_configuration_are_events_that_name_what_changed() {
    let setup = setup(json!({}));
    let mut client = setup.connect();
    client.execute("hub__echo");
    let _ = run(&setup, &["add", "two", "--", "some-program"]).code(4);
    until("the session to notice", || {
        let events = lines(&setup, "configuration");
        (events.len() == 2).then_some(events)
    });
    let _ = run(&setup, &["disable", "hub"]).code(0);
    client.finish();
    let events = lines(&setup, "configuration");
    let details: Vec<_> = events
        .iter()
        .map(|event| event["detail"].as_str().unwrap())
        .collect();
    assert!(
        details.contains(&"by a command: servers added: two"),
        "{details:?}"
    );
    assert!(details.contains(&"servers added: two"), "{details:?}");
    assert!(
        details.contains(&"by a command: servers changed: hub"),
        "{details:?}"
    );
    let by_command = events
        .iter()
        .find(|event| event["session"] == "command-line");
    assert!(by_command.is_some(), "{events:?}");
}

#[test]
fn a_command_that_changes_nothing_writes_nothing() {
    let setup = setup(json!({}));
    setup.save();
    let _ = setup.run(&["list"]).code(0);
    let _ = setup.run(&["rules", "list"]).code(0);
    assert!(!setup.home().path("state/audit").exists());
}

#[test]
fn logins_and_logouts_by_command_are_events() {
    let server = HttpServer::start(|request, reply| {
        if request.path != "/mcp" {
            return reply.whole("404 Not Found", "", "");
        }
        if request.header("authorization") == "Bearer sesame-open" {
            return legacy(request, reply);
        }
        reply.whole("401 Unauthorized", "www-authenticate: Bearer\r\n", "");
    });
    let setup = Setup::new()
        .entry("web", &server.entry(json!({})))
        .setting("audit", json!({}));
    let command = ["login", "web", "--with-token"];
    let _ = setup.run_with_input(&command, "sesame-shut\n").code(1);
    let _ = setup.run_with_input(&command, "sesame-open\n").code(0);
    let _ = setup.run(&["logout", "web"]).code(0);
    let _ = setup.run(&["logout", "web"]).code(0);
    let events = lines(&setup, "login");
    let shown: Vec<_> = events
        .iter()
        .map(|event| {
            let part = |key: &str| event[key].as_str().unwrap_or("").to_owned();
            format!("{} {}", part("server"), part("outcome"))
        })
        .collect();
    assert_eq!(shown, ["web failed", "web ok", "web ok"], "{events:?}");
    assert!(events[2]["detail"].as_str().unwrap().contains("logged out"));
    let all = setup.run(&["audit", "--json"]).stdout;
    assert!(!all.contains("sesame"), "{all}");
}

#[test]
fn over_http_the_lines_are_copied_to_stdout() {
    let setup = setup(json!({ "to": ["stdout"] }));
    let mut gateway = setup.serve(&[]);
    let session = gateway.session();
    assert_eq!(session.execute(1, "hub__echo", "").send().status, 200);
    let process = gateway.process();
    let line = until("the line on stdout", || {
        let shown = process.stdout();
        serde_json::from_str::<Value>(shown.lines().next()?).ok()
    });
    assert_eq!(line, lines(&setup, "call")[0]);
}

#[test]
fn stdout_is_refused_where_the_client_reads_it() {
    let setup = setup(json!({ "to": ["stdout"] }));
    let mut client = setup.connect();
    client.wait_for_stderr("the audit log is not copied to stdout");
    client.execute("hub__echo");
    assert_eq!(lines(&setup, "call").len(), 1);
    assert!(!client.stdout().contains("\"prev\""));
    client.finish();
}

#[test]
fn a_target_that_is_none_is_refused_and_without_a_collector_the_log_is_written() {
    for (audit, said) in [
        (json!({ "to": ["paper"] }), "`audit.to`"),
        (
            json!({ "to": ["syslog"], "syslog": "nowhere" }),
            "`audit.syslog`",
        ),
    ] {
        let refused = setup(audit).run(&["serve"]).code(3);
        assert!(refused.stderr.contains(said), "{refused}");
    }
    let setup = setup(json!({ "to": ["otlp"] }));
    let mut client = setup.connect();
    client.wait_for_stderr("with a collector");
    client.execute("hub__echo");
    client.finish();
    assert_eq!(lines(&setup, "call").len(), 1);
}

/// The JSON behind the header of a syslog message.
#[cfg(unix)]
fn content(message: &[u8]) -> (String, Value) {
    let text = String::from_utf8(message.to_vec()).unwrap();
    let at = text.find('{').unwrap();
    let line = serde_json::from_str(&text[at..]).unwrap();
    (text[..at].to_owned(), line)
}

#[cfg(unix)]
#[test]
fn syslog_gets_the_lines_over_a_socket_and_over_udp() {
    use std::net::UdpSocket;
    use std::os::unix::net::UnixDatagram;

    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("log");
    let local = UnixDatagram::bind(&path).unwrap();
    let remote = UdpSocket::bind("127.0.0.1:0").unwrap();
    let limit = Some(std::time::Duration::from_secs(20));
    local.set_read_timeout(limit).unwrap();
    remote.set_read_timeout(limit).unwrap();
    let address = remote.local_addr().unwrap().to_string();
    let mut buffer = vec![0; 64 * 1024];
    let run = |address: &str| {
        let setup = setup(json!({ "to": ["syslog"], "syslog": address }));
        let mut client = setup.connect();
        client.execute("hub__echo");
        client.finish();
        lines(&setup, "call").remove(0)
    };
    let written = run(path.to_str().unwrap());
    let length = local.recv(&mut buffer).unwrap();
    let (header, line) = content(&buffer[..length]);
    // Facility authpriv (10), severity info (6).
    assert!(header.starts_with("<86>"), "{header}");
    assert!(header.contains(" mcpzip["), "{header}");
    assert_eq!(line, written);
    let written = run(&address);
    let length = remote.recv(&mut buffer).unwrap();
    let (header, line) = content(&buffer[..length]);
    assert!(header.starts_with("<86>1 20"), "{header}");
    assert_eq!(line, written);
}

#[test]
fn no_line_has_a_character_that_controls_a_terminal_or_hides_text() {
    let setup = setup(json!({ "arguments": "redacted" }));
    let mut client = setup.connect();
    let odd = "x\u{9b}2J\u{1b}[2J\u{202e}y\u{7f}\u{e0041}\n{\"kind\":\"call\"}";
    let arguments = json!({ "text": odd, odd: 1 });
    client.execute_with("hub__echo", &arguments.to_string());
    client.call("execute_tool", &json!({ "name": odd }).to_string());
    client.finish();
    let known = lines(&setup, "call");
    assert_eq!(known.len(), 1, "{known:?}");
    assert_eq!(known[0]["arguments"], arguments);
    assert_eq!(lines(&setup, "refusal")[0]["tool"], odd);
    let text = std::fs::read_dir(setup.home().path("state/audit/1")).unwrap();
    let files = text.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let text: String = files.collect();
    let is_odd = |c: char| c != '\n' && c.is_control() || "\u{202e}\u{e0041}".contains(c);
    assert!(!text.contains(is_odd), "{text:?}");
    let _ = run(&setup, &["audit", "verify"]).code(0);
}

#[cfg(unix)]
#[test]
fn large_arguments_keep_no_line_from_syslog() {
    let remote = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let limit = Some(std::time::Duration::from_secs(20));
    remote.set_read_timeout(limit).unwrap();
    let address = remote.local_addr().unwrap().to_string();
    let setup = setup(json!({ "to": ["syslog"], "syslog": address, "arguments": "redacted" }));
    let mut client = setup.connect();
    // The line is larger than a datagram can be.
    let numbers = json!({ "n": vec![1; 32_700] }).to_string();
    client.execute_with("hub__echo", &numbers);
    client.execute("hub__echo");
    let mut buffer = vec![0; 64 * 1024];
    let mut taken = || {
        let length = remote.recv(&mut buffer).unwrap();
        content(&buffer[..length]).1
    };
    let (large, small) = (taken(), taken());
    client.finish();
    let written = lines(&setup, "call");
    assert_eq!(large["arguments"], "too large for syslog");
    assert_eq!(
        written[0]["arguments"]["n"].as_array().unwrap().len(),
        32_700
    );
    for member in ["time", "tool", "outcome", "sent", "n", "prev"] {
        assert_eq!(large[member], written[0][member], "{member}");
    }
    assert_eq!(small, written[1]);
}

#[test]
fn a_collector_gets_each_line_as_a_log_record() {
    let collector = HttpServer::start(|_, reply| reply.json("{}"));
    let setup = setup(json!({ "to": ["otlp"], "arguments": "none" }))
        .setting("otlp", json!({ "endpoint": collector.url("") }))
        .variable("OTEL_TRACES_EXPORTER", "none")
        .variable("OTEL_SERVICE_NAME", "mine");
    let mut client = setup.connect();
    client.execute("hub__echo");
    client.execute("hub__nothing");
    client.finish();
    let requests = collector.requests();
    assert!(requests.iter().all(|request| request.path == "/v1/logs"));
    let mut records = Vec::new();
    for request in &requests {
        let logs = &request.body["resourceLogs"][0];
        assert!(logs["resource"].to_string().contains("mine"), "{logs}");
        let those = logs["scopeLogs"][0]["logRecords"].as_array().unwrap();
        records.extend(those.iter().cloned());
    }
    assert_eq!(records.len(), 2, "{records:?}");
    let line: Value =
        serde_json::from_str(records[0]["body"]["stringValue"].as_str().unwrap()).unwrap();
    assert_eq!(line, lines(&setup, "call")[0]);
    assert_eq!(records[0]["severityText"], "INFO");
    assert_eq!(records[1]["severityText"], "WARN");
    assert!(records[0]["timeUnixNano"].as_str().unwrap().len() == 19);
    let attributes = records[0]["attributes"].to_string();
    assert!(attributes.contains("mcpzip.audit.tool"), "{attributes}");
}

#[test]
fn a_collector_that_is_gone_delays_no_call_and_ends_with_the_session() {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let setup = setup(json!({ "to": ["otlp"] }))
        .setting("otlp", json!({ "endpoint": format!("http://{address}") }))
        .variable("OTEL_TRACES_EXPORTER", "none");
    let mut client = setup.connect();
    for _ in 0..20 {
        client.execute("hub__echo");
    }
    client.finish();
    assert_eq!(lines(&setup, "call").len(), 20);
    assert!(setup.home().path("state/audit").exists());
}

#[test]
fn status_shows_the_log_and_whether_its_targets_take_copies() {
    let none = Setup::new().server("hub", Server::new());
    none.save();
    assert_eq!(
        run(&none, &["status", "--json"]).code(0).json()["audit"],
        Value::Null
    );
    let closed = ClosedPort::new();
    let setup = setup(json!({ "to": ["stdout", "otlp"] })).setting(
        "otlp",
        json!({ "endpoint": format!("http://{}", closed.address()) }),
    );
    setup.save();
    let audit = run(&setup, &["status", "--json"]).code(0).json()["audit"].clone();
    assert!(
        audit["directory"].as_str().unwrap().ends_with("audit"),
        "{audit}"
    );
    let copies = audit["copies"].as_array().unwrap();
    assert_eq!(copies[0], json!({ "to": "stdout" }));
    assert_eq!(copies[1]["to"], "otlp");
    assert!(copies[1]["fault"].is_string(), "{audit}");
}

/// Refuses a call at a terminal, and looks at its lines.
#[cfg(unix)]
fn refuses_in_person(setup: &Setup) {
    use crate::support::terminal::Terminal;
    let Some(terminal) = Terminal::run(&setup.command(&["call", "hub__echo", "{}"])) else {
        return;
    };
    terminal.shows("[y/N]");
    terminal.types("n");
    terminal.shows("[exit 1]");
    let lines = lines(setup, "refusal");
    let of = |outcome: &str| -> Vec<&Value> {
        let all = lines.iter();
        all.filter(|line| line["outcome"] == outcome).collect()
    };
    assert_eq!(of("waiting").len(), 1, "{lines:#?}");
    let refused = of("refused");
    assert_eq!(refused.len(), 1, "{lines:#?}");
    assert_eq!(
        (&refused[0]["server"], &refused[0]["tool"]),
        (&json!("hub"), &json!("echo"))
    );
    assert_eq!(refused[0]["rule"], r#"tools.ask[0] "hub__echo""#);
}

#[test]
#[cfg(unix)]
fn a_call_that_the_user_refuses_in_person_is_named_with_its_rule() {
    let asking = || {
        Setup::new()
            .server("hub", Server::new().tool("echo", [echo()]))
            .setting("audit", json!({}))
            .setting("tools", json!({ "ask": ["hub__echo"] }))
    };
    let alone = asking().alone();
    alone.save();
    refuses_in_person(&alone);
    // The daemon hands the question to the command, which asks it.
    let shared = crate::daemon::Shared::new(asking());
    let client = shared.connect();
    refuses_in_person(&shared);
    client.finish();
}
