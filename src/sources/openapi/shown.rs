//! Definitions of tools: the first two levels of a schema, without references. Deeper objects have `more`, the path by which
//! `describe_tool` shows them.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::operation::Operation;
use super::reading::{Api, Fault};
use super::schema::{DEFS, Schemas, escaped, referred, unescaped};
use crate::text::shortened;
use crate::tool::FAULT;
use crate::upstream::SCHEMA_MARK;

/// The size that a shown schema should have, in bytes.
const USUAL_SIZE: usize = 4096;

/// The sizes of all definitions of a description, in bytes, beyond which each becomes smaller.
const MOST_OF_ALL: usize = 26 * 1024 * 1024;

/// The maximum number of operations whose faults are listed.
const MOST_FAULTS: usize = 100;

/// The deepest nesting of what is shown, with lists and alternatives, which are no levels.
const DEEPEST: usize = 24;

/// The maximum number of schemas that are shown at once.
const MOST_SHOWN: usize = 1500;

/// The size of a list of values beyond which it is left out, in bytes.
const LONGEST_ENUM: usize = 600;

/// The direction of a value: members that only the other side may write are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Answer,
}

/// How much is shown.
#[derive(Debug, Clone, Copy)]
struct Detail {
    levels: usize,
    /// The lengths of descriptions on the first level and below, in characters.
    texts: (usize, usize),
}

/// From the most to the least.
const DETAILS: &[Detail] = &[
    Detail {
        levels: 2,
        texts: (600, 240),
    },
    Detail {
        levels: 2,
        texts: (240, 80),
    },
    Detail {
        levels: 2,
        texts: (160, 0),
    },
    Detail {
        levels: 1,
        texts: (200, 0),
    },
    Detail {
        levels: 1,
        texts: (60, 0),
    },
    Detail {
        levels: 1,
        texts: (0, 0),
    },
];

impl Api {
    /// The definitions of all tools, and after them the faults of operations that are none. Definitions are smaller if they
    /// would be too much together.
    pub(in crate::sources) fn definitions(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (size, has_output) in [
            (USUAL_SIZE, true),
            (USUAL_SIZE / 2, false),
            (USUAL_SIZE / 8, false),
        ] {
            all.clear();
            let names = self.tools.keys();
            let definitions = names.filter_map(|name| {
                let operation = self.operation(name)?;
                Some(self.definition(name, &operation, size, has_output))
            });
            let mut total = 0;
            for definition in definitions {
                total += definition.len();
                all.push(definition);
                if total > MOST_OF_ALL {
                    break;
                }
            }
            if total <= MOST_OF_ALL {
                break;
            }
        }
        self.schemas.rest();
        all.extend(self.faults.iter().take(MOST_FAULTS).map(|fault| {
            let Fault {
                method,
                path,
                reason,
            } = fault;
            json!({ FAULT: shortened(&format!("`{method} {path}` is left out: {reason}"), 300) })
                .to_string()
        }));
        all
    }

    fn definition(
        &self,
        name: &str,
        operation: &Operation,
        size: usize,
        has_output: bool,
    ) -> String {
        let whole = operation.input();
        let (input, is_whole) = shown(&whole, "#", &self.schemas, Direction::Request, size);
        let mut definition =
            json!({ "name": name, "description": operation.text(), "inputSchema": input });
        if !operation.title.is_empty() {
            definition["title"] = operation.title.as_str().into();
        }
        let output = operation.output.as_ref().filter(|_| has_output);
        if let Some(output) = output.and_then(|output| self.output(output, size / 2)) {
            definition["outputSchema"] = output;
        }
        definition["annotations"] = annotations(&operation.method);
        if !is_whole {
            definition["_meta"] = json!({ SCHEMA_MARK: self.schemas.hash(&whole) });
        }
        definition.to_string()
    }

    /// The schema of a successful answer, if that is an object. It only informs: real answers differ from descriptions, so
    /// nothing is required, and anything may be `null`.
    fn output(&self, schema: &Value, size: usize) -> Option<Value> {
        let (mut shown, _) = shown(schema, "#", &self.schemas, Direction::Answer, size);
        if shown.get("type").is_none_or(|kind| kind != "object") {
            return None;
        }
        loosen(&mut shown, true);
        Some(shown)
    }

    /// A part of a tool's input schema: two levels of it at `path`. `#` is all of it, with the components that it reaches.
    pub(in crate::sources) fn part(&self, operation: &Operation, path: &str) -> Option<String> {
        let whole = operation.input();
        if path == "#" {
            return Some(self.complete(&whole).to_string());
        }
        let pointer = path.strip_prefix('#').unwrap_or(path);
        let mut segments = pointer.split('/').skip(1).peekable();
        let mut found = Arc::new(whole);
        if segments.peek() == Some(&"$defs") {
            segments.next();
            found = self.schemas.get(&unescaped(segments.next()?))?;
        }
        for segment in segments {
            if let Some(name) = referred(&found) {
                found = self.schemas.get(&name)?;
            }
            let next = match &*found {
                Value::Object(members) => members.get(&unescaped(segment)),
                Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
                _ => None,
            };
            found = Arc::new(next?.clone());
        }
        let (shown, _) = shown(
            &found,
            path,
            &self.schemas,
            Direction::Request,
            USUAL_SIZE * 2,
        );
        Some(shown.to_string())
    }

    /// A schema of arguments with the components that it reaches, without members that only the server writes.
    fn complete(&self, schema: &Value) -> Value {
        let mut complete = schema.clone();
        self.without_read_only(&mut complete);
        let mut defs = Map::new();
        for name in self.schemas.reached(schema) {
            if let Some(component) = self.schemas.get(name) {
                let mut component = Value::clone(&component);
                self.without_read_only(&mut component);
                defs.insert(name.to_owned(), component);
            }
        }
        if !defs.is_empty() {
            complete["$defs"] = Value::Object(defs);
        }
        complete
    }

    fn without_read_only(&self, schema: &mut Value) {
        let Value::Object(members) = schema else {
            if let Value::Array(items) = schema {
                items
                    .iter_mut()
                    .for_each(|item| self.without_read_only(item));
            }
            return;
        };
        let mut removed = Vec::new();
        if let Some(Value::Object(properties)) = members.get_mut("properties") {
            properties.retain(|name, schema| {
                let is_kept = !is_left_to_other(schema, &self.schemas, Direction::Request);
                if !is_kept {
                    removed.push(name.clone());
                }
                is_kept
            });
        }
        require_less(members, &removed);
        members
            .values_mut()
            .for_each(|value| self.without_read_only(value));
    }
}

/// The hints that the method gives (RFC 9110, 9.2).
fn annotations(method: &str) -> Value {
    match method {
        "GET" | "HEAD" | "OPTIONS" | "QUERY" | "TRACE" => json!({ "readOnlyHint": true }),
        "DELETE" => {
            json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true })
        }
        "PUT" => json!({ "readOnlyHint": false, "idempotentHint": true }),
        _ => json!({ "readOnlyHint": false }),
    }
}

/// Whether only the other side writes a member.
fn is_left_to_other(schema: &Value, schemas: &Schemas, direction: Direction) -> bool {
    let flag = match direction {
        Direction::Request => "readOnly",
        Direction::Answer => "writeOnly",
    };
    let own = schema.get(flag).and_then(Value::as_bool);
    own.unwrap_or_else(|| referred(schema).is_some_and(|name| schemas.has_flag(&name, flag)))
}

fn require_less(members: &mut Map<String, Value>, removed: &[String]) {
    if let Some(Value::Array(required)) = members.get_mut("required") {
        required.retain(|name| {
            name.as_str()
                .is_none_or(|name| !removed.iter().any(|gone| gone == name))
        });
        if required.is_empty() {
            members.remove("required");
        }
    }
}

/// Removes all that a real answer may break but types, which also permit `null`.
fn loosen(schema: &mut Value, is_root: bool) {
    match schema {
        Value::Object(members) => {
            for key in [
                "required",
                "enum",
                "const",
                "pattern",
                "format",
                "minimum",
                "maximum",
                "minLength",
                "maxLength",
                "minItems",
                "maxItems",
                "additionalProperties",
                "oneOf",
                "anyOf",
                "allOf",
                "not",
                "uniqueItems",
                "more",
            ] {
                members.remove(key);
            }
            match members.get("type") {
                Some(Value::String(kind)) if !is_root && kind != "null" => {
                    let kinds = json!([kind, "null"]);
                    members.insert("type".to_owned(), kinds);
                }
                Some(Value::Array(kinds)) if !kinds.contains(&"null".into()) => {
                    let mut kinds = kinds.clone();
                    kinds.push("null".into());
                    members.insert("type".to_owned(), Value::Array(kinds));
                }
                _ => {}
            }
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                properties
                    .values_mut()
                    .for_each(|schema| loosen(schema, false));
            }
            if let Some(items) = members.get_mut("items") {
                loosen(items, false);
            }
        }
        _ => *schema = json!({}),
    }
}

/// A schema in the most detail that `size` permits, and whether it is all there is.
fn shown(
    schema: &Value,
    path: &str,
    schemas: &Schemas,
    direction: Direction,
    size: usize,
) -> (Value, bool) {
    let mut last = (json!({}), false);
    for detail in DETAILS {
        let mut shower = Shower {
            schemas,
            direction,
            detail: *detail,
            count: 0,
            is_whole: true,
        };
        let shown = shower.show(schema, path, detail.levels, 0);
        last = (shown, shower.is_whole);
        if last.0.to_string().len() <= size {
            break;
        }
    }
    last
}

/// A schema after its references.
enum Resolved<'v> {
    Own(&'v Value),
    Component(Arc<Value>),
}

impl Deref for Resolved<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            Self::Own(schema) => schema,
            Self::Component(schema) => schema,
        }
    }
}

struct Shower<'s> {
    schemas: &'s Schemas,
    direction: Direction,
    detail: Detail,
    count: usize,
    /// Whether nothing that constrains a value was left out.
    is_whole: bool,
}

impl Shower<'_> {
    fn show(&mut self, schema: &Value, path: &str, levels: usize, depth: usize) -> Value {
        let (schema, path) = self.resolved(schema, path);
        let Value::Object(members) = &*schema else {
            return Value::clone(&schema);
        };
        self.count += 1;
        let is_too_much = depth > DEEPEST || self.count > MOST_SHOWN;
        if is_too_much || levels == 0 && self.is_nested(&schema, 0) {
            return self.left_out(members, &path);
        }
        let mut shown = Map::new();
        for (key, value) in members {
            match (key.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    let mut removed = Vec::new();
                    let mut own = Map::new();
                    for (name, schema) in properties {
                        if is_left_to_other(schema, self.schemas, self.direction) {
                            removed.push(name.clone());
                            continue;
                        }
                        let path = format!("{path}/properties/{}", escaped(name));
                        let schema = self.show(schema, &path, levels.saturating_sub(1), depth + 1);
                        own.insert(name.clone(), schema);
                    }
                    shown.insert(key.clone(), Value::Object(own));
                    if let Some(required) = members.get("required") {
                        shown.insert("required".to_owned(), required.clone());
                    }
                    require_less(&mut shown, &removed);
                }
                ("required", _) if members.contains_key("properties") => {}
                ("items" | "not" | "additionalProperties" | "propertyNames", Value::Object(_)) => {
                    let path = format!("{path}/{key}");
                    shown.insert(key.clone(), self.show(value, &path, levels, depth + 1));
                }
                ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                    let schemas = schemas.iter().enumerate().map(|(index, schema)| {
                        self.show(schema, &format!("{path}/{key}/{index}"), levels, depth + 1)
                    });
                    shown.insert(key.clone(), schemas.collect());
                }
                ("description", Value::String(text)) => {
                    if let Some(text) = self.text(text, levels) {
                        shown.insert(key.clone(), text.into());
                    }
                }
                ("enum", values) if values.to_string().len() > LONGEST_ENUM => {
                    self.is_whole = false;
                    shown.insert("more".to_owned(), path.clone().into());
                }
                ("patternProperties", _) => {
                    self.is_whole = false;
                    shown.insert("more".to_owned(), path.clone().into());
                }
                ("default", value) if value.to_string().len() > 200 => {}
                _ => {
                    shown.insert(key.clone(), value.clone());
                }
            }
        }
        Value::Object(shown)
    }

    /// A schema and its path after its references. The description next to a reference replaces the component's.
    fn resolved<'v>(&self, schema: &'v Value, path: &str) -> (Resolved<'v>, String) {
        let (mut schema, mut path) = (Resolved::Own(schema), path.to_owned());
        for _ in 0..8 {
            let Some(name) = referred(&schema) else {
                return (schema, path);
            };
            let about = schema.get("description").cloned();
            path = format!("{DEFS}{}", escaped(&name));
            let mut component = self
                .schemas
                .get(&name)
                .unwrap_or_else(|| Arc::new(json!({})));
            if let Some(about) = about
                && let Value::Object(members) = Arc::make_mut(&mut component)
            {
                members.insert("description".to_owned(), about);
            }
            schema = Resolved::Component(component);
        }
        (Resolved::Component(Arc::new(json!({}))), path)
    }

    /// Whether a schema has a level below it.
    fn is_nested(&self, schema: &Value, depth: usize) -> bool {
        let Value::Object(members) = schema else {
            return false;
        };
        if depth > 4 {
            return true;
        }
        if let Some(name) = referred(schema) {
            return self
                .schemas
                .get(&name)
                .is_some_and(|schema| self.is_nested(&schema, depth + 1));
        }
        members
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|all| !all.is_empty())
            || members.contains_key("patternProperties")
            || ["items", "additionalProperties"]
                .iter()
                .filter_map(|key| members.get(*key))
                .any(|schema| self.is_nested(schema, depth + 1))
            || ["allOf", "anyOf", "oneOf", "prefixItems"]
                .iter()
                .filter_map(|key| members.get(*key)?.as_array())
                .any(|all| all.iter().any(|schema| self.is_nested(schema, depth + 1)))
    }

    fn left_out(&mut self, members: &Map<String, Value>, path: &str) -> Value {
        self.is_whole = false;
        let mut shown = Map::new();
        if let Some(kind) = members.get("type") {
            shown.insert("type".to_owned(), kind.clone());
        }
        if let Some(text) = members.get("description").and_then(Value::as_str)
            && let Some(text) = self.text(text, 0)
        {
            shown.insert("description".to_owned(), text.into());
        }
        shown.insert("more".to_owned(), path.into());
        Value::Object(shown)
    }

    /// A description, as long as its level permits.
    fn text(&self, text: &str, levels: usize) -> Option<String> {
        let (first, below) = self.detail.texts;
        let longest = if levels + 1 >= self.detail.levels {
            first
        } else {
            below
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        (longest > 0).then(|| shortened(&words.join(" "), longest))
    }
}
