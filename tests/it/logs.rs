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
    let setup = two_servers().log_level("error").alone();
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
        refused.stderr.contains("no server `nobody` is configured"),
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

/// The lines of a text, each of which is a JSON object.
#[track_caller]
fn objects(text: &str) -> Vec<serde_json::Value> {
    let parse = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("no JSON ({error}): {line}"))
    };
    text.lines().map(parse).collect()
}

#[test]
fn lines_are_json_objects_where_that_is_asked_and_hide_secrets_of_any_form() {
    let odd = "two\nlines \"quoted\" of secret";
    let server = Server::new().tool("t", [answer(&format!("it is {odd}"))]);
    let setup = Setup::new()
        .alone()
        .server_with("a", server, json!({ "env": { "API_KEY": odd } }))
        .entry("faulty", r#"{"args": []}"#)
        .variable("MCPZIP_LOG_FORMAT", "json")
        .log_level("trace");
    let mut client = setup.connect();
    let _ = client.execute("a__t");
    client.wait_for_stderr("tools/call");
    let process = client.process();
    client.close_stdin();
    assert!(client.wait().success());
    let main = log(&setup, "mcpzip");
    for text in [&client.stderr(), &main] {
        assert!(
            !text.contains("of secret") && text.contains("***"),
            "{text}"
        );
        let lines = objects(text);
        let find = |words: &str| {
            let found = lines
                .iter()
                .find(|line| line["message"].as_str().unwrap().contains(words));
            found.unwrap_or_else(|| panic!("no `{words}`: {text}"))
        };
        assert_eq!(find("has neither a `command`")["level"], "ERROR");
        let serving = find("serving");
        assert_eq!(serving["level"], "INFO");
        assert_eq!(serving["pid"], process);
        assert_eq!(serving["fields"]["way"], "stdio");
        assert!(serving["timestamp"].as_str().unwrap().ends_with('Z'));
        let answered = find("the server answered");
        assert_eq!(answered["server"], "a");
        assert_eq!(answered["fields"]["outcome"], "ok");
        assert_eq!(answered["spans"][0]["name"], "request");
    }
}

#[test]
fn the_configuration_says_the_form_of_lines_and_what_is_kept() {
    let setup = two_servers()
        .setting(
            "logs",
            json!({ "format": "json", "max_megabytes": 1, "max_files": 2, "max_days": 3 }),
        )
        .log_level("info")
        .alone();
    let directory = setup.home().path("state/logs");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("a.log"), "x".repeat(1024 * 1024 + 1)).unwrap();
    for (name, days) in [
        ("a.log.1", 1),
        ("a.log.2", 1),
        ("old.log", 4),
        ("new.log", 2),
    ] {
        let file = std::fs::File::create(directory.join(name)).unwrap();
        let age = std::time::Duration::from_secs(days * 24 * 60 * 60);
        file.set_modified(std::time::SystemTime::now() - age)
            .unwrap();
    }
    let mut client = setup.connect();
    let _ = client.execute("a__t");
    client.finish();
    let names = || {
        let entries = std::fs::read_dir(&directory).unwrap().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name != "dead.log")
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["a.log", "a.log.1", "mcpzip.log", "new.log"]);
    let lines = objects(&log(&setup, "mcpzip"));
    assert!(lines.iter().any(|line| line["message"] == "serving"));
    // A command that has no configuration puts nothing aside.
    let before = names();
    std::fs::write(directory.join("mcpzip.log"), "x".repeat(20 * 1024 * 1024)).unwrap();
    let _ = setup.run(&["logs"]);
    assert_eq!(names(), before);
}

#[cfg(unix)]
#[test]
fn following_a_log_ends_with_its_reader() {
    let setup = two_servers().setting("audit", json!({})).log_level("error");
    let mut client = setup.connect();
    client.execute("a__t");
    for arguments in [&["logs", "a", "-f"][..], &["audit", "-f"], &["logs", "-f"]] {
        let mut following = Following(setup.command(arguments).spawn().unwrap());
        let mut lines = BufReader::new(following.0.stdout.take().unwrap()).lines();
        assert!(lines.next().unwrap().is_ok(), "{arguments:?}");
        drop(lines);
        // Nothing more is written.
        let ended = until("the end", || following.0.try_wait().unwrap());
        assert_eq!(ended.code(), Some(0), "{arguments:?}");
    }
}
