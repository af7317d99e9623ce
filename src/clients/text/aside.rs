//! Parts of a JSON text that are not parsed and stay unchanged byte for byte: other data of Claude Code in the file of
//! its servers, which may be hundreds of times as large as they are, and texts with an unpaired surrogate, which
//! JavaScript reads and writes and no `String` can hold.
//!
//! A placeholder stands for each in the text that is read and edited. It is made from the part's hash, so equal parts
//! have equal placeholders.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde::de::IgnoredAny;
use sha2::{Digest as _, Sha256};

/// The beginning of a placeholder, and its end.
const START: &str = "(kept as it is: ";
const END: char = ')';

/// Shorter values are parsed.
const LARGE: usize = 256;

/// The parts that are set aside, by placeholder.
#[derive(Debug, Default)]
pub(super) struct Aside {
    whole: Arc<String>,
    parts: HashMap<String, Range<usize>>,
}

/// Whether a text is a placeholder.
pub(in crate::clients) fn is_mark(text: &str) -> bool {
    text.starts_with(START) && text.ends_with(END)
}

impl Aside {
    /// Returns the text with placeholders, and the parts. With `only_servers`, large values that are not about
    /// servers, tools or permissions are set aside as well.
    pub(super) fn of(whole: &Arc<String>, only_servers: bool) -> (String, Self) {
        let mut ranges = Vec::new();
        if only_servers {
            let start = whole.find('{').unwrap_or(whole.len());
            collect(whole, start, &mut ranges);
        }
        if whole.contains("\\ud") || whole.contains("\\uD") {
            let mut gaps = Vec::new();
            let mut at = 0;
            for range in &ranges {
                gaps.push(at..range.start);
                at = range.end;
            }
            gaps.push(at..whole.len());
            for gap in gaps {
                halves(whole, gap, &mut ranges);
            }
            ranges.sort_by_key(|range| range.start);
        }
        let mut aside = Self {
            whole: Arc::clone(whole),
            parts: HashMap::new(),
        };
        let (mut short, mut at) = (String::new(), 0);
        for range in ranges {
            let part = &whole[range.clone()];
            let hash = HEXLOWER.encode(&Sha256::digest(part)[..16]);
            let mark = format!("{START}{} bytes, {hash}{END}", part.len());
            short.push_str(&whole[at..range.start]);
            short.push_str(&format!("\"{mark}\""));
            at = range.end;
            aside.parts.insert(mark, range);
        }
        short.push_str(&whole[at..]);
        (short, aside)
    }

    /// The text with the parts in place of their placeholders.
    pub(super) fn restore(&self, short: &str) -> String {
        if self.parts.is_empty() {
            return short.to_owned();
        }
        let mut text = String::with_capacity(self.whole.len() + short.len() / 8);
        let mut rest = short;
        while let Some(at) = rest.find(START) {
            let end = rest[at..].find(END).map_or(rest.len(), |end| at + end + 1);
            match self.parts.get(&rest[at..end]) {
                // The quotes around it belong to the placeholder.
                Some(range) => {
                    text.push_str(&rest[..at - 1]);
                    text.push_str(&self.whole[range.clone()]);
                    rest = &rest[end + 1..];
                }
                None => {
                    text.push_str(&rest[..end]);
                    rest = &rest[end..];
                }
            }
        }
        text.push_str(rest);
        text
    }
}

/// Whether the value of a key may be about servers or their permissions.
fn is_about_servers(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["mcp", "tool", "permission", "hook", "project", "plugin"]
        .iter()
        .any(|word| key.contains(word))
}

/// The large values of the object at `start`, and of each of its `projects`, that are not about servers.
fn collect(text: &str, start: usize, ranges: &mut Vec<Range<usize>>) {
    for (key, value) in members(text, start) {
        let is_object = text[value.clone()].starts_with('{');
        if &text[key.clone()] == "projects" && is_object {
            for (_, project) in members(text, value.start) {
                if text[project.clone()].starts_with('{') {
                    collect(text, project.start, ranges);
                }
            }
        } else if value.len() >= LARGE
            && !is_about_servers(&text[key])
            // An invalid value is left for the parser to report.
            && serde_json::from_str::<IgnoredAny>(&text[value.clone()]).is_ok()
        {
            ranges.push(value);
        }
    }
}

/// The members of the object at `start`: each key without its quotes, and the value.
fn members(text: &str, start: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = start + 1;
    loop {
        at = skip_gap(bytes, at);
        if bytes.get(at) != Some(&b'"') {
            return found;
        }
        let end = string_end(bytes, at);
        let key = at + 1..end.saturating_sub(1).max(at + 1);
        at = skip_gap(bytes, end);
        if bytes.get(at) != Some(&b':') {
            return found;
        }
        let value = skip_gap(bytes, at + 1);
        at = value_end(bytes, value);
        if at == value || !text.is_char_boundary(at) {
            return found;
        }
        found.push((key, value..at));
        at = skip_gap(bytes, at);
        if bytes.get(at) != Some(&b',') {
            return found;
        }
        at += 1;
    }
}

/// The position after spaces and comments.
fn skip_gap(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match bytes.get(at) {
            Some(b' ' | b'\t' | b'\r' | b'\n') => at += 1,
            Some(b'/') => match comment_end(bytes, at) {
                Some(end) => at = end,
                None => return at,
            },
            _ => return at,
        }
    }
}

fn comment_end(bytes: &[u8], at: usize) -> Option<usize> {
    let kind = bytes.get(at + 1)?;
    let rest = &bytes[at + 2..];
    let (end, length) = match kind {
        b'/' => (rest.iter().position(|byte| *byte == b'\n'), 1),
        b'*' => (rest.windows(2).position(|two| two == b"*/"), 2),
        _ => return None,
    };
    Some(end.map_or(bytes.len(), |end| at + 2 + end + length))
}

/// The position after the string whose quote is at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The position after the value at `at`.
fn value_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => (depth, at) = (depth + 1, at + 1),
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => (depth, at) = (depth - 1, at + 1),
            b',' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return at,
            b'/' => at = comment_end(bytes, at).unwrap_or(at + 1),
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// The strings in a part of a text that contain an unpaired surrogate.
fn halves(text: &str, part: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = part.start;
    while at < part.end {
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at).min(part.end);
                if has_half(&bytes[at..end]) {
                    ranges.push(at..end);
                }
                at = end;
            }
            b'/' => at = comment_end(bytes, at).unwrap_or(at + 1),
            _ => at += 1,
        }
    }
}

/// Whether a JSON string contains an unpaired surrogate.
fn has_half(string: &[u8]) -> bool {
    let unit = |at: usize| {
        let escape = string.get(at..at + 6)?;
        let digits = std::str::from_utf8(escape.strip_prefix(b"\\u")?).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut at = 0;
    while at < string.len() {
        if string[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => return true,
            _ => at += 2,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_to_the_byte() {
        let large = "x".repeat(LARGE);
        for (text, count) in [
            (String::new(), 0),
            ("{\"a\": 1".to_owned(), 0),
            (format!("{{\"a\": \"{large}\"}}"), 1),
            (
                format!("\u{feff}{{\"a\": \"{large}\", /* }} */ \"b\": [\"{large}\"], // {{\n}}"),
                2,
            ),
            (
                format!("{{\"a\": \"{large}\", \"b\": [1,,\"{large}\"]}}"),
                1,
            ),
            (format!("{{\"mcpServers\": {{\"a\": \"{large}\"}}}}"), 0),
            (
                format!(
                    "{{\"projects\": {{\"/a\": {{\"h\": \"{large}\\ud800\", \"n\": {{}}}}, \"/b\": 1}}}}"
                ),
                1,
            ),
            (
                r#"{"a": "\ud83d\ude00", "b": "\ude00\ud83d", "\\\ud83d": "\\ud83d"}"#.to_owned(),
                2,
            ),
            (format!("[{START}1)]"), 0),
        ] {
            let whole = Arc::new(text.clone());
            let (short, aside) = Aside::of(&whole, true);
            assert_eq!(aside.restore(&short), text);
            assert_eq!(aside.parts.len(), count, "{short}");
        }
    }
}
