//! A session with a server in memory, at a fixed time, for the tests of its tools.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use time::macros::datetime;

use crate::tool::Context;
use crate::{Server, protocol};

/// A context at a fixed time, a Wednesday.
pub(crate) fn context(store: &Path) -> Context {
    Context {
        store: store.to_owned(),
        now: || datetime!(2026-03-04 10:00 UTC),
    }
}

/// The server's answers to these lines.
pub(crate) fn session(server: Server, store: &Path, lines: &str) -> Vec<Value> {
    let mut output = Vec::new();
    protocol::run(
        server.service(),
        &context(store),
        lines.as_bytes(),
        &mut output,
    )
    .unwrap();
    let output = String::from_utf8(output).unwrap();
    output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Makes calls one after the other. Each line of `cases` is a JSON array: a tool, its arguments, and the expected
/// answer. That is a set of members of the data, a text, or, under `error`, a part of the error message. Every tool
/// must succeed once.
#[track_caller]
pub(crate) fn check(server: Server, cases: &str) {
    let store = tempfile::tempdir().unwrap();
    let cases: Vec<(String, Value, Value)> = cases
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect();
    let calls = cases.iter().map(|(name, arguments, _)| {
        let params = json!({ "name": name, "arguments": arguments });
        format!(
            "{}\n",
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
        )
    });
    let answers = session(server, store.path(), &calls.collect::<String>());
    let mut untried: BTreeSet<&str> = server
        .service()
        .tools()
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    for ((name, arguments, expected), answer) in cases.iter().zip(&answers) {
        let call = format!("{name} {arguments}");
        let result = &answer["result"];
        let text = result["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{call}: {answer}"));
        if let Some(refusal) = expected.get("error") {
            assert_eq!(result["isError"], true, "{call} was done: {result}");
            assert!(
                text.contains(refusal.as_str().unwrap()),
                "{call} was refused with: {text}"
            );
            continue;
        }
        assert_eq!(result.get("isError"), None, "{call}: {result}");
        match expected {
            Value::String(expected) => assert_eq!(text, expected, "{call}"),
            expected => {
                let data = &result["structuredContent"];
                assert!(
                    holds(data, expected),
                    "{call} answered {data}, not {expected}"
                );
            }
        }
        untried.remove(name.as_str());
    }
    assert!(untried.is_empty(), "never called with success: {untried:?}");
}

/// Whether `value` contains all of `expected`: its members, and its items in order.
fn holds(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(value), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| value.get(name).is_some_and(|value| holds(value, expected))),
        (Value::Array(value), Value::Array(expected)) => {
            value.len() == expected.len()
                && value
                    .iter()
                    .zip(expected)
                    .all(|(value, expected)| holds(value, expected))
        }
        _ => value == expected,
    }
}
