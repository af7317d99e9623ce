//! Words of others, made fit to be shown.

use std::fmt::Write as _;

/// A server's words without what a terminal would obey or not show: control characters, and those that turn the
/// direction of writing or take no room.
pub(super) fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        shown
    })
}

/// The same for a text that may have lines.
pub(super) fn printable_lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

/// The characters of `text` that a reader would not see, or would see elsewhere, each once: `U+202E, U+200B`. A line that
/// ends and a tab are nothing hidden.
pub(super) fn hidden_in(text: &str) -> Option<String> {
    let mut found: Vec<char> = Vec::new();
    for c in text.chars().filter(|c| is_hidden(*c) && !matches!(c, '\n' | '\r' | '\t')) {
        if !found.contains(&c) {
            found.push(c);
        }
    }
    let mut names = String::new();
    for c in &found {
        let comma = if names.is_empty() { "" } else { ", " };
        // Writing to a text cannot fail.
        let _ = write!(names, "{comma}U+{:04X}", u32::from(*c));
    }
    (!found.is_empty()).then_some(names)
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_named_once() {
        assert_eq!(hidden_in("two\nlines\tand a tab, caf\u{e9}, \u{1f600}"), None);
        assert_eq!(hidden_in("a\u{202e}b\u{1b}[2J\u{202e}").as_deref(), Some("U+202E, U+001B"));
        assert_eq!(printable_lines("a\u{1b}\nb\u{200b}"), "a\\u{1b}\nb\\u{200b}");
    }
}
