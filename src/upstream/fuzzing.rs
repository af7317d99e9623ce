//! Properties of the upstream parsers that must hold for any input.

use super::transport::http::events::{Event, Parser, Resumption};

pub(crate) use super::oauth::fuzzing::oauth;

/// An event stream, in pieces whose size the first byte sets: the events equal those of the stream in one piece.
/// Under a limit, no event exceeds it, and the parser's buffer stays bounded.
pub(crate) fn sse(data: &[u8]) {
    const LIMIT: usize = 48;
    let Some((first, stream)) = data.split_first() else {
        return;
    };
    let size = usize::from(*first % 40) + 1;
    let whole = read(stream, stream.len().max(1), usize::MAX / 4);
    assert_eq!(read(stream, size, usize::MAX / 4), whole);
    assert_eq!(read(stream, 1, usize::MAX / 4), whole);
    let (limited, _) = read(stream, size, LIMIT);
    for event in limited {
        if let Event::Message { data, .. } = event {
            assert!(data.len() <= LIMIT, "{} bytes", data.len());
            let is_known = |event: &Event| matches!(event, Event::Message { data: known, .. } if *known == data);
            assert!(
                whole.0.iter().any(is_known),
                "an event was made up: {data:?}"
            );
        }
    }
}

fn read(stream: &[u8], size: usize, limit: usize) -> (Vec<Event>, Resumption) {
    let mut parser = Parser::new(limit, Resumption::default());
    let mut events = Vec::new();
    for piece in stream.chunks(size) {
        parser.feed(piece);
        while let Some(event) = parser.next() {
            if let Event::Message { data, .. } = &event {
                assert!(
                    !data.contains(&b'\n') && !data.contains(&b'\r') && !data.is_empty(),
                    "{data:?} is no line"
                );
            }
            events.push(event);
        }
        assert!(
            parser.held() <= limit.saturating_mul(2).saturating_add(size),
            "{} bytes are held",
            parser.held()
        );
    }
    (events, parser.resumption().clone())
}
