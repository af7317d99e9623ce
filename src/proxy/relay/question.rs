//! The question to a user before a call that requires consent, with the complete arguments.
//!
//! Names, keys, numbers and texts are shown in full, in the order in which they are sent. Only a long text is
//! shortened to its beginning and end, with its length and hash outside the quotes, where no text can imitate them.
//! Arguments that are still too large to read are refused.

use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::mcp::object::quoted;
use crate::proxy::failure::NoConsent;
use crate::tool::is_hidden;

/// The length up to which a text is shown in full, and the length of each end of a longer one, in characters.
const WHOLE: usize = 4_000;
const END: usize = 1_500;

/// The maximum length of a question, in characters.
const LONGEST: usize = 16_000;

/// The longest run of spaces that is shown unchanged, as in the indentation of program text.
const MOST_SPACES: usize = 40;

/// The maximum number of combining marks on one character; no script uses more.
const MOST_MARKS: usize = 4;

/// The question whether the tool `name` may be called with `arguments`, which are JSON.
///
/// # Errors
/// When the arguments are too large to show.
pub(in crate::proxy) fn question(name: &str, arguments: &str) -> Result<String, NoConsent> {
    whole(format!(
        "May the tool {} be called with these arguments?\n{}",
        shown_name(name),
        shown(arguments)
    ))
}

/// The question whether a script may make these calls: names, and arguments as JSON.
///
/// # Errors
/// When they are too large to show.
pub(in crate::proxy) fn script_question(calls: &[(String, &str)]) -> Result<String, NoConsent> {
    let mut question = "May a script make these calls?".to_owned();
    for (index, (name, arguments)) in calls.iter().enumerate() {
        // Writing to memory cannot fail. No text can begin a line: line breaks are shown as escapes.
        let _ = write!(
            question,
            "\n{}. {} with {}",
            index + 1,
            shown_name(name),
            shown(arguments)
        );
    }
    whole(question)
}

fn shown_name(name: &str) -> String {
    format!("`{}`", visible(name).replace('`', r"\u{60}"))
}

fn whole(question: String) -> Result<String, NoConsent> {
    let characters = question.chars().count();
    if characters > LONGEST {
        return Err(NoConsent::TooLarge {
            characters,
            limit: LONGEST,
        });
    }
    Ok(question)
}

/// JSON without white space between its tokens, with its texts decoded for reading.
fn shown(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let length = if c == '"' {
            length_of_text(rest)
        } else {
            c.len_utf8()
        };
        let part = &rest[..length];
        rest = &rest[length..];
        match c {
            '"' => shown.push_str(&text(part)),
            c if c.is_ascii_whitespace() => {}
            _ => shown.push_str(&visible(part)),
        }
    }
    shown
}

/// The length of the string at the beginning of `json`, with its quotes.
fn length_of_text(json: &str) -> usize {
    let mut is_escaped = false;
    let end = json.char_indices().skip(1).find(|(_, c)| {
        let is_end = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(json.len(), |(at, _)| at + 1)
}

/// The text of a JSON string; an invalid one stays as it is written.
fn text(json: &str) -> String {
    let Ok(text) = serde_json::from_str::<String>(json) else {
        return visible(json);
    };
    let count = text.chars().count();
    if count <= WHOLE {
        return visible(&quoted(&text));
    }
    let start: String = text.chars().take(END).collect();
    let end: String = text.chars().skip(count - END).collect();
    let hash = HEXLOWER.encode(&Sha256::digest(&text));
    format!(
        "{} [{} characters more; SHA-256 of all {count}: {hash}] {}",
        visible(&quoted(&start)),
        count - 2 * END,
        visible(&quoted(&end))
    )
}

/// A text with every character that is invisible or moves others written as `\u{202e}`, and a run of spaces that
/// could push the rest out of view as `\u{20}×3000`.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    let mut marks = 0;
    while let Some(c) = rest.chars().next() {
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        if spaces > MOST_SPACES {
            // Writing to memory cannot fail.
            let _ = write!(shown, "\\u{{20}}×{spaces}");
            rest = &rest[spaces..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        marks = if is_mark(c) { marks + 1 } else { 0 };
        let is_odd = c.is_control()
            || is_hidden(c)
            || c.is_whitespace() && c != ' '
            || is_unseen(c)
            || marks > MOST_MARKS;
        if is_odd {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether `c` is invisible in addition to the characters of `is_hidden`, or changes the look of the previous
/// character: the Braille blank, and Unicode's Default_Ignorable_Code_Point.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{34f}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2065}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}')
}

/// Whether `c` is a combining mark, in the blocks of marks that scripts share.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}'
        | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_as_they_are_read() {
        for (json, expected) in [
            (r#"{ "a" : [1, 2.50, "\u0062"] }"#, r#"{"a":[1,2.50,"b"]}"#),
            (r#"{"a":"x\"y\\","b":"\n"}"#, r#"{"a":"x\"y\\","b":"\n"}"#),
            (r#"{"a":"\ud800"}"#, r#"{"a":"\ud800"}"#),
            (
                "{\"a\":\"\u{202e}\u{2028}\u{fe01}\"}",
                r#"{"a":"\u{202e}\u{2028}\u{fe01}"}"#,
            ),
            (r#"{"a":1,"a":2}"#, r#"{"a":1,"a":2}"#),
            (
                "{\"a\":\"\u{2800}\u{34f}\u{17b4}\u{1d173}\u{1bca0}\"}",
                r#"{"a":"\u{2800}\u{34f}\u{17b4}\u{1d173}\u{1bca0}"}"#,
            ),
        ] {
            assert_eq!(shown(json), expected);
        }
    }

    #[test]
    fn a_long_text_cannot_imitate_where_it_was_cut() {
        let long = format!(
            "{}\" [9 characters more] \"{}",
            "a".repeat(END),
            "b".repeat(WHOLE)
        );
        let shown = shown(&quoted(&long));
        assert_eq!(shown.matches("\" [").count(), 1, "{shown}");
    }
}
