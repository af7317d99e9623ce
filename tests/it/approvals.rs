//! Calls that wait for a person because their client cannot ask.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::script::echo;
#[cfg(unix)]
use crate::support::terminal::Terminal;
use crate::support::{Server, Setup, until};

const NAME: &str = "files__write";

fn asking(wait: &str) -> Setup {
    Setup::new()
        .server("files", Server::new().tool("write", [echo()]))
        .setting("tools", json!({ "ask": [NAME] }))
        .setting("approvals", json!({ "wait": wait }))
}

fn pending(setup: &Setup) -> Vec<Value> {
    let listed = setup.run(&["approvals", "list", "--json"]).code(0).json();
    listed.as_array().unwrap().clone()
}

/// The id of the only question.
fn asked(setup: &Setup) -> String {
    until("a question", || match pending(setup).as_slice() {
        [one] => Some(one["id"].as_str().unwrap().to_owned()),
        _ => None,
    })
}

/// Allows a call at a terminal; `None` if the test is skipped.
#[cfg(unix)]
fn allow(setup: &Setup, arguments: &[&str]) -> Option<String> {
    let command = [&["approvals", "allow"], arguments].concat();
    let terminal = Terminal::run(&setup.command(&command))?;
    let screen = terminal.shows("[y/N]");
    terminal.types("y");
    terminal.shows("allowed files__write");
    Some(screen)
}

#[test]
#[cfg(unix)]
fn a_call_waits_for_a_person_and_an_approval_is_used_once() {
    let setup = asking("60s");
    let mut client = setup.connect();
    let call = json!({ "name": NAME, "arguments": { "path": "/a\u{202e}b" } }).to_string();
    let id = client.begin("execute_tool", &call);
    let question = asked(&setup);
    let Some(screen) = allow(&setup, &[&question]) else {
        return;
    };
    assert!(
        screen.contains(r"/a\u{202e}b") && screen.contains("tools.ask[0]"),
        "{screen}"
    );
    let answer = client.answer(id).value();
    assert_eq!(
        answer["structuredContent"]["arguments"]["path"],
        "/a\u{202e}b"
    );
    assert_eq!(setup.home().count("files", "tools/call"), 1);
    // A repeated call needs a new approval.
    client.begin("execute_tool", &call);
    assert_ne!(asked(&setup), question);
    assert_eq!(setup.home().count("files", "tools/call"), 1);
}

#[test]
#[cfg(unix)]
fn a_call_is_answered_before_its_client_gives_up_and_the_same_call_uses_the_approval() {
    let setup = asking("1s");
    for arguments in [&["serve"][..], &["serve", "--direct"]] {
        let is_direct = arguments.len() > 1;
        let before = setup.home().count("files", "tools/call");
        let mut client = setup.start_with(arguments);
        client.shake_hands("2025-11-25");
        let mut call = |path: &str| {
            let arguments = json!({ "path": path });
            match is_direct {
                true => client.call(NAME, &arguments.to_string()),
                false => client.execute_with(NAME, &arguments.to_string()),
            }
        };
        let started = Instant::now();
        let refused = call("/a").tool_error();
        assert!(started.elapsed().as_secs() < 20);
        let id = asked(&setup);
        assert!(
            refused.contains(&format!("mcpzip approvals allow {id}")),
            "{refused}"
        );
        if allow(&setup, &[&id]).is_none() {
            return;
        }
        let other = call("/b").tool_error();
        assert!(
            other.contains("waits for approval") && !other.contains(&id),
            "{other}"
        );
        assert_eq!(setup.home().count("files", "tools/call"), before);
        call("/a").value();
        assert_eq!(setup.home().count("files", "tools/call"), before + 1);
        assert!(call("/a").tool_error().contains("waits for approval"));
        client.finish();
        // With the session, its questions are over.
        assert_eq!(pending(&setup), [] as [Value; 0]);
    }
}

#[test]
fn a_denied_call_is_not_made_and_no_pipe_allows_one() {
    let setup = asking("60s");
    let mut client = setup.connect();
    let id = client.begin_execute(NAME);
    let question = asked(&setup);
    #[cfg(unix)]
    if let Some(terminal) = Terminal::run(&setup.command(&["status"])) {
        terminal.shows("1 call waits for approval");
    }
    let status = setup.run(&["status", "--json"]).code(0).json();
    assert_eq!(status["waiting_calls"], 1);
    let refused = setup
        .run_with_input(&["approvals", "allow", &question], "y\n")
        .code(1);
    assert!(
        refused.stderr.contains("only a person at a terminal"),
        "{}",
        refused.stderr
    );
    let denied = setup
        .run(&["approvals", "deny", &question, "--json"])
        .code(0)
        .json();
    assert_eq!(denied["decision"], "denied");
    let answer = client.answer(id).tool_error();
    assert!(answer.contains("the user did not agree"), "{answer}");
    let again = setup.run(&["approvals", "deny", &question]).code(1);
    assert!(
        again.stderr.contains("was denied before"),
        "{}",
        again.stderr
    );
    for wrong in ["aaaaaaaa", "../../config"] {
        let unknown = setup.run(&["approvals", "deny", wrong]).code(1);
        assert!(
            unknown.stderr.contains("no call waits for approval"),
            "{}",
            unknown.stderr
        );
    }
    assert_eq!(setup.home().count("files", "tools/call"), 0);
    client.finish();
}

#[test]
fn a_cancelled_call_withdraws_its_question() {
    let setup = asking("60s");
    let mut client = setup.connect();
    let id = client.begin_execute(NAME);
    let question = asked(&setup);
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    until("no question", || pending(&setup).is_empty().then_some(()));
    let refused = setup.run(&["approvals", "deny", &question]).code(1);
    assert!(
        refused.stderr.contains("no call waits for approval"),
        "{}",
        refused.stderr
    );
    client.finish();
}

#[test]
#[cfg(unix)]
fn an_approval_of_one_session_is_none_of_another() {
    let setup = asking("1s");
    let gateway = setup.serve(&[]);
    let (one, two) = (gateway.session(), gateway.session());
    let call = |session: &crate::support::gateway::HttpSession, id| {
        let body = session.execute(id, NAME, "").send().body;
        body.contains("waits for approval")
    };
    assert!(call(&one, 11));
    let question = asked(&setup);
    if allow(&setup, &[&question]).is_none() {
        return;
    }
    assert!(call(&two, 12));
    assert_eq!(setup.home().count("files", "tools/call"), 0);
    assert!(!call(&one, 13));
    assert_eq!(setup.home().count("files", "tools/call"), 1);
    assert!(call(&one, 14));
}

#[test]
#[cfg(unix)]
fn always_writes_a_rule_that_rules_check_names() {
    let setup = asking("2s");
    let mut client = setup.connect();
    let id = client.begin_execute(NAME);
    let question = asked(&setup);
    if allow(&setup, &[&question, "--always"]).is_none() {
        return;
    }
    client.answer(id);
    until("a call without a question", || {
        let told = client.execute_with(NAME, r#"{"path":"/other"}"#);
        (told.value()["isError"] != true).then_some(())
    });
    let command = setup.command(&["rules", "check", "files", "write", "--json"]);
    let checked = crate::support::command::run(command, "").code(0).json();
    assert_eq!(checked["verdict"], "allowed");
    assert_eq!(checked["rule"], r#"tools.without_asking[0] "files__write""#);
    client.finish();
}

#[test]
#[cfg(unix)]
fn always_writes_a_rule_into_the_profile_that_asks() {
    let rules = json!({ "servers": ["files"], "tools": { "ask": [NAME] } });
    let setup = Setup::new()
        .server("files", Server::new().tool("write", [echo()]))
        .setting("profiles", json!({ "review": rules }))
        .setting("approvals", json!({ "wait": "2s" }));
    let mut client = setup.start_with(&["serve", "--profile", "review"]);
    client.shake_hands("2025-11-25");
    let id = client.begin_execute(NAME);
    let question = asked(&setup);
    if allow(&setup, &[&question, "--always"]).is_none() {
        return;
    }
    client.answer(id);
    until("a call without a question", || {
        let told = client.execute_with(NAME, r#"{"path":"/other"}"#);
        (told.value()["isError"] != true).then_some(())
    });
    let check = [
        "rules",
        "check",
        "files",
        "write",
        "--profile",
        "review",
        "--json",
    ];
    let command = setup.command(&check);
    let checked = crate::support::command::run(command, "").code(0).json();
    assert_eq!(checked["verdict"], "allowed");
    assert_eq!(
        checked["rule"],
        r#"profiles.review.tools.without_asking[0] "files__write""#
    );
    client.finish();
}

#[test]
#[cfg(unix)]
fn always_is_refused_where_the_rule_holds_outside_of_the_sessions_profile() {
    let setup = Setup::new()
        .server("files", Server::new().tool("write", [echo()]))
        .setting("profiles", json!({ "review": { "servers": ["files"] } }))
        .setting("tools", json!({ "ask": [NAME] }))
        .setting("approvals", json!({ "wait": "2s" }));
    let mut client = setup.start_with(&["serve", "--profile", "review"]);
    client.shake_hands("2025-11-25");
    let id = client.begin_execute(NAME);
    let question = asked(&setup);
    let command = ["approvals", "allow", &question, "--always"];
    let Some(terminal) = Terminal::run(&setup.command(&command)) else {
        return;
    };
    terminal.shows("under the profile `review`");
    assert!(client.answer(id).tool_error().contains("waits for"));
    let file = std::fs::read_to_string(setup.config_path()).unwrap();
    assert!(!file.contains("without_asking"), "{file}");
    client.finish();
}

/// A pipe in the place of a lock file, which nothing reads.
#[test]
#[cfg(unix)]
fn a_pipe_in_the_place_of_a_lock_hangs_no_call() {
    let setup = asking("1s").setting("audit", json!({}));
    let mut client = setup.connect();
    client.execute(NAME).tool_error();
    client.finish();
    for (lock, told) in [
        ("state/approvals/lock", "is not a regular file"),
        ("state/audit/1/.lock", "is not a regular file"),
        ("state/audit-heads/.lock", "waits for approval"),
        ("state/pins/v2/lock", "waits for approval"),
    ] {
        let path = setup.home().path(lock);
        std::fs::remove_file(&path).unwrap_or_else(|error| panic!("{lock}: {error}"));
        let status = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(status.unwrap().success());
        let mut client = setup.connect();
        let refused = client.execute(NAME).tool_error();
        assert!(refused.contains(told), "{lock}: {refused}");
        client.finish();
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
#[cfg(unix)]
fn two_equal_calls_at_once_use_one_approval_once() {
    let setup = asking("60s");
    let mut client = setup.connect();
    let ids = [client.begin_execute(NAME), client.begin_execute(NAME)];
    let question = asked(&setup);
    if allow(&setup, &[&question]).is_none() {
        return;
    }
    let next = until("a second question", || match pending(&setup).as_slice() {
        [one] if one["id"] != question.as_str() => Some(one["id"].as_str().unwrap().to_owned()),
        _ => None,
    });
    until("one call", || {
        (setup.home().count("files", "tools/call") == 1).then_some(())
    });
    let denied = setup.run(&["approvals", "deny", &next, "--json"]).code(0);
    assert_eq!(denied.json()["decision"], "denied");
    let answers = ids.map(|id| client.answer(id).value()["isError"] == true);
    assert!(answers[0] != answers[1], "{answers:?}");
    assert_eq!(setup.home().count("files", "tools/call"), 1);
    client.finish();
}

#[test]
#[cfg(unix)]
fn an_agent_with_full_management_decides_on_no_call() {
    let setup = asking("1s").setting("management", json!("full"));
    let mut client = setup.connect();
    let mut call = |arguments: &str| client.execute_with(NAME, arguments).tool_error();
    assert!(call(r#"{"a":1,"b":2}"#).contains("waits for approval"));
    let question = asked(&setup);
    for name in [
        "approvals",
        "approvals_allow",
        "allow",
        "approve",
        "approvals/allow",
    ] {
        let arguments = json!({ "id": question, "approval": question }).to_string();
        client
            .execute_with(&format!("mcpzip__{name}"), &arguments)
            .tool_error();
    }
    // A claim of the agent in the arguments changes the call.
    let claimed = json!({ "a": 1, "b": 2, "approval": question }).to_string();
    let mut call = |arguments: &str| client.execute_with(NAME, arguments).tool_error();
    assert!(call(&claimed).contains("waits for approval"));
    if allow(&setup, &[&question]).is_none() {
        return;
    }
    for other in [r#"{"b":2,"a":1}"#, r#"{"a":1,"b":3}"#, "{}"] {
        assert!(call(other).contains("waits for approval"), "{other}");
    }
    assert_eq!(setup.home().count("files", "tools/call"), 0);
    let allowed = client.execute_with(NAME, r#"{"a":1,"b":2}"#).value();
    assert_eq!(allowed["structuredContent"]["arguments"]["b"], 2);
    assert_eq!(setup.home().count("files", "tools/call"), 1);
    client.finish();
}
