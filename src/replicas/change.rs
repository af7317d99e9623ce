//! The facts of a session that are not in its id.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The changes of a session since its handshake, and the parts of the handshake that did not fit into the id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// The lowest log level that the client accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log_level: Option<String>,
    /// The resources that it follows.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) uris: BTreeSet<String>,
    /// The name in its handshake, if that is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The version in its handshake, with a long name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// The extensions in its handshake that mcpzip does not know, with their settings as JSON.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) extensions: BTreeMap<String, String>,
}

impl Change {
    /// Reads the form of the store. A part that this version does not know is left out.
    pub(super) fn parse(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_else(|error| {
            tracing::warn!(%error, "a session in the store cannot be read");
            Self::default()
        })
    }

    /// The form of the store.
    pub(super) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts can be written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_as_it_was_written_also_by_an_earlier_version() {
        let change = Change {
            log_level: Some("error".to_owned()),
            uris: BTreeSet::from(["a:b".to_owned()]),
            ..Change::default()
        };
        assert_eq!(Change::parse(&change.to_json()), change);
        assert_eq!(
            Change::parse(br#"{"log_level":"error","uris":["a:b"],"later":1}"#),
            change
        );
        assert_eq!(Change::parse(b"{}"), Change::default());
    }
}
