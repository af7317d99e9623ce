//! `mcpzip top`, as a person sees it in a terminal.

use serde_json::json;

use super::shared;
use crate::daemon::Shared;
use crate::support::script::{answer, echo, hang, sleep};
use crate::support::terminal::Terminal;
use crate::support::{Server, Setup, until};

#[test]
fn servers_calls_and_the_log_are_shown_live_and_a_server_restarts_by_key() {
    let slow = [sleep(3000), answer("done")];
    let setup = Shared::new(
        Setup::new()
            .server("notes", Server::new().tool("write", slow))
            .entry("absent", r#"{"command":"/no/such/program\u001b[2J"}"#),
    );
    let mut client = setup.connect();
    client.execute("absent__x");
    let Some(terminal) = Terminal::run(&setup.command(&["top"])) else {
        return;
    };
    terminal.shows("1 session");
    let screen = terminal.shows("failed");
    assert!(
        screen.contains("absent") && screen.contains("notes"),
        "{screen}"
    );
    assert!(!screen.contains('\u{1b}'), "{screen}");
    let call = client.begin_execute("notes__write");
    terminal.shows("notes__write  in flight for");
    client.answer(call);
    terminal.shows("notes__write  ok");
    assert_eq!(setup.home().starts("notes"), 1);
    terminal.press("Down");
    terminal.press("Down");
    terminal.shows("log of notes");
    terminal.press("r");
    terminal.shows("notes is restarted");
    until("the restart", || {
        (setup.home().starts("notes") == 2).then_some(())
    });
    setup.kill_daemon();
    terminal.shows("sessions");
    terminal.press("q");
    terminal.shows("[exit 0]");
}

#[test]
fn a_call_that_hangs_since_before_the_view_was_opened_is_in_flight() {
    let server = Server::new().tool("write", [hang()]);
    let setup = Shared::new(Setup::new().server("notes", server));
    let mut client = setup.connect();
    let id = client.begin_execute("notes__write");
    until("the call to arrive", || {
        (setup.home().count("notes", r#""name":"write""#) == 1).then_some(())
    });
    let Some(terminal) = Terminal::run(&setup.command(&["top"])) else {
        return;
    };
    terminal.shows("calls: 1 in flight");
    terminal.shows("notes__write  in flight for");
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    terminal.shows("notes__write  cancelled");
    terminal.shows("calls: 0 in flight");
    terminal.press("q");
    terminal.shows("[exit 0]");
}

#[test]
fn a_call_is_allowed_by_key_only_after_its_question_was_shown() {
    let setup = Setup::new()
        .server("files", Server::new().tool("write", [echo()]))
        .setting("tools", json!({ "ask": ["files__write"] }))
        .setting("approvals", json!({ "wait": "30s" }));
    let setup = Shared::new(setup);
    let mut client = setup.connect();
    let Some(terminal) = Terminal::run(&setup.command(&["top"])) else {
        return;
    };
    terminal.shows("approvals: 0 waiting");
    for (key, is_allowed) in [("d", false), ("a", true)] {
        let path = format!("/tmp/whole/{key}");
        let arguments = json!({ "name": "files__write", "arguments": { "path": path } });
        let call = client.begin("execute_tool", &arguments.to_string());
        terminal.shows("approvals: 1 waiting");
        if !is_allowed {
            terminal.press("Tab");
        }
        // The first press shows the question.
        terminal.press(key);
        let question = terminal.shows(&path);
        assert!(question.contains("files"), "{question}");
        terminal.press(key);
        let answer = client.answer(call);
        assert_eq!(!answer.is_tool_error(), is_allowed, "{answer:?}");
        terminal.shows("approvals: 0 waiting");
    }
    terminal.press("q");
    terminal.shows("[exit 0]");
}

#[test]
fn a_daemon_without_a_session_is_explained_and_a_signal_restores_the_terminal() {
    let setup = Shared::new(Setup::new().server("notes", Server::new().tool("x", [echo()])));
    setup.connect().finish();
    let Some(terminal) = Terminal::run(&setup.command(&["top"])) else {
        return;
    };
    terminal.shows("no session is open");
    terminal.signals("mcpzip", "TERM");
    let screen = terminal.shows("[exit 130]");
    assert!(!screen.contains("no session is open"), "{screen}");
    assert!(terminal.has_cursor());
    terminal.types("echoed");
    terminal.shows("echoed");
}

#[test]
fn top_says_that_it_needs_a_terminal_and_that_no_daemon_runs() {
    let setup = shared();
    let piped = setup.run(&["top"]).code(1).stderr;
    assert!(piped.contains("needs a terminal"), "{piped}");
    let Some(terminal) = Terminal::run(&setup.command(&["top"])) else {
        return;
    };
    terminal.shows("no daemon runs for this configuration");
    terminal.press("Escape");
    terminal.shows("[exit 0]");
}
