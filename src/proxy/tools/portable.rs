//! Schemas that every client can compile.
//!
//! Clients compile the schemas of results when they list tools, and one that fails takes the whole list. The compilers differ in drafts
//! and in strictness, so a schema may have only keywords that all of them know, with values that all of them take.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The escapes of letters and digits that JavaScript's patterns have.
const LETTER_ESCAPES: &str = "bBcdDfknpPrsStuvwWx0123456789";

/// The general categories of characters, by their short names.
const CATEGORIES: &[&str] = &[
    "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "LC", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me",
    "Mn", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk",
    "Sm", "So", "Z", "Zl", "Zp", "Zs",
];

/// The names of types.
const TYPES: &[&str] = &[
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// The first keyword of a schema that some client may not compile.
pub(super) fn fault_of(schema: &Value) -> Option<String> {
    fault_in(schema, schema, &RefCell::default())
}

fn fault_in<'s>(
    schema: &'s Value,
    root: &'s Value,
    known: &RefCell<BTreeSet<&'s str>>,
) -> Option<String> {
    let Value::Object(members) = schema else {
        return (!schema.is_boolean()).then(|| "value".to_owned());
    };
    members.iter().find_map(|(keyword, value)| {
        let inner = |part: &'s Value| fault_in(part, root, known);
        let is_well_formed = match keyword.as_str() {
            "properties" | "$defs" | "definitions" | "patternProperties" => {
                let Some(parts) = value.as_object() else {
                    return Some(keyword.clone());
                };
                if let Some(fault) = parts.values().find_map(inner) {
                    return Some(fault);
                }
                keyword != "patternProperties" || parts.keys().all(|key| is_javascript(key))
            }
            "additionalProperties"
            | "contains"
            | "else"
            | "if"
            | "items"
            | "not"
            | "propertyNames"
            | "then" => {
                if let Some(fault) = inner(value) {
                    return Some(fault);
                }
                true
            }
            "allOf" | "anyOf" | "oneOf" => {
                let parts = value.as_array().filter(|parts| !parts.is_empty());
                let Some(parts) = parts else {
                    return Some(keyword.clone());
                };
                if let Some(fault) = parts.iter().find_map(inner) {
                    return Some(fault);
                }
                true
            }
            "$ref" => match value.as_str() {
                Some(path) => {
                    if known.borrow_mut().insert(path)
                        && let Some(fault) = target(path, root).and_then(inner)
                    {
                        return Some(fault);
                    }
                    ends(path, root)
                }
                None => false,
            },
            "type" => is_type(value),
            "nullable" => {
                value.is_boolean() && is_nullable_type(members, value == &Value::Bool(true))
            }
            "required" => are_different_texts(value),
            "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" => value.is_u64(),
            "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
            "pattern" => value.as_str().is_some_and(is_javascript),
            "$comment" | "$schema" | "contentEncoding" | "contentMediaType" | "description"
            | "format" | "title" => value.is_string(),
            "const" | "default" | "example" | "examples" => true,
            other => other.starts_with("x-"),
        };
        (!is_well_formed).then(|| keyword.clone())
    })
}

/// The part of a schema that a reference within it names.
fn target<'s>(path: &str, root: &'s Value) -> Option<&'s Value> {
    root.pointer(path.strip_prefix('#')?)
}

/// Whether a reference leads to a part that is not a reference itself, at last.
fn ends(path: &str, root: &Value) -> bool {
    let (mut path, mut passed) = (path, BTreeSet::new());
    loop {
        let Some(part) = target(path, root) else {
            return false;
        };
        match part.get("$ref").and_then(Value::as_str) {
            None => return true,
            Some(_) if !passed.insert(path) => return false,
            Some(next) => path = next,
        }
    }
}

fn is_type(value: &Value) -> bool {
    let is_name = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    is_name(value)
        || are_different_texts(value)
            && value
                .as_array()
                .is_some_and(|names| !names.is_empty() && names.iter().all(is_name))
}

/// Whether `nullable` goes with the `type` of the same schema.
fn is_nullable_type(members: &Map<String, Value>, is_nullable: bool) -> bool {
    members.get("type").is_some_and(|types| {
        let has_null = types == "null"
            || types
                .as_array()
                .is_some_and(|types| types.iter().any(|one| one == "null"));
        is_nullable || !has_null
    })
}

fn are_different_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|texts| {
        let mut known = BTreeSet::new();
        let mut all = texts.iter().map(Value::as_str);
        all.all(|text| text.is_some_and(|text| known.insert(text)))
    })
}

/// Whether a regular expression that compiled is also one of JavaScript with the flag `u`, as far as its escapes, groups and brackets
/// tell. Inline flags and free escapes are none.
fn is_javascript(pattern: &str) -> bool {
    let (mut rest, mut is_class) = (pattern, false);
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        let braced = |rest: &str| rest.strip_prefix('{')?.find('}').map(|end| end + 2);
        match character {
            '\\' => {
                let Some(escaped) = rest.chars().next() else {
                    return false;
                };
                rest = &rest[escaped.len_utf8()..];
                match (escaped, braced(rest)) {
                    ('p' | 'P', Some(end)) if CATEGORIES.contains(&&rest[1..end - 1]) => {
                        rest = &rest[end..];
                    }
                    ('p' | 'P', _) => return false,
                    ('u', end) => rest = &rest[end.unwrap_or(0)..],
                    _ => {}
                }
                let is_syntax = "^$\\.*+?()[]{}|/".contains(escaped) || is_class && escaped == '-';
                if !is_syntax && !LETTER_ESCAPES.contains(escaped) {
                    return false;
                }
            }
            '[' => is_class = true,
            ']' if !is_class => return false,
            ']' => is_class = false,
            _ if is_class => {}
            '(' => {
                let group = rest.strip_prefix('?');
                if group.is_some_and(|group| !group.starts_with([':', '=', '!', '<'])) {
                    return false;
                }
            }
            '{' => {
                let bounds = rest.split_once('}');
                let is_bounds = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == ',');
                match bounds.filter(|(bounds, _)| !bounds.is_empty() && is_bounds(bounds)) {
                    Some((_, after)) => rest = after,
                    None => return false,
                }
            }
            '}' => return false,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_other_languages_are_not_those_of_javascript() {
        for (pattern, expected) in [
            (r"^[\w\-.]{1,20}$", true),
            (r"^\p{L}+(?:a|b)(?=c)(?<n>d)\/$", true),
            (r"a{2,}\u{1F600}\cA", true),
            (r"^\p{Lu}\P{Nd}$", true),
            (r"\pL", false),
            (r"\p{Greek}", false),
            (r"\p{^L}", false),
            ("(?i)abc", false),
            (r"\Aabc\Z", false),
            (r"a\-b", false),
            ("(?P<n>a)", false),
            ("^{a}$", false),
            ("a]", false),
        ] {
            assert_eq!(is_javascript(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn a_schema_has_only_what_every_client_compiles() {
        #[track_caller]
        fn check(schema: &str, expected: Option<&str>) {
            let fault = fault_of(&serde_json::from_str(schema).unwrap());
            assert_eq!(fault.as_deref(), expected, "{schema}");
        }
        check(
            r##"{"type":"object","required":["a"],"$defs":{"t":{"type":["string","null"],"enum":["x",null]},"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}},
                "properties":{"a":{"$ref":"#/$defs/t"},"b":{"$ref":"#/$defs/n"},"c":{"type":"array","items":{"anyOf":[{"type":"integer","minimum":0},true]}}},
                "additionalProperties":false,"x-order":5,"default":{"enum":[]}}"##,
            None,
        );
        for (schema, keyword) in [
            (r#"{"type":"object","$id":"http://a/b"}"#, "$id"),
            (r#"{"properties":{"a":{"id":"x"}}}"#, "id"),
            (
                r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
                "$ref",
            ),
            (r##"{"$ref":"#/nosuch"}"##, "$ref"),
            (r#"{"properties":{"a":{"enum":[]}}}"#, "enum"),
            (
                r#"{"minimum":1,"exclusiveMinimum":true}"#,
                "exclusiveMinimum",
            ),
            (r#"{"type":"string","nullable":"yes"}"#, "nullable"),
            (r#"{"type":["string","null"],"nullable":false}"#, "nullable"),
            (r#"{"nullable":true}"#, "nullable"),
            (r#"{"formatMinimum":5}"#, "formatMinimum"),
            (r#"{"propertyNames":5}"#, "value"),
            (r#"{"anyOf":[]}"#, "anyOf"),
            (r#"{"type":["string","string"]}"#, "type"),
            (r#"{"required":["a","a"]}"#, "required"),
            (r#"{"patternProperties":{"(?i)a":{}}}"#, "patternProperties"),
        ] {
            check(schema, Some(keyword));
        }
    }
}
