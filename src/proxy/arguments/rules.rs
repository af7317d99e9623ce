//! Reads a schema's demands on one value, for repairs.
//!
//! It is not a second validator: it determines the kinds of value that a schema accepts and the schema of a member,
//! so that a repair can be tried. The validator decides whether the repair was right.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::tool::local_pointer;

/// The maximum number of combined schemas (`allOf`, `$ref`) and references; others are ignored.
const MAX_PARTS: usize = 64;
const MAX_DEPTH: usize = 12;

/// A set of JSON kinds. A number without a fraction is an integer, as in JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const FRACTION: Self = Self(8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const NUMBER: Self = Self(4 | 8);
    pub(super) const ANY: Self = Self(127);
    pub(super) const NONE: Self = Self(0);

    pub(super) fn of(raw: &RawValue) -> Self {
        match raw.get().as_bytes().first() {
            Some(b'n') => Self::NULL,
            Some(b't' | b'f') => Self::BOOLEAN,
            Some(b'"') => Self::STRING,
            Some(b'[') => Self::ARRAY,
            Some(b'{') => Self::OBJECT,
            _ => serde_json::from_str(raw.get())
                .map_or(Self::FRACTION, |value: Value| Self::of_value(&value)),
        }
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(n) if n.as_f64().is_some_and(|n| n.fract() == 0.0) => Self::INTEGER,
            Value::Number(_) => Self::FRACTION,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    fn named(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::ANY,
        }
    }

    /// Whether the two sets share a kind.
    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// A whole schema, in which references are resolved.
pub(super) struct Rules<'s> {
    root: &'s Value,
}

/// All schemas that apply to one value: a schema and its references.
#[derive(Default)]
pub(super) struct Parts<'s>(Vec<&'s Map<String, Value>>);

impl<'s> Rules<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        Self { root }
    }

    pub(super) fn root(&self) -> &'s Value {
        self.root
    }

    /// The kinds of value that `schema` accepts, as far as types, enums and alternatives show.
    pub(super) fn kinds(&self, schema: &'s Value) -> Kinds {
        self.kinds_within(schema, 0)
    }

    fn kinds_within(&self, schema: &'s Value, depth: usize) -> Kinds {
        if depth > MAX_DEPTH {
            return Kinds::ANY;
        }
        let mut parts = Parts::default();
        self.gather(schema, &mut parts, 0);
        let mut kinds = Kinds::ANY;
        for part in &parts.0 {
            kinds = kinds.and(match part.get("type") {
                Some(Value::String(name)) => Kinds::named(name),
                Some(Value::Array(names)) => names
                    .iter()
                    .filter_map(Value::as_str)
                    .map(Kinds::named)
                    .fold(Kinds::NONE, Kinds::or),
                _ => Kinds::ANY,
            });
            if let Some(values) = part.get("enum").and_then(Value::as_array) {
                kinds = kinds.and(
                    values
                        .iter()
                        .map(Kinds::of_value)
                        .fold(Kinds::NONE, Kinds::or),
                );
            }
            if let Some(value) = part.get("const") {
                kinds = kinds.and(Kinds::of_value(value));
            }
            for branches in branches(part) {
                let any = branches
                    .iter()
                    .map(|b| self.kinds_within(b, depth + 1))
                    .fold(Kinds::NONE, Kinds::or);
                kinds = kinds.and(any);
            }
        }
        kinds
    }

    /// All schemas that apply to `raw`. Of alternatives, only an unambiguous one counts.
    pub(super) fn parts(&self, schema: &'s Value, raw: &RawValue) -> Parts<'s> {
        let mut parts = Parts::default();
        self.gather(schema, &mut parts, 0);
        let kind = Kinds::of(raw);
        let mut at = 0;
        while at < parts.0.len() && at < MAX_PARTS {
            for branches in branches(parts.0[at]) {
                let mut fitting = branches
                    .iter()
                    .filter(|branch| self.kinds(branch).has(kind));
                let chosen = match (fitting.next(), fitting.next()) {
                    (only, None) => only,
                    _ => branches.iter().find(|branch| self.is_tagged(branch, raw)),
                };
                if let Some(branch) = chosen {
                    self.gather(branch, &mut parts, 0);
                }
            }
            at += 1;
        }
        parts
    }

    /// Whether the object `raw` has the constant members of `schema`, such as `{"kind": {"const": "file"}}`.
    fn is_tagged(&self, schema: &'s Value, raw: &RawValue) -> bool {
        let Ok(Value::Object(value)) = serde_json::from_str(raw.get()) else {
            return false;
        };
        let mut parts = Parts::default();
        self.gather(schema, &mut parts, 0);
        let tags = parts
            .0
            .iter()
            .filter_map(|part| part.get("properties")?.as_object())
            .flatten();
        tags.filter_map(|(name, schema)| {
            let one = schema.get("const").or_else(|| {
                schema
                    .get("enum")?
                    .as_array()
                    .filter(|e| e.len() == 1)?
                    .first()
            })?;
            Some(value.get(name) == Some(one))
        })
        .reduce(|all, one| all && one)
        .unwrap_or(false)
    }

    fn gather(&self, schema: &'s Value, parts: &mut Parts<'s>, depth: usize) {
        let Some(object) = schema.as_object() else {
            return;
        };
        if depth > MAX_DEPTH
            || parts.0.len() >= MAX_PARTS
            || parts.0.iter().any(|known| std::ptr::eq(*known, object))
        {
            return;
        }
        parts.0.push(object);
        if let Some(target) = object
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| self.resolve(reference))
        {
            self.gather(target, parts, depth + 1);
        }
        for part in object
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.gather(part, parts, depth + 1);
        }
    }

    fn resolve(&self, reference: &str) -> Option<&'s Value> {
        self.root.pointer(&local_pointer(reference)?)
    }
}

fn branches(part: &Map<String, Value>) -> impl Iterator<Item = &Vec<Value>> {
    ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| part.get(keyword)?.as_array())
}

impl<'s> Parts<'s> {
    /// The schema of the member `name`: its own, or that of additional members.
    pub(super) fn member(&self, name: &str) -> Option<&'s Value> {
        let own = self
            .0
            .iter()
            .find_map(|part| part.get("properties")?.get(name));
        own.or_else(|| {
            self.0
                .iter()
                .find_map(|part| part.get("additionalProperties").filter(|s| s.is_object()))
        })
    }

    /// The names of the members in the schema.
    pub(super) fn names(&self) -> impl Iterator<Item = &'s str> {
        self.0
            .iter()
            .filter_map(|part| part.get("properties")?.as_object())
            .flatten()
            .map(|(name, _)| name.as_str())
    }

    pub(super) fn is_required(&self, name: &str) -> bool {
        self.0
            .iter()
            .filter_map(|part| part.get("required")?.as_array())
            .flatten()
            .any(|required| required == name)
    }

    /// Whether additional members are rejected.
    pub(super) fn is_closed(&self) -> bool {
        let refused = |keyword| {
            self.0
                .iter()
                .any(|part| part.get(keyword) == Some(&Value::Bool(false)))
        };
        let patterns = self
            .0
            .iter()
            .any(|part| part.contains_key("patternProperties"));
        !patterns && (refused("additionalProperties") || refused("unevaluatedProperties"))
    }

    /// The schema of the item at index `at` of an array.
    pub(super) fn item(&self, at: usize) -> Option<&'s Value> {
        self.0.iter().find_map(|part| {
            let tuple = part.get("prefixItems").or_else(|| part.get("items"))?;
            tuple
                .as_array()
                .and_then(|items| items.get(at))
                .or_else(|| part.get("items").filter(|items| items.is_object()))
        })
    }

    /// The values of an enum, if there is one.
    pub(super) fn literals(&self) -> Option<Vec<&'s Value>> {
        self.0
            .iter()
            .find_map(|part| match (part.get("const"), part.get("enum")) {
                (Some(value), _) => Some(vec![value]),
                (None, Some(Value::Array(values))) => Some(values.iter().collect()),
                _ => None,
            })
    }
}
