//! TLS of requests: by the crate `rustls`, or none in a build without the feature `tls`.
//!
//! *Never*: decides which certificates a request trusts; knows a server.

#[cfg(feature = "tls")]
#[path = "present.rs"]
mod kind;
#[cfg(not(feature = "tls"))]
#[path = "absent.rs"]
mod kind;

pub(crate) use kind::{begin, is_certificate, plain, trusting, trusting_only};

/// Whether URLs may begin with `https`.
pub(crate) const IS_PRESENT: bool = cfg!(feature = "tls");
