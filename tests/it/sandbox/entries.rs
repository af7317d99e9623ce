//! A server in a sandbox is a server like any other: logs, cancellation, variables, its data, restarts.

use serde_json::json;

use super::{has_bubblewrap, with_hostile};
use crate::support::script::{answer, await_cancel, say, surroundings};
use crate::support::{Server, Setup, program, until};

/// A fake server in a sandbox in which it has its script and its log.
fn boxed(script: Server, more: serde_json::Value) -> Setup {
    let setup = Setup::new().alone();
    let home = setup.home().path("");
    std::fs::create_dir_all(home.join("io")).unwrap();
    let (path, log) = (home.join("io/a.script.json"), home.join("io/a.log"));
    std::fs::write(&path, script.to_json()).unwrap();
    let mut entry = json!({
        "command": program::fake_server(),
        "args": [path, log],
        "env": { "OWN": "value" },
        "sandbox": { "write": [home.join("io")], "env": ["CHOSEN"] },
    });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    setup
        .variable("CHOSEN", "chosen")
        .variable("OTHER", "other")
        .entry("a", &entry.to_string())
}

#[test]
fn a_server_gets_the_variables_that_its_sandbox_names_and_a_home_of_its_own() {
    if !has_bubblewrap() {
        return;
    }
    let setup = boxed(Server::new().tool("who", [surroundings()]), json!({}));
    let mut client = setup.connect();
    let said = client.execute("a__who").result().to_owned();
    let data = setup.home().path("state/sandboxes/a");
    for (name, value) in [
        ("OWN", "value"),
        ("CHOSEN", "chosen"),
        ("HOME", data.to_str().unwrap()),
        ("PATH", "/usr/bin"),
    ] {
        assert!(
            said.contains(name) && said.contains(value),
            "{name}: {said}"
        );
    }
    for name in [
        "OTHER",
        "MCPZIP_STATE_DIR",
        "MCPZIP_CONFIG",
        "RUST_BACKTRACE",
    ] {
        assert!(!said.contains(name), "{name}: {said}");
    }
    client.finish();
}

#[test]
fn logs_cancellation_and_the_end_are_as_without_a_sandbox() {
    if !has_bubblewrap() {
        return;
    }
    let script = Server::new()
        .tool("t", [say("a word to the log"), answer("done")])
        .tool("slow", [await_cancel(), answer("never")]);
    let setup = boxed(script, json!({}));
    let mut client = setup.connect();
    assert!(client.execute("a__t").text().contains("done"));
    let logged = setup.home().path("state/logs/a.log");
    until("the word in the log", || {
        let text = std::fs::read_to_string(&logged).unwrap_or_default();
        text.contains("a word to the log").then_some(())
    });
    let id = client.begin_execute("a__slow");
    let log = setup.home().path("io/a.log");
    let heard = |what: &'static str| {
        until(what, || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            text.contains(what).then_some(())
        });
    };
    heard("\"slow\"");
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    heard("notifications/cancelled");
    client.finish();
    heard("end of input");
}

#[test]
fn no_secret_is_on_a_command_line() {
    if !has_bubblewrap() {
        return;
    }
    let script = Server::new().tool("t", [answer("done")]);
    let setup = boxed(
        script,
        json!({ "env": { "API_KEY": "s3cret-of-the-entry" } }),
    );
    let mut client = setup.connect();
    client.execute("a__t");
    let all: Vec<String> = crate::support::process::Process::all()
        .map(|process| process.command)
        .collect();
    assert!(
        all.iter().any(|command| command.contains("bwrap")),
        "{all:?}"
    );
    assert!(
        !all.iter().any(|command| command.contains("s3cret")),
        "{all:?}"
    );
    client.finish();
}

#[test]
fn another_sandbox_starts_the_server_again() {
    if !has_bubblewrap() {
        return;
    }
    let setup = Setup::new().alone();
    let home = setup.home().path("home");
    std::fs::create_dir_all(home.join("open")).unwrap();
    std::fs::write(home.join("open/file"), "text").unwrap();
    let file = json!({ "read": [home.join("open/file")] });
    let setup = with_hostile(setup, Some(&json!("strict")));
    let mut client = setup.connect();
    assert!(super::attempts(&mut client, &file).is_empty());
    let sandbox = json!({ "read": [home.join("open")] });
    with_hostile(setup, Some(&sandbox)).save();
    until("the file can be read", || {
        (!super::attempts(&mut client, &file).is_empty()).then_some(())
    });
    client.finish();
}

#[test]
fn status_and_doctor_say_what_a_sandbox_opens() {
    if !has_bubblewrap() {
        return;
    }
    let setup = boxed(Server::new().tool("t", [answer("done")]), json!({}));
    let _ = setup.run(&["servers"]).code(0);
    let status = setup.run(&["status", "--json"]).code(0).json();
    assert_eq!(
        status["servers"][0]["sandbox"],
        "strict, write 1 more, no network"
    );
}
