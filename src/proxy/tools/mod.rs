//! The tools that clients see: the three meta-tools, or every tool directly.

pub(in crate::proxy) mod builtin;
pub(in crate::proxy) mod definitions;
pub(in crate::proxy) mod describe;
pub(in crate::proxy) mod direct;
pub(in crate::proxy) mod execute;
pub(in crate::proxy) mod instructions;
pub(in crate::proxy) mod reranking;
pub(in crate::proxy) mod search;
