//! Arguments that are repeated in headers: `x-mcp-header` in a tool's input schema, `Mcp-Param-*` in the request
//! (2026-07-28, basic/transports/streamable-http).
//!
//! The annotations are learned from the tools' listing and outlive the connection, because a call may come long after
//! the list.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use memchr::memmem;
use parking_lot::Mutex;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;
use serde_json::value::RawValue;

use super::headers::encoded;
use crate::mcp::Object;
use crate::mcp::object::text;

const KEYWORD: &str = "x-mcp-header";

/// The headers of one server's tools.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Mirrors {
    tools: Mutex<HashMap<String, Arc<[Mirror]>>>,
    is_listed: AtomicBool,
}

/// A property and its header.
#[derive(Debug, PartialEq, Eq)]
struct Mirror {
    path: Vec<String>,
    header: HeaderName,
}

/// The fault of an annotation. Its tool cannot be called over HTTP.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::upstream) enum MirrorError {
    #[error("`{KEYWORD}` is not on a property")]
    NotAProperty,
    #[error("`{KEYWORD}` of `{0}` is not a string")]
    NotText(String),
    #[error("`{KEYWORD}` of `{0}` is not a valid header name")]
    Name(String),
    #[error("`{KEYWORD}` of `{0}` is on a property that is not a string, integer or boolean")]
    Type(String),
    #[error("`{KEYWORD}` of `{0}` is given twice")]
    Twice(String),
}

impl Mirrors {
    /// Learns the annotations of an entry of `tools/list`.
    ///
    /// # Errors
    /// When an annotation is invalid.
    pub(in crate::upstream) fn learn(&self, entry: &[u8]) -> Result<(), MirrorError> {
        self.is_listed.store(true, Ordering::Relaxed);
        let tool = serde_json::from_slice::<&RawValue>(entry)
            .ok()
            .and_then(|raw| Object::parse(raw).ok());
        let Some((tool, name)) = tool.and_then(|tool| tool.text("name").map(|name| (tool, name)))
        else {
            return Ok(());
        };
        let annotated = tool
            .get("inputSchema")
            .filter(|raw| memmem::find(raw.get().as_bytes(), KEYWORD.as_bytes()).is_some());
        // A schema that cannot be parsed, for example because of its depth, is left to the server.
        let schema = annotated.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let mirrors = schema
            .as_ref()
            .map(mirrors_of)
            .transpose()?
            .unwrap_or_default();
        let mut tools = self.tools.lock();
        if mirrors.is_empty() {
            tools.remove(&name);
        } else {
            tools.insert(name, mirrors.into());
        }
        Ok(())
    }

    /// Whether the tools were listed, so that their headers are known.
    pub(in crate::upstream) fn is_listed(&self) -> bool {
        self.is_listed.load(Ordering::Relaxed)
    }

    /// The headers for a call of `tool`; an argument that is absent or null has none.
    pub(in crate::upstream) fn headers(
        &self,
        tool: &str,
        arguments: &Bytes,
    ) -> Vec<(HeaderName, HeaderValue)> {
        let mirrors = self.tools.lock().get(tool).cloned();
        let Some(mirrors) = mirrors else {
            return Vec::new();
        };
        let Ok(arguments) = serde_json::from_slice::<&RawValue>(arguments) else {
            return Vec::new();
        };
        let header = |mirror: &Mirror| {
            Some((
                mirror.header.clone(),
                encoded(&scalar(at(arguments, &mirror.path)?)?),
            ))
        };
        mirrors.iter().filter_map(header).collect()
    }
}

/// The headers that a call of a tool requires, from its entry in the list: names in lower case, each with the
/// repeated argument. Empty if the tool's annotations are invalid.
#[must_use]
pub(crate) fn mirrored(
    tool: &RawValue,
    arguments: Option<&RawValue>,
) -> Vec<(String, Option<String>)> {
    if memmem::find(tool.get().as_bytes(), KEYWORD.as_bytes()).is_none() {
        return Vec::new();
    }
    let schema = Object::parse(tool)
        .ok()
        .and_then(|tool| serde_json::from_str::<Value>(tool.get("inputSchema")?.get()).ok());
    let mirrors = schema.and_then(|schema| mirrors_of(&schema).ok());
    let mirror = |Mirror { path, header }| {
        let argument = arguments.and_then(|arguments| scalar(at(arguments, &path)?));
        (header.as_str().to_owned(), argument)
    };
    mirrors.into_iter().flatten().map(mirror).collect()
}

/// The value at the end of a path of properties.
fn at<'a>(value: &'a RawValue, path: &[String]) -> Option<&'a RawValue> {
    path.iter()
        .try_fold(value, |value, key| Object::parse(value).ok()?.get(key))
}

/// A string, boolean or number as text; `None` for other values.
fn scalar(raw: &RawValue) -> Option<String> {
    match raw.get().as_bytes().first()? {
        b'"' => text(raw),
        b't' | b'f' | b'-' | b'0'..=b'9' => Some(raw.get().to_owned()),
        _ => None,
    }
}

/// The annotations of a schema. Each must be on a property of a simple type that is reached through `properties`
/// only, and must have a unique header name.
fn mirrors_of(schema: &Value) -> Result<Vec<Mirror>, MirrorError> {
    let mut found = Vec::new();
    let mut names = HashSet::new();
    // `None` as path: reached through a keyword other than `properties`.
    let mut open: Vec<(Option<Vec<String>>, &Value)> = vec![(Some(Vec::new()), schema)];
    while let Some((path, position)) = open.pop() {
        let Some(members) = position.as_object() else {
            continue;
        };
        if let Some(annotation) = members.get(KEYWORD) {
            let path = path.clone().filter(|path| !path.is_empty());
            let path = path.ok_or(MirrorError::NotAProperty)?;
            let property = || path.join(".");
            let name = annotation
                .as_str()
                .ok_or_else(|| MirrorError::NotText(property()))?;
            let header = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes());
            let header = header
                .ok()
                .filter(|_| !name.is_empty())
                .ok_or_else(|| MirrorError::Name(property()))?;
            if !matches!(
                members.get("type").and_then(Value::as_str),
                Some("string" | "integer" | "boolean")
            ) {
                return Err(MirrorError::Type(property()));
            }
            if !names.insert(header.clone()) {
                return Err(MirrorError::Twice(property()));
            }
            found.push(Mirror { path, header });
        }
        for (key, value) in members {
            match key.as_str() {
                "properties" => {
                    let properties = value.as_object().into_iter().flatten();
                    open.extend(properties.map(|(name, schema)| {
                        let path = path.clone().map(|path| [path, vec![name.clone()]].concat());
                        (path, schema)
                    }));
                }
                "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => {
                    open.extend(
                        value
                            .as_object()
                            .into_iter()
                            .flatten()
                            .map(|(_, schema)| (None, schema)),
                    );
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    open.extend(
                        value
                            .as_array()
                            .into_iter()
                            .flatten()
                            .map(|schema| (None, schema)),
                    );
                }
                "items"
                | "contains"
                | "additionalProperties"
                | "propertyNames"
                | "not"
                | "if"
                | "then"
                | "else"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contentSchema" => open.push((None, value)),
                // Data, such as `default` and `enum`, is not a schema.
                _ => {}
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn learn(schema: &Value) -> Result<Mirrors, MirrorError> {
        let mirrors = Mirrors::default();
        mirrors.learn(
            json!({ "name": "t", "inputSchema": schema })
                .to_string()
                .as_bytes(),
        )?;
        Ok(mirrors)
    }

    #[test]
    fn annotated_arguments_become_headers() {
        let mirrors = learn(&json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "filter": { "properties": {
                "limit": { "type": "integer", "x-mcp-header": "limit" },
                "all": { "type": "boolean", "x-mcp-header": "all" },
                "none": { "type": "string", "x-mcp-header": "none" },
            } },
            "plain": { "type": "string", "default": { "x-mcp-header": "data" } },
        } }))
        .unwrap();
        let arguments =
            r#"{"region":"Köln","filter":{"limit":12,"all":true,"none":null},"plain":"x"}"#
                .as_bytes();
        let mut headers: Vec<String> = mirrors
            .headers("t", &Bytes::from_static(arguments))
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        headers.sort();
        assert_eq!(
            headers,
            [
                "mcp-param-all: true",
                "mcp-param-limit: 12",
                "mcp-param-region: =?base64?S8O2bG4=?="
            ]
        );
        assert!(
            mirrors
                .headers("other", &Bytes::from_static(arguments))
                .is_empty()
        );
    }

    #[test]
    fn an_annotation_that_cannot_be_followed_is_named() {
        let property = |annotation: Value| json!({ "properties": { "a": annotation } });
        for (schema, expected) in [
            (json!({ "x-mcp-header": "a" }), "not on a property"),
            (
                property(json!({ "items": { "type": "string", "x-mcp-header": "a" } })),
                "not on a property",
            ),
            (
                json!({ "anyOf": [property(json!({ "type": "string", "x-mcp-header": "a" }))] }),
                "not on a property",
            ),
            (
                property(json!({ "type": "string", "x-mcp-header": 5 })),
                "of `a` is not a string",
            ),
            (
                property(json!({ "type": "string", "x-mcp-header": "" })),
                "not a valid header name",
            ),
            (
                property(json!({ "type": "string", "x-mcp-header": "a b" })),
                "not a valid header name",
            ),
            (
                property(json!({ "type": "number", "x-mcp-header": "a" })),
                "not a string, integer or boolean",
            ),
            (
                property(json!({ "type": ["string"], "x-mcp-header": "a" })),
                "not a string, integer or boolean",
            ),
            (
                json!({ "properties": {
                    "a": { "type": "string", "x-mcp-header": "X" },
                    "b": { "type": "string", "x-mcp-header": "x" },
                } }),
                "is given twice",
            ),
        ] {
            let problem = learn(&schema).unwrap_err().to_string();
            assert!(problem.contains(expected), "{schema}: {problem}");
        }
    }
}
