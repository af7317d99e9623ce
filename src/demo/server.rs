//! An MCP server over newline-delimited JSON-RPC: one message in, at most one out, in order.
//!
//! It speaks the revisions that begin with `initialize`, and goes on whatever a line holds.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::tool::{Context, Outcome, Tool};
use crate::mcp::object::{Object, text};

const LATEST: &str = "2025-11-25";
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LATEST];

/// What a server is and offers.
pub(super) struct Service {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) instructions: &'static str,
    /// Its tools, a group per file.
    pub(super) groups: &'static [&'static [Tool]],
}

impl Service {
    /// Its tools in their order.
    pub(super) fn tools(&self) -> impl Iterator<Item = &'static Tool> + use<> {
        self.groups.iter().flat_map(|group| group.iter())
    }
}

/// Answers every message of `input` on `output` until `input` ends.
///
/// # Errors
/// When `input` cannot be read or `output` cannot be written.
pub(super) fn run(
    service: &Service,
    context: &Context,
    mut input: impl BufRead,
    mut output: impl Write,
) -> io::Result<()> {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(mut answer) = answer_line(service, context, line.trim_ascii()) {
            answer.push(b'\n');
            output.write_all(&answer)?;
            output.flush()?;
        }
        line.clear();
    }
    Ok(())
}

/// A message, as far as it could be read.
struct Message<'a> {
    id: Option<&'a RawValue>,
    method: Cow<'a, str>,
    params: Option<&'a RawValue>,
}

/// A JSON-RPC error.
struct Fault {
    code: i32,
    message: String,
}

impl Fault {
    const PARSE: i32 = -32700;
    const REQUEST: i32 = -32600;
    const METHOD: i32 = -32601;
    const PARAMS: i32 = -32602;

    fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

fn answer_line(service: &Service, context: &Context, line: &[u8]) -> Option<Vec<u8>> {
    if line.is_empty() {
        return None;
    }
    let read: Result<&RawValue, _> = serde_json::from_slice(line);
    let (id, outcome) = match read {
        Err(error) => (
            None,
            Err(Fault::new(
                Fault::PARSE,
                format!("this is not JSON: {error}"),
            )),
        ),
        Ok(json) => match Message::read(json) {
            Err((id, fault)) => (id, Err(fault)),
            Ok(None) => return None,
            // A notification has no answer, and none of them changes what this server does.
            Ok(Some(Message { id: None, .. })) => return None,
            Ok(Some(message)) => (message.id, answer(service, context, &message)),
        },
    };
    Some(envelope(id, outcome))
}

impl<'a> Message<'a> {
    /// The request or notification in `json`; `None` for a response, since this server asks nothing.
    fn read(json: &'a RawValue) -> Result<Option<Self>, (Option<&'a RawValue>, Fault)> {
        let invalid = |id, message: &str| Err((id, Fault::new(Fault::REQUEST, message)));
        let Ok(object) = Object::parse(json) else {
            return invalid(None, "a message must be an object; batches are not taken");
        };
        let id = object.get("id");
        if let Some(id) = id
            && !id
                .get()
                .starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
        {
            return invalid(None, "`id` must be a string or a number");
        }
        if object.text("jsonrpc").as_deref() != Some("2.0") {
            return invalid(id, "`jsonrpc` must be \"2.0\"");
        }
        let is_response = object.get("result").is_some() || object.get("error").is_some();
        match object.get("method").map(text) {
            Some(Some(method)) => Ok(Some(Self {
                id,
                method: method.into(),
                params: object.get("params"),
            })),
            None if is_response => Ok(None),
            _ => invalid(id, "`method` must be a string"),
        }
    }

    fn params(&self) -> Result<Map<String, Value>, Fault> {
        let Some(params) = self.params else {
            return Ok(Map::new());
        };
        serde_json::from_str(params.get()).map_err(|error| {
            Fault::new(
                Fault::PARAMS,
                format!("`params` must be an object: {error}"),
            )
        })
    }
}

fn answer(
    service: &Service,
    context: &Context,
    message: &Message<'_>,
) -> Result<Box<RawValue>, Fault> {
    let params = message.params()?;
    match message.method.as_ref() {
        "initialize" => Ok(raw(&initialize(service, &params))),
        "ping" => Ok(raw(&json!({}))),
        "tools/list" => list(service, &params),
        "tools/call" => call(service, context, &params).map(|result| raw(&result)),
        method => Err(Fault::new(
            Fault::METHOD,
            format!("method `{method}` is not known"),
        )),
    }
}

fn initialize(service: &Service, params: &Map<String, Value>) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    json!({
        "protocolVersion": asked.filter(|asked| REVISIONS.contains(asked)).unwrap_or(LATEST),
        "capabilities": { "tools": {} },
        "serverInfo": { "name": service.name, "title": service.title, "version": env!("CARGO_PKG_VERSION") },
        "instructions": service.instructions,
    })
}

/// All tools on one page.
fn list(service: &Service, params: &Map<String, Value>) -> Result<Box<RawValue>, Fault> {
    #[derive(Serialize)]
    struct Page {
        tools: Vec<&'static Tool>,
    }
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(Fault::new(
            Fault::PARAMS,
            "the cursor is not from this server: there is one page only",
        ));
    }
    Ok(raw(&Page {
        tools: service.tools().collect(),
    }))
}

fn call(service: &Service, context: &Context, params: &Map<String, Value>) -> Result<Value, Fault> {
    let Some(name) = params.get("name").and_then(Value::as_str) else {
        return Err(Fault::new(Fault::PARAMS, "`name` must name a tool"));
    };
    let Some(tool) = service.tools().find(|tool| tool.name == name) else {
        return Err(Fault::new(Fault::PARAMS, format!("unknown tool: `{name}`")));
    };
    Ok(match outcome(tool, context, params.get("arguments")) {
        Ok(output) => output.into_result(),
        // What the caller can act on is a result, not a protocol error (2025-11-25, Tools, "Error Handling").
        Err(text) => json!({ "content": [{ "type": "text", "text": text }], "isError": true }),
    })
}

fn outcome(tool: &Tool, context: &Context, arguments: Option<&Value>) -> Outcome {
    let none = Map::new();
    let given = match arguments {
        None | Some(Value::Null) => &none,
        Some(Value::Object(given)) => given,
        Some(_) => return Err("the arguments must be an object".to_owned()),
    };
    let checked = Arguments::check(tool.parameters, given)
        .map_err(|faults| format!("The arguments of {} do not fit: {faults}.", tool.name))?;
    (tool.run)(context, &checked)
}

fn raw<T: Serialize>(value: &T) -> Box<RawValue> {
    serde_json::value::to_raw_value(value)
        .expect("every declaration and answer can be written as JSON; tests list all")
}

fn envelope(id: Option<&RawValue>, outcome: Result<Box<RawValue>, Fault>) -> Vec<u8> {
    let id = id.map_or("null", RawValue::get);
    match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(Fault { code, message }) => {
            let message = Value::from(message);
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#
            )
        }
    }
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::{Server, trial};
    use super::*;

    /// What the text server answers to these lines.
    fn answers(lines: &str) -> Vec<Value> {
        let store = tempfile::tempdir().unwrap();
        let mut output = Vec::new();
        run(
            Server::Text.service(),
            &trial::context(store.path()),
            lines.as_bytes(),
            &mut output,
        )
        .unwrap();
        output
            .split(|b| *b == b'\n')
            .filter(|l| !l.is_empty())
            .map(|l| serde_json::from_slice(l).unwrap())
            .collect()
    }

    #[track_caller]
    fn check(line: &str, pointer: &str, expected: &Value) {
        let answers = answers(line);
        assert_eq!(answers.len(), 1, "{line} was answered by {answers:?}");
        assert_eq!(
            answers[0].pointer(pointer),
            Some(expected),
            "{line} was answered by {}",
            answers[0]
        );
    }

    #[test]
    fn a_known_revision_is_kept_and_an_unknown_one_becomes_the_latest() {
        for (asked, agreed) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-06-18", "2025-06-18"),
            ("2026-07-28", LATEST),
            ("x", LATEST),
        ] {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{asked}"}}}}"#
            );
            check(&line, "/result/protocolVersion", &json!(agreed));
        }
    }

    #[test]
    fn bad_input_is_answered_by_its_code() {
        for (line, id, code) in [
            ("{", json!(null), -32700),
            ("\u{7f}", json!(null), -32700),
            ("[]", json!(null), -32600),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
                json!(null),
                -32600,
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                json!(null),
                -32600,
            ),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
                json!(1),
                -32600,
            ),
            (r#"{"jsonrpc":"2.0","id":1}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, json!(1), -32600),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"resources/list"}"#,
                json!("a"),
                -32601,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
                json!(1),
                -32602,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#,
                json!(1),
                -32602,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
                json!(1),
                -32602,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#,
                json!(1),
                -32602,
            ),
        ] {
            check(line, "/error/code", &json!(code));
            check(line, "/id", &id);
        }
    }

    #[test]
    fn bad_arguments_are_a_result() {
        for (arguments, text) in [
            (
                r#"{"text":7}"#,
                "The arguments of slugify do not fit: `text` must be a string, not 7.",
            ),
            ("[]", "the arguments must be an object"),
        ] {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"slugify","arguments":{arguments}}}}}"#
            );
            check(&line, "/result/isError", &json!(true));
            check(&line, "/result/content/0/text", &json!(text));
        }
    }

    #[test]
    fn notifications_responses_and_empty_lines_have_no_answer_and_the_server_goes_on() {
        let answers = answers(
            "\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\r\n{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}\n\
             not json\n{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890123,\"method\":\"ping\"}",
        );
        assert_eq!(answers.len(), 2);
        assert_eq!(answers[0]["error"]["code"], -32700);
        assert_eq!(answers[1]["result"], json!({}));
    }

    #[test]
    fn an_id_comes_back_in_its_own_bytes() {
        let line = br#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"ping"}"#;
        let store = tempfile::tempdir().unwrap();
        let answer =
            answer_line(Server::Text.service(), &trial::context(store.path()), line).unwrap();
        assert_eq!(
            answer,
            br#"{"jsonrpc":"2.0","id":12345678901234567890123,"result":{}}"#
        );
    }
}
