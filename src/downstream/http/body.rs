//! What goes out: one JSON text, or a stream of events, in the payloads' own bytes.

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
use bytes::{Bytes, BytesMut};
use http_body::{Frame as Piece, SizeHint};
use tokio::time::{Instant, Sleep};

use super::answer::Stream;
use crate::mcp::Frame;
use crate::mcp::frame::one_line;

/// Payloads from this size on are handed over as they are; smaller ones are copied together.
const COPY_BELOW: usize = 16 * 1024;

/// How often a silent stream says that it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Proxies of some kinds keep events back unless they are told not to.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A message as a body.
pub(super) fn whole(frame: Frame) -> Body {
    let size = frame.len() as u64;
    Body::new(Whole {
        pieces: pieces(frame.head, frame.body, frame.tail),
        left: size,
    })
}

/// A stream of events: `first`, then all that `stream` brings.
pub(super) fn events(first: VecDeque<Bytes>, stream: Stream) -> Response {
    let next = next(&stream);
    let keep_alive = Box::pin(tokio::time::sleep(KEEP_ALIVE));
    let mut response = Response::new(Body::new(Events {
        pieces: first,
        next,
        keep_alive,
        stream,
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

/// A message as an event.
pub(super) fn event(frame: Frame) -> VecDeque<Bytes> {
    let head = [b"event: message\ndata: ", &frame.head[..]].concat();
    let mut tail = frame.tail;
    tail.extend_from_slice(b"\n\n");
    pieces(head, one_line(frame.body), tail)
}

/// Small parts copied together, a large payload as it is.
fn pieces(head: Vec<u8>, body: Bytes, tail: Vec<u8>) -> VecDeque<Bytes> {
    if body.len() >= COPY_BELOW {
        return VecDeque::from([head.into(), body, tail.into()]);
    }
    let mut all = BytesMut::with_capacity(head.len() + body.len() + tail.len());
    [&head[..], &body, &tail]
        .into_iter()
        .for_each(|part| all.extend_from_slice(part));
    VecDeque::from([all.freeze()])
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

/// Takes the next message only when the one before was taken from here, so a client that does not read holds up what is
/// sent to it, and nothing else.
struct Events {
    pieces: VecDeque<Bytes>,
    next: Pin<Box<dyn Future<Output = Option<Frame>> + Send>>,
    keep_alive: Pin<Box<Sleep>>,
    /// Ends what it stands for when the client is gone.
    stream: Stream,
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
        let piece = match self.next.as_mut().poll(context) {
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(frame)) => {
                self.next = next(&self.stream);
                self.pieces = event(frame);
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

fn next(stream: &Stream) -> Pin<Box<dyn Future<Output = Option<Frame>> + Send>> {
    let outbox = stream.outbox().clone();
    Box::pin(async move { outbox.next().await })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: VecDeque<Bytes>) -> String {
        pieces
            .into_iter()
            .map(|piece| String::from_utf8(piece.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn an_event_is_one_line_of_data_however_large() {
        let frame = |body: String| Frame {
            head: b"<".to_vec(),
            body: body.into(),
            tail: b">".to_vec(),
        };
        assert_eq!(
            text(event(frame("{\r\n}".to_owned()))),
            "event: message\ndata: <{  }>\n\n"
        );
        let large = "x".repeat(COPY_BELOW);
        let pieces = event(frame(large.clone()));
        assert_eq!(pieces.len(), 3);
        assert_eq!(text(pieces), format!("event: message\ndata: <{large}>\n\n"));
    }
}
