//! The content of a file in any syntax, as one tree that all readers of clients use.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use jsonc_parser::ast::Value;

use crate::mcp::object::quoted;

/// A value. Members keep their order; of a duplicate key the last one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    /// Null, or no value.
    Null,
    /// True or false.
    Flag(bool),
    /// A number, as written.
    Number(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of its members.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// A text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A list of texts.
    pub(crate) fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    /// A map.
    pub(crate) fn map<K: Into<String>>(members: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(
            members
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    }

    /// The member `key` of a map. In a list: the item whose `name` is `key`, as in lists of servers, or the string at the index
    /// `key`.
    #[must_use]
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(members) => members
                .iter()
                .rev()
                .find(|(known, _)| known == key)
                .map(|(_, value)| value),
            Self::List(items) => position(items, key).map(|at| &items[at]),
            _ => None,
        }
    }

    /// The value at `path`.
    #[must_use]
    pub(crate) fn at<K: AsRef<str>>(&self, path: &[K]) -> Option<&Self> {
        path.iter()
            .try_fold(self, |node, key| node.get(key.as_ref()))
    }

    /// The members of a map, or the named items of a list.
    pub(crate) fn members(&self) -> Vec<(&str, &Self)> {
        match self {
            Self::Map(members) => {
                let mut later = HashSet::new();
                let mut counted: Vec<(&str, &Self)> = members
                    .iter()
                    .rev()
                    .map(|(key, value)| (key.as_str(), value))
                    .filter(|(key, _)| later.insert(*key))
                    .collect();
                counted.reverse();
                counted
            }
            Self::List(items) => items
                .iter()
                .filter_map(|item| Some((item.get("name")?.as_text()?, item)))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it is a map, a list of named items, or nothing.
    pub(super) fn has_members(&self) -> bool {
        match self {
            Self::Null | Self::Map(_) => true,
            Self::List(items) => items.len() == self.members().len(),
            _ => false,
        }
    }

    /// The items of a list.
    #[must_use]
    pub(crate) fn items(&self) -> &[Self] {
        if let Self::List(items) = self {
            items
        } else {
            &[]
        }
    }

    /// The content of a text.
    #[must_use]
    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The value of a flag.
    #[must_use]
    pub(crate) fn as_flag(&self) -> Option<bool> {
        if let Self::Flag(flag) = self {
            Some(*flag)
        } else {
            None
        }
    }

    /// Whether a list of names contains `name`. `None` if it is not a list of texts.
    pub(super) fn names(&self, name: &str) -> Option<bool> {
        let items = match self {
            Self::Null => &[],
            Self::List(items) => items.as_slice(),
            other => std::slice::from_ref(other),
        };
        let is_there = items.iter().any(|item| item.as_text() == Some(name));
        let is_clear = items.iter().all(|item| item.as_text().is_some());
        (is_there || is_clear).then_some(is_there)
    }

    /// Whether any text or key in it satisfies `is_one`.
    pub(super) fn any_text(&self, is_one: fn(&str) -> bool) -> bool {
        match self {
            Self::Text(text) => is_one(text),
            Self::List(items) => items.iter().any(|item| item.any_text(is_one)),
            Self::Map(members) => members
                .iter()
                .any(|(key, value)| is_one(key) || value.any_text(is_one)),
            _ => false,
        }
    }

    /// Sets the value at `path`, creating missing maps. Returns whether that was possible.
    pub(super) fn set(&mut self, path: &[String], value: Self) -> bool {
        let Some((key, rest)) = path.split_first() else {
            *self = value;
            return true;
        };
        if matches!(self, Self::Null) {
            *self = Self::Map(Vec::new());
        }
        match self {
            Self::Map(members) => match members.iter().rposition(|(known, _)| known == key) {
                Some(at) => members[at].1.set(rest, value),
                None => {
                    let mut inner = Self::Null;
                    let made = inner.set(rest, value);
                    members.push((key.clone(), inner));
                    made
                }
            },
            Self::List(items) => match position(items, key) {
                Some(at) => items[at].set(rest, value),
                None if rest.is_empty() => {
                    items.push(value);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    /// Removes the value at `path`.
    pub(super) fn remove(&mut self, path: &[String]) {
        match (path, self) {
            ([key], Self::Map(members)) => members.retain(|(known, _)| known != key),
            ([key], Self::List(items)) => items.retain(|item| !item.is_named(key)),
            ([key, rest @ ..], Self::Map(members)) => {
                if let Some((_, inner)) = members.iter_mut().rev().find(|(known, _)| known == key) {
                    inner.remove(rest);
                }
            }
            ([key, rest @ ..], Self::List(items)) => {
                if let Some(item) = items.iter_mut().find(|item| item.is_named(key)) {
                    item.remove(rest);
                }
            }
            _ => {}
        }
    }

    /// Whether both have the same meaning: the order of members is ignored, and null, an empty map and a missing
    /// member are equal, because a syntax may have only one of them.
    #[must_use]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Map(_), Self::Map(_)) => {
                let mut others: HashMap<&str, &Self> = other.members().into_iter().collect();
                let mut own = self.members().into_iter();
                own.all(|(key, value)| value.is_same(others.remove(key).unwrap_or(&Self::Null)))
                    && others.into_values().all(|value| value.is_same(&Self::Null))
            }
            (Self::List(own), Self::List(others)) => {
                own.len() == others.len()
                    && own.iter().zip(others).all(|(one, two)| one.is_same(two))
            }
            (Self::Null, Self::Map(members)) | (Self::Map(members), Self::Null) => {
                members.iter().all(|(_, value)| value.is_same(&Self::Null))
            }
            (Self::Null, Self::List(items)) | (Self::List(items), Self::Null) => items.is_empty(),
            (one, two) => one == two,
        }
    }

    /// The value as JSON in one line.
    #[must_use]
    pub(crate) fn to_json(&self) -> String {
        let mut json = String::new();
        self.write_json(&mut json);
        json
    }

    fn write_json(&self, json: &mut String) {
        // Writing to a text cannot fail.
        let _ = match self {
            Self::Null => write!(json, "null"),
            Self::Flag(flag) => write!(json, "{flag}"),
            Self::Number(number) => write!(json, "{number}"),
            Self::Text(text) => write!(json, "{}", quoted(text)),
            Self::List(items) => {
                json.push('[');
                for (at, item) in items.iter().enumerate() {
                    json.push_str(if at == 0 { "" } else { "," });
                    item.write_json(json);
                }
                write!(json, "]")
            }
            Self::Map(members) => {
                json.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    let _ = write!(json, "{}{}:", if at == 0 { "" } else { "," }, quoted(key));
                    value.write_json(json);
                }
                write!(json, "}}")
            }
        };
    }

    fn is_named(&self, name: &str) -> bool {
        matches!(self, Self::Map(_)) && self.get("name").and_then(Self::as_text) == Some(name)
    }
}

/// The index of the item that `key` addresses: by its name, or a text by its index.
fn position(items: &[Node], key: &str) -> Option<usize> {
    let named = items.iter().position(|item| item.is_named(key));
    named.or_else(|| {
        let at = key.parse().ok()?;
        let item: &Node = items.get(at)?;
        item.as_text().map(|_| at)
    })
}

impl From<&Value<'_>> for Node {
    fn from(value: &Value<'_>) -> Self {
        match value {
            Value::StringLit(text) => Self::Text(text.value.clone().into_owned()),
            Value::NumberLit(number) => Self::Number(number.value.to_owned()),
            Value::BooleanLit(flag) => Self::Flag(flag.value),
            Value::NullKeyword(_) => Self::Null,
            Value::Array(array) => Self::List(array.elements.iter().map(Self::from).collect()),
            Value::Object(object) => Self::Map(
                object
                    .properties
                    .iter()
                    .map(|property| {
                        (
                            property.name.as_str().to_owned(),
                            Self::from(&property.value),
                        )
                    })
                    .collect(),
            ),
        }
    }
}

impl From<&serde_json::Value> for Node {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(flag) => Self::Flag(*flag),
            serde_json::Value::Number(number) => Self::Number(number.to_string()),
            serde_json::Value::String(text) => Self::Text(text.clone()),
            serde_json::Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(members) => Self::Map(
                members
                    .iter()
                    .map(|(key, value)| (key.clone(), Self::from(value)))
                    .collect(),
            ),
        }
    }
}
