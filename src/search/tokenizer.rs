//! Splitting text into words, the same way for the index and for a query.
//!
//! Identifiers are split into their words (`createIssue`, `create_issue`, `HTTPServer`); digits stay with the letters
//! before them (`base64`, `s3`). Scripts without spaces give single characters and pairs of neighbours, so that they
//! are found without a dictionary. Words are in lower case and without accents. Stemming is English and leaves most
//! words of other languages unchanged.

use frostem::{Algorithm, Stemmer};

use super::folding::fold;

/// The words of a text, one at a time, in lower case and not stemmed.
pub(super) struct Words<'a> {
    text: &'a str,
    at: usize,
    /// The last character of an unspaced script, if its pair with the next one has not been returned yet.
    pair: Option<char>,
    word: String,
}

/// The words of `text` in lower case, not stemmed.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = Words::of(text);
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        found.push(word.to_owned());
    }
    found
}

/// The stem of a word that [`split`] gave.
pub(super) fn stem(word: &str) -> String {
    Stemmer::new(Algorithm::English).stem(word).into_owned()
}

/// A name without case and separators: `create_issue`, `createIssue` and `Create Issue` are one.
pub(super) fn compact(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            pair: None,
            word: String::new(),
        }
    }

    /// The next word, borrowed; an iterator could not return it without a copy.
    pub(super) fn next(&mut self) -> Option<&str> {
        self.word.clear();
        if let (Some(first), Some(second)) =
            (self.pair.take(), self.peek().filter(|c| is_unspaced(*c)))
        {
            self.push(first);
            self.push(second);
            return Some(&self.word);
        }
        while let Some(c) = self.peek() {
            if is_unspaced(c) {
                self.at += c.len_utf8();
                self.pair = Some(c);
                self.push(c);
                return Some(&self.word);
            }
            if c.is_alphanumeric() {
                self.take_word();
                return Some(&self.word);
            }
            self.at += c.len_utf8();
        }
        None
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// Takes one word, up to the next boundary.
    fn take_word(&mut self) {
        let mut before = None;
        let mut chars = self.text[self.at..].chars().peekable();
        while let Some(c) = chars.next() {
            if is_accent(c) {
                self.at += c.len_utf8();
                continue;
            }
            let lower_follows = chars.peek().is_some_and(|next| next.is_lowercase());
            if !c.is_alphanumeric()
                || is_unspaced(c)
                || before.is_some_and(|b| is_boundary(b, c, lower_follows))
            {
                return;
            }
            self.at += c.len_utf8();
            self.push(c);
            before = Some(c);
        }
    }

    /// Adds a letter in lower case and without its accent.
    fn push(&mut self, c: char) {
        if c.is_ascii() {
            self.word.push(c.to_ascii_lowercase());
        } else {
            for c in c.to_lowercase().filter(|c| !is_accent(*c)) {
                fold(c, &mut self.word);
            }
        }
    }
}

/// Whether an identifier's next word begins at `c`.
fn is_boundary(before: char, c: char, lower_follows: bool) -> bool {
    c.is_uppercase() && (!before.is_uppercase() || lower_follows)
}

/// A combining accent of a decomposed letter.
fn is_accent(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

/// Letters of scripts that put no spaces between words: Thai to Khmer, kana, Chinese characters.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_falls_into_words() {
        for (text, expected) in [
            ("create_issue", "create issue"),
            ("createIssue", "create issue"),
            ("create-issue.now/again", "create issue now again"),
            ("HTTPServer", "http server"),
            ("getHTTPResponse2", "get http response2"),
            ("encodeBase64", "encode base64"),
            ("s3 EC2 utf8", "s3 ec2 utf8"),
            ("Café Übergröße", "cafe ubergrosse"),
            ("cafe\u{301}s", "cafes"),
            ("İstanbul Ænima ＡＰＩ", "istanbul aenima api"),
            ("查询天气API", "查 查询 询 询天 天 天气 气 api"),
            ("", ""),
            ("--- __ ..", ""),
        ] {
            assert_eq!(split(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn forms_of_a_word_share_a_stem() {
        assert_eq!(stem("repositories"), stem("repository"));
        assert_eq!(stem("creating"), stem("create"));
        assert_ne!(stem("issue"), stem("image"));
        assert_eq!(stem("天气"), "天气");
    }

    #[test]
    fn spellings_of_a_name_are_one() {
        for name in [
            "create_issue",
            "createIssue",
            "create-issue",
            "Create Issue",
        ] {
            assert_eq!(compact(name), "createissue");
        }
    }
}
