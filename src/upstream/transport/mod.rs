//! The wires to servers: one file per transport, and what those over HTTP share.

pub(super) mod http;
pub(super) mod sse;
pub(super) mod stdio;
pub(super) mod streamable_http;

use reqwest::header::{HeaderName, HeaderValue};

use crate::telemetry::trace::Context;

/// The method and name of a request, and the headers that HTTP adds for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    /// The method.
    pub(super) method: &'a str,
    /// The tool, prompt or resource it names, which HTTP repeats in a header.
    pub(super) name: Option<&'a str>,
    /// More headers, where it goes over HTTP.
    pub(super) headers: &'a [(HeaderName, HeaderValue)],
    /// The trace that it is a part of, which HTTP names in headers.
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
