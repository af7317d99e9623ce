//! Where a client's descriptors cannot be passed to the daemon, the attaching process relays the bytes.

use std::path::PathBuf;

use serde_json::json;

use super::Shared;
use crate::support::process;
use crate::support::script::{answer, echo};
use crate::support::{Client, Server, Setup};

fn relayed() -> Shared {
    let server = Server::new()
        .tool("t", [answer("done")])
        .tool("echo", [echo()]);
    let setup = Setup::new().server("a", server).log_level("info");
    Shared::relayed(setup.setting("results", json!({ "budget": 0 })))
}

/// The pipes that a process has open.
fn pipes(process: u32) -> Vec<PathBuf> {
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let targets = descriptors.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    targets
        .filter(|target| target.to_string_lossy().starts_with("pipe:"))
        .collect()
}

#[test]
fn the_daemon_serves_a_session_whose_pipes_it_does_not_have() {
    let setup = relayed();
    let mut client = setup.connect();
    assert!(client.execute("a__t").text().contains("done"));
    assert_eq!(setup.sessions(), 1);
    let stdin = std::fs::read_link(format!("/proc/{}/fd/0", client.process())).unwrap();
    assert!(!pipes(setup.process()).contains(&stdin));
    let log = setup.log();
    assert!(log.contains("is_relayed=true"), "{log}");
    client.finish();
}

#[test]
fn sessions_with_and_without_a_relay_share_a_server() {
    let setup = relayed();
    let mut command = setup.command(&["serve"]);
    command.env_remove("MCPZIP_TEST_FAULT");
    let (mut first, mut second) = (setup.connect(), setup.start_command(command));
    second.shake_hands("2025-11-25");
    assert!(first.execute("a__t").text().contains("done"));
    assert!(second.execute("a__t").text().contains("done"));
    assert_eq!(setup.home().starts("a"), 1);
    let stdin = std::fs::read_link(format!("/proc/{}/fd/0", second.process())).unwrap();
    assert!(pipes(setup.process()).contains(&stdin));
}

#[test]
fn large_messages_arrive_whole_and_leave_no_memory_behind() {
    let setup = relayed();
    let mut client = setup.connect();
    let call = |client: &mut Client, text: &str| {
        let arguments = json!({ "name": "a__echo", "arguments": { "text": text } });
        let answer = client.call("execute_tool", &arguments.to_string());
        assert!(answer.as_str().contains(text));
    };
    call(&mut client, "short");
    let before = process::memory(client.process(), "RssAnon:");
    for _ in 0..5 {
        call(&mut client, &"x".repeat(4_000_000));
    }
    for _ in 0..200 {
        call(&mut client, &"y".repeat(1000));
    }
    let after = process::memory(client.process(), "RssAnon:");
    assert!(
        after < before + 2_000_000,
        "{before} and then {after} bytes"
    );
}

#[test]
fn input_that_ended_has_ended_for_the_next_daemon_too() {
    let server = Server::new()
        .at_start([crate::support::script::sleep(1500)])
        .tool("t", [answer("done")]);
    let setup = Shared::relayed(Setup::new().server("a", server));
    let mut client = setup.connect();
    let id = client.begin_execute("a__t");
    client.close_stdin();
    crate::support::until("the server is being started", || {
        (setup.home().starts("a") > 0).then_some(())
    });
    setup.kill_daemon();
    assert!(client.answer(id).text().contains("done"));
    assert!(client.wait().success());
    assert_eq!(setup.home().count("a", r#""tools/call""#), 1);
}
