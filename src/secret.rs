//! Values that no log, error or listing may show.
//!
//! [`Secret`] hides a value that is known to be one; [`Masker`] finds such values again in text that others wrote, as in
//! a server's stderr. The masker knows values, not patterns: what it was not told of, it does not hide.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};

use crate::mcp::frame::quoted;

/// What stands in a secret's place.
pub const MASK: &str = "***";

/// Shorter values are not looked for: they would hide innocent text and are no protection anyway.
const SHORTEST: usize = 6;

const SECRET_WORDS: [&str; 9] = [
    "token",
    "key",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "authorization",
    "cookie",
];

/// A value that prints as `***`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret<T>(T);

/// Replaces known secrets in text.
#[derive(Clone, Default)]
pub struct Masker {
    values: Arc<[Secret<String>]>,
}

/// Says whether a variable, header or option of this name usually holds a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// A text that nobody can guess: 128 random bits, safe in URLs and headers.
///
/// # Panics
/// When the system has no randomness to give, without which nothing secret can be had.
#[must_use]
pub fn random_token() -> String {
    URL_SAFE_NO_PAD.encode(random_bytes::<16>())
}

/// Bytes that nobody can guess.
///
/// # Panics
/// As [`random_token`].
#[must_use]
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system gives random bytes");
    bytes
}

/// Compares two texts in a time that says nothing about where they differ.
#[must_use]
pub fn is_same_secret(one: &str, other: &str) -> bool {
    // Of the hashes an attacker knows nothing, so it does not matter how they are compared.
    Sha256::digest(one) == Sha256::digest(other)
}

impl<T> Secret<T> {
    /// Hides `value`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself, for the one place it is meant for.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Masker {
    /// Knows `values`, except those of fewer than six characters, also as they are written in JSON.
    pub fn new(values: impl IntoIterator<Item = Secret<String>>) -> Self {
        let mut values: Vec<_> = values
            .into_iter()
            .filter(|value| value.0.chars().count() >= SHORTEST)
            .collect();
        let escaped: Vec<_> = values
            .iter()
            .map(|value| Secret(quoted(&value.0)))
            .collect();
        values.extend(
            escaped
                .into_iter()
                .map(|Secret(json)| Secret(json[1..json.len() - 1].to_owned())),
        );
        values.sort_by(|a, b| a.0.cmp(&b.0));
        values.dedup();
        Self {
            values: values.into(),
        }
    }

    /// `text` with every known secret replaced; borrowed where there was none.
    #[must_use]
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found: Vec<(usize, usize)> = self
            .values
            .iter()
            .flat_map(|value| occurrences(text, &value.0))
            .collect();
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        found.sort_unstable();
        let mut masked = String::with_capacity(text.len());
        let mut done = 0;
        for (start, end) in found {
            // Secrets may overlap: one mask then stands for all of them, so that no rest of one shows.
            if start >= done {
                masked.push_str(&text[done..start]);
                masked.push_str(MASK);
            }
            done = done.max(end);
        }
        masked.push_str(&text[done..]);
        Cow::Owned(masked)
    }
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masker({} values)", self.values.len())
    }
}

/// Where `value` stands in `text`, occurrences that overlap included.
fn occurrences(text: &str, value: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(value) {
        let start = from + at;
        found.push((start, start + value.len()));
        from = start + text[start..].chars().next().map_or(1, char::len_utf8);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(secrets: &[&str], text: &str, expected: &str) {
        let masker = Masker::new(secrets.iter().map(|s| Secret::new((*s).to_owned())));
        assert_eq!(masker.mask(text), expected, "{secrets:?} in {text:?}");
    }

    #[test]
    fn a_secret_prints_as_its_mask() {
        let secret = Secret::new("hunter2-and-more".to_owned());
        assert_eq!(
            format!("{secret} {secret:?} {:?}", Some(&secret)),
            "*** *** Some(***)"
        );
        assert_eq!(secret.expose(), "hunter2-and-more");
    }

    #[test]
    fn secrets_are_the_same_or_not() {
        assert!(is_same_secret("hunter2-and-more", "hunter2-and-more"));
        for other in [
            "",
            "hunter2-and-mor",
            "hunter2-and-more ",
            "Hunter2-and-more",
        ] {
            assert!(!is_same_secret(other, "hunter2-and-more"), "{other}");
        }
    }

    #[test]
    fn known_values_are_replaced() {
        check(&["abcdef"], "a abcdef, b abcdef", "a ***, b ***");
        check(&["abcdef", "abcdefgh"], "x=abcdefgh", "x=***");
        check(&["abcdef", "defghi"], "<abcdefghi>", "<***>");
        check(&["ababab"], "<abababab>", "<***>");
        check(&["abcdef"], "abcdefabcdef", "******");
        check(&["pässwörd"], "ü pässwörd ü", "ü *** ü");
        check(&["abcde"], "abcde is too short", "abcde is too short");
        check(
            &["two\nlines\"x"],
            r#"{"key":"two\nlines\"x"}"#,
            r#"{"key":"***"}"#,
        );
        check(&[], "nothing to hide", "nothing to hide");
        assert!(matches!(
            Masker::new([Secret::new("abcdef".to_owned())]).mask("clean"),
            Cow::Borrowed("clean")
        ));
    }

    #[test]
    fn names_tell_secrets() {
        for name in [
            "GITHUB_TOKEN",
            "apiKey",
            "X-Api-Key",
            "client_secret",
            "DB_PASSWORD",
            "Authorization",
            "Cookie",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["HOME", "LOG_LEVEL", "Accept", "GIT_AUTHOR_NAME"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_masker_does_not_print_what_it_knows() {
        let masker = Masker::new([Secret::new("abcdef".to_owned())]);
        assert_eq!(format!("{masker:?}"), "Masker(1 values)");
    }
}
