//! A server's response to a request, and the members of it that decide and explain.

use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;
use serde_json::value::RawValue;

use super::raw_result::{RawResult, Word};
use crate::mcp::{ErrorCode, Object};

/// A server's response to a request.
#[derive(Debug, Clone)]
pub(crate) enum ServerReply {
    /// The result, in the server's own bytes.
    Result(RawResult),
    /// The JSON-RPC error object, in the server's own bytes.
    Error(Bytes),
}

impl RawResult {
    /// Its members, if it is not final but requests input.
    #[must_use]
    pub(crate) fn required_input(&self) -> Option<Object<'_>> {
        let may_be = self.may_have(Word::InputRequired);
        may_be.then(|| required_input(self))?
    }
}

/// The `code` of a JSON-RPC error object.
#[must_use]
pub(crate) fn code_of(error: &[u8]) -> Option<ErrorCode> {
    let error: &RawValue = serde_json::from_slice(error).ok()?;
    plain_code(&Object::parse(error).ok()?)
}

/// The `code` of an error, if it is the one integer that the protocol demands. Some clients read other forms as numbers: texts,
/// fractions, and larger integers.
fn plain_code(error: &Object<'_>) -> Option<ErrorCode> {
    let mut codes = error.iter().filter(|(name, _)| name == "code");
    let code: i32 = codes.next()?.1.get().parse().ok()?;
    codes.next().is_none().then_some(ErrorCode(code.into()))
}

/// An error that has a code which every client reads as the same number: its own, or that of an internal error.
#[must_use]
pub(crate) fn with_plain_code(error: Bytes) -> Bytes {
    let raw: Option<&RawValue> = serde_json::from_slice(&error).ok();
    let object = raw.and_then(|raw| Object::parse(raw).ok());
    let object = object.unwrap_or_default();
    if plain_code(&object).is_some() {
        return error;
    }
    let bare = object.without("code");
    let internal = ErrorCode::INTERNAL;
    let comma = if bare == "{}" { "" } else { "," };
    format!(r#"{{"code":{internal}{comma}{}"#, &bare[1..]).into()
}

/// Whether a text of JSON may have a string with this word, in any spelling of its letters.
#[must_use]
pub(crate) fn may_have_text(json: &[u8], word: &Finder<'_>) -> bool {
    static NUMBERED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u"));
    word.find(json).is_some() || NUMBERED.find(json).is_some()
}

/// The `message` of a JSON-RPC error object.
#[must_use]
pub(crate) fn message_of(error: &[u8]) -> String {
    let raw: Option<&RawValue> = serde_json::from_slice(error).ok();
    raw.and_then(|raw| Object::parse(raw).ok()?.text("message"))
        .unwrap_or_else(|| "an error without a message".into())
}

/// The members of a result that is not final but requests input.
#[must_use]
pub(crate) fn required_input(result: &[u8]) -> Option<Object<'_>> {
    // Results may be large, and those that request input are rare.
    static WORD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"input_required"));
    if !may_have_text(result, &WORD) {
        return None;
    }
    let raw: &RawValue = serde_json::from_slice(result).ok()?;
    let object = Object::parse(raw).ok()?;
    let is_required = object.text("resultType").as_deref() == Some("input_required")
        && (object.get("inputRequests").is_some() || object.get("requestState").is_some());
    is_required.then_some(object)
}
