//! The JSON Schema of the configuration, for editors.
//!
//! It is as strict as the reader's warnings: an unknown key, which the reader only warns about, is an error here, so
//! that an editor underlines it.

use serde_json::{Map, Value as Json, json};

use super::key::{Key, Table, Value, restricts};
use super::keys::{ENTRY, FILE, TIME_PATTERN};
use super::options::RESULT_FORMS;

/// The schema, in the dialect of 2020-12.
#[must_use]
pub(crate) fn json_schema() -> Json {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The configuration of mcpzip",
    });
    let members = schema.as_object_mut().expect("it is an object");
    members.extend(object(FILE));
    members.insert(
        "$defs".to_owned(),
        json!({ "server": server(), "rule": rule(), "override": an_override() }),
    );
    schema
}

fn object(table: Table) -> Map<String, Json> {
    let properties: Map<String, Json> = table
        .iter()
        .map(|key| (key.name.to_owned(), property(key)))
        .collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Json::Object(properties));
    object.insert("additionalProperties".to_owned(), json!(false));
    object
}

/// A server's entry has a program or a URL.
fn server() -> Json {
    let mut server = object(ENTRY);
    let has = |key: &str| json!({ "required": [key], "properties": { key: { "type": "string" } } });
    server.insert(
        "oneOf".to_owned(),
        json!([
            has("command"),
            has("url"),
            has("openapi"),
            has("graphql"),
            has("skills")
        ]),
    );
    Json::Object(server)
}

/// A rule is a name, or an object with conditions.
fn rule() -> Json {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    json!({ "anyOf": [{ "type": "string" }, {
        "type": "object",
        "properties": {
            "tool": { "type": "string" },
            "when": {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": { "anyOf": [{ "type": "string" }, texts] },
            },
        },
        "required": ["tool", "when"],
        "additionalProperties": false,
    }] })
}

/// An override of a tool.
fn an_override() -> Json {
    let one = |key: &str, value: Json| json!({ "required": [key], "properties": { key: value }, "additionalProperties": false });
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$", "not": { "pattern": "__" } },
            "description": { "type": "string" },
            "arguments": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "oneOf": [one("fixed", json!({})), one("default", json!({})), one("hidden", json!({ "const": true }))],
                },
            },
            "select": { "type": "string" },
            "budget": { "type": "integer", "minimum": 0 },
            "form": { "enum": RESULT_FORMS },
        },
        "additionalProperties": false,
    })
}

/// A tool of a command line.
fn command_tool() -> Json {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$", "not": { "pattern": "__" } },
            "args": { "type": "array", "items": { "type": "string" } },
            "description": { "type": "string" },
            "input_schema": { "type": "object" },
        },
        "required": ["name", "args"],
        "additionalProperties": false,
    })
}

fn property(key: &Key) -> Json {
    let mut schema = match value(&key.value) {
        Json::Object(schema) => schema,
        _ => unreachable!("a value's schema is an object"),
    };
    if restricts(key.name) {
        remove_null(&mut schema);
    }
    schema.insert("description".to_owned(), json!(key.doc));
    if let Some(default) = key.default {
        schema.insert(
            "default".to_owned(),
            serde_json::from_str(default).expect("the table has JSON"),
        );
    }
    Json::Object(schema)
}

/// Removes `null` from the permitted values.
fn remove_null(schema: &mut Map<String, Json>) {
    for key in ["type", "enum", "anyOf"] {
        let Some(Json::Array(choices)) = schema.get_mut(key) else {
            continue;
        };
        let null = json!({ "type": "null" });
        choices.retain(|one| *one != "null" && !one.is_null() && *one != null);
        if let ("type", [one]) = (key, choices.as_slice()) {
            let one = one.clone();
            schema.insert(key.to_owned(), one);
        }
    }
}

/// The schema of a value; `null` counts as absent.
fn value(value: &Value) -> Json {
    let list = json!({ "type": "array", "items": { "type": "string" } });
    match value {
        Value::Text => json!({ "type": ["string", "null"] }),
        Value::Texts => json!({ "type": ["array", "null"], "items": { "type": "string" } }),
        Value::Rules => {
            json!({ "type": ["array", "null"], "items": { "$ref": "#/$defs/rule" } })
        }
        Value::Overrides => {
            json!({ "type": ["object", "null"], "additionalProperties": { "$ref": "#/$defs/override" } })
        }
        Value::CommandTools => {
            json!({ "type": ["array", "null"], "items": command_tool() })
        }
        Value::TextMap => {
            json!({ "type": ["object", "null"], "additionalProperties": { "type": "string" } })
        }
        Value::Flag => json!({ "type": ["boolean", "null"] }),
        Value::Number(from, to) => {
            let mut schema = json!({ "type": ["integer", "null"], "minimum": from });
            if let Some(to) = to {
                schema["maximum"] = json!(to);
            }
            schema
        }
        Value::Time => json!({ "anyOf": [time(true), { "type": "null" }] }),
        Value::TimeOr(words) => {
            json!({ "anyOf": [{ "enum": words }, time(false), { "type": "null" }] })
        }
        Value::Words(words) => {
            let words: Vec<Json> = words
                .iter()
                .map(|word| json!(word))
                .chain([Json::Null])
                .collect();
            json!({ "enum": words })
        }
        Value::Command => {
            let mut words = list;
            words["minItems"] = json!(1);
            json!({ "anyOf": [{ "type": "string" }, words, { "type": "null" }] })
        }
        Value::Object(table) => {
            let mut schema = object(table);
            schema.insert("type".to_owned(), json!(["object", "null"]));
            Json::Object(schema)
        }
        Value::Objects(table) => {
            let mut member = object(table);
            member.insert("type".to_owned(), json!("object"));
            json!({ "type": ["object", "null"], "additionalProperties": member })
        }
        Value::Profiles(table) => named(table, "servers"),
        Value::Roles(table) => named(table, "profiles"),
        Value::Limits(table) => {
            let mut limit = object(table);
            limit.insert("type".to_owned(), json!("object"));
            let numbers = table
                .iter()
                .filter(|key| matches!(key.value, Value::Number(..)));
            let one: Vec<Json> = numbers
                .map(|key| json!({ "required": [key.name] }))
                .collect();
            limit.insert("anyOf".to_owned(), json!(one));
            json!({ "type": ["array", "null"], "items": limit })
        }
        Value::ObjectOr(words, table) => {
            let mut schema = object(table);
            schema.insert("type".to_owned(), json!("object"));
            json!({ "anyOf": [{ "enum": words }, schema, { "type": "null" }] })
        }
        Value::FilledObjectOr(words, table) => {
            let mut schema = object(table);
            schema.insert("minProperties".to_owned(), json!(1));
            json!({ "anyOf": [{ "enum": words }, schema, { "type": "null" }] })
        }
        Value::Complete(required, table) => {
            let mut schema = object(table);
            schema.insert("type".to_owned(), json!(["object", "null"]));
            schema.insert("required".to_owned(), json!(required));
            Json::Object(schema)
        }
        Value::FlagOr(table) => {
            let mut schema = object(table);
            schema.insert("type".to_owned(), json!("object"));
            json!({ "anyOf": [{ "type": "boolean" }, schema, { "type": "null" }] })
        }
        Value::Servers => json!({
            "type": ["object", "null"],
            "propertyNames": { "pattern": "^[A-Za-z0-9_.-]{1,64}$", "not": { "pattern": "__|^[mM][cC][pP][zZ][iI][pP]$" } },
            "additionalProperties": { "$ref": "#/$defs/server" },
        }),
        Value::Opaque => json!({ "type": ["object", "null"] }),
        Value::Any => json!({}),
    }
}

/// Objects by plain names, each with a list that is not empty.
fn named(table: Table, list: &str) -> Json {
    let mut member = object(table);
    member.insert("type".to_owned(), json!("object"));
    member.insert("required".to_owned(), json!([list]));
    let full = json!({ list: { "type": "array", "minItems": 1 } });
    let member = json!({ "allOf": [member, { "properties": full }] });
    let names = json!({ "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$" });
    json!({ "type": ["object", "null"], "propertyNames": names, "additionalProperties": member })
}

fn time(is_positive: bool) -> Json {
    let bound = if is_positive {
        "exclusiveMinimum"
    } else {
        "minimum"
    };
    let number = json!({ "type": "number", bound: 0, "description": "seconds" });
    json!({ "anyOf": [{ "type": "string", "pattern": TIME_PATTERN }, number] })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Config, Environment};

    /// The warnings and faults of a file.
    fn said(text: &str) -> Vec<String> {
        let config = Config::parse(text, Path::new("/config.json"), &Environment::default());
        match config {
            Ok(config) => {
                let warnings = config.warnings.iter().map(ToString::to_string);
                warnings
                    .chain(config.faults.iter().map(ToString::to_string))
                    .collect()
            }
            Err(error) => vec![error.to_string()],
        }
    }

    /// Values that are permitted at a key, and values that are not.
    fn samples(value: &Value) -> (Vec<Json>, Vec<Json>) {
        let words = |words: &[&str]| words.iter().map(|word| json!(word)).collect::<Vec<_>>();
        match value {
            Value::Text => (vec![], vec![json!(1), json!([])]),
            Value::Texts => (vec![json!([])], vec![json!("x"), json!([1])]),
            Value::Rules => (
                vec![
                    json!([]),
                    json!([{ "tool": "x", "when": { "path": ["!./**"] } }]),
                ],
                vec![json!("x"), json!([1]), json!([{ "tool": "x" }])],
            ),
            Value::Overrides => (
                vec![
                    json!({}),
                    json!({ "t": { "name": "other", "arguments": { "x": { "fixed": [1, "a"] }, "y": { "hidden": true } }, "budget": 0, "form": "compact" } }),
                ],
                vec![
                    json!([]),
                    json!({ "t": 1 }),
                    json!({ "t": { "nmae": "x" } }),
                    json!({ "t": { "name": "a b" } }),
                    json!({ "t": { "name": "a__b" } }),
                    json!({ "t": { "arguments": { "x": { "hidden": false } } } }),
                    json!({ "t": { "arguments": { "x": { "fixed": 1, "default": 2 } } } }),
                    json!({ "t": { "budget": -1 } }),
                    json!({ "t": { "form": "small" } }),
                ],
            ),
            Value::CommandTools => (
                vec![
                    json!([]),
                    json!([{ "name": "a", "args": ["b", "{c}"], "input_schema": { "type": "object" } }]),
                ],
                vec![
                    json!({}),
                    json!([{ "name": "a" }]),
                    json!([{ "name": "a b", "args": [] }]),
                    json!([{ "name": "a", "args": "b" }]),
                    json!([{ "name": "a", "args": [], "input_schema": 1 }]),
                ],
            ),
            Value::TextMap => (vec![json!({})], vec![json!([]), json!({ "A": 1 })]),
            Value::Flag => (vec![json!(true)], vec![json!("true")]),
            Value::Number(from, to) => {
                let above = to.map(|to| json!(to + 1));
                let below = from.checked_sub(1).map(|below| json!(below));
                (
                    vec![json!(from)],
                    [Some(json!("1")), above, below]
                        .into_iter()
                        .flatten()
                        .collect(),
                )
            }
            Value::Time => (
                vec![json!("90s"), json!(1), json!("1.5 min")],
                vec![json!("soon"), json!(0), json!(-1)],
            ),
            Value::TimeOr(some) => (
                [words(some), vec![json!("90s"), json!(1)]].concat(),
                vec![json!("soon"), json!(-1)],
            ),
            Value::Words(some) => (words(some), vec![json!("nonsense"), json!(1)]),
            Value::Command => (
                vec![json!("x"), json!(["x", "y"])],
                vec![json!([]), json!(1)],
            ),
            Value::Object(_) | Value::Opaque => (vec![json!({})], vec![json!([])]),
            Value::Objects(_) => (
                vec![json!({}), json!({ "x": {} })],
                vec![
                    json!([]),
                    json!({ "x": [] }),
                    json!({ "x": { "no_such": 1 } }),
                ],
            ),
            Value::Profiles(_) => (
                vec![json!({}), json!({ "x-1": { "servers": ["r"] } })],
                vec![
                    json!([]),
                    json!({ "x": {} }),
                    json!({ "x": { "servers": [] } }),
                    json!({ "X": { "servers": ["r"] } }),
                    json!({ "x": { "servers": ["r"], "no_such": 1 } }),
                    json!({ "x": { "servers": ["r"], "management": "full" } }),
                    json!({ "x": { "servers": ["r"], "surface": "wide" } }),
                ],
            ),
            Value::Roles(_) => (
                vec![json!({}), json!({ "x-1": { "profiles": ["r"] } })],
                vec![
                    json!([]),
                    json!({ "x": {} }),
                    json!({ "x": { "profiles": [] } }),
                    json!({ "X": { "profiles": ["r"] } }),
                    json!({ "x": { "profiles": ["r"], "no_such": 1 } }),
                ],
            ),
            Value::Limits(_) => (
                vec![
                    json!([]),
                    json!([{ "calls_per_minute": 1 }]),
                    json!([{ "for": "@role:dev git__*", "shared": true, "bytes_per_day": 9 }]),
                ],
                vec![
                    json!({}),
                    json!([1]),
                    json!([{}]),
                    json!([{ "for": "git__*" }]),
                    json!([{ "calls_per_minute": 0 }]),
                    json!([{ "calls_per_minute": 1, "no_such": 1 }]),
                ],
            ),
            Value::FilledObjectOr(some, _) => (
                words(some),
                vec![
                    json!([]),
                    json!("nonsense"),
                    json!({}),
                    json!({ "no_such": 1 }),
                ],
            ),
            Value::Complete(required, _) => {
                let texts = required.iter().map(|key| ((*key).to_owned(), json!("x")));
                let whole = Json::Object(texts.collect());
                let mut more = whole.clone();
                more["no_such"] = json!(1);
                (vec![whole], vec![json!([]), json!({}), json!("x"), more])
            }
            Value::ObjectOr(some, _) => (
                [words(some), vec![json!({})]].concat(),
                vec![json!([]), json!("nonsense")],
            ),
            Value::FlagOr(_) => (
                vec![json!(true), json!(false), json!({})],
                vec![json!([]), json!("true")],
            ),
            Value::Any => (vec![json!("x"), json!(1)], vec![]),
            Value::Servers => (
                vec![],
                vec![json!([]), json!({ "a__b": { "command": "x" } })],
            ),
        }
    }

    /// Checks that the reader and the schema agree on the values of a key.
    fn compare(table: Table, file: &dyn Fn(&str, Json) -> Json) {
        let schema = jsonschema::validator_for(&json_schema()).unwrap();
        for key in table {
            let (right, wrong) = samples(&key.value);
            for (value, is_right) in right
                .into_iter()
                .map(|one| (one, true))
                .chain(wrong.into_iter().map(|one| (one, false)))
            {
                let whole = file(key.name, value);
                let said = said(&whole.to_string());
                // Messages about another key or another kind of server are not about this value.
                let said: Vec<_> = said.iter().filter(|text| !is_of_others(text)).collect();
                assert_eq!(said.is_empty(), is_right, "the reader on {whole}: {said:?}");
                assert_eq!(schema.is_valid(&whole), is_right, "the schema on {whole}");
            }
            let unknown = file("no_such_key", json!(1));
            assert!(
                said(&unknown.to_string())
                    .iter()
                    .any(|text| text.contains("unknown key")),
                "{unknown}"
            );
            assert!(!schema.is_valid(&unknown), "{unknown}");
            let null = file(key.name, Json::Null);
            // An entry without either is invalid.
            let is_target = matches!(
                key.name,
                "command" | "url" | "openapi" | "graphql" | "skills"
            );
            let is_right = schema.is_valid(&null) || is_target;
            assert_eq!(is_right, !restricts(key.name), "{null}");
            let is_lost = said(&null.to_string())
                .iter()
                .any(|text| text.contains("would lift"));
            assert_eq!(is_lost, restricts(key.name), "{null}");
        }
    }

    fn is_of_others(text: &str) -> bool {
        [
            "no meaning",
            "needs a `",
            "an object with the `name`",
            "`llm.provider` must be",
            "`llm.model` must be",
            "`oauth.grant`",
        ]
        .iter()
        .any(|words| text.contains(words))
            && !text.contains("nonsense")
            && !text.contains("found `1`")
            && !text.contains("found a ")
    }

    #[test]
    fn the_reader_and_the_schema_agree_on_every_key() {
        compare(FILE, &|key, value| {
            // Some settings are read when a server needs them.
            let mut file = json!({ "mcpServers": { "r": { "url": "https://x" } } });
            file[key] = value;
            file
        });
        let in_entry = |entry: Json| json!({ "mcpServers": { "s": entry } });
        compare(ENTRY, &|key, value| {
            let target = if key == "url" { "url" } else { "command" };
            let mut entry = json!({ target: if target == "url" { "https://x" } else { "x" } });
            if key == "type" && value.as_str().is_some_and(|kind| kind != "stdio") {
                entry = json!({ "url": "https://x" });
            }
            if ["openapi", "base_url", "include", "exclude", "origins"].contains(&key) {
                entry = json!({ "openapi": "https://x" });
            }
            if key == "identity" {
                entry = json!({ "url": "https://x" });
            }
            if matches!(key, "graphql" | "skills") {
                entry = json!({});
            }
            entry[key] = value;
            in_entry(entry)
        });
        for key in FILE {
            if let Value::Object(table) | Value::ObjectOr(_, table) | Value::FlagOr(table) =
                key.value
            {
                compare(table, &|inner, value| {
                    let mut object = json!({});
                    // The window needs a login.
                    if (key.name, inner) == ("http", "ui") {
                        object["auth"] = json!({ "tokens": true });
                    }
                    object[inner] = value;
                    json!({ "mcpServers": {}, key.name: object })
                });
            }
        }
        for key in ENTRY {
            if let Value::Object(table) | Value::ObjectOr(_, table) = key.value {
                compare(table, &|inner, value| {
                    let mut object = if key.name == "registry" {
                        json!({ "name": "a/b", "version": "1" })
                    } else {
                        json!({})
                    };
                    object[inner] = value;
                    in_entry(json!({ "command": "x", key.name: object }))
                });
            }
        }
    }

    #[test]
    fn every_key_is_described() {
        fn check(schema: &Json) {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let doc = property["description"].as_str().unwrap_or_default();
                assert!(doc.ends_with('.'), "{name}: {doc:?}");
                check(property);
            }
        }
        let schema = json_schema();
        check(&schema);
        check(&schema["$defs"]["server"]);
    }
}
