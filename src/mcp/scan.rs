//! Finds the top-level `id` of a message that cannot be parsed: too long, truncated, or not JSON.
//!
//! The sender waits for a response to that message, so it is better to fail it by its id than to leave it waiting.
//! The scan takes the bytes in pieces, so a line over the size limit need not be kept.

use serde_json::value::RawValue;

use super::RequestId;

const MAX_ID: usize = 256;

/// Tracks strings and nesting in a message's bytes, and records the value of its top-level `id`.
#[derive(Debug, Default)]
pub(crate) struct IdScan {
    depth: u64,
    in_string: bool,
    escaped: bool,
    /// The last top-level string, cut to `MAX_ID` bytes; a key if a colon follows.
    text: Vec<u8>,
    /// The bytes of the id after its key; complete at the next `,` or `}`.
    id: Option<Vec<u8>>,
    complete: bool,
}

impl IdScan {
    /// Finds the id in a whole line.
    pub(crate) fn of(line: &[u8]) -> Option<RequestId> {
        let mut scan = Self::default();
        scan.feed(line);
        scan.id()
    }

    /// Scans the next piece.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.complete {
                return;
            }
            self.step(byte);
        }
    }

    /// The id, if it was found.
    pub(crate) fn id(&self) -> Option<RequestId> {
        let json = std::str::from_utf8(self.id.as_deref().filter(|_| self.complete)?).ok()?;
        RequestId::parse(serde_json::from_str::<&RawValue>(json.trim()).ok()?)
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.step_in_string(byte);
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.id.is_none() {
                    self.text.clear();
                } else {
                    self.note(byte);
                }
            }
            b'{' | b'[' => {
                self.depth += 1;
                if self.id.is_some() {
                    self.id = None;
                }
            }
            b'}' | b']' if self.depth <= 1 => self.complete = self.id.is_some(),
            b'}' | b']' => self.depth -= 1,
            b',' if self.depth == 1 && self.id.is_some() => self.complete = true,
            b':' if self.depth == 1 && self.text == b"id" && self.id.is_none() => {
                self.id = Some(Vec::new());
            }
            b',' | b':' => self.text.clear(),
            _ => self.note(byte),
        }
    }

    fn step_in_string(&mut self, byte: u8) {
        let ends = byte == b'"' && !self.escaped;
        self.escaped = byte == b'\\' && !self.escaped;
        self.in_string = !ends;
        if self.id.is_some() {
            self.note(byte);
        } else if self.depth == 1 && !ends && self.text.len() < MAX_ID {
            self.text.push(byte);
        }
    }

    fn note(&mut self, byte: u8) {
        if let Some(id) = &mut self.id
            && self.depth == 1
            && id.len() < MAX_ID
        {
            id.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        assert_eq!(
            IdScan::of(line.as_bytes()).as_ref().map(RequestId::as_json),
            expected,
            "{line}"
        );
        let mut scan = IdScan::default();
        line.as_bytes().chunks(1).for_each(|piece| scan.feed(piece));
        assert_eq!(
            scan.id().as_ref().map(RequestId::as_json),
            expected,
            "{line} in pieces"
        );
    }

    #[test]
    fn the_top_level_id_is_found_wherever_it_stands() {
        check(
            r#"{"jsonrpc":"2.0","id":12,"method":"m","params":{"broken"#,
            Some("12"),
        );
        check(
            r#"{"jsonrpc":"2.0", "id" : "a\"b,}" , "result":{{{"#,
            Some(r#""a\"b,}""#),
        );
        check(r#"{"params":{"id":1,"x":[{"id":2}]},"id":3}"#, Some("3"));
        check(r#"{"note":"\"id\":9","id":-4}"#, Some("-4"));
        check(r#"{"x":"id","id":5,"y":6}"#, Some("5"));
    }

    #[test]
    fn what_is_no_id_is_not_taken_for_one() {
        check(r#"{"params":{"id":1}}"#, None);
        check(r#"{"id":{"a":1},"b":2}"#, None);
        check(r#"{"id":nonsense}"#, None);
        check(r#"{"id":12"#, None);
        check("", None);
        check("garbage \"id\":1,", None);
    }
}
