//! Names that look like others (Unicode Technical Standard 39).

use unicode_security::MixedScript as _;

/// Whether a name has letters of several scripts, as one with a Cyrillic letter among Latin ones.
#[must_use]
pub(super) fn is_disguised(name: &str) -> bool {
    !name.is_ascii() && !name.is_single_script()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_two_scripts_in_a_name_are_found() {
        assert!(is_disguised("re\u{430}d"));
        assert!(!is_disguised("\u{67e5}\u{8be2}") && !is_disguised("read"));
    }
}
