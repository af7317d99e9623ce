//! Tools, their checked arguments and their answers.

use std::path::PathBuf;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, OffsetDateTime};

/// A server's name, instructions and tools.
pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) instructions: &'static str,
    /// The definitions of its tools, a JSON array.
    pub(crate) definitions: &'static str,
    /// The parsed definitions.
    pub(crate) tools: OnceLock<Vec<Tool>>,
    /// Calls the tool with this name. The arguments match its definition.
    pub(crate) call: fn(&str, &Context, &Arguments) -> Outcome,
}

/// The parts of a definition that calls need.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tool {
    pub(crate) name: String,
    #[cfg(test)]
    pub(crate) description: String,
    input_schema: Value,
    #[serde(skip)]
    validator: OnceLock<Option<Validator>>,
}

/// The surroundings of a tool.
pub(crate) struct Context {
    /// The directory for the server's files.
    pub(crate) store: PathBuf,
    /// The clock, in whole seconds.
    pub(crate) now: fn() -> OffsetDateTime,
}

/// The answer of a tool.
pub(crate) enum Output {
    /// A text for reading.
    Text(String),
    /// An object.
    Data(Value),
}

/// An answer, or an error message for the caller.
pub(crate) type Outcome = Result<Output, String>;

impl Service {
    /// The tools, in order.
    pub(crate) fn tools(&self) -> &[Tool] {
        self.tools.get_or_init(|| {
            serde_json::from_str(self.definitions).expect("a test reads all definitions")
        })
    }

    /// The result of `tools/list`: the definitions without white space, on one page.
    pub(crate) fn listing(&self) -> String {
        let (mut is_text, mut is_escaped) = (false, false);
        let mut compact = self.definitions.to_owned();
        compact.retain(|c| {
            is_text ^= c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_text || !c.is_ascii_whitespace()
        });
        format!(r#"{{"tools":{compact}}}"#)
    }
}

impl Tool {
    /// Checks the arguments of a call against the definition and adds defaults.
    ///
    /// # Errors
    /// Every fault, each with its argument.
    pub(crate) fn arguments(&self, given: &Value) -> Result<Arguments, String> {
        let given = if given.is_null() {
            json!({})
        } else {
            given.clone()
        };
        let validator = self
            .validator
            .get_or_init(|| jsonschema::validator_for(&self.input_schema).ok());
        let faults: Vec<String> = validator
            .iter()
            .flat_map(|validator| validator.iter_errors(&given))
            .map(
                |error| match error.instance_path().as_str().trim_start_matches('/') {
                    "" => error.to_string(),
                    path => format!("`{path}`: {error}"),
                },
            )
            .collect();
        let Value::Object(mut values) = given else {
            return Err("the arguments must be an object".to_owned());
        };
        if !faults.is_empty() {
            return Err(format!(
                "The arguments of {} do not fit: {}.",
                self.name,
                faults.join("; ")
            ));
        }
        for (name, property) in self.input_schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
        {
            if let (None, Some(default)) = (values.get(name), property.get("default")) {
                values.insert(name.clone(), default.clone());
            }
        }
        Ok(Arguments(values))
    }
}

/// Arguments that match their definition, including defaults.
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// The value of `name`, if it was given or has a default.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// A text. Empty if it was omitted.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.optional_text(name).unwrap_or_default()
    }

    /// A text. `None` if it was omitted.
    pub(crate) fn optional_text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// The `title`, if it was given.
    ///
    /// # Errors
    /// When it is empty.
    pub(crate) fn title(&self) -> Result<Option<String>, String> {
        match self.optional_text("title").map(str::trim) {
            Some("") => Err("`title` must not be empty.".to_owned()),
            title => Ok(title.map(str::to_owned)),
        }
    }

    /// Whether `text` contains every word of the `query`, ignoring letter case.
    pub(crate) fn is_sought(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.text("query")
            .to_lowercase()
            .split_whitespace()
            .all(|word| text.contains(word))
    }

    /// A list of texts. Empty if it was omitted.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let items = self
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// A number. 0 if it was omitted.
    pub(crate) fn number(&self, name: &str) -> f64 {
        self.get(name).and_then(Value::as_f64).unwrap_or_default()
    }

    /// A whole number. 0 if it was omitted.
    pub(crate) fn integer(&self, name: &str) -> i64 {
        self.get(name).and_then(whole).unwrap_or_default()
    }

    /// A whole number as a length or a limit. 0 if it was omitted or is negative.
    pub(crate) fn size(&self, name: &str) -> usize {
        usize::try_from(self.integer(name)).unwrap_or_default()
    }

    /// A flag. False if it was omitted.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A day such as `2026-03-01`.
    ///
    /// # Errors
    /// When it is not a date.
    pub(crate) fn date(&self, name: &str) -> Result<Date, String> {
        Date::parse(self.text(name), format_description!("[year]-[month]-[day]"))
            .map_err(|_| format!("`{name}` must be a date such as \"2026-03-01\"."))
    }

    /// A moment such as `2026-03-01T09:00:00+01:00`.
    ///
    /// # Errors
    /// When it is not a moment.
    pub(crate) fn moment(&self, name: &str) -> Result<OffsetDateTime, String> {
        OffsetDateTime::parse(self.text(name), &Rfc3339).map_err(|_| {
            format!(
                "`{name}` must be a time with its UTC offset such as \"2026-03-01T09:00:00+01:00\"."
            )
        })
    }
}

/// A whole number. `3.0` counts, as in JSON Schema.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    let from_float = || {
        value
            .as_f64()
            .filter(|number| number.fract() == 0.0)
            .map(|number| number as i64)
    };
    value.as_i64().or_else(from_float)
}

/// A number as people write it: `3` instead of `3.0`, and without the last digits of a binary fraction.
pub(crate) fn number(value: f64) -> Value {
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    let rounded: f64 = format!("{value:.11e}").parse().unwrap_or(value);
    if rounded.fract() == 0.0 && rounded.abs() < WHOLE {
        // Within these bounds, `i64` and `f64` both hold the value exactly.
        return Value::from(rounded as i64);
    }
    Value::from(rounded)
}

/// An answer that consists of numbers.
///
/// # Errors
/// When one of them is not finite.
pub(crate) fn numbers(results: &[(&str, f64)]) -> Outcome {
    if results.iter().any(|(_, value)| !value.is_finite()) {
        return Err("The result is too large.".to_owned());
    }
    let members = results
        .iter()
        .map(|(name, value)| ((*name).to_owned(), number(*value)));
    Ok(Output::Data(Value::Object(members.collect())))
}

impl Output {
    /// A record as structured data.
    pub(crate) fn of(record: &impl Serialize) -> Self {
        Self::Data(serde_json::to_value(record).unwrap_or_default())
    }

    /// The `result` of a `tools/call`. Structured data is repeated as text for clients that only read text (2025-06-18,
    /// Tools, "Structured Content").
    pub(crate) fn into_result(self) -> Value {
        match self {
            Self::Text(text) => json!({ "content": [{ "type": "text", "text": text }] }),
            Self::Data(data) => {
                json!({ "content": [{ "type": "text", "text": data.to_string() }], "structuredContent": data })
            }
        }
    }
}
