//! The features besides tools: prompts, resources and completions.

pub(in crate::proxy) mod completion;
mod forward;
pub(in crate::proxy) mod lists;
pub(in crate::proxy) mod named_uris;
pub(in crate::proxy) mod page;
pub(in crate::proxy) mod prompts;
pub(in crate::proxy) mod resources;
pub(in crate::proxy) mod subscriptions;
pub(in crate::proxy) mod uri;
