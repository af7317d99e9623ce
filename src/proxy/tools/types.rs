//! The arguments and the result of a tool as TypeScript types, for an agent that writes a script.
//!
//! They are shorter than the schemas and leave out rules that types cannot express; a call is checked against the schema. An
//! unreadable part becomes `unknown`, never a guess.

use serde_json::{Map, Value};

use crate::tool::is_hidden;

/// The depth at which a type becomes `unknown`, and the length of all types of a tool in bytes, after which no more are named.
const DEEPEST: usize = 12;
const LONGEST: usize = 24_000;

/// The maximum length of a comment, in characters.
const COMMENT: usize = 120;

/// The types of a tool: its definition, and its whole input schema.
pub(super) fn types(server: &str, definition: &Value, input: &Value) -> String {
    let tool = definition["name"].as_str().unwrap_or_default();
    let mut arguments = Types::of(input, "");
    let given = arguments.written(input, 0, 0);
    let output = definition
        .get("outputSchema")
        .filter(|schema| schema.is_object());
    let (answered, named) = match output {
        Some(schema) => {
            let mut results = Types::of(schema, "Result");
            let written = results.written(schema, 0, 0);
            (written, results.declarations())
        }
        None => ("unknown".to_owned(), String::new()),
    };
    let properties = input["properties"].as_object();
    let has_none = properties.is_none_or(Map::is_empty) && arguments.named.is_empty();
    let is_optional = input["required"].as_array().is_none_or(Vec::is_empty);
    let given = match (has_none, is_optional) {
        (true, _) => String::new(),
        (false, true) => format!("args?: {given}"),
        (false, false) => format!("args: {given}"),
    };
    let about = comment(definition["description"].as_str(), "");
    format!(
        "{about}tools{}{}({given}): Promise<{answered}>{}{named}",
        access(server),
        access(tool),
        arguments.declarations(),
    )
}

/// The types that the references of one schema name.
struct Types<'a> {
    root: &'a Value,
    prefix: &'static str,
    /// The references and the names of their types, in the order of their first use.
    named: Vec<(String, String)>,
    written: usize,
}

impl<'a> Types<'a> {
    fn of(root: &'a Value, prefix: &'static str) -> Self {
        Self {
            root,
            prefix,
            named: Vec::new(),
            written: 0,
        }
    }

    /// The declarations of all types that were named. Writing one can name more.
    fn declarations(&mut self) -> String {
        let mut text = String::new();
        let mut at = 0;
        while let Some((reference, name)) = self.named.get(at).cloned() {
            let schema = self.root.pointer(&unescaped(&reference));
            let written = match schema {
                Some(schema) if self.written < LONGEST => self.written(schema, 0, 0),
                _ => "unknown".to_owned(),
            };
            text.push_str(&format!("\ntype {name} = {written}"));
            at += 1;
        }
        text
    }

    /// The type of a schema, whose first line is indented by the caller.
    fn written(&mut self, schema: &Value, depth: usize, indent: usize) -> String {
        let text = self.of_schema(schema, depth, indent);
        if depth < 2 {
            self.written += text.len();
        }
        text
    }

    fn of_schema(&mut self, schema: &Value, depth: usize, indent: usize) -> String {
        let Some(object) = schema.as_object().filter(|_| depth < DEEPEST) else {
            return "unknown".to_owned();
        };
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            return self.reference(reference);
        }
        if let Some(value) = object.get("const") {
            return literal(value);
        }
        if let Some(values) = object.get("enum").and_then(Value::as_array) {
            return union(values.iter().map(literal).collect());
        }
        for (key, sign) in [("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")] {
            let Some(parts) = object.get(key).and_then(Value::as_array) else {
                continue;
            };
            let parts: Vec<String> = parts
                .iter()
                .map(|part| self.of_schema(part, depth + 1, indent))
                .filter(|part| sign == " | " || part != "unknown")
                .collect();
            if sign == " | " {
                return union(parts);
            }
            let own = object.contains_key("properties");
            let own = own.then(|| self.object(object, depth, indent));
            let parts: Vec<String> = own.into_iter().chain(parts).collect();
            return match parts.is_empty() {
                true => "unknown".to_owned(),
                false => parts
                    .iter()
                    .map(|part| grouped(part))
                    .collect::<Vec<_>>()
                    .join(" & "),
            };
        }
        let kinds: Vec<&str> = match object.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ if object.contains_key("properties") => vec!["object"],
            _ if object.contains_key("items") => vec!["array"],
            _ => Vec::new(),
        };
        let mut parts: Vec<String> = kinds
            .iter()
            .map(|kind| match *kind {
                "string" => "string".to_owned(),
                "number" | "integer" => "number".to_owned(),
                "boolean" => "boolean".to_owned(),
                "null" => "null".to_owned(),
                "array" => self.array(object, depth, indent),
                "object" => self.object(object, depth, indent),
                _ => "unknown".to_owned(),
            })
            .collect();
        if object.get("nullable") == Some(&Value::Bool(true)) && !parts.is_empty() {
            parts.push("null".to_owned());
        }
        union(parts)
    }

    fn array(&mut self, schema: &Map<String, Value>, depth: usize, indent: usize) -> String {
        let items = schema.get("items").cloned().unwrap_or(Value::Null);
        format!("{}[]", grouped(&self.of_schema(&items, depth + 1, indent)))
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize, indent: usize) -> String {
        let properties = schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => "{}".to_owned(),
                Some(values @ Value::Object(_)) => {
                    format!(
                        "Record<string, {}>",
                        self.of_schema(values, depth + 1, indent)
                    )
                }
                _ => "Record<string, unknown>".to_owned(),
            };
        };
        let required = schema.get("required").and_then(Value::as_array);
        let space = "  ".repeat(indent + 1);
        let mut text = "{\n".to_owned();
        for (name, property) in properties {
            let is_required = required
                .is_some_and(|required| required.iter().any(|one| one.as_str() == Some(name)));
            let mark = if is_required { "" } else { "?" };
            let written = self.of_schema(property, depth + 1, indent + 1);
            let about = comment(property["description"].as_str(), &space);
            text.push_str(&format!("{about}{space}{}{mark}: {written}\n", key(name)));
        }
        text.push_str(&"  ".repeat(indent));
        text.push('}');
        text
    }

    /// The name of the type that a reference within the schema means.
    fn reference(&mut self, reference: &str) -> String {
        let Some(path) = reference
            .strip_prefix('#')
            .filter(|path| path.starts_with('/'))
        else {
            return "unknown".to_owned();
        };
        if let Some((_, name)) = self.named.iter().find(|(known, _)| known == path) {
            return name.clone();
        }
        if self.written >= LONGEST || self.root.pointer(&unescaped(path)).is_none() {
            return "unknown".to_owned();
        }
        let last = path.rsplit('/').next().unwrap_or_default();
        let letters: String = last
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let first = letters.chars().next();
        let letters = match first.is_some_and(|c| c.is_ascii_alphabetic()) {
            true => letters,
            false => format!("T{letters}"),
        };
        let mut name = format!("{}{letters}", self.prefix);
        while self.named.iter().any(|(_, known)| *known == name) {
            name.push('_');
        }
        self.named.push((path.to_owned(), name.clone()));
        name
    }
}

/// A path of a reference, which is part of a URI, as a JSON pointer.
fn unescaped(path: &str) -> String {
    percent_encoding::percent_decode_str(path)
        .decode_utf8_lossy()
        .into_owned()
}

fn union(mut parts: Vec<String>) -> String {
    let mut seen = std::collections::HashSet::new();
    parts.retain(|part| seen.insert(part.clone()));
    match parts.is_empty() || parts.iter().any(|part| part == "unknown") {
        true => "unknown".to_owned(),
        false => parts.join(" | "),
    }
}

/// A type that can be followed by `[]` or `&`.
fn grouped(text: &str) -> String {
    match text.contains(" | ") || text.contains(" & ") {
        true => format!("({text})"),
        false => text.to_owned(),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => "unknown".to_owned(),
        value => visible(&value.to_string()),
    }
}

fn is_identifier(name: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$';
    name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit())
}

fn key(name: &str) -> String {
    match is_identifier(name) {
        true => name.to_owned(),
        false => visible(&Value::from(name).to_string()),
    }
}

fn access(name: &str) -> String {
    match is_identifier(name) {
        true => format!(".{name}"),
        false => format!("[{}]", visible(&Value::from(name).to_string())),
    }
}

/// The beginning of a description as a comment on a line of its own.
fn comment(text: Option<&str>, space: &str) -> String {
    let words: Vec<&str> = text.unwrap_or_default().split_whitespace().collect();
    let line = visible(&words.join(" "));
    let line = match line.split_once(". ") {
        Some((sentence, _)) => sentence,
        None => line.trim_end_matches('.'),
    };
    match line.char_indices().nth(COMMENT) {
        _ if line.is_empty() => String::new(),
        Some((end, _)) => format!("{space}// {}…\n", &line[..end]),
        None => format!("{space}// {line}\n"),
    }
}

/// A text without characters that hide or reorder others, or end a line.
fn visible(text: &str) -> String {
    let is_shown =
        |c: &char| !c.is_control() && !is_hidden(*c) && !matches!(c, '\u{2028}' | '\u{2029}');
    text.chars().filter(is_shown).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &str) {
        assert_eq!(
            Types::of(schema, "").written(schema, 0, 0),
            expected,
            "{schema}"
        );
    }

    #[test]
    fn a_schema_becomes_the_type_that_it_describes_or_unknown() {
        for (schema, expected) in [
            (json!({ "type": "string" }), "string"),
            (json!({ "type": ["integer", "null"] }), "number | null"),
            (
                json!({ "type": "array", "items": { "type": ["string", "null"] } }),
                "(string | null)[]",
            ),
            (
                json!({ "enum": ["a\u{202e}", 2, null] }),
                "\"a\" | 2 | null",
            ),
            (json!({ "const": true }), "true"),
            (json!({ "anyOf": [{ "type": "string" }, {}] }), "unknown"),
            (
                json!({ "oneOf": [{ "type": "string" }, { "type": "string" }] }),
                "string",
            ),
            (
                json!({ "type": "object", "additionalProperties": { "type": "number" } }),
                "Record<string, number>",
            ),
            (
                json!({ "type": "object", "additionalProperties": false }),
                "{}",
            ),
            (json!({ "type": "object" }), "Record<string, unknown>"),
            (
                json!({ "properties": { "a-b": { "type": "boolean" } }, "required": ["a-b"] }),
                "{\n  \"a-b\": boolean\n}",
            ),
            (
                json!({ "allOf": [{ "properties": { "a": {} } }, { "properties": { "b": {} } }] }),
                "{\n  a?: unknown\n} & {\n  b?: unknown\n}",
            ),
            (
                json!({ "type": "string", "nullable": true }),
                "string | null",
            ),
            (json!(true), "unknown"),
            (json!({ "$ref": "https://example.com/a" }), "unknown"),
            (json!({ "$ref": "#/$defs/missing" }), "unknown"),
            (json!({ "type": 7 }), "unknown"),
        ] {
            check(&schema, expected);
        }
    }

    #[test]
    fn a_schema_that_contains_itself_is_named_and_one_without_an_end_is_cut() {
        let node = json!({ "$ref": "#/$defs/Node", "$defs": { "Node": { "properties": { "next": { "$ref": "#/$defs/Node" } } } } });
        let definition =
            json!({ "name": "x.y", "description": "Shows a node. More.", "outputSchema": node });
        assert_eq!(
            types("a", &definition, &node),
            "// Shows a node\ntools.a[\"x.y\"](args?: Node): Promise<ResultNode>\n\
             type Node = {\n  next?: Node\n}\ntype ResultNode = {\n  next?: ResultNode\n}"
        );
        let mut deep = json!({ "type": "string" });
        for _ in 0..100 {
            deep = json!({ "type": "array", "items": deep });
        }
        check(&deep, &format!("unknown{}", "[]".repeat(DEEPEST)));
    }
}
