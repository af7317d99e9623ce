//! An MCP server over newline-delimited JSON-RPC. It answers messages one by one, in order.
//!
//! It supports the revisions with `initialize`, and continues after an invalid line.

use std::io::{self, BufRead, Write};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::tool::{Context, Service};

const LATEST: &str = "2025-11-25";
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LATEST];

/// A JSON-RPC error: its code and its message.
type Fault = (i32, String);

const PARSE: i32 = -32700;
const REQUEST: i32 = -32600;
const METHOD: i32 = -32601;
const PARAMS: i32 = -32602;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    jsonrpc: Option<Value>,
    method: Option<Value>,
    #[serde(default)]
    params: Value,
    result: Option<Value>,
    error: Option<Value>,
}

/// Answers every message of `input` on `output` until `input` ends.
///
/// # Errors
/// When `input` cannot be read or `output` cannot be written.
pub(crate) fn run(
    service: &Service,
    context: &Context,
    mut input: impl BufRead,
    mut output: impl Write,
) -> io::Result<()> {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(answer) = answer_line(service, context, line.trim_ascii()) {
            output.write_all(answer.as_bytes())?;
            output.write_all(b"\n")?;
            output.flush()?;
        }
        line.clear();
    }
    Ok(())
}

fn answer_line(service: &Service, context: &Context, line: &[u8]) -> Option<String> {
    if line.is_empty() {
        return None;
    }
    let message: Message<'_> = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(error) => {
            let is_json = serde_json::from_slice::<&RawValue>(line).is_ok();
            let code = if is_json { REQUEST } else { PARSE };
            return Some(envelope(
                None,
                refuse(code, format!("not a message: {error}")),
            ));
        }
    };
    let is_id = |id: &&RawValue| {
        id.get()
            .starts_with(|c: char| "\"-".contains(c) || c.is_ascii_digit())
    };
    let id = message.id.filter(is_id);
    let outcome = match &message.method {
        _ if message.id.is_some() && id.is_none() => {
            refuse(REQUEST, "`id` must be a string or a number")
        }
        _ if message.jsonrpc != Some(json!("2.0")) => refuse(REQUEST, "`jsonrpc` must be \"2.0\""),
        // Responses are ignored, because this server sends no requests. Notifications are ignored, because none affects
        // it.
        None if message.result.is_some() || message.error.is_some() => return None,
        Some(Value::String(_)) if id.is_none() => return None,
        Some(Value::String(method)) => answer(service, context, method, &message.params),
        _ => refuse(REQUEST, "`method` must be a string"),
    };
    Some(envelope(id, outcome))
}

fn refuse<T>(code: i32, message: impl Into<String>) -> Result<T, Fault> {
    Err((code, message.into()))
}

/// The result as JSON text.
fn answer(
    service: &Service,
    context: &Context,
    method: &str,
    params: &Value,
) -> Result<String, Fault> {
    if !params.is_null() && !params.is_object() {
        return refuse(PARAMS, "`params` must be an object");
    }
    match method {
        "initialize" => Ok(initialize(service, &params["protocolVersion"]).to_string()),
        "ping" => Ok("{}".into()),
        "tools/list" if params["cursor"].is_null() => Ok(service.listing()),
        "tools/list" => refuse(PARAMS, "the cursor is unknown: there is one page only"),
        "tools/call" => call(service, context, params).map(|result| result.to_string()),
        method => refuse(METHOD, format!("method `{method}` is not known")),
    }
}

fn initialize(service: &Service, asked: &Value) -> Value {
    let asked = asked.as_str().filter(|asked| REVISIONS.contains(asked));
    json!({
        "protocolVersion": asked.unwrap_or(LATEST),
        "capabilities": { "tools": {} },
        "serverInfo": { "name": service.name, "title": service.title, "version": env!("CARGO_PKG_VERSION") },
        "instructions": service.instructions,
    })
}

fn call(service: &Service, context: &Context, params: &Value) -> Result<Value, Fault> {
    let name = params["name"]
        .as_str()
        .ok_or((PARAMS, "`name` must name a tool".to_owned()))?;
    let tool = service
        .tools()
        .iter()
        .find(|tool| tool.name == name)
        .ok_or_else(|| (PARAMS, format!("unknown tool: `{name}`")))?;
    let outcome = tool
        .arguments(&params["arguments"])
        .and_then(|args| (service.call)(name, context, &args));
    Ok(match outcome {
        Ok(output) => output.into_result(),
        // Errors that the caller can correct are results, not protocol errors (2025-11-25, Tools, "Error Handling").
        Err(text) => json!({ "content": [{ "type": "text", "text": text }], "isError": true }),
    })
}

fn envelope(id: Option<&RawValue>, outcome: Result<String, Fault>) -> String {
    let id = id.map_or("null", RawValue::get);
    match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err((code, message)) => {
            let error = json!({ "code": code, "message": message });
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Server, trial};

    /// The text server's answers to these lines.
    fn answers(lines: &str) -> Vec<Value> {
        let store = tempfile::tempdir().unwrap();
        trial::session(Server::Text, store.path(), lines)
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
        let cases = r#"null -32700 {
            null -32600 []
            null -32600 {"jsonrpc":"2.0","id":{},"method":"ping"}
            1 -32600 {"jsonrpc":"1.0","id":1,"method":"ping"}
            1 -32600 {"jsonrpc":"2.0","id":1}
            1 -32600 {"jsonrpc":"2.0","id":1,"method":7}
            "a" -32601 {"jsonrpc":"2.0","id":"a","method":"x"}
            1 -32602 {"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}
            1 -32602 {"jsonrpc":"2.0","id":1,"method":"tools/call"}
            1 -32602 {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}
            1 -32602 {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#;
        for case in cases.lines() {
            let [id, code, line] = *case.trim().splitn(3, ' ').collect::<Vec<_>>() else {
                panic!("{case}");
            };
            check(line, "/error/code", &code.parse::<i32>().unwrap().into());
            check(line, "/id", &serde_json::from_str(id).unwrap());
        }
    }

    #[test]
    fn notifications_responses_and_empty_lines_have_no_answer_and_the_server_goes_on() {
        let answers = answers(
            "\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\r\n{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}\n\
             not json\n{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}",
        );
        assert_eq!(answers.len(), 2);
        assert_eq!(answers[0]["error"]["code"], -32700);
        assert_eq!(answers[1]["result"], json!({}));
    }

    #[test]
    fn an_id_comes_back_in_its_own_bytes() {
        let line = br#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"ping"}"#;
        let store = tempfile::tempdir().unwrap();
        let answer = answer_line(Server::Text.service(), &trial::context(store.path()), line);
        assert_eq!(
            answer.unwrap(),
            r#"{"jsonrpc":"2.0","id":12345678901234567890123,"result":{}}"#
        );
    }
}
