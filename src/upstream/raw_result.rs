//! A result in the server's own bytes, with the words that it has.

use std::ops::Deref;
use std::sync::{LazyLock, OnceLock};

use bytes::Bytes;
use memchr::memchr_iter;
use memchr::memmem::Finder;

use crate::mcp::Response;

/// A result in the server's own bytes. It may be large, and a few words decide what is done with it: they are found once, however many ask.
#[derive(Debug, Clone)]
pub(crate) struct RawResult {
    bytes: Bytes,
    found: OnceLock<Words>,
}

/// A word that few results have. Each is the end of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// `isError`, the member of a failed call.
    IsError,
    /// `input_required`, the type of a result that is a question.
    InputRequired,
    /// `task`, the type of a result that is a task.
    Task,
    /// The name of a member that contains the URI of a resource.
    Uri,
    /// `resultType`, the member that modern results have.
    ResultType,
    /// `structuredContent`, the member that may repeat the content.
    Structured,
}

/// The words of a result, a bit for each.
#[derive(Debug, Default, Clone, Copy)]
struct Words(u8);

impl Words {
    /// All of them: a letter that is written by its number may be part of any.
    const ANY: Self = Self(u8::MAX);

    /// Notes the word at the end of `text`, which ends with a string.
    fn note(&mut self, text: &[u8]) {
        let (end, word): (&[u8], _) = match text.last() {
            Some(b'r') => (b"isError", Word::IsError),
            Some(b'd') => (b"input_required", Word::InputRequired),
            Some(b'k') => (b"task", Word::Task),
            // Of `uri` and of names that end with `Uri`.
            Some(b'i') => (b"ri", Word::Uri),
            Some(b'e') if text.ends_with(b"outputTemplate") => (b"", Word::Uri),
            Some(b'e') => (b"resultType", Word::ResultType),
            Some(b't') => (b"structuredContent", Word::Structured),
            _ => return,
        };
        if text.ends_with(end) {
            self.0 |= 1 << word as u8;
        }
    }

    /// The words of a text of JSON.
    fn of(json: &[u8]) -> Self {
        static NUMBERED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u"));
        let mut words = Self::default();
        if NUMBERED.find(json).is_some() {
            return Self::ANY;
        }
        memchr_iter(b'"', json).for_each(|at| words.note(&json[..at]));
        words
    }
}

impl RawResult {
    /// The id and the result of a response; `None` for other messages and for unusual responses.
    #[must_use]
    pub(crate) fn of_response(message: &Bytes) -> Option<(i64, Self)> {
        let mut words = Words::default();
        let response = Response::read(message, |text| words.note(text))?;
        let words = if response.has_numbered {
            Words::ANY
        } else {
            words
        };
        let result = Self {
            bytes: message.slice_ref(response.result),
            found: words.into(),
        };
        Some((response.id, result))
    }

    /// Whether it may have `word`, in any spelling of its letters.
    #[must_use]
    pub(crate) fn may_have(&self, word: Word) -> bool {
        let words = self.found.get_or_init(|| Words::of(&self.bytes));
        words.0 & (1 << word as u8) != 0
    }

    /// The bytes of the result.
    #[must_use]
    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

impl From<Bytes> for RawResult {
    fn from(bytes: Bytes) -> Self {
        Self {
            bytes,
            found: OnceLock::new(),
        }
    }
}

impl From<Vec<u8>> for RawResult {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<&'static str> for RawResult {
    fn from(text: &'static str) -> Self {
        Bytes::from(text).into()
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

    const ALL: [Word; 6] = [
        Word::IsError,
        Word::InputRequired,
        Word::Task,
        Word::Uri,
        Word::ResultType,
        Word::Structured,
    ];

    #[track_caller]
    fn check(json: &str, expected: &[Word]) {
        let response = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{json}}}"#);
        let (id, read) = RawResult::of_response(&Bytes::from(response)).unwrap();
        assert_eq!((id, &read[..]), (3, json.as_bytes()));
        for result in [read, RawResult::from(json.to_owned())] {
            let found = ALL.into_iter().filter(|word| result.may_have(*word));
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
        check(
            r#"{"resultType":"input_required"}"#,
            &[Word::InputRequired, Word::ResultType],
        );
        check(r#"{"resultType":"task"}"#, &[Word::Task, Word::ResultType]);
        check(r#"{"structuredContent":{}}"#, &[Word::Structured]);
        for name in ["uri", "resourceUri", "openai/outputTemplate"] {
            check(&format!(r#"{{"{name}":"x"}}"#), &[Word::Uri]);
        }
        check(r#"{"text":"{\"uri\":1}"}"#, &[]);
        check(r#"{"\u0075ri":"x"}"#, &ALL);
    }
}
