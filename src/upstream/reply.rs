//! A server's answer to a request, and the two members of a JSON-RPC error that decisions and messages are made of.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::mcp::{ErrorCode, Object};

/// The answer of a server to a request.
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
