//! Servers that stall, fail, vanish or chatter: the call in question gets an answer, and nobody else notices.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::command;
use crate::support::script::{
    Step, answer, bytes, close_stdout, deafen, echo, error, exit, fill, flood_stderr, hang, line,
    part, ping, result, say, sleep, up_to,
};
use crate::support::{Client, SOON, Server, Setup, until};

/// Runs `a__t`, whose call does `steps`, and checks that the tool `u` beside it works before and after.
#[track_caller]
fn around(steps: Vec<Step>, check: impl FnOnce(&mut Client)) {
    let server = Server::new().tool("t", steps).tool("u", [answer("fine")]);
    let mut client = Setup::new()
        .server("a", server)
        .server("b", Server::new().tool("v", [answer("too")]))
        .connect();
    assert_eq!(client.execute("a__u").text(), "fine");
    check(&mut client);
    assert_eq!(client.execute("a__u").text(), "fine");
    assert_eq!(client.execute("b__v").text(), "too");
    client.finish();
}

#[test]
fn many_calls_to_one_server_run_side_by_side() {
    let server = Server::new()
        .tool("t", [sleep(1000), answer("done")])
        .tool("u", [answer("fine")]);
    let mut client = Setup::new().server("a", server).connect();
    client.execute("a__u");
    let start = Instant::now();
    let ids: Vec<u64> = (0..64).map(|_| client.begin_execute("a__t")).collect();
    for id in ids {
        assert_eq!(client.answer(id).text(), "done");
    }
    assert!(
        start.elapsed() < SOON,
        "64 calls of 1 s took {:?}",
        start.elapsed()
    );
    client.finish();
}

#[test]
fn a_hung_server_does_not_delay_others() {
    let setup = Setup::new()
        .server("stuck", Server::new().tool("t", [hang()]))
        .server("never-up", Server::new().at_start([hang()]))
        .server("fine", Server::new().tool("u", [answer("done")]));
    let mut client = setup.connect();
    client.execute("fine__u");
    client.begin_execute("stuck__t");
    client.begin_execute("never-up__x");
    until("the call to arrive", || {
        (setup.home().count("stuck", "tools/call") == 1).then_some(())
    });
    let start = Instant::now();
    assert_eq!(client.execute("fine__u").text(), "done");
    assert!(client.search("does u").contains("fine__u"));
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[test]
fn a_crash_in_a_call_fails_that_call_and_the_next_works() {
    let server = Server::new()
        .tool("t", [exit(7)])
        .tool("slow", [sleep(10_000), answer("late")])
        .tool("u", [answer("fine")]);
    let setup = Setup::new()
        .server("a", server)
        .server("b", Server::new().tool("v", [sleep(300), answer("too")]));
    let mut client = setup.connect();
    client.execute("a__u");
    let others = client.begin_execute("b__v");
    let beside = client.begin_execute("a__slow");
    until("the call to arrive", || {
        (setup.home().count("a", r#""name":"slow""#) == 1).then_some(())
    });
    let text = client.execute("a__t").tool_error();
    assert!(
        text.contains("`a`")
            && text.contains("exit status: 7")
            && text.contains("may or may not have acted"),
        "{text}"
    );
    assert!(client.answer(beside).tool_error().contains("`a`"));
    assert_eq!(client.answer(others).text(), "too");
    assert_eq!(client.execute("a__u").text(), "fine");
    assert_eq!(setup.home().starts("a"), 2);
    client.finish();
}

#[test]
fn a_call_that_may_have_acted_is_never_sent_again_and_a_read_only_one_is() {
    let dies_once = || {
        [up_to(
            1,
            r#""tools/call""#,
            [exit(1)],
            [answer("second time")],
        )]
    };
    let setup = Setup::new()
        .server("acts", Server::new().tool("t", dies_once()))
        .server("reads", Server::new().read_only_tool("t", dies_once()));
    let mut client = setup.connect();
    assert!(client.execute("acts__t").is_tool_error());
    assert_eq!(setup.home().count("acts", "tools/call"), 1);
    assert_eq!(client.execute("reads__t").text(), "second time");
    assert_eq!(setup.home().count("reads", "tools/call"), 2);
    assert_eq!(client.execute("acts__t").text(), "second time");
    client.finish();
}

#[test]
fn a_read_only_call_is_sent_again_once_not_for_ever() {
    let setup = Setup::new().server("a", Server::new().read_only_tool("t", [exit(1)]));
    let mut client = setup.connect();
    assert!(client.execute("a__t").is_tool_error());
    assert_eq!(setup.home().count("a", "tools/call"), 2);
    client.finish();
}

#[test]
fn a_call_that_takes_too_long_is_cancelled() {
    let setup = Setup::new().server_with(
        "a",
        Server::new()
            .tool("t", [hang()])
            .tool("u", [answer("fine")]),
        json!({ "timeout": "2s" }),
    );
    let mut client = setup.connect();
    let text = client.execute("a__t").tool_error();
    assert!(text.contains("within 2s") && text.contains("`a`"), "{text}");
    until("the cancellation", || {
        (setup.home().count("a", "notifications/cancelled") == 1).then_some(())
    });
    assert_eq!(client.execute("a__u").text(), "fine");
    assert_eq!(setup.home().starts("a"), 1);
    client.finish();
}

#[test]
fn late_second_and_unknown_answers_harm_nobody() {
    let twice = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[],"twice":1}}"#;
    let unknown = r#"{"jsonrpc":"2.0","id":999999,"result":{}}"#;
    let unheard = r#"{"jsonrpc":"2.0","id":"text","result":{}}"#;
    around(
        vec![
            line(unknown),
            line(unheard),
            answer("once"),
            line(twice),
            line(twice),
        ],
        |client| {
            assert_eq!(client.execute("a__t").text(), "once");
        },
    );
    around(vec![sleep(400), answer("late")], |client| {
        let text = client
            .call("execute_tool", r#"{"name":"a__t","timeout":0.1}"#)
            .tool_error();
        assert!(text.contains("100ms"), "{text}");
        assert_eq!(client.execute("a__t").text(), "late");
    });
}

#[test]
fn an_id_written_otherwise_is_the_same_id() {
    for written in ["$id.0", "$ide0", " $id "] {
        let text = format!(r#"{{"result":{{"content":[]}},"id":{written},"jsonrpc":"2.0"}}"#);
        around(vec![line(&text)], |client| {
            assert_eq!(client.execute("a__t").result(), r#"{"content":[]}"#);
        });
    }
}

#[test]
fn garbage_and_a_flood_of_stderr_harm_nobody() {
    let steps = vec![
        line("Listening on port 8080"),
        line(""),
        line("{\"half\":"),
        line("[1,2"),
        line(r#"{"level":"info","id":1,"msg":"log"}"#),
        line("null"),
        bytes(b"\xff\xfe\x00\n"),
        flood_stderr(4_000_000),
        line(
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#,
        ),
        line(r#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{}}"#),
        answer("through"),
    ];
    around(steps, |client| {
        assert_eq!(client.execute("a__t").text(), "through");
    });
    let noisy = Server::new()
        .at_start([
            line("starting"),
            flood_stderr(300_000),
            line("{}"),
            line("ready"),
        ])
        .tool("t", [answer("through")]);
    let mut client = Setup::new().server("a", noisy).connect();
    assert_eq!(client.execute("a__t").text(), "through");
    client.finish();
}

#[test]
fn an_answer_that_cannot_be_read_fails_its_call_at_once() {
    for (what, written) in [
        (
            "no JSON",
            line(r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[}}"#),
        ),
        (
            "neither result nor error",
            line(r#"{"jsonrpc":"2.0","id":$id}"#),
        ),
        (
            "NaN",
            line(r#"{"jsonrpc":"2.0","id":$id,"result":{"x":NaN}}"#),
        ),
        (
            "result is text",
            line(r#"{"jsonrpc":"2.0","id":$id,"result":"text"}"#),
        ),
        (
            "result is null",
            line(r#"{"jsonrpc":"2.0","id":$id,"result":null}"#),
        ),
    ] {
        around(vec![written], |client| {
            let start = Instant::now();
            let text = client.execute("a__t").tool_error();
            assert!(
                text.contains("`a") && start.elapsed() < SOON,
                "{what}: {text}"
            );
        });
    }
    around(
        vec![
            part(r#"{"jsonrpc":"2.0","id":$id,"result":{"x":""#),
            bytes(b"\xff\xfe"),
            line(r#""}}"#),
        ],
        |client| {
            assert!(client.execute("a__t").tool_error().contains("UTF-8"));
        },
    );
}

#[test]
fn an_answer_over_the_limit_is_refused_by_its_size() {
    let long = fill(
        r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":""#,
        70_000_000,
        r#""}]}}"#,
    );
    around(vec![long], |client| {
        let text = client.execute("a__t").tool_error();
        assert!(text.contains("70000073") && text.contains("`a`"), "{text}");
    });
}

#[test]
fn an_answer_that_is_cut_off_fails_its_call() {
    around(
        vec![part(r#"{"jsonrpc":"2.0","id":$id,"result":{"con"#), exit(0)],
        |client| {
            assert!(client.execute("a__t").tool_error().contains("`a`"));
        },
    );
}

#[test]
fn an_answer_in_drips_arrives_whole() {
    let text = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"slow but sure"}]}}"#;
    let (start, rest) = text.split_at(14);
    // `$id` must not be cut, as the fake server fills it in.
    let (before, after) = rest.split_once("$id").unwrap();
    let mut steps = vec![part(start), sleep(20), part(before), part("$id")];
    for drip in after.as_bytes().chunks(9) {
        steps.extend([sleep(5), bytes(drip)]);
    }
    steps.extend([sleep(20), line("")]);
    around(steps, |client| {
        assert_eq!(client.execute("a__t").text(), "slow but sure");
    });
}

#[test]
fn a_json_rpc_error_becomes_a_tool_error_with_its_words() {
    around(
        vec![error(
            r#"{"code":-32000,"message":"quota used up","data":{"retry":"tomorrow"}}"#,
        )],
        |client| {
            let text = client.execute("a__t").tool_error();
            for part in ["a__t", "quota used up", "tomorrow"] {
                assert!(text.contains(part), "`{part}` is not in {text}");
            }
        },
    );
    around(vec![error("5")], |client| {
        assert!(client.execute("a__t").is_tool_error());
    });
    around(vec![error(r#"{"code":"x"}"#)], |client| {
        assert!(client.execute("a__t").is_tool_error());
    });
}

#[test]
fn a_server_that_closes_its_output_fails_its_calls_and_is_replaced() {
    around(vec![close_stdout(), hang()], |client| {
        assert!(client.execute("a__t").tool_error().contains("`a`"));
    });
}

#[test]
fn pings_are_answered_even_in_the_handshake() {
    let introduction = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}"#;
    let server = Server::new()
        .on("initialize", [ping("early"), result(introduction)])
        .tool("t", [ping("in a call"), answer("answered")]);
    let setup = Setup::new().server("a", server);
    let mut client = setup.connect();
    assert_eq!(client.execute("a__t").text(), "answered");
    assert!(
        setup.home().log("a").contains(r#"heard "early""#),
        "{}",
        setup.home().log("a")
    );
    assert_eq!(setup.home().count("a", "never heard"), 0);
    client.finish();
}

#[test]
fn connecting_happens_once_however_many_ask() {
    let server = Server::new()
        .at_start([sleep(300)])
        .tool("t", [answer("done")]);
    let setup = Setup::new().server("a", server);
    let mut client = setup.connect();
    let ids: Vec<u64> = (0..32).map(|_| client.begin_execute("a__t")).collect();
    for id in ids {
        assert_eq!(client.answer(id).text(), "done");
    }
    assert_eq!(setup.home().starts("a"), 1);
    client.finish();
}

#[test]
fn a_server_that_crashes_at_its_first_starts_is_tried_again() {
    let server = Server::new()
        .at_start([up_to(
            2,
            "start ",
            [sleep(10), say("no luck today"), exit(1)],
            [],
        )])
        .tool("t", [answer("at last")]);
    let setup = Setup::new().server("a", server);
    let mut client = setup.connect();
    let text = until("the third start", || {
        let answer = client.execute("a__t");
        if answer.is_tool_error() {
            assert!(answer.text().contains('a'), "{}", answer.text());
            return None;
        }
        Some(answer.text())
    });
    assert_eq!(text, "at last");
    client.finish();
}

#[test]
fn a_failed_start_is_told_with_the_end_of_stderr() {
    let server = Server::new().at_start([say("no such database: orders"), exit(3)]);
    let mut client = Setup::new().server("a", server).connect();
    let text = client.execute("a__t").tool_error();
    assert!(text.contains("no such database: orders"), "{text}");
    client.finish();
}

#[test]
fn a_failed_start_names_a_variable_that_is_set_and_not_passed() {
    let wants = "Error: MY_API_KEY environment variable is required (see NO_SUCH_VARIABLE)";
    let server = Server::new().at_start([say(wants), exit(1)]);
    let setup = Setup::new().server("a", server);
    let setup = setup.variable("MY_API_KEY", "value-of-it");
    setup.save();
    let servers = command::run(setup.command(&["servers", "--json"]), "");
    assert!(
        servers.stdout.contains("MY_API_KEY is set here")
            && servers.stdout.contains("${MY_API_KEY}"),
        "{servers}"
    );
    assert!(!servers.stdout.contains("value-of-it"), "{servers}");
    assert!(!servers.stderr.contains("value-of-it"), "{servers}");
    assert!(
        !servers.stdout.contains("NO_SUCH_VARIABLE is set"),
        "{servers}"
    );
}

#[test]
fn a_program_that_prints_text_is_said_to_be_no_server() {
    let greeting = "Hello! Welcome to `my` server";
    let noise = (0..50).map(|number| line(&format!("line {number}")));
    let server = Server::new().at_start(
        std::iter::once(line(greeting))
            .chain(noise)
            .chain([exit(0)]),
    );
    let setup = Setup::new().server("a", server);
    setup.save();
    let servers = command::run(setup.command(&["servers", "--json"]), "");
    assert!(
        servers
            .stdout
            .contains("does not speak MCP: its stdout begins with `Hello! Welcome to my server`"),
        "{servers}"
    );
    let log = command::run(setup.command(&["logs", "a", "-n", "500"]), "").code(0);
    assert!(log.stdout.contains("Hello! Welcome"), "{log}");
    // Once for each of the attempts to start it, not for each line.
    let warned = log.stdout.matches("stdout is for messages alone").count();
    assert!((1..=3).contains(&warned), "{log}");
}

#[test]
fn a_server_that_stops_reading_delays_nobody_else() {
    let deaf = Server::new()
        .tool("deafen", [deafen(), answer("what?")])
        .tool("t", [answer("never")]);
    let setup = Setup::new()
        .server("deaf", deaf)
        .server("fine", Server::new().tool("u", [answer("done")]));
    let mut client = setup.connect();
    client.execute("fine__u");
    assert_eq!(client.execute("deaf__deafen").text(), "what?");
    let large = "x".repeat(1_000_000);
    let call = format!(r#"{{"name":"deaf__t","arguments":{{"text":"{large}"}},"timeout":1.5}}"#);
    let ids: Vec<u64> = (0..12)
        .map(|_| client.begin("execute_tool", &call))
        .collect();
    let beside = client.begin_execute("fine__u");
    assert_eq!(client.answer(beside).text(), "done");
    for id in ids {
        assert!(client.answer(id).tool_error().contains("1.5s"));
        client.check_order(beside, id);
    }
    client.finish();
}

#[test]
fn a_limit_on_calls_queues_then_refuses() {
    // The first call lasts until all others have come.
    let first = up_to(1, r#""name":"t""#, [sleep(3000)], []);
    let server = Server::new()
        .tool("t", [first, answer("done")])
        .tool("u", [answer("fine")]);
    let setup = Setup::new().server_with("a", server, json!({ "max_concurrent": 1 }));
    let mut client = setup.connect();
    client.execute("a__u");
    let ids: Vec<u64> = (0..30).map(|_| client.begin_execute("a__t")).collect();
    let answers: Vec<_> = ids.into_iter().map(|id| client.answer(id)).collect();
    let (refused, done): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.is_tool_error());
    assert_eq!(done.len(), 17, "one runs and sixteen wait");
    assert!(
        refused.iter().all(|answer| answer.text().contains("busy")),
        "{}",
        refused[0].text()
    );
    client.finish();
}

#[test]
fn a_limit_on_calls_is_kept() {
    let server = Server::new().tool("t", [sleep(150), answer("done")]);
    let setup = Setup::new().server_with("a", server, json!({ "max_concurrent": 2 }));
    let mut client = setup.connect();
    client.search("does t");
    let start = Instant::now();
    let ids: Vec<u64> = (0..6).map(|_| client.begin_execute("a__t")).collect();
    for id in ids {
        client.answer(id);
    }
    assert!(
        start.elapsed() >= Duration::from_millis(450),
        "{:?}",
        start.elapsed()
    );
    client.finish();
}

#[test]
fn a_server_of_the_modern_era_only_is_served_from_a_fresh_process() {
    let setup = Setup::new().server("a", Server::new().modern().tool("t", [echo()]));
    let mut client = setup.connect();
    let sent = client
        .execute_with("a__t", r#"{"x":1e400}"#)
        .result()
        .to_owned();
    for part in [
        r#""arguments":{"x":1e400}"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#,
        "clientCapabilities",
    ] {
        assert!(sent.contains(part), "`{part}` is not in {sent}");
    }
    assert_eq!(setup.home().starts("a"), 2);
    client.finish();
}

#[test]
fn servers_of_all_older_revisions_are_spoken_to_and_unknown_ones_refused() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Setup::new()
            .server(
                "a",
                Server::new().version(version).tool("t", [answer("done")]),
            )
            .connect();
        assert_eq!(client.execute("a__t").text(), "done", "{version}");
        client.finish();
    }
    for version in ["1.0", "2026-07-28", ""] {
        let mut client = Setup::new()
            .server(
                "a",
                Server::new().version(version).tool("t", [answer("done")]),
            )
            .connect();
        assert!(
            client.execute("a__t").tool_error().contains("revision"),
            "{version}"
        );
        client.finish();
    }
}

#[test]
fn a_batch_of_a_server_is_taken_apart() {
    let batch = r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":$id,"result":{"content":[],"n":1e400}}]"#;
    around(vec![line(batch)], |client| {
        assert_eq!(
            client.execute("a__t").result(),
            r#"{"content":[],"n":1e400}"#
        );
    });
}

#[test]
fn an_idle_connection_is_closed_and_opened_again() {
    let server = Server::new().tool("t", [answer("done")]);
    let setup = Setup::new().server_with("a", server, json!({ "idle_timeout": "200ms" }));
    let mut client = setup.connect();
    assert_eq!(client.execute("a__t").text(), "done");
    until("the server to be closed", || {
        (setup.home().count("a", "end of input") >= 1).then_some(())
    });
    assert_eq!(client.execute("a__t").text(), "done");
    assert!(setup.home().starts("a") >= 2);
    client.finish();
}

#[test]
fn a_call_waits_for_a_slow_start_no_longer_than_its_timeout() {
    let tool = |server: Server| server.tool("work", [answer("done")]);
    let setup = Setup::new().alone().server("slow", tool(Server::new()));
    let mut client = setup.connect();
    client.search("work");
    client.finish();
    // The same entry, whose program now takes its time.
    let setup = setup.server("slow", tool(Server::new().at_start([sleep(3000)])));
    let mut client = setup.connect();
    let refused = client
        .call("execute_tool", r#"{"name":"slow__work","timeout":0.3}"#)
        .tool_error();
    assert!(
        refused.contains("was not connected within 300ms") && refused.contains("nothing was sent"),
        "{refused}"
    );
    assert_eq!(client.execute("slow__work").text(), "done");
    assert_eq!(client.home().count("slow", "tools/call"), 1);
    client.finish();
}
