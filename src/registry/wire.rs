//! The parts of a registry's answers that are used: its API v0.1, and `server.json` of 2025-09-29 and later.
//!
//! Nothing here is trusted. An unexpected shape fails the whole answer, or drops the one server of a list. Texts for
//! people lose their control characters; names that are used must be valid names.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::text::shortened;
use crate::tool::is_hidden;

/// The longest description that is kept, in characters.
const LONGEST_TEXT: usize = 300;

/// A page of `GET /v0.1/servers`.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    pub(super) servers: Vec<serde_json::Value>,
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    #[serde(default)]
    pub(super) next_cursor: Option<String>,
}

/// A server in the registry's wrapper.
#[derive(Debug, Deserialize)]
pub(super) struct Response {
    pub(super) server: Detail,
    #[serde(default, rename = "_meta")]
    pub(super) meta: Option<serde_json::Value>,
}

/// A `server.json`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Detail {
    pub(super) name: String,
    pub(super) version: String,
    #[serde(default)]
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) packages: Option<Vec<Package>>,
    #[serde(default)]
    pub(super) remotes: Option<Vec<Remote>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Package {
    pub(super) registry_type: String,
    #[serde(default)]
    pub(super) registry_base_url: Option<String>,
    pub(super) identifier: String,
    #[serde(default)]
    pub(super) version: Option<String>,
    #[serde(default)]
    pub(super) runtime_hint: Option<String>,
    #[serde(default)]
    pub(super) transport: Option<Transport>,
    #[serde(default)]
    pub(super) runtime_arguments: Option<Vec<Argument>>,
    #[serde(default)]
    pub(super) package_arguments: Option<Vec<Argument>>,
    #[serde(default)]
    pub(super) environment_variables: Option<Vec<Named>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Transport {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Remote {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) url: String,
    #[serde(default)]
    pub(super) headers: Option<Vec<Named>>,
    #[serde(default)]
    pub(super) variables: Option<BTreeMap<String, Input>>,
}

/// A value from the registry or the user.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Input {
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) is_required: Option<bool>,
    #[serde(default)]
    pub(super) is_secret: Option<bool>,
    #[serde(default)]
    pub(super) format: Option<String>,
    #[serde(default, deserialize_with = "scalar")]
    pub(super) value: Option<String>,
    #[serde(default, deserialize_with = "scalar")]
    pub(super) default: Option<String>,
    #[serde(default)]
    pub(super) choices: Option<Vec<String>>,
    #[serde(default)]
    pub(super) variables: Option<BTreeMap<String, Input>>,
}

/// An argument of a command.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Argument {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) value_hint: Option<String>,
    #[serde(default)]
    pub(super) is_repeated: Option<bool>,
    #[serde(flatten)]
    pub(super) input: Input,
}

/// A variable of the environment, or a header.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) input: Input,
}

/// The status of a version in the official registry: `active`, `deprecated` or `deleted`.
pub(super) fn status(meta: Option<&serde_json::Value>) -> Option<&str> {
    meta?
        .get("io.modelcontextprotocol.registry/official")?
        .get("status")?
        .as_str()
}

/// An untrusted text in one line, without control or invisible characters.
pub(super) fn clean(text: &str) -> String {
    let shown: String = text
        .chars()
        .filter(|c| !is_hidden(*c))
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    shortened(&shown, LONGEST_TEXT)
}

/// Whether a text is the name of a server in a registry: `namespace/name`, at most 200 characters.
pub(super) fn is_name(name: &str) -> bool {
    let is_part = |part: &str, more: &str| {
        part.contains(|c: char| c.is_ascii_alphanumeric())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let parts = name.split_once('/');
    name.len() <= 200
        && parts.is_some_and(|(space, name)| is_part(space, ".-") && is_part(name, "._-"))
}

/// Whether a text is a version that is safe in a path and a command line.
pub(super) fn is_version(version: &str) -> bool {
    version.len() <= 255
        && version.starts_with(|c: char| c.is_ascii_alphanumeric())
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ".+_-".contains(c))
}

/// Reads a text, or a scalar that other registries write in its place.
fn scalar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::String(text) => Ok(Some(text)),
        value @ (serde_json::Value::Bool(_) | serde_json::Value::Number(_)) => {
            Ok(Some(value.to_string()))
        }
        _ => Err(serde::de::Error::custom("a text is expected")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lose_what_a_terminal_obeys() {
        assert_eq!(clean("a\u{1b}[2Jb\n\tc\u{202e}d\u{9b}31m"), "a [2Jb cd 31m");
        assert_eq!(clean(&"x".repeat(1000)).chars().count(), LONGEST_TEXT + 1);
    }

    #[test]
    fn names_and_versions_lead_nowhere_else() {
        for good in ["io.github.a-b/weather", "com.example/x_y.z"] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "x",
            "a/b/c",
            "../x",
            "a/..",
            "./a",
            "a/",
            "/a",
            "a b/c",
            "a/b\u{1b}",
            "a%2f/b",
            "é/x",
        ] {
            assert!(!is_name(bad), "{bad}");
        }
        for good in ["1.0.0", "2025.1-beta+3", "v1"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["", "..", ".", "-rf", "1/2", "^1", "1 2", "1;ls", "1\u{1b}"] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
