//! Reading newline-delimited messages, as stdio carries them, with a size limit.

use std::io;

use bytes::{Bytes, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::RequestId;
use super::scan::IdScan;
use super::widen::{FOLLOWING, LARGE};

/// The capacity that is requested for a read. Small messages share a chunk; for a large one the buffer doubles as it
/// grows.
const CHUNK: usize = 64 * 1024;

/// Reads lines from a byte stream. Bytes that were read but not returned yet stay here, so a dropped `next` loses
/// nothing.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    reader: R,
    buffer: BytesMut,
    /// The length of the prefix of `buffer` that is known to contain no line end.
    scanned: usize,
    limit: usize,
    oversized: Option<Oversized>,
    /// The number of stream bytes that were returned or discarded.
    position: u64,
    /// Whether the buffer has grown for a large message. It is freed when no message follows within `FOLLOWING`; otherwise a connection
    /// would keep the memory of its largest message.
    is_grown: bool,
    /// Called with `true` when large messages begin, and with `false` when they end.
    widen: fn(&R, bool),
    ended: bool,
}

/// One line.
#[derive(Debug)]
pub(crate) enum Line {
    /// A message, without its line end; never blank.
    Message(Bytes),
    /// A line beyond the limit; it was read to its end and discarded.
    TooLong {
        /// The size in bytes.
        length: u64,
        /// The id of the message, if it could be found.
        id: Option<RequestId>,
    },
}

#[derive(Debug, Default)]
struct Oversized {
    length: u64,
    scan: IdScan,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Creates a reader of lines of at most `limit` bytes.
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            oversized: None,
            position: 0,
            is_grown: false,
            widen: |_, _| {},
            ended: false,
        }
    }

    /// Sets the function that is called with `true` when large messages begin, and with `false` when no more follow.
    #[must_use]
    pub(crate) fn with_widening(self, widen: fn(&R, bool)) -> Self {
        Self { widen, ..self }
    }

    /// The position in the stream after the last returned line and its line end.
    #[must_use]
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next line; `None` at the end of the stream. A last line without a line end counts.
    ///
    /// # Cancel safety
    /// Dropping the future loses no input.
    ///
    /// # Errors
    /// When reading fails.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            while let Some(at) = memchr(b'\n', &self.buffer[self.scanned..]) {
                let mut line = self.buffer.split_to(self.scanned + at + 1);
                self.position += line.len() as u64;
                line.truncate(line.len() - 1);
                self.scanned = 0;
                if line.len() > LARGE {
                    self.grow();
                }
                if let Some(line) = self.finish(line) {
                    return Ok(Some(line));
                }
            }
            self.scanned = self.buffer.len();
            if self.ended {
                let line = self.buffer.split();
                self.position += line.len() as u64;
                self.scanned = 0;
                return Ok(self.finish(line));
            }
            if self.scanned > self.limit || self.oversized.is_some() {
                self.discard();
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        if self.is_grown && self.buffer.is_empty() {
            // Boxed because it is rare. A dropped read has read nothing.
            let following = Box::pin(tokio::time::timeout(FOLLOWING, self.read())).await;
            match following {
                Ok(read) => return read,
                Err(_) => {
                    (self.buffer, self.is_grown) = (BytesMut::new(), false);
                    (self.widen)(&self.reader, false);
                }
            }
        }
        self.read().await
    }

    fn grow(&mut self) {
        if !self.is_grown {
            self.is_grown = true;
            (self.widen)(&self.reader, true);
        }
    }

    async fn read(&mut self) -> io::Result<()> {
        if self.buffer.len() > LARGE {
            self.grow();
        }
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 4 {
            self.buffer.reserve(CHUNK.max(self.buffer.len()));
        }
        self.ended = self.reader.read_buf(&mut self.buffer).await? == 0;
        Ok(())
    }

    /// Discards the buffered part of a line that is too long, after scanning it for the id.
    fn discard(&mut self) {
        let oversized = self.oversized.get_or_insert_default();
        oversized.length += self.buffer.len() as u64;
        self.position += self.buffer.len() as u64;
        oversized.scan.feed(&self.buffer);
        self.buffer.clear();
        self.scanned = 0;
    }

    fn finish(&mut self, line: BytesMut) -> Option<Line> {
        if let Some(mut oversized) = self.oversized.take() {
            oversized.scan.feed(&line);
            return Some(Line::TooLong {
                length: oversized.length + line.len() as u64,
                id: oversized.scan.id(),
            });
        }
        if line.len() > self.limit {
            return Some(Line::TooLong {
                length: line.len() as u64,
                id: IdScan::of(&line),
            });
        }
        let line = line.freeze();
        let trimmed = line.trim_ascii();
        (!trimmed.is_empty()).then(|| Line::Message(line.slice_ref(trimmed)))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<String> {
        let mut reader = LineReader::new(input, limit);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            lines.push(match line {
                Line::Message(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Line::TooLong { length, id } => format!("too long: {length} {id:?}"),
            });
        }
        lines
    }

    #[tokio::test]
    async fn lines_end_where_they_should() {
        assert_eq!(lines(b"a\n\r\n  \nb\r\nc", 100).await, ["a", "b", "c"]);
        assert!(lines(b"", 100).await.is_empty());
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_dropped_and_named_and_the_next_one_is_read() {
        let long = format!("{{\"id\":7,\"x\":\"{}\"}}", "y".repeat(300_000));
        let input = format!("{long}\nnext\n");
        assert_eq!(
            lines(input.as_bytes(), 1000).await,
            [format!("too long: {} Some(7)", long.len()), "next".into()]
        );
        let short = "z".repeat(1001);
        assert_eq!(
            lines(format!("{short}\nnext").as_bytes(), 1000).await,
            ["too long: 1001 None", "next"]
        );
    }

    #[tokio::test]
    async fn a_large_line_within_the_limit_comes_whole() {
        let long = "x".repeat(1_000_000);
        assert_eq!(
            lines(format!("{long}\n").as_bytes(), 2_000_000).await,
            [long]
        );
    }

    #[tokio::test]
    async fn the_room_of_a_large_line_is_let_go_when_nothing_follows() {
        thread_local!(static TOLD: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) });
        let (mut near, far) = tokio::io::duplex(64 * 1024);
        let mut reader = LineReader::new(far, 2_000_000)
            .with_widening(|_, is_large| TOLD.with_borrow_mut(|told| told.push(is_large)));
        let long = format!("{}\n", "x".repeat(1_000_000));
        for _ in 0..2 {
            let (written, line) = tokio::join!(near.write_all(long.as_bytes()), reader.next());
            written.unwrap();
            assert!(matches!(line.unwrap(), Some(Line::Message(line)) if line.len() == 1_000_000));
            assert!(reader.is_grown);
        }
        assert_eq!(TOLD.take(), [true], "once, however many come");
        assert!(
            tokio::time::timeout(2 * FOLLOWING, reader.next())
                .await
                .is_err()
        );
        assert!(!reader.is_grown && reader.buffer.capacity() <= 2 * CHUNK);
        assert_eq!(TOLD.take(), [false]);
        let (written, line) = tokio::join!(near.write_all(b"short\n"), reader.next());
        written.unwrap();
        assert!(matches!(line.unwrap(), Some(Line::Message(line)) if line == "short"));
    }
}
