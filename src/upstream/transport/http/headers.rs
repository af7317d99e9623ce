//! HTTP headers: those of MCP as typed names, and those of the configuration.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::mcp::headers;
use crate::secret::Secret;
use crate::telemetry::trace::Context;

/// [`headers::SESSION`].
pub(in crate::upstream) const SESSION: HeaderName = HeaderName::from_static(headers::SESSION);
/// [`headers::VERSION`].
pub(in crate::upstream) const VERSION: HeaderName = HeaderName::from_static(headers::VERSION);
/// [`headers::METHOD`].
pub(in crate::upstream) const METHOD: HeaderName = HeaderName::from_static(headers::METHOD);
/// [`headers::NAME`].
pub(in crate::upstream) const NAME: HeaderName = HeaderName::from_static(headers::NAME);
const TRACE_PARENT: HeaderName = HeaderName::from_static(headers::TRACE_PARENT);
const TRACE_STATE: HeaderName = HeaderName::from_static(headers::TRACE_STATE);
/// [`headers::LAST_EVENT_ID`].
pub(in crate::upstream) const LAST_EVENT: HeaderName =
    HeaderName::from_static(headers::LAST_EVENT_ID);

/// The headers of a trace context (W3C Trace Context).
pub(in crate::upstream) fn of_trace(
    context: &Context,
) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let state = context.state().map(|state| (TRACE_STATE, state.to_owned()));
    let texts = std::iter::once((TRACE_PARENT, context.parent())).chain(state);
    // Both were checked when they arrived.
    texts.filter_map(|(name, text)| Some((name, HeaderValue::try_from(text).ok()?)))
}

/// A configured header that HTTP cannot carry.
#[derive(Debug, thiserror::Error)]
#[error("its header `{name}` cannot be sent")]
pub(in crate::upstream) struct HeaderError {
    name: String,
    source: http::Error,
}

/// Parses the configured headers.
pub(in crate::upstream) fn configured(
    headers: &BTreeMap<String, Secret<String>>,
) -> Result<HeaderMap, HeaderError> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let unusable = |source| HeaderError {
            name: name.clone(),
            source,
        };
        let header =
            HeaderName::from_bytes(name.as_bytes()).map_err(|error| unusable(error.into()))?;
        let mut value = HeaderValue::from_bytes(value.expose().as_bytes())
            .map_err(|error| unusable(error.into()))?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    Ok(map)
}

/// Takes the user and the password out of a URL. Returns the credentials of `Authorization`, and its whole value.
pub(super) fn take_basic(url: &mut Url) -> Option<(Secret<String>, HeaderValue)> {
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let (user, password) = (decoded(url.username()), url.password().map(decoded));
    if user.is_empty() && password.is_none() {
        return None;
    }
    let pair = [&user[..], b":", &password.unwrap_or_default()].concat();
    let basic = STANDARD.encode(pair);
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    let mut value = HeaderValue::try_from(format!("Basic {basic}")).ok()?;
    value.set_sensitive(true);
    Some((basic.into(), value))
}

/// Encodes `text` as a header value.
pub(in crate::upstream) fn encoded(text: &str) -> HeaderValue {
    let value = HeaderValue::try_from(headers::wrapped(text).as_ref());
    value.expect("printable ASCII is always a header's value")
}

/// Scheme, host and port. Credentials are bound to it, and it is the only part of a URL that is ever shown.
pub(in crate::upstream) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_header_is_sent_and_not_shown() {
        let headers = BTreeMap::from([("X-Key".to_owned(), Secret::new("grün".to_owned()))]);
        let map = configured(&headers).unwrap();
        assert_eq!(map["x-key"].as_bytes(), "grün".as_bytes());
        assert!(!format!("{map:?}").contains("gr"));
        let broken = BTreeMap::from([("X-Key".to_owned(), Secret::new("a\nsecret".to_owned()))]);
        assert_eq!(
            configured(&broken).unwrap_err().to_string(),
            "its header `X-Key` cannot be sent"
        );
    }
}
