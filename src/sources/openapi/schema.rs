//! Schemas of a description as JSON Schema (2020-12): only known keywords with permitted values.
//!
//! All other parts of a description are left out of the schema, so that one unusual value affects nothing else. Components are
//! kept as bytes by name, and parsed where they are used; the latest ones stay parsed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The deepest nesting that is converted; what is deeper has an empty schema.
const DEEPEST: usize = 48;

/// The prefix of references to components in converted schemas.
pub(super) const DEFS: &str = "#/$defs/";

/// The bytes of components that stay parsed at most; their values take several times that.
const MOST_PARSED: usize = 2 * 1024 * 1024;

/// The components of a description.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    all: BTreeMap<String, Component>,
    parsed: Mutex<Parsed>,
}

/// The latest components that were used, and their bytes.
#[derive(Debug, Default)]
struct Parsed {
    by_name: HashMap<String, Arc<Value>>,
    size: usize,
}

#[derive(Debug)]
struct Component {
    json: Box<str>,
    /// Whether only the server writes it, and whether only the client does.
    is_read_only: bool,
    is_write_only: bool,
    /// The components that it refers to.
    refers_to: Box<[Box<str>]>,
}

impl Schemas {
    /// The component of this name.
    pub(super) fn get(&self, name: &str) -> Option<Arc<Value>> {
        if let Some(known) = self.parsed.lock().by_name.get(name) {
            return Some(known.clone());
        }
        let json = &self.all.get(name)?.json;
        let value: Arc<Value> = Arc::new(serde_json::from_str(json).ok()?);
        let mut parsed = self.parsed.lock();
        if parsed.size + json.len() > MOST_PARSED {
            *parsed = Parsed::default();
        }
        parsed.size += json.len();
        parsed.by_name.insert(name.to_owned(), value.clone());
        Some(value)
    }

    /// Forgets what is parsed.
    pub(super) fn rest(&self) {
        *self.parsed.lock() = Parsed::default();
    }

    /// Whether a component has the flag `readOnly` or `writeOnly`.
    pub(super) fn has_flag(&self, name: &str, flag: &str) -> bool {
        self.all.get(name).is_some_and(|component| match flag {
            "readOnly" => component.is_read_only,
            _ => component.is_write_only,
        })
    }

    /// All components that `schema` reaches.
    pub(super) fn reached(&self, schema: &Value) -> BTreeSet<&str> {
        let mut names = Vec::new();
        references(schema, &mut names);
        let mut reached = BTreeSet::new();
        let mut next: Vec<&str> = names.iter().map(String::as_str).collect();
        while let Some(name) = next.pop() {
            let Some((name, component)) = self.all.get_key_value(name) else {
                continue;
            };
            if reached.insert(name.as_str()) {
                next.extend(component.refers_to.iter().map(|name| &**name));
            }
        }
        reached
    }

    /// A hash of a schema and of all that it reaches.
    pub(super) fn hash(&self, schema: &Value) -> String {
        let mut hash = Sha256::new();
        hash.update(schema.to_string());
        for name in self.reached(schema) {
            hash.update(name);
            if let Some(component) = self.all.get(name) {
                hash.update(component.json.as_bytes());
            }
        }
        HEXLOWER.encode(&hash.finalize()[..8])
    }
}

/// The names of the components that `schema` refers to.
fn references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(name) = referred(schema) {
                names.push(name);
            }
            members.values().for_each(|value| references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, names)),
        _ => {}
    }
}

/// The component that a converted schema refers to.
pub(super) fn referred(schema: &Value) -> Option<String> {
    let name = schema.get("$ref")?.as_str()?.strip_prefix(DEFS)?;
    Some(unescaped(name))
}

/// A name as a segment of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

pub(super) fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// Converts the schemas of one description.
#[derive(Debug)]
pub(super) struct Converter<'d> {
    root: &'d Value,
    /// The names of components by their pointers.
    names: HashMap<String, String>,
    taken: BTreeSet<String>,
    /// The components that are not converted yet.
    next: Vec<(String, &'d Value)>,
}

impl<'d> Converter<'d> {
    pub(super) fn new(root: &'d Value) -> Self {
        Self {
            root,
            names: HashMap::new(),
            taken: BTreeSet::new(),
            next: Vec::new(),
        }
    }

    /// The components that converted schemas reach.
    pub(super) fn finish(mut self) -> Schemas {
        let mut all = BTreeMap::new();
        while let Some((name, schema)) = self.next.pop() {
            let schema = self.schema(schema);
            let mut refers_to = Vec::new();
            references(&schema, &mut refers_to);
            refers_to.sort_unstable();
            refers_to.dedup();
            let is_set = |flag: &str| schema.get(flag) == Some(&Value::Bool(true));
            let component = Component {
                json: schema.to_string().into(),
                is_read_only: is_set("readOnly"),
                is_write_only: is_set("writeOnly"),
                refers_to: refers_to.into_iter().map(Into::into).collect(),
            };
            all.insert(name, component);
        }
        Schemas {
            all,
            parsed: Mutex::default(),
        }
    }

    /// Converts a schema.
    pub(super) fn schema(&mut self, schema: &'d Value) -> Value {
        self.at(schema, 0)
    }

    fn at(&mut self, schema: &'d Value, depth: usize) -> Value {
        let Value::Object(members) = schema else {
            return match schema {
                Value::Bool(false) => false.into(),
                _ => json!({}),
            };
        };
        if depth > DEEPEST {
            return json!({});
        }
        if let Some(Value::String(reference)) = members.get("$ref") {
            let mut converted = match self.component(reference) {
                Some(name) => json!({ "$ref": format!("{DEFS}{}", escaped(&name)) }),
                None => {
                    return json!({ "description": "Its schema is not in the description." });
                }
            };
            for flag in ["readOnly", "writeOnly"] {
                if members.get(flag) == Some(&Value::Bool(true)) {
                    converted[flag] = true.into();
                }
            }
            if let Some(text) = description(members) {
                converted["description"] = text;
            }
            return converted;
        }
        let mut converted = Map::new();
        for (key, value) in members {
            if let Some(value) = self.keyword(key, value, depth) {
                converted.insert(key.clone(), value);
            }
        }
        self.composite(members, &mut converted, depth);
        typed(members, &mut converted);
        if let Some(text) = description(members) {
            converted.insert("description".to_owned(), text);
        }
        Value::Object(converted)
    }

    /// The value of a keyword that needs no other.
    fn keyword(&mut self, key: &str, value: &'d Value, depth: usize) -> Option<Value> {
        match (key, value) {
            ("properties" | "patternProperties", Value::Object(properties)) => {
                let schemas = properties
                    .iter()
                    .filter(|(_, schema)| schema.is_object() || schema.is_boolean())
                    .map(|(name, schema)| (name.clone(), self.at(schema, depth + 1)));
                Some(Value::Object(schemas.collect()))
            }
            ("additionalProperties" | "not" | "propertyNames", Value::Object(_))
            | ("additionalProperties", Value::Bool(_)) => Some(match value {
                Value::Bool(flag) => Value::Bool(*flag),
                schema => self.at(schema, depth + 1),
            }),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas))
                if !schemas.is_empty() =>
            {
                let schemas = schemas.iter().map(|schema| self.at(schema, depth + 1));
                Some(schemas.collect())
            }
            ("required", Value::Array(names)) => {
                let names: BTreeSet<&str> = names.iter().filter_map(Value::as_str).collect();
                (!names.is_empty()).then(|| json!(names))
            }
            ("minimum" | "maximum", Value::Number(_)) => Some(value.clone()),
            ("multipleOf", Value::Number(number)) => number
                .as_f64()
                .filter(|number| *number > 0.0)
                .map(|_| value.clone()),
            (
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties",
                Value::Number(number),
            ) => number.as_u64().map(Into::into),
            ("uniqueItems" | "readOnly" | "writeOnly" | "deprecated", Value::Bool(true)) => {
                Some(true.into())
            }
            ("pattern", Value::String(pattern)) => is_pattern(pattern).then(|| value.clone()),
            ("format", Value::String(_)) | ("default" | "const", _) => Some(value.clone()),
            _ => None,
        }
    }

    /// `items`, which may be a list in older versions.
    fn composite(
        &mut self,
        members: &'d Map<String, Value>,
        converted: &mut Map<String, Value>,
        depth: usize,
    ) {
        match members.get("items") {
            Some(items @ (Value::Object(_) | Value::Bool(_))) => {
                let items = self.at(items, depth + 1);
                converted.insert("items".to_owned(), items);
            }
            Some(Value::Array(items)) if !items.is_empty() => {
                let items = items.iter().map(|item| self.at(item, depth + 1));
                converted.insert("prefixItems".to_owned(), items.collect());
            }
            _ => {}
        }
    }

    /// The name of the component that a reference of the description leads to; `None` if it leads nowhere in it.
    fn component(&mut self, reference: &str) -> Option<String> {
        let pointer = percent_decode_str(reference.strip_prefix('#')?)
            .decode_utf8_lossy()
            .into_owned();
        if let Some(name) = self.names.get(&pointer) {
            return Some(name.clone());
        }
        let schema = self.root.pointer(&pointer)?;
        let short = ["/components/schemas/", "/definitions/", "/$defs/"]
            .iter()
            .find_map(|prefix| pointer.strip_prefix(prefix))
            .filter(|rest| !rest.contains('/'));
        let mut name = match short {
            Some(name) => unescaped(name),
            None => pointer.trim_start_matches('/').replace(['/', '~'], "_"),
        };
        while !self.taken.insert(name.clone()) {
            name.push('_');
        }
        self.names.insert(pointer, name.clone());
        self.next.push((name.clone(), schema));
        Some(name)
    }
}

fn description(members: &Map<String, Value>) -> Option<Value> {
    let text = |key: &str| {
        let text = members.get(key)?.as_str()?.trim();
        (!text.is_empty()).then(|| Value::from(text))
    };
    text("description").or_else(|| text("title"))
}

/// `type`, `enum`, and the keywords of 3.0 that 3.1 has otherwise: `nullable`, boolean `exclusiveMinimum`.
fn typed(members: &Map<String, Value>, converted: &mut Map<String, Value>) {
    let mut types: Vec<&str> = match members.get("type") {
        Some(Value::String(name)) => type_of(name).into_iter().collect(),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            names.filter_map(type_of).collect()
        }
        _ => Vec::new(),
    };
    types.dedup();
    if members.get("type").and_then(Value::as_str) == Some("file") {
        converted.insert("format".to_owned(), "binary".into());
    }
    let is_true = |key: &str| members.get(key) == Some(&Value::Bool(true));
    let is_nullable = is_true("nullable") || is_true("x-nullable");
    if is_nullable && !types.is_empty() && !types.contains(&"null") {
        types.push("null");
    }
    match types.as_slice() {
        [] => {}
        [one] => {
            converted.insert("type".to_owned(), (*one).into());
        }
        all => {
            converted.insert("type".to_owned(), json!(all));
        }
    }
    if let Some(Value::Array(values)) = members.get("enum") {
        let mut different: Vec<Value> = Vec::new();
        for value in values {
            if !different.contains(value) {
                different.push(value.clone());
            }
        }
        if is_nullable && !different.contains(&Value::Null) {
            different.push(Value::Null);
        }
        if !different.is_empty() {
            converted.insert("enum".to_owned(), Value::Array(different));
        }
    }
    for (exclusive, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        match members.get(exclusive) {
            Some(Value::Bool(true)) => {
                if let Some(limit) = converted.remove(bound) {
                    converted.insert(exclusive.to_owned(), limit);
                }
            }
            Some(limit @ Value::Number(_)) => {
                converted.insert(exclusive.to_owned(), limit.clone());
            }
            _ => {}
        }
    }
}

/// Whether a pattern is one of JSON Schema. Those with parts that this engine leaves to others, such as look-around, count as such.
fn is_pattern(pattern: &str) -> bool {
    regex::RegexBuilder::new(pattern)
        .size_limit(1 << 20)
        .build()
        .map_or_else(|error| error.to_string().contains("look-around"), |_| true)
}

fn type_of(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "string" | "file" | "date" | "datetime" | "date-time" | "uuid" => "string",
        "integer" | "int" | "int32" | "int64" | "long" => "integer",
        "number" | "float" | "double" | "decimal" => "number",
        "boolean" | "bool" => "boolean",
        "array" => "array",
        "object" => "object",
        "null" => "null",
        _ => return None,
    })
}

/// The properties of a plain object, and those that are required, if `schema` is one: with all that `allOf` adds, and without
/// alternatives or properties of any name.
pub(super) fn plain_object(
    schema: &Value,
    schemas: &Schemas,
) -> Option<(Map<String, Value>, Vec<String>)> {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    collect(schema, schemas, &mut properties, &mut required, 0)?;
    (!properties.is_empty()).then_some((properties, required))
}

fn collect(
    schema: &Value,
    schemas: &Schemas,
    properties: &mut Map<String, Value>,
    required: &mut Vec<String>,
    depth: usize,
) -> Option<()> {
    if depth > 8 {
        return None;
    }
    if let Some(name) = referred(schema) {
        return collect(
            &*schemas.get(&name)?,
            schemas,
            properties,
            required,
            depth + 1,
        );
    }
    let members = schema.as_object()?;
    let is_open = [
        "oneOf",
        "anyOf",
        "not",
        "patternProperties",
        "items",
        "enum",
        "const",
    ];
    if is_open.iter().any(|key| members.contains_key(*key))
        || members
            .get("additionalProperties")
            .is_some_and(|more| *more != Value::Bool(false))
        || members.get("type").is_some_and(|kind| kind != "object")
    {
        return None;
    }
    for part in members
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        collect(part, schemas, properties, required, depth + 1)?;
    }
    if let Some(Value::Object(own)) = members.get("properties") {
        properties.extend(
            own.iter()
                .map(|(name, schema)| (name.clone(), schema.clone())),
        );
    }
    let names = members.get("required").and_then(Value::as_array);
    required.extend(
        names
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned),
    );
    Some(())
}
