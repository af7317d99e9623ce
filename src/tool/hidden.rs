//! Characters that hide or rearrange text.

/// Whether `c` is invisible or changes how other characters are displayed: it reverses the writing direction, has no
/// width, is blank without being a space, breaks a line, is a tag, or has no form but that of a font (private use). Control
/// characters are left to the caller, because some are line ends, and so are the two variation selectors of emoji.
#[must_use]
pub(crate) fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' | '\u{13430}'..='\u{1343f}'
        | '\u{fffe}'..='\u{ffff}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

/// Whether `c` is a variation selector of emoji, between these two characters, without one that it could select.
#[must_use]
pub(crate) fn selects_nothing(before: char, c: char, next: Option<char>) -> bool {
    const KEYCAP: char = '\u{20e3}';
    let is_selector = |c: char| matches!(c, '\u{fe0e}' | '\u{fe0f}');
    let is_emoji = matches!(before, '\u{2139}' | '\u{24c2}' | '\u{1f170}'..='\u{1f189}');
    let is_text = before.is_ascii() || before.is_alphanumeric() && !is_emoji;
    is_selector(c) && (is_selector(before) || is_text && next != Some(KEYCAP))
}
