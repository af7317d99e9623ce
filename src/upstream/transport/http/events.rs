//! Parser of server-sent events, for all HTTP transports.
//!
//! Input arrives in pieces that may cut events anywhere. An event over the size limit is read to its end and dropped;
//! only its size and the id of its message are kept. If an event exceeds twice the limit, the stream ends.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use memchr::memchr2;
use reqwest::Response;

use super::body::{Broken, next_chunk};
use super::error::words;
use crate::mcp::frame::one_line;
use crate::mcp::{IdScan, RequestId};

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::upstream) enum Event {
    /// An event with data, which is on one line.
    Message {
        /// Its `event`; empty for a plain message.
        kind: String,
        /// The `data`.
        data: Bytes,
    },
    /// An event whose data exceed the limit.
    TooLarge {
        /// The size of the data in bytes.
        length: u64,
        /// The id of the message, if it could be found.
        id: Option<RequestId>,
    },
}

/// Reads the events of a response.
#[derive(Debug)]
pub(in crate::upstream) struct EventStream {
    response: Response,
    parser: Parser,
}

/// The position and the delay for resuming a stream that breaks off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::upstream) struct Resumption {
    /// The `id` of the last event that had one.
    pub(in crate::upstream) last_id: Option<String>,
    /// The server's `retry`.
    pub(in crate::upstream) pause: Option<Duration>,
}

/// The parser: takes bytes, returns events.
#[derive(Debug)]
pub(in crate::upstream) struct Parser {
    input: BytesMut,
    /// The length of the prefix of `input` that is known to contain no line end.
    scanned: usize,
    /// Whether the last line ended in CR, so that a following LF belongs to it.
    after_return: bool,
    is_first_line: bool,
    /// Whether the beginning of the current line was already discarded. Then its rest ends no event, even if it is
    /// empty.
    is_line_cut: bool,
    kind: String,
    data: Data,
    resumption: Resumption,
    limit: usize,
}

/// The data lines of the current event.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    /// A single line, as most events have; it is not copied.
    Line(Bytes),
    Lines(BytesMut),
    Dropped {
        length: u64,
        scan: Box<IdScan>,
    },
}

impl EventStream {
    /// Reads the events of `response`, with at most `limit` bytes of data each; `resumption` is that of the previous
    /// stream.
    pub(in crate::upstream) fn new(
        response: Response,
        limit: usize,
        resumption: Resumption,
    ) -> Self {
        Self {
            response,
            parser: Parser::new(limit, resumption),
        }
    }

    /// The next event; `None` at the end of the stream.
    ///
    /// # Cancel safety
    /// Dropping the future loses no input.
    pub(in crate::upstream) async fn next(&mut self) -> Result<Option<Event>, Broken> {
        loop {
            if let Some(event) = self.parser.next() {
                return Ok(Some(event));
            }
            if let Some(length) = self.parser.endless() {
                return Err(Broken::TooLarge(length));
            }
            match next_chunk(&mut self.response).await {
                Ok(Some(chunk)) => self.parser.feed(&chunk),
                Ok(None) => return Ok(None),
                Err(error) => return Err(Broken::Lost(words(error))),
            }
        }
    }

    /// The position at which to resume after its end.
    pub(in crate::upstream) fn resumption(&self) -> &Resumption {
        &self.parser.resumption
    }
}

impl Parser {
    pub(in crate::upstream) fn new(limit: usize, resumption: Resumption) -> Self {
        Self {
            input: BytesMut::new(),
            scanned: 0,
            after_return: false,
            is_first_line: true,
            is_line_cut: false,
            kind: String::new(),
            data: Data::None,
            resumption,
            limit,
        }
    }

    pub(in crate::upstream) fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    pub(in crate::upstream) fn next(&mut self) -> Option<Event> {
        loop {
            if self.after_return && !self.input.is_empty() {
                if self.input[0] == b'\n' {
                    let _ = self.input.split_to(1);
                }
                self.after_return = false;
            }
            let Some(at) = memchr2(b'\n', b'\r', &self.input[self.scanned..]) else {
                self.scanned = self.input.len();
                if self.scanned > self.limit || matches!(self.data, Data::Dropped { .. }) {
                    self.drop_input();
                }
                return None;
            };
            let mut line = self.input.split_to(self.scanned + at + 1);
            self.scanned = 0;
            self.after_return = line.ends_with(b"\r");
            line.truncate(line.len() - 1);
            if let Some(event) = self.line(line.freeze()) {
                return Some(event);
            }
        }
    }

    fn line(&mut self, mut line: Bytes) -> Option<Event> {
        if std::mem::take(&mut self.is_first_line) && line.starts_with("\u{feff}".as_bytes()) {
            line = line.slice(3..);
        }
        let is_line_cut = std::mem::take(&mut self.is_line_cut);
        if let Data::Dropped { length, scan } = &mut self.data
            && (is_line_cut || !line.is_empty())
        {
            *length += line.len() as u64;
            scan.feed(&line);
            return None;
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = memchr::memchr(b':', &line).unwrap_or(line.len());
        let mut value = line.slice((colon + 1).min(line.len())..);
        if value.starts_with(b" ") {
            value = value.slice(1..);
        }
        match &line[..colon] {
            b"data" => self.data(value),
            b"event" => self.kind = String::from_utf8_lossy(&value).into_owned(),
            b"id" if !value.contains(&0) => {
                let id = String::from_utf8_lossy(&value).into_owned();
                self.resumption.last_id = Some(id).filter(|id| !id.is_empty());
            }
            b"retry" => {
                let milliseconds = std::str::from_utf8(&value)
                    .ok()
                    .and_then(|digits| digits.parse().ok());
                self.resumption.pause = milliseconds
                    .map(Duration::from_millis)
                    .or(self.resumption.pause);
            }
            _ => {}
        }
        None
    }

    fn data(&mut self, value: Bytes) {
        self.data = match std::mem::take(&mut self.data) {
            Data::None => Data::Line(value),
            Data::Line(first) => {
                let mut lines = BytesMut::with_capacity(first.len() + value.len() + 1);
                lines.extend_from_slice(&first);
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&value);
                Data::Lines(lines)
            }
            Data::Lines(mut lines) => {
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&value);
                Data::Lines(lines)
            }
            dropped @ Data::Dropped { .. } => dropped,
        };
        let length = match &self.data {
            Data::Line(line) => line.len(),
            Data::Lines(lines) => lines.len(),
            Data::None | Data::Dropped { .. } => 0,
        };
        if length > self.limit {
            self.drop_data();
        }
    }

    /// Discards a line that is too long already.
    fn drop_input(&mut self) {
        self.drop_data();
        if let Data::Dropped { length, scan } = &mut self.data {
            let piece = &self.input[..];
            let piece = if *length == 0 {
                piece.strip_prefix(b"data:").unwrap_or(piece)
            } else {
                piece
            };
            let piece = if *length == 0 {
                piece.strip_prefix(b" ").unwrap_or(piece)
            } else {
                piece
            };
            *length += piece.len() as u64;
            scan.feed(piece);
        }
        self.is_line_cut |= !self.input.is_empty();
        // Its memory is freed, because the stream may last long.
        self.input = BytesMut::new();
        self.scanned = 0;
    }

    fn drop_data(&mut self) {
        if matches!(self.data, Data::Dropped { .. }) {
            return;
        }
        let mut scan = Box::<IdScan>::default();
        let length = match std::mem::take(&mut self.data) {
            Data::Line(line) => {
                scan.feed(&line);
                line.len()
            }
            Data::Lines(lines) => {
                scan.feed(&lines);
                lines.len()
            }
            Data::None | Data::Dropped { .. } => 0,
        };
        self.data = Data::Dropped {
            length: length as u64,
            scan,
        };
    }

    /// The size of an event that is too long to wait for its end.
    fn endless(&self) -> Option<u64> {
        match self.data {
            Data::Dropped { length, .. } => {
                Some(length).filter(|length| *length > 2 * self.limit as u64)
            }
            _ => None,
        }
    }

    /// The buffered bytes of an incomplete event.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(in crate::upstream) fn held(&self) -> usize {
        let data = match &self.data {
            Data::Line(line) => line.len(),
            Data::Lines(lines) => lines.len(),
            Data::None | Data::Dropped { .. } => 0,
        };
        self.input.len() + data
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(in crate::upstream) fn resumption(&self) -> &Resumption {
        &self.resumption
    }

    /// The event that ends at an empty line; `None` if it has no data.
    fn dispatch(&mut self) -> Option<Event> {
        let kind = std::mem::take(&mut self.kind);
        let data = match std::mem::take(&mut self.data) {
            Data::None => return None,
            Data::Line(line) => line,
            Data::Lines(lines) => lines.freeze(),
            Data::Dropped { length, scan } => {
                return Some(Event::TooLarge {
                    length,
                    id: scan.id(),
                });
            }
        };
        let data = one_line(data);
        let trimmed = data.trim_ascii();
        (!trimmed.is_empty()).then(|| Event::Message {
            kind,
            data: data.slice_ref(trimmed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 100;

    fn read(input: &[u8], piece: usize) -> (Vec<String>, Resumption) {
        let mut parser = Parser::new(LIMIT, Resumption::default());
        let mut events = Vec::new();
        for bytes in input.chunks(piece) {
            parser.feed(bytes);
            while let Some(event) = parser.next() {
                events.push(match event {
                    Event::Message { kind, data } => {
                        format!("{kind}|{}", String::from_utf8_lossy(&data))
                    }
                    Event::TooLarge { length, id } => format!("too large: {length} {id:?}"),
                });
            }
        }
        (events, parser.resumption)
    }

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(
                read(input.as_bytes(), piece).0,
                expected,
                "{input:?} in pieces of {piece}"
            );
        }
    }

    #[test]
    fn events_come_however_they_are_cut() {
        check("data: a\n\ndata:b\n\n", &["|a", "|b"]);
        check("data: a\r\n\r\ndata: b\r\rdata: c\n\n", &["|a", "|b", "|c"]);
        check("\u{feff}event: endpoint\ndata: /x\n\n", &["endpoint|/x"]);
        check("data: {\ndata:  \"a\": 1\ndata: }\n\n", &["|{  \"a\": 1 }"]);
        check(
            ": comment\n\nevent: ping\n\ndata\n\ndata: \n\ndata: x\n\n",
            &["|x"],
        );
        check("data: half", &[]);
        check("data: unfinished\n", &[]);
    }

    #[test]
    fn an_event_over_the_limit_is_dropped_and_named() {
        let long = format!("{{\"id\":7,\"x\":\"{}\"}}", "y".repeat(300));
        check(
            &format!("data:{long}\n\ndata: next\n\n"),
            &[&format!("too large: {} Some(7)", long.len()), "|next"],
        );
        let lines = format!(
            "data: {{\"id\":8,\ndata: \"x\":\"{}\"\n\ndata: next\n\n",
            "y".repeat(90)
        );
        let (events, _) = read(lines.as_bytes(), 10);
        assert!(
            events[0].starts_with("too large: ") && events[0].ends_with("Some(8)"),
            "{events:?}"
        );
        assert_eq!(events[1], "|next");
    }

    #[test]
    fn the_rest_of_an_event_over_the_limit_is_no_event_of_its_own() {
        // The piece ends with the line's content, before the line end.
        for start in ["data: ", ": a comment "] {
            let first = format!("{start}{}", "y".repeat(LIMIT));
            let mut parser = Parser::new(LIMIT, Resumption::default());
            parser.feed(first.as_bytes());
            assert_eq!(parser.next(), None);
            parser.feed(b"\ndata: the rest\n\ndata: next\n\n");
            assert!(matches!(parser.next(), Some(Event::TooLarge { .. })));
            let next = Event::Message {
                kind: String::new(),
                data: Bytes::from_static(b"next"),
            };
            assert_eq!((parser.next(), parser.next()), (Some(next), None));
        }
    }

    #[test]
    fn an_event_that_does_not_end_is_given_up() {
        let mut parser = Parser::new(LIMIT, Resumption::default());
        for _ in 0..LIMIT / 10 * 2 {
            parser.feed(b"data: 0123");
            assert_eq!((parser.next(), parser.endless()), (None, None));
        }
        parser.feed(b"data: 0123");
        assert_eq!(parser.next(), None);
        assert!(
            parser
                .endless()
                .is_some_and(|length| length > 2 * LIMIT as u64)
        );
    }

    #[test]
    fn a_stream_says_where_it_goes_on() {
        let input = b"id: 1\nretry: 250\ndata: a\n\nid: 2\ndata:\n\nretry: soon\nid: \0\n\n";
        let expected = Resumption {
            last_id: Some("2".to_owned()),
            pause: Some(Duration::from_millis(250)),
        };
        assert_eq!(read(input, 4).1, expected);
    }
}
