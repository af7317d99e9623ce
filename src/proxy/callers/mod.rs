//! The clients: one of them, one of its requests, and all of them together.

pub(in crate::proxy) mod audience;
pub(in crate::proxy) mod caller;
pub(in crate::proxy) mod client;
pub(in crate::proxy) mod listener;
pub(in crate::proxy) mod workspace;
