//! The envelope of a JSON-RPC message, over borrowed slices of the line it came in.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::object::{Object, text};
use super::scan::IdScan;
use super::{ErrorCode, RequestId};

/// The content of one line.
#[derive(Debug)]
pub enum Envelope<'a> {
    /// One message.
    Single(Message<'a>),
    /// Several messages in an array (2025-03-26 only); each is parsed separately.
    Batch(Vec<&'a RawValue>),
}

/// One JSON-RPC message, with payloads in their original bytes.
#[derive(Debug)]
pub enum Message<'a> {
    /// A message that requires a response.
    Request(Request<'a>),
    /// A message without a response.
    Notification {
        /// The method's name.
        method: Cow<'a, str>,
        /// The parameters, in their original bytes.
        params: Option<&'a RawValue>,
    },
    /// A response to a request.
    Response {
        /// The request's id; `None` if the peer could not determine it.
        id: Option<RequestId>,
        /// The result or the error.
        outcome: Outcome<'a>,
    },
}

/// A request, as received.
#[derive(Debug)]
pub struct Request<'a> {
    /// The id, chosen by the sender.
    pub id: RequestId,
    /// The method's name.
    pub method: Cow<'a, str>,
    /// The parameters, in their original bytes: an object, if present.
    pub params: Option<&'a RawValue>,
}

/// The two kinds of responses.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// The `result`.
    Result(&'a RawValue),
    /// The `error` object.
    Error(&'a RawValue),
}

/// Why a line is not a valid message, as a JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Malformed {
    /// The id of the request, if it could be found.
    pub id: Option<RequestId>,
    /// The error code: parse error or invalid request.
    pub code: ErrorCode,
    /// The fault.
    pub reason: String,
}

impl<'a> Envelope<'a> {
    /// Parses a line from a client or a server.
    ///
    /// # Errors
    /// When it is not UTF-8, not JSON, or not a JSON-RPC message.
    pub fn parse(line: &'a [u8]) -> Result<Self, Malformed> {
        let malformed = |reason: String| Malformed {
            id: IdScan::of(line),
            code: ErrorCode::PARSE,
            reason,
        };
        let json = std::str::from_utf8(line)
            .map_err(|error| malformed(format!("the line is not UTF-8: {error}")))?;
        if json.trim_start().starts_with('[') {
            let batch: Vec<&RawValue> = serde_json::from_str(json)
                .map_err(|error| malformed(format!("the line is not JSON: {error}")))?;
            return Ok(Self::Batch(batch));
        }
        Message::parse_json(json).map(Self::Single)
    }
}

impl<'a> Message<'a> {
    /// Parses one element of a batch.
    ///
    /// # Errors
    /// When it is not a JSON-RPC message.
    pub fn parse(raw: &'a RawValue) -> Result<Self, Malformed> {
        Self::parse_json(raw.get())
    }

    fn parse_json(json: &'a str) -> Result<Self, Malformed> {
        let object: Object<'a> = serde_json::from_str(json).map_err(|error| {
            let code = if error.is_data() {
                ErrorCode::INVALID_REQUEST
            } else {
                ErrorCode::PARSE
            };
            let reason = if error.is_data() {
                "a message is a JSON object".to_owned()
            } else {
                format!("the line is not JSON: {error}")
            };
            Malformed {
                id: IdScan::of(json.as_bytes()),
                code,
                reason,
            }
        })?;
        Self::classify(&object)
    }

    fn classify(object: &Object<'a>) -> Result<Self, Malformed> {
        let mut members = Members::default();
        for (key, value) in object.iter() {
            let slot = match key.as_ref() {
                "id" => &mut members.id,
                "method" => &mut members.method,
                "params" => &mut members.params,
                "result" => &mut members.result,
                "error" => &mut members.error,
                "jsonrpc" => &mut members.jsonrpc,
                _ => continue,
            };
            if slot.replace(value).is_some() {
                return Err(members.invalid(format!("`{key}` is given twice")));
            }
        }
        members.into_message()
    }
}

/// The members of an envelope; others are ignored.
#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> Members<'a> {
    fn invalid(&self, reason: impl Into<String>) -> Malformed {
        Malformed {
            id: self.id.and_then(RequestId::parse),
            code: ErrorCode::INVALID_REQUEST,
            reason: reason.into(),
        }
    }

    fn into_message(self) -> Result<Message<'a>, Malformed> {
        if self.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
            return Err(self.invalid("`jsonrpc` must be \"2.0\""));
        }
        let id = match self.id {
            Some(raw) if raw.get() == "null" => None,
            Some(raw) => Some(
                RequestId::parse(raw)
                    .ok_or_else(|| self.invalid("`id` must be a string or a number"))?,
            ),
            None => None,
        };
        if let Some(method) = self.method {
            let method =
                method_name(method).ok_or_else(|| self.invalid("`method` must be a string"))?;
            if let Some(params) = self.params
                && !params.get().starts_with('{')
            {
                return Err(self.invalid("`params` must be an object"));
            }
            return match (id, self.id) {
                (Some(id), _) => Ok(Message::Request(Request {
                    id,
                    method,
                    params: self.params,
                })),
                (None, Some(_)) => Err(self.invalid("the `id` of a request must not be null")),
                (None, None) => Ok(Message::Notification {
                    method,
                    params: self.params,
                }),
            };
        }
        match (self.error.filter(|raw| raw.get() != "null"), self.result) {
            (Some(error), _) => Ok(Message::Response {
                id,
                outcome: Outcome::Error(error),
            }),
            (None, Some(result)) => Ok(Message::Response {
                id,
                outcome: Outcome::Result(result),
            }),
            (None, None) => {
                Err(self.invalid("a message needs a `method`, a `result` or an `error`"))
            }
        }
    }
}

fn method_name(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        text(raw).map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(line: &str) -> Message<'_> {
        match Envelope::parse(line.as_bytes()) {
            Ok(Envelope::Single(message)) => message,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn payloads_stay_in_their_bytes() {
        let result = r#"{"x": 1e400,"b":"\ud83d","tools":[],"a":18446744073709551617,"a":2}"#;
        let line = format!(r#"{{"result":{result} ,"id":7,"jsonrpc":"2.0","extra":[]}}"#);
        let Message::Response {
            id,
            outcome: Outcome::Result(raw),
        } = single(&line)
        else {
            panic!("no result")
        };
        assert_eq!(id.unwrap().as_integer(), Some(7));
        assert_eq!(raw.get(), result);
    }

    #[test]
    fn depth_costs_nothing() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":"a","method":"m","params":{{"deep":{deep}}}}}"#);
        let Message::Request(request) = single(&line) else {
            panic!("no request")
        };
        assert!(request.params.unwrap().get().contains(&deep));
    }

    #[test]
    fn a_malformed_line_says_why_and_whose_it_was() {
        #[track_caller]
        fn check(line: &[u8], code: ErrorCode, id: Option<&str>) {
            let malformed = match Envelope::parse(line) {
                Err(malformed) => malformed,
                Ok(Envelope::Batch(batch)) => Message::parse(batch[0]).unwrap_err(),
                Ok(other) => panic!("{:?}: {other:?}", String::from_utf8_lossy(line)),
            };
            assert_eq!(malformed.code, code, "{malformed:?}");
            assert_eq!(
                malformed.id.as_ref().map(RequestId::as_json),
                id,
                "{malformed:?}"
            );
        }
        check(b"{", ErrorCode::PARSE, None);
        check(b"nonsense", ErrorCode::PARSE, None);
        check(
            br#"{"jsonrpc":"2.0","id":4,"method":"m","params":{"a":}}"#,
            ErrorCode::PARSE,
            Some("4"),
        );
        check(
            b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\xff\"}",
            ErrorCode::PARSE,
            Some("5"),
        );
        check(b"7", ErrorCode::INVALID_REQUEST, None);
        check(br#"[7]"#, ErrorCode::INVALID_REQUEST, None);
        check(
            br#"{"id":1,"method":"m"}"#,
            ErrorCode::INVALID_REQUEST,
            Some("1"),
        );
        check(
            br#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            ErrorCode::INVALID_REQUEST,
            Some("1"),
        );
        check(
            br#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            ErrorCode::INVALID_REQUEST,
            Some("1"),
        );
        check(
            br#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#,
            ErrorCode::INVALID_REQUEST,
            Some("1"),
        );
        check(
            br#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            ErrorCode::INVALID_REQUEST,
            None,
        );
        check(
            br#"{"jsonrpc":"2.0","id":{},"method":"m"}"#,
            ErrorCode::INVALID_REQUEST,
            None,
        );
        check(
            br#"{"jsonrpc":"2.0","id":1}"#,
            ErrorCode::INVALID_REQUEST,
            Some("1"),
        );
        check(
            br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#,
            ErrorCode::INVALID_REQUEST,
            Some("2"),
        );
    }

    #[test]
    fn an_error_beside_a_result_is_an_error() {
        let line = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"no"}}"#;
        assert!(matches!(
            single(line),
            Message::Response {
                outcome: Outcome::Error(_),
                ..
            }
        ));
        let line = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#;
        assert!(matches!(
            single(line),
            Message::Response {
                outcome: Outcome::Result(_),
                ..
            }
        ));
    }
}
