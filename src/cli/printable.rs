//! Escapes characters in texts of servers that a terminal would obey or hide.

use crate::tool::selects_nothing;

/// Escapes control characters, invisible characters and those that change the direction of writing. `printable` in
/// `web/src/printable.ts` does the same.
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if is_hidden(c) || selects_nothing(before, c, rest.peek().copied()) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        before = c;
    }
    shown
}

/// Escapes such characters in a text of several lines. Line breaks and tabs stay.
pub(super) fn printable_lines(text: &str) -> String {
    let lines = text.split_inclusive(['\n', '\t']).map(|part| {
        let end = part.len() - usize::from(part.ends_with(['\n', '\t']));
        printable(&part[..end]) + &part[end..]
    });
    lines.collect()
}

/// Escapes such characters in a text that is part of a message of mcpzip. Its further lines are indented, so that none of them
/// looks like another message.
pub(super) fn printable_within(text: &str) -> String {
    printable_lines(text.trim_end()).replace('\n', "\n  ")
}

/// Escapes such characters in a text with mcpzip's own colours. Line breaks, tabs and the colours stay.
pub(super) fn on_terminal(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = colour_length(rest).unwrap_or(c.len_utf8());
        if length > c.len_utf8() || !is_hidden(c) || matches!(c, '\n' | '\t') {
            shown.push_str(&rest[..length]);
        } else {
            shown.extend(c.escape_unicode());
        }
        rest = &rest[length..];
    }
    shown
}

/// The length of the colour code at the start of `text`. Only styles that keep text visible count.
fn colour_length(text: &str) -> Option<usize> {
    let code = text.strip_prefix("\u{1b}[")?.split_once('m')?.0;
    let is_colour = matches!(
        code,
        "0" | "1" | "2" | "3" | "4" | "31" | "32" | "33" | "34" | "35" | "36"
    );
    is_colour.then(|| "\u{1b}[m".len() + code.len())
}

/// Escapes such characters in JSON. They occur in its strings only. This is done for pipes, too, because a pipe may end
/// at a terminal.
pub(super) fn printable_json(json: &str) -> String {
    json.chars()
        .fold(String::with_capacity(json.len()), |mut shown, c| {
            if is_hidden(c) && !matches!(c, '\n' | '\r' | '\t') {
                shown.extend(
                    c.encode_utf16(&mut [0; 2])
                        .iter()
                        .map(|unit| format!("\\u{unit:04x}")),
                );
            } else {
                shown.push(c);
            }
            shown
        })
}

/// The hidden characters of `text`, each once: `U+202E, U+200B`. Line breaks and tabs do not count, nor do joiners
/// within a letter or an emoji.
pub(super) fn hidden_in(text: &str) -> Option<String> {
    let mut found: Vec<char> = Vec::new();
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let joins = matches!(c, '\u{200c}' | '\u{200d}')
            && !before.is_ascii()
            && rest.peek().is_some_and(|c| !c.is_ascii());
        let next = rest.peek().copied();
        if hides(before, c, next) && !joins && !found.contains(&c) {
            found.push(c);
        }
        before = c;
    }
    let names: Vec<String> = found
        .iter()
        .map(|c| format!("U+{:04X}", u32::from(*c)))
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Whether a character between these two hides something; line breaks and tabs do not.
fn hides(before: char, c: char, next: Option<char>) -> bool {
    is_hidden(c) && !matches!(c, '\n' | '\r' | '\t') || selects_nothing(before, c, next)
}

/// The part of `text` around its first hidden character, escaped.
pub(super) fn around_hidden(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_first = |at: &usize| {
        let before = at.checked_sub(1).map_or(' ', |before| chars[before]);
        hides(before, chars[*at], chars.get(at + 1).copied())
    };
    let at = (0..chars.len()).find(is_first).unwrap_or(0);
    let (start, end) = (at.saturating_sub(30), (at + 40).min(chars.len()));
    let cut = |is_cut: bool| if is_cut { "…" } else { "" };
    let part: String = chars[start..end]
        .iter()
        .map(|c| {
            if matches!(c, '\n' | '\r' | '\t') {
                ' '
            } else {
                *c
            }
        })
        .collect();
    format!(
        "{}{}{}",
        cut(start > 0),
        printable(&part),
        cut(end < chars.len())
    )
}

fn is_hidden(c: char) -> bool {
    c.is_control() || crate::tool::is_hidden(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_colours_and_nothing_else() {
        assert_eq!(
            on_terminal("\u{1b}[1mbold\u{1b}[0m\n\tcaf\u{e9}"),
            "\u{1b}[1mbold\u{1b}[0m\n\tcaf\u{e9}"
        );
        for hostile in [
            "\u{1b}[2J",
            "\u{1b}]0;t\u{7}",
            "\u{1b}[8m",
            "\u{1b}[31;8m",
            "\u{9b}31m",
            "\u{1b}",
            "\r",
            "\u{202e}",
        ] {
            let shown = on_terminal(hostile);
            assert!(!shown.contains(|c: char| is_hidden(c)), "{shown:?}");
        }
    }

    #[test]
    fn a_text_of_a_server_keeps_its_lines_and_has_no_colours() {
        assert_eq!(
            printable_lines("caf\u{e9}\n\t\u{1b}[31mred\u{202e}\n"),
            "caf\u{e9}\n\t\\u{1b}[31mred\\u{202e}\n"
        );
    }

    #[test]
    fn words_of_a_server_are_no_message_of_mcpzip() {
        let text = "boom\u{1b}[0m\n\n\u{1b}[32m\u{2713}\u{1b}[0m done\nhint: run this\n";
        let shown = printable_within(text);
        assert_eq!(
            shown,
            "boom\\u{1b}[0m\n  \n  \\u{1b}[32m\u{2713}\\u{1b}[0m done\n  hint: run this"
        );
        assert_eq!(on_terminal(&shown), shown);
    }

    #[test]
    fn json_says_the_same_when_nothing_of_it_is_hidden() {
        let value =
            serde_json::json!({ "a\u{9b}": ["\u{202e}x\n", "\u{e0041}", "caf\u{e9} \u{1f600}"] });
        let json = printable_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!json.chars().any(|c| is_hidden(c) && c != '\n'), "{json:?}");
        assert!(
            json.contains("\\udb40\\udc41") && json.contains("caf\u{e9}"),
            "{json}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&json).unwrap(),
            value
        );
    }

    #[test]
    fn the_pages_escape_the_same_characters() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/web/src/printable.ts");
        let Ok(source) = std::fs::read_to_string(file) else {
            return; // The package on the registry has no sources of the pages.
        };
        let class = source.split_once("HIDDEN = '").unwrap().1;
        let class = class.split_once('\'').unwrap().0;
        let ends = |range: &str| {
            let mut ends = range
                .split('-')
                .map(|end| u32::from_str_radix(end.trim_matches(['u', '{', '}']), 16).unwrap());
            let first = ends.next().unwrap();
            (first, ends.next().unwrap_or(first))
        };
        // Each part is `\\u{A}` or `\\u{A}-\\u{B}`.
        let class = class.replace("-\\\\", "-");
        let ranges: Vec<(u32, u32)> = class.split("\\\\").skip(1).map(ends).collect();
        for c in '\0'..=char::MAX {
            let code = u32::from(c);
            let is_there = ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&code));
            assert_eq!(is_there, is_hidden(c), "U+{code:04X}");
        }
    }

    #[test]
    fn variation_selectors_of_emoji_stay_and_others_are_escaped() {
        for emoji in [
            "\u{26a0}\u{fe0f} x",
            "1\u{fe0f}\u{20e3}",
            "\u{2139}\u{fe0f}\u{24c2}\u{fe0f}\u{1f17f}\u{fe0e}\u{3297}\u{fe0f}",
        ] {
            assert_eq!(printable(emoji), emoji);
        }
        assert_eq!(
            printable("\u{fe0e}a\u{fe0f}b\u{26a0}\u{fe0f}\u{fe0e}ж\u{fe0f}漢\u{fe0e}"),
            "\\u{fe0e}a\\u{fe0f}b\u{26a0}\u{fe0f}\\u{fe0e}ж\\u{fe0f}漢\\u{fe0e}"
        );
    }

    #[test]
    fn what_is_hidden_is_named_once() {
        for c in [
            '\u{61c}',
            '\u{200b}',
            '\u{202e}',
            '\u{2066}',
            '\u{3164}',
            '\u{feff}',
            '\u{e0041}',
            '\u{13430}',
            '\u{fffe}',
            '\u{e000}',
            '\u{f0000}',
        ] {
            assert_eq!(
                hidden_in(&format!("a{c}b")),
                Some(format!("U+{:04X}", u32::from(c)))
            );
            assert!(!printable(&format!("a{c}b")).contains(c));
        }
        assert_eq!(
            hidden_in("two\nlines\tand a tab, caf\u{e9}, \u{1f600}"),
            None
        );
        assert_eq!(hidden_in("\u{1f468}\u{200d}\u{1f469}"), None);
        assert_eq!(hidden_in("a\u{200d}b").as_deref(), Some("U+200D"));
        assert_eq!(
            around_hidden("one\ntwo\u{202e}three"),
            "one two\\u{202e}three"
        );
        assert_eq!(
            hidden_in("a\u{202e}b\u{1b}[2J\u{202e}").as_deref(),
            Some("U+202E, U+001B")
        );
    }
}
