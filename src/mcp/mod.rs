//! Raw MCP messages: envelopes, ids, framing and splicing.
pub mod object;
