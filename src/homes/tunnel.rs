//! A connection between two replicas to the process of a server: what the server writes is the body of a response, and what goes to it comes in
//! numbered letters.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::replicas::{Content, Replicas, Unreachable};
use crate::shutdown::Tasks;
use crate::upstream::Streams;

/// The headers of the response that opens a connection: the first id of its requests, and the age of a process that has lost its state.
pub(crate) const FIRST_ID: &str = "mcpzip-first-id";
pub(crate) const MOVED: &str = "mcpzip-moved";

/// The time after which a blank line shows that a connection lives.
const BEAT: Duration = Duration::from_secs(5);

/// The time without a byte after which a connection has broken off.
const SILENCE: Duration = Duration::from_secs(15);

/// The bytes of a connection that wait on their way, which are the most of one piece.
const PIPE: usize = 256 * 1024;

/// The attempts to send a piece to a replica that is not reached, the time for one that is too busy to take it, and the pause between two.
const ATTEMPTS: u64 = 3;
const BUSY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);

type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The directions to the processes of connections of other replicas, by the names of these.
#[derive(Debug, Clone, Default)]
pub(super) struct Inflows(Arc<Mutex<HashMap<String, Arc<Inflow>>>>);

/// The direction to a process.
struct Inflow(tokio::sync::Mutex<Pieces>);

/// The pieces of one direction, in their order.
struct Pieces {
    next: u64,
    /// The bytes of the next piece that were written before its request ended.
    written: usize,
    writer: Writer,
}

/// A direction to a process, until this is dropped.
#[derive(Debug)]
pub(super) struct Inflowing {
    all: Inflows,
    tunnel: String,
}

impl fmt::Debug for Inflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflow").finish_non_exhaustive()
    }
}

impl Inflows {
    pub(super) fn add(&self, tunnel: String, writer: Writer) -> Inflowing {
        let pieces = Pieces {
            next: 0,
            written: 0,
            writer,
        };
        let inflow = Arc::new(Inflow(tokio::sync::Mutex::new(pieces)));
        self.0.lock().insert(tunnel.clone(), inflow);
        Inflowing {
            all: self.clone(),
            tunnel,
        }
    }

    /// Writes the next piece, or nothing if it has come before. Returns whether the connection can go on.
    ///
    /// # Cancel safety
    /// If it is dropped, the rest is written when the piece comes again.
    pub(super) async fn write(&self, tunnel: &str, number: u64, body: &[u8]) -> bool {
        let inflow = self.0.lock().get(tunnel).cloned();
        let Some(inflow) = inflow else { return false };
        let mut pieces = inflow.0.lock().await;
        if number != pieces.next {
            return number < pieces.next;
        }
        while let Some(rest) = body.get(pieces.written..).filter(|rest| !rest.is_empty()) {
            match pieces.writer.write(rest).await {
                Ok(written) if written > 0 => pieces.written += written,
                _ => return false,
            }
        }
        (pieces.next, pieces.written) = (number + 1, 0);
        true
    }
}

impl Drop for Inflowing {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.tunnel);
    }
}

/// The direction from a process to another replica.
pub(crate) struct Outflow {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    /// Whether the last byte has ended a line.
    is_between: bool,
    beat: Duration,
    _inflow: Inflowing,
}

impl Outflow {
    pub(super) fn new(reader: Box<dyn AsyncRead + Send + Unpin>, inflow: Inflowing) -> Self {
        Self {
            reader,
            is_between: true,
            beat: BEAT,
            _inflow: inflow,
        }
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let mut buffer = BytesMut::with_capacity(16 * 1024);
            let reading = self.reader.read_buf(&mut buffer);
            match tokio::time::timeout(self.beat, reading).await {
                Ok(Ok(read)) if read > 0 => {
                    self.is_between = buffer.ends_with(b"\n");
                    return Some(buffer.freeze());
                }
                Ok(_) => return None,
                Err(_) if self.is_between => return Some(Bytes::from_static(b"\n")),
                Err(_) => {}
            }
        }
    }
}

/// A connection to a process at another replica.
pub(super) struct Remote {
    pub(super) replicas: Arc<Replicas>,
    pub(super) replica: String,
    pub(super) tunnel: String,
}

impl Remote {
    /// The messages in both directions; `body` has those of the server.
    pub(super) fn open<B>(self, mut body: B, tasks: &Tasks) -> Streams
    where
        B: http_body::Body<Data = Bytes, Error: Send> + Send + Unpin + 'static,
    {
        let (near, far) = tokio::io::duplex(PIPE);
        let (mut input, mut output) = tokio::io::split(far);
        let stop = tasks.stop().clone();
        tasks.spawn(stop.run_until_cancelled_owned(async move {
            let receiving = async {
                while let Ok(Some(Ok(frame))) = tokio::time::timeout(SILENCE, body.frame()).await {
                    let data = frame.into_data().unwrap_or_default();
                    if output.write_all(&data).await.is_err() {
                        // The last message to the server may still be on its way.
                        std::future::pending::<()>().await;
                    }
                }
            };
            let sending = async {
                let mut buffer = BytesMut::with_capacity(16 * 1024);
                for number in 0.. {
                    buffer.clear();
                    match input.read_buf(&mut buffer).await {
                        Ok(read) if read > 0 => {}
                        _ => return,
                    }
                    if !self.send(number, &buffer).await {
                        return;
                    }
                }
            };
            tokio::select! {
                () = receiving => {}
                () = sending => {}
            }
        }));
        let (reader, writer) = tokio::io::split(near);
        (Box::new(reader), Box::new(writer))
    }

    /// Sends a piece, again if it may not have arrived or was not taken. Returns whether the connection can go on.
    async fn send(&self, number: u64, piece: &[u8]) -> bool {
        let (mut failed, begun) = (0, Instant::now());
        loop {
            let content = Content::Piece {
                tunnel: self.tunnel.clone(),
                number,
            };
            match self.replicas.send(&self.replica, content, piece).await {
                Ok(response) if response.status() != StatusCode::SERVICE_UNAVAILABLE => {
                    return response.status().is_success();
                }
                Ok(_) | Err(Unreachable::Busy) if begun.elapsed() < BUSY => {}
                Err(error) if failed + 1 < ATTEMPTS && !matches!(error, Unreachable::Busy) => {
                    failed += 1;
                }
                Ok(_) | Err(_) => {
                    tracing::debug!(
                        replica = self.replica,
                        "a connection to a server has broken off: its replica takes no messages"
                    );
                    return false;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_piece_that_comes_twice_is_written_once_and_none_is_left_out() {
        let (near, mut far) = tokio::io::duplex(64);
        let inflows = Inflows::default();
        let inflow = inflows.add("t".to_owned(), Box::new(near));
        assert!(inflows.write("t", 0, b"a").await);
        assert!(inflows.write("t", 0, b"a").await);
        assert!(!inflows.write("t", 2, b"c").await);
        assert!(inflows.write("t", 1, b"b").await);
        assert!(!inflows.write("other", 0, b"x").await);
        drop(inflow);
        assert!(!inflows.write("t", 2, b"c").await);
        let mut written = String::new();
        far.read_to_string(&mut written).await.unwrap();
        assert_eq!(written, "ab");
    }

    #[tokio::test]
    async fn a_piece_whose_request_ends_goes_on_where_it_was() {
        let (near, mut far) = tokio::io::duplex(4);
        let inflows = Inflows::default();
        let _inflow = inflows.add("t".to_owned(), Box::new(near));
        let cut = inflows.write("t", 0, b"0123456789");
        let cut = tokio::time::timeout(Duration::from_millis(20), cut);
        assert!(cut.await.is_err(), "nothing reads");
        let mut read = [0; 11];
        let pieces = async {
            assert!(inflows.write("t", 0, b"0123456789").await);
            inflows.write("t", 1, b"x").await
        };
        let (is_taken, done) = tokio::join!(pieces, far.read_exact(&mut read));
        assert!(is_taken && done.is_ok());
        assert_eq!(&read, b"0123456789x");
    }

    #[tokio::test]
    async fn blank_lines_show_that_a_connection_lives_but_never_within_a_message() {
        let (near, mut far) = tokio::io::duplex(64);
        let inflows = Inflows::default();
        let inflow = inflows.add("t".to_owned(), Box::new(tokio::io::sink()));
        let mut outflow = Outflow::new(Box::new(near), inflow);
        outflow.beat = Duration::from_millis(20);
        assert_eq!(outflow.next().await.unwrap(), "\n");
        far.write_all(b"{\"a\"").await.unwrap();
        assert_eq!(outflow.next().await.unwrap(), "{\"a\"");
        let rest = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            far.write_all(b":1}\n").await.unwrap();
            far
        };
        let (next, far) = tokio::join!(outflow.next(), rest);
        assert_eq!(next.unwrap(), ":1}\n");
        drop(far);
        assert!(outflow.next().await.is_none());
    }
}
