//! The schema of a GraphQL interface, from its introspection, as the description of an interface: a path for each query and mutation.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::selection::Selector;
use super::types::{Field, Type};

/// The query for the schema (GraphQL, October 2021, 4.1), without what no tool needs.
pub(super) const INTROSPECTION: &str = "query mcpzip { __schema { queryType { name } mutationType { name } types { kind name description \
fields(includeDeprecated: false) { name description args { ...input } type { ...type } } inputFields { ...input } \
enumValues(includeDeprecated: false) { name } possibleTypes { name } } } } \
fragment input on __InputValue { name description type { ...type } defaultValue } \
fragment type on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } }";

/// The answer to the introspection.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Schema {
    query_type: Option<Named>,
    mutation_type: Option<Named>,
    types: Vec<Type>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

/// A query or mutation.
#[derive(Debug)]
pub(super) struct Operation {
    /// `query` or `mutation`.
    pub(super) kind: &'static str,
    pub(super) field: String,
    /// The arguments with their types as they are written.
    pub(super) types: Vec<(String, String)>,
    /// The argument that has the selection; `None` if the field has no members.
    pub(super) selection: Option<String>,
    /// The selection without that argument.
    pub(super) usual: String,
}

impl Schema {
    /// The types by name.
    fn types(&self) -> BTreeMap<&str, &Type> {
        self.types
            .iter()
            .map(|one| (one.name.as_str(), one))
            .collect()
    }

    /// A description of the interface in the form of OpenAPI, and the operations by method and path.
    pub(super) fn described(&self) -> (Value, BTreeMap<(String, String), Operation>) {
        let types = self.types();
        let selector = Selector::new(&types);
        let (mut paths, mut operations) = (Map::new(), BTreeMap::new());
        let roots = [
            ("query", "query", &self.query_type),
            ("mutation", "post", &self.mutation_type),
        ];
        for (kind, method, root) in roots {
            let root = root.as_ref().and_then(|root| types.get(root.name.as_str()));
            for field in root
                .and_then(|root| root.fields.as_ref())
                .into_iter()
                .flatten()
            {
                let operation = operation(kind, field, &selector);
                let path = format!("/{}", field.name);
                let described = described_field(field, &operation);
                paths.entry(path.clone()).or_insert_with(|| json!({}))[method] = described;
                operations.insert((method.to_ascii_uppercase(), path), operation);
            }
        }
        let definitions: Map<String, Value> = self.types.iter().map(definition).collect();
        let document = json!({ "openapi": "3.1.0", "paths": paths, "definitions": definitions });
        (document, operations)
    }
}

fn operation(kind: &'static str, field: &Field, selector: &Selector<'_>) -> Operation {
    let usual = selector.usual(field.kind.named());
    let mut name = "fields".to_owned();
    while field.args.iter().any(|one| one.name == name) {
        name.push('_');
    }
    let types = field
        .args
        .iter()
        .map(|one| (one.name.clone(), one.kind.written()));
    Operation {
        kind,
        field: field.name.clone(),
        types: types.collect(),
        selection: (!usual.is_empty()).then_some(name),
        usual,
    }
}

fn described_field(field: &Field, operation: &Operation) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for argument in &field.args {
        properties.insert(argument.name.clone(), argument.schema());
        if argument.is_required() {
            required.push(argument.name.as_str());
        }
    }
    if let Some(name) = &operation.selection {
        let about = format!(
            "The members of {} to return, in GraphQL. Without it: {}",
            field.kind.named(),
            operation.usual
        );
        properties.insert(
            name.clone(),
            json!({ "type": "string", "description": about }),
        );
    }
    let description = field.description.clone().unwrap_or_default();
    let mut described =
        json!({ "operationId": field.name, "description": description, "tags": [operation.kind] });
    if !properties.is_empty() {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        described["requestBody"] = json!({
            "required": !required.is_empty(), "content": { "application/json": { "schema": schema } },
        });
    }
    described
}

/// A type as a schema.
fn definition(one: &Type) -> (String, Value) {
    let mut schema = match one.kind.as_str() {
        "INPUT_OBJECT" => {
            let fields = one.input_fields.as_deref().unwrap_or_default();
            let properties: Map<String, Value> = fields
                .iter()
                .map(|field| (field.name.clone(), field.schema()))
                .collect();
            let required = fields.iter().filter(|field| field.is_required());
            let required: Vec<&str> = required.map(|field| field.name.as_str()).collect();
            json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
        }
        "ENUM" => {
            let values = one.enum_values.as_deref().unwrap_or_default();
            let values: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
            json!({ "type": "string", "enum": values })
        }
        _ => json!({}),
    };
    let about = one.description.as_deref().unwrap_or_default();
    if !about.is_empty() {
        schema["description"] = about.into();
    } else if one.kind == "SCALAR" {
        schema["description"] = one.name.as_str().into();
    }
    (one.name.clone(), schema)
}
