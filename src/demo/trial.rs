//! A session with a demo server in memory, at a fixed time, for the tests of its tools.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use time::macros::datetime;

use super::Server;
use super::schema::{Kind, Presence};
use super::server::run;
use super::tool::Context;

/// The time in every trial: a Wednesday.
pub(super) fn context(store: &Path) -> Context {
    Context {
        store: store.to_owned(),
        now: || datetime!(2026-03-04 10:00 UTC),
    }
}

/// A call and what it answers: members that the data must have, a text, or, under `error`, a part of the refusal.
pub(super) type Case = (&'static str, Value, Value);

/// Makes the calls one after another and checks each answer, the schemas of all tools, and that none was left out.
#[track_caller]
pub(super) fn check(server: Server, cases: &[Case]) {
    let store = tempfile::tempdir().unwrap();
    let list = json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/list" });
    let calls = cases.iter().enumerate().map(|(i, (name, arguments, _))| {
        json!({ "jsonrpc": "2.0", "id": i + 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } })
    });
    let input: String = std::iter::once(list)
        .chain(calls)
        .map(|message| format!("{message}\n"))
        .collect();
    let mut output = Vec::new();
    run(
        server.service(),
        &context(store.path()),
        input.as_bytes(),
        &mut output,
    )
    .unwrap();
    let output = String::from_utf8(output).unwrap();
    let mut answers = output
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());

    let listed = answers.next().unwrap();
    let tools = listed["result"]["tools"].as_array().unwrap();
    let mut untried: BTreeSet<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    for tool in tools {
        check_schemas(tool);
    }
    for ((name, arguments, expected), answer) in cases.iter().zip(answers) {
        let call = format!("{name} {arguments}");
        let result = answer
            .get("result")
            .unwrap_or_else(|| panic!("{call} failed: {answer}"));
        let tool = tools.iter().find(|tool| tool["name"] == *name).unwrap();
        if let Some(refusal) = expected.get("error") {
            let text = result["content"][0]["text"].as_str().unwrap();
            assert_eq!(result["isError"], true, "{call} was done: {result}");
            assert!(
                text.contains(refusal.as_str().unwrap()),
                "{call} was refused with: {text}"
            );
            continue;
        }
        assert_eq!(result.get("isError"), None, "{call}: {result}");
        check_result(&call, tool, result, expected);
        untried.remove(name);
    }
    assert!(untried.is_empty(), "never called with success: {untried:?}");
}

/// Calls every tool many times with odd values that its declaration allows; each call must be answered.
pub(super) fn strain(server: Server) {
    const ROUNDS: usize = 60;
    let store = tempfile::tempdir().unwrap();
    let mut dice = Dice(1);
    let mut input = String::new();
    let tools: Vec<_> = server.service().tools().collect();
    for _ in 0..ROUNDS {
        for tool in &tools {
            let arguments = dice.value(&Kind::Object(tool.parameters));
            let params = json!({ "name": tool.name, "arguments": arguments });
            input +=
                &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
                    .to_string();
            input.push('\n');
        }
    }
    let mut output = Vec::new();
    run(
        server.service(),
        &context(store.path()),
        input.as_bytes(),
        &mut output,
    )
    .unwrap();
    let answers = String::from_utf8(output).unwrap();
    assert_eq!(answers.lines().count(), ROUNDS * tools.len());
    for (question, answer) in input.lines().zip(answers.lines()) {
        let answer: Value = serde_json::from_str(answer).unwrap();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            !text.contains(" do not fit: "),
            "{question} does not fit its own declaration: {text}"
        );
        let tool = serde_json::from_str::<Value>(question).unwrap()["params"]["name"].clone();
        let tool = tools.iter().find(|known| tool == known.name).unwrap();
        if let Some(data) = answer["result"].get("structuredContent") {
            let schema = &serde_json::to_value(tool).unwrap()["outputSchema"];
            assert!(
                jsonschema::is_valid(schema, data),
                "{question} answers {data}"
            );
        }
    }
}

/// Chance that is the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.roll(values.len())].clone()
    }

    fn value(&mut self, kind: &Kind) -> Value {
        const TEXTS: [&str; 14] = [
            "",
            " ",
            "a",
            "İß\n\nÄ\u{301}",
            "a,\"b\nc\"\r\n",
            "%e2%82",
            "{\"a\":[1e300,{}]}",
            "/a/0",
            "09:00",
            "+23:59",
            "https://x(y)).",
            "-1,234.5e-7",
            "EUR",
            "km",
        ];
        const MOMENTS: [&str; 5] = [
            "0000-01-01T00:00:00+23:59",
            "9999-12-31T23:59:59-23:59",
            "2026-03-04T10:00:00Z",
            "2026-03-05T00:00:00+01:00",
            "2028-02-29T12:00:00-08:00",
        ];
        match kind {
            Kind::Text | Kind::Any => self.pick(&TEXTS).into(),
            Kind::Date => self
                .pick(&["0000-01-01", "9999-12-31", "2024-02-29", "2026-03-04"])
                .into(),
            Kind::Moment => self.pick(&MOMENTS).into(),
            Kind::Choice(words) => self.pick(words).into(),
            Kind::Number => self
                .pick(&[0.0, -0.0, 1.0, -1.0, 0.1, 1e12, 1.7e308, -1.7e308, 5e-324])
                .into(),
            Kind::Integer(least, most) => {
                // One in the middle that is often the number of something that was made before.
                let known = 1 + i64::try_from(self.roll(20)).unwrap();
                self.pick(&[*least, *most, least + 1, known.clamp(*least, *most)])
                    .into()
            }
            Kind::Flag => self.pick(&[true, false]).into(),
            Kind::List(item) => (0..self.roll(4)).map(|_| self.value(item)).collect(),
            Kind::Map(item) => json!({ self.pick(&["x", "e", ""]): self.value(item) }),
            Kind::Object(fields) => {
                let mut members = serde_json::Map::new();
                for field in *fields {
                    if field.presence == Presence::Required || self.roll(2) == 0 {
                        members.insert(field.name.to_owned(), self.value(&field.kind));
                    }
                }
                Value::Object(members)
            }
        }
    }
}

#[track_caller]
fn check_result(call: &str, tool: &Value, result: &Value, expected: &Value) {
    let text = &result["content"][0]["text"];
    let Some(schema) = tool.get("outputSchema") else {
        assert_eq!(
            result.get("structuredContent"),
            None,
            "{call} answers data without a schema"
        );
        assert_eq!(text, expected, "{call}");
        return;
    };
    let data = result
        .get("structuredContent")
        .unwrap_or_else(|| panic!("{call} has a schema but answers no data"));
    assert_eq!(
        &serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap(),
        data,
        "{call}: text and data differ"
    );
    if let Err(error) = jsonschema::validate(schema, data) {
        panic!("{call} answers {data}, which its schema refuses: {error}");
    }
    assert!(
        includes(data, expected),
        "{call} answers\n{data}\nnot\n{expected}"
    );
}

#[track_caller]
fn check_schemas(tool: &Value) {
    let name = &tool["name"];
    for key in ["inputSchema", "outputSchema"] {
        if let Some(schema) = tool.get(key) {
            jsonschema::validator_for(schema)
                .unwrap_or_else(|error| panic!("{name}: {key}: {error}"));
        }
    }
    for (parameter, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
        if let Some(default) = schema.get("default") {
            assert!(
                jsonschema::is_valid(schema, default),
                "{name}: the default of {parameter} does not fit it"
            );
        }
    }
}

/// Whether `whole` has all that `part` has: the members of objects, everything else alike.
fn includes(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| includes(whole, part))),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len()
                && whole
                    .iter()
                    .zip(part)
                    .all(|(whole, part)| includes(whole, part))
        }
        _ => whole == part,
    }
}
