//! The challenge in a 401 or 403: `WWW-Authenticate: Bearer …` (RFC 6750, section 3; RFC 9728, section 5.1).

use std::collections::BTreeMap;
use std::net::IpAddr;

use reqwest::Response;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// The parameters of a challenge; empty if it gives none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// The URL of the server's metadata.
    pub(super) resource_metadata: Option<String>,
    /// The scopes that the refused request needs.
    pub(super) scopes: Vec<String>,
    /// The error code.
    pub(super) error: Option<String>,
    /// The address that really answered, if it is known.
    pub(super) peer: Option<IpAddr>,
}

impl Challenge {
    /// The first `Bearer` challenge in `headers`.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let values = headers
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let mut parameters = values.filter_map(bearer).next().unwrap_or_default();
        let mut take = |name: &str| parameters.remove(name).filter(|value| !value.is_empty());
        Self {
            resource_metadata: take("resource_metadata"),
            scopes: take("scope")
                .map(|text| super::scopes::scopes_in(&text))
                .unwrap_or_default(),
            error: take("error"),
            peer: None,
        }
    }

    /// The first `Bearer` challenge in `response`.
    pub(super) fn in_response(response: &Response) -> Self {
        Self {
            peer: response.remote_addr().map(|peer| peer.ip()),
            ..Self::of(response.headers())
        }
    }

    /// Whether the token is valid but lacks scopes.
    pub(super) fn wants_more_scopes(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// The parameters of the `Bearer` challenge in a header, which may hold several challenges.
fn bearer(header: &str) -> Option<BTreeMap<String, String>> {
    let mut rest = header;
    let mut found: Option<BTreeMap<String, String>> = None;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (word, after) = split_token(rest);
        if word.is_empty() {
            return found;
        }
        match after
            .trim_start()
            .strip_prefix('=')
            .filter(|value| !value.starts_with('='))
        {
            Some(value) => {
                let (value, after) = parameter(value.trim_start());
                if let Some(parameters) = &mut found {
                    parameters.entry(word.to_ascii_lowercase()).or_insert(value);
                }
                rest = after;
            }
            // A word without a value begins the next challenge.
            None if found.is_some() => return found,
            None => {
                found = word.eq_ignore_ascii_case("bearer").then(BTreeMap::new);
                rest = after.trim_start_matches('=');
            }
        }
    }
}

fn split_token(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| c.is_whitespace() || matches!(c, '=' | ',' | '"'))
        .unwrap_or(text.len());
    // Invalid characters are skipped.
    if end == 0 && !text.is_empty() && !text.starts_with('=') {
        split_token(&text[1..])
    } else {
        text.split_at(end)
    }
}

/// A value, quoted or not, and the text after it.
fn parameter(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text
            .find(|c: char| c.is_whitespace() || c == ',')
            .unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, metadata: Option<&str>, scopes: &[&str], error: Option<&str>) {
        let headers = HeaderMap::from_iter([(WWW_AUTHENTICATE, header.parse().unwrap())]);
        let challenge = Challenge::of(&headers);
        let seen: Vec<&str> = challenge.scopes.iter().map(String::as_str).collect();
        assert_eq!(
            (
                challenge.resource_metadata.as_deref(),
                seen.as_slice(),
                challenge.error.as_deref()
            ),
            (metadata, scopes, error),
            "{header}"
        );
    }

    #[test]
    fn a_challenge_is_read_however_it_is_written() {
        check("Bearer", None, &[], None);
        check(
            r#"Bearer realm="x", scope="a b", error=insufficient_scope"#,
            None,
            &["a", "b"],
            Some("insufficient_scope"),
        );
        check(
            r#"bearer resource_metadata = "https://a/b?c=d,e" ,scope=a"#,
            Some("https://a/b?c=d,e"),
            &["a"],
            None,
        );
        check(
            r#"Basic realm="a, Bearer scope=no", Bearer scope="yes""#,
            None,
            &["yes"],
            None,
        );
        check(
            r#"Bearer scope="yes", Digest scope="no""#,
            None,
            &["yes"],
            None,
        );
        check(
            r#"Negotiate abc==, Bearer error="invalid_token""#,
            None,
            &[],
            Some("invalid_token"),
        );
        check(r#"Bearer scope="q\"uote"#, None, &["q\"uote"], None);
        check(r#"Basic realm="x""#, None, &[], None);
        check(r#"""#, None, &[], None);
    }
}
