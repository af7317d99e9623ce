//! Repairs of unambiguous mistakes in arguments.
//!
//! Walks the raw arguments together with their schema. Parts that need no repair keep their bytes and order, so that
//! a large number or an unusual escape elsewhere survives. Repairs are proposals: the caller validates the result.

use serde_json::Value;
use serde_json::value::RawValue;

use super::rules::{Kinds, Parts, Rules};
use super::{Repair, item_path, member_path};
use crate::mcp::object::{Object, text};

/// The maximum depth of the walk.
const MAX_DEPTH: usize = 24;

/// The object in the JSON string `sent`, encoded at most three times. Blank text and `[]` mean no arguments.
pub(super) fn unwrap(sent: &RawValue) -> Option<Box<RawValue>> {
    if sent.get().starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(sent.get()).ok()?;
        return items.is_empty().then(empty_object);
    }
    let mut content = text(sent)?;
    for _ in 0..3 {
        if content.trim().is_empty() || content.trim() == "null" {
            return Some(empty_object());
        }
        let inner = json(&content)?;
        match inner.get().as_bytes().first() {
            Some(b'{') => return Some(inner),
            _ => content = text(&inner)?,
        }
    }
    None
}

fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("an empty object is JSON")
}

/// `sent` with all repairs that its schema suggests; `None` if there are none.
pub(super) fn repair(
    rules: &Rules<'_>,
    sent: &RawValue,
    repairs: &mut Vec<Repair>,
) -> Option<Box<RawValue>> {
    Walk { rules, repairs }.inside(sent, rules.root(), "", 0)
}

struct Walk<'w, 's> {
    rules: &'w Rules<'s>,
    repairs: &'w mut Vec<Repair>,
}

impl<'s> Walk<'_, 's> {
    fn value(
        &mut self,
        raw: &RawValue,
        schema: &'s Value,
        path: &str,
        depth: usize,
    ) -> Option<Box<RawValue>> {
        if depth > MAX_DEPTH {
            return None;
        }
        if self.rules.kinds(schema).has(Kinds::of(raw)) {
            return self.inside(raw, schema, path, depth);
        }
        let (converted, what) = self.convert(raw, schema, 0)?;
        self.note(path, what);
        self.inside(&converted, schema, path, depth)
            .or(Some(converted))
    }

    /// Repairs inside a value of the right kind.
    fn inside(
        &mut self,
        raw: &RawValue,
        schema: &'s Value,
        path: &str,
        depth: usize,
    ) -> Option<Box<RawValue>> {
        let parts = self.rules.parts(schema, raw);
        match raw.get().as_bytes().first() {
            Some(b'{') => self.object(raw, &parts, path, depth),
            Some(b'[') => self.array(raw, &parts, path, depth),
            Some(b'"') => {
                let literal = other_case(&text(raw)?, &parts)?;
                self.note(path, format!("the letter case of {}", raw.get()));
                Some(literal)
            }
            _ => None,
        }
    }

    fn object(
        &mut self,
        raw: &RawValue,
        parts: &Parts<'s>,
        path: &str,
        depth: usize,
    ) -> Option<Box<RawValue>> {
        let object = Object::parse(raw).ok()?;
        let mut changed = false;
        let mut members = Vec::with_capacity(object.members().len());
        for ((name, value), (key, _)) in object.iter().zip(object.members()) {
            let meant = other_spelling(&name, &object, parts);
            let name = meant.unwrap_or(&name);
            let path = member_path(path, name);
            let schema = parts.member(name);
            let unwanted =
                |schema| !self.rules.kinds(schema).has(Kinds::NULL) && !parts.is_required(name);
            if value.get() == "null" && schema.is_some_and(unwanted) {
                self.note(&path, "null for an optional parameter");
                changed = true;
                continue;
            }
            if meant.is_some() {
                self.note(&path, format!("the spelling {}", key.get()));
            }
            let key = if meant.is_some() {
                Value::from(name).to_string()
            } else {
                key.get().to_owned()
            };
            let repaired = schema.and_then(|schema| self.value(value, schema, &path, depth + 1));
            changed |= meant.is_some() || repaired.is_some();
            members.push(format!(
                "{key}:{}",
                repaired.as_deref().unwrap_or(value).get()
            ));
        }
        if changed {
            json(&format!("{{{}}}", members.join(",")))
        } else {
            None
        }
    }

    fn array(
        &mut self,
        raw: &RawValue,
        parts: &Parts<'s>,
        path: &str,
        depth: usize,
    ) -> Option<Box<RawValue>> {
        let items: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
        let repaired: Vec<_> = items
            .iter()
            .enumerate()
            .map(|(at, item)| self.value(item, parts.item(at)?, &item_path(path, at), depth + 1))
            .collect();
        if repaired.iter().all(Option::is_none) {
            return None;
        }
        let items: Vec<_> = items
            .iter()
            .zip(&repaired)
            .map(|(item, repaired)| repaired.as_deref().unwrap_or(item).get())
            .collect();
        json(&format!("[{}]", items.join(",")))
    }

    /// Converts `raw` to a kind of value that `schema` accepts; also returns its original form.
    fn convert(
        &self,
        raw: &RawValue,
        schema: &'s Value,
        nested: usize,
    ) -> Option<(Box<RawValue>, &'static str)> {
        let kinds = self.rules.kinds(schema);
        let scalar = match Kinds::of(raw) {
            Kinds::STRING => from_text(&text(raw)?, kinds),
            Kinds::INTEGER | Kinds::FRACTION
                if kinds.has(Kinds::STRING) && !kinds.has(Kinds::NUMBER) =>
            {
                Some((
                    json(&format!("\"{}\"", raw.get()))?,
                    "a number for a string",
                ))
            }
            Kinds::BOOLEAN if kinds.has(Kinds::STRING) => {
                let word = json(&format!("\"{}\"", raw.get()))?;
                let parts = self.rules.parts(schema, &word);
                let listed = parts
                    .literals()
                    .is_some_and(|values| values.iter().any(|value| *value == raw.get()));
                listed.then_some((word, "a boolean for a string"))
            }
            _ => None,
        };
        if scalar.is_some() || nested > 0 || !kinds.has(Kinds::ARRAY) || raw.get() == "null" {
            return scalar;
        }
        let list = json(&format!("[{}]", raw.get()))?;
        let item = self.rules.parts(schema, &list).item(0)?;
        let fits = self.rules.kinds(item).has(Kinds::of(raw)) && !is_list(raw);
        let fits = fits || self.convert(raw, item, nested + 1).is_some();
        fits.then_some((list, "a single value for an array"))
    }

    fn note(&mut self, path: &str, what: impl Into<String>) {
        self.repairs.push(Repair {
            path: path.to_owned(),
            what: what.into(),
        });
    }
}

/// Whether a text may have been meant as several items; only its author knows where to split it.
fn is_list(raw: &RawValue) -> bool {
    text(raw).is_some_and(|text| {
        text.contains([',', ';', '\n']) || text.trim_start().starts_with(['[', '{'])
    })
}

/// Parses `content` as JSON, if its kind is in `kinds`.
fn from_text(content: &str, kinds: Kinds) -> Option<(Box<RawValue>, &'static str)> {
    let content = content.trim();
    for word in ["true", "false"] {
        if kinds.has(Kinds::BOOLEAN) && content.eq_ignore_ascii_case(word) {
            return Some((json(word)?, "a boolean as a string"));
        }
    }
    let value = json(content)?;
    let kind = Kinds::of(&value);
    if kind == Kinds::STRING {
        let inner = json(&text(&value)?)?;
        return if Kinds::of(&inner) == Kinds::STRING {
            None
        } else {
            from_text(inner.get(), kinds)
        };
    }
    if !kinds.has(kind) {
        return None;
    }
    match kind {
        Kinds::INTEGER => Some((integer(&value)?, "a number as a string")),
        Kinds::FRACTION => Some((value, "a number as a string")),
        Kinds::NULL => Some((value, "null as a string")),
        Kinds::ARRAY | Kinds::OBJECT => Some((value, "JSON as a string")),
        _ => None,
    }
}

/// `5.0` as `5`; an integer in digits of any size is unchanged.
fn integer(raw: &RawValue) -> Option<Box<RawValue>> {
    if !raw.get().contains(['.', 'e', 'E']) {
        return Some(raw.to_owned());
    }
    let number: f64 = raw.get().parse().ok()?;
    // Beyond 2^53, a float does not identify one integer.
    if number.abs() < 9e15 {
        json(&format!("{number:.0}"))
    } else {
        None
    }
}

/// The only enum value that equals `word` except for letter case; `None` if `word` is itself a value.
fn other_case(word: &str, parts: &Parts<'_>) -> Option<Box<RawValue>> {
    let values: Vec<&str> = parts
        .literals()?
        .into_iter()
        .filter_map(Value::as_str)
        .collect();
    if values.contains(&word) {
        return None;
    }
    let folded = word.trim().to_lowercase();
    let mut same = values
        .into_iter()
        .filter(|value| value.to_lowercase() == folded);
    match (same.next(), same.next()) {
        (Some(value), None) => json(&Value::from(value).to_string()),
        _ => None,
    }
}

/// The only parameter that equals `name` except for letter case and separators, if `name` itself is not a parameter.
fn other_spelling<'s>(name: &str, sent: &Object<'_>, parts: &Parts<'s>) -> Option<&'s str> {
    if parts.names().any(|known| known == name) {
        return None;
    }
    let folded = fold(name);
    let mut same = parts.names().filter(|known| fold(known) == folded);
    let (Some(known), None) = (same.next(), same.next()) else {
        return None;
    };
    let is_only = sent.iter().filter(|(key, _)| fold(key) == folded).count() == 1;
    let wanted = parts.is_closed() || parts.is_required(known);
    (is_only && wanted).then_some(known)
}

fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-' | ' ' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}

fn json(text: &str) -> Option<Box<RawValue>> {
    serde_json::from_str(text).ok()
}
