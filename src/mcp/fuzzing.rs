//! Properties of message parsing and framing that must hold for any input.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, ReadBuf};

use super::frame::one_line;
use super::object::quoted;
use super::object::text;
use super::{
    Envelope, Frame, IdScan, Line, LineReader, Malformed, Message, Object, Outcome, RequestId,
    Response,
};

/// Parses a line from a peer: payloads are slices of it, and `IdScan` finds the id that the parser finds.
pub(crate) fn envelope(line: &[u8]) {
    check_response(line);
    match Envelope::parse(line) {
        Ok(Envelope::Single(message)) => {
            check_message(line, &message);
            let found = IdScan::of(line);
            assert!(
                found.is_none() || found.as_ref() == id_of(&message),
                "the scan found {found:?} in {message:?}"
            );
        }
        Ok(Envelope::Batch(messages)) => {
            for raw in messages {
                assert!(
                    within(line, raw.get().as_bytes()),
                    "an element of the batch was copied"
                );
                match Message::parse(raw) {
                    Ok(message) => check_message(line, &message),
                    Err(malformed) => check_malformed(&malformed),
                }
            }
        }
        Err(malformed) => check_malformed(&malformed),
    }
    let whole = IdScan::of(line);
    for size in [1, 3, 16] {
        let mut scan = IdScan::default();
        line.chunks(size).for_each(|piece| scan.feed(piece));
        assert_eq!(scan.id(), whole, "in pieces of {size}");
    }
}

/// A response that is read in one pass is what the parser makes of it.
fn check_response(line: &[u8]) {
    let mut strings = 0;
    let Some(read) = Response::read(line, |_| strings += 1) else {
        return;
    };
    let Ok(Envelope::Single(Message::Response {
        id: Some(id),
        outcome: Outcome::Result(result),
    })) = Envelope::parse(line)
    else {
        panic!(
            "no response with a result: {}",
            String::from_utf8_lossy(line)
        );
    };
    assert_eq!(id.as_integer(), Some(read.id));
    assert_eq!(result.get().as_bytes(), read.result);
    // An escaped backslash begins no number.
    let has_numbered = result.get().replace(r"\\", "").contains(r"\u");
    assert!(read.has_numbered || !has_numbered);
    assert!(strings >= 4);
}

/// Reads a stream of lines in pieces whose size the first byte sets: the lines equal those read at once, and none
/// exceeds the limit.
pub(crate) fn lines(data: &[u8]) {
    const LIMIT: usize = 64;
    let Some((first, stream)) = data.split_first() else {
        return;
    };
    let whole = read(stream, stream.len().max(1), LIMIT);
    let pieces = read(stream, usize::from(*first % 40) + 1, LIMIT);
    assert_eq!(pieces, whole);
    let mut expected = stream
        .split(|byte| *byte == b'\n')
        .filter(|line| line.len() > LIMIT || !line.trim_ascii().is_empty());
    for line in &whole {
        let expected = expected.next().expect("no line was made up");
        match line {
            Read::Message(bytes) => assert_eq!(bytes, expected.trim_ascii()),
            Read::TooLong(length, id) => {
                assert_eq!(*length, expected.len() as u64);
                assert_eq!(*id, IdScan::of(expected));
            }
        }
    }
    assert!(expected.next().is_none(), "a line was lost");
}

/// Splices into an object: bytes outside the splice are unchanged. The first line is text.
pub(crate) fn splice(data: &[u8]) {
    let Ok(data) = std::str::from_utf8(data) else {
        return;
    };
    let (key, json) = data.split_once('\n').unwrap_or(("", data));
    let told = quoted(key);
    let raw: &RawValue = serde_json::from_str(&told).expect("quoted text is JSON");
    assert_eq!(
        text(raw).as_deref(),
        Some(key),
        "text is quoted so that it comes back"
    );
    assert!(!told.contains(['\n', '\r']));
    let line = one_line(Bytes::copy_from_slice(json.as_bytes()));
    assert!(line.len() == json.len() && !line.contains(&b'\n') && !line.contains(&b'\r'));
    let Ok(raw) = serde_json::from_str::<&RawValue>(json) else {
        return;
    };
    let Ok(object) = Object::parse(raw) else {
        return;
    };
    check_result(raw, key);
    check_members(&object, key, &told);
}

/// A result with inserted members: these come first, then the object's own, byte for byte.
fn check_result(raw: &RawValue, key: &str) {
    let id = serde_json::from_str(&quoted(key))
        .ok()
        .and_then(RequestId::parse)
        .expect("text is an id");
    let own = raw.get();
    for members in ["", r#""resultType":"complete""#] {
        let frame = Frame::result(&id, members, Bytes::copy_from_slice(own.as_bytes()));
        let whole = [&frame.head[..], &frame.body, &frame.tail].concat();
        assert_eq!(frame.len(), whole.len());
        let Ok(Envelope::Single(Message::Response {
            id: back,
            outcome: Outcome::Result(result),
        })) = Envelope::parse(&whole)
        else {
            panic!("no result: {}", String::from_utf8_lossy(&whole));
        };
        assert_eq!(back.as_ref(), Some(&id));
        let rest = own[1..].trim_ascii_start();
        let comma = if members.is_empty() || rest == "}" {
            ""
        } else {
            ","
        };
        let expected = if members.is_empty() {
            own.to_owned()
        } else {
            format!("{{{members}{comma}{rest}")
        };
        assert_eq!(result.get(), expected);
    }
}

/// An object with a member replaced, added or removed: all others keep their bytes and order.
fn check_members(object: &Object<'_>, key: &str, told: &str) {
    let others = |object: &Object<'_>| -> Vec<(String, String)> {
        let pairs = object
            .members()
            .iter()
            .zip(object.iter())
            .filter(|(_, (name, _))| name != key);
        pairs
            .map(|((raw_key, raw), _)| (raw_key.get().to_owned(), raw.get().to_owned()))
            .collect()
    };
    let before = others(object);
    let with = object.with(key, told);
    let raw: &RawValue = serde_json::from_str(&with).expect("an object with a member is JSON");
    let with = Object::parse(raw).expect("an object with a member is one");
    assert_eq!(others(&with), before);
    assert_eq!(with.text(key).as_deref(), Some(key));
    let without = object.without(key);
    let raw: &RawValue =
        serde_json::from_str(&without).expect("an object without a member is JSON");
    let without = Object::parse(raw).expect("an object without a member is one");
    assert_eq!(others(&without), before);
    assert!(without.get(key).is_none());
}

fn check_message(line: &[u8], message: &Message<'_>) {
    let payload = match message {
        Message::Request(request) => request.params,
        Message::Notification { params, .. } => *params,
        Message::Response {
            outcome: Outcome::Result(raw) | Outcome::Error(raw),
            ..
        } => Some(*raw),
    };
    if let Some(payload) = payload {
        assert!(
            within(line, payload.get().as_bytes()),
            "a payload was copied"
        );
    }
    if let Some(id) = id_of(message) {
        check_id(id);
    }
}

/// A malformed message can always be answered.
fn check_malformed(malformed: &Malformed) {
    let answer = Frame::error(
        malformed.id.as_ref(),
        malformed.code,
        &malformed.reason,
        None,
    );
    assert_eq!(answer.error_code(), Some(malformed.code));
    if let Some(id) = &malformed.id {
        check_id(id);
    }
}

fn check_id(id: &RequestId) {
    let raw = serde_json::from_str(id.as_json()).expect("an id is JSON");
    assert_eq!(RequestId::parse(raw).as_ref(), Some(id));
}

fn id_of<'m>(message: &'m Message<'_>) -> Option<&'m RequestId> {
    match message {
        Message::Request(request) => Some(&request.id),
        Message::Notification { .. } => None,
        Message::Response { id, .. } => id.as_ref(),
    }
}

/// Whether `part` is a slice of `whole`, not a copy.
fn within(whole: &[u8], part: &[u8]) -> bool {
    let (whole, part) = (whole.as_ptr_range(), part.as_ptr_range());
    whole.start <= part.start && part.end <= whole.end
}

#[derive(Debug, PartialEq)]
enum Read {
    Message(Vec<u8>),
    TooLong(u64, Option<RequestId>),
}

fn read(stream: &[u8], size: usize, limit: usize) -> Vec<Read> {
    let mut reader = LineReader::new(Pieces { rest: stream, size }, limit);
    let mut lines = Vec::new();
    loop {
        let next = pin!(reader.next());
        let Poll::Ready(line) = next.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("memory does not let anybody wait");
        };
        match line.expect("memory can be read") {
            Some(Line::Message(bytes)) => lines.push(Read::Message(bytes.to_vec())),
            Some(Line::TooLong { length, id }) => lines.push(Read::TooLong(length, id)),
            None => return lines,
        }
    }
}

/// A reader that returns a few bytes at a time.
struct Pieces<'a> {
    rest: &'a [u8],
    size: usize,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let length = self.size.min(self.rest.len()).min(buffer.remaining());
        let (piece, rest) = self.rest.split_at(length);
        buffer.put_slice(piece);
        self.rest = rest;
        Poll::Ready(Ok(()))
    }
}
