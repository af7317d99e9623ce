//! Characters that hide or rearrange text.

/// Whether `c` is invisible or changes how other characters are displayed: it reverses the writing direction, has no
/// width, or is a tag. Control characters are left to the caller, because some are line ends.
#[must_use]
pub(crate) fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
