//! The pause of the user: it holds every call of every process, also after one of them was killed, and nothing else.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::control::{View, past};
use super::orders::lines;
use super::{Shared, Way, each_way};
use crate::support::script::{answer, answer_with, ask, echo, result, sleep};
use crate::support::terminal::Terminal;
use crate::support::{Client, Server, Setup, until};

const CALL: &str = r#""method":"tools/call""#;

fn servers() -> Setup {
    let server = Server::new()
        .tool("t", [answer("done")])
        .tool("slow", [sleep(1500), answer("finished")])
        .resource("file:///notes", [result(r#"{"contents":[]}"#)])
        .prompt("greet", [result(r#"{"messages":[]}"#)]);
    Setup::new().server("a", server)
}

fn paused(setup: &Setup) -> Value {
    setup.run(&["daemon", "pause", "--json"]).code(0).json()
}

fn resumed(setup: &Setup) -> Value {
    setup.run(&["daemon", "resume", "--json"]).code(0).json()
}

#[track_caller]
fn says_so(words: &str) {
    assert!(
        words.contains("the user paused mcpzip")
            && words.contains("`mcpzip daemon resume`")
            && words.contains("tell the user"),
        "{words}"
    );
}

fn a_pause_holds_new_calls_and_survives_a_daemon_that_is_killed(shared: Way) {
    let setup = shared(servers());
    let (mut client, mut other) = (setup.connect(), setup.connect());
    client.execute("a__t");
    let slow = client.begin_execute("a__slow");
    setup.home().wait_for("a", "slow");
    let begun = paused(&setup);
    assert_eq!(
        (&begun["paused"], &begun["was_paused"]),
        (&json!(true), &json!(false))
    );
    // The call in progress ends.
    assert!(client.answer(slow).text().contains("finished"));
    let made = setup.home().count("a", CALL);
    for client in [&mut client, &mut other] {
        says_so(&client.execute("a__t").tool_error());
        let several = r#"{"calls":[{"name":"a__t"},{"name":"a__t"}]}"#;
        let answer = client.call("execute_tool", several);
        assert_eq!(answer.text().matches("the user paused mcpzip").count(), 2);
    }
    // What needs no server goes on.
    assert!(client.search("t").contains("a__t"));
    client.call("proxy_status", "{}").text();
    client.ask("ping", "{}").value();
    setup.kill_daemon();
    says_so(&client.execute("a__t").tool_error());
    says_so(&other.execute("a__t").tool_error());
    let status = setup.status();
    assert_eq!(status["paused"]["since"], begun["since"], "{status}");
    let status = View::open(&setup).result("daemon.status", &json!({}));
    assert_eq!(status["paused"]["since"], begun["since"], "{status}");
    assert_eq!(setup.home().count("a", CALL), made);
    let ended = resumed(&setup);
    assert_eq!(
        (&ended["was_paused"], &ended["since"]),
        (&json!(true), &begun["since"])
    );
    for client in [&mut client, &mut other] {
        assert_eq!(client.execute("a__t").text(), "done");
    }
    client.finish();
    other.finish();
}

each_way![a_pause_holds_new_calls_and_survives_a_daemon_that_is_killed,];

#[test]
fn sessions_without_a_daemon_commands_prompts_and_resources_are_held_too() {
    let setup = servers().alone();
    let mut client = setup.connect();
    let mut direct = setup.start_with(&["serve", "--direct"]);
    direct.shake_hands("2025-11-25");
    client.execute("a__t");
    assert_eq!(paused(&setup)["paused"], true);
    says_so(&client.execute("a__t").tool_error());
    says_so(&direct.call("a__t", "{}").tool_error());
    for (method, params) in [
        ("resources/read", r#"{"uri":"file:///notes"}"#),
        ("prompts/get", r#"{"name":"a__greet"}"#),
    ] {
        let refused = client.ask(method, params).error()["message"].to_string();
        assert!(refused.contains("the user paused mcpzip"), "{refused}");
    }
    let refused = setup.run(&["call", "a__t"]).code(1).stderr;
    assert!(refused.contains("the user paused mcpzip"), "{refused}");
    client.ask("ping", "{}").value();
    client
        .ask("logging/setLevel", r#"{"level":"debug"}"#)
        .value();
    let sent: Vec<String> = setup.home().log("a").lines().map(str::to_owned).collect();
    assert!(!sent.iter().any(|line| line.contains("resources/read")));
    assert_eq!(setup.home().count("a", CALL), 1, "{sent:?}");
    for (arguments, part) in [
        (&["status"][..], "the user paused mcpzip"),
        (&["daemon", "status"], "the user paused mcpzip"),
        (&["daemon", "pause"], "it was paused already"),
    ] {
        let Some(terminal) = Terminal::run(&setup.command(arguments)) else {
            break;
        };
        terminal.shows(part);
    }
    let status = setup.run(&["status", "--json"]).code(0).json();
    assert!(status["paused"]["since"].is_u64(), "{status}");
    assert_eq!(resumed(&setup)["was_paused"], true);
    assert_eq!(resumed(&setup)["was_paused"], false);
    assert_eq!(client.execute("a__t").text(), "done");
    assert_eq!(direct.call("a__t", "{}").text(), "done");
    client
        .ask("resources/read", r#"{"uri":"file:///notes"}"#)
        .value();
    client.finish();
    direct.finish();
}

#[test]
fn a_call_that_waits_for_approval_keeps_it_until_the_user_resumes() {
    let setup = Setup::new()
        .server("files", Server::new().tool("write", [echo()]))
        .setting("tools", json!({ "ask": ["files__write"] }))
        .setting("approvals", json!({ "wait": "4s" }));
    let setup = Shared::new(setup);
    let mut client = setup.connect();
    let call = json!({ "name": "files__write", "arguments": {} }).to_string();
    let waiting = client.begin("execute_tool", &call);
    let mut view = View::open(&setup);
    let listed = |view: &mut View| view.result("approvals.list", &json!({}))["approvals"].clone();
    let question = until("a question", || {
        listed(&mut view)[0]["id"].as_str().map(str::to_owned)
    });
    view.result("daemon.pause", &json!({}));
    view.result("approvals.allow", &json!({ "id": question }));
    // The call gives up its wait, and has not used the permission.
    let ended = client.answer(waiting).tool_error();
    assert!(ended.contains("exactly the same call"), "{ended}");
    says_so(&ended);
    let kept = || {
        let directory = setup.home().path("state/approvals");
        let entries = std::fs::read_dir(directory).unwrap().flatten();
        entries.filter(|entry| entry.file_name() != "lock").count()
    };
    assert_eq!(kept(), 1);
    // A call of now is not asked about.
    says_so(
        &client
            .execute_with("files__write", r#"{"n":2}"#)
            .tool_error(),
    );
    assert_eq!((listed(&mut view), kept()), (json!([]), 1));
    assert_eq!(setup.home().count("files", CALL), 0);
    view.result("daemon.resume", &json!({}));
    client.call("execute_tool", &call).value();
    assert_eq!(setup.home().count("files", CALL), 1);
    client.finish();
}

#[test]
fn a_call_that_its_server_has_begun_gets_the_clients_answer_and_a_made_up_one_does_not_pass() {
    const ABLE: &str = r#"{"elicitation":{"form":{},"url":{}}}"#;
    let form = r#"{"message":"Which one?","requestedSchema":{"type":"object","properties":{}}}"#;
    let question = ask("q-1", "elicitation/create", form);
    let asking = Server::new().tool("t", [question, answer_with(r#""said":$answer"#)]);
    let setup = Setup::new().server("s", asking).alone();
    let mut client = setup.connect();
    let modern = |client: &mut Client, members: &str| {
        let call = format!(r#""name":"execute_tool","arguments":{{"name":"s__t"}}{members}"#);
        let id = client.begin_modern("tools/call", &call, ABLE, "");
        client.answer(id)
    };
    let asked = modern(&mut client, "").value();
    assert_eq!(asked["resultType"], "input_required");
    paused(&setup);
    for made_up in ["mcpzip.anew", "mcpzip.consent.x", "mcpzip.x", "of a server"] {
        let refused = modern(&mut client, &format!(r#","requestState":"{made_up}""#)).tool_error();
        says_so(&refused);
    }
    let state = &asked["requestState"];
    // A client with a handshake has no answers to give in a call.
    let call = format!(
        r#"{{"name":"execute_tool","arguments":{{"name":"s__t"}},"requestState":{state}}}"#
    );
    says_so(&client.ask("tools/call", &call).tool_error());
    let answers = r#"{"question-1":{"action":"decline"}}"#;
    let ended = modern(
        &mut client,
        &format!(r#","inputResponses":{answers},"requestState":{state}"#),
    );
    assert!(ended.result().contains("decline"), "{}", ended.result());
    assert_eq!(setup.home().count("s", CALL), 1);
    client.finish();
}

#[test]
fn a_script_that_runs_makes_no_further_call() {
    let setup = servers()
        .setting("scripts", json!({ "allow": "all" }))
        .alone();
    let mut client = setup.connect();
    let code = r#"const first = await tools.a.slow({});
        try { await tools.a.t({}) } catch (error) { return String(first) + ": " + error.message }
        return "both";"#;
    let run = json!({ "name": "mcpzip__run", "arguments": { "code": code } }).to_string();
    let id = client.begin("execute_tool", &run);
    setup.home().wait_for("a", "slow");
    paused(&setup);
    let ended = client.answer(id).text();
    assert!(ended.contains("finished"), "{ended}");
    assert!(ended.contains("the user paused mcpzip"), "{ended}");
    says_so(&client.call("execute_tool", &run).tool_error());
    assert_eq!(setup.home().count("a", CALL), 1);
    client.finish();
}

#[test]
fn a_pause_is_an_event_and_a_line_of_the_audit_log_whoever_makes_it() {
    let setup = Shared::new(servers().setting("audit", json!({})));
    let mut client = setup.connect();
    let mut view = View::open(&setup);
    view.result("events.subscribe", &json!({}));
    let begun = paused(&setup);
    assert_eq!(view.event("paused")["since"], begun["since"]);
    says_so(&client.execute("a__t").tool_error());
    let switched = view.result("daemon.resume", &json!({}));
    assert_eq!(switched["before"]["since"], begun["since"], "{switched}");
    // The state is that of the file, so another process may write and remove it.
    let file = setup.home().path("state/paused");
    std::fs::write(&file, "").unwrap();
    view.event("paused");
    std::fs::remove_file(&file).unwrap();
    view.event("resumed");
    assert_eq!(client.execute("a__t").text(), "done");
    let orders = past(&setup)
        .into_iter()
        .filter(|event| event["kind"] == "ordered");
    let orders: Vec<Value> = orders.map(|event| event["order"].clone()).collect();
    assert_eq!(orders, ["daemon.pause", "daemon.resume"]);
    let details: Vec<String> = lines(&setup, "daemon")
        .iter()
        .map(|line| line["detail"].to_string())
        .collect();
    for method in ["daemon.pause", "daemon.resume"] {
        let line = format!("{method} by the control interface");
        assert!(
            details.iter().any(|detail| detail.contains(&line)),
            "{details:?}"
        );
    }
    let refused = lines(&setup, "refusal");
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["outcome"], "refused");
    client.finish();
    // Without a daemon, the command writes the line.
    let _ = setup.run(&["daemon", "stop"]).code(0);
    until("the end of the daemon", || {
        (setup.status()["running"] == false).then_some(())
    });
    paused(&setup);
    let last = lines(&setup, "daemon").pop().unwrap();
    assert!(
        last["detail"].to_string().contains("without a daemon"),
        "{last}"
    );
}

#[test]
fn a_daemon_that_is_stuck_is_paused_as_well() {
    let setup = Shared::new(servers());
    let client = setup.connect();
    let daemon = setup.process();
    crate::support::process::signal(daemon, Signal::STOP);
    let stuck = setup.run(&["daemon", "pause"]);
    crate::support::process::signal(daemon, Signal::CONT);
    assert_eq!(stuck.code(0).json()["paused"], true);
    assert!(setup.home().path("state/paused").exists());
    client.finish();
}

#[test]
fn top_shows_the_pause_and_ends_it_by_key() {
    let setup = Shared::new(servers());
    let client = setup.connect();
    let Some(terminal) = Terminal::run(&setup.command(&["top"])) else {
        return;
    };
    terminal.shows("p pause");
    terminal.press("p");
    let screen = terminal.shows("p resume");
    assert!(screen.contains("PAUSED"), "{screen}");
    assert!(setup.home().path("state/paused").exists());
    terminal.press("p");
    terminal.shows("p pause");
    assert!(!setup.home().path("state/paused").exists());
    terminal.press("q");
    terminal.shows("[exit 0]");
    client.finish();
}
