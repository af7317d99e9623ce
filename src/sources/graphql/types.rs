//! The types of a GraphQL schema, as introspection gives them.

use serde::Deserialize;
use serde_json::{Value, json};

/// A named type.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Type {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) fields: Option<Vec<Field>>,
    pub(super) input_fields: Option<Vec<Input>>,
    pub(super) enum_values: Option<Vec<Variant>>,
    possible_types: Option<Vec<Variant>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) args: Vec<Input>,
    #[serde(rename = "type")]
    pub(super) kind: Reference,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Input {
    pub(super) name: String,
    pub(super) description: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Reference,
    default_value: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Variant {
    pub(super) name: String,
}

/// A type where it is used: a name, or a list or non-null type of another.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reference {
    pub(super) kind: String,
    pub(super) name: Option<String>,
    of_type: Option<Box<Reference>>,
}

impl Reference {
    /// The name of the type inside of all lists.
    pub(super) fn named(&self) -> &str {
        match &self.of_type {
            Some(inner) => inner.named(),
            None => self.name.as_deref().unwrap_or_default(),
        }
    }

    pub(super) fn is_required(&self) -> bool {
        self.kind == "NON_NULL"
    }

    /// As it is written in a query.
    pub(super) fn written(&self) -> String {
        match (self.kind.as_str(), &self.of_type) {
            ("NON_NULL", Some(inner)) => format!("{}!", inner.written()),
            ("LIST", Some(inner)) => format!("[{}]", inner.written()),
            _ => self.name.clone().unwrap_or_default(),
        }
    }

    pub(super) fn schema(&self) -> Value {
        match (self.kind.as_str(), &self.of_type) {
            ("NON_NULL", Some(inner)) => inner.schema(),
            ("LIST", Some(inner)) => json!({ "type": "array", "items": inner.schema() }),
            _ => match self.name.as_deref().unwrap_or_default() {
                "Int" => json!({ "type": "integer" }),
                "Float" => json!({ "type": "number" }),
                "Boolean" => json!({ "type": "boolean" }),
                "String" | "ID" => json!({ "type": "string" }),
                name => json!({ "$ref": format!("#/definitions/{name}") }),
            },
        }
    }
}

impl Input {
    pub(super) fn is_required(&self) -> bool {
        self.kind.is_required() && self.default_value.is_none()
    }

    pub(super) fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        if let Some(text) = &self.description {
            schema["description"] = text.as_str().into();
        }
        schema
    }
}

impl Type {
    pub(super) fn is_leaf(&self) -> bool {
        matches!(self.kind.as_str(), "SCALAR" | "ENUM")
    }

    pub(super) fn possible(&self) -> impl Iterator<Item = &str> {
        let possible = self.possible_types.as_deref().unwrap_or_default();
        possible.iter().map(|one| one.name.as_str())
    }
}
