//! How clients reach us: a session per client, requests handed to the proxy side by side.
//!
//! *Invariant*: nothing here knows what a method does, but for those that open, cancel and listen.

mod exchange;
pub(crate) mod http;
pub(crate) mod pipes;
mod session;
mod span;
pub(crate) mod stdio;

pub(crate) use exchange::Exchange;
pub(crate) use session::Session;
