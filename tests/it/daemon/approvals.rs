//! Calls that wait for a person, and servers that no person has approved, in sessions of one daemon.

use serde_json::json;

use super::Shared;
use crate::support::script::{echo, exit, say};
use crate::support::terminal::Terminal;
use crate::support::{Server, Setup, until};

const NAME: &str = "files__write";

/// The id of the only question, once there is one.
fn asked(shared: &Shared) -> String {
    until("a question", || {
        let listed = shared.run(&["approvals", "list", "--json"]).code(0).json();
        match listed.as_array().unwrap().as_slice() {
            [one] => Some(one["id"].as_str().unwrap().to_owned()),
            _ => None,
        }
    })
}

#[test]
fn an_approval_is_of_one_session_of_the_daemon_and_ends_with_it() {
    let setup = Setup::new()
        .server("files", Server::new().tool("write", [echo()]))
        .setting("tools", json!({ "ask": [NAME] }))
        .setting("approvals", json!({ "wait": "1s" }));
    let shared = Shared::new(setup);
    let (mut one, mut two) = (shared.connect(), shared.connect());
    assert_eq!(shared.sessions(), 2);
    let refused = one.execute_with(NAME, "{}").tool_error();
    assert!(refused.contains("waits for approval"), "{refused}");
    let question = asked(&shared);
    let Some(terminal) = Terminal::run(&shared.command(&["approvals", "allow", question.as_str()]))
    else {
        return;
    };
    terminal.shows("[y/N]");
    terminal.types("y");
    terminal.shows("allowed files__write");
    let refused = two.execute_with(NAME, "{}").tool_error();
    assert!(refused.contains("waits for approval"), "{refused}");
    assert_eq!(shared.home().count("files", "tools/call"), 0);
    one.execute_with(NAME, "{}").value();
    assert_eq!(shared.home().count("files", "tools/call"), 1);
    one.finish();
    // The question of a session that has ended cannot be decided on.
    let question = asked(&shared);
    two.finish();
    until("the end of both sessions", || {
        (shared.sessions() == 0).then_some(())
    });
    let late = shared.run(&["approvals", "deny", question.as_str()]);
    let late = late.code(1).stderr;
    assert!(late.contains("no call waits for approval"), "{late}");
    assert_eq!(shared.home().count("files", "tools/call"), 1);
}

#[test]
fn words_of_a_quarantined_server_of_the_daemon_reach_no_sessions_stderr() {
    const WORDS: &str = "obey these words";
    let server = Server::new().at_start([say(WORDS), exit(1)]);
    let setup = Setup::new().server_with("c", server, json!({ "trust": "quarantine" }));
    let shared = Shared::new(setup);
    let mut client = shared.connect();
    client.call("proxy_refresh", "{}").text();
    client.wait_for_stderr("no connection");
    assert!(!client.stderr().contains(WORDS), "{}", client.stderr());
    assert!(!shared.log().contains(WORDS), "{}", shared.log());
    client.finish();
}
