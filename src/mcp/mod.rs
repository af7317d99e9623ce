//! Raw MCP messages: envelopes, ids, framing and splicing, for every transport and protocol revision.
//!
//! A message is parsed only as far as its envelope; `params` and `result` keep their original bytes. So a result
//! passes through unchanged, and a relayed call stays cheap.
//!
//! *Invariant*: nothing here knows servers, tools or transports, and nothing here rewrites a payload.

pub(crate) mod budget;
mod capabilities;
pub(crate) mod envelope;
mod error_code;
pub(crate) mod extensions;
pub(crate) mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
pub(crate) mod headers;
mod id;
pub(crate) mod lines;
mod log_level;
pub(crate) mod object;
pub(crate) mod outbox;
mod receipt;
mod response;
mod revision;
mod scan;
pub(crate) mod widen;

pub(crate) use budget::ByteBudget;
pub(crate) use capabilities::{ClientCapabilities, ServerCapabilities};
pub use envelope::{Envelope, Message, Outcome};
pub(crate) use envelope::{Malformed, Request};
pub(crate) use error_code::ErrorCode;
pub(crate) use extensions::{Extensions, INTERFACES, Others, TASKS};
pub use frame::Frame;
pub use id::RequestId;
pub(crate) use lines::{Line, LineReader};
pub(crate) use log_level::LogLevel;
pub(crate) use object::Object;
pub(crate) use outbox::Outbox;
pub(crate) use receipt::{Journal, Kept, Receipt, Received};
pub(crate) use response::Response;
pub(crate) use revision::Revision;
pub(crate) use scan::IdScan;
pub(crate) use widen::Widen;
