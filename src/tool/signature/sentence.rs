//! The first sentence of a tool's description, and text made safe for display.
//!
//! Descriptions come in many forms: Markdown, docstrings with `Args:`, XML sections, terminal escapes. The aim is one
//! line that says what the tool does.

use super::tokens::estimate;
use crate::tool::is_hidden;

/// The number of characters that are examined.
const LOOKED_AT: usize = 4_000;
const MAX_WORDS: usize = 25;
const MAX_TOKENS: usize = 40;
/// The length below which a line was not wrapped by an editor, so that its end is the author's choice.
const WRAPPED: usize = 60;

/// The first sentence of `description` on one line, cut with `…` after about 25 words; empty if there is none.
#[must_use]
pub(crate) fn first_sentence(description: &str) -> String {
    let head: String = description.chars().take(LOOKED_AT).collect();
    let text = without_tags(&visible(&head));
    let paragraph = first_paragraph(&text);
    let sentence = &paragraph[..sentence_end(&paragraph)];
    cut(sentence, MAX_WORDS, MAX_TOKENS)
}

/// Removes everything that could deceive a terminal or a reader: escape sequences, control characters and invisible
/// characters.
pub(super) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\n' => out.push('\n'),
            '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push(' '),
            // Variation selectors only choose a glyph, so they are dropped silently.
            '\u{fe00}'..='\u{fe0f}' => {}
            c if c.is_control() || is_hidden(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// Skips the rest of an escape sequence after `ESC`: a control sequence to its final letter, a command to BEL or `ESC
/// \`.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => drop(chars.find(|c| ('@'..='~').contains(c))),
        Some(']') => {
            let end = chars.find(|c| matches!(c, '\u{7}' | '\u{1b}' | '\n'));
            if end == Some('\u{1b}') {
                chars.next_if_eq(&'\\');
            }
        }
        _ => {}
    }
}

/// Cuts `text` at a word boundary to `words` words and about `tokens` tokens.
pub(super) fn cut(text: &str, words: usize, tokens: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for (at, word) in text.split_whitespace().enumerate() {
        let cost = estimate(word);
        if at == words || used + cost > tokens {
            // Scripts without spaces can only be cut between characters.
            if used * 2 < tokens {
                let room = tokens - used;
                out.push_str(if at == 0 { "" } else { " " });
                let mut piece = String::new();
                out.extend(word.chars().take_while(|c| {
                    piece.push(*c);
                    estimate(&piece) <= room
                }));
            }
            out.truncate(
                out.trim_end_matches([',', ';', ':', '.', ' ', '，', '、'])
                    .len(),
            );
            out.push('…');
            return out;
        }
        used += cost;
        if at > 0 {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Removes XML-like tags: closing ones, those that are closed later, and those that begin a line. `<id>` within a
/// sentence is a placeholder and stays.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        let (before, tag) = rest.split_at(open);
        out.push_str(before);
        let name: String = tag[1..]
            .trim_start_matches('/')
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "_-".contains(*c))
            .collect();
        let end = tag
            .find(['>', '\n'])
            .filter(|end| tag.as_bytes()[*end] == b'>');
        let starts_line =
            out.trim_end_matches(' ').is_empty() || out.trim_end_matches(' ').ends_with('\n');
        let is_tag = !name.is_empty()
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && (tag.starts_with("</") || starts_line || tag.contains(&format!("</{name}")));
        match end.filter(|_| is_tag) {
            Some(end) => {
                out.push_str(
                    if starts_line || tag.starts_with("</") && tag[end + 1..].starts_with('\n') {
                        "\n"
                    } else {
                        ""
                    },
                );
                rest = &tag[end + 1..];
            }
            None => {
                out.push('<');
                rest = &tag[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn first_paragraph(text: &str) -> String {
    let mut paragraph = String::new();
    let mut heading = String::new();
    let mut last_length = 0;
    for raw_line in text.lines() {
        let line = raw_line.trim();
        let is_rule = !line.is_empty() && line.chars().all(|c| "=-*_`~#|".contains(c));
        let is_heading = line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
        if line.is_empty() || is_rule || is_heading || line.starts_with("```") {
            if is_rule && line.starts_with('=') {
                // The collected lines were an underlined heading.
                heading = std::mem::take(&mut paragraph);
            }
            if !paragraph.is_empty() {
                break;
            }
            if is_heading && heading.is_empty() {
                heading = plain(line.trim_start_matches('#'));
            }
            continue;
        }
        let item = list_item(line);
        if !paragraph.is_empty()
            && (item.is_some() || is_label(line) || is_new_line(last_length, line))
        {
            break;
        }
        if !paragraph.is_empty() {
            paragraph.push(' ');
        }
        paragraph.push_str(&plain(item.unwrap_or(line)));
        last_length = line.chars().count();
    }
    if paragraph.is_empty() {
        heading
    } else {
        paragraph
    }
}

/// One line without emphasis, with spaces collapsed.
fn plain(line: &str) -> String {
    line.replace("**", "")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn list_item(line: &str) -> Option<&str> {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = if numbered.len() < line.len() {
        numbered.strip_prefix(". ")
    } else {
        None
    };
    ["- ", "* ", "• ", "> "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .or(numbered)
}

/// Whether a line is a label: `Args:`, `Return value: …`, `:param x:`, `@param x`.
fn is_label(line: &str) -> bool {
    let label = line
        .split_once([':', '：'])
        .map(|(label, _)| label.trim_matches(['*', ' ']));
    line.starts_with(':')
        || line.starts_with('@')
        || label.is_some_and(|label| {
            label.split(' ').count() <= 3 && label.starts_with(char::is_uppercase)
        })
}

fn is_new_line(last_length: usize, line: &str) -> bool {
    last_length < WRAPPED
        && line.starts_with(|c: char| c.is_uppercase() || !c.is_ascii() && c.is_alphabetic())
}

/// The end of the first sentence of `text`.
fn sentence_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        match c {
            '。' | '！' | '？' => return end,
            '.' | '!' | '?' => {
                let mut end = end;
                while let Some((at, c)) = chars
                    .next_if(|(_, c)| matches!(c, ')' | '"' | '\'' | '”' | ']' | '`' | '.' | '!'))
                {
                    end = at + c.len_utf8();
                }
                let after = &text[end..];
                let next = after.trim_start().chars().next();
                let begins = after.starts_with(' ') && !next.is_some_and(char::is_lowercase);
                if next.is_none() || begins && !(c == '.' && is_abbreviation(&text[..at])) {
                    return end;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Whether the full stop after `before` marks an abbreviation: `e.g`, `U.S`, `approx`, `J`.
fn is_abbreviation(before: &str) -> bool {
    const SHORT: [&str; 12] = [
        "vs", "cf", "approx", "incl", "mr", "mrs", "ms", "dr", "st", "fig", "resp", "ca",
    ];
    let word = before.rsplit([' ', '(', '[']).next().unwrap_or_default();
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    let dotted = word.contains('.') && word.split('.').all(|part| part.chars().count() == 1);
    (letters == 1 && word.chars().count() == 1)
        || dotted
        || SHORT.contains(&word.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_found() {
        for (description, sentence) in [
            ("", ""),
            ("  \n\n ", ""),
            (
                "Create a new issue in a repository.",
                "Create a new issue in a repository.",
            ),
            ("Get a page. Then another.", "Get a page."),
            ("Get a page\n\nMore of it.", "Get a page"),
            (
                "Reads files, e.g. PDF ones. Fast.",
                "Reads files, e.g. PDF ones.",
            ),
            ("Reads files (i.e. PDF). Fast.", "Reads files (i.e. PDF)."),
            (
                "Uses API v1.2 of U.S. Census data. Fast.",
                "Uses API v1.2 of U.S. Census data.",
            ),
            ("Wow! It works.", "Wow!"),
            ("Is it open? Says so.", "Is it open?"),
            ("# Heading\n\nDoes it.", "Does it."),
            ("# Only a heading", "Only a heading"),
            ("Title\n=====\nDoes it.", "Does it."),
            (
                "<usecase>Find flights.</usecase>\n<instructions>Be quick</instructions>",
                "Find flights.",
            ),
            ("<purpose>\nFind flights\n</purpose>", "Find flights"),
            (
                "Opens <id> of owner/<repo> at once.",
                "Opens <id> of owner/<repo> at once.",
            ),
            ("Is a < b and c > d true? Yes.", "Is a < b and c > d true?"),
            ("**Search** the web.", "Search the web."),
            ("\u{1b}[31mRed\u{1b}[0m alert.\u{7}", "Red alert."),
            ("\u{1b}]0;title\u{7}Get it.", "Get it."),
            (
                "Zero\u{200b}width \u{202e}turn\u{e0041}ed.",
                "Zerowidth turned.",
            ),
            ("Get the\n   weather.", "Get the weather."),
            ("Get the weather\nArgs:\n  city: where", "Get the weather"),
            ("Get the weather\n\n    Args: x", "Get the weather"),
            ("Get weather\nReturns a list", "Get weather"),
            (
                "Get the weather of a place that is named in so many words that the\nWest wraps it. Next.",
                "Get the weather of a place that is named in so many words that the West wraps it.",
            ),
            ("- first\n- second", "first"),
            ("Does one of:\n- a\n- b", "Does one of:"),
            ("查询余票信息。支持日期。", "查询余票信息。"),
            ("See \"that.\" Then go.", "See \"that.\""),
            ("a   b\t c", "a b c"),
            ("Wait... what", "Wait... what"),
        ] {
            assert_eq!(first_sentence(description), sentence, "{description:?}");
        }
    }

    #[test]
    fn a_long_sentence_is_cut_between_words() {
        let long = first_sentence(&"word ".repeat(40));
        assert!(long.ends_with("word…"), "{long}");
        assert_eq!(long.split(' ').count(), MAX_WORDS);
        let wide = first_sentence(&"天".repeat(100));
        assert!(
            wide.ends_with("天…") && wide.chars().count() <= MAX_TOKENS + 1,
            "{wide}"
        );
        let unbroken = first_sentence(&"x".repeat(100_000));
        assert!(unbroken.len() < 1_000, "{}", unbroken.len());
    }
}
