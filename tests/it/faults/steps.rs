//! A server that fails at each step: when it starts, in the handshake, when it lists its tools, in a call.

use serde_json::json;

use super::Outcome;
use crate::support::script::{
    Step, answer, bytes, close_stdout, exit, flood_stderr, fork, hang, if_params, line, part, ping,
    result, sleep, up_to,
};
use crate::support::{Server, Setup, until};

/// What `bad__t` comes to.
#[derive(Debug, Clone, Copy)]
enum Comes {
    /// An answer with this text.
    Text(&'static str),
    /// An error that the agent can read.
    Error,
    /// The same, but only after the call's own limit.
    Late,
}

/// Whether the next call of the same tool works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Works,
    Fails,
}

struct Case {
    fault: &'static str,
    /// Stands in the answer.
    gets: &'static str,
    comes: Comes,
    next: Next,
    server: fn() -> Server,
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}"#;
const PAGE: &str = r#"{"jsonrpc":"2.0","id":$id,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"2"}}"#;
const RESULT: &str =
    r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"done"}]}}"#;

/// A server whose first call does `steps`, and whose later ones work.
fn call(steps: impl IntoIterator<Item = Step>) -> Server {
    Server::new().tool("t", [up_to(1, r#""tools/call""#, steps, [answer("done")])])
}

/// The same at its first start, or in the first answer to `method`.
fn start(steps: impl IntoIterator<Item = Step>) -> Server {
    Server::new()
        .at_start([up_to(1, "start ", steps, [])])
        .tool("t", [answer("done")])
}

const CASES: &[Case] = &[
    Case {
        fault: "it ends as soon as it starts, each time",
        gets: "ended during the handshake (exit status: 3)",
        comes: Comes::Error,
        next: Next::Fails,
        server: || Server::new().at_start([exit(3)]).tool("t", []),
    },
    Case {
        fault: "it ends at its first start",
        gets: "done",
        comes: Comes::Text("done"),
        next: Next::Works,
        server: || start([exit(3)]),
    },
    Case {
        fault: "it never answers the handshake",
        gets: "not known: it is still being listed",
        comes: Comes::Late,
        next: Next::Fails,
        server: || Server::new().on("initialize", [hang()]).tool("t", []),
    },
    Case {
        fault: "it ends in the handshake",
        gets: "ended during the handshake (exit status: 4)",
        comes: Comes::Error,
        next: Next::Fails,
        server: || Server::new().on("initialize", [exit(4)]).tool("t", []),
    },
    Case {
        fault: "it ends after the handshake",
        gets: "went away during the call",
        comes: Comes::Error,
        next: Next::Fails,
        server: || {
            Server::new()
                .on("initialize", [line(HELLO), exit(4)])
                .tool("t", [])
        },
    },
    Case {
        fault: "it answers the handshake with an array instead of an object",
        gets: "refused the handshake",
        comes: Comes::Error,
        next: Next::Fails,
        server: || {
            Server::new()
                .on(
                    "initialize",
                    [line(r#"{"jsonrpc":"2.0","id":$id,"result":[]}"#)],
                )
                .tool("t", [])
        },
    },
    Case {
        fault: "it sends a `ping` in the handshake, and then a line that is not a message",
        gets: "done",
        comes: Comes::Text("done"),
        next: Next::Works,
        server: || {
            let steps = [
                line("starting up…"),
                ping("early"),
                bytes(b"\xff\xfe\n"),
                line(HELLO),
            ];
            Server::new()
                .on("initialize", steps)
                .tool("t", [answer("done")])
        },
    },
    Case {
        fault: "it ends when its tools are listed",
        gets: "went away during the call",
        comes: Comes::Error,
        next: Next::Fails,
        server: || Server::new().on("tools/list", [exit(5)]).tool("t", []),
    },
    Case {
        fault: "it ends between two pages of its list",
        gets: "went away during the call",
        comes: Comes::Error,
        next: Next::Fails,
        server: || {
            Server::new()
                .on("tools/list", [if_params("cursor", [exit(5)], [line(PAGE)])])
                .hidden("t", [answer("done")])
        },
    },
    Case {
        fault: "it never lists the second page of its tools",
        gets: "not known: it is still being listed",
        comes: Comes::Late,
        next: Next::Fails,
        server: || {
            Server::new()
                .on("tools/list", [if_params("cursor", [hang()], [line(PAGE)])])
                .hidden("t", [answer("done")])
        },
    },
    Case {
        fault: "its list is not a list",
        gets: "did not list its tools: the answer has no list of tools",
        comes: Comes::Error,
        next: Next::Fails,
        server: || {
            Server::new()
                .on("tools/list", [result(r#"{"tools":"none"}"#)])
                .hidden("t", [answer("done")])
        },
    },
    Case {
        fault: "it never lists its tools",
        gets: "not known: it is still being listed",
        comes: Comes::Late,
        next: Next::Fails,
        server: || Server::new().on("tools/list", [hang()]).tool("t", []),
    },
    Case {
        fault: "it ends in a call",
        gets: "went away during the call (exit status: 7). Next: it may or may not have acted",
        comes: Comes::Error,
        next: Next::Works,
        server: || call([exit(7)]),
    },
    Case {
        fault: "it ends in the middle of an answer",
        gets: "sent an answer that cannot be read",
        comes: Comes::Error,
        next: Next::Works,
        server: || call([part(r#"{"jsonrpc":"2.0","id":$id,"result":{"con"#), exit(0)]),
    },
    Case {
        fault: "it closes its stdout in a call, and keeps running",
        gets: "went away during the call",
        comes: Comes::Error,
        next: Next::Works,
        server: || call([close_stdout(), hang()]),
    },
    Case {
        fault: "it never answers a call",
        gets: "gave no answer within 1.5s. Next: the call was cancelled; it may have acted",
        comes: Comes::Late,
        next: Next::Works,
        server: || call([hang()]),
    },
    Case {
        fault: "it stops in the middle of an answer",
        gets: "gave no answer within 1.5s",
        comes: Comes::Late,
        next: Next::Works,
        // The line end keeps the rest apart from the next answer.
        server: || {
            call([
                part(r#"{"jsonrpc":"2.0","id":$id,"result":{"con"#),
                sleep(3000),
                line(""),
            ])
        },
    },
    Case {
        fault: "it answers after the call's limit, twice",
        gets: "gave no answer within 1.5s",
        comes: Comes::Late,
        next: Next::Works,
        server: || call([sleep(1700), line(RESULT), line(RESULT)]),
    },
    Case {
        fault: "it answers with an unknown id, and then with the right one",
        gets: "done",
        comes: Comes::Text("done"),
        next: Next::Works,
        server: || {
            call([
                line(r#"{"jsonrpc":"2.0","id":999999,"result":{}}"#),
                line(RESULT),
            ])
        },
    },
    Case {
        fault: "it answers twice, the second time with an error",
        gets: "done",
        comes: Comes::Text("done"),
        next: Next::Works,
        server: || {
            call([
                line(RESULT),
                line(r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-1,"message":"no"}}"#),
            ])
        },
    },
    Case {
        fault: "it uses the call's id for a request of its own, then answers",
        gets: "done",
        comes: Comes::Text("done"),
        next: Next::Works,
        server: || {
            call([
                line(r#"{"jsonrpc":"2.0","id":$id,"method":"ping"}"#),
                line(RESULT),
            ])
        },
    },
    Case {
        fault: "its answer comes in small pieces",
        gets: "done",
        comes: Comes::Text("done"),
        next: Next::Works,
        server: || {
            let (before, after) = RESULT.split_once("$id").unwrap();
            let mut steps = vec![part(before), sleep(5), part("$id")];
            for drip in after.as_bytes().chunks(7) {
                steps.extend([sleep(3), bytes(drip)]);
            }
            steps.push(line(""));
            call(steps)
        },
    },
    Case {
        fault: "it writes garbage between messages: text, half a message, bytes that are not UTF-8, NUL",
        gets: "done",
        comes: Comes::Text("done"),
        next: Next::Works,
        server: || {
            call([
                line("Warning: deprecated"),
                line(r#"{"jsonrpc":"2.0","#),
                bytes(b"\xc3\x28\0\n\n\r\n"),
                line(RESULT),
            ])
        },
    },
    Case {
        fault: "its answer is not JSON",
        gets: "sent an answer that cannot be read",
        comes: Comes::Error,
        next: Next::Works,
        server: || call([line(r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[}}"#)]),
    },
    Case {
        fault: "its answer has neither a result nor an error",
        gets: "sent an answer that cannot be read",
        comes: Comes::Error,
        next: Next::Works,
        server: || call([line(r#"{"jsonrpc":"2.0","id":$id}"#)]),
    },
    Case {
        fault: "it sends `notifications/tools/list_changed` five hundred times",
        gets: "done",
        comes: Comes::Text("done"),
        next: Next::Works,
        server: || {
            let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            call((0..500).map(|_| line(changed)).chain([line(RESULT)]))
        },
    },
    Case {
        fault: "it writes 20 MB to stderr",
        gets: "done",
        comes: Comes::Text("done"),
        next: Next::Works,
        server: || call([flood_stderr(20_000_000), line(RESULT)]),
    },
    Case {
        fault: "it ends, and leaves a child process that ignores signals and holds its stdout open",
        gets: "went away during the call",
        comes: Comes::Error,
        next: Next::Works,
        server: || call([fork(), sleep(100), exit(1)]),
    },
];

pub(super) fn outcomes() -> impl Iterator<Item = Outcome> {
    CASES.iter().map(|case| Outcome {
        fault: case.fault,
        gets: match case.comes {
            Comes::Text(_) => "the answer",
            Comes::Error | Comes::Late => case.gets,
        },
        after: match (case.comes, case.next) {
            (Comes::Late, Next::Works) => "the call's limit",
            (Comes::Late, Next::Fails) => "the call's limit; the listing goes on",
            _ => "at once",
        },
        then: match (case.comes, case.next) {
            (_, Next::Works) => "the next call works",
            (Comes::Late, Next::Fails) => "tried again in the background",
            (_, Next::Fails) => "tried again with each call, and in the background",
        },
    })
}

#[test]
fn a_fault_of_a_server_is_told_and_costs_nobody_else() {
    // All are tried before any fails, so that a change of words is seen at once.
    let failures: Vec<String> = std::thread::scope(|scope| {
        let groups = CASES.chunks(CASES.len().div_ceil(3));
        let running: Vec<_> = groups
            .map(|cases| {
                scope.spawn(|| {
                    cases
                        .iter()
                        .filter_map(|case| outcome(case).err())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        running
            .into_iter()
            .flat_map(|running| running.join().expect("a check says what is wrong"))
            .collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// One check that panics does not hide the others.
fn outcome(case: &Case) -> Result<(), String> {
    std::panic::catch_unwind(|| check(case))
        .unwrap_or_else(|_| Err(format!("{}: no answer in time", case.fault)))
}

fn check(case: &Case) -> Result<(), String> {
    let good = Server::new()
        .tool("quick", [answer("fine")])
        .tool("slow", [sleep(300), answer("too")]);
    let setup = Setup::new()
        .server("bad", (case.server)())
        .server("good", good);
    let mut client = setup.connect();
    let failed = |what: &str, text: &str| Err(format!("{}: {what}: {text}", case.fault));
    if client.execute("good__quick").text() != "fine" {
        return failed("before it", "the other server does not work");
    }
    let beside = client.begin_execute("good__slow");
    // Only what never comes is waited for in vain.
    let limit = |in_vain: bool| if in_vain { 1.5 } else { 30.0 };
    let of_limit = |seconds: f64| json!({ "name": "bad__t", "timeout": seconds }).to_string();
    let call = client.begin(
        "execute_tool",
        &of_limit(limit(matches!(case.comes, Comes::Late))),
    );
    if client.execute("good__quick").text() != "fine" {
        return failed("during it", "the other server does not work");
    }
    let got = client.answer(call);
    match case.comes {
        Comes::Text(text) if got.is_tool_error() || got.text() != text => {
            return failed("no such answer", got.as_str());
        }
        Comes::Error | Comes::Late if !got.is_tool_error() || !got.text().contains(case.gets) => {
            return failed("no such error", got.as_str());
        }
        _ => {}
    }
    if client.answer(beside).text() != "too" {
        return failed("a call beside it", "was lost");
    }
    let again = || of_limit(limit(case.next != Next::Works));
    if case.next == Next::Works {
        until("the next call to work", || {
            let next = client.call("execute_tool", &again());
            (!next.is_tool_error() && next.text() == "done").then_some(())
        });
    } else if !client.call("execute_tool", &again()).is_tool_error() {
        return failed("the next call", "works");
    }
    if client.execute("good__quick").text() != "fine"
        || !client.search("does quick").contains("good__quick")
    {
        return failed("after it", "the other server does not work");
    }
    let stderr = client.stderr();
    if stderr.contains("a fault inside mcpzip") {
        return failed("a panic", &stderr);
    }
    client.finish();
    Ok(())
}
