//! What must hold of what a server, and who gives its logins, say.

use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};

use super::challenge::Challenge;
use super::discovery::{AuthorityMetadata, ResourceMetadata, authority, covers, resource_of};
use super::fetcher::{permitted, shown};
use super::refusal::refused;
use super::store::Record;
use super::token::Token;

/// The first byte says what the rest is: a challenge, metadata, a URL that one is led to, a token, a kept login.
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

/// A header that is anything gives a challenge whose parts can be used; one that is written as the RFC says, its values.
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

/// Metadata of a server: they are taken for the server they name, and for nobody else.
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

/// Metadata of who gives the logins.
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

/// A URL that a server of the internet names, absolute or beside its own.
fn led_to(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let own = Url::parse("https://mcp.example.com/mcp").expect("it is a URL");
    if let Ok(url) = own.join(text) {
        check_permitted(&own, &url);
    }
}

/// Where anything is sent at all, it is neither in the clear nor to a private address, and no user is named.
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

/// A kept token goes into a header or not at all; what is said of it does not show it. Words of a refusal are one line.
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

/// A kept login that can be read is written so that it reads the same.
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
