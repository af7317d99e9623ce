//! An estimate of the tokens that a text costs an agent.
//!
//! A tokenizer's tables take longer to load than a search takes, and a result only has to stay under its limit. The
//! estimate is tuned against o200k to be slightly high (`crates/bench/examples/signature_tokens.rs` prints by how
//! much).

/// Estimates the o200k tokens of `text`, rather high than low.
pub(super) fn estimate(text: &str) -> usize {
    let mut tokens = 0;
    let mut run = Run::Space;
    let mut length = 0;
    for c in text.chars() {
        let next = Run::of(c);
        // `maxResults` is two words, `HTTP` is one.
        let same = next == run || (next == Run::Lower && run == Run::Upper && length == 1);
        if !same {
            tokens += run.cost(length);
            length = 0;
        }
        run = next;
        length += 1;
    }
    tokens + run.cost(length)
}

/// The bytes of a long text that are examined.
const SAMPLE: usize = 128 * 1024;

/// Estimates the o200k tokens of `text`; for a long text, extrapolates from its beginning.
#[must_use]
pub fn tokens_of(text: &str) -> usize {
    if text.len() <= SAMPLE {
        return estimate(text);
    }
    let end = (0..=SAMPLE)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    // Neither factor can overflow.
    estimate(&text[..end]) * (text.len() / 1024) / (end / 1024).max(1)
}

/// A run of characters of one kind; tokens rarely cross its borders.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Lower,
    Upper,
    Digit,
    Mark,
    Space,
    Line,
    Letter,
    Wide,
}

impl Run {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Digit,
            '\n' => Self::Line,
            ' ' => Self::Space,
            '…' | '!'..='~' => Self::Mark,
            '\u{2e80}'.. => Self::Wide,
            _ => Self::Letter,
        }
    }

    fn cost(self, length: usize) -> usize {
        match self {
            Self::Lower => 1 + length / 11,
            Self::Upper => length.div_ceil(2),
            Self::Digit => length.div_ceil(3),
            Self::Mark => length.div_ceil(3),
            // A single space belongs to the word that follows it.
            Self::Space => usize::from(length > 1),
            Self::Line => 1,
            Self::Letter => length.div_ceil(3),
            Self::Wide => length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_marks_and_wide_characters_count() {
        for (text, at_least, at_most) in [
            ("", 0, 0),
            ("Create a new issue in a repository.", 8, 9),
            ("github__create_issue(owner: string, repo: string)", 9, 14),
            ("查询余票信息", 3, 6),
            ("maxResultsPerPage", 3, 5),
        ] {
            let tokens = estimate(text);
            assert!((at_least..=at_most).contains(&tokens), "{text}: {tokens}");
        }
    }
}
