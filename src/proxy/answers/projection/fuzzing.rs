//! Properties of filters and their data that must hold for any input.

use std::io;

use serde_json::value::RawValue;

use super::worker::{Filter, Stopped, compiled, filtered, passed};
use super::{data_of, shape_of};
use crate::mcp::Object;

/// The output limit of one filter here, in bytes.
const OUTPUT: usize = 64 * 1024;

/// A filter without these names ends soon and needs little memory. The real limits are enforced on the worker
/// process, which a fuzzer does not have.
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

/// The first line is a filter; the rest is a tool's result or data. The filter is compiled, and run if it certainly
/// ends.
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
        // Compiling it must not panic.
        let _ = compiled(filter);
    }
    // The simplest filter returns the data. It is compiled once, because that takes longer than everything else here.
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
