//! Values that must not appear in logs, errors or listings.
//!
//! [`Secret`] hides a value that is known to be secret. [`Masker`] finds such values in other texts, such as a server's
//! stderr. The masker knows values, not patterns: it does not hide a secret that it was not given.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};

use crate::mcp::object::quoted;

/// The text that replaces a secret.
pub(crate) const MASK: &str = "***";

/// Minimum length of values that are masked in any text. Shorter ones would hide harmless text and protect nothing.
pub(crate) const SHORTEST: usize = 6;

/// How often JSON in a text of JSON is read as such.
const LEVELS: usize = 3;

/// Minimum length of values that are also masked in base64, in bytes.
const SHORTEST_IN_BASE64: usize = 8;

/// The characters that percent-encoding replaces: all except the unreserved ones of RFC 3986. Some encoders keep more of them: `/`, as
/// Python does, or those that `encodeURIComponent` and `encodeURI` keep.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
const EXCEPT_SLASH: &AsciiSet = &UNRESERVED.remove(b'/');
const OF_COMPONENT: &AsciiSet = &UNRESERVED
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*');
const OF_URI: &AsciiSet = &OF_COMPONENT
    .remove(b'/')
    .remove(b';')
    .remove(b',')
    .remove(b'?')
    .remove(b':')
    .remove(b'@')
    .remove(b'&')
    .remove(b'=')
    .remove(b'+')
    .remove(b'$')
    .remove(b'#');

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

/// A value that is printed as `***`.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secret<T>(T);

/// Words that mark a secret only if they are separated by other characters, as in `DB_PASS`.
const SECRET_PARTS: [&str; 12] = [
    "auth",
    "creds",
    "pass",
    "pat",
    "pwd",
    "pw",
    "sig",
    "signature",
    "tok",
    "jwt",
    "bearer",
    "dsn",
];

/// Replaces known secrets in text.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Masker {
    values: Arc<[Secret<String>]>,
}

/// Whether a variable, header or option of this name usually contains a secret.
#[must_use]
pub(crate) fn is_secret_name(name: &str) -> bool {
    // The working directory in every shell.
    if matches!(name, "PWD" | "OLDPWD") {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    SECRET_WORDS.iter().any(|word| name.contains(word))
        || parts.any(|part| SECRET_PARTS.contains(&part))
}

/// Whether a value consists of references to variables or files (`${TOKEN}`, `{env:TOKEN}`), after the scheme of a header if
/// there is one (`Bearer ${TOKEN}`). A reference with a default contains a value.
pub(crate) fn is_reference(value: &str) -> bool {
    const SCHEMES: [&str; 5] = ["bearer", "basic", "token", "apikey", "digest"];
    let is_scheme = |word: &str| SCHEMES.contains(&word.to_ascii_lowercase().as_str());
    let mut rest = match value.split_once(' ') {
        Some((word, rest)) if is_scheme(word) => rest.trim(),
        _ => value,
    };
    if rest.is_empty() {
        return false;
    }
    const FORMS: [(&str, &str); 4] = [("${{", "}}"), ("${", "}"), ("{env:", "}"), ("{file:", "}")];
    while let Some((inner, close)) = FORMS
        .iter()
        .find_map(|(open, close)| Some((rest.strip_prefix(open)?, close)))
    {
        let Some((name, after)) = inner.split_once(close) else {
            return false;
        };
        if name
            .split_once(":-")
            .is_some_and(|(_, default)| !default.is_empty())
        {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

/// An unpredictable text of 128 random bits, safe in URLs and headers.
///
/// # Panics
/// When the system has no randomness. Secrets would not be possible without it.
#[must_use]
pub(crate) fn random_token() -> String {
    URL_SAFE_NO_PAD.encode(random_bytes::<16>())
}

/// Unpredictable bytes.
///
/// # Panics
/// When the system has no randomness.
#[must_use]
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system gives random bytes");
    bytes
}

/// Compares two texts in a time that does not depend on where they differ.
#[must_use]
pub(crate) fn is_same_secret(one: &str, other: &str) -> bool {
    // An attacker cannot choose the hashes, so an ordinary comparison of them is safe.
    Sha256::digest(one) == Sha256::digest(other)
}

impl<T> Secret<T> {
    /// Hides `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value, for its intended use only.
    pub(crate) const fn expose(&self) -> &T {
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
    /// Creates a masker of `values` and each of their lines, in all of its `forms`, except those of fewer than six
    /// characters.
    pub(crate) fn new(values: impl IntoIterator<Item = Secret<String>>) -> Self {
        let whole: Vec<String> = values.into_iter().map(|Secret(value)| value).collect();
        let lines = whole.iter().flat_map(|value| lines(value));
        let mut values: Vec<String> = lines.chain(whole.iter().cloned()).collect();
        values.retain(|value| value.chars().count() >= SHORTEST);
        Self::of_all(values)
    }

    /// Creates a masker of `values` of any length, for a text that contains them.
    pub(crate) fn of_all(mut values: Vec<String>) -> Self {
        values.retain(|value| !value.is_empty() && value != MASK);
        let forms: Vec<String> = values.iter().flat_map(|value| forms(value)).collect();
        values.extend(forms);
        values.sort_unstable();
        values.dedup();
        Self {
            values: values.into_iter().map(Secret).collect(),
        }
    }

    /// Creates a masker of the values of both.
    #[must_use]
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut values = [&self.values[..], &other.values].concat();
        values.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        values.dedup();
        Self {
            values: values.into(),
        }
    }

    /// The length of the longest known secret, in bytes.
    #[must_use]
    pub(crate) fn longest(&self) -> usize {
        self.values
            .iter()
            .map(|value| value.0.len())
            .max()
            .unwrap_or(0)
    }

    /// Replaces every known secret in `text`. Borrowed if there is none.
    #[must_use]
    pub(crate) fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        replaced(text, self.found_in(text))
    }

    /// Masks a JSON text, in which secrets may be escaped in any way, also in JSON that one of its texts contains. `None` if a secret
    /// goes beyond one text, so that the rest would not be JSON.
    #[must_use]
    pub(crate) fn mask_json<'t>(&self, json: &'t str) -> Option<Cow<'t, str>> {
        let mut found = self.found_in(json);
        let mut levels: Vec<Unescaped> = Vec::new();
        for _ in 0..LEVELS {
            let text = levels.last().map_or(json, |level| &level.text);
            if !text.contains('\\') {
                break;
            }
            let level = Unescaped::of(text);
            let in_level = self.found_in(&level.text);
            levels.push(level);
            let source = |at| levels.iter().rev().fold(at, |at, level| level.source(at));
            found.extend(
                in_level
                    .into_iter()
                    .map(|(start, end)| (source(start), source(end))),
            );
        }
        let masked = replaced(json, found);
        let is_json = matches!(masked, Cow::Borrowed(_))
            || serde_json::from_str::<serde::de::IgnoredAny>(&masked).is_ok();
        is_json.then_some(masked)
    }

    /// Masks a truncated text. A start of a secret at its end is replaced as well.
    #[must_use]
    pub(crate) fn mask_cut(&self, text: &str) -> String {
        // A character that was cut in half is dropped.
        let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let starts = self.values.iter().filter_map(|value| {
            let ends = value.0.char_indices().map(|(at, _)| at).skip(1);
            ends.filter(|end| text.ends_with(&value.0[..*end])).last()
        });
        let mut found = self.found_in(text);
        found.extend(starts.max().map(|length| (text.len() - length, text.len())));
        replaced(text, found).into_owned()
    }

    /// The byte ranges of secrets in `text`.
    fn found_in(&self, text: &str) -> Vec<(usize, usize)> {
        let values = self.values.iter();
        values
            .flat_map(|value| occurrences(text, &value.0))
            .collect()
    }
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masker({} values)", self.values.len())
    }
}

/// A text with the escapes of JSON resolved, as in its strings.
struct Unescaped {
    text: String,
    /// Positions after the escapes: in the text, and in its source.
    jumps: Vec<(usize, usize)>,
}

impl Unescaped {
    fn of(source: &str) -> Self {
        let mut plain = Self {
            text: String::with_capacity(source.len()),
            jumps: Vec::new(),
        };
        let mut done = 0;
        while let Some(at) = source[done..].find('\\').map(|at| done + at) {
            plain.text.push_str(&source[done..at]);
            match escaped(&source[at..]) {
                Some((character, length)) => {
                    plain.text.push(character);
                    done = at + length;
                    plain.jumps.push((plain.text.len(), done));
                }
                None => {
                    plain.text.push('\\');
                    done = at + 1;
                }
            }
        }
        plain.text.push_str(&source[done..]);
        plain
    }

    /// The position in the source of one in the text.
    fn source(&self, at: usize) -> usize {
        let before = self.jumps.partition_point(|(text, _)| *text <= at);
        let jump = before.checked_sub(1).map(|last| self.jumps[last]);
        jump.map_or(at, |(text, source)| source + (at - text))
    }
}

/// The character that `text` begins with as an escape of JSON, and the length of the escape.
fn escaped(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let plain = match text.as_bytes().get(1)? {
        b'u' => {
            let units = [unit(0)?, unit(6).unwrap_or_default()];
            let character = char::decode_utf16(units).next()?.ok()?;
            return Some((character, 6 * character.len_utf16()));
        }
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        plain @ (b'"' | b'\\' | b'/') => char::from(*plain),
        _ => return None,
    };
    Some((plain, 2))
}

/// Other spellings of a secret: percent-decoded, as a program gets a URL's password, and both forms in JSON,
/// percent-encoded and in base64. Base64 is left out for short values.
fn forms(value: &str) -> Vec<String> {
    let decoded = percent_decode_str(value).decode_utf8().ok();
    let decoded = decoded
        .filter(|decoded| decoded != value && decoded.chars().count() >= SHORTEST)
        .map(Cow::into_owned);
    let mut forms = Vec::new();
    for value in std::iter::once(value).chain(decoded.as_deref()) {
        let json = quoted(value);
        let json = &json[1..json.len() - 1];
        forms.extend([json.to_owned(), json.replace('/', "\\/")]);
        for kept in [UNRESERVED, EXCEPT_SLASH, OF_COMPONENT, OF_URI] {
            let percent = || utf8_percent_encode(value, kept);
            let small_digits = percent().map(|part| match part.starts_with('%') {
                true => part.to_ascii_lowercase(),
                false => part.to_owned(),
            });
            let encoded = [percent().to_string(), small_digits.collect()];
            // A form has a plus for a space.
            forms.extend(encoded.each_ref().map(|text| text.replace("%20", "+")));
            forms.extend(encoded);
        }
        if value.len() >= SHORTEST_IN_BASE64 {
            // The padding is left out, because a match need not include it.
            forms.extend([STANDARD_NO_PAD.encode(value), URL_SAFE_NO_PAD.encode(value)]);
        }
    }
    forms.extend(decoded);
    forms
}

/// The lines of a value, such as a key in PEM format. A written `\\n` also ends a line.
fn lines(value: &str) -> Vec<String> {
    let lines = value
        .split(['\n', '\r'])
        .flat_map(|line| line.split("\\n"))
        .map(str::trim);
    let is_boundary = |line: &&str| line.starts_with("-----") && line.ends_with("-----");
    lines
        .filter(|line| !is_boundary(line))
        .map(str::to_owned)
        .collect()
}

/// Replaces ranges, which may overlap, with the mask. Overlapping ranges get one mask, so that no part of either shows.
fn replaced(text: &str, mut found: Vec<(usize, usize)>) -> Cow<'_, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    found.sort_unstable();
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    for (start, end) in found {
        if start >= done {
            masked.push_str(&text[done..start]);
            masked.push_str(MASK);
        }
        done = done.max(end);
    }
    masked.push_str(&text[done..]);
    Cow::Owned(masked)
}

/// The byte ranges of `value` in `text`, including overlapping ones.
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
    fn a_secret_is_masked_in_json_however_it_is_escaped() {
        let masker = Masker::new([Secret::new("p&ss/w<rd>é\"q\u{1F600}".to_owned())]);
        for (json, expected) in [
            (
                r#"{"a":"x p\u0026ss/w\u003crd\u003eé\"q😀."}"#,
                Some(r#"{"a":"x ***."}"#),
            ),
            (
                r#"["p&ss\/w<rd>\u00e9\"q\uD83D\ude00\\"]"#,
                Some(r#"["***\\"]"#),
            ),
            (
                r#"["k: {\"k\":\"p\\u0026ss/w<rd>é\\\"q😀\"}\n"]"#,
                Some(r#"["k: {\"k\":\"***\"}\n"]"#),
            ),
            (r#"["\\u0026 \ud83d \q"]"#, Some(r#"["\\u0026 \ud83d \q"]"#)),
        ] {
            assert_eq!(masker.mask_json(json).as_deref(), expected, "{json}");
        }
        let beyond = Masker::new([Secret::new(r#"abc","def"#.to_owned())]);
        assert_eq!(
            beyond.mask_json(r#"["abc","def"]"#).as_deref(),
            Some(r#"["***"]"#)
        );
        let beyond = Masker::new([Secret::new(r#"abc":"def"#.to_owned())]);
        assert_eq!(beyond.mask_json(r#"{"abc":"def"}"#), None);
    }

    #[test]
    fn references_are_told_from_values() {
        for reference in [
            "${A}",
            "Bearer ${A}",
            "bearer  ${A:-}",
            "${A}${B}",
            "{env:A}",
            "token {file:~/a}",
            "${{ secrets.A }}",
        ] {
            assert!(is_reference(reference), "{reference}");
        }
        for value in [
            "",
            "abc",
            "${A}abc",
            "Bearer abc",
            "Bearer ${A:-ghp_1234}",
            "${A",
            "secret ${A}",
            "Bearer ",
        ] {
            assert!(!is_reference(value), "{value}");
        }
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
        check(&["a b&/def"], "u=a%20b%26%2Fdef", "u=***");
        check(&["a b&/def"], "u=a%20b%26%2fdef", "u=***");
        check(&["a%20bcdef"], "p=a bcdef", "p=***");
        check(&["a b&/d!ef"], "u=a%20b%26/d%21ef", "u=***");
        check(&["a b&/d!ef"], "u=a%20b%26%2Fd!ef", "u=***");
        check(&["a b&/d!ef"], "u=a%20b&/d!ef", "u=***");
        check(&["a b&/d!ef"], "u=a+b%26%2fd%21ef", "u=***");
        check(&["abcdefgh"], "b=YWJjZGVmZ2g=", "b=***=");
        check(&["abcdefg"], "b=YWJjZGVmZw==", "b=YWJjZGVmZw==");
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
    fn lines_of_a_secret_are_replaced_each() {
        let key = "-----BEGIN KEY-----\nMIIEvQIB\r\nADANBgkq\n-----END KEY-----\n";
        check(&[key], "MIIEvQIB | ADANBgkq", "*** | ***");
        check(&["MIIEvQIB\\nADANBgkq"], "MIIEvQIB", "***");
    }

    #[test]
    fn the_start_of_a_secret_is_replaced_where_a_text_was_cut() {
        let masker = Masker::new(["abcabcabc", "xyzxyz"].map(|s| Secret::new(s.to_owned())));
        for (text, expected) in [
            ("is abcab", "is ***"),
            ("is abcabcabc", "is ***"),
            ("is xyzxyz", "is ***"),
            ("is clean", "is clean"),
            ("abcabcabc is x", "*** is ***"),
            ("is abc\u{fffd}", "is ***"),
        ] {
            assert_eq!(masker.mask_cut(text), expected, "{text}");
        }
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
