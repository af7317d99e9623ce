//! What is written to the logs, what is hidden in them, and how they are read.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use serde_json::json;

use super::support::script::{answer, exit, say};
use super::support::{Server, Setup, until};

fn log(setup: &Setup, name: &str) -> String {
    std::fs::read_to_string(setup.home().path(&format!("state/logs/{name}.log"))).unwrap_or_default()
}

/// A server that says something, and one that dies.
fn two_servers() -> Setup {
    let talking = Server::new().at_start([say("ready to serve")]).tool("t", [say("called"), answer("done")]);
    Setup::new().server("a", talking).server("dead", Server::new().at_start([say("no database"), exit(3)]))
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
    assert!(main.contains(&format!("Z {process}  INFO serving")), "{main}");
    assert!(main.contains("a client is here") && main.contains("no connection server=dead"), "{main}");
    let a = log(&setup, "a");
    assert!(a.contains("\nready to serve\n") || a.starts_with("ready to serve\n"), "{a}");
    assert!(a.contains("called") && a.contains("[mcpzip] ") && a.contains("INFO connected"), "{a}");
    let dead = log(&setup, "dead");
    assert!(dead.contains("no database") && dead.contains("WARN no connection"), "{dead}");
    assert!(!a.contains("no database") && !dead.contains("ready to serve"));
}

#[test]
fn messages_are_logged_at_trace_without_secrets() {
    let (plain, odd) = ("hunter2-secret", "two\nlines \"quoted\" of secret");
    let server = Server::new().tool("t", [say(&format!("the key is {plain}")), answer(&format!("{plain} and {odd}"))]);
    let setup = Setup::new()
        .server_with("a", server, json!({ "env": { "API_TOKEN": plain, "API_KEY": odd } }))
        .log_level("trace");
    let mut client = setup.connect();
    assert!(
        client.execute_with("a__t", &json!({ "x": odd }).to_string()).text().contains(plain),
        "results pass as they are"
    );
    client.close_stdin();
    client.wait();
    let logs = [log(&setup, "a"), log(&setup, "mcpzip"), client.stderr()];
    for text in &logs {
        assert!(text.contains("sent {") && text.contains("received {") && text.contains("tools/call"), "{text:.3000}");
        assert!(!text.contains(plain) && !text.contains("quoted"), "{text:.6000}");
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
    assert!(json["lines"].as_array().unwrap().iter().any(|line| line == "ready to serve"), "{json}");
    let refused = setup.run(&["logs", "nobody"]).code(1);
    assert!(refused.stderr.contains("`nobody`") && refused.stderr.contains("a, dead, mcpzip"), "{}", refused.stderr);
    assert!(setup.run(&["logs", "../config"]).code(1).stdout.is_empty());
    let mut following = Following(setup.command(&["logs", "a", "-f", "-n", "0"]).spawn().unwrap());
    let lines = BufReader::new(following.0.stdout.take().unwrap()).lines();
    // It is not known when it has begun, so the server speaks until it is heard.
    let heard = std::thread::spawn(move || lines.map_while(Result::ok).find(|line| line == "called"));
    until("a line that follows", || {
        client.execute("a__t");
        heard.is_finished().then_some(())
    });
    assert!(heard.join().unwrap().is_some());
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
