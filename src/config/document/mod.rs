//! A configuration as editable text: an edit leaves everything else unchanged byte for byte, including comments and
//! trailing commas.
//!
//! Edits are cuts in the text at positions from the parser, not a tree that is printed again. Of a duplicate key the
//! last one counts, as when it is read.

mod layout;
#[cfg(test)]
mod tests;
mod trivia;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged as _;

use super::error::Position;
use super::file;
use super::lower_first;
use super::reader::{Lines, kind};
use crate::mcp::object::quoted;
use layout::Layout;
use trivia::{Trivia, comment_length, line_end_length};

/// A text in JSON with comments and trailing commas: an object, or still empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    text: String,
    has_mark: bool,
}

/// A document that cannot be read, or cannot be edited as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DocumentError {
    /// The text is not JSON, even with comments and trailing commas.
    #[error("{position}: {problem}")]
    Syntax {
        /// The position at which the parser failed.
        position: Position,
        /// The parser's message.
        problem: String,
    },
    /// The parent of the edited key is not an object.
    #[error("{position}: `{key}` must be an object, found {found}")]
    Shape {
        /// The position of the value.
        position: Position,
        /// The path of the value, joined by dots; `configuration` for the root.
        key: String,
        /// The kind of value found.
        found: &'static str,
    },
}

impl Document {
    /// Reads a text, with or without a byte order mark.
    ///
    /// # Errors
    /// When it is not JSON, or not an object.
    pub(crate) fn parse(text: &str) -> Result<Self, DocumentError> {
        let (text, has_mark) = match text.strip_prefix('\u{feff}') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let root = parsed(text)?;
        let mut document = Self {
            text: text.to_owned(),
            has_mark,
        };
        match root {
            Some(Value::Object(_)) => {}
            Some(other) => return Err(shape(text, &[], &other)),
            None => {
                // Comments outside of the object stay in front.
                let gap = if text.is_empty() || text.ends_with('\n') {
                    ""
                } else {
                    document.line_end()
                };
                document.text = format!("{text}{gap}{{}}{}", document.line_end());
            }
        }
        Ok(document)
    }

    /// The text as it is written to the file.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        if self.has_mark {
            format!("\u{feff}{}", self.text)
        } else {
            self.text.clone()
        }
    }

    /// The value at `path`, as JSON without comments.
    #[must_use]
    pub(crate) fn get(&self, path: &[&str]) -> Option<String> {
        let root = self.root();
        let mut value = &root;
        for key in path {
            value = &last(value.as_object()?, key)?.value;
        }
        let layout = Layout {
            unit: "",
            line_end: "",
        };
        Some(layout.inline(value, &self.text))
    }

    /// The keys of the object at `path`, without duplicates; empty if there is no object.
    #[must_use]
    pub(crate) fn keys(&self, path: &[&str]) -> Vec<String> {
        let root = self.root();
        let mut value = &root;
        for key in path {
            let Some(property) = value.as_object().and_then(|object| last(object, key)) else {
                return Vec::new();
            };
            value = &property.value;
        }
        let mut keys: Vec<String> = Vec::new();
        for property in value
            .as_object()
            .into_iter()
            .flat_map(|object| &object.properties)
        {
            if !keys.iter().any(|known| known == property.name.as_str()) {
                keys.push(property.name.as_str().to_owned());
            }
        }
        keys
    }

    /// Sets the value at `path` to `json`: replaces the present value, or appends the key. Missing parents are
    /// created. The last key may be the index of an item of a list.
    ///
    /// # Errors
    /// When a parent is not an object, a list has no such item, or `json` is not JSON.
    ///
    /// # Panics
    /// When `path` is empty: the root has no key.
    pub(crate) fn set(&mut self, path: &[&str], json: &str) -> Result<(), DocumentError> {
        let (first, rest) = path.split_first().expect("a path has a key");
        // Inside of newly created objects, several values could pass for one.
        self.rendered(json, true, "")?;
        let root = self.root();
        let mut object = root.as_object().expect("it was read as an object");
        let mut is_inline = self.is_inline(object, false);
        let (mut key, mut behind, mut depth) = (*first, rest, 1);
        loop {
            let Some(property) = last(object, key) else {
                // Missing parents are inserted as one text.
                let nested = behind.iter().rev().fold(json.to_owned(), |json, key| {
                    format!("{{{}:{json}}}", quoted(key))
                });
                let cuts = self.insertion(object, is_inline, key, &nested)?;
                return self.cut(cuts);
            };
            match (&property.value, behind.split_first()) {
                (Value::Object(inner), Some((next, rest))) => {
                    is_inline = self.is_inline(inner, is_inline);
                    (object, key, behind, depth) = (inner, next, rest, depth + 1);
                }
                (Value::Array(items), Some((index, []))) => {
                    let item = index
                        .parse()
                        .ok()
                        .and_then(|at: usize| items.elements.get(at));
                    let Some(item) = item else {
                        return Err(shape(&self.text, &path[..depth], &property.value));
                    };
                    let text = self.rendered(json, true, "")?;
                    return self.cut(vec![(item.start()..item.end(), text)]);
                }
                (Value::NullKeyword(_), Some(_)) | (_, None) => {
                    let nested = behind.iter().rev().fold(json.to_owned(), |json, key| {
                        format!("{{{}:{json}}}", quoted(key))
                    });
                    let indent = self.indent_at(property.start()).to_owned();
                    let text = self.rendered(&nested, is_inline, &indent)?;
                    return self.cut(vec![(property.value.start()..property.value.end(), text)]);
                }
                (other, Some(_)) => return Err(shape(&self.text, &path[..depth], other)),
            }
        }
    }

    /// Removes the value at `path`. Returns whether there was one.
    ///
    /// # Errors
    /// When the rest is no longer valid, which would be a bug in this module.
    pub(crate) fn remove(&mut self, path: &[&str]) -> Result<bool, DocumentError> {
        self.remove_all(&[path])
    }

    /// Removes the values at all `paths` in two or three passes over the text. Returns whether there was one.
    ///
    /// # Errors
    /// As for [`Document::remove`].
    pub(crate) fn remove_all(&mut self, paths: &[&[&str]]) -> Result<bool, DocumentError> {
        let mut holders: BTreeMap<&[&str], BTreeSet<&str>> = BTreeMap::new();
        for (key, way) in paths.iter().filter_map(|path| path.split_last()) {
            holders.entry(way).or_default().insert(key);
        }
        let mut was_there = false;
        loop {
            let cuts = self.removals(&holders);
            if cuts.is_empty() {
                return Ok(was_there);
            }
            self.cut(cuts)?;
            was_there = true;
        }
    }

    /// The cuts that remove the members `keys` of their objects, as many as one pass can make.
    fn removals(&self, holders: &BTreeMap<&[&str], BTreeSet<&str>>) -> Vec<Cut> {
        let root = self.root();
        let mut cuts = Vec::new();
        for (way, keys) in holders {
            let object = way.iter().try_fold(root.as_object(), |object, key| {
                Some(last(object?, key)?.value.as_object())
            });
            let Some(object) = object.flatten() else {
                continue;
            };
            let leaves = |at: usize| keys.contains(object.properties[at].name.as_str());
            for at in (0..object.properties.len()).filter(|at| leaves(*at)) {
                let end = object.properties[at].end();
                let has_comma = Trivia::after(&self.text, end).comma.is_some();
                // The comma that one at the end takes along leaves with the member before it.
                if has_comma || at == 0 || !leaves(at - 1) {
                    cuts.extend(self.removal(object, at));
                }
            }
        }
        cuts
    }

    /// The cuts that remove the member at `index` of `object`.
    fn removal(&self, object: &Object<'_>, index: usize) -> Vec<Cut> {
        let property = &object.properties[index];
        let mut cuts = Vec::new();
        let after = Trivia::after(&self.text, property.end());
        let (mut start, mut end) = (
            property.start(),
            after.comma.map_or(property.end(), |comma| comma + 1),
        );
        if after.comma.is_none() && index > 0 {
            let before = Trivia::after(&self.text, object.properties[index - 1].end());
            let comma = before.comma.expect("a comma stands between two members");
            if self.text[comma + 1..start]
                .chars()
                .all(|c| c == ' ' || c == '\t')
            {
                start = comma;
            } else {
                cuts.push((comma..comma + 1, String::new()));
            }
        }
        let line = self.line_start(start);
        let has_own_line = self.text[line..start]
            .chars()
            .all(|c| c == ' ' || c == '\t');
        let rest = &self.text[end..];
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if has_own_line {
            // A comment after it on its line was about it.
            let behind = end + spaces + comment_length(&self.text[end + spaces..]).unwrap_or(0);
            let behind = behind + self.text[behind..].len()
                - self.text[behind..].trim_start_matches([' ', '\t']).len();
            match line_end_length(&self.text[behind..]) {
                Some(length) => (start, end) = (line, behind + length),
                None => end += spaces,
            }
        } else if after.comma.is_some() {
            end += spaces;
        }
        cuts.push((start..end, String::new()));
        cuts
    }

    /// The insertion of `key` with `json` into `object`, after its last member.
    fn insertion(
        &self,
        object: &Object<'_>,
        is_inline: bool,
        key: &str,
        json: &str,
    ) -> Result<Vec<Cut>, DocumentError> {
        let base = self.indent_at(object.start()).to_owned();
        let indent = match object.properties.first().map(ObjectProp::start) {
            Some(start) if self.text[self.line_start(start)..start].trim().is_empty() => {
                self.indent_at(start).to_owned()
            }
            _ => format!("{base}{}", self.unit()),
        };
        let member = format!(
            "{}: {}",
            quoted(key),
            self.rendered(json, is_inline, &indent)?
        );
        let close = object.end() - 1;
        let Some(last) = object.properties.last() else {
            let behind = Trivia::after(&self.text, object.start() + 1).end;
            let gap = &self.text[behind..close];
            return Ok(vec![if is_inline {
                (behind..close, member)
            } else if gap.contains('\n') {
                (
                    behind..behind,
                    format!("{}{indent}{member}", self.line_end()),
                )
            } else {
                let line_end = self.line_end();
                (
                    behind..close,
                    format!("{line_end}{indent}{member}{line_end}{base}"),
                )
            }]);
        };
        let trivia = Trivia::after(&self.text, last.end());
        let mut cuts = Vec::new();
        let comma = if trivia.comma.is_none() {
            cuts.push((last.end()..last.end(), ",".to_owned()));
            ""
        } else {
            ","
        };
        let gap = if is_inline {
            " ".to_owned()
        } else {
            format!("{}{indent}", self.line_end())
        };
        cuts.push((trivia.end..trivia.end, format!("{gap}{member}{comma}")));
        Ok(cuts)
    }

    fn rendered(&self, json: &str, is_inline: bool, indent: &str) -> Result<String, DocumentError> {
        let value = parsed(json)?.ok_or_else(|| DocumentError::Shape {
            position: Lines::new(json).position(0),
            key: "value".to_owned(),
            found: "nothing",
        })?;
        let layout = Layout {
            unit: self.unit(),
            line_end: self.line_end(),
        };
        Ok(if is_inline {
            layout.inline(&value, json)
        } else {
            layout.lines(&value, json, indent)
        })
    }

    /// Applies the cuts, whose positions refer to the current text.
    fn cut(&mut self, mut cuts: Vec<Cut>) -> Result<(), DocumentError> {
        // Of two at one position, the first comes first in the text.
        cuts.sort_by_key(|(range, _)| range.start);
        let (mut text, mut done) = (String::with_capacity(self.text.len()), 0);
        for (range, new) in cuts {
            text.push_str(&self.text[done..range.start]);
            text.push_str(&new);
            done = range.end;
        }
        text.push_str(&self.text[done..]);
        parsed(&text)?;
        self.text = text;
        Ok(())
    }

    fn root(&self) -> Value<'_> {
        parsed(&self.text)
            .ok()
            .flatten()
            .expect("the text was read before")
    }

    /// Whether an object is written in one line; an empty one follows its parent.
    fn is_inline(&self, object: &Object<'_>, holder: bool) -> bool {
        if object.properties.is_empty() {
            holder
        } else {
            !self.text[object.start()..object.end()].contains('\n')
        }
    }

    /// The indentation of one level.
    fn unit(&self) -> &str {
        let root = parsed(&self.text).ok().flatten();
        let first = root
            .as_ref()
            .and_then(Value::as_object)
            .and_then(|object| object.properties.first());
        let indent = first.map_or("", |property| self.indent_at(property.start()));
        if indent.is_empty() { "  " } else { indent }
    }

    fn line_end(&self) -> &'static str {
        if self.text.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        }
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |end| end + 1)
    }

    /// The space at the start of the line that holds `at`.
    fn indent_at(&self, at: usize) -> &str {
        let line = &self.text[self.line_start(at)..at];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }
}

/// A range of the text, and its replacement.
type Cut = (Range<usize>, String);

fn last<'a>(object: &'a Object<'a>, key: &str) -> Option<&'a ObjectProp<'a>> {
    object
        .properties
        .iter()
        .rev()
        .find(|property| property.name.as_str() == key)
}

fn parsed(text: &str) -> Result<Option<Value<'_>>, DocumentError> {
    file::parse(text).map_err(|error| DocumentError::Syntax {
        position: Lines::new(text).position(error.range().start),
        problem: lower_first(&error.kind().to_string()),
    })
}

fn shape(text: &str, way: &[&str], found: &Value<'_>) -> DocumentError {
    let key = if way.is_empty() {
        "configuration".to_owned()
    } else {
        way.join(".")
    };
    DocumentError::Shape {
        position: Lines::new(text).position(found.start()),
        key,
        found: kind(found),
    }
}
