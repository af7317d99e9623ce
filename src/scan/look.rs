//! The look of a text, equal for texts that a reader takes for the same (Unicode Technical Standard 39).

use unicode_normalization::UnicodeNormalization as _;

include!(concat!(env!("OUT_DIR"), "/looks.rs"));

/// `text` with each letter as the one that it looks like; the *skeleton* of the standard.
pub(super) fn look(text: &str) -> String {
    let mut looks = String::with_capacity(text.len());
    for letter in text.nfd() {
        match LOOKS.binary_search_by_key(&letter, |(letter, ..)| *letter) {
            Ok(at) => {
                let (_, start, length) = LOOKS[at];
                looks += &TEXT[usize::from(start)..][..usize::from(length)];
            }
            Err(_) => looks.push(letter),
        }
    }
    looks.nfd().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_looks_as_the_standard_says() {
        for letter in '\0'..=char::MAX {
            let text = format!("a{letter}\u{301}");
            let standard: String = unicode_security::skeleton(&text).collect();
            assert_eq!(look(&text), standard, "{letter:?}");
        }
    }
}
