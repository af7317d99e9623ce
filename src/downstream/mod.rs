//! The client side: one session per client, whose requests are passed to the proxy in parallel.
//!
//! *Invariant*: nothing here knows the meaning of a method, except those that open a session, cancel a request or
//! listen for notifications.

mod exchange;
pub(crate) mod http;
pub(crate) mod pipes;
mod session;
mod span;
pub(crate) mod stdio;

pub(crate) use exchange::Exchange;
pub(crate) use session::Session;
