//! Repeatable random numbers, and random JSON: any values and spellings that a server may send.

/// A random number generator (xorshift). A seed always gives the same numbers.
#[derive(Debug)]
pub(crate) struct Random(u64);

/// Numbers that readers change, round or reject.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-0.0",
    "1.0",
    "1E+2",
    "1e-7",
    "0.1e1",
    "1e400",
    "-1e-400",
    "18446744073709551617",
    "9007199254740993",
    "3.141592653589793238462643383279",
    "123456789012345678901234567890.5",
];

/// Parts of strings as they are written in JSON.
const PIECES: &[&str] = &[
    "word",
    " ",
    "é",
    "\\u00e9",
    "\\/",
    "/",
    "\\n",
    "\\\\",
    "\\\"",
    "\\ud83d",
    "\\ud83d\\ude00",
    "😀",
    "\\u0000",
    "{\\\"a\\\":1}",
    "isError",
    "structuredContent",
    "input_required",
    "</x>",
    "日本",
    "\\u2028",
];

const KEYS: &[&str] = &[
    "a", "b", "_meta", "type", "text", "isError", "id", "é", "\\u0061", "", "a b", "x\\\"y",
];

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    /// True once in `chances` times.
    pub(crate) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    /// The result of a tool call.
    pub(crate) fn result(&mut self) -> String {
        let mut members = Vec::new();
        if !self.one_in(12) {
            let blocks: Vec<String> = (0..self.below(4)).map(|_| self.block()).collect();
            members.push(format!(
                "\"content\":{}[{}]",
                self.space(),
                blocks.join(",")
            ));
        }
        if self.one_in(2) {
            members.push(format!("\"structuredContent\":{}", self.value(5)));
        }
        if self.one_in(4) {
            members.push(format!(
                "\"isError\":{}{}",
                self.space(),
                ["true", "false"][self.below(2)]
            ));
        }
        if self.one_in(4) {
            members.push(format!("\"_meta\":{}", self.object(2)));
        }
        if self.one_in(3) {
            let key = self.key();
            members.push(format!("\"later{key}\":{}", self.value(3)));
        }
        if self.one_in(300) {
            members.push(format!(
                "\"deep\":{}{}",
                "[".repeat(5_000),
                "]".repeat(5_000)
            ));
        }
        if self.one_in(400) {
            members.push(format!("\"long\":\"{}\"", "xé\\n".repeat(60_000)));
        }
        let at = self.below(members.len() + 1);
        members.rotate_left(at);
        let (before, after) = (self.space(), self.space());
        format!(
            "{{{before}{}{after}}}",
            members.join(&format!("{},", self.space()))
        )
    }

    fn block(&mut self) -> String {
        let rest = if self.one_in(3) {
            format!(",\"annotations\":{}", self.object(2))
        } else {
            String::new()
        };
        let extra = if self.one_in(5) {
            format!(",\"_meta\":{}", self.object(2))
        } else {
            String::new()
        };
        match self.below(6) {
            0 | 1 => format!(
                "{{\"type\":\"text\",\"text\":{}{rest}{extra}}}",
                self.string()
            ),
            2 => {
                format!("{{\"data\":\"aGk=\",\"type\":\"image\",\"mimeType\":\"image/png\"{rest}}}")
            }
            3 => format!(
                "{{\"type\":\"audio\",\"data\":\"\",\"mimeType\":\"audio/wav\"{rest}{extra}}}"
            ),
            4 => format!(
                "{{\"type\":\"resource\",\"resource\":{{\"uri\":{},\"text\":{}}}{rest}}}",
                self.string(),
                self.string()
            ),
            _ => match self.below(3) {
                0 => format!(
                    "{{\"type\":\"resource_link\",\"uri\":\"x:y\",\"name\":{}{rest}}}",
                    self.string()
                ),
                1 => format!(
                    "{{\"type\":\"of the future\",\"payload\":{}}}",
                    self.value(3)
                ),
                _ => self.value(2),
            },
        }
    }

    fn value(&mut self, depth: usize) -> String {
        match self.below(if depth == 0 { 4 } else { 7 }) {
            0 => NUMBERS[self.below(NUMBERS.len())].to_owned(),
            1 | 2 => self.string(),
            3 => ["true", "false", "null"][self.below(3)].to_owned(),
            4 => {
                let items: Vec<String> =
                    (0..self.below(5)).map(|_| self.value(depth - 1)).collect();
                format!(
                    "[{}{}]",
                    self.space(),
                    items.join(&format!(",{}", self.space()))
                )
            }
            _ => self.object(depth - 1),
        }
    }

    fn object(&mut self, depth: usize) -> String {
        let members: Vec<String> = (0..self.below(5))
            .map(|_| format!("\"{}\"{}:{}", self.key(), self.space(), self.value(depth)))
            .collect();
        format!(
            "{{{}{}}}",
            members.join(&format!("{},", self.space())),
            self.space()
        )
    }

    fn string(&mut self) -> String {
        let pieces: Vec<&str> = (0..self.below(8))
            .map(|_| PIECES[self.below(PIECES.len())])
            .collect();
        format!("\"{}\"", pieces.concat())
    }

    fn key(&mut self) -> &'static str {
        KEYS[self.below(KEYS.len())]
    }

    /// Space that may separate the tokens of a line.
    fn space(&mut self) -> &'static str {
        ["", "", "", " ", "\t", "  "][self.below(6)]
    }
}
