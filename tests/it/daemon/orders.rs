//! The orders of the control interface: who can give them, and where they are recorded.

use serde_json::{Value, json};

use super::Shared;
use crate::support::command::{self, through};
use crate::support::script::answer;
use crate::support::{Server, Setup, until};

fn shared() -> Shared {
    let server = Server::new().tool("t", [answer("done")]);
    Shared::new(Setup::new().server("a", server).setting("audit", json!({})))
}

/// The lines of one kind in the audit log, oldest first.
pub(super) fn lines(setup: &Shared, kind: &str) -> Vec<Value> {
    let shown = command::run(setup.command(&["audit", "--json"]), "").code(0);
    let lines = shown.stdout.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["kind"] == kind)
        .collect()
}

/// The part of each line's detail before the first comma.
fn details(setup: &Shared, kind: &str) -> Vec<String> {
    let lines = lines(setup, kind);
    let details = lines.iter().map(|line| line["detail"].as_str().unwrap());
    details
        .map(|detail| detail.split(',').next().unwrap().to_owned())
        .collect()
}

#[test]
fn orders_and_sessions_are_in_the_audit_log_and_orders_are_events() {
    let setup = shared();
    let mut client = setup.connect();
    client.execute("a__t");
    let run = |words: &[&str]| command::run(setup.command(words), "").code(0);
    let _ = run(&["daemon", "restart", "a"]);
    let _ = run(&["daemon", "stop", "a"]);
    let _ = run(&["daemon", "reload"]);
    let events = crate::daemon::control::past(&setup);
    let orders: Vec<&str> = events
        .iter()
        .filter(|event| event["kind"] == "ordered")
        .map(|event| event["order"].as_str().unwrap())
        .collect();
    assert_eq!(
        orders,
        ["servers.restart", "servers.stop", "daemon.reload"],
        "{events:?}"
    );
    let first = setup.process();
    setup.kill_daemon();
    until("another daemon has taken over", || {
        let process = setup.status()["daemon"]["process"].as_u64();
        process.filter(|process| *process != u64::from(first))
    });
    client.execute("a__t");
    client.finish();
    until("the session has ended", || {
        (setup.sessions() == 0).then_some(())
    });
    let _ = run(&["daemon", "stop"]);
    until("the last line is written", || {
        let last = details(&setup, "daemon").pop();
        last.filter(|last| last == "the daemon ends")
    });
    assert_eq!(
        details(&setup, "daemon"),
        [
            "the daemon runs",
            "servers.restart by the control interface",
            "servers.stop by the control interface",
            "daemon.reload by the control interface",
            "the daemon runs",
            "daemon.stop by the control interface",
            "the daemon ends",
        ]
    );
    let sessions = details(&setup, "session");
    assert_eq!(sessions.len(), 3, "{sessions:?}");
    assert!(sessions[0].starts_with("opened by process"), "{sessions:?}");
    assert!(sessions[1].starts_with("taken over"), "{sessions:?}");
    assert_eq!(sessions[2], "closed");
    let named = lines(&setup, "daemon");
    assert_eq!(named[1]["server"], "a", "{named:?}");
    assert_eq!(lines(&setup, "call").len(), 2);
    let _ = run(&["audit", "verify"]);
}

#[test]
fn a_session_without_an_audit_log_does_not_end_that_of_the_daemon() {
    let setup = shared();
    let mut first = setup.connect();
    first.execute("a__t");
    let change = |edit: &dyn Fn(&mut Value)| {
        let text = std::fs::read_to_string(setup.config_path()).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        edit(&mut config);
        setup.save_text(&config.to_string());
    };
    change(&|config| config["audit"] = json!({ "enabled": false }));
    let mut without = setup.connect();
    without.execute("a__t");
    let _ = command::run(setup.command(&["daemon", "restart", "a"]), "").code(0);
    change(&|config| config["audit"] = json!({ "arguments": "none" }));
    let mut last = setup.connect();
    last.execute("a__t");
    for client in [first, without, last] {
        client.finish();
    }
    let told = details(&setup, "daemon");
    assert_eq!(
        told,
        [
            "the daemon runs",
            "servers.restart by the control interface"
        ]
    );
}

#[test]
fn no_tool_call_reaches_the_control_interface() {
    let setup = shared();
    let mut client = setup.connect();
    client.execute("a__t");
    let daemon = setup.process();
    let starts = setup.home().starts("a");
    for method in [
        "daemon.stop",
        "daemon.restart",
        "daemon.reload",
        "servers.stop",
        "servers.restart",
    ] {
        let under = method.replace('.', "_");
        for name in [
            method.to_owned(),
            under.clone(),
            format!("mcpzip__{under}"),
            format!("mcpzip__{method}"),
            format!("daemon__{}", method.rsplit('.').next().unwrap()),
        ] {
            let answer = client.execute_with(&name, r#"{"server":"a"}"#).text();
            assert!(!answer.contains("\"count\""), "{name}: {answer}");
            client.call(&name, r#"{"server":"a"}"#);
        }
        client.ask(method, r#"{"server":"a"}"#);
    }
    let found = client.search("stop or restart the daemon or a server");
    assert!(!found.contains("daemon"), "{found}");
    assert!(client.execute("a__t").text().contains("done"));
    assert_eq!(setup.process(), daemon);
    assert_eq!(setup.home().starts("a"), starts);
    assert!(
        !details(&setup, "daemon")
            .iter()
            .any(|detail| detail.contains("control interface"))
    );
}

#[test]
fn a_confined_process_neither_finds_nor_stops_the_daemon_of_others() {
    let setup = shared();
    let mut client = setup.connect();
    client.execute("a__t");
    let daemon = setup.process();
    let plain = setup.command(&["daemon", "stop", "--json"]);
    let mut confined = through("setpriv", &plain);
    confined
        .arg("--no-new-privs")
        .arg(plain.get_program())
        .args(plain.get_args());
    if std::process::Command::new("setpriv")
        .arg("--version")
        .output()
        .is_err()
    {
        return;
    }
    let outcome = command::run(confined, "").code(0);
    assert_eq!(outcome.json(), json!({ "stopped": false }));
    assert_eq!(setup.process(), daemon);
    assert_eq!(setup.sessions(), 1);
}
