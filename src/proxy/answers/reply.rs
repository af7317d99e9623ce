use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;
use serde_json::value::RawValue;

use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Frame, Object, RequestId, Revision};
use crate::upstream::required_input;

/// Fresh for a day: what never changes while a process runs.
const CONSTANT: &str = r#""ttlMs":86400000,"cacheScope":"public""#;

/// Fresh for a minute: a change is announced, but not everybody listens. It may hold what one user alone may see.
const CHANGING: &str = r#""ttlMs":60000,"cacheScope":"private""#;

/// What every result of the modern era has, and what those have that may be cached: nothing is known of how long the
/// content of a resource stays what it is.
const RESULT_TYPE: (&str, &str) = ("resultType", r#""complete""#);
const TTL: (&str, &str) = ("ttlMs", "0");
const SCOPE: (&str, &str) = ("cacheScope", r#""private""#);

/// What a request is answered with, before it is put into the caller's form.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A result of our own: a JSON object.
    Result(Bytes),
    /// The result of a server, in its own bytes.
    Relayed(Bytes),
    /// The content of a server's resource, in its own bytes: what a client of the modern era may cache.
    RelayedContent(Bytes),
    /// The end of what has no result; members for its `_meta`.
    Ended {
        /// Without braces.
        meta: String,
    },
    /// A JSON-RPC error object of a server, in its own bytes.
    RelayedError(Bytes),
    /// A JSON-RPC error; `data` is JSON.
    Error {
        /// Its code.
        code: ErrorCode,
        /// Its text.
        message: String,
        /// What the caller may need beside the text.
        data: Option<String>,
    },
}

impl Reply {
    /// A tool result of our own, as text.
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

    /// A tool result that says what went wrong, for the agent to act on.
    #[must_use]
    pub(crate) fn tool_error(text: &str) -> Self {
        Self::Result(
            format!(
                r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#,
                quoted(text)
            )
            .into(),
        )
    }

    /// The same with `value`, which is JSON, for `key` in the `_meta` of the result, if it is one.
    #[must_use]
    pub(in crate::proxy) fn with_meta(self, key: &str, value: &str) -> Self {
        match self {
            Self::Result(body) => Self::Result(meta_added(&body, key, value)),
            Self::Relayed(body) => Self::Relayed(meta_added(&body, key, value)),
            other => other,
        }
    }

    /// How a request went that is answered with this, in a word.
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
        }
    }

    /// A result that a client of the modern era may cache for long (2026-07-28, server/utilities/caching).
    pub(in crate::proxy) fn constant(result: Bytes, modern: bool) -> Self {
        Self::cacheable(result, CONSTANT, modern)
    }

    /// A result that a client of the modern era may cache for a short time.
    pub(in crate::proxy) fn changing(result: Bytes, modern: bool) -> Self {
        Self::cacheable(result, CHANGING, modern)
    }

    fn cacheable(result: Bytes, members: &str, modern: bool) -> Self {
        if !modern {
            return Self::Result(result);
        }
        let rest = result.slice(1..);
        Self::Result([format!("{{{members},").as_bytes(), &rest].concat().into())
    }

    /// The answer to request `id` of a client that speaks `revision`.
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
                Frame::result(id, &members, body)
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
                Frame::result(id, &lacking(&body, &[RESULT_TYPE]), body)
            }
            Self::RelayedContent(body) if revision.is_modern() => {
                // What is no answer yet is nothing to be cached.
                let is_question = required_input(&body).is_some();
                let members = if is_question {
                    String::new()
                } else {
                    lacking(&body, &[RESULT_TYPE, TTL, SCOPE])
                };
                Frame::result(id, &members, body)
            }
            Self::Result(body) | Self::Relayed(body) | Self::RelayedContent(body) => {
                Frame::result(id, "", body)
            }
            Self::Error {
                code,
                message,
                data,
            } => Frame::error(Some(id), code, &message, data.as_deref()),
        }
    }
}

/// Whether a result of our own has a `_meta` that the stamp has to go into.
fn has_meta(body: &[u8]) -> bool {
    // Most have none at all, and tools that are listed have theirs further in.
    memchr::memmem::find(body, b"\"_meta\"").is_some()
        && serde_json::from_slice::<&RawValue>(body)
            .is_ok_and(|raw| Object::parse(raw).is_ok_and(|object| object.get("_meta").is_some()))
}

/// A result whose `_meta` says who we are beside what it says already.
fn stamped(body: &Bytes) -> Bytes {
    meta_added(body, "io.modelcontextprotocol/serverInfo", &server_info())
}

/// `result` with `value`, which is JSON, for `key` in its `_meta`; everything else in its own bytes.
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

/// Those of `members`, a key and its JSON each, that a result does not have; they join without braces.
fn lacking(result: &[u8], members: &[(&str, &str)]) -> String {
    let raw: Option<&RawValue> = serde_json::from_slice(result).ok();
    let object = raw
        .and_then(|raw| Object::parse(raw).ok())
        .unwrap_or_default();
    let lacking = members.iter().filter(|(key, _)| object.get(key).is_none());
    lacking
        .map(|(key, json)| format!(r#""{key}":{json}"#))
        .collect::<Vec<_>>()
        .join(",")
}

/// Who we are (specification, `Implementation`).
pub(in crate::proxy) fn server_info() -> String {
    format!(
        r#"{{"name":"mcpzip","version":{}}}"#,
        quoted(env!("CARGO_PKG_VERSION"))
    )
}

/// Whether a result says that its tool failed. Results may be large: most are not looked into.
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
        let legacy = Bytes::from_static(br#"{"tools":1e400, "content":[]}"#);
        let modern = Bytes::from_static(br#"{"content":[],"resultType":"input_required"}"#);
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
