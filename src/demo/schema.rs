//! The members of a tool's arguments or of its answer, and their JSON Schema.
//!
//! The schema is written straight from the declaration, in its order: a `serde_json::Value` would sort the members by
//! name, and the order in which a signature shows them is part of what a tool says.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

/// A member of an object.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) description: &'static str,
    pub(super) presence: Presence,
}

/// Whether a member must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Optional,
    /// It may be left out and is then this JSON.
    Default(&'static str),
}

/// What a value may be.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// A day, `2026-03-01`.
    Date,
    /// A moment with its offset from UTC, `2026-03-01T09:00:00+01:00`.
    Moment,
    /// One of these words.
    Choice(&'static [&'static str]),
    Number,
    /// A whole number within these bounds, both included.
    Integer(i64, i64),
    Flag,
    List(&'static Kind),
    Object(&'static [Field]),
    /// An object with any member names and values of one kind.
    Map(&'static Kind),
    Any,
}

/// An identifier that a server gave.
pub(super) const IDENTIFIER: Kind = Kind::Integer(1, 1_000_000_000);
/// How many of something there are.
pub(super) const COUNT: Kind = Kind::Integer(0, i64::MAX);
/// Several texts.
pub(super) const TEXTS: Kind = Kind::List(&Kind::Text);

/// A member that must be there.
pub(super) const fn required(name: &'static str, kind: Kind, description: &'static str) -> Field {
    Field {
        name,
        kind,
        description,
        presence: Presence::Required,
    }
}

/// A member that may be left out.
pub(super) const fn optional(name: &'static str, kind: Kind, description: &'static str) -> Field {
    Field {
        name,
        kind,
        description,
        presence: Presence::Optional,
    }
}

/// A member that may be left out and is then `default`, a JSON text.
pub(super) const fn with_default(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    description: &'static str,
) -> Field {
    Field {
        name,
        kind,
        description,
        presence: Presence::Default(default),
    }
}

/// The schema of an object with these members.
pub(super) struct ObjectSchema<'a>(pub(super) &'a [Field]);

impl Serialize for ObjectSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        object_entries(&mut map, self.0)?;
        map.end()
    }
}

struct Properties<'a>(&'a [Field]);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|field| (field.name, field)))
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        kind_entries(&mut map, &self.kind)?;
        map.serialize_entry("description", self.description)?;
        if let Presence::Default(json) = self.presence {
            let default: &RawValue =
                serde_json::from_str(json).map_err(serde::ser::Error::custom)?;
            map.serialize_entry("default", default)?;
        }
        map.end()
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        kind_entries(&mut map, self)?;
        map.end()
    }
}

fn kind_entries<M: SerializeMap>(map: &mut M, kind: &Kind) -> Result<(), M::Error> {
    match kind {
        Kind::Text => map.serialize_entry("type", "string"),
        Kind::Date => {
            map.serialize_entry("type", "string")?;
            map.serialize_entry("format", "date")
        }
        Kind::Moment => {
            map.serialize_entry("type", "string")?;
            map.serialize_entry("format", "date-time")
        }
        Kind::Choice(words) => {
            map.serialize_entry("type", "string")?;
            map.serialize_entry("enum", words)
        }
        Kind::Number => map.serialize_entry("type", "number"),
        Kind::Integer(least, most) => {
            map.serialize_entry("type", "integer")?;
            if *least > i64::MIN {
                map.serialize_entry("minimum", least)?;
            }
            if *most < i64::MAX {
                map.serialize_entry("maximum", most)
            } else {
                Ok(())
            }
        }
        Kind::Flag => map.serialize_entry("type", "boolean"),
        Kind::List(item) => {
            map.serialize_entry("type", "array")?;
            map.serialize_entry("items", item)
        }
        Kind::Object(fields) => object_entries(map, fields),
        Kind::Map(value) => {
            map.serialize_entry("type", "object")?;
            map.serialize_entry("additionalProperties", value)
        }
        Kind::Any => Ok(()),
    }
}

fn object_entries<M: SerializeMap>(map: &mut M, fields: &[Field]) -> Result<(), M::Error> {
    map.serialize_entry("type", "object")?;
    map.serialize_entry("properties", &Properties(fields))?;
    let required: Vec<_> = fields
        .iter()
        .filter(|f| f.presence == Presence::Required)
        .map(|f| f.name)
        .collect();
    if !required.is_empty() {
        map.serialize_entry("required", &required)?;
    }
    map.serialize_entry("additionalProperties", &false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_keeps_the_order_of_its_declaration() {
        const FIELDS: &[Field] = &[
            required("to", Kind::Choice(&["b", "a"]), "Where."),
            with_default("limit", Kind::Integer(1, 9), "5", "How many."),
            optional("at", Kind::List(&Kind::Date), "When."),
        ];
        let written = serde_json::to_string(&ObjectSchema(FIELDS)).unwrap();
        assert_eq!(
            written,
            r#"{"type":"object","properties":{"to":{"type":"string","enum":["b","a"],"description":"Where."},"limit":{"type":"integer","minimum":1,"maximum":9,"description":"How many.","default":5},"at":{"type":"array","items":{"type":"string","format":"date"},"description":"When."}},"required":["to"],"additionalProperties":false}"#
        );
    }
}
