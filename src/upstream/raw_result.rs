//! A result in the server's own bytes, with the words that it has.

use std::ops::Deref;
use std::sync::{LazyLock, OnceLock};

use bytes::Bytes;
use memchr::memmem::Finder;

/// A result in the server's own bytes. It may be large, and a few words decide what is done with it: it is searched once for each of
/// them, however many ask.
#[derive(Debug, Clone)]
pub(crate) struct RawResult {
    bytes: Bytes,
    found: [OnceLock<bool>; Word::COUNT],
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
    /// The name of a member that contains the URI of a resource.
    Uri,
    /// A letter that is written by its number, which may be part of any word.
    Numbered,
}

impl Word {
    const COUNT: usize = 5;

    /// Whether a string of `json` ends with it.
    fn is_in(self, json: &[u8]) -> bool {
        static FINDERS: LazyLock<[Finder<'static>; 6]> = LazyLock::new(|| {
            [
                Finder::new(b"isError\""),
                Finder::new(b"input_required\""),
                Finder::new(b"task\""),
                // Of `uri` and of names that end with `Uri`.
                Finder::new(b"ri\""),
                Finder::new(b"outputTemplate\""),
                Finder::new(b"\\u"),
            ]
        });
        let forms = match self {
            Self::IsError => 0..1,
            Self::InputRequired => 1..2,
            Self::Task => 2..3,
            Self::Uri => 3..5,
            Self::Numbered => 5..6,
        };
        FINDERS[forms].iter().any(|form| form.find(json).is_some())
    }
}

impl RawResult {
    /// Whether it may have `word`, in any spelling of its letters.
    #[must_use]
    pub(crate) fn may_have(&self, word: Word) -> bool {
        self.has(word) || self.has(Word::Numbered)
    }

    fn has(&self, word: Word) -> bool {
        *self.found[word as usize].get_or_init(|| word.is_in(&self.bytes))
    }

    /// Its bytes.
    #[must_use]
    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

impl From<Bytes> for RawResult {
    fn from(bytes: Bytes) -> Self {
        Self {
            bytes,
            found: Default::default(),
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
        let all = [Word::IsError, Word::InputRequired, Word::Task, Word::Uri];
        check(r#"{"\u0075ri":"x"}"#, &all);
    }
}
