//! A scanner for the texts of a server that a model reads: names, descriptions, schemas and instructions.
//!
//! It finds hidden characters, orders to the model, requests for secrets and for other tools' data, look-alike
//! names, and texts that pretend to be another server's tool. It knows phrases, not meanings, so a text without
//! findings may still be an attack.
//!
//! *Never*: blocks anything; decides what a person sees.

mod look;
mod names;
mod phrases;
mod shadows;
#[cfg(test)]
mod tests;

pub(crate) use shadows::Neighbours;

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::mcp::Object;

/// The characters of a text that a finding shows.
const SHOWN: usize = 90;

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Characters that a reader does not see, or that rearrange what is seen.
    Hidden,
    /// An order to the model that has nothing to do with the tool.
    Order,
    /// A request for a secret, for files that hold some, or for the conversation.
    Secret,
    /// A text about when or how other tools are used.
    OtherTool,
    /// A name that looks like another one, or is written in letters that look like others.
    LookAlike,
    /// A name or description that stands for another server's tool.
    Shadow,
    /// A definition that this scanner may read in another way than a client does.
    Unreadable,
}

/// A finding in one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    /// The part of the text that it is about. It may have any character: escape it before it is shown.
    pub(crate) part: String,
}

/// The position of a text in a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Top,
    Name,
    Schema,
    Parameters,
    Parameter,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hidden => "hidden characters",
            Self::Order => "an order to the model",
            Self::Secret => "a request for secrets",
            Self::OtherTool => "a text about other tools",
            Self::LookAlike => "a look-alike name",
            Self::Shadow => "a text that stands for another server's tool",
            Self::Unreadable => "a definition that cannot be read with certainty",
        })
    }
}

/// Reads a definition for [`tool`]. If it is not valid JSON, or has a duplicate member, the whole text is searched, too, because
/// clients may show it.
#[must_use]
pub(crate) fn read(json: &str) -> (Value, Option<Finding>) {
    let raw = || Value::String(json.to_owned());
    let unreadable = |part: String| Finding {
        kind: Kind::Unreadable,
        part: part.chars().take(SHOWN).collect(),
    };
    let value: Value = match serde_json::from_str(json) {
        Ok(value) => value,
        Err(error) => return (raw(), Some(unreadable(error.to_string()))),
    };
    // Valid above, so its depth is limited.
    let raw_value: Option<&RawValue> = serde_json::from_str(json).ok();
    match raw_value.and_then(member_that_stands_twice) {
        Some(member) => {
            let both = match value {
                Value::Object(mut members) => {
                    members.insert(json.to_owned(), Value::Null);
                    Value::Object(members)
                }
                other => other,
            };
            (both, Some(unreadable(format!("`{member}` stands twice"))))
        }
        None => (value, None),
    }
}

/// The first member that stands twice in an object, at any depth.
fn member_that_stands_twice(raw: &RawValue) -> Option<String> {
    match raw.get().as_bytes().first() {
        Some(b'{') => {
            let object = Object::parse(raw).ok()?;
            let mut names = HashSet::new();
            object.iter().find_map(|(name, value)| {
                if names.insert(name.to_string()) {
                    member_that_stands_twice(value)
                } else {
                    Some(name.to_string())
                }
            })
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
            items.into_iter().find_map(member_that_stands_twice)
        }
        _ => None,
    }
}

/// The findings in a tool's definition: at most one of each kind.
#[must_use]
pub(crate) fn tool(definition: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    walk(definition, Position::Top, &mut |text, position| {
        scan(text, position, &mut findings);
    });
    findings
}

/// The findings in a server's instructions.
#[must_use]
pub(crate) fn instructions(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    scan(text, Position::Schema, &mut findings);
    findings
}

fn scan(text: &str, position: Position, findings: &mut Vec<Finding>) {
    let mut add = |kind, part: &str| {
        if findings
            .iter()
            .all(|finding: &Finding| finding.kind != kind)
        {
            let part = part.chars().take(SHOWN).collect();
            findings.push(Finding { kind, part });
        }
    };
    if let Some(part) = phrases::hidden(text) {
        add(Kind::Hidden, part);
    }
    for (kind, part) in phrases::found(&phrases::plain(text)) {
        add(kind, part);
    }
    if position == Position::Parameter && phrases::is_secret_parameter(text) {
        add(Kind::Secret, text);
    }
    if position == Position::Name && names::is_disguised(text) {
        add(Kind::LookAlike, text);
    }
}

/// Calls `look` with every text of a definition, names of parameters included.
fn walk(value: &Value, position: Position, look: &mut impl FnMut(&str, Position)) {
    match value {
        Value::String(text) => look(text, position),
        Value::Array(items) => items.iter().for_each(|item| walk(item, position, look)),
        Value::Object(members) => {
            for (key, value) in members {
                let inner = match key.as_str() {
                    "name" if position == Position::Top => Position::Name,
                    "properties" if position != Position::Parameters => Position::Parameters,
                    _ => Position::Schema,
                };
                let own = match position {
                    Position::Parameters => Position::Parameter,
                    _ => Position::Schema,
                };
                look(key, own);
                walk(value, inner, look);
            }
        }
        _ => {}
    }
}
