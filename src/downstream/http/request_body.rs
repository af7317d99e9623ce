//! The body of an incoming request. A connection that waits for the rest of a body can be closed for others, like an
//! idle one.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::connections::Connection;

/// A body that records on its connection whether the rest is awaited.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Incoming,
    connection: Arc<Connection>,
    is_waiting: bool,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, connection: Arc<Connection>) -> Self {
        Self {
            body,
            connection,
            is_waiting: false,
        }
    }

    fn set_waiting(&mut self, is_waiting: bool) {
        if std::mem::replace(&mut self.is_waiting, is_waiting) != is_waiting {
            self.connection.set_incomplete(is_waiting);
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let piece = Pin::new(&mut self.body).poll_frame(context);
        self.set_waiting(piece.is_pending());
        piece
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.set_waiting(false);
    }
}
