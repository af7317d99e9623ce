//! TOML, by `toml_edit`, which keeps comments and layout, but not `\r\n`.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::error::{EditError, SyntaxError};
use super::unified;
use crate::clients::diff;
use crate::clients::node::Node;

pub(super) fn read(text: &str) -> Result<Node, SyntaxError> {
    Ok(table(parse(&text.replace("\r\n", "\n"))?.as_table()))
}

pub(super) fn set(text: &str, path: &[String], value: &Node) -> Result<String, EditError> {
    edit(text, |document| {
        let (key, way) = path.split_last().ok_or(EditError::NoKey)?;
        let mut table: &mut dyn TableLike = document.as_table_mut();
        for step in way {
            let mut missing = Table::new();
            missing.set_implicit(true);
            let item = table.entry(step).or_insert(Item::Table(missing));
            table = item.as_table_like_mut().ok_or(EditError::NoTable)?;
        }
        let has_lines = !way.is_empty() && matches!(value, Node::Map(_));
        let is_inline = table.get(key).is_some_and(Item::is_inline_table);
        let new = match value {
            Node::Map(members) if has_lines && !is_inline => {
                let mut inner = Table::new();
                for (key, value) in members {
                    inner.insert(key, item(value)?);
                }
                Item::Table(inner)
            }
            value => item(value)?,
        };
        table.insert(key, new);
        Ok(())
    })
}

pub(super) fn remove(text: &str, path: &[String]) -> Result<String, EditError> {
    edit(text, |document| {
        let (key, way) = path.split_last().ok_or(EditError::NoKey)?;
        let mut table: &mut dyn TableLike = document.as_table_mut();
        for step in way {
            let item = table.get_mut(step).ok_or(EditError::Missing)?;
            table = item.as_table_like_mut().ok_or(EditError::NoTable)?;
        }
        table.remove(key);
        Ok(())
    })
}

fn edit(
    text: &str,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), EditError>,
) -> Result<String, EditError> {
    let (mut plain, has_returns) = unified(text)?;
    // `toml_edit` ends every file with a line end, so a file without one gets it for the edit.
    let is_open = !plain.is_empty() && !plain.ends_with('\n');
    if is_open {
        plain.push('\n');
    }
    let mut document = parse(&plain)?;
    if document.to_string() != plain {
        return Err(EditError::Unfaithful);
    }
    change(&mut document)?;
    let mut edited = with_comments(&plain, &document.to_string());
    if is_open && edited.ends_with('\n') {
        edited.pop();
    }
    Ok(if has_returns {
        edited.replace('\n', "\r\n")
    } else {
        edited
    })
}

/// `after` with the comments above removed parts: `toml_edit` may take the comment at the head of a file for a
/// table's.
fn with_comments(before: &str, after: &str) -> String {
    let (old, new) = (diff::lines(before), diff::lines(after));
    let is_lost = |line: &str| {
        let count = |lines: &[&str]| lines.iter().filter(|other| **other == line).count();
        line.trim_start().starts_with('#') && count(&new) < count(&old)
    };
    let (mut text, mut at) = (String::new(), 0);
    for hunk in diff::hunks(&old, &new) {
        text.extend(new[at..hunk.new.start].iter().copied());
        let gone = &old[hunk.old.clone()];
        let above = gone
            .iter()
            .take_while(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
            .count();
        if let Some(last) = gone[..above].iter().rposition(|line| is_lost(line)) {
            text.extend(
                gone[..=last]
                    .iter()
                    .copied()
                    .filter(|line| line.trim().is_empty() || is_lost(line)),
            );
        }
        text.extend(new[hunk.new.clone()].iter().copied());
        at = hunk.new.end;
    }
    text.extend(new[at..].iter().copied());
    text
}

fn parse(text: &str) -> Result<DocumentMut, SyntaxError> {
    // Its message has the line and an excerpt, which may be a secret, so only the first line is used.
    let first = |error: toml_edit::TomlError| {
        let text = error.to_string();
        SyntaxError::Toml {
            position: text.lines().next().unwrap_or_default().trim().to_owned(),
            problem: error.message().trim().to_owned(),
        }
    };
    text.parse::<DocumentMut>().map_err(first)
}

fn table(table: &dyn TableLike) -> Node {
    Node::Map(
        table
            .iter()
            .map(|(key, item)| (key.to_owned(), node(item)))
            .collect(),
    )
}

fn node(item: &Item) -> Node {
    match item {
        Item::None => Node::Null,
        Item::Value(value) => from_value(value),
        Item::Table(inner) => table(inner),
        Item::ArrayOfTables(tables) => {
            Node::List(tables.iter().map(|inner| table(inner)).collect())
        }
    }
}

fn from_value(value: &Value) -> Node {
    match value {
        Value::String(text) => Node::Text(text.value().clone()),
        Value::Boolean(flag) => Node::Flag(*flag.value()),
        Value::Integer(number) => Node::Number(number.value().to_string()),
        Value::Float(number) => Node::Number(number.value().to_string()),
        Value::Datetime(moment) => Node::Text(moment.value().to_string()),
        Value::Array(items) => Node::List(items.iter().map(from_value).collect()),
        Value::InlineTable(inner) => table(inner),
    }
}

fn item(node: &Node) -> Result<Item, EditError> {
    to_value(node).map(Item::Value).ok_or(EditError::Null)
}

/// `None` if there is nothing to write.
fn to_value(node: &Node) -> Option<Value> {
    Some(match node {
        Node::Null => return None,
        Node::Flag(flag) => (*flag).into(),
        Node::Number(number) => match number.parse::<i64>() {
            Ok(whole) => whole.into(),
            Err(_) => number.parse::<f64>().ok()?.into(),
        },
        Node::Text(text) => text.as_str().into(),
        Node::List(items) => Value::Array(items.iter().map(to_value).collect::<Option<Array>>()?),
        Node::Map(members) => {
            let mut inner = InlineTable::new();
            for (key, value) in members {
                inner.insert(key, to_value(value)?);
            }
            Value::InlineTable(inner)
        }
    })
}
