//! The transports to servers: one file each, and the parts that the HTTP ones share.

pub(super) mod http;
pub(super) mod sse;
pub(super) mod stdio;
pub(super) mod streamable_http;

use reqwest::header::{HeaderName, HeaderValue};

use crate::telemetry::trace::Context;

/// The method and name of a request, and its HTTP headers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    /// The method.
    pub(super) method: &'a str,
    /// The tool, prompt or resource it names; HTTP repeats it in a header.
    pub(super) name: Option<&'a str>,
    /// Additional headers for HTTP.
    pub(super) headers: &'a [(HeaderName, HeaderValue)],
    /// The trace that it belongs to, for HTTP headers.
    pub(super) context: Option<&'a Context>,
}

impl<'a> From<&'a str> for Target<'a> {
    fn from(method: &'a str) -> Self {
        Self {
            method,
            name: None,
            headers: &[],
            context: None,
        }
    }
}
