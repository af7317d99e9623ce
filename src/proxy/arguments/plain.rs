//! Accepts arguments by their text, without a tree of values, for schemas of the usual kind.
//!
//! The validator accepts everything that is accepted here. It decides on the rest: on what this module does not know, and on what is
//! wrong.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::rules::Kinds;
use crate::mcp::Object;

/// The keywords that demand nothing. Formats are not checked, and definitions count where they are referenced.
const NOTES: [&str; 14] = [
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "example",
    "examples",
    "format",
    "readOnly",
    "title",
    "writeOnly",
];

/// The maximum number of required members.
const MOST_REQUIRED: usize = 64;

/// The demands of a schema on one value.
#[derive(Debug, Default)]
pub(super) enum Plain {
    /// Nothing.
    #[default]
    Nothing,
    /// Something that only the validator knows.
    Unknown,
    /// This.
    Demands(Box<Demands>),
}

#[derive(Debug)]
pub(super) struct Demands {
    kinds: Kinds,
    /// The permitted texts, if only some are. No other value is permitted then.
    literals: Option<Vec<String>>,
    /// Of these, one must accept the value, if there are any.
    alternatives: Vec<Plain>,
    members: BTreeMap<String, Plain>,
    required: Vec<String>,
    /// For members without a schema of their own.
    others: Plain,
    items: Plain,
    /// The number of items.
    count: RangeInclusive<u64>,
    /// The number of characters of a text.
    length: RangeInclusive<u64>,
    /// For integers.
    range: RangeInclusive<i64>,
}

impl Plain {
    /// Reads a schema.
    pub(super) fn of(schema: &Value) -> Self {
        match schema {
            Value::Bool(true) => Self::Nothing,
            Value::Object(keywords) if keywords.keys().all(|key| is_note(key)) => Self::Nothing,
            Value::Object(keywords) => Demands::of(keywords)
                .map_or(Self::Unknown, |demands| Self::Demands(Box::new(demands))),
            _ => Self::Unknown,
        }
    }

    /// Whether `value` is surely valid.
    pub(super) fn accepts(&self, value: &RawValue) -> bool {
        match self {
            Self::Nothing => true,
            Self::Unknown => false,
            Self::Demands(demands) => demands.accept(value).is_some(),
        }
    }
}

impl Demands {
    fn of(keywords: &Map<String, Value>) -> Option<Self> {
        let mut demands = Self {
            kinds: Kinds::ANY,
            literals: None,
            alternatives: Vec::new(),
            members: BTreeMap::new(),
            required: Vec::new(),
            others: Plain::Nothing,
            items: Plain::Nothing,
            count: 0..=u64::MAX,
            length: 0..=u64::MAX,
            range: i64::MIN..=i64::MAX,
        };
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("type", Value::String(name)) => demands.kinds = kind(name)?,
                ("type", Value::Array(names)) => {
                    let kinds = names.iter().map(|name| kind(name.as_str()?));
                    let kinds: Option<Vec<Kinds>> = kinds.collect();
                    demands.kinds = kinds?.into_iter().fold(Kinds::NONE, Kinds::or);
                }
                ("enum", Value::Array(values)) => demands.literals = Some(texts(values)?),
                ("const", Value::String(text)) => demands.literals = Some(vec![text.clone()]),
                ("anyOf", Value::Array(schemas)) => {
                    demands.alternatives = schemas.iter().map(Plain::of).collect();
                }
                ("properties", Value::Object(members)) => {
                    let members = members.iter();
                    let members = members.map(|(name, schema)| (name.clone(), Plain::of(schema)));
                    demands.members = members.collect();
                }
                ("required", Value::Array(names)) if names.len() <= MOST_REQUIRED => {
                    demands.required = texts(names)?;
                }
                ("additionalProperties", schema) => demands.others = Plain::of(schema),
                ("items", schema) => demands.items = Plain::of(schema),
                ("minItems", least) => demands.count = least.as_u64()?..=*demands.count.end(),
                ("maxItems", most) => demands.count = *demands.count.start()..=most.as_u64()?,
                ("minLength", least) => demands.length = least.as_u64()?..=*demands.length.end(),
                ("maxLength", most) => demands.length = *demands.length.start()..=most.as_u64()?,
                ("minimum", least) => demands.range = least.as_i64()?..=*demands.range.end(),
                ("maximum", most) => demands.range = *demands.range.start()..=most.as_i64()?,
                _ if is_note(keyword) => {}
                _ => return None,
            }
        }
        Some(demands)
    }

    fn accept(&self, value: &RawValue) -> Option<()> {
        let json = value.get();
        let kind = kind_of(json)?;
        let is_permitted = self.kinds.has(kind)
            && match &self.literals {
                None => true,
                Some(literals) => {
                    let text = text(json)?;
                    literals.iter().any(|literal| literal == text)
                }
            }
            && (self.alternatives.is_empty()
                || self.alternatives.iter().any(|one| one.accepts(value)));
        if !is_permitted {
            return None;
        }
        match json.as_bytes().first()? {
            b'{' => self.accept_members(value),
            b'[' => self.accept_items(json),
            b'"' => self.accept_length(json),
            b'-' | b'0'..=b'9' => self.accept_number(json),
            _ => Some(()),
        }
    }

    fn accept_members(&self, value: &RawValue) -> Option<()> {
        if self.members.is_empty()
            && self.required.is_empty()
            && matches!(self.others, Plain::Nothing)
        {
            return Some(());
        }
        // A bit for each required member.
        let mut found = 0_u64;
        // Of several members with one name the last one counts, and each is accepted.
        for (key, value) in Object::parse(value).ok()?.members() {
            let name = text(key.get())?;
            if let Some(at) = self.required.iter().position(|required| required == name) {
                found |= 1 << at;
            }
            let demands = self.members.get(name).unwrap_or(&self.others);
            demands.accepts(value).then_some(())?;
        }
        let is_found = |at: usize| (found >> at) & 1 == 1;
        (0..self.required.len()).all(is_found).then_some(())
    }

    fn accept_items(&self, json: &str) -> Option<()> {
        if self.count == (0..=u64::MAX) && matches!(self.items, Plain::Nothing) {
            return Some(());
        }
        let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
        let count = u64::try_from(items.len()).ok()?;
        let is_accepted =
            self.count.contains(&count) && items.iter().all(|item| self.items.accepts(item));
        is_accepted.then_some(())
    }

    fn accept_length(&self, json: &str) -> Option<()> {
        if self.length == (0..=u64::MAX) {
            return Some(());
        }
        let length = text(json)?.chars().count();
        let length = u64::try_from(length).ok()?;
        self.length.contains(&length).then_some(())
    }

    fn accept_number(&self, json: &str) -> Option<()> {
        if self.range == (i64::MIN..=i64::MAX) {
            return Some(());
        }
        let number = json.parse().ok()?;
        self.range.contains(&number).then_some(())
    }
}

fn is_note(keyword: &str) -> bool {
    NOTES.contains(&keyword)
}

/// The strings of an array, if it has nothing else.
fn texts(values: &[Value]) -> Option<Vec<String>> {
    let texts = values.iter().map(|value| value.as_str().map(str::to_owned));
    texts.collect()
}

fn kind(name: &str) -> Option<Kinds> {
    Some(match name {
        "null" => Kinds::NULL,
        "boolean" => Kinds::BOOLEAN,
        "integer" => Kinds::INTEGER,
        "number" => Kinds::NUMBER,
        "string" => Kinds::STRING,
        "array" => Kinds::ARRAY,
        "object" => Kinds::OBJECT,
        _ => return None,
    })
}

/// The kind of a value. Only digits that make less than 64 bits are an integer.
fn kind_of(json: &str) -> Option<Kinds> {
    Some(match json.as_bytes().first()? {
        b'n' => Kinds::NULL,
        b't' | b'f' => Kinds::BOOLEAN,
        b'"' => Kinds::STRING,
        b'[' => Kinds::ARRAY,
        b'{' => Kinds::OBJECT,
        _ if json.len() > 18 || json.contains(['.', 'e', 'E']) => Kinds::FRACTION,
        _ => Kinds::INTEGER,
    })
}

/// The text of a string that has no escapes.
fn text(json: &str) -> Option<&str> {
    let text = json.strip_prefix('"')?.strip_suffix('"')?;
    memchr::memchr(b'\\', text.as_bytes())
        .is_none()
        .then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The values that are tried with each schema, also as members and items.
    const VALUES: [&str; 22] = [
        "null",
        "true",
        "false",
        "0",
        "-7",
        "3",
        "10",
        "1.0",
        "2.5",
        "1e2",
        r#""""#,
        r#""a""#,
        r#""abcd""#,
        r#""a\u0062""#,
        r#""é😀""#,
        "[]",
        r#"["a"]"#,
        "[1,2,3]",
        "{}",
        r#"{"a":1}"#,
        r#"{"a":"x","b":[1]}"#,
        r#"{"a":1,"a":"x","c":null}"#,
    ];

    fn schemas() -> Vec<Value> {
        vec![
            json!({}),
            json!({"description": "x", "type": "string"}),
            json!({"type": "string", "minLength": 2}),
            json!({"type": "string", "maxLength": 2, "format": "date"}),
            json!({"type": "integer"}),
            json!({"type": "integer", "minimum": 1, "maximum": 5}),
            json!({"type": "number", "minimum": -7}),
            json!({"minimum": 1}),
            json!({"type": ["string", "null"]}),
            json!({"enum": ["a", "b"]}),
            json!({"const": "abcd"}),
            json!({"enum": [1, "a"]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "object", "required": ["a"]}, {"type": "array", "items": {"type": "integer"}}]}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "minItems": 1, "maxItems": 2}),
            json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]}),
            json!({"type": "object", "properties": {"a": true}, "additionalProperties": false}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"properties": {"b": {"type": "array", "items": {"minimum": 2}}}}),
            json!({"type": "object", "patternProperties": {"a": {"type": "string"}}}),
            json!({"not": {"type": "string"}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}),
            json!({"oneOf": [{"type": "string"}, {"maxLength": 1}]}),
            json!(false),
        ]
    }

    #[test]
    fn what_is_accepted_is_valid() {
        let values = VALUES.iter().flat_map(|value| {
            [
                (*value).to_owned(),
                format!(r#"{{"a":{value},"b":[{value}]}}"#),
                format!("[{value},{value}]"),
            ]
        });
        let values: Vec<String> = values.collect();
        let (mut accepted, mut valid) = (0, 0);
        for schema in schemas() {
            let validator = jsonschema::validator_for(&schema).unwrap();
            let plain = Plain::of(&schema);
            for json in &values {
                let is_valid = validator.is_valid(&serde_json::from_str(json).unwrap());
                let is_accepted = plain.accepts(serde_json::from_str(json).unwrap());
                assert!(is_valid || !is_accepted, "{schema} accepts {json}");
                accepted += usize::from(is_accepted);
                valid += usize::from(is_valid);
            }
        }
        assert!(accepted > valid / 2, "{accepted} of {valid}");
    }

    #[test]
    fn usual_schemas_need_no_validator() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "limit": {"type": "integer", "minimum": 1, "default": 10},
                "labels": {"type": "array", "items": {"enum": ["bug", "idea"]}},
                "after": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
                "odd": {"pattern": "^a"},
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        let plain = Plain::of(&schema);
        let accepts = |json: &str| plain.accepts(serde_json::from_str(json).unwrap());
        assert!(accepts(
            r#"{"path":"a/b","limit":5,"labels":["bug"],"after":null}"#
        ));
        assert!(accepts(r#"{"path" : "a"}"#));
        for json in [
            "{}",
            r#"{"path":""}"#,
            r#"{"path":"a","limit":0}"#,
            r#"{"path":"a","limit":"5"}"#,
            r#"{"path":"a","labels":["x"]}"#,
            r#"{"path":"a","more":1}"#,
            r#"{"path":"a","odd":"a"}"#,
        ] {
            assert!(!accepts(json), "{json}");
        }
    }
}
