//! The parts that HTTP transports share: client, headers, bodies, event streams and errors.
//!
//! No text made here contains the value of a header, or more of a URL than its origin. A redirect to the server's own origin is named with
//! its path.

pub(in crate::upstream) mod body;
pub(in crate::upstream) mod client;
mod error;
pub(in crate::upstream) mod events;
pub(in crate::upstream) mod headers;
pub(in crate::upstream) mod mirrors;
mod peer;

pub(crate) use error::HttpError;
pub(in crate::upstream) use error::reason;
pub(in crate::upstream) use peer::HttpPeer;
