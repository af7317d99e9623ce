//! Raw MCP messages: envelopes, ids, framing and splicing, the same for every wire and protocol revision.
//!
//! A message is looked at only as far as its envelope; `params` and `result` stay in the bytes they came in. This is
//! what lets a result pass through unchanged, whatever it holds, and what keeps a relayed call cheap.
//!
//! *Invariant*: nothing here knows a server, a tool or a transport, and nothing here writes a payload it has parsed.

pub mod budget;
mod capabilities;
pub mod envelope;
mod error_code;
pub mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
pub mod headers;
mod id;
pub mod lines;
mod log_level;
pub mod object;
pub mod outbox;
mod revision;
mod scan;

pub use budget::ByteBudget;
pub use capabilities::{ClientCapabilities, ServerCapabilities};
pub use envelope::{Envelope, Malformed, Message, Outcome, Request};
pub use error_code::ErrorCode;
pub use frame::Frame;
pub use id::RequestId;
pub use lines::{Line, LineReader};
pub use log_level::LogLevel;
pub use object::Object;
pub use outbox::{Closed, Outbox};
pub use revision::Revision;
pub(crate) use scan::IdScan;
