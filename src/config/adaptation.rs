//! The user's overrides of a server's tools (`tools.override` in its entry): another name or description, arguments that the user sets, and defaults
//! for the answer. `catalog/adapted` applies them to what the server lists.
//!
//! Overrides may protect something, so a part that is not understood is a fault of the entry, never left out.

use std::collections::BTreeMap;

use jsonc_parser::ast::Value;
use serde_json::value::RawValue;

use super::ResultForm;
use super::error::EntryError;
use super::options::result_form;
use super::reader::{At, Field};
use crate::mcp::object::quoted;
use crate::secret::Secret;
use crate::tool::{SEPARATOR, ToolName};

/// The overrides of a server's tools, by the server's own names.
pub(crate) type Overrides = BTreeMap<String, Override>;

/// The user's override of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Override {
    /// The name that agents see.
    pub(crate) name: Option<ToolName>,
    /// The description that agents see.
    pub(crate) description: Option<String>,
    /// Its arguments that the user sets.
    pub(crate) arguments: BTreeMap<String, Preset>,
    /// The filter for results of calls without one.
    pub(crate) select: Option<String>,
    /// The characters that its answer may have, in place of `results.budget`; 0 means no limit.
    pub(crate) budget: Option<usize>,
    /// The form of its results, in place of the client's and of `results.form`.
    pub(crate) form: Option<ResultForm>,
}

/// An argument that the user sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Preset {
    /// Agents neither see nor set it, and the server does not get it.
    Hidden,
    /// Agents neither see nor set it, and the server gets this JSON.
    Fixed(Secret<String>),
    /// The server gets this JSON if the agent gives none. The value is shown if it has no variable.
    Default { json: Secret<String>, shown: bool },
}

/// An override as it is written.
#[derive(Debug)]
pub(super) struct OverrideEntry {
    pub(super) tool: At<String>,
    pub(super) name: Option<ToolName>,
    pub(super) description: Option<String>,
    pub(super) arguments: Vec<(String, PresetEntry)>,
    pub(super) select: Option<String>,
    pub(super) budget: Option<usize>,
    pub(super) form: Option<ResultForm>,
}

/// An argument as it is written.
#[derive(Debug)]
pub(super) enum PresetEntry {
    Hidden,
    Fixed(Vec<Piece>),
    Default(Vec<Piece>),
}

/// A part of a JSON value: texts may have variables.
#[derive(Debug)]
pub(super) enum Piece {
    Json(String),
    Text(At<String>),
}

const EXPECTED: &str = "an object of overrides like {\"create_issue\": {\"name\": \"new_ticket\", \"arguments\": {\"repo\": {\"fixed\": \"a/b\"}}}}";
const ONE: &str = "an override (`tools.override`) with no other keys than `name`, `description`, `arguments`, `select`, `budget` and `form`";
pub(super) const NAME: &str = "a name of 1 to 64 letters, digits, `_`, `-` and `.`, without `__`";
const PRESET: &str = "one of {\"fixed\": VALUE}, {\"default\": VALUE} and {\"hidden\": true}";

/// Reads the overrides of a server's entry.
pub(super) fn overrides(field: &Field<'_>) -> Result<Vec<OverrideEntry>, At<EntryError>> {
    field.object().map_err(|_| field.wrong(EXPECTED))?;
    field.members(one)
}

fn one(tool: &str, field: &Field<'_>) -> Result<OverrideEntry, At<EntryError>> {
    field.object().map_err(|_| field.wrong(ONE))?;
    let mut entry = OverrideEntry {
        tool: At::new(field.offset(), tool.to_owned()),
        name: None,
        description: None,
        arguments: Vec::new(),
        select: None,
        budget: None,
        form: None,
    };
    field.members(|key, value| {
        match key {
            "name" | "description" | "select" | "budget" | "form" if value.is_null() => {}
            "name" => entry.name = Some(name(value)?),
            "description" => entry.description = Some(value.text()?.value),
            // `null` is a fault: without it, agents would see and set arguments that the user sets.
            "arguments" => {
                entry.arguments =
                    value.members(|argument, value| Ok((argument.to_owned(), preset(value)?)))?;
            }
            "select" => entry.select = Some(value.text()?.value),
            "budget" => entry.budget = Some(value.whole_number()?),
            "form" => entry.form = Some(result_form(value)?),
            _ => return Err(field.wrong(ONE)),
        }
        Ok(())
    })?;
    entry.select.take_if(|filter| filter.trim().is_empty());
    Ok(entry)
}

fn name(field: &Field<'_>) -> Result<ToolName, At<EntryError>> {
    plain_name(&field.text_as(NAME)?.value).ok_or_else(|| field.wrong(NAME))
}

/// A tool's name as the user may choose it.
pub(super) fn plain_name(text: &str) -> Option<ToolName> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_legal = text.len() <= 64 && text.chars().all(is_plain) && !text.contains(SEPARATOR);
    ToolName::new(text).ok().filter(|_| is_legal)
}

/// The JSON of a value without variables; `None` if JSON does not have one of its numbers.
pub(super) fn json_of(value: &Value<'_>) -> Option<String> {
    let mut pieces = Vec::new();
    let piece = |piece: Piece| match piece {
        Piece::Json(json) => json,
        Piece::Text(text) => quoted(&text.value),
    };
    collect(value, &mut pieces).then(|| pieces.into_iter().map(piece).collect())
}

fn preset(field: &Field<'_>) -> Result<PresetEntry, At<EntryError>> {
    field.object().map_err(|_| field.wrong(PRESET))?;
    let mut found = field.members(|key, value| match key {
        "hidden" if value.flag()? => Ok(PresetEntry::Hidden),
        "fixed" => Ok(PresetEntry::Fixed(pieces(value)?)),
        "default" => Ok(PresetEntry::Default(pieces(value)?)),
        _ => Err(field.wrong(PRESET)),
    })?;
    match (found.pop(), found.is_empty()) {
        (Some(preset), true) => Ok(preset),
        _ => Err(field.wrong(PRESET)),
    }
}

fn pieces(field: &Field<'_>) -> Result<Vec<Piece>, At<EntryError>> {
    let mut pieces = Vec::new();
    match collect(field.value(), &mut pieces) {
        true => Ok(pieces),
        false => Err(field.wrong("a JSON value")),
    }
}

/// Collects the parts of a value, and returns whether JSON has all of its numbers; `0x10` is none.
fn collect(value: &Value<'_>, pieces: &mut Vec<Piece>) -> bool {
    let mut json = |text: &str| pieces.push(Piece::Json(text.to_owned()));
    let mut is_json = true;
    match value {
        Value::NullKeyword(_) => json("null"),
        Value::BooleanLit(literal) => json(if literal.value { "true" } else { "false" }),
        Value::NumberLit(number) => {
            is_json = serde_json::from_str::<&RawValue>(number.value).is_ok();
            json(number.value);
        }
        Value::StringLit(text) => {
            let text = At::new(text.range.start, text.value.clone().into_owned());
            pieces.push(Piece::Text(text));
        }
        Value::Array(array) => {
            json("[");
            for (index, element) in array.elements.iter().enumerate() {
                if index > 0 {
                    pieces.push(Piece::Json(",".to_owned()));
                }
                is_json &= collect(element, pieces);
            }
            pieces.push(Piece::Json("]".to_owned()));
        }
        Value::Object(object) => {
            json("{");
            for (index, property) in object.properties.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                let key = quoted(property.name.as_str());
                pieces.push(Piece::Json(comma.to_owned()));
                pieces.push(Piece::Json(format!("{key}:")));
                is_json &= collect(&property.value, pieces);
            }
            pieces.push(Piece::Json("}".to_owned()));
        }
    }
    is_json
}
