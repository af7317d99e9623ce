//! Servers behind HTTP that fail: how each is tried, whatever its transport.
//!
//! All servers of a table stand behind one program at once, so that a case costs milliseconds, and each is one more that the
//! good server beside them must not suffer from. A server is broken until the test has seen what comes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::Outcome;
use crate::support::http::HttpServer;
use crate::support::script::{answer, sleep};
use crate::support::{Server, Setup, until};

/// The header that each server gets, and nobody else may see.
pub(super) const SECRET: &str = "sesame-open";

/// The limit of a call whose answer never comes, in seconds.
const SHORT: f64 = 0.4;

/// Where a server fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Handshake,
    List,
    Call,
    /// The stream of what is said unasked.
    Listen,
}

/// What `t` comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comes {
    Answer,
    /// An error that the agent can read.
    Error,
    /// The same, but only after the call's own limit.
    Late,
}

/// A row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) fault: &'static str,
    pub(super) at: Step,
    pub(super) comes: Comes,
    /// What stands in the answer: several parts with `…` between.
    pub(super) gets: &'static str,
}

/// A row about a fault of a call.
pub(super) const fn call(fault: &'static str, comes: Comes, gets: &'static str) -> Row {
    Row {
        fault,
        at: Step::Call,
        comes,
        gets,
    }
}

/// A server that fails as a row says, as long as it is broken.
pub(super) struct Failing {
    pub(super) row: Row,
    pub(super) web: HttpServer,
    pub(super) members: Value,
    pub(super) is_broken: Arc<AtomicBool>,
}

impl Row {
    pub(super) fn outcome(&self) -> Outcome {
        let gets = if self.comes == Comes::Answer {
            "the answer"
        } else {
            self.gets
        };
        let after = match (self.comes, self.at) {
            (Comes::Late, Step::Call) => "the call's limit",
            (Comes::Late, _) => "the call's limit; the listing goes on",
            _ => "at once",
        };
        let then = match (self.comes, self.at) {
            (Comes::Answer, _) => "the next call works",
            (_, Step::Call) => "it was sent once; the next call works",
            (Comes::Late, _) => "tried again in the background",
            _ => "the next call works, as soon as its server does",
        };
        Outcome {
            fault: self.fault,
            gets,
            after,
            then,
        }
    }

    fn check(&self, is_error: bool, text: &str) -> Result<(), String> {
        let is_right = match self.comes {
            Comes::Answer => !is_error && text == "fine",
            _ => is_error && self.gets.split(" … ").all(|part| text.contains(part)),
        };
        if is_right {
            Ok(())
        } else {
            Err(format!("{}: {text}", self.fault))
        }
    }
}

/// Tries all of them, side by side with a server that works.
#[track_caller]
pub(super) fn check(servers: &[Failing]) {
    let good = Server::new()
        .tool("quick", [answer("fine")])
        .tool("slow", [sleep(300), answer("too")]);
    let mut setup = Setup::new()
        .server("good", good)
        .setting("search", json!({ "semantic": false }));
    for (number, server) in servers.iter().enumerate() {
        let mut entry = json!({ "headers": { "Authorization": format!("Bearer {SECRET}") } });
        entry
            .as_object_mut()
            .unwrap()
            .extend(server.members.as_object().unwrap().clone());
        setup = setup.entry(&format!("bad{number}"), &server.web.entry(entry));
    }
    let mut client = setup.connect();
    assert_eq!(client.execute("good__quick").text(), "fine", "before");
    // Those that fail in a call are connected by then, so that it is the call whose time passes.
    for (number, _) in servers
        .iter()
        .enumerate()
        .filter(|(_, server)| server.row.at == Step::Call)
    {
        assert_eq!(
            client.execute(&format!("bad{number}__u")).text(),
            "fine",
            "before, {number}"
        );
    }
    let beside = client.begin_execute("good__slow");
    let call = |number: usize, limit: f64| {
        json!({ "name": format!("bad{number}__t"), "timeout": limit }).to_string()
    };
    let calls: Vec<u64> = (0..servers.len())
        .map(|number| {
            let limit = if servers[number].row.comes == Comes::Late {
                SHORT
            } else {
                50.0
            };
            client.begin("execute_tool", &call(number, limit))
        })
        .collect();
    assert_eq!(client.execute("good__quick").text(), "fine", "during");
    let mut failures = Vec::new();
    for (server, call) in servers.iter().zip(calls) {
        let got = client.answer(call);
        failures.extend(server.row.check(got.is_tool_error(), &got.text()).err());
        let sent = server
            .web
            .requests()
            .iter()
            .filter(|request| request.body["params"]["name"] == "t")
            .count();
        if server.row.at == Step::Call && sent != 1 {
            failures.push(format!("{}: sent {sent} times", server.row.fault));
        }
    }
    assert_eq!(client.answer(beside).text(), "too", "a call beside them");
    servers
        .iter()
        .for_each(|server| server.is_broken.store(false, Ordering::SeqCst));
    // What hangs as it is connected has all the time that a start may take, and is not tried anew meanwhile.
    let hangs = |row: &Row| row.comes == Comes::Late && row.at != Step::Call;
    for (number, server) in servers
        .iter()
        .enumerate()
        .filter(|(_, server)| !hangs(&server.row))
    {
        until(&format!("the next call: {}", server.row.fault), || {
            let next = client.call("execute_tool", &call(number, 5.0));
            (!next.is_tool_error() && next.text() == "fine").then_some(())
        });
    }
    assert_eq!(client.execute("good__quick").text(), "fine", "after");
    assert!(client.search("does quick").contains("good__quick"), "after");
    let said = client.stderr() + &client.stdout();
    assert!(!said.contains(SECRET), "a secret got out");
    assert!(!said.contains("a fault inside mcpzip"), "a panic");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    client.finish();
}
