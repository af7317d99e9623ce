//! What is written to the logs, what is hidden in them, and how they are read.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use serde_json::json;

use super::support::script::{answer, exit, say};
use super::support::{Server, Setup, until};

fn log(setup: &Setup, name: &str) -> String {
    std::fs::read_to_string(setup.home().path(&format!("state/logs/{name}.log")))
        .unwrap_or_default()
}

/// A server that says something, and one that dies.
fn two_servers() -> Setup {
    let talking = Server::new()
        .at_start([say("ready to serve")])
        .tool("t", [say("called"), answer("done")]);
    Setup::new().server("a", talking).server(
        "dead",
        Server::new().at_start([say("no database"), exit(3)]),
    )
}

#[test]
fn each_server_has_a_log_and_mcpzip_has_one() {
    let setup = two_servers().log_level("error");
    let mut client = setup.connect();
    client.execute("a__t");
    client.execute("dead__t");
    let process = client.process();
    client.finish();
    let main = log(&setup, "mcpzip");
    assert!(
        main.contains(&format!("Z {process}  INFO serving")),
        "{main}"
    );
    assert!(
        main.contains("a client is here") && main.contains("no connection server=dead"),
        "{main}"
    );
    let a = log(&setup, "a");
    assert!(
        a.contains("\nready to serve\n") || a.starts_with("ready to serve\n"),
        "{a}"
    );
    assert!(
        a.contains("called") && a.contains("[mcpzip] ") && a.contains("INFO connected"),
        "{a}"
    );
    let dead = log(&setup, "dead");
    assert!(
        dead.contains("no database") && dead.contains("WARN no connection"),
        "{dead}"
    );
    assert!(!a.contains("no database") && !dead.contains("ready to serve"));
}

#[test]
fn messages_are_logged_at_trace_without_secrets() {
    let (plain, odd) = ("hunter2-secret", "two\nlines \"quoted\" of secret");
    let server = Server::new().tool(
        "t",
        [
            say(&format!("the key is {plain}")),
            answer(&format!("{plain} and {odd}")),
        ],
    );
    let setup = Setup::new()
        .server_with(
            "a",
            server,
            json!({ "env": { "API_TOKEN": plain, "API_KEY": odd } }),
        )
        .log_level("trace");
    let mut client = setup.connect();
    assert!(
        client
            .execute_with("a__t", &json!({ "x": odd }).to_string())
            .text()
            .contains(plain),
        "results pass as they are"
    );
    client.close_stdin();
    client.wait();
    let logs = [log(&setup, "a"), log(&setup, "mcpzip"), client.stderr()];
    for text in &logs {
        assert!(
            text.contains("sent {") && text.contains("received {") && text.contains("tools/call"),
            "{text:.3000}"
        );
        assert!(
            !text.contains(plain) && !text.contains("quoted"),
            "{text:.6000}"
        );
    }
    assert!(logs[0].contains("the key is ***\n"), "{}", logs[0]);
}

#[test]
fn nothing_is_logged_where_that_is_asked() {
    let setup = two_servers().log_level("off");
    let mut client = setup.connect();
    client.execute("a__t");
    client.finish();
    assert_eq!(log(&setup, "mcpzip"), "");
}

#[test]
fn logs_are_shown_and_followed() {
    let setup = two_servers().log_level("error");
    let mut client = setup.connect();
    client.execute("a__t");
    let shown = setup.run(&["logs", "a", "-n", "1"]).code(0);
    assert_eq!(shown.stdout, "called\n");
    assert!(setup.run(&["logs"]).code(0).stdout.contains("serving"));
    let json = setup.run(&["logs", "a", "--json"]).code(0).json();
    assert!(
        json["lines"]
            .as_array()
            .unwrap()
            .iter()
            .any(|line| line == "ready to serve"),
        "{json}"
    );
    let refused = setup.run(&["logs", "nobody"]).code(1);
    assert!(
        refused.stderr.contains("`nobody`") && refused.stderr.contains("a, dead, mcpzip"),
        "{}",
        refused.stderr
    );
    assert!(setup.run(&["logs", "../config"]).code(1).stdout.is_empty());
    let mut following = Following(
        setup
            .command(&["logs", "a", "-f", "-n", "0"])
            .spawn()
            .unwrap(),
    );
    let lines = BufReader::new(following.0.stdout.take().unwrap()).lines();
    // It is not known when it has begun, so the server speaks until it is heard.
    let heard =
        std::thread::spawn(move || lines.map_while(Result::ok).find(|line| line == "called"));
    until("a line that follows", || {
        client.execute("a__t");
        heard.is_finished().then_some(())
    });
    assert!(heard.join().unwrap().is_some());
}

#[test]
fn a_log_that_is_put_aside_is_followed_on() {
    let setup = two_servers().log_level("error");
    let path = setup.home().path("state/logs/a.log");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // The next line that is written finds it too large.
    std::fs::write(&path, "an old line\n".repeat(900_000)).unwrap();
    let mut following = Following(
        setup
            .command(&["logs", "a", "-f", "-n", "1"])
            .spawn()
            .unwrap(),
    );
    let mut lines = BufReader::new(following.0.stdout.take().unwrap()).lines();
    // With this line it has begun to follow.
    assert_eq!(lines.next().unwrap().unwrap(), "an old line");
    let heard =
        std::thread::spawn(move || lines.map_while(Result::ok).find(|line| line == "called"));
    let mut client = setup.connect();
    client.execute("a__t");
    until("a line of the new file", || {
        heard.is_finished().then_some(())
    });
    assert!(heard.join().unwrap().is_some());
    assert!(
        std::fs::metadata(path.with_file_name("a.log.1"))
            .unwrap()
            .len()
            > 10 << 20
    );
    assert!(std::fs::metadata(&path).unwrap().len() < 1 << 20);
}

#[test]
fn a_request_is_logged_with_its_call_at_debug() {
    let server = Server::new()
        .tool("t", [answer("done")])
        .tool("dies", [exit(3)]);
    let setup = Setup::new().server("a", server).log_level("debug");
    let mut client = setup.connect();
    client.execute("a__t");
    client.execute("a__dies");
    client.finish();
    let (main, a) = (log(&setup, "mcpzip"), log(&setup, "a"));
    let line = |text: &str, wanted: &[&str]| {
        let found = text
            .lines()
            .find(|line| wanted.iter().all(|part| line.contains(part)));
        found
            .unwrap_or_else(|| panic!("no line with {wanted:?} in\n{text}"))
            .to_owned()
    };
    let request = r#"request{client=0 id="2" method="tools/call"}"#;
    line(
        &main,
        &["DEBUG", request, "answered", r#"outcome="ok""#, "time="],
    );
    let call = [
        request,
        r#"call{server=a method="tools/call" name="t"}"#,
        r#"outcome="ok""#,
        "bytes=",
    ];
    line(&main, &call);
    line(&a, &[&call[..], &["[mcpzip] "]].concat());
    line(
        &main,
        &[r#"id="3""#, r#"name="dies""#, r#"outcome="unavailable""#],
    );
    line(&main, &[r#"id="3""#, "answered", r#"outcome="tool_error""#]);
    assert!(!main.contains("TRACE"), "{main}");
}

#[test]
fn the_configuration_says_how_much_is_logged_and_may_change_its_mind() {
    let setup = two_servers()
        .variable("MCPZIP_LOG", "")
        .setting("log", json!("debug"));
    let mut client = setup.connect();
    client.execute("a__t");
    until("a line at debug", || {
        log(&setup, "mcpzip")
            .contains("DEBUG request{")
            .then_some(())
    });
    assert!(!log(&setup, "mcpzip").contains("TRACE"));
    let setup = setup.setting("log", json!("trace"));
    setup.save();
    until("a line at trace", || {
        client.execute("a__t");
        log(&setup, "mcpzip").contains("TRACE").then_some(())
    });
    client.finish();
    // What is asked for at the start goes before it.
    let mut client = setup.variable("MCPZIP_LOG", "error").connect();
    client.execute("a__t");
    assert_eq!(client.stderr(), "");
}

/// Ended with this.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        // It runs until somebody ends it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
