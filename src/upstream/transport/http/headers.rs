//! Headers: those of MCP with their encodings, and those of the configuration.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::secret::Secret;

/// The session a server gave out (2025-03-26 to 2025-11-25, basic/transports).
pub(in crate::upstream) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The revision that is spoken (since 2025-06-18, basic/transports).
pub(in crate::upstream) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of the request in the body (2026-07-28, basic/transports/streamable-http).
pub(in crate::upstream) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The tool, prompt or resource that the request names (2026-07-28, the same page).
pub(in crate::upstream) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Where a broken event stream goes on.
pub(in crate::upstream) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The configured headers; `Err` names the one that HTTP cannot carry.
pub(in crate::upstream) fn configured(headers: &BTreeMap<String, Secret<String>>) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let unusable = || format!("its header `{name}` cannot be sent");
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
        let mut value = HeaderValue::from_bytes(value.expose().as_bytes()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    Ok(map)
}

/// `text` as a header can carry it: printable ASCII as it is, anything that could change on the way, or be mistaken for
/// the wrapping itself, as `=?base64?…?=` over its UTF-8 (2026-07-28, basic/transports/streamable-http).
pub(in crate::upstream) fn encoded(text: &str) -> HeaderValue {
    let is_printable = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let is_wrapped = text.starts_with("=?base64?") && text.ends_with("?=");
    let value = if is_printable && text.trim() == text && !is_wrapped {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(text))
    };
    HeaderValue::try_from(value).expect("printable ASCII is always a header's value")
}

/// Scheme, host and port: what credentials are bound to, and all of a URL that is ever shown.
pub(in crate::upstream) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
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
            assert_eq!(encoded(text).to_str().unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_configured_header_is_sent_and_not_shown() {
        let headers = BTreeMap::from([("X-Key".to_owned(), Secret::new("grün".to_owned()))]);
        let map = configured(&headers).unwrap();
        assert_eq!(map["x-key"].as_bytes(), "grün".as_bytes());
        assert!(!format!("{map:?}").contains("gr"));
        let broken = BTreeMap::from([("X-Key".to_owned(), Secret::new("a\nsecret".to_owned()))]);
        assert_eq!(configured(&broken).unwrap_err(), "its header `X-Key` cannot be sent");
    }
}
