//! What a host answers without a person: arguments made from a schema, and the defaults of a form.

use serde_json::{Map, Value, json};

/// Arguments that fit `schema`: every required property, with the plainest value there is.
pub(crate) fn fitting(schema: &Value) -> Value {
    let required = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let arguments: Map<_, _> = required
        .map(|name| (name.to_owned(), value(&schema["properties"][name])))
        .collect();
    Value::Object(arguments)
}

/// The answer to a request of the server for input (`elicitation/create`, `sampling/createMessage` or `roots/list`).
pub(crate) fn answer(request: &Value) -> Option<Value> {
    match request["method"].as_str()? {
        "elicitation/create" => Some(
            json!({ "action": "accept", "content": form(&request["params"]["requestedSchema"]) }),
        ),
        "sampling/createMessage" => Some(json!({
            "role": "assistant",
            "content": { "type": "text", "text": "An answer." },
            "model": "none",
            "stopReason": "endTurn",
        })),
        "roots/list" => Some(json!({ "roots": [] })),
        _ => None,
    }
}

/// A form filled in with its defaults, and plain values where there are none (SEP-1034).
fn form(schema: &Value) -> Value {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let content: Map<_, _> = fields
        .map(|(name, field)| {
            (
                name.clone(),
                field
                    .get("default")
                    .cloned()
                    .unwrap_or_else(|| value(field)),
            )
        })
        .collect();
    Value::Object(content)
}

fn value(schema: &Value) -> Value {
    let known = schema["enum"].as_array().and_then(|values| values.first());
    match (known, schema["type"].as_str()) {
        (Some(known), _) => known.clone(),
        (None, Some("integer" | "number")) => json!(1),
        (None, Some("boolean")) => json!(true),
        (None, Some("array")) => json!([]),
        (None, Some("object")) => fitting(schema),
        (None, Some("null")) => Value::Null,
        (None, _) => json!("a"),
    }
}
