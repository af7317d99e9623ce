//! What must hold of filters and of the data they are given.

use std::io;

use serde_json::value::RawValue;

use super::worker::{Filter, Stopped, compiled, filtered, passed};
use super::{data_of, shape_of};
use crate::mcp::Object;

/// What one filter may put out here, in bytes.
const OUTPUT: usize = 64 * 1024;

/// A filter that has none of these ends soon, and needs little: the real limits are those of its process, which a fuzzer
/// does not have.
const ENDLESS: &[&str] = &[
    "def",
    "recurse",
    "repeat",
    "while",
    "until",
    "range",
    "limit",
    "combinations",
    "..",
    "reduce",
    "foreach",
    "input",
];
const LARGE: &[&str] = &[
    "*", "path", "=", "[", "implode", "splits", "sub(", "tojson", "@", "ltrim", "rtrim", "{",
];

/// A filter on the first line, a tool's result or data in the rest: the filter is read, and run where it ends for sure.
pub(crate) fn select(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (filter, json) = text.split_once('\n').unwrap_or((text, "null"));
    if let Ok(raw) = serde_json::from_str::<&RawValue>(json) {
        let shape = shape_of(raw);
        assert!(
            !shape.is_empty() && shape.chars().count() <= 1000,
            "{} characters",
            shape.chars().count()
        );
        if let Some(found) = Object::parse(raw).ok().as_ref().and_then(data_of) {
            assert!(!shape_of(&found).is_empty());
        }
    }
    let is_tame = filter.len() <= 64
        && !ENDLESS
            .iter()
            .chain(LARGE)
            .any(|word| filter.contains(word));
    if is_tame {
        let mut output = Bounded(Vec::new());
        match filtered(filter, json.as_bytes(), &mut output) {
            Ok(()) | Err(Stopped::Output(_)) => {}
            Err(Stopped::Filter(words)) => assert!(!words.is_empty(), "a refusal has a reason"),
        }
    } else {
        // Read and compiled it is all the same.
        let _ = compiled(filter);
    }
    // The simplest filter gives the data. Reading it takes longer than all else here, and is done once.
    thread_local!(static SAME: Filter = compiled(".").expect("it is jq"));
    let mut same = Vec::new();
    if !json.trim_start().starts_with('"')
        && SAME
            .with(|filter| passed(filter, json.as_bytes(), &mut same))
            .is_ok()
    {
        let mut twice = Vec::new();
        SAME.with(|filter| passed(filter, &same, &mut twice))
            .unwrap_or_else(|error| panic!("{error:?}: {}", String::from_utf8_lossy(&same)));
        assert_eq!(same, twice, "what was put out is data that reads the same");
    }
}

struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
