//! Outgoing messages: an envelope around a payload that is copied and never rewritten.

use std::fmt::{Display, Write as _};
use std::io::Write as _;

use bytes::Bytes;
use memchr::memchr2;
use serde_json::value::RawValue;

use super::object::quoted;
use super::{ErrorCode, Object, RequestId};

/// One outgoing message: the bytes before the payload, the payload as received, and the bytes after it.
///
/// It has no line end; the transport adds what it needs.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// The envelope up to the payload.
    pub head: Vec<u8>,
    /// The payload.
    pub body: Bytes,
    /// The rest of the envelope.
    pub tail: Vec<u8>,
}

impl Frame {
    /// Creates the response to request `id`. `result` is a JSON object; `members`, such as `"resultType":"complete"`,
    /// are inserted before its own members.
    #[must_use]
    pub fn result(id: &RequestId, members: &str, result: Bytes) -> Self {
        let mut head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#).into_bytes();
        let body = if members.is_empty() {
            result
        } else {
            head.push(b'{');
            head.extend_from_slice(members.as_bytes());
            let rest = rest_of_object(&result);
            if !rest.starts_with(b"}") {
                head.push(b',');
            }
            rest
        };
        Self {
            head,
            body,
            tail: b"}".to_vec(),
        }
    }

    /// Creates the error response to request `id`, or to a request whose id is unknown; `data` is JSON.
    #[must_use]
    pub fn error(
        id: Option<&RequestId>,
        code: ErrorCode,
        message: &str,
        data: Option<&str>,
    ) -> Self {
        let id = id.map_or("null", RequestId::as_json);
        let mut head = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{}"#,
            quoted(message)
        );
        if let Some(data) = data {
            let _ = write!(head, r#","data":{data}"#);
        }
        head.push_str("}}");
        Self::from(head)
    }

    /// Creates an error response with another peer's error object under our id.
    #[must_use]
    pub fn relayed_error(id: &RequestId, error: Bytes) -> Self {
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#).into_bytes();
        Self {
            head,
            body: error,
            tail: b"}".to_vec(),
        }
    }

    /// Creates a request of mcpzip. `id` is shown as JSON; `params` is a frame around the relayed part of the parameters.
    #[must_use]
    pub fn request(id: impl Display, method: &str, params: Self) -> Self {
        // 96 bytes hold the envelope with any id.
        let mut head = Vec::with_capacity(96 + method.len() + params.head.len());
        // Writing to memory cannot fail.
        let _ = write!(
            head,
            r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":"#,
            quoted(method)
        );
        head.extend_from_slice(&params.head);
        let mut tail = params.tail;
        tail.push(b'}');
        Self {
            head,
            body: params.body,
            tail,
        }
    }

    /// Creates a notification; `params` is JSON.
    #[must_use]
    pub fn notification(method: &str, params: &str) -> Self {
        Self::from(format!(
            r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#,
            quoted(method)
        ))
    }

    /// The error code, if this is an error response (our own or a relayed one).
    #[must_use]
    pub fn error_code(&self) -> Option<ErrorCode> {
        let error: Option<&RawValue> = if self.body.is_empty() {
            let raw: &RawValue = serde_json::from_slice(&self.head).ok()?;
            Object::parse(raw).ok()?.get("error")
        } else if self.head.ends_with(br#""error":"#) {
            serde_json::from_slice(&self.body).ok()
        } else {
            None
        };
        let code = Object::parse(error?)
            .ok()?
            .get("code")?
            .get()
            .parse()
            .ok()?;
        Some(ErrorCode(code))
    }

    /// Moves the head of a message without a payload into `body`, so that the whole message counts as payload.
    #[must_use]
    pub(super) fn into_payload(self) -> Self {
        if self.body.is_empty() && self.tail.is_empty() {
            Self {
                body: self.head.into(),
                ..Self::default()
            }
        } else {
            self
        }
    }

    /// The size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len() + self.tail.len()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<String> for Frame {
    fn from(text: String) -> Self {
        Self {
            head: text.into_bytes(),
            ..Self::default()
        }
    }
}

/// Replaces line breaks in `json` with spaces, because stdio and event streams carry one message per line. JSON
/// strings contain no raw line breaks, so the value is unchanged.
#[must_use]
pub(crate) fn one_line(json: Bytes) -> Bytes {
    if memchr2(b'\n', b'\r', &json).is_none() {
        return json;
    }
    let mut line = Vec::from(json);
    without_line_breaks(&mut line);
    line.into()
}

/// Replaces line breaks in `json` with spaces, in place.
pub(super) fn without_line_breaks(json: &mut [u8]) {
    let mut start = 0;
    while let Some(at) = memchr2(b'\n', b'\r', &json[start..]) {
        start += at;
        json[start] = b' ';
    }
}

/// The part of a JSON object after its opening brace and leading white space.
fn rest_of_object(object: &Bytes) -> Bytes {
    debug_assert!(object.starts_with(b"{"), "only objects are spliced into");
    let space = object[1..]
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    object.slice(1 + space..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(frame: &Frame) -> String {
        String::from_utf8([&frame.head[..], &frame.body, &frame.tail].concat()).unwrap()
    }

    fn id(json: &str) -> RequestId {
        RequestId::parse(&RawValue::from_string(json.to_owned()).unwrap()).unwrap()
    }

    #[test]
    fn members_are_put_in_front_and_the_rest_is_copied() {
        #[track_caller]
        fn check(members: &str, result: &str, expected: &str) {
            let frame = Frame::result(
                &id("1.0"),
                members,
                Bytes::copy_from_slice(result.as_bytes()),
            );
            assert_eq!(
                text(&frame),
                format!(r#"{{"jsonrpc":"2.0","id":1.0,"result":{expected}}}"#)
            );
        }
        let odd = r#"{"n":1e400,"s":"\ud83d", "n":2}"#;
        check("", odd, odd);
        check(r#""r":1"#, odd, r#"{"r":1,"n":1e400,"s":"\ud83d", "n":2}"#);
        check(r#""r":1"#, "{}", r#"{"r":1}"#);
        check(r#""r":1"#, "{ \n }", r#"{"r":1}"#);
        check(r#""r":1"#, "{ \"a\":0}", r#"{"r":1,"a":0}"#);
    }

    #[test]
    fn a_pretty_text_becomes_one_line_and_a_plain_one_stays() {
        let pretty = Bytes::from_static(b"{\r\n  \"a\": \"x\\ny\"\n}");
        assert_eq!(one_line(pretty), "{    \"a\": \"x\\ny\" }");
        let plain = Bytes::from_static(b"{}");
        assert_eq!(one_line(plain.clone()).as_ptr(), plain.as_ptr());
    }

    #[test]
    fn an_error_has_a_code_and_nothing_else_has() {
        let relayed = Frame::relayed_error(
            &id("1"),
            Bytes::from_static(br#"{"message":"no","code":-32021}"#),
        );
        assert_eq!(relayed.error_code(), Some(ErrorCode(-32021)));
        assert_eq!(
            Frame::error(None, ErrorCode::PARSE, "no", None).error_code(),
            Some(ErrorCode::PARSE)
        );
        let result = Frame::result(&id("1"), "", Bytes::from_static(br#"{"error":{"code":1}}"#));
        assert_eq!(result.error_code(), None);
        assert_eq!(
            Frame::notification("m", r#"{"error":{"code":1}}"#).error_code(),
            None
        );
    }

    #[test]
    fn an_error_quotes_its_message() {
        let frame = Frame::error(None, ErrorCode::PARSE, "a \"b\"\n", Some("[1]"));
        assert_eq!(
            text(&frame),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"a \"b\"\n","data":[1]}}"#
        );
    }
}
