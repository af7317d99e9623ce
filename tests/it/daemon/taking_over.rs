//! What a dead daemon leaves is done by the next one: nothing is lost, and nothing reaches a server twice.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use super::{Way, each_way};
use crate::support::script::{answer, echo, fill, hang, line, sleep};
use crate::support::{Server, Setup, until};

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

fn a_call_that_a_server_had_is_answered_with_a_warning_and_not_repeated(shared: Way) {
    let server = Server::new()
        .tool("slow", [hang()])
        .tool("t", [answer("done")]);
    let setup = shared(Setup::new().server("a", server));
    let mut client = setup.connect();
    let id = client.begin_execute("a__slow");
    setup.home().wait_for("a", "slow");
    let calls = setup.home().count("a", r#""tools/call""#);
    setup.kill_daemon();
    let text = client.answer(id).tool_error();
    assert!(
        text.contains("may have acted") && text.contains("Next:"),
        "{text}"
    );
    assert!(client.execute("a__t").text().contains("done"));
    assert_eq!(setup.home().count("a", r#""tools/call""#), calls + 1);
}

fn a_call_that_no_server_had_yet_is_made_by_the_next_daemon_once(shared: Way) {
    // It takes a while to start, so that the call waits.
    let server = Server::new()
        .at_start([sleep(1500)])
        .tool("t", [answer("done")]);
    let setup = shared(Setup::new().server("a", server));
    let mut client = setup.connect();
    let id = client.begin_execute("a__t");
    until("the server is being started", || {
        (setup.home().starts("a") > 0).then_some(())
    });
    setup.kill_daemon();
    assert!(client.answer(id).text().contains("done"));
    assert_eq!(setup.home().count("a", r#""tools/call""#), 1);
}

fn input_in_pieces_and_in_the_midst_of_a_line_is_not_lost(shared: Way) {
    let setup = shared(Setup::new().server("a", Server::new().tool("t", [answer("done")])));
    let mut client = setup.connect();
    let call = r#"{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"execute_tool","arguments":{"name":"a__t","arguments":{"half":"line"}}}}"#;
    let (first, second) = call.split_at(70);
    client.send(PING);
    client.answer_to(r#""p""#);
    client.send_bytes(first.as_bytes());
    // Read, and in no journal's marks.
    std::thread::sleep(std::time::Duration::from_millis(100));
    setup.kill_daemon();
    client.send_bytes(format!("{second}\n").as_bytes());
    assert!(client.answer_to(r#""q""#).text().contains("done"));
    assert_eq!(setup.home().count("a", r#""tools/call""#), 1);
}

fn a_line_that_was_being_written_is_ended_before_the_next(shared: Way) {
    let large = "y".repeat(8_000_000);
    let server = Server::new()
        .tool("large", [answer(&large)])
        .tool("t", [answer("done")]);
    let setup = shared(
        Setup::new()
            .server("a", server)
            .setting("results", serde_json::json!({ "budget": 0 })),
    );
    let mut client = setup.connect();
    client.execute("a__t");
    client.stop_reading();
    // It is the last that is read.
    client.send(PING);
    let id = client.begin_execute("a__large");
    // The pipe is full of the beginning of the answer.
    std::thread::sleep(std::time::Duration::from_secs(1));
    setup.kill_daemon();
    client.read_on();
    client.expect("the beginning of the answer", |message| {
        message.as_str().starts_with(r#"{"jsonrpc""#)
            && serde_json::from_str::<serde_json::Value>(message.as_str()).is_err()
    });
    let text = client.answer(id).tool_error();
    assert!(text.contains("may have acted"), "{text}");
    client.answer_to(r#""p""#);
}

fn log_level_and_subscriptions_outlast_the_daemon(shared: Way) {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"chat"}}"#;
    let alarm = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"alarm"}}"#;
    let server = Server::new().tool("t", [line(note), line(alarm), answer("done")]);
    let setup = shared(Setup::new().server("a", server));
    let mut client = setup.connect();
    client.ask("logging/setLevel", r#"{"level":"error"}"#);
    setup.kill_daemon();
    client.execute("a__t");
    client.expect("the alarm", |message| message.as_str().contains("alarm"));
    assert!(!client.stdout().contains("chat"), "the level was forgotten");
}

fn a_client_with_sockets_is_taken_over_as_one_with_pipes(shared: Way) {
    let setup = shared(Setup::new().server("a", Server::new().tool("t", [sleep(1), echo()])));
    let (near, far) = UnixStream::pair().unwrap();
    let mut command = setup.command(&["serve"]);
    command
        .stdin(Stdio::from(OwnedFd::from(far.try_clone().unwrap())))
        .stdout(Stdio::from(OwnedFd::from(far)))
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // It would keep the sockets open.
    drop(command);
    near.set_read_timeout(Some(std::time::Duration::from_secs(60)))
        .unwrap();
    let (mut writer, mut reader) = (&near, BufReader::new(&near));
    let mut answers = 0;
    for round in 0..3 {
        for call in 0..20 {
            let id = round * 100 + call;
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"execute_tool","arguments":{{"name":"a__t","arguments":{{"n":"n{id}n"}}}}}}}}"#
            );
            writer.write_all(format!("{line}\n").as_bytes()).unwrap();
            if call == 10 && round < 2 {
                until("there is a daemon", || {
                    setup.status()["daemon"].is_object().then_some(())
                });
                setup.kill_daemon();
            }
        }
        let mut line = String::new();
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 20 {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0, "the server ended");
            let answer: serde_json::Value = serde_json::from_str(&line).unwrap();
            if let Some(id) = answer["id"].as_u64() {
                seen.insert(id);
                answers += 1;
            }
        }
    }
    assert!(answers >= 60);
    for id in 0..3 {
        for call in 0..20 {
            let key = format!("n{}n", id * 100 + call);
            assert!(
                setup.home().count("a", &key) <= 1,
                "{key} reached the server twice"
            );
        }
    }
    near.shutdown(std::net::Shutdown::Both).unwrap();
    assert!(child.wait().unwrap().success());
}

fn after_three_deaths_in_a_minute_a_session_goes_on_alone(shared: Way) {
    let setup = shared(Setup::new().server("a", Server::new().tool("t", [answer("done")])));
    let mut client = setup.connect();
    for _ in 0..3 {
        client.execute("a__t");
        setup.kill_daemon();
    }
    assert!(client.execute("a__t").text().contains("done"));
    let status = setup.status();
    let reason = status["alone"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("3 daemons died"), "{status}");
    assert_eq!(setup.home().count("a", r#""tools/call""#), 4);
    client.finish();
}

fn answers_of_any_size_arrive_whole(shared: Way) {
    let server = Server::new().tool(
        "large",
        [fill(
            r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":""#,
            3_000_000,
            r#""}]}}"#,
        )],
    );
    let setup = shared(
        Setup::new()
            .server("a", server)
            .setting("results", serde_json::json!({ "budget": 0 })),
    );
    let mut client = setup.connect();
    for _ in 0..3 {
        assert_eq!(client.execute("a__large").text().len(), 3_000_000);
    }
}

fn a_session_keeps_its_surface_when_another_daemon_takes_it_over(shared: Way) {
    let server = Server::new().tool("t", [answer("done")]);
    let setup = Setup::new().server("a", server);
    let setup = shared(setup.setting("surface", serde_json::json!("auto")));
    let first_tool = |client: &mut crate::support::Client| {
        let list = client.ask("tools/list", "{}").value();
        list["tools"][0]["name"].as_str().unwrap().to_owned()
    };
    // The cache is empty, so that the size of the tools is unknown.
    let mut client = setup.connect();
    assert_eq!(first_tool(&mut client), "search_tools");
    assert!(client.search("t").contains("a__t"));
    setup.kill_daemon();
    assert_eq!(first_tool(&mut client), "search_tools");
    let mut later = setup.connect();
    assert_eq!(first_tool(&mut later), "a__t");
}

each_way! {
    a_call_that_a_server_had_is_answered_with_a_warning_and_not_repeated,
    a_call_that_no_server_had_yet_is_made_by_the_next_daemon_once,
    input_in_pieces_and_in_the_midst_of_a_line_is_not_lost,
    a_line_that_was_being_written_is_ended_before_the_next,
    log_level_and_subscriptions_outlast_the_daemon,
    a_client_with_sockets_is_taken_over_as_one_with_pipes,
    after_three_deaths_in_a_minute_a_session_goes_on_alone,
    answers_of_any_size_arrive_whole,
    a_session_keeps_its_surface_when_another_daemon_takes_it_over,
}
