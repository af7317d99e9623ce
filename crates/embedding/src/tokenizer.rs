//! Splits a text into pieces, like BERT's uncased tokenizer, as far as texts of tools and queries need it.
//!
//! Letters lose case and accents. Every character that is neither a letter nor a digit is a word, and so are Chinese
//! characters. A word is split into the longest pieces in the vocabulary. Unlike in the original, any sign separates
//! words, including those that Unicode calls symbols. Otherwise an arrow or a smiley next to a word would make the
//! whole word unknown.

use crate::asset::Vocabulary;

/// Maximum length of a word.
const LONGEST_WORD: usize = 100;

/// The prefix in the vocabulary of a piece that continues a word.
const CONTINUED: &str = "##";

/// The letters from U+00C0 to U+017F without their accents. A blank means that there is nothing to remove.
const BASES: &str = "aaaaaa ceeeeiiii nooooo  uuuuy  aaaaaa ceeeeiiii nooooo  uuuuy yaaaaaaccccccccdd  eeeeeeeeeegggggggghh  \
iiiiiiiii   jjkk llllll    nnnnnn   oooooo  rrrrrrsssssssstttt  uuuuuuuuuuuuwwyyyzzzzzz ";

/// The ids of `text`'s pieces, between those that mark the beginning and the end. The total is cut to `limit`.
pub(crate) fn pieces(vocabulary: &Vocabulary, text: &str, limit: usize) -> Vec<u32> {
    let mut ids = vec![vocabulary.first];
    let mut word = String::new();
    for c in text.chars() {
        if ids.len() >= limit {
            break;
        }
        if c.is_whitespace() {
            flush(vocabulary, &mut word, &mut ids);
        } else if is_invisible(c) {
            // Neither a separator nor part of a word.
        } else if is_alone(c) {
            flush(vocabulary, &mut word, &mut ids);
            word.extend(c.to_lowercase());
            flush(vocabulary, &mut word, &mut ids);
        } else {
            word.extend(c.to_lowercase().filter(|c| !is_accent(*c)).map(base));
        }
    }
    flush(vocabulary, &mut word, &mut ids);
    ids.truncate(limit.saturating_sub(1).max(1));
    ids.push(vocabulary.last);
    ids
}

/// Appends the pieces of `word` and empties it.
fn flush(vocabulary: &Vocabulary, word: &mut String, ids: &mut Vec<u32>) {
    let before = ids.len();
    let mut key = String::new();
    let mut start = 0;
    while start < word.len() {
        let longest = longest(vocabulary, &word[start..], start > 0, &mut key);
        let Some((length, id)) = longest.filter(|_| word.chars().count() <= LONGEST_WORD) else {
            ids.truncate(before);
            ids.push(vocabulary.unknown);
            break;
        };
        ids.push(id);
        start += length;
    }
    word.clear();
}

/// The longest piece at the start of `rest`: its length in `rest`, and its id.
fn longest(
    vocabulary: &Vocabulary,
    rest: &str,
    is_continued: bool,
    key: &mut String,
) -> Option<(usize, u32)> {
    key.clear();
    if is_continued {
        key.push_str(CONTINUED);
    }
    let prefix = key.len();
    key.push_str(rest);
    while key.len() > prefix {
        if let Some(id) = vocabulary.find(key) {
            return Some((key.len() - prefix, id));
        }
        key.pop();
    }
    None
}

/// A combining accent.
fn is_accent(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

/// Whether a character is a word of its own: a sign, or a character of a script without spaces that the model knows in
/// this way.
fn is_alone(c: char) -> bool {
    let is_chinese = matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2ffff}');
    is_chinese || !(c.is_alphanumeric() || is_accent(c))
}

/// Control characters, marks of direction and of joining, and the replacement character.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fffd}')
}

fn base(c: char) -> char {
    let Some(at) = u32::from(c).checked_sub(0xc0) else {
        return c;
    };
    match BASES.as_bytes().get(at as usize) {
        None | Some(b' ') => c,
        Some(letter) => char::from(*letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_accents_is_aligned() {
        assert_eq!(BASES.len(), 0x180 - 0xc0);
        for (accented, plain) in [
            "àa", "çc", "ÿy", "ñn", "öo", "ßß", "øø", "ææ", "ăa", "čc", "ěe", "łł", "ńn", "őo",
            "řr", "šs", "ťt", "űu", "ŵw", "źz", "žz", "ıı", "ŋŋ", "đđ", "××",
        ]
        .map(|pair| {
            let mut c = pair.chars();
            (c.next().unwrap(), c.next().unwrap())
        }) {
            assert_eq!(base(accented), plain, "{accented}");
        }
    }
}
