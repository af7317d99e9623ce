//! The names of MCP's HTTP headers, and the encoding of text in their values.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The session id that a server issued (2025-03-26 to 2025-11-25, basic/transports).
pub(crate) const SESSION: &str = "mcp-session-id";
/// The id of the event after which a stream is resumed (2025-03-26 to 2025-11-25, basic/transports).
pub(crate) const LAST_EVENT_ID: &str = "last-event-id";
/// The protocol revision (since 2025-06-18, basic/transports).
pub(crate) const VERSION: &str = "mcp-protocol-version";
/// The method of the request in the body (2026-07-28, basic/transports/streamable-http).
pub(crate) const METHOD: &str = "mcp-method";
/// The tool, prompt or resource that the request names (2026-07-28, basic/transports/streamable-http).
pub(crate) const NAME: &str = "mcp-name";

/// The trace that a request belongs to (W3C Trace Context).
pub(crate) const TRACE_PARENT: &str = "traceparent";
/// Vendor data of tracing systems about that trace (W3C Trace Context).
pub(crate) const TRACE_STATE: &str = "tracestate";

/// The prefix of headers that repeat arguments of a call (2026-07-28, basic/transports/streamable-http).
pub(crate) const PARAM_PREFIX: &str = "mcp-param-";

/// The headers of a request that repeat arguments, with names in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Params(Vec<(String, Option<String>)>);

/// A header, by its name, that does not repeat its argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    /// The header is missing.
    #[error("the header `{0}` is missing")]
    Missing(String),
    /// The argument is missing.
    #[error("the header `{0}` repeats an argument that is missing")]
    NoArgument(String),
    /// The header has several values.
    #[error("the header `{0}` appears twice")]
    Repeated(String),
    /// The header's value is not a string.
    #[error("the header `{0}` cannot be decoded")]
    Encoding(String),
    /// The header has another value than the argument.
    #[error("the header `{0}` differs from the argument that it repeats")]
    Different(String),
}

impl Params {
    /// Selects these headers from all headers; a value that is not text becomes `None`.
    pub(crate) fn among<'a>(headers: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Self {
        let params = headers.filter(|(name, _)| name.starts_with(PARAM_PREFIX));
        Self(
            params
                .map(|(name, value)| (name.to_owned(), value.map(str::to_owned)))
                .collect(),
        )
    }

    /// Checks that the header `name` equals `argument`, or is absent if there is no argument.
    ///
    /// # Errors
    /// The way in which header and argument differ.
    pub(crate) fn check(&self, name: &str, argument: Option<&str>) -> Result<(), Mismatch> {
        let mut values = self.0.iter().filter(|(known, _)| known == name);
        let name = || name.to_owned();
        let (value, argument) = match (values.next(), argument) {
            (None, None) => return Ok(()),
            (None, Some(_)) => return Err(Mismatch::Missing(name())),
            (Some(_), None) => return Err(Mismatch::NoArgument(name())),
            (Some((_, value)), Some(argument)) => (value, argument),
        };
        if values.next().is_some() {
            return Err(Mismatch::Repeated(name()));
        }
        match value.as_deref().and_then(unwrapped) {
            None => Err(Mismatch::Encoding(name())),
            Some(said) if is_same(&said, argument) => Ok(()),
            Some(_) => Err(Mismatch::Different(name())),
        }
    }
}

/// Whether a header and an argument are equal as text or as whole numbers.
fn is_same(said: &str, argument: &str) -> bool {
    let number = |text: &str| -> Option<i128> {
        let whole = text.split_once('.').map_or(Some(text), |(whole, rest)| {
            rest.bytes().all(|digit| digit == b'0').then_some(whole)
        });
        whole?.parse().ok()
    };
    said == argument || number(argument).is_some_and(|argument| number(said) == Some(argument))
}

const START: &str = "=?base64?";
const END: &str = "?=";

/// Encodes `text` for a header value. Printable ASCII is unchanged; text that could change in transit, or that looks
/// encoded, becomes `=?base64?…?=` over its UTF-8 (2026-07-28, basic/transports/streamable-http).
#[must_use]
pub(crate) fn wrapped(text: &str) -> Cow<'_, str> {
    let is_printable = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let is_wrapped = text.starts_with(START) && text.ends_with(END);
    if is_printable && text.trim() == text && !is_wrapped {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{START}{}{END}", STANDARD.encode(text)))
    }
}

/// Decodes a header value; `None` if it is encoded and the content is not valid text.
#[must_use]
pub(crate) fn unwrapped(value: &str) -> Option<Cow<'_, str>> {
    let value = value.trim_matches([' ', '\t']);
    match value
        .strip_prefix(START)
        .and_then(|rest| rest.strip_suffix(END))
    {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?)
            .ok()
            .map(Cow::Owned),
        None => Some(Cow::Borrowed(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_could_change_is_wrapped() {
        for (text, expected) in [
            ("create_issue", "create_issue"),
            ("two words", "two words"),
            ("", ""),
            ("grüße", "=?base64?Z3LDvMOfZQ==?="),
            (" edge", "=?base64?IGVkZ2U=?="),
            ("line\nbreak", "=?base64?bGluZQpicmVhaw==?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ] {
            assert_eq!(wrapped(text), expected, "{text:?}");
            assert_eq!(unwrapped(expected).as_deref(), Some(text), "{expected:?}");
        }
    }

    #[test]
    fn what_is_wrapped_badly_is_nothing_and_what_is_not_wrapped_is_itself() {
        for value in [
            "=?base64?SGVsbG8?=",
            "=?base64?SGVs!!!bG8=?=",
            "=?base64?/w==?=",
        ] {
            assert_eq!(unwrapped(value), None, "{value:?}");
        }
        for value in ["SGVsbG8=", "=?base64?SGVsbG8=", "SGVsbG8=?="] {
            assert_eq!(unwrapped(value).as_deref(), Some(value));
        }
        assert_eq!(unwrapped("  a\t").as_deref(), Some("a"));
    }
}
