//! Outgoing messages as one JSON text or as an event with or without an id, around the payloads' own bytes.

use std::collections::VecDeque;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{Bytes, BytesMut};

use crate::mcp::frame::one_line;
use crate::mcp::{Frame, RequestId};

/// The size from which a payload is written without a copy; smaller ones are copied together.
const COPY_BELOW: usize = 16 * 1024;

/// The id of an event: the number of its stream, which is unique in the process, and the event's number in the
/// stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

/// The facts in the ids of a stream's events, if there are several replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StreamLabel {
    /// The replica that has the stream.
    pub(super) replica: String,
    /// The id of the request that it answers, as JSON; `None` for the stream of the server's own messages, and for a request whose id
    /// is too long.
    pub(super) request: Option<String>,
}

/// The id of an event of any replica: `REPLICA-STREAM-NUMBER`, and `-REQUEST` in base64url.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedEventId {
    pub(super) id: EventId,
    pub(super) label: StreamLabel,
}

/// The longest id of a request that stands in the ids of events, in bytes.
const LONGEST_REQUEST: usize = 64;

impl StreamLabel {
    /// The label of a stream of `replica`, which answers `request` if it is not that of the server's own messages.
    pub(super) fn new(replica: &str, request: Option<&RequestId>) -> Self {
        let request = request.map(|id| id.as_json().to_owned());
        Self {
            replica: replica.to_owned(),
            request: request.filter(|id| id.len() <= LONGEST_REQUEST),
        }
    }
}

impl NamedEventId {
    /// Parses the form in which it is shown; `None` for any other text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '-');
        let replica = parts.next()?.to_owned();
        let (stream, number) = (parts.next()?, parts.next()?);
        let id = EventId {
            stream: stream.parse().ok()?,
            number: number.parse().ok()?,
        };
        let request = match parts.next() {
            None => None,
            Some(text) => Some(String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?),
        };
        let label = StreamLabel { replica, request };
        let id = Self { id, label };
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for NamedEventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.label.replica, self.id)?;
        match &self.label.request {
            Some(request) => write!(f, "-{}", URL_SAFE_NO_PAD.encode(request)),
            None => Ok(()),
        }
    }
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
pub(super) fn event(frame: Frame, id: Option<&str>) -> VecDeque<Bytes> {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    let head = [id.as_bytes(), b"event: message\ndata: ", &frame.head].concat();
    let mut tail = frame.tail;
    tail.extend_from_slice(b"\n\n");
    pieces(head, one_line(frame.body), tail)
}

/// An event without a message. It gives the client an id to resume from before any message has arrived.
pub(super) fn priming_event(id: &str) -> Bytes {
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
        let pieces = event(frame(large.clone()), Some(&id.to_string()));
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

    #[test]
    fn the_id_of_an_event_names_its_replica_and_the_request_that_it_answers() {
        let request = RequestId::parse(serde_json::from_str("\"a-b\"").unwrap()).unwrap();
        for request in [None, Some(&request)] {
            let id = NamedEventId {
                id: EventId {
                    stream: 3,
                    number: 7,
                },
                label: StreamLabel::new("0a", request),
            };
            assert_eq!(NamedEventId::parse(&id.to_string()), Some(id.clone()));
            assert_eq!(EventId::parse(&id.to_string()), None);
        }
        for text in ["", "3-7", "0a-3-07", "0a-3-7-", "0a-3-7-!", "0a-3"] {
            let parsed = NamedEventId::parse(text);
            assert!(
                parsed.is_none_or(|id| id.label.request.as_deref() == Some("")),
                "{text}"
            );
        }
        let long = format!("\"{}\"", "x".repeat(LONGEST_REQUEST));
        let long = RequestId::parse(serde_json::from_str(&long).unwrap()).unwrap();
        assert_eq!(StreamLabel::new("0a", Some(&long)).request, None);
    }
}
