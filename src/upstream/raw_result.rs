//! A result in the server's own bytes, with the words that it has.

use std::ops::Deref;
use std::sync::OnceLock;

use bytes::Bytes;
use memchr::{memchr, memchr2};

/// A result in the server's own bytes. It may be large, and a few words decide what is done with it: it is searched once for all of
/// them.
#[derive(Debug, Clone)]
pub(crate) struct RawResult {
    bytes: Bytes,
    /// The words that it has: a bit for each.
    found: OnceLock<u8>,
}

/// A word that few results have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// `isError`, the member of a failed call.
    IsError,
    /// `input_required`, the type of a result that is a question.
    InputRequired,
    /// `task`, the type of a result that is a task.
    Task,
    /// The name of a member that contains the URI of a resource: `uri`, or one that ends with `Uri` or `outputTemplate`.
    Uri,
    /// A letter that is written by its number, which may be part of any word.
    Numbered,
}

impl Word {
    /// The bit of a word that `string` ends with, as it is written in JSON.
    fn at_end_of(string: &[u8]) -> u8 {
        let word = match string.last() {
            Some(b'r') if string.ends_with(b"isError") => Self::IsError,
            Some(b'd') if string.ends_with(b"input_required") => Self::InputRequired,
            Some(b'k') if string.ends_with(b"task") => Self::Task,
            Some(b'i') if string.ends_with(b"ri") => Self::Uri,
            Some(b'e') if string.ends_with(b"outputTemplate") => Self::Uri,
            _ => return 0,
        };
        word.bit()
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl RawResult {
    /// Whether it may have `word`, in any spelling of its letters.
    #[must_use]
    pub(crate) fn may_have(&self, word: Word) -> bool {
        let found = *self.found.get_or_init(|| words_of(&self.bytes));
        found & (word.bit() | Word::Numbered.bit()) != 0
    }

    /// Its bytes.
    #[must_use]
    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

/// The words of JSON: those that a string of it ends with, and whether a string has a letter by its number.
fn words_of(json: &[u8]) -> u8 {
    let (mut found, mut rest) = (0, json);
    while let Some(begin) = memchr(b'"', rest) {
        let string = &rest[begin + 1..];
        let mut end = 0;
        loop {
            let Some(mark) = memchr2(b'"', b'\\', &string[end..]) else {
                return found;
            };
            end += mark;
            if string[end] == b'"' {
                break;
            }
            // The escaped character is passed over, too.
            let escaped = string.get(end + 1);
            found |= u8::from(escaped == Some(&b'u')) * Word::Numbered.bit();
            end = (end + 2).min(string.len());
        }
        found |= Word::at_end_of(&string[..end]);
        rest = &string[end + 1..];
    }
    found
}

impl From<Bytes> for RawResult {
    fn from(bytes: Bytes) -> Self {
        Self {
            bytes,
            found: OnceLock::new(),
        }
    }
}

impl From<String> for RawResult {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl Deref for RawResult {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &[Word]) {
        let result = RawResult::from(json.to_owned());
        let all = [Word::IsError, Word::InputRequired, Word::Task, Word::Uri];
        for _ in 0..2 {
            let found = all.into_iter().filter(|word| result.may_have(*word));
            assert_eq!(found.collect::<Vec<_>>(), expected, "{json}");
        }
    }

    #[test]
    fn words_are_found_as_ends_of_strings_and_in_any_spelling() {
        check(
            r#"{"content":[{"type":"text","text":"a uri, a task\n"}]}"#,
            &[],
        );
        check(r#"{"isError" : true}"#, &[Word::IsError]);
        check(r#"{"resultType":"input_required"}"#, &[Word::InputRequired]);
        check(r#"{"resultType":"task"}"#, &[Word::Task]);
        for name in ["uri", "resourceUri", "openai/outputTemplate"] {
            check(&format!(r#"{{"{name}":"x"}}"#), &[Word::Uri]);
        }
        check(r#"{"text":"{\"uri\":1}"}"#, &[]);
        // A backslash that is escaped itself ends nothing.
        check(r#"{"text":"\\","resultType":"task"}"#, &[Word::Task]);
        check(r#"{"text":"\\u"}"#, &[]);
        let all = [Word::IsError, Word::InputRequired, Word::Task, Word::Uri];
        check(r#"{"\u0075ri":"x"}"#, &all);
    }
}
