//! Formats new YAML: one line per member of a map; lists and texts in one line.

use crate::clients::node::Node;
use crate::mcp::object::quoted;

use super::STEP;

/// The lines of `key` with `value`, or of a list's item, which contains its name.
pub(super) fn member(key: &str, value: &Node, column: usize, in_list: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if in_list {
        lines_of(value, column + STEP, &mut lines);
        if let Some(first) = lines.first_mut() {
            first.replace_range(column..=column, "-");
        }
    } else {
        write_member(key, value, column, &mut lines);
    }
    lines
}

fn lines_of(value: &Node, column: usize, lines: &mut Vec<String>) {
    match value {
        Node::Map(members) if !members.is_empty() => {
            members
                .iter()
                .for_each(|(key, value)| write_member(key, value, column, lines));
        }
        other => lines.push(format!("{}{}\n", " ".repeat(column), inline(other))),
    }
}

fn write_member(key: &str, value: &Node, column: usize, lines: &mut Vec<String>) {
    let indent = " ".repeat(column);
    match value {
        Node::Map(members) if !members.is_empty() => {
            lines.push(format!("{indent}{}:\n", word(key)));
            lines_of(value, column + STEP, lines);
        }
        Node::List(items) if items.iter().any(|item| matches!(item, Node::Map(_))) => {
            lines.push(format!("{indent}{}:\n", word(key)));
            items
                .iter()
                .for_each(|item| lines.extend(member("", item, column + STEP, true)));
        }
        other => lines.push(format!("{indent}{}: {}\n", word(key), inline(other))),
    }
}

fn inline(value: &Node) -> String {
    match value {
        Node::Null => "null".to_owned(),
        Node::Flag(flag) => flag.to_string(),
        Node::Number(number) => number.clone(),
        Node::Text(text) => word(text),
        Node::List(items) => format!(
            "[{}]",
            items.iter().map(inline).collect::<Vec<_>>().join(", ")
        ),
        Node::Map(members) => {
            let members = members
                .iter()
                .map(|(key, value)| format!("{}: {}", word(key), inline(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A text without quotes if it can only be read as that text, otherwise in quotes.
fn word(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '_'))
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/_.-".contains(c));
    let lower = text.to_ascii_lowercase();
    let has_meaning =
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&lower.as_str());
    if is_plain && !has_meaning {
        text.to_owned()
    } else {
        quoted(text)
    }
}
