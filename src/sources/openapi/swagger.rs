//! Operations of Swagger 2 in the form of OpenAPI 3.

use serde_json::{Map, Value, json};

use super::document::Document;

/// The members of a parameter that are its schema in OpenAPI 3.
const OF_SCHEMA: &[&str] = &[
    "type",
    "format",
    "items",
    "default",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "enum",
    "multipleOf",
    "x-nullable",
];

/// Converts an operation whose parameters are resolved.
pub(super) fn converted(
    operation: &Map<String, Value>,
    parameters: &[&Value],
    document: &Document,
) -> (Map<String, Value>, Vec<Value>) {
    let mut converted = operation.clone();
    let types = |key: &str| {
        let own = operation.get(key).or_else(|| document.root().get(key));
        let types = own.and_then(Value::as_array).into_iter().flatten();
        types
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (consumes, produces) = (types("consumes"), types("produces"));
    let mut plain = Vec::new();
    let (mut fields, mut required) = (Map::new(), Vec::new());
    let (mut has_file, mut encodings) = (false, Map::new());
    for parameter in parameters {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        match text("in") {
            Some("body") => {
                let schema = parameter.get("schema").cloned().unwrap_or(json!({}));
                let media = consumes.first().cloned();
                let media = media.unwrap_or_else(|| "application/json".to_owned());
                let all: Vec<String> = if consumes.is_empty() {
                    vec![media]
                } else {
                    consumes.clone()
                };
                let content: Map<String, Value> = all
                    .into_iter()
                    .map(|media| (media, json!({ "schema": schema })))
                    .collect();
                let is_required = parameter.get("required").cloned().unwrap_or(false.into());
                converted.insert(
                    "requestBody".to_owned(),
                    json!({ "content": content, "required": is_required }),
                );
            }
            Some("formData") => {
                let Some(name) = text("name") else { continue };
                has_file |= text("type") == Some("file");
                if parameter.get("required") == Some(&Value::Bool(true)) {
                    required.push(name);
                }
                let mut schema = schema_of(parameter);
                if let Some(about) = text("description") {
                    schema["description"] = about.into();
                }
                if let Some((style, explode)) = style_of(text("collectionFormat"), text("type")) {
                    encodings.insert(
                        name.to_owned(),
                        json!({ "style": style, "explode": explode }),
                    );
                }
                fields.insert(name.to_owned(), schema);
            }
            _ => plain.push(with_schema(parameter)),
        }
    }
    if !fields.is_empty() {
        let is_multipart = has_file || consumes.iter().any(|media| media.starts_with("multipart/"));
        let media = match is_multipart {
            true => "multipart/form-data",
            false => "application/x-www-form-urlencoded",
        };
        let schema = json!({ "type": "object", "properties": fields, "required": required });
        let content = json!({ media: { "schema": schema, "encoding": encodings } });
        let body = json!({ "content": content, "required": !required.is_empty() });
        converted.insert("requestBody".to_owned(), body);
    }
    let mut responses = Map::new();
    let written = operation.get("responses").and_then(Value::as_object);
    for (status, response) in written.into_iter().flatten() {
        let Ok(response) = document.resolved(response) else {
            continue;
        };
        let mut content = Map::new();
        if let Some(schema) = response.get("schema") {
            let json = ["application/json".to_owned()];
            let media = if produces.is_empty() {
                &json[..]
            } else {
                &produces[..]
            };
            for media in media {
                content.insert(media.clone(), json!({ "schema": schema }));
            }
        }
        responses.insert(status.clone(), json!({ "content": content }));
    }
    converted.insert("responses".to_owned(), Value::Object(responses));
    (converted, plain)
}

fn schema_of(parameter: &Value) -> Value {
    let members = parameter.as_object().into_iter().flatten();
    let members = members.filter(|(key, _)| OF_SCHEMA.contains(&key.as_str()));
    Value::Object(
        members
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

fn with_schema(parameter: &Value) -> Value {
    let mut plain = parameter.clone();
    let Some(members) = plain.as_object_mut() else {
        return plain;
    };
    let text = |key: &str| parameter.get(key).and_then(Value::as_str);
    members.insert("schema".to_owned(), schema_of(parameter));
    if let Some((style, explode)) = style_of(text("collectionFormat"), text("type")) {
        // Outside of queries, a list is always separated by commas.
        if text("in") == Some("query") {
            members.insert("style".to_owned(), style.into());
        }
        members.insert("explode".to_owned(), explode.into());
    }
    plain
}

/// Style and `explode` of a list.
fn style_of(collection: Option<&str>, kind: Option<&str>) -> Option<(&'static str, bool)> {
    if kind != Some("array") {
        return None;
    }
    Some(match collection {
        Some("multi") => ("form", true),
        Some("ssv") => ("spaceDelimited", false),
        Some("tsv") => ("tabDelimited", false),
        Some("pipes") => ("pipeDelimited", false),
        _ => ("form", false),
    })
}
