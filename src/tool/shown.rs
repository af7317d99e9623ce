//! The part of a tool's definition that clients show to a model.

use serde_json::{Map, Value};

/// The JSON for counting the tokens of a definition: name, description and input schema of one tool, as its server
/// lists it. Members are in alphabetical order, so that the count does not depend on the server's order.
#[must_use]
pub fn shown_to_models(tool: &Value) -> String {
    let members: Map<String, Value> = ["name", "description", "inputSchema"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), tool.get(key)?.clone())))
        .collect();
    Value::Object(members).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_a_model_sees_of_a_definition_is_counted() {
        let tool = json!({ "outputSchema": {}, "name": "add", "inputSchema": { "type": "object" }, "annotations": {} });
        let shown = r#"{"inputSchema":{"type":"object"},"name":"add"}"#;
        assert_eq!(shown_to_models(&tool), shown);
    }
}
