//! Differences between two definitions, for a person at a terminal: line by line, with the words that differ in colour.

use std::time::Duration;

use similar::{ChangeTag, DiffOp, TextDiff};

use super::output::{bad, faint, good};
use super::printable::printable;
use crate::scan;

/// Lines shown around a difference.
const CONTEXT: usize = 2;

/// Time limit for comparing one definition. After it, the difference is larger than necessary.
const LIMIT: Duration = Duration::from_millis(500);

/// The lines that differ, with hidden characters escaped. `before` is `None` for a definition that is new or no longer known.
pub(super) fn difference(before: Option<&str>, after: Option<&str>) -> String {
    let (old, new) = (lines(before), lines(after));
    let mut shown = String::new();
    let before: Vec<&str> = old.iter().map(String::as_str).collect();
    let after: Vec<&str> = new.iter().map(String::as_str).collect();
    let diff = TextDiff::configure()
        .timeout(LIMIT)
        .diff_slices(&before, &after);
    for group in diff.grouped_ops(CONTEXT) {
        for op in group {
            show(&op, &old, &new, &mut shown);
        }
    }
    shown
}

/// A whole definition, below `note`.
pub(super) fn whole(definition: &str, note: &str) -> String {
    let text: String = lines(Some(definition))
        .iter()
        .map(|line| format!("  {line}\n"))
        .collect();
    format!("{}\n{text}", faint(note))
}

/// The printable lines of a definition or a plain text.
fn lines(text: Option<&str>) -> Vec<String> {
    let Some(text) = text else {
        return Vec::new();
    };
    // A definition that says something twice is shown as it is written: a reader takes only one of them.
    let value = Some(scan::read(text)).filter(|(_, unreadable)| unreadable.is_none());
    let value = value
        .map(|(value, _)| value)
        .filter(|value| !value.is_string());
    let pretty = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    let text = pretty.as_deref().unwrap_or(text);
    text.lines().map(printable).collect()
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
}
