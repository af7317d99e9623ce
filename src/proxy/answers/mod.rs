//! The answers to calls: results whole, selected or stored, errors in words, and the form each era has for them.

pub(in crate::proxy) mod answer;
pub(in crate::proxy) mod content;
pub(in crate::proxy) mod counting;
pub(in crate::proxy) mod duplicate;
pub(in crate::proxy) mod error;
pub mod projection;
pub(in crate::proxy) mod reply;
