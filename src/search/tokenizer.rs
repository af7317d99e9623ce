//! Splitting text into words, the same way for the index and for a query.
//!
//! Identifiers fall into their words (`createIssue`, `create_issue`, `HTTPServer`), digits stay with the letters before
//! them (`base64`, `s3`). Scripts written without spaces give single characters and pairs of neighbours, so that they
//! are found without a dictionary. Everything is in lower case and without accents; the stemmed form is English, which
//! leaves other languages' words mostly alone.

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RawTokenizer, Stemmer, TextAnalyzer, Token, TokenStream, Tokenizer,
    TokenizerManager,
};

/// The analyzer of ranked fields, as named in the index's schema.
pub(super) const STEMS: &str = "stems";
/// The analyzer of the vocabulary that typos are repaired against.
pub(super) const WORDS: &str = "words";

/// Splits at identifier and script boundaries; changes no letter.
#[derive(Clone, Default)]
struct Splitter {
    token: Token,
}

/// The pieces of one text, from the front.
struct Pieces<'a> {
    text: &'a str,
    at: usize,
    /// A character of an unspaced script was given alone; its pair with the next one is due.
    pair: Option<char>,
    token: &'a mut Token,
}

/// Both analyzers, for an index to find by name.
pub(super) fn analyzers() -> TokenizerManager {
    // The default ones are there for fields that are one term.
    let manager = TokenizerManager::default();
    manager.register(WORDS, words());
    manager.register(STEMS, stems());
    manager
}

fn words() -> TextAnalyzer {
    TextAnalyzer::builder(Splitter::default()).filter(LowerCaser).filter(AsciiFoldingFilter).build()
}

fn stems() -> TextAnalyzer {
    TextAnalyzer::builder(Splitter::default())
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .filter(Stemmer::new(Language::English))
        .build()
}

/// The words of `text` in lower case, not stemmed.
pub(super) fn split(text: &str) -> Vec<String> {
    collect(&mut words(), text)
}

/// The stem of a word that [`split`] gave.
pub(super) fn stem(word: &str) -> String {
    let mut whole = TextAnalyzer::builder(RawTokenizer::default()).filter(Stemmer::new(Language::English)).build();
    collect(&mut whole, word).concat()
}

/// A name without case and separators: `create_issue`, `createIssue` and `Create Issue` are one.
pub(super) fn compact(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn collect(analyzer: &mut TextAnalyzer, text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    analyzer.token_stream(text).process(&mut |token| tokens.push(token.text.clone()));
    tokens
}

impl Tokenizer for Splitter {
    type TokenStream<'a> = Pieces<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Pieces<'a> {
        self.token.reset();
        Pieces { text, at: 0, pair: None, token: &mut self.token }
    }
}

impl TokenStream for Pieces<'_> {
    fn advance(&mut self) -> bool {
        self.token.text.clear();
        if let (Some(first), Some(second)) = (self.pair.take(), self.peek().filter(|c| is_unspaced(*c))) {
            self.token.text.extend([first, second]);
            return self.emit();
        }
        while let Some(c) = self.peek() {
            if is_unspaced(c) {
                self.at += c.len_utf8();
                self.pair = Some(c);
                self.token.text.push(c);
                return self.emit();
            }
            if c.is_alphanumeric() {
                self.word();
                return self.emit();
            }
            self.at += c.len_utf8();
        }
        false
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

impl Pieces<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn emit(&mut self) -> bool {
        self.token.position = self.token.position.wrapping_add(1);
        true
    }

    /// Takes one word, up to the next boundary.
    fn word(&mut self) {
        let mut before = None;
        let mut chars = self.text[self.at..].chars().peekable();
        while let Some(c) = chars.next() {
            if is_accent(c) {
                self.at += c.len_utf8();
                continue;
            }
            let lower_follows = chars.peek().is_some_and(|next| next.is_lowercase());
            if !c.is_alphanumeric() || is_unspaced(c) || before.is_some_and(|b| is_boundary(b, c, lower_follows)) {
                return;
            }
            self.at += c.len_utf8();
            self.token.text.push(c);
            before = Some(c);
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
        for name in ["create_issue", "createIssue", "create-issue", "Create Issue"] {
            assert_eq!(compact(name), "createissue");
        }
    }
}
