//! The properties of logins that hold for every answer of a server or an authorization server.

use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};

use super::challenge::Challenge;
use super::discovery::{AuthorityMetadata, ResourceMetadata, authority, covers, resource_of};
use super::fetcher::{permitted, shown};
use super::refusal::refused;
use super::store::Record;
use super::token::Token;

/// The first byte selects the meaning of the rest: a challenge, metadata, a referred URL, a token, a stored login.
pub(crate) fn oauth(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    match first % 6 {
        0 => challenge(rest),
        1 => resource(rest),
        2 => metadata(rest),
        3 => led_to(rest),
        4 => token(rest),
        _ => record(rest),
    }
}

/// Any header gives a challenge with usable parts; one in the form of the RFC gives its values.
fn challenge(bytes: &[u8]) {
    let of = |value: HeaderValue| Challenge::of(&HeaderMap::from_iter([(WWW_AUTHENTICATE, value)]));
    if let Ok(value) = HeaderValue::from_bytes(bytes) {
        let found = of(value);
        assert!(
            found
                .scopes
                .iter()
                .all(|scope| !scope.is_empty() && !scope.contains(char::is_whitespace))
        );
        assert!(
            found.error.as_deref() != Some("") && found.resource_metadata.as_deref() != Some("")
        );
    }
    let text: String = bytes
        .iter()
        .map(|byte| char::from(byte % 95 + 32))
        .collect();
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    let header = format!(
        r#"Basic realm="{escaped}, Bearer x=y", bearer resource_metadata="{escaped}", error=e"#
    );
    let found = of(HeaderValue::try_from(header).expect("it is ASCII"));
    assert_eq!(found.resource_metadata.unwrap_or_default(), text);
    assert_eq!(found.error.as_deref(), Some("e"));
}

/// Metadata of a server count for that server only.
fn resource(bytes: &[u8]) {
    let Ok(metadata) = serde_json::from_slice::<ResourceMetadata>(bytes) else {
        return;
    };
    for own in ["https://mcp.example.com/one/mcp", "http://127.0.0.1:80/"] {
        let own = Url::parse(own).expect("it is a URL");
        assert!(covers(&resource_of(&own), &own));
        if covers(&metadata.resource, &own) {
            let named = Url::parse(&metadata.resource).expect("what covers something is a URL");
            assert_eq!(named.origin(), own.origin());
            assert!(own.path().starts_with(named.path().trim_end_matches('/')));
        }
    }
}

/// Metadata of an authorization server.
fn metadata(bytes: &[u8]) {
    let Ok(found) = serde_json::from_slice::<AuthorityMetadata>(bytes) else {
        return;
    };
    let authority = authority(found, "https://mcp.example.com".to_owned(), Vec::new());
    let own = Url::parse("https://mcp.example.com/mcp").expect("it is a URL");
    let endpoints = [
        Some(&authority.token_endpoint),
        authority.authorization_endpoint.as_ref(),
    ];
    for endpoint in endpoints.into_iter().flatten() {
        check_permitted(&own, endpoint);
    }
}

/// A URL that an internet server names, absolute or relative to its own.
fn led_to(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let own = Url::parse("https://mcp.example.com/mcp").expect("it is a URL");
    if let Ok(url) = own.join(text) {
        check_permitted(&own, &url);
    }
}

/// A permitted URL is neither unencrypted nor private, and contains no user.
fn check_permitted(own: &Url, url: &Url) {
    assert!(!shown(url).contains('?'));
    if permitted(own, true, url).is_err() {
        return;
    }
    assert!(
        url.scheme() == "https" && url.username().is_empty() && url.password().is_none(),
        "{url}"
    );
    let host = url.host_str().expect("https has a host");
    assert!(!host.eq_ignore_ascii_case("localhost"), "{url}");
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        let is_inner = match address.to_canonical() {
            IpAddr::V4(v4) => {
                v4.is_private()
                    || v4.is_loopback()
                    || v4.is_link_local()
                    || v4.is_unspecified()
                    || v4.is_broadcast()
            }
            IpAddr::V6(v6) => {
                v6.is_loopback()
                    || v6.is_unspecified()
                    || v6.is_unique_local()
                    || v6.is_unicast_link_local()
            }
        };
        assert!(!is_inner, "{url}");
    }
}

/// A stored token goes into a header or is rejected, and no description of it shows it. The text of a refusal is one
/// line.
fn token(bytes: &[u8]) {
    if let Ok(token) = serde_json::from_slice::<Token>(bytes) {
        if let Some(value) = token.bearer() {
            assert!(value.is_sensitive());
        }
        let access = token.access.expose();
        if access.len() > 12 {
            assert!(!format!("{token:?}").contains(access.as_str()));
        }
        assert!(
            !token.is_over() || token.is_ending(),
            "a token that is over needs to be renewed"
        );
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let secret = "s3cr3t-of-the-client".to_owned();
    let told = refused(
        "https://login.example.com",
        text,
        &format!("{text} {secret}"),
        &[secret.clone().into()],
    );
    let told = told.to_string();
    assert!(
        !told.contains(&secret) && !told.contains(char::is_control),
        "{told}"
    );
}

/// A stored login that can be read is written so that it reads back equal.
fn record(bytes: &[u8]) {
    let Ok(record) = serde_json::from_slice::<Record>(bytes) else {
        return;
    };
    let again = serde_json::to_vec_pretty(&record).expect("a record is JSON");
    assert_eq!(
        serde_json::from_slice::<Record>(&again).expect("what was written can be read"),
        record
    );
}
