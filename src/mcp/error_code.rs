//! The error codes of JSON-RPC and MCP.

use std::fmt;

/// The code of a JSON-RPC error (specification 2026-07-28, basic).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub i64);

impl ErrorCode {
    /// The text is not JSON.
    pub const PARSE: Self = Self(-32700);
    /// The JSON is not a request.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method does not exist.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The parameters do not fit the method, or an outer tool does not exist.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// An internal error of mcpzip.
    pub const INTERNAL: Self = Self(-32603);
    /// No resource has this URI; up to 2025-11-25 only.
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// The user must first visit the URLs in `data` (2025-11-25 only).
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);
    /// The headers of an HTTP request differ from its body.
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// A server needs a capability that its client has not declared.
    pub const MISSING_CAPABILITY: Self = Self(-32021);
    /// The protocol revision is not supported; `data` has `supported` and `requested`.
    pub const UNSUPPORTED_VERSION: Self = Self(-32022);
    /// The session has too many requests in flight. This code is mcpzip's own, outside the reserved range.
    pub const TOO_MANY_REQUESTS: Self = Self(-31001);
    /// The access token lacks the scopes in `data`. This code is mcpzip's own, too.
    pub const INSUFFICIENT_SCOPE: Self = Self(-31002);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
