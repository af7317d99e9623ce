//! Reads a response in one pass: it is checked, its result is found, and the caller sees the end of each string.
//!
//! A result may have many megabytes. A pass to check it and one for each word that decides what is done with it took most of the time that mcpzip
//! added to it (`docs/performance.md`).

use wide::u8x16;

/// The bytes that are compared at once.
const BLOCK: usize = 64;

/// A response with a result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response<'a> {
    /// The id of the request.
    pub(crate) id: i64,
    /// The result, in its original bytes: JSON.
    pub(crate) result: &'a [u8],
    /// Whether a letter in some string is written by its number.
    pub(crate) has_numbered: bool,
}

impl<'a> Response<'a> {
    /// Reads `line`, and calls `ended` for each string with all bytes before its closing quote. `None` for everything but a plain response that
    /// has a result and an integer as its id, and also for a few forms of those: `Envelope::parse` reads everything.
    pub(crate) fn read(line: &'a [u8], ended: impl FnMut(&[u8])) -> Option<Self> {
        // Without control characters, none is in a string, and every space is a space.
        if has_control(line) || std::str::from_utf8(line).is_err() {
            return None;
        }
        let mut pass = Pass {
            bytes: line,
            at: 0,
            has_numbered: false,
            containers: Vec::new(),
            block: usize::MAX,
            marks: 0,
            ended,
        };
        let (id, result) = pass.message()?;
        Some(Self {
            id,
            result,
            has_numbered: pass.has_numbered,
        })
    }
}

/// A bracket that has been opened and not closed.
#[derive(Clone, Copy)]
enum Container {
    Object,
    Array,
}

/// A pass over JSON without control characters. Its functions return `None` for what is not JSON.
struct Pass<'a, F> {
    bytes: &'a [u8],
    at: usize,
    has_numbered: bool,
    containers: Vec<Container>,
    /// The latest block in which a string was passed, and the places in it of quotes and backslashes, a bit for each.
    block: usize,
    marks: u64,
    ended: F,
}

impl<'a, F: FnMut(&[u8])> Pass<'a, F> {
    fn message(&mut self) -> Option<(i64, &'a [u8])> {
        let (mut version, mut id, mut result) = (None, None, None);
        self.space();
        self.expect(b'{')?;
        loop {
            let key = self.key()?;
            self.space();
            let start = self.at;
            self.value()?;
            let value = &self.bytes[start..self.at];
            let slot = match key {
                b"jsonrpc" => &mut version,
                b"id" => &mut id,
                b"result" => &mut result,
                // An escape may make one of the other names.
                _ if matches!(key, b"method" | b"error" | b"params") || key.contains(&b'\\') => {
                    return None;
                }
                _ => &mut None,
            };
            if slot.replace(value).is_some() {
                return None;
            }
            self.space();
            match self.next()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        self.space();
        let is_all = self.at == self.bytes.len();
        let id = std::str::from_utf8(id?).ok()?.parse().ok()?;
        (is_all && version == Some(br#""2.0""#.as_slice())).then_some((id, result?))
    }

    /// Passes a value.
    fn value(&mut self) -> Option<()> {
        loop {
            self.space();
            let is_opened = match self.next()? {
                b'{' => self.open(Container::Object, b'}')?,
                b'[' => self.open(Container::Array, b']')?,
                b'"' => self.string().map(|_| false)?,
                b't' => self.word(b"rue")?,
                b'f' => self.word(b"alse")?,
                b'n' => self.word(b"ull")?,
                b'-' => {
                    let first = self.next()?;
                    self.number(first)?
                }
                first => self.number(first)?,
            };
            if is_opened {
                continue;
            }
            loop {
                let Some(container) = self.containers.last().copied() else {
                    return Some(());
                };
                self.space();
                match (self.next()?, container) {
                    (b',', Container::Array) => break,
                    (b',', Container::Object) => {
                        self.key()?;
                        break;
                    }
                    (b']', Container::Array) | (b'}', Container::Object) => {
                        self.containers.pop();
                    }
                    _ => return None,
                }
            }
        }
    }

    /// Enters a container, up to its first value; `false` if it has none.
    fn open(&mut self, container: Container, end: u8) -> Option<bool> {
        self.space();
        if self.bytes.get(self.at) == Some(&end) {
            self.at += 1;
            return Some(false);
        }
        self.containers.push(container);
        if matches!(container, Container::Object) {
            self.key()?;
        }
        Some(true)
    }

    /// Passes a key and its colon; returns the key as it is written.
    fn key(&mut self) -> Option<&'a [u8]> {
        self.space();
        self.expect(b'"')?;
        let key = self.string()?;
        self.space();
        self.expect(b':')?;
        Some(key)
    }

    /// Passes the rest of a string; returns it as it is written.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        loop {
            let at = self.mark()?;
            if self.bytes[at] == b'"' {
                self.at = at + 1;
                (self.ended)(&self.bytes[..at]);
                return Some(&self.bytes[start..at]);
            }
            match self.bytes.get(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at = at + 2,
                b'u' => {
                    let digits = self.bytes.get(at + 2..at + 6)?;
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return None;
                    }
                    self.has_numbered = true;
                    self.at = at + 6;
                }
                _ => return None,
            }
        }
    }

    /// The place of the next quote or backslash.
    fn mark(&mut self) -> Option<usize> {
        let mut block = self.at / BLOCK;
        let mut passed = self.at % BLOCK;
        loop {
            if self.block != block {
                self.marks = marks(self.bytes.get(block * BLOCK..)?);
                self.block = block;
            }
            let rest = self.marks >> passed;
            if rest != 0 {
                return Some(block * BLOCK + passed + rest.trailing_zeros() as usize);
            }
            (block, passed) = (block + 1, 0);
        }
    }

    /// Passes the rest of a number after its first digit; it opens nothing.
    fn number(&mut self, first: u8) -> Option<bool> {
        match first {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return None,
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Some(false)
    }

    fn some_digits(&mut self) -> Option<()> {
        let start = self.at;
        self.digits();
        (self.at > start).then_some(())
    }

    fn digits(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    /// Passes the rest of a word; it opens nothing.
    fn word(&mut self, rest: &[u8]) -> Option<bool> {
        let is_there = self.bytes[self.at..].starts_with(rest);
        self.at += rest.len();
        is_there.then_some(false)
    }

    fn space(&mut self) {
        while self.bytes.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next() == Some(byte)).then_some(())
    }
}

/// Whether a byte is less than that of a space.
fn has_control(bytes: &[u8]) -> bool {
    let (parts, rest) = bytes.as_chunks::<16>();
    let least = (parts.iter()).fold(u8x16::MAX, |least, part| least.min(u8x16::new(*part)));
    least.reduce_min() < b' ' || rest.iter().any(|byte| *byte < b' ')
}

/// The places of quotes and backslashes in the first block of `bytes`, a bit for each.
fn marks(bytes: &[u8]) -> u64 {
    let mut last = [0; BLOCK];
    let block = bytes.first_chunk().unwrap_or_else(|| {
        last[..bytes.len()].copy_from_slice(bytes);
        &last
    });
    let (parts, _) = block.as_chunks::<16>();
    let (quote, backslash) = (u8x16::splat(b'"'), u8x16::splat(b'\\'));
    parts.iter().rev().fold(0, |marks, part| {
        let part = u8x16::new(*part);
        let found = part.simd_eq(quote) | part.simd_eq(backslash);
        marks << 16 | u64::from(found.to_bitmask())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Response<'_>> {
        Response::read(line.as_bytes(), |_| {})
    }

    #[test]
    fn a_plain_response_is_read_and_the_ends_of_its_strings_are_seen() {
        let result = r#"{ "x":[1e400,-0.5E+3,{},[],"b\\\"c",true , null],"u":"\ud83d","é":"" }"#;
        let line = format!(r#" {{"result": {result},"id":-7 ,"jsonrpc":"2.0","more":[false]}} "#);
        let mut ends = Vec::new();
        let found = Response::read(line.as_bytes(), |text| {
            let last: String = String::from_utf8_lossy(text)
                .chars()
                .rev()
                .take(2)
                .collect();
            ends.push(last);
        });
        let expected = Response {
            id: -7,
            result: result.as_bytes(),
            has_numbered: true,
        };
        assert_eq!(found, Some(expected));
        let ends: Vec<String> = ends.iter().map(|end| end.chars().rev().collect()).collect();
        assert_eq!(ends[..4], ["lt", "\"x", "\"c", "\"u"]);
        assert_eq!(ends[5..], ["\"é", ":\"", "id", "pc", ".0", "re"]);
        assert!(
            !read(r#"{"jsonrpc":"2.0","id":1,"result":{"n":"\n"}}"#)
                .unwrap()
                .has_numbered
        );
    }

    #[test]
    fn other_messages_and_faulty_ones_are_left_to_the_parser_of_envelopes() {
        #[track_caller]
        fn check(line: &str) {
            assert_eq!(read(line), None, "{line}");
        }
        for members in [
            r#""id":1"#,
            r#""result":{}"#,
            r#""id":"1","result":{}"#,
            r#""id":1.0,"result":{}"#,
            r#""id":1,"result":{},"error":null"#,
            r#""id":1,"result":{},"method":"m""#,
            r#""id":1,"result":{},"params":1,"params":2"#,
            r#""id":1,"result":{},"\u0065rror":{}"#,
            r#""id":1,"id":1,"result":{}"#,
            r#""id":1,"result":{},"result":{}"#,
        ] {
            check(&format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
        }
        for value in [
            "",
            "{",
            "[",
            "}",
            "{]",
            "[}",
            "[1,]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            "{a:1}",
            "01",
            "1.",
            ".5",
            "-",
            "+1",
            "1e",
            "1e+",
            "tru",
            "nul",
            "truee",
            "\"",
            r#""\x""#,
            r#""\u12g4""#,
            r#""\u12"#,
            "\"\t\"",
            "1 2",
            "'a'",
            "NaN",
        ] {
            check(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{value}}}"#));
        }
        check(r#"{"jsonrpc":"1.0","id":1,"result":{}}"#);
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}} {}"#);
        check(r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#);
        assert_eq!(
            Response::read(
                b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}",
                |_| {}
            ),
            None
        );
    }

    /// Some thousand lines with a few bytes changed: what is read is what the parser of envelopes reads.
    #[test]
    fn changed_lines_are_read_as_the_parser_of_envelopes_reads_them() {
        const BYTES: &[u8] = br#""\\{}[]:,0-.eEu dtfn/"#;
        let line = br#"{"jsonrpc":"2.0", "id":12,"result":{"a":[1.5e-3,0,-7,true,null,"x\ny\u00e9\\"],"b":{},"c":[],"d":{"e":[[]]}}}"#;
        let (mut state, mut count) = (7_usize, 0);
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..20_000 {
            let mut changed = line.to_vec();
            for _ in 0..=random(3) {
                let at = random(changed.len());
                match random(3) {
                    0 => changed[at] = BYTES[random(BYTES.len())],
                    1 => changed.insert(at, BYTES[random(BYTES.len())]),
                    _ => drop(changed.remove(at)),
                }
            }
            crate::mcp::fuzzing::envelope(&changed);
            count += usize::from(Response::read(&changed, |_| {}).is_some());
        }
        assert!((1_000..19_000).contains(&count), "{count} were read");
    }

    #[test]
    fn a_quote_is_found_at_every_distance() {
        for length in 0..200 {
            let letters = "\u{a2}!]#[".chars().cycle().skip(length % 5);
            let text: String = letters.take(length).chain("\\\"".chars()).collect();
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{text}"}}"#);
            let found = read(&line).map(|found| found.result.len());
            assert_eq!(found, Some(text.len() + 2), "{text}");
        }
        assert!(has_control(b"0123456789abcde\x1f") && has_control(b"0123456789abcdef\n"));
        assert!(!has_control("0123456789abcdef \u{ff}".as_bytes()));
    }
}
