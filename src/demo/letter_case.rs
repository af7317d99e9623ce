//! Comparison with letter case aside.
//!
//! A text in lower case may have another length than before (`İ`), so a place found there is none in the original. These
//! compare letter by letter and answer in bytes of the original.

/// How many bytes at the beginning of `text` are `wanted`, letter case aside; `None` when it begins otherwise.
pub(super) fn prefix_length(text: &str, wanted: &str) -> Option<usize> {
    let mut wanted = wanted.chars().flat_map(char::to_lowercase).peekable();
    for (at, c) in text.char_indices() {
        if wanted.peek().is_none() {
            return Some(at);
        }
        for lower in c.to_lowercase() {
            if wanted.next() != Some(lower) {
                return None;
            }
        }
    }
    wanted.peek().is_none().then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_has_the_length_of_the_text_it_stands_for() {
        assert_eq!(prefix_length("İx", "i\u{307}"), Some(2));
        assert_eq!(prefix_length("ÄB", "äb"), Some(3));
        assert_eq!(prefix_length("ab", "abc"), None);
        assert_eq!(prefix_length("ab", ""), Some(0));
    }
}
