//! The kinds of connections to a server: one stream for all messages, one HTTP request for each, or a source inside the
//! program.

use std::sync::Arc;
use std::time::Duration;

use super::CallError;
use super::host::Host;
use super::link::Link;
use super::reply::ServerReply;
use super::source::Inside;
use super::transport::Target;
use super::transport::http::mirrors::Mirrors;
use super::transport::streamable_http::Endpoint;
use crate::mcp::{Frame, Revision};

/// A handle to send messages to a server; cheap to clone.
#[derive(Debug, Clone)]
pub(super) enum Wire {
    /// All messages over one stream in each direction: stdio, and HTTP+SSE.
    Stream(Arc<Link>),
    /// Each request as an HTTP exchange: Streamable HTTP.
    Http(Arc<Endpoint>),
    /// Each request as a function call.
    Inside(Arc<Inside>),
}

impl Wire {
    /// Sends a request and waits for the response, for at most `limit`. Dropping the future cancels the request.
    pub(super) async fn request(
        &self,
        target: Target<'_>,
        params: impl FnOnce(u64) -> Frame,
        limit: Duration,
        host: Option<Arc<dyn Host>>,
    ) -> Result<ServerReply, CallError> {
        match self {
            Self::Stream(link) => link.request(target.method, params, limit, host).await,
            // Boxed because it is far larger than the future of a stream call, and costs far more than a box.
            Self::Http(endpoint) => Box::pin(endpoint.request(target, params, limit, host)).await,
            Self::Inside(inside) => {
                let params = params(0);
                Box::pin(inside.request(target.method, &params, limit)).await
            }
        }
    }

    /// The beginning of the first line that was no message, if there is one.
    pub(super) fn no_message(&self) -> Option<&str> {
        match self {
            Self::Stream(link) => link.no_message(),
            Self::Http(_) | Self::Inside(_) => None,
        }
    }

    /// Sends a notification without parameters. Later requests are sent after it.
    pub(super) async fn notify(&self, method: &str) {
        match self {
            Self::Stream(link) => link.notify(method),
            Self::Http(endpoint) => endpoint.notify(method).await,
            Self::Inside(_) => {}
        }
    }

    /// The known headers of tools (2026-07-28 over HTTP).
    pub(super) fn mirrors(&self) -> Option<&Mirrors> {
        match self {
            Self::Stream(_) | Self::Inside(_) => None,
            Self::Http(endpoint) => endpoint.mirrors(),
        }
    }

    /// Sets the negotiated revision.
    pub(super) fn agree(&self, revision: Revision) {
        if let Self::Http(endpoint) = self {
            endpoint.agree(revision);
        }
    }

    /// Whether nothing more can be sent.
    pub(super) fn is_ended(&self) -> bool {
        match self {
            Self::Stream(link) => link.is_ended(),
            Self::Http(endpoint) => endpoint.is_ended(),
            Self::Inside(inside) => inside.is_ended(),
        }
    }

    /// Resolves when nothing more can be sent.
    pub(super) async fn ended(&self) {
        match self {
            Self::Stream(link) => link.ended().await,
            Self::Http(endpoint) => endpoint.ended().await,
            Self::Inside(inside) => inside.ended().await,
        }
    }

    /// Closes it; requests in flight fail.
    pub(super) fn close(&self) {
        match self {
            Self::Stream(link) => link.close(),
            Self::Http(endpoint) => endpoint.close(),
            Self::Inside(inside) => inside.close(),
        }
    }

    /// Resolves when it is to be closed.
    pub(super) async fn close_requested(&self) {
        match self {
            Self::Stream(link) => link.close_requested().await,
            Self::Http(endpoint) => endpoint.close_requested().await,
            Self::Inside(inside) => inside.ended().await,
        }
    }
}
