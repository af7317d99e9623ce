//! Commands over the servers of a running daemon.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Shared;
use crate::support::command::{self, Outcome};
use crate::support::process;
use crate::support::script::{answer, echo, result, sleep, surroundings};
use crate::support::{Server, Setup};

const SWEEP: &str =
    r#"{"name":"sweep","inputSchema":{"type":"object","properties":{"filter":{"type":"string"}}}}"#;

fn setup() -> Setup {
    let server = Server::new()
        .tool("t", [answer("done")])
        .tool("asked", [answer("agreed")])
        .tool(
            "fails",
            [result(
                r#"{"content":[{"type":"text","text":"it broke"}],"isError":true}"#,
            )],
        )
        .tool_as("sweep", SWEEP, [echo()]);
    Setup::new()
        .server("a", server)
        .entry("absent", r#"{"command":"/no/such/program"}"#)
        .entry("faulty", r#"{"command":5}"#)
        .setting("tools", json!({ "ask": ["a__asked"] }))
        .log_level("error")
}

fn run(setup: &Setup, words: &[&str], input: &str) -> Outcome {
    command::run(setup.command(words), input)
}

/// What is the same whenever a command runs.
fn lasting(outcome: &Outcome) -> (Option<i32>, String, Vec<String>) {
    // Vectors may be computed while the commands run.
    let without_vectors = |text: &str| match text.split_once(",\n  \"search_by_meaning\"") {
        Some((before, _)) => format!("{before}\n}}\n"),
        None => text.to_owned(),
    };
    let lines = |text: &str| -> String {
        let lasting = text
            .lines()
            .filter(|line| !line.contains("listed_seconds_ago"));
        lasting.map(|line| format!("{line}\n")).collect()
    };
    // A line of the log begins with its time. Notes come before or after the lines that the command's own process writes.
    let stderr = lines(&outcome.stderr);
    let without_time = |line: &str| match line.split_once("ERROR") {
        Some((_, rest)) => rest.to_owned(),
        None => line.to_owned(),
    };
    let mut stderr: Vec<String> = stderr.lines().map(without_time).collect();
    stderr.sort();
    (
        outcome.code,
        without_vectors(&lines(&outcome.stdout)),
        stderr,
    )
}

#[test]
fn commands_say_the_same_and_end_the_same_with_a_daemon_and_alone() {
    let setup = Shared::new(setup());
    let mut client = setup.connect();
    client.execute("a__t");
    // What the servers list is known to both.
    let _ = run(&setup, &["servers", "--alone"], "").code(4);
    let starts = setup.home().starts("a");
    let commands: &[(&[&str], &str)] = &[
        (&["search", "done"], ""),
        (&["search", "--explain", "sweep"], ""),
        (&["search", "--server", "nowhere", "t"], ""),
        (&["describe", "a__sweep"], ""),
        (&["describe", "a__nothing", "--json"], ""),
        (&["tools"], ""),
        (&["tools", "a"], ""),
        (&["tools", "absent"], ""),
        (&["tools", "nowhere"], ""),
        (&["servers", "a"], ""),
        (&["servers", "nowhere"], ""),
        (&["call", "a__t"], ""),
        (&["call", "a__t", "--json"], ""),
        (&["call", "a__fails"], ""),
        (&["call", "a__nothing"], ""),
        (&["call", "absent__t"], ""),
        (&["call", "a__asked"], ""),
        (&["call", "a__sweep"], r#"{"filter":"piped"}"#),
        (&["call", "a__sweep", "-"], "{\"filter\":\n\"waited\"}"),
        (&["call", "a__sweep", r#"{"filter":"given"}"#], ""),
        (&["call", "a__sweep", "--filter", "flag"], ""),
        (&["call", "a__sweep", "--filtre", "flag"], ""),
        (&["call", "a__sweep", "{"], ""),
        (&["call", "a__t", "--timeout", "-1"], ""),
    ];
    let over: Vec<_> = commands
        .iter()
        .map(|(words, input)| run(&setup, words, input))
        .collect();
    assert_eq!(
        setup.home().starts("a"),
        starts,
        "a command started a server"
    );
    for ((words, input), over) in commands.iter().zip(&over) {
        let (command, rest) = words.split_first().unwrap();
        let alone = [&[*command, "--alone"], rest].concat();
        let alone = run(&setup, &alone, input);
        assert_eq!(lasting(over), lasting(&alone), "{over}\n\nalone: {alone}");
    }
    assert!(
        setup.home().starts("a") > starts,
        "`--alone` used the daemon"
    );
    assert_eq!(setup.sessions(), 1, "a command stayed as a session");
}

#[test]
fn all_servers_are_shown_the_same_with_a_daemon_and_alone() {
    let setup = Shared::new(setup());
    let mut client = setup.connect();
    client.execute("a__t");
    for words in [&["servers"][..], &["servers", "--health"]] {
        let over = run(&setup, words, "");
        let alone = run(&setup, &[words, &["--alone"]].concat(), "");
        assert_eq!(over.code, Some(4), "{over}");
        assert_eq!(lasting(&over).0, lasting(&alone).0);
        let states = |outcome: &Outcome| -> Vec<String> {
            let servers = outcome.json()["servers"].clone();
            let servers = servers.as_array().unwrap().iter();
            servers
                .map(|one| {
                    format!(
                        "{} {} {} {}",
                        one["name"], one["state"], one["tools"], one["sharing"]
                    )
                })
                .collect()
        };
        assert_eq!(states(&over), states(&alone));
    }
}

#[test]
fn no_command_starts_a_daemon() {
    let setup = Shared::new(setup());
    let _ = run(&setup, &["call", "a__t"], "").code(0);
    assert_eq!(setup.status()["running"], false);
}

#[test]
fn a_command_has_its_own_directory_and_variables() {
    let server = Server::new().tool("t", [surroundings()]);
    let members = json!({ "env": { "VALUE": "${VALUE}" } });
    let setup = Shared::new(
        Setup::new()
            .server_with("a", server, members)
            .variable("VALUE", "of the session")
            .log_level("error"),
    );
    let mut client = setup.connect();
    client.execute("a__t");
    std::fs::create_dir(setup.home().path("elsewhere")).unwrap();
    let mut command = setup.command(&["call", "a__t"]);
    command
        .current_dir(setup.home().path("elsewhere"))
        .env("VALUE", "of the command");
    let seen = command::run(command, "").code(0).json()["content"][0]["text"].clone();
    let seen: serde_json::Value = serde_json::from_str(seen.as_str().unwrap()).unwrap();
    assert_eq!(seen["variables"]["VALUE"], "of the command");
    let directory = std::fs::canonicalize(setup.home().path("elsewhere")).unwrap();
    assert_eq!(seen["directory"], json!(directory));
}

#[test]
fn a_command_that_is_ended_leaves_the_daemon_and_its_sessions_alone() {
    let server = Server::new()
        .tool("t", [answer("done")])
        .tool("slow", [sleep(3000), answer("late")]);
    let setup = Shared::new(Setup::new().server("a", server).log_level("error"));
    let mut client = setup.connect();
    client.execute("a__t");
    let daemon = setup.process();
    let mut child = setup.command(&["call", "a__slow"]).spawn().unwrap();
    drop(child.stdin.take());
    setup.home().wait_for("a", "slow");
    process::signal(child.id(), rustix::process::Signal::KILL);
    child.wait().unwrap();
    assert!(client.execute("a__t").text().contains("done"));
    assert_eq!(setup.process(), daemon);
}

#[test]
fn a_command_whose_daemon_dies_says_that_it_may_have_acted() {
    let server = Server::new()
        .tool("t", [answer("done")])
        .tool("slow", [sleep(20_000), answer("late")]);
    let setup = Shared::new(Setup::new().server("a", server).log_level("error"));
    let mut client = setup.connect();
    client.execute("a__t");
    let daemon = setup.process();
    let child = setup.command(&["call", "a__slow"]);
    let call = std::thread::spawn(move || command::run(child, ""));
    setup.home().wait_for("a", "slow");
    process::signal(daemon, rustix::process::Signal::KILL);
    let outcome = call.join().unwrap().code(1);
    assert!(outcome.stderr.contains("may have acted"), "{outcome}");
}

/// Prints how long a call takes as a process; the aim of a release build is 15 ms.
#[test]
fn a_call_over_the_daemon_starts_no_server() {
    let setup = Shared::new(
        Setup::new()
            .server("a", Server::new().tool("t", [answer("done")]))
            .log_level("error"),
    );
    let mut client = setup.connect();
    client.execute("a__t");
    let time = |words: &[&str]| -> Duration {
        let mut times: Vec<Duration> = (0..5)
            .map(|_| {
                let start = Instant::now();
                run(&setup, words, "").code(0).json();
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[2]
    };
    let starts = setup.home().starts("a");
    let over = time(&["call", "a__t"]);
    assert_eq!(setup.home().starts("a"), starts);
    let alone = time(&["call", "--alone", "a__t"]);
    println!("a call over the daemon: {over:?}; alone: {alone:?}");
}
