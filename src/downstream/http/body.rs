//! Response bodies: one JSON text, or an event stream, with the payloads' own bytes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame as Piece, SizeHint};
use tokio::time::{Instant, Sleep};

use super::event::pieces;
use super::stream::Stream;
use crate::mcp::Frame;

/// The interval of comments on a silent stream, which show that it is still open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Some proxies buffer events unless this header forbids it.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A message as a body.
pub(super) fn whole(frame: Frame) -> Body {
    let size = frame.len() as u64;
    Body::new(Whole {
        pieces: pieces(frame.head, frame.body, frame.tail),
        left: size,
    })
}

/// An event stream: `first`, then the events of `stream`.
pub(super) fn events(first: VecDeque<Bytes>, stream: Stream) -> Response {
    let next = Box::pin(stream.next());
    let keep_alive = Box::pin(tokio::time::sleep(KEEP_ALIVE));
    let mut response = Response::new(Body::new(Events {
        pieces: first,
        next,
        keep_alive,
        stream,
        has_ended: false,
    }));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

struct Whole {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Piece::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// A body that takes the next message only after the previous one was read. A client that does not read delays its
/// own messages only.
struct Events {
    pieces: VecDeque<Bytes>,
    next: Pin<Box<dyn Future<Output = Option<VecDeque<Bytes>>> + Send>>,
    keep_alive: Pin<Box<Sleep>>,
    /// Dropped when the client is gone.
    stream: Stream,
    has_ended: bool,
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece<Bytes>, Infallible>>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(Piece::data(piece))));
        }
        if self.has_ended {
            return Poll::Ready(None);
        }
        let piece = match self.next.as_mut().poll(context) {
            Poll::Ready(None) => {
                self.has_ended = true;
                let farewell = self.stream.farewell();
                if farewell.is_none() {
                    self.stream.finish();
                }
                return Poll::Ready(farewell.map(|piece| Ok(Piece::data(piece))));
            }
            Poll::Ready(Some(event)) => {
                self.next = Box::pin(self.stream.next());
                self.pieces = event;
                self.pieces.pop_front().unwrap_or_default()
            }
            Poll::Pending if self.keep_alive.as_mut().poll(context).is_ready() => {
                Bytes::from_static(b": still here\n\n")
            }
            Poll::Pending => return Poll::Pending,
        };
        self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
        Poll::Ready(Some(Ok(Piece::data(piece))))
    }
}
