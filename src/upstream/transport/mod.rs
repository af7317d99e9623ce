//! The wires to servers: one file per transport, and what those over HTTP share.

pub(super) mod http;
pub(super) mod sse;
pub(super) mod stdio;
pub(super) mod streamable_http;
