//! A connection between two replicas to the process of a server: what the server writes is the body of a response, and what goes to it comes in
//! numbered letters.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::replicas::{Content, Replicas};
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

/// The attempts to send a piece, and the pause between two.
const ATTEMPTS: u64 = 3;
const PAUSE: Duration = Duration::from_millis(200);

type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The directions to the processes of connections of other replicas, by the names of these.
#[derive(Debug, Clone, Default)]
pub(super) struct Inflows(Arc<Mutex<HashMap<String, Arc<Inflow>>>>);

/// The direction to the process: the number of the next piece, and where it goes.
struct Inflow(tokio::sync::Mutex<(u64, Writer)>);

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
        let inflow = Arc::new(Inflow(tokio::sync::Mutex::new((0, writer))));
        self.0.lock().insert(tunnel.clone(), inflow);
        Inflowing {
            all: self.clone(),
            tunnel,
        }
    }

    /// Writes the next piece, or nothing if it has come before. Returns whether the connection can go on.
    pub(super) async fn write(&self, tunnel: &str, number: u64, body: &[u8]) -> bool {
        let inflow = self.0.lock().get(tunnel).cloned();
        let Some(inflow) = inflow else { return false };
        let mut inflow = inflow.0.lock().await;
        let (next, writer) = &mut *inflow;
        if number != *next {
            return number < *next;
        }
        // If the request ends while it is written, the connection cannot go on.
        *next = u64::MAX;
        let is_written = writer.write_all(body).await.is_ok();
        if is_written {
            *next = number + 1;
        }
        is_written
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

    /// Sends a piece, again if it may not have arrived. Returns whether the connection can go on.
    async fn send(&self, number: u64, piece: &[u8]) -> bool {
        for attempt in 1..=ATTEMPTS {
            let content = Content::Piece {
                tunnel: self.tunnel.clone(),
                number,
            };
            match self.replicas.send(&self.replica, content, piece).await {
                Ok(response) => return response.status().is_success(),
                Err(error) if attempt == ATTEMPTS => {
                    tracing::debug!(replica = self.replica, %error, "a connection to a server has broken off");
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        false
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
