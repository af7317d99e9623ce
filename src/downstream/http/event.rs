//! Outgoing messages as one JSON text or as an event with or without an id, around the payloads' own bytes.

use std::collections::VecDeque;
use std::fmt;

use bytes::{Bytes, BytesMut};

use crate::mcp::Frame;
use crate::mcp::frame::one_line;

/// The size from which a payload is written without a copy; smaller ones are copied together.
const COPY_BELOW: usize = 16 * 1024;

/// The id of an event: the number of its stream, which is unique in the process, and the event's number in the
/// stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

impl EventId {
    /// Parses `STREAM-NUMBER`; `None` for any other text, including other spellings of the numbers.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        let id = Self {
            stream: stream.parse().ok()?,
            number: number.parse().ok()?,
        };
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.number)
    }
}

/// Writes a message as an event.
pub(super) fn event(frame: Frame, id: Option<EventId>) -> VecDeque<Bytes> {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    let head = [id.as_bytes(), b"event: message\ndata: ", &frame.head].concat();
    let mut tail = frame.tail;
    tail.extend_from_slice(b"\n\n");
    pieces(head, one_line(frame.body), tail)
}

/// An event without a message. It gives the client an id to resume from before any message has arrived.
pub(super) fn priming_event(id: EventId) -> Bytes {
    format!("id: {id}\ndata: \n\n").into()
}

/// Copies small parts together; a large payload stays as it is.
pub(super) fn pieces(head: Vec<u8>, body: Bytes, tail: Vec<u8>) -> VecDeque<Bytes> {
    if body.len() >= COPY_BELOW {
        return VecDeque::from([head.into(), body, tail.into()]);
    }
    let mut all = BytesMut::with_capacity(head.len() + body.len() + tail.len());
    [&head[..], &body, &tail]
        .into_iter()
        .for_each(|part| all.extend_from_slice(part));
    VecDeque::from([all.freeze()])
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
            text(event(frame("{\r\n}".to_owned()), None)),
            "event: message\ndata: <{  }>\n\n"
        );
        let large = "x".repeat(COPY_BELOW);
        let id = EventId {
            stream: 3,
            number: 7,
        };
        let pieces = event(frame(large.clone()), Some(id));
        assert_eq!(pieces.len(), 3);
        assert_eq!(
            text(pieces),
            format!("id: 3-7\nevent: message\ndata: <{large}>\n\n")
        );
    }

    #[test]
    fn only_the_ids_that_are_given_out_are_read() {
        let id = EventId {
            stream: 3,
            number: 0,
        };
        assert_eq!(EventId::parse(&id.to_string()), Some(id));
        for text in [
            "",
            "-",
            "3",
            "3-",
            "-0",
            "+3-0",
            "03-0",
            "3-0-0",
            "3--1",
            "3-0 ",
            "a-b",
            "99999999999999999999-0",
        ] {
            assert_eq!(EventId::parse(text), None, "{text:?}");
        }
    }
}
