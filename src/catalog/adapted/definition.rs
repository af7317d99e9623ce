//! The definition of an adapted tool, made from its server's own.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::config::{Override, Preset, ResultForm};
use crate::mcp::Object;
use crate::mcp::object::quoted;
use crate::tool::Definition;

/// Members of a schema that constrain no argument.
const HARMLESS: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
];

/// The definition of a tool as `wanted`.
///
/// # Errors
/// The reason why the override cannot be applied, without any value of it.
pub(super) fn adapted(listed: &RawValue, wanted: &Override) -> Result<Box<RawValue>, String> {
    let unreadable = || "its definition cannot be read".to_owned();
    let mut json = listed.to_owned();
    let mut set = |key: &str, value: &str| {
        let object = Object::parse(&json).map_err(|_| unreadable())?;
        let changed = object.with(key, value);
        json = RawValue::from_string(changed).map_err(|_| unreadable())?;
        Ok::<(), String>(())
    };
    if let Some(name) = &wanted.name {
        set("name", &quoted(name.as_str()))?;
    }
    if let Some(description) = &wanted.description {
        set("description", &quoted(description))?;
    }
    if !wanted.arguments.is_empty() {
        let object = Object::parse(listed).map_err(|_| unreadable())?;
        let schema = object.get("inputSchema");
        let schema = schema.and_then(|raw| Object::parse(raw).ok());
        let schema = schema.ok_or("it has no schema of its arguments")?;
        set("inputSchema", &input_schema(&schema, wanted)?)?;
    }
    let is_compact = wanted.form == Some(ResultForm::Compact);
    if wanted.select.is_some() || wanted.budget.is_some() || is_compact {
        // It describes the whole result as the server sends it.
        let object = Object::parse(&json).map_err(|_| unreadable())?;
        let changed = object.without("outputSchema");
        json = RawValue::from_string(changed).map_err(|_| unreadable())?;
    }
    Definition::parse(&json).map_err(|error| error.to_string())?;
    Ok(json)
}

/// The schema without arguments that only the user sets, and with those that have a default as optional ones.
fn input_schema(schema: &Object<'_>, wanted: &Override) -> Result<String, String> {
    let unknown = |name: &str| format!("its schema has no argument `{name}` in `properties`");
    let required: Vec<String> = match schema.get("required") {
        None => Vec::new(),
        Some(raw) => serde_json::from_str(raw.get())
            .map_err(|_| "`required` of its schema cannot be read".to_owned())?,
    };
    let mut properties = schema
        .get("properties")
        .map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
    for (name, preset) in &wanted.arguments {
        let raw: &RawValue = serde_json::from_str(&properties).map_err(|_| unknown(name))?;
        let object = Object::parse(raw).map_err(|_| unknown(name))?;
        let own = object.get(name).ok_or_else(|| unknown(name))?;
        if *preset == Preset::Hidden && required.contains(name) {
            return Err(format!(
                "its server requires the argument `{name}`, so it cannot be hidden; give it a `fixed` value"
            ));
        }
        let shown = match preset {
            Preset::Hidden | Preset::Fixed(_) => Some(object.without(name)),
            Preset::Default { json, shown: true } => Object::parse(own).ok().map(|argument| {
                let argument = argument.with("default", json.expose());
                object.with(name, &argument)
            }),
            Preset::Default { shown: false, .. } => None,
        };
        let is_gone = !matches!(preset, Preset::Default { .. });
        if let Some(shown) = shown {
            properties = shown;
        }
        if is_gone && properties.contains(&format!("#/properties/{name}")) {
            return Err(format!("another argument's schema refers to `{name}`"));
        }
        if let Some(key) = mentioned(schema, name) {
            return Err(format!(
                "`{key}` of its schema has conditions on the argument `{name}`"
            ));
        }
    }
    let is_free = |name: &&String| !wanted.arguments.contains_key(*name);
    let required: Vec<&String> = required.iter().filter(is_free).collect();
    let changed = schema.with("properties", &properties);
    let raw = RawValue::from_string(changed).map_err(|error| error.to_string())?;
    let object = Object::parse(&raw).map_err(|error| error.to_string())?;
    if required.is_empty() {
        return Ok(object.without("required"));
    }
    let required = Value::from_iter(required.into_iter().cloned()).to_string();
    Ok(object.with("required", &required))
}

/// A member of the schema, other than the list of its arguments, with conditions on the argument `name`.
fn mentioned<'a>(schema: &Object<'a>, name: &str) -> Option<String> {
    let others = schema.iter().filter(|(key, _)| !HARMLESS.contains(&&**key));
    let mut found = others.filter(|(_, raw)| {
        let value: Option<Value> = serde_json::from_str(raw.get()).ok();
        value.is_none_or(|value| names(&value, name))
    });
    found.next().map(|(key, _)| key.into_owned())
}

/// Whether a value has `name` as a text, as a key or at the end of a reference.
fn names(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text == name || text.ends_with(&format!("/properties/{name}")),
        Value::Array(items) => items.iter().any(|item| names(item, name)),
        Value::Object(members) => members
            .iter()
            .any(|(key, value)| key == name || names(value, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
