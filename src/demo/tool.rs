//! How a server declares a tool: one value, from which its listing, the check of its arguments and its call all follow.

use std::path::PathBuf;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::arguments::Arguments;
use super::schema::{Field, ObjectSchema};

/// A tool of a demo server.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) effect: Effect,
    pub(super) parameters: &'static [Field],
    /// The members of the data it answers; empty for a tool that answers text.
    pub(super) returns: &'static [Field],
    /// Does the work. The arguments have been checked against `parameters`.
    pub(super) run: fn(&Context, &Arguments) -> Outcome,
}

/// What a tool may use besides its arguments.
pub(super) struct Context {
    /// The directory for the server's files.
    pub(super) store: PathBuf,
    /// The clock.
    pub(super) now: fn() -> OffsetDateTime,
}

/// What a call does to the world; each gives one set of annotations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    Reads,
    /// Something new comes into being with each call.
    Adds,
    /// Something is set that may have been set already; nothing is lost.
    Marks,
    /// What was there before is gone. A second call changes nothing more.
    Replaces,
}

/// What a tool answers.
pub(super) enum Output {
    /// A text for reading.
    Text(String),
    /// An object as `returns` describes it.
    Data(Value),
}

/// An answer, or why there is none, in words for whoever called.
pub(super) type Outcome = Result<Output, String>;

impl Output {
    /// The `result` of a `tools/call`. Data is there as text too, for clients that look at nothing else
    /// (2025-06-18, Tools, "Structured Content").
    pub(super) fn into_result(self) -> Value {
        match self {
            Self::Text(text) => json!({ "content": [{ "type": "text", "text": text }] }),
            Self::Data(data) => {
                json!({ "content": [{ "type": "text", "text": data.to_string() }], "structuredContent": data })
            }
        }
    }
}

/// A number as people write it: `3`, not `3.0`, and without the last digits of a binary fraction.
pub(super) fn number(value: f64) -> Value {
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    let rounded: f64 = format!("{value:.11e}").parse().unwrap_or(value);
    if rounded.fract() == 0.0 && rounded.abs() < WHOLE {
        // The bounds above keep the value within what `i64` and `f64` both hold exactly.
        let whole = rounded as i64;
        return Value::from(whole);
    }
    Value::from(rounded)
}

impl Serialize for Tool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Entry<'a> {
            name: &'a str,
            title: &'a str,
            description: &'a str,
            input_schema: ObjectSchema<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            output_schema: Option<ObjectSchema<'a>>,
            annotations: Effect,
        }
        Entry {
            name: self.name,
            title: self.title,
            description: self.description,
            input_schema: ObjectSchema(self.parameters),
            output_schema: (!self.returns.is_empty()).then_some(ObjectSchema(self.returns)),
            annotations: self.effect,
        }
        .serialize(serializer)
    }
}

impl Serialize for Effect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Annotations {
            read_only_hint: bool,
            destructive_hint: bool,
            idempotent_hint: bool,
            open_world_hint: bool,
        }
        Annotations {
            read_only_hint: *self == Self::Reads,
            destructive_hint: *self == Self::Replaces,
            idempotent_hint: *self != Self::Adds,
            open_world_hint: false,
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_as_people_write_it() {
        for (value, written) in [
            (3.0, "3"),
            (0.1 + 0.2, "0.3"),
            (-2.5, "-2.5"),
            (1e20, "1e+20"),
            (1.0 / 3.0, "0.333333333333"),
        ] {
            assert_eq!(number(value).to_string(), written);
        }
    }
}
