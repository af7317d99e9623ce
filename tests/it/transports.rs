//! One suite for every transport and era: the same scripts, and the same expectations. Where a transport or an era must
//! differ, the table says so.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::json;

use crate::support::bridge::{self, Form};
use crate::support::http::HttpServer;
use crate::support::script::{
    Step, answer, await_cancel, change_tools, echo, error, exit, fill, hang, line, result, sleep,
    up_to,
};
use crate::support::{Client, SOON, Server, Setup, until};

/// A way to reach a server.
#[derive(Debug)]
struct Transport {
    name: &'static str,
    /// Nothing is stdio.
    form: Option<Form>,
    is_modern: bool,
    /// Whether there is a way for progress to come during a call: an answer of JSON is all that there is.
    has_progress: bool,
    /// How a server learns that a call was given up: by a notification, or by the end of the exchange.
    cancels_by_notification: bool,
}

const TRANSPORTS: &[Transport] = &[
    Transport {
        name: "stdio, legacy",
        form: None,
        is_modern: false,
        has_progress: true,
        cancels_by_notification: true,
    },
    Transport {
        name: "stdio, modern",
        form: None,
        is_modern: true,
        has_progress: true,
        cancels_by_notification: true,
    },
    Transport {
        name: "Streamable HTTP, legacy, JSON",
        form: Some(Form::Json),
        is_modern: false,
        has_progress: false,
        cancels_by_notification: true,
    },
    Transport {
        name: "Streamable HTTP, legacy, events",
        form: Some(Form::Events),
        is_modern: false,
        has_progress: true,
        cancels_by_notification: true,
    },
    Transport {
        name: "Streamable HTTP, modern, JSON",
        form: Some(Form::Json),
        is_modern: true,
        has_progress: false,
        cancels_by_notification: false,
    },
    Transport {
        name: "Streamable HTTP, modern, events",
        form: Some(Form::Events),
        is_modern: true,
        has_progress: true,
        cancels_by_notification: false,
    },
    Transport {
        name: "HTTP+SSE",
        form: Some(Form::Old),
        is_modern: false,
        has_progress: true,
        cancels_by_notification: true,
    },
];

/// A server `s` behind a transport, and a client of the `mcpzip` before it.
struct Case {
    transport: &'static Transport,
    client: Client,
    web: Option<HttpServer>,
}

/// Runs `check` over every transport, each with a server of this script.
fn on_each(script: &Server, check: impl Fn(&mut Case)) {
    for transport in TRANSPORTS {
        let _named = Named(transport.name);
        let mut case = Case::new(transport, script.clone());
        check(&mut case);
        assert!(
            case.client.left_over().is_empty(),
            "{:?}",
            case.client.left_over()
        );
        case.client.finish();
    }
}

/// Says which transport it was, if a check fails.
struct Named(&'static str);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("=== over {}", self.0);
        }
    }
}

impl Case {
    fn new(transport: &'static Transport, script: Server) -> Self {
        let script = if transport.is_modern {
            script.modern()
        } else {
            script
        };
        let setup = Setup::new().server("b", Server::new().tool("v", [answer("too")]));
        let Some(form) = transport.form else {
            return Self {
                transport,
                client: setup.server("s", script).connect(),
                web: None,
            };
        };
        let path = setup.home().path("s.script.json");
        std::fs::write(&path, script.to_json()).unwrap();
        let web = bridge::start(form, transport.is_modern, path, setup.home().path("s.log"));
        let members = if form == Form::Old {
            json!({ "type": "sse" })
        } else {
            json!({})
        };
        Self {
            transport,
            client: setup.entry("s", &web.entry(members)).connect(),
            web: Some(web),
        }
    }

    /// How many lines with this text the server received.
    fn received(&self, text: &str) -> usize {
        self.client
            .home()
            .log("s")
            .lines()
            .filter(|line| line.starts_with("< ") && line.contains(text))
            .count()
    }

    /// How many calls of this tool it received.
    fn calls(&self, tool: &str) -> usize {
        self.received(&format!(r#""name":"{tool}""#))
    }

    fn await_call(&self, tool: &str) {
        until("the call to arrive", || {
            (self.calls(tool) >= 1).then_some(())
        });
    }

    fn cancel(&mut self, id: u64) {
        let params = json!({ "requestId": id });
        self.client.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#
        ));
    }

    /// Waits until the server knows that a call was given up, and checks how it learnt that.
    #[track_caller]
    fn check_cancelled(&self) {
        let home = self.client.home();
        until("the cancellation", || {
            (home.count("s", "heard ") == 1).then_some(())
        });
        assert_eq!(home.count("s", "never heard"), 0);
        if let Some(web) = &self.web {
            let notifications = usize::from(self.transport.cancels_by_notification);
            assert_eq!(web.count("notifications/cancelled"), notifications);
        }
    }

    /// The connection, or the next one, works, and so does another server.
    #[track_caller]
    fn check_goes_on(&mut self) {
        assert_eq!(self.client.execute("s__fine").text(), "fine");
        assert_eq!(self.client.execute("b__v").text(), "too");
    }
}

/// A server with the tool `t`, and one that always works.
fn with(steps: impl IntoIterator<Item = Step>) -> Server {
    Server::new()
        .tool("t", steps)
        .tool("fine", [answer("fine")])
}

#[test]
fn a_result_comes_in_its_own_bytes() {
    let own = r#"{"content":[{"text":"cut: \ud83d","type":"text","x":{}}],"structuredContent":{"a":1e400,"b":18446744073709551617,"c":1.0,"c":2},"later":[ ]}"#;
    on_each(&with([result(own)]), |case| {
        assert_eq!(case.client.execute("s__t").result(), own);
        case.check_goes_on();
    });
}

#[test]
fn arguments_arrive_in_their_own_bytes() {
    let own = r#"{"z":1e400,"a":[18446744073709551617, 1.0],"text":"cut: \ud83d \u00e9"}"#;
    on_each(&with([echo()]), |case| {
        let echoed = case.client.execute_with("s__t", own);
        assert!(
            echoed.result().contains(&format!(r#""arguments":{own}"#)),
            "{}",
            echoed.result()
        );
    });
}

#[test]
fn a_tools_own_failure_passes_as_it_is() {
    let failed = r#"{"content":[{"type":"text","text":"no such file"}],"isError":true}"#;
    on_each(&with([result(failed)]), |case| {
        assert_eq!(case.client.execute("s__t").result(), failed);
        case.check_goes_on();
    });
}

#[test]
fn a_refusal_becomes_words() {
    on_each(
        &with([error(
            r#"{"code":-32602,"message":"no such thing","data":{"id":7}}"#,
        )]),
        |case| {
            let text = case.client.execute("s__t").tool_error();
            assert_eq!(
                text,
                r#"`s__t` was refused by its server: no such thing {"id":7}"#
            );
            assert_eq!(case.calls("t"), 1);
            case.check_goes_on();
        },
    );
}

#[test]
fn progress_comes_during_the_call() {
    let progress = |number| {
        line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$token,"progress":{number}}}}}"#
        ))
    };
    on_each(
        &with([progress("1"), progress("2.50"), answer("done")]),
        |case| {
            let id = case.client.request(
            "tools/call",
            r#"{"name":"execute_tool","arguments":{"name":"s__t"},"_meta":{"progressToken":"p"}}"#,
        );
            for number in ["1", "2.50"] {
                if case.transport.has_progress {
                    let notified = case.client.expect("progress", |message| {
                        message.is_notification("notifications/progress")
                    });
                    assert_eq!(
                        notified.params(),
                        format!(r#"{{"progressToken":"p","progress":{number}}}"#)
                    );
                }
            }
            assert_eq!(case.client.answer(id).text(), "done");
        },
    );
}

#[test]
fn a_cancelled_call_is_cancelled_at_its_server() {
    on_each(&with([await_cancel(), answer("late")]), |case| {
        let id = case.client.begin_execute("s__t");
        case.await_call("t");
        case.cancel(id);
        case.check_cancelled();
        case.check_goes_on();
    });
}

#[test]
fn a_call_without_an_answer_ends_with_its_limit() {
    on_each(&with([await_cancel()]), |case| {
        let start = Instant::now();
        let text = case
            .client
            .call("execute_tool", r#"{"name":"s__t","timeout":0.4}"#)
            .tool_error();
        assert!(
            text.contains("server `s` gave no answer within 400ms"),
            "{text}"
        );
        assert!(text.contains("`timeout` (seconds) allows more"), "{text}");
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        case.check_cancelled();
        case.check_goes_on();
    });
}

#[test]
fn a_server_that_goes_during_a_call_is_not_asked_again_and_comes_back() {
    let once = r#""name":"t""#;
    on_each(
        &with([up_to(1, once, [exit(1)], [answer("done")])]),
        |case| {
            let text = case.client.execute("s__t").tool_error();
            assert!(
                text.contains("server `s` went away during the call ("),
                "{text}"
            );
            assert!(
                text.contains("it may or may not have acted, so the call was not repeated"),
                "{text}"
            );
            assert_eq!(case.calls("t"), 1);
            assert_eq!(case.client.execute("s__t").text(), "done");
            assert_eq!(case.calls("t"), 2);
            case.check_goes_on();
        },
    );
}

#[test]
fn a_call_that_only_reads_is_made_once_more() {
    let script = Server::new()
        .read_only_tool(
            "look",
            [up_to(1, r#""name":"look""#, [exit(1)], [answer("seen")])],
        )
        .read_only_tool("never", [exit(1)])
        .tool("fine", [answer("fine")]);
    on_each(&script, |case| {
        assert_eq!(case.client.execute("s__look").text(), "seen");
        assert_eq!(case.calls("look"), 2);
        let text = case.client.execute("s__never").tool_error();
        assert!(
            text.contains("server `s` went away during the call ("),
            "{text}"
        );
        assert_eq!(case.calls("never"), 2);
        case.check_goes_on();
    });
}

#[test]
fn garbage_in_place_of_an_answer_is_told() {
    on_each(
        &with([line(r#"{"jsonrpc":"2.0","id":$id,"result":{]"#)]),
        |case| {
            let text = case.client.execute("s__t").tool_error();
            assert!(
                text.contains("server `s` sent an answer that cannot be read: "),
                "{text}"
            );
            assert!(text.contains("the tool may have acted"), "{text}");
            assert_eq!(case.calls("t"), 1);
            case.check_goes_on();
        },
    );
}

#[test]
fn an_answer_over_the_size_limit_is_told() {
    const LENGTH: usize = 64 * 1024 * 1024;
    let before = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":""#;
    on_each(&with([fill(before, LENGTH, r#""}]}}"#)]), |case| {
        let call = case.client.begin_execute("s__t");
        case.check_goes_on();
        let text = case.client.answer(call).tool_error();
        assert!(
            text.contains("the answer of server `s` has 67108")
                && text.contains("the limit of 67108864"),
            "{text}"
        );
        assert_eq!(case.calls("t"), 1);
        case.check_goes_on();
    });
}

#[test]
fn many_calls_run_side_by_side_and_each_gets_its_own_answer() {
    const CALLS: usize = 20;
    let script = with([sleep(400), echo()])
        .tool("quick", [echo()])
        .tool("hang", [hang()]);
    on_each(&script, |case| {
        case.check_goes_on();
        let client = &mut case.client;
        // This one is never answered.
        let hung = client.begin_execute("s__hang");
        let mut begin = |tool: &str| -> Vec<u64> {
            let call =
                |number| json!({ "name": tool, "arguments": { "number": number } }).to_string();
            (0..CALLS)
                .map(|number| client.begin("execute_tool", &call(number)))
                .collect()
        };
        let (slow, quick) = (begin("s__t"), begin("s__quick"));
        let first: BTreeSet<String> = (0..CALLS)
            .map(|_| client.next())
            .map(|answer| {
                let number = &answer.value()["structuredContent"]["arguments"]["number"];
                assert_eq!(
                    quick[usize::try_from(number.as_u64().unwrap()).unwrap()].to_string(),
                    answer.id()
                );
                answer.id().to_owned()
            })
            .collect();
        assert_eq!(
            first,
            quick.iter().map(u64::to_string).collect(),
            "quick calls waited for slow ones"
        );
        for (number, id) in slow.into_iter().enumerate() {
            assert_eq!(
                client.answer(id).value()["structuredContent"]["arguments"]["number"],
                number
            );
        }
        case.check_goes_on();
        // The end of the run would wait for it.
        case.cancel(hung);
    });
}

#[test]
fn changed_tools_are_listed_anew() {
    let new = r#"{"name":"fresh","description":"Came later.","inputSchema":{"type":"object"}}"#;
    let discovered = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}"#;
    let script = with([change_tools(&[new]), answer("changed")])
        .hidden("fresh", [answer("here")])
        .on("server/discover", [result(discovered)])
        .on("subscriptions/listen", [hang()]);
    on_each(&script, |case| {
        case.check_goes_on();
        if case.transport.is_modern {
            until("the subscription", || {
                (case.received("subscriptions/listen") == 1).then_some(())
            });
        }
        assert_eq!(case.client.execute("s__t").text(), "changed");
        until("the new tool", || {
            (case.client.execute("s__fresh").text() == "here").then_some(())
        });
        assert!(
            case.client
                .execute("s__fine")
                .tool_error()
                .contains("no tool `s__fine`")
        );
    });
}
