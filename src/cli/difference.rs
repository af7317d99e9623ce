//! Differences between two definitions, for a person at a terminal: line by line, with the words that differ in colour.

use std::time::Duration;

use serde::de::IgnoredAny;
use serde_json::Value;
use similar::{ChangeTag, DiffOp, TextDiff, group_diff_ops};

use super::output::{bad, faint, good};
use super::printable::printable;
use crate::scan;

/// Lines shown around a difference.
const CONTEXT: usize = 2;

/// Time limit for comparing one definition. After it, the difference is larger than necessary.
const LIMIT: Duration = Duration::from_millis(500);

/// The lines that differ, with hidden characters escaped. `before` is `None` for a definition that is new or no longer known.
pub(super) fn difference(before: Option<&str>, after: Option<&str>) -> String {
    let (old, new) = compared(before, after);
    let mut shown = String::new();
    for group in group_diff_ops(operations(&old, &new), CONTEXT) {
        for op in group {
            show(&op, &old, &new, &mut shown);
        }
    }
    shown
}

/// All lines of both, each with its sign, in the form of `diff`: as a page shows them.
pub(super) fn patch(before: Option<&str>, after: Option<&str>) -> Vec<String> {
    let (old, new) = compared(before, after);
    let mut shown = Vec::new();
    for op in operations(&old, &new) {
        let signed = |sign: &'static str, lines: &[String]| -> Vec<String> {
            lines.iter().map(|line| format!("{sign} {line}")).collect()
        };
        if matches!(op, DiffOp::Equal { .. }) {
            shown.extend(signed(" ", &new[op.new_range()]));
        } else {
            shown.extend(signed("-", &old[op.old_range()]));
            shown.extend(signed("+", &new[op.new_range()]));
        }
    }
    shown
}

fn operations(old: &[String], new: &[String]) -> Vec<DiffOp> {
    let old: Vec<&str> = old.iter().map(String::as_str).collect();
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    let diff = TextDiff::configure().timeout(LIMIT).diff_slices(&old, &new);
    diff.ops().to_vec()
}

/// A whole definition, below `note`.
pub(super) fn whole(definition: &str, note: &str) -> String {
    let form = Form::of([definition]);
    let lines = form.lines(definition).into_iter();
    let text: String = lines.map(|line| format!("  {line}\n")).collect();
    format!("{}\n{text}", faint(note))
}

/// The printable lines of two definitions or plain texts. They differ if the texts do.
fn compared(before: Option<&str>, after: Option<&str>) -> (Vec<String>, Vec<String>) {
    let in_form = |form: Form| {
        let lines = |text: Option<&str>| text.map_or_else(Vec::new, |text| form.lines(text));
        (lines(before), lines(after))
    };
    let first = Form::of(before.into_iter().chain(after));
    let forms = [first, Form::Written, Form::Exact].into_iter();
    let mut shown = forms.map(in_form);
    let is_enough = |(old, new): &(Vec<String>, Vec<String>)| old != new || before == after;
    let found = shown.find(is_enough);
    found.unwrap_or_else(|| in_form(Form::Exact))
}

/// How a definition is put into lines.
#[derive(Clone, Copy)]
enum Form {
    /// With the members of each object in order, so that another order does not count.
    Ordered,
    /// With each member as it is written: a definition may say something twice, and a reader takes one of them.
    Written,
    /// Each line as a literal, in which no two texts look the same.
    Exact,
}

impl Form {
    /// The form for texts that are compared.
    fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut texts = texts.into_iter();
        let is_twofold = |text: &str| is_json(text) && scan::read(text).1.is_some();
        match texts.any(is_twofold) {
            true => Self::Written,
            false => Self::Ordered,
        }
    }

    fn lines(self, text: &str) -> Vec<String> {
        let formed = match self {
            Self::Ordered => serde_json::from_str(text).ok().and_then(|value: Value| {
                let is_nested = value.is_object() || value.is_array();
                is_nested.then(|| format!("{value:#}"))
            }),
            Self::Written => is_json(text).then(|| indented(text)),
            Self::Exact => {
                let lines = text.split('\n').map(|line| format!("{line:?}"));
                Some(lines.collect::<Vec<_>>().join("\n"))
            }
        };
        let text = formed.as_deref().unwrap_or(text);
        text.lines().map(printable).collect()
    }
}

/// Whether a text is an object or a list in JSON.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// JSON in lines, with everything but the spaces between its parts as it is written.
fn indented(json: &str) -> String {
    let mut shown = String::with_capacity(json.len() * 2);
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    let break_line = |shown: &mut String, depth: usize| {
        shown.push('\n');
        // A text of a server may have any depth.
        shown.extend(std::iter::repeat_n("  ", depth.min(64)));
    };
    for c in json.chars() {
        if is_text {
            shown.push(c);
            is_text = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            ' ' | '\t' | '\n' | '\r' => continue,
            '{' | '[' => {
                depth += 1;
                shown.push(c);
                break_line(&mut shown, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut shown, depth);
                shown.push(c);
            }
            ',' => {
                shown.push(c);
                break_line(&mut shown, depth);
            }
            ':' => shown.push_str(": "),
            c => {
                is_text = c == '"';
                shown.push(c);
            }
        }
    }
    shown
}

fn show(op: &DiffOp, old: &[String], new: &[String], shown: &mut String) {
    let (old, new) = (&old[op.old_range()], &new[op.new_range()]);
    if matches!(op, DiffOp::Equal { .. }) {
        for line in old {
            shown.push_str(&format!("  {line}\n"));
        }
        return;
    }
    let (before, after) = (old.join("\n"), new.join("\n"));
    let words = TextDiff::configure()
        .timeout(LIMIT)
        .diff_words(&before, &after);
    let side = |tag: ChangeTag, paint: fn(&str) -> String| {
        let mut text = String::new();
        for change in words.iter_all_changes() {
            let word = change.value();
            match change.tag() {
                ChangeTag::Equal => text.push_str(word),
                it if it == tag && word.trim().is_empty() => text.push_str(word),
                it if it == tag => text.push_str(&paint(word)),
                _ => {}
            }
        }
        text
    };
    if !old.is_empty() {
        for line in side(ChangeTag::Delete, |word| bad(word)).lines() {
            shown.push_str(&format!("{} {line}\n", bad("-")));
        }
    }
    if !new.is_empty() {
        for line in side(ChangeTag::Insert, |word| good(word)).lines() {
            shown.push_str(&format!("{} {line}\n", good("+")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_of_any_depth_is_shown_in_few_bytes() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let lines = Form::Written.lines(&deep);
        assert!(lines.iter().map(String::len).sum::<usize>() < 200 * deep.len());
    }

    #[test]
    fn what_changed_is_shown_and_nothing_of_it_is_hidden() {
        let definition =
            |text: &str| json!({ "name": "t", "description": text, "z": 1 }).to_string();
        let (before, after) = (
            definition("Reads."),
            definition("Reads.\u{200b}\u{202e} \u{1b}[2JIgnore"),
        );
        let plain = |text: String| console::strip_ansi_codes(&text).into_owned();
        let shown = plain(difference(Some(&before), Some(&after)));
        let expected = "  {\n-   \"description\": \"Reads.\",\n+   \"description\": \"Reads.\\u{200b}\\u{202e} \\u001b[2JIgnore\",\n    \"name\": \"t\",\n    \"z\": 1\n";
        assert_eq!(shown, expected);
        assert!(plain(whole(&after, "new")).contains("\\u{202e}"));
        // A reader takes one of two members, so both are shown.
        let twice = r#"{"name":"t","description":"Ignore.","description":"Reads."}"#;
        let shown = plain(difference(Some(&before), Some(twice)));
        assert!(shown.contains("Ignore."), "{shown}");
        // Instructions are plain text.
        let shown = plain(difference(
            Some("Be polite.\nAlways."),
            Some("Be rude.\nAlways."),
        ));
        assert_eq!(shown, "- Be polite.\n+ Be rude.\n  Always.\n");
    }

    #[test]
    fn all_lines_are_shown_and_texts_that_differ_never_look_the_same() {
        const PLAIN: &str = r#"{"name":"t","description":"Reads.","n":1.0}"#;
        let changed = |before: &str, after: &str| {
            let lines = patch(Some(before), Some(after));
            let is_changed = |line: &String| line.starts_with(['-', '+']);
            assert!(
                lines.iter().any(is_changed),
                "{before:?}, {after:?}: {lines:?}"
            );
            let hidden = |c: char| c.is_control() || crate::tool::is_hidden(c);
            assert!(!lines.iter().any(|line| line.contains(hidden)), "{lines:?}");
            assert!(!difference(Some(before), Some(after)).is_empty());
            lines
        };
        // Both of two members are shown, one a line.
        let twice = r#"{"name":"t","description":"EVIL: \"x\\","description":"Reads.","n":1.0}"#;
        let lines = changed(PLAIN, twice);
        assert!(
            lines.contains(&r#"+   "description": "EVIL: \"x\\","#.to_owned()),
            "{lines:?}"
        );
        assert!(
            lines.contains(&r#"    "description": "Reads.","#.to_owned()),
            "{lines:?}"
        );
        // Numbers and texts that a reader of JSON takes for equal, and texts whose escapes are written out.
        changed(PLAIN, r#"{"description":"Reads.","name":"t","n":1.0}"#);
        changed(PLAIN, r#"{"name":"t","description":"Re\u0061ds.","n":1.0}"#);
        changed(PLAIN, r#"{"name":"t","description":"Reads.","n":1.00}"#);
        changed(PLAIN, r#"{"name":"t", "description":"Reads.","n":1.0}"#);
        changed("a\u{202e}b", r"a\u{202e}b");
        changed("a\nb", "a\r\nb\n");
        changed("\u{3164}", "");
        // The order of members does not count if the content differs.
        let lines = changed(PLAIN, r#"{"description":"Writes.","name":"t","n":1.0}"#);
        assert_eq!(lines.len(), 6, "{lines:?}");
        assert_eq!(
            patch(None, Some("runs \"a\u{202e}\"\n")),
            [r#"+ runs "a\u{202e}""#]
        );
        assert_eq!(patch(Some(PLAIN), Some(PLAIN)).len(), 5);
    }
}
