//! The requests that open a connection, as text: `initialize` (up to 2025-11-25) and `server/discover` (2026-07-28).

use super::host::Declared;
use crate::mcp::object::quoted;
use crate::mcp::{ClientCapabilities, Revision};

/// Our name and version, as JSON.
#[must_use]
pub(super) fn client_info() -> String {
    format!(
        r#"{{"name":"mcpzip","version":{}}}"#,
        quoted(env!("CARGO_PKG_VERSION"))
    )
}

/// The complete requests that open a connection in either era: revision, method and body.
pub(super) fn openings() -> [(Revision, &'static str, String); 2] {
    let whole = |method: &str, params: String| {
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":"{method}","params":{params}}}"#)
    };
    let (legacy, modern) = ("initialize", "server/discover");
    let discover = format!(
        r#"{{"_meta":{{{}}}}}"#,
        modern_meta(&ClientCapabilities::NONE.to_string())
    );
    [
        (
            Revision::NEWEST_LEGACY,
            legacy,
            whole(legacy, initialize_params(Declared::default())),
        ),
        (Revision::V2026_07_28, modern, whole(modern, discover)),
    ]
}

/// The `params` of `initialize`.
pub(super) fn initialize_params(declared: Declared) -> String {
    let extensions = declared.extensions.into_iter().collect();
    let capabilities = declared.capabilities.with_extensions(extensions);
    format!(
        r#"{{"protocolVersion":"{}","capabilities":{capabilities},"clientInfo":{}}}"#,
        Revision::NEWEST_LEGACY,
        client_info()
    )
}

/// The members of `_meta` that every modern request carries; `capabilities` is JSON.
pub(super) fn modern_meta(capabilities: &str) -> String {
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{capabilities}"#,
        Revision::V2026_07_28,
        client_info()
    )
}
