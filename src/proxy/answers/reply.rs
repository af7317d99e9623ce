//! The answer to a request, and its form in each protocol era.

use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;
use serde_json::value::RawValue;

use crate::config::with_options;
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Frame, Object, RequestId, Revision};
use crate::proxy::view::View;
use crate::upstream::{CallError, RawResult, Word, required_input};

/// Cacheable for a day: only an edit of the configuration changes it. It names servers that only one user may see.
const CONSTANT: &str = r#""ttlMs":86400000,"cacheScope":"private""#;

/// Cacheable for a minute: changes are announced, but not every client listens. It may contain data that only one
/// user may see.
const CHANGING: &str = r#""ttlMs":60000,"cacheScope":"private""#;

/// A member of every modern result.
const RESULT_TYPE: (&str, &str) = ("resultType", r#""complete""#);
/// A member of cacheable results: the content of a resource may change at any time.
const TTL: (&str, &str) = ("ttlMs", "0");
/// A member of cacheable results: they may contain data that only one user may see.
const SCOPE: (&str, &str) = ("cacheScope", r#""private""#);

/// The answer to a request, before it gets the form of the caller's revision.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A result of mcpzip's own: a JSON object.
    Result(RawResult),
    /// A server's result, in its own bytes.
    Relayed(RawResult),
    /// The content of a server's resource, in its own bytes; a modern client may cache it.
    RelayedContent(Bytes),
    /// The task that a call became, in place of its result: a JSON object.
    Task(Bytes),
    /// The end of a request without a result, with members for its `_meta`.
    Ended {
        /// The members, without braces.
        meta: String,
    },
    /// A server's JSON-RPC error object, in its own bytes.
    RelayedError(Bytes),
    /// A JSON-RPC error; `data` is JSON.
    Error {
        /// The code.
        code: ErrorCode,
        /// The message.
        message: String,
        /// Additional data for the caller.
        data: Option<String>,
        /// The failure, if the request got no answer from its server. It is not sent.
        cause: Option<Box<CallError>>,
    },
}

impl Reply {
    /// A tool result of mcpzip's own, as text.
    #[must_use]
    pub(crate) fn text(text: &str) -> Self {
        Self::Result(
            format!(
                r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
                quoted(text)
            )
            .into(),
        )
    }

    /// A tool result with `isError` that explains the failure to the agent.
    #[must_use]
    pub(crate) fn tool_error(text: &str) -> Self {
        Self::Result(
            format!(
                r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#,
                quoted(&with_options(text))
            )
            .into(),
        )
    }

    /// Adds `value`, which is JSON, for `key` to the `_meta` of a result.
    #[must_use]
    pub(in crate::proxy) fn with_meta(self, key: &str, value: &str) -> Self {
        match self {
            Self::Result(body) => Self::Result(meta_added(&body, key, value).into()),
            Self::Relayed(body) => Self::Relayed(meta_added(&body, key, value).into()),
            Self::Task(body) => Self::Task(meta_added(&body, key, value)),
            other => other,
        }
    }

    /// Adds a text to the content of a tool result.
    #[must_use]
    pub(in crate::proxy) fn with_text(self, text: &str) -> Self {
        match self {
            Self::Result(body) => Self::Result(text_added(&body, text).into()),
            Self::Relayed(body) => Self::Relayed(text_added(&body, text).into()),
            other => other,
        }
    }

    /// The outcome of the request, in one word.
    #[must_use]
    pub(crate) fn is_result(&self) -> bool {
        !matches!(self, Self::RelayedError(_) | Self::Error { .. })
    }

    /// The outcome, for the log.
    #[must_use]
    pub(crate) fn outcome(&self) -> &'static str {
        match self {
            Self::Error { .. } | Self::RelayedError(_) => "error",
            Self::Result(result) | Self::Relayed(result) if is_error(result) => "tool_error",
            _ => "ok",
        }
    }

    /// A JSON-RPC error without data.
    #[must_use]
    pub(crate) fn error(code: ErrorCode, message: String) -> Self {
        Self::Error {
            code,
            message,
            data: None,
            cause: None,
        }
    }

    /// A JSON-RPC error with the commands that it names as the client's user can run them. A tool result is advised when it is made,
    /// because it may contain texts of servers.
    pub(in crate::proxy) fn advised(self, view: &View) -> Self {
        match self {
            Self::Error {
                code,
                message,
                data,
                cause,
            } => Self::Error {
                code,
                message: view.advised(&message).into_owned(),
                data,
                cause,
            },
            other => other,
        }
    }

    /// The JSON-RPC error for a request without an answer from its server.
    pub(in crate::proxy) fn unanswered(message: String, cause: CallError) -> Self {
        Self::Error {
            code: ErrorCode::INTERNAL,
            message,
            data: None,
            cause: Some(Box::new(cause)),
        }
    }

    /// A JSON-RPC error about the parameters of a request.
    pub(in crate::proxy) fn invalid_params(message: impl Into<String>) -> Self {
        Self::error(ErrorCode::INVALID_PARAMS, message.into())
    }

    /// A result that a modern client may cache for long (2026-07-28, server/utilities/caching).
    pub(in crate::proxy) fn constant(result: Bytes, modern: bool) -> Self {
        Self::cacheable(result, CONSTANT, modern)
    }

    /// A result that a modern client may cache for a short time.
    pub(in crate::proxy) fn changing(result: Bytes, modern: bool) -> Self {
        Self::cacheable(result, CHANGING, modern)
    }

    fn cacheable(result: Bytes, members: &str, modern: bool) -> Self {
        if !modern {
            return Self::Result(result.into());
        }
        let rest = result.slice(1..);
        Self::Result([format!("{{{members},").as_bytes(), &rest].concat().into())
    }

    /// The response to request `id` of a client with protocol revision `revision`.
    #[must_use]
    pub(crate) fn into_frame(self, id: &RequestId, revision: Revision) -> Frame {
        match self {
            Self::Result(body) if revision.is_modern() && has_meta(&body) => {
                Frame::result(id, r#""resultType":"complete""#, stamped(&body))
            }
            Self::Result(body) if revision.is_modern() => {
                let members = format!(
                    r#""resultType":"complete","_meta":{{"io.modelcontextprotocol/serverInfo":{}}}"#,
                    server_info()
                );
                Frame::result(id, &members, body.into_bytes())
            }
            Self::Ended { meta } => {
                let info = server_info();
                let members = format!(
                    r#""resultType":"complete","_meta":{{{meta},"io.modelcontextprotocol/serverInfo":{info}}}"#
                );
                Frame::result(id, &members, Bytes::from_static(b"{}"))
            }
            Self::RelayedError(error) => Frame::relayed_error(id, error),
            Self::Relayed(body) if revision.is_modern() => {
                let (key, json) = RESULT_TYPE;
                let members = match body.may_have(Word::ResultType) {
                    true => lacking(&body, &[RESULT_TYPE]),
                    false => format!(r#""{key}":{json}"#),
                };
                Frame::result(id, &members, body.into_bytes())
            }
            Self::RelayedContent(body) if revision.is_modern() => {
                // A result that requests input is not final, so it must not be cached.
                let is_question = required_input(&body).is_some();
                let members = if is_question {
                    String::new()
                } else {
                    lacking(&body, &[RESULT_TYPE, TTL, SCOPE])
                };
                Frame::result(id, &members, body)
            }
            Self::Result(body) | Self::Relayed(body) => Frame::result(id, "", body.into_bytes()),
            Self::RelayedContent(body) | Self::Task(body) => Frame::result(id, "", body),
            Self::Error {
                code,
                message,
                data,
                cause: _,
            } => Frame::error(Some(id), code, &message, data.as_deref()),
        }
    }
}

/// Whether a result of mcpzip's own already has a `_meta`, to which the server's name must be added.
fn has_meta(body: &[u8]) -> bool {
    // Most have none, and listed tools have theirs on a deeper level.
    memchr::memmem::find(body, b"\"_meta\"").is_some()
        && serde_json::from_slice::<&RawValue>(body)
            .is_ok_and(|raw| Object::parse(raw).is_ok_and(|object| object.get("_meta").is_some()))
}

/// A result with the server's name added to its `_meta`.
fn stamped(body: &Bytes) -> Bytes {
    meta_added(body, "io.modelcontextprotocol/serverInfo", &server_info())
}

/// Adds a text to the content of `result`, if it has some. All other bytes are unchanged.
fn text_added(result: &Bytes, text: &str) -> Bytes {
    let raw: Option<&RawValue> = serde_json::from_slice(result).ok();
    let object = raw.and_then(|raw| Object::parse(raw).ok());
    let content = object
        .as_ref()
        .and_then(|object| object.get("content")?.get().trim_end().strip_suffix(']'));
    let (Some(object), Some(content)) = (&object, content) else {
        return result.clone();
    };
    let comma = if content.trim() == "[" { "" } else { "," };
    let item = format!(r#"{{"type":"text","text":{}}}"#, quoted(text));
    object
        .with("content", &format!("{content}{comma}{item}]"))
        .into()
}

/// Adds `value`, which is JSON, for `key` to the `_meta` of `result`. All other bytes are unchanged.
fn meta_added(result: &Bytes, key: &str, value: &str) -> Bytes {
    let raw: Option<&RawValue> = serde_json::from_slice(result).ok();
    let Some(object) = raw.and_then(|raw| Object::parse(raw).ok()) else {
        return result.clone();
    };
    let meta = object
        .get("_meta")
        .and_then(|raw| Object::parse(raw).ok())
        .unwrap_or_default();
    object.with("_meta", &meta.with(key, value)).into()
}

/// The `members` (key and JSON) that a result lacks, joined without braces.
fn lacking(result: &[u8], members: &[(&str, &str)]) -> String {
    let object: Object<'_> = serde_json::from_slice(result).unwrap_or_default();
    let lacking = members.iter().filter(|(key, _)| object.get(key).is_none());
    lacking
        .map(|(key, json)| format!(r#""{key}":{json}"#))
        .collect::<Vec<_>>()
        .join(",")
}

/// The server's description of itself (specification, `Implementation`).
pub(in crate::proxy) fn server_info() -> String {
    format!(
        r#"{{"name":"mcpzip","version":{}}}"#,
        quoted(env!("CARGO_PKG_VERSION"))
    )
}

/// Whether a result has `isError`. Most results are not parsed for it, because they may be large.
pub(in crate::proxy) fn is_error(result: &[u8]) -> bool {
    static WORD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"isError\""));
    let may_be = WORD.find_iter(result).any(|at| {
        let rest = result[at + 9..].trim_ascii_start();
        rest.strip_prefix(b":")
            .is_some_and(|rest| rest.trim_ascii_start().starts_with(b"true"))
    });
    let raw = || serde_json::from_slice::<&RawValue>(result).ok();
    let says_so = |raw| {
        Object::parse(raw)
            .ok()?
            .get("isError")
            .map(|raw| raw.get() == "true")
    };
    may_be && raw().and_then(says_so).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reply: Reply, revision: Revision, expected: &str) {
        let id = RequestId::parse(&RawValue::from_string("1".to_owned()).unwrap()).unwrap();
        let frame = reply.into_frame(&id, revision);
        let text = String::from_utf8([&frame.head[..], &frame.body, &frame.tail].concat()).unwrap();
        assert_eq!(
            text,
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{expected}}}"#)
        );
    }

    #[test]
    fn a_relayed_result_gets_what_its_reader_requires_and_nothing_else() {
        let legacy = RawResult::from(r#"{"tools":1e400, "content":[]}"#);
        let modern = RawResult::from(r#"{"content":[],"resultType":"input_required"}"#);
        check(
            Reply::Relayed(legacy.clone()),
            Revision::V2025_11_25,
            r#"{"tools":1e400, "content":[]}"#,
        );
        check(
            Reply::Relayed(legacy),
            Revision::V2026_07_28,
            r#"{"resultType":"complete","tools":1e400, "content":[]}"#,
        );
        for revision in [Revision::V2026_07_28, Revision::V2024_11_05] {
            check(
                Reply::Relayed(modern.clone()),
                revision,
                r#"{"content":[],"resultType":"input_required"}"#,
            );
        }
    }

    #[test]
    fn what_is_added_to_meta_leaves_the_rest_as_it_is() {
        let noted =
            |result: &'static str| Reply::Relayed(result.into()).with_meta("mcpzip/x", "[1]");
        let (legacy, modern) = (Revision::V2025_11_25, Revision::V2026_07_28);
        check(
            noted(r#"{ "n":1e400}"#),
            legacy,
            r#"{"n":1e400,"_meta":{"mcpzip/x":[1]}}"#,
        );
        check(
            noted(r#"{"_meta":{"a":1.0},"n":1}"#),
            legacy,
            r#"{"_meta":{"a":1.0,"mcpzip/x":[1]},"n":1}"#,
        );
        let own = Reply::Result(r#"{"content":[]}"#.into()).with_meta("mcpzip/x", "[1]");
        let info = server_info();
        check(
            own,
            modern,
            &format!(
                r#"{{"resultType":"complete","content":[],"_meta":{{"mcpzip/x":[1],"io.modelcontextprotocol/serverInfo":{info}}}}}"#
            ),
        );
    }

    #[test]
    fn content_gets_what_caches_need_unless_it_is_a_question() {
        let check = |body: &'static str, expected: &str| {
            check(
                Reply::RelayedContent(body.into()),
                Revision::V2026_07_28,
                expected,
            );
        };
        check(
            r#"{"contents":[]}"#,
            r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[]}"#,
        );
        check(
            r#"{"ttlMs":5.5,"contents":[]}"#,
            r#"{"resultType":"complete","cacheScope":"private","ttlMs":5.5,"contents":[]}"#,
        );
        let question = r#"{"resultType":"input_required","requestState":"x"}"#;
        check(question, question);
    }

    #[test]
    fn an_error_is_what_the_result_itself_says() {
        for (result, expected) in [
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{"isError" : true,"content":[]}"#, true),
            (r#"{"content":[],"isError":false}"#, false),
            (
                r#"{"content":[{"type":"text","text":"\"isError\":true"}]}"#,
                false,
            ),
            (r#"{"structuredContent":{"isError":true}}"#, false),
            (r#"{}"#, false),
        ] {
            assert_eq!(is_error(result.as_bytes()), expected, "{result}");
        }
    }
}
