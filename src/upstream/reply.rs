//! A server's response to a request, and the members of it that decide and explain.

use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;
use serde_json::value::RawValue;

use crate::mcp::{ErrorCode, Object};

/// A server's response to a request.
#[derive(Debug, Clone)]
pub(crate) enum ServerReply {
    /// The result, in the server's own bytes.
    Result(Bytes),
    /// The JSON-RPC error object, in the server's own bytes.
    Error(Bytes),
}

/// The `code` of a JSON-RPC error object.
#[must_use]
pub(crate) fn code_of(error: &[u8]) -> Option<ErrorCode> {
    let error: &RawValue = serde_json::from_slice(error).ok()?;
    Object::parse(error)
        .ok()?
        .get("code")?
        .get()
        .parse()
        .ok()
        .map(ErrorCode)
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
    WORD.find(result)?;
    let raw: &RawValue = serde_json::from_slice(result).ok()?;
    let object = Object::parse(raw).ok()?;
    let is_required = object.text("resultType").as_deref() == Some("input_required")
        && (object.get("inputRequests").is_some() || object.get("requestState").is_some());
    is_required.then_some(object)
}
