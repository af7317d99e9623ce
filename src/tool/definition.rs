//! The definition of a tool, as its server lists it.

use std::fmt;

use data_encoding::HEXLOWER_PERMISSIVE;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::mcp::object::{Object, text};
use crate::tool::{Effect, NameError, ToolName};

/// A tool's definition, parsed leniently from its raw `tools/list` entry.
///
/// Only the parts that ranking and display need are parsed; the JSON itself is unchanged. A member of the wrong type
/// counts as absent, so that one malformed tool does not affect the others.
#[derive(Debug, Clone)]
pub struct Definition<'a> {
    /// The tool's name on its server.
    pub name: ToolName,
    /// The title for people, from `title` or `annotations.title`.
    pub title: Option<String>,
    /// The description; empty if the server gave none.
    pub description: String,
    /// The JSON Schema of the arguments, in its original bytes.
    pub input_schema: Option<&'a RawValue>,
    /// The top-level parameters of the schema, in its order.
    pub parameters: Vec<Parameter<'a>>,
    /// The annotations.
    pub hints: Hints,
    /// Whether the tool is only for its server's own interface, so that no model may see it (MCP Apps,
    /// `_meta.ui.visibility`).
    pub is_app_only: bool,
    /// Whether it is only for models, so that no interface may call it.
    pub is_model_only: bool,
    /// Whether a call of it has to be a task (2025-11-25, `execution.taskSupport`).
    pub needs_task: bool,
    /// Whether it stands for a skill of its server. No list of a server can claim that.
    pub is_skill: bool,
    /// The URI of the folder of that skill, with the `/` at its end.
    pub skill: Option<String>,
    /// The URIs of its interface, from every key that names one.
    pub interfaces: Vec<String>,
}

/// A parameter at the top level of a tool's input schema.
#[derive(Debug, Clone)]
pub struct Parameter<'a> {
    /// The name of the property.
    pub name: String,
    /// The description; empty if there is none.
    pub description: String,
    /// Whether the schema lists it as required.
    pub required: bool,
    /// The property's schema, in its original bytes.
    pub schema: &'a RawValue,
}

/// A tool's annotations (specification, server/tools): untrusted claims of the server about the tool's effects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
    /// `idempotentHint`.
    pub idempotent: Option<bool>,
    /// The effect that the texts of a tool without any annotation suggest; `None` also before the tool is listed.
    pub guess: Option<Effect>,
}

impl Hints {
    /// Whether the server declares that the tool is read-only, and nothing that contradicts it.
    #[must_use]
    pub fn declares_read_only(&self) -> bool {
        self.read_only == Some(true) && self.destructive != Some(true)
    }
}

/// The first 16 bytes of the SHA-256 of a tool's JSON. Equal hashes mean an unchanged tool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolHash([u8; 16]);

/// The member of `_meta` of a tool that stands for a skill of its server: the entry of `skills/list`, as the server wrote it.
pub(crate) const SKILL: &str = "mcpzip/skill";

/// The member of a list entry that has no tool, with the reason.
pub(crate) const FAULT: &str = "mcpzip/fault";

impl<'a> Definition<'a> {
    /// Parses one entry of a `tools/list` result.
    ///
    /// # Errors
    /// When it is not an object or has no usable name, so that it cannot be called.
    pub fn parse(raw: &'a RawValue) -> Result<Self, DefinitionError> {
        let object = Object::parse(raw).map_err(|_| DefinitionError::NotAnObject)?;
        let Some(name) = object.text("name") else {
            return Err(match object.text(FAULT) {
                Some(fault) => DefinitionError::Fault(fault),
                None => DefinitionError::NoName,
            });
        };
        let name = ToolName::new(&name)?;
        let annotations = object
            .get("annotations")
            .and_then(|raw| Object::parse(raw).ok())
            .unwrap_or_default();
        let input_schema = object.get("inputSchema");
        let part = |object: &Object<'a>, key: &str| {
            let part = object.get(key).and_then(|raw| Object::parse(raw).ok());
            part.unwrap_or_default()
        };
        let meta = part(&object, "_meta");
        let ui = part(&meta, "ui");
        let interfaces = [
            ui.text("resourceUri"),
            meta.text("ui/resourceUri"),
            meta.text("openai/outputTemplate"),
        ];
        Ok(Self {
            name,
            title: object.text("title").or_else(|| annotations.text("title")),
            description: object.text("description").unwrap_or_default(),
            input_schema,
            parameters: input_schema.map(parameters).unwrap_or_default(),
            hints: Hints {
                read_only: flag(&annotations, "readOnlyHint"),
                destructive: flag(&annotations, "destructiveHint"),
                idempotent: flag(&annotations, "idempotentHint"),
                guess: None,
            },
            is_app_only: ui.get("visibility").is_some_and(|raw| !shows(raw, "model")),
            is_model_only: ui.get("visibility").is_some_and(|raw| !shows(raw, "app")),
            needs_task: part(&object, "execution").text("taskSupport").as_deref()
                == Some("required"),
            is_skill: meta.get(SKILL).is_some(),
            skill: part(&meta, SKILL)
                .text("uri")
                .and_then(|uri| Some(uri.strip_suffix("SKILL.md")?.to_owned())),
            interfaces: interfaces.into_iter().flatten().collect(),
        })
    }
}

/// Why an entry of a tool list is not a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// It is not a JSON object.
    #[error("the entry is not an object")]
    NotAnObject,
    /// It has no name, or one that is not a string.
    #[error("the entry has no name")]
    NoName,
    /// A server inside the program says why it has no tool here.
    #[error("{0}")]
    Fault(String),
    /// Its name is empty.
    #[error(transparent)]
    Name(#[from] NameError),
}

/// Whether `visibility` includes `reader`, a model or an app. An unknown value hides the tool.
fn shows(visibility: &RawValue, reader: &str) -> bool {
    match serde_json::from_str(visibility.get()) {
        Ok(serde_json::Value::Null) => true,
        Ok(serde_json::Value::Array(seen_by)) => seen_by.iter().any(|one| one == reader),
        _ => false,
    }
}

fn flag(annotations: &Object<'_>, key: &str) -> Option<bool> {
    match annotations.get(key)?.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn parameters(schema: &RawValue) -> Vec<Parameter<'_>> {
    let Ok(schema) = Object::parse(schema) else {
        return Vec::new();
    };
    let Some(Ok(properties)) = schema.get("properties").map(Object::parse) else {
        return Vec::new();
    };
    let required: Vec<&RawValue> = schema
        .get("required")
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    let required: Vec<String> = required.into_iter().filter_map(text).collect();
    properties
        .iter()
        .map(|(name, schema)| Parameter {
            description: Object::parse(schema)
                .ok()
                .and_then(|o| o.text("description"))
                .unwrap_or_default(),
            required: required.iter().any(|r| *r == name),
            name: name.into_owned(),
            schema,
        })
        .collect()
}

impl Hints {
    /// Whether the server says anything about the tool's effects.
    #[must_use]
    pub fn is_declared(self) -> bool {
        self.read_only.is_some() || self.destructive.is_some() || self.idempotent.is_some()
    }

    /// The label of the tool in search hits: `read`, `write` or `destructive`; `None` without annotations.
    #[must_use]
    pub fn label(self) -> Option<&'static str> {
        match self {
            Self {
                read_only: Some(true),
                ..
            } => Some("read"),
            Self {
                destructive: Some(true),
                ..
            } => Some("destructive"),
            Self {
                read_only: Some(false),
                ..
            }
            | Self {
                destructive: Some(false),
                ..
            } => Some("write"),
            _ => None,
        }
    }

    /// Whether a repeated call is harmless, if the server's claims are true.
    #[must_use]
    pub fn is_repeatable(self) -> bool {
        self.read_only == Some(true) || self.idempotent == Some(true)
    }
}

impl ToolHash {
    /// The hash of a tool's JSON.
    #[must_use]
    pub fn of(json: &[u8]) -> Self {
        let digest = Sha256::digest(json);
        let mut hash = [0; 16];
        hash.copy_from_slice(&digest[..16]);
        Self(hash)
    }

    /// The bytes of the hash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Parses the output of `Display`.
    #[must_use]
    pub fn from_hex(hex: &str) -> Option<Self> {
        let digits: &[u8; 32] = hex.as_bytes().try_into().ok()?;
        let mut hash = [0; 16];
        HEXLOWER_PERMISSIVE.decode_mut(digits, &mut hash).ok()?;
        Some(Self(hash))
    }
}

impl Serialize for ToolHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ToolHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Deserialize::deserialize(deserializer).map(Self);
        }
        let text = <&str>::deserialize(deserializer)?;
        Self::from_hex(text).ok_or_else(|| D::Error::custom("a hash is 32 hexadecimal digits"))
    }
}

impl fmt::Display for ToolHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for ToolHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn an_odd_tool_keeps_what_can_be_read() {
        let json = raw(
            r#"{"name":"t","description":7,"inputSchema":{"type":"object","required":["b",3],"properties":{"a":true,"b":{"description":"the b"}}},"annotations":{"readOnlyHint":"yes","title":"T"}}"#,
        );
        let tool = Definition::parse(&json).unwrap();
        assert_eq!(tool.description, "");
        assert_eq!(tool.title.as_deref(), Some("T"));
        assert_eq!(tool.hints, Hints::default());
        let parameters: Vec<_> = tool
            .parameters
            .iter()
            .map(|p| (p.name.as_str(), p.required, p.description.as_str()))
            .collect();
        assert_eq!(parameters, [("a", false, ""), ("b", true, "the b")]);
    }

    #[test]
    fn an_entry_without_a_name_is_no_tool() {
        assert_eq!(
            Definition::parse(&raw("[]")).unwrap_err(),
            DefinitionError::NotAnObject
        );
        assert_eq!(
            Definition::parse(&raw(r#"{"name":1}"#)).unwrap_err(),
            DefinitionError::NoName
        );
        assert!(Definition::parse(&raw(r#"{"name":""}"#)).is_err());
    }

    #[test]
    fn a_hash_survives_its_text() {
        let hash = ToolHash::of(b"{}");
        assert_eq!(ToolHash::from_hex(&hash.to_string()), Some(hash));
        for wrong in [
            "",
            "xyz",
            &"0".repeat(31),
            &"0".repeat(33),
            &format!("+{}", "0".repeat(31)),
            &"é".repeat(16),
        ] {
            assert_eq!(ToolHash::from_hex(wrong), None, "{wrong}");
        }
    }
}
