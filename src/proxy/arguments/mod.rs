//! Checks arguments against a tool's schema before they are sent, and repairs unambiguous mistakes.
//!
//! Valid arguments are sent unchanged, byte for byte. The check helps agents and is not a security boundary:
//! arguments that cannot be checked (because of an invalid schema, a number beyond 64 bits, a megabyte of text) are
//! sent unchanged, and the server decides. Schemas are untrusted: nothing is fetched for them, and size, depth and
//! pattern matching are limited.

mod expansion;
mod fault;
mod plain;
mod repair;
mod rules;

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;
use serde_json::value::RawValue;

use expansion::{Expansion, Extent};
use plain::Plain;
use rules::Rules;

const MAX_SCHEMA: usize = 256 * 1024;
const MAX_SCHEMA_DEPTH: usize = 64;
const MAX_ARGUMENTS: usize = 1024 * 1024;
/// The maximum size of arguments that are checked with patterns beyond the linear engine, in bytes.
const MAX_BACKTRACKED_ARGUMENTS: usize = 64 * 1024;
const BACKTRACK_LIMIT: usize = 5_000;
const MAX_PATTERN_SIZE: usize = 256 * 1024;
const MAX_PATTERNS: usize = 256;
const MAX_FAULTS: usize = 8;
/// The maximum number of validator errors that are counted to compare arguments before and after repairs.
const MAX_COUNTED: usize = 64;

/// A tool's input schema, compiled once.
#[derive(Debug)]
pub(crate) struct Schema(State);

#[derive(Debug)]
enum State {
    Checked {
        plain: Plain,
        validator: Box<Validator>,
        schema: Box<RawValue>,
        limit: Limit,
    },
    Unchecked,
}

/// The largest arguments that are checked in bounded time with a schema's patterns and recursion.
#[derive(Debug, Clone, Copy)]
struct Limit {
    bytes: usize,
    values: usize,
    levels: usize,
}

impl Limit {
    fn holds(self, json: &str) -> bool {
        // A short text, the usual case, needs no measurement: it has at most as many values or levels as bytes.
        json.len() <= self.bytes && {
            json.len() <= self.values.min(self.levels) || {
                let extent = Extent::of(json);
                extent.values <= self.values && extent.levels <= self.levels
            }
        }
    }
}

/// Why arguments are not checked against a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unchecked {
    /// The tool has no schema.
    #[error("the tool has no input schema")]
    Absent,
    /// The schema is longer than 256 kB, nested deeper than 64 levels, has hundreds of patterns, or has references
    /// that make it too large or lead outside it.
    #[error("the schema is too large or too recursive to check against")]
    TooLarge,
    /// The schema is invalid.
    #[error("the schema does not compile: {reason}")]
    Invalid {
        /// The validator's message, shortened.
        reason: String,
    },
}

/// Arguments that may be sent.
#[derive(Debug)]
pub(crate) enum Checked<'a> {
    /// The original arguments, byte for byte.
    AsSent(&'a RawValue),
    /// Repaired arguments.
    Repaired {
        /// The arguments to send.
        arguments: Box<RawValue>,
        /// The changes.
        repairs: Vec<Repair>,
    },
}

/// One change made to arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repair {
    /// The position, such as `labels[0]`; empty for the arguments as a whole.
    pub path: String,
    /// The original form, such as `a number as a string`.
    pub what: String,
}

/// One fault of the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The position, such as `labels[0]`; empty for the arguments as a whole.
    pub path: String,
    /// A description for the agent.
    pub message: String,
}

impl Schema {
    /// Compiles an input schema. It cannot fail: without a usable schema, arguments are not checked.
    #[must_use]
    pub(crate) fn compile(input_schema: Option<&RawValue>) -> Self {
        let state = match input_schema.ok_or(Unchecked::Absent).and_then(compile) {
            Ok(state) => state,
            Err(reason) => {
                tracing::debug!(%reason, "the arguments of a tool are not checked");
                State::Unchecked
            }
        };
        Self(state)
    }

    /// The arguments to send.
    ///
    /// Missing arguments and `null` become `{}`.
    ///
    /// # Errors
    /// The faults that remain after all repairs, at most eight.
    pub(crate) fn check<'a>(
        &self,
        arguments: Option<&'a RawValue>,
    ) -> Result<Checked<'a>, Vec<Fault>> {
        let sent = arguments
            .filter(|raw| raw.get() != "null")
            .unwrap_or_else(none);
        let unwrapped = if sent.get().starts_with('{') {
            None
        } else {
            repair::unwrap(sent)
        };
        let current = unwrapped.as_deref().unwrap_or(sent);
        if !current.get().starts_with('{') {
            return Err(vec![fault::not_an_object(sent)]);
        }
        let mut repairs = Vec::new();
        if unwrapped.is_some() {
            let what = if sent.get().starts_with('[') {
                "an empty array for an object"
            } else {
                "JSON as a string"
            };
            repairs.push(Repair {
                path: String::new(),
                what: what.to_owned(),
            });
        }
        let repaired = match self.faults(current) {
            None => None,
            Some(faulty) => Some(faulty.repair(current, &mut repairs)?),
        };
        Ok(match repaired.or(unwrapped) {
            Some(arguments) => Checked::Repaired { arguments, repairs },
            None => Checked::AsSent(sent),
        })
    }

    /// The data for repairing or explaining `arguments`; `None` if they are valid or cannot be checked.
    fn faults(&self, arguments: &RawValue) -> Option<Faulty<'_>> {
        let State::Checked {
            plain,
            validator,
            schema,
            limit,
        } = &self.0
        else {
            return None;
        };
        if plain.accepts(arguments) || !limit.holds(arguments.get()) {
            return None;
        }
        let value = serde_json::from_str(arguments.get()).ok()?;
        if validator.is_valid(&value) {
            return None;
        }
        let count = count(validator, &value);
        (count > 0).then_some(Faulty {
            validator,
            schema,
            value,
            count,
        })
    }
}

/// Arguments that the validator rejected.
struct Faulty<'s> {
    validator: &'s Validator,
    schema: &'s RawValue,
    value: Value,
    count: usize,
}

impl Faulty<'_> {
    /// Repairs the arguments, or returns the remaining faults.
    fn repair(
        mut self,
        sent: &RawValue,
        repairs: &mut Vec<Repair>,
    ) -> Result<Box<RawValue>, Vec<Fault>> {
        let schema: Value =
            serde_json::from_str(self.schema.get()).expect("what compiled was read before");
        if let Some(repaired) = repair::repair(&Rules::new(&schema), sent, repairs)
            && let Ok(value) = serde_json::from_str(repaired.get())
        {
            let count = count(self.validator, &value);
            if count == 0 {
                return Ok(repaired);
            }
            // Only faults that the agent has to fix are reported.
            if count < self.count {
                self.value = value;
            }
        }
        Err(fault::faults(
            &schema,
            self.schema,
            &self.value,
            errors(self.validator, &self.value),
        ))
    }
}

/// Why nothing can be checked against a schema, if there is one.
pub(crate) fn fault_of(schema: &RawValue) -> Option<Unchecked> {
    compile(schema).err()
}

fn compile(raw: &RawValue) -> Result<State, Unchecked> {
    let json = raw.get();
    if json.len() > MAX_SCHEMA
        || Extent::of(json).levels > MAX_SCHEMA_DEPTH
        || json.matches("\"pattern").count() > MAX_PATTERNS
    {
        return Err(Unchecked::TooLarge);
    }
    let invalid = |error: &dyn std::fmt::Display| Unchecked::Invalid {
        reason: error.to_string().chars().take(200).collect(),
    };
    let schema: Value = serde_json::from_str(json).map_err(|error| invalid(&error))?;
    let expansion = Expansion::of(&schema).ok_or(Unchecked::TooLarge)?;
    // Without `$schema`, the schema may be of an older draft: an array in `items`, a boolean `exclusiveMinimum`.
    let older = if schema.get("$schema").is_none() {
        &[Draft::Draft7, Draft::Draft4][..]
    } else {
        &[]
    };
    let mut failure = None;
    for draft in std::iter::once(None).chain(older.iter().copied().map(Some)) {
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(false);
        let options = if let Some(draft) = draft {
            options.with_draft(draft)
        } else {
            options
        };
        let linear = PatternOptions::regex()
            .size_limit(MAX_PATTERN_SIZE)
            .dfa_size_limit(MAX_PATTERN_SIZE);
        let backtracking = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACK_LIMIT)
            .size_limit(MAX_PATTERN_SIZE)
            .dfa_size_limit(MAX_PATTERN_SIZE);
        let built = match options.clone().with_pattern_options(linear).build(&schema) {
            Ok(validator) => Ok((validator, MAX_ARGUMENTS)),
            // The linear engine has no look-around.
            Err(_) => options
                .with_pattern_options(backtracking)
                .build(&schema)
                .map(|validator| (validator, MAX_BACKTRACKED_ARGUMENTS)),
        };
        match built {
            Ok((validator, bytes)) => {
                let limit = Limit {
                    bytes,
                    values: expansion.values(),
                    levels: expansion.levels(),
                };
                return Ok(State::Checked {
                    plain: Plain::of(&schema),
                    validator: Box::new(validator),
                    schema: raw.to_owned(),
                    limit,
                });
            }
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.map_or(Unchecked::Absent, |error| invalid(&error.masked())))
}

fn errors<'v>(
    validator: &'v Validator,
    value: &'v Value,
) -> impl Iterator<Item = ValidationError<'v>> {
    validator
        .iter_errors(value)
        .filter(|error| !fault::is_engine_failure(error))
}

fn count(validator: &Validator, value: &Value) -> usize {
    errors(validator, value).take(MAX_COUNTED).count()
}

fn none<'a>() -> &'a RawValue {
    serde_json::from_str("{}").expect("an empty object is JSON")
}

fn member_path(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn item_path(path: &str, at: usize) -> String {
    format!("{path}[{at}]")
}

#[cfg(test)]
mod tests;
