//! The entry of a server as the configuration has it, which may be one that cannot be used.

use serde_json::Value;

use crate::config::{Document, safe_name, safe_names, written_name};

const SERVERS: &str = "mcpServers";

/// The names of a server, and what can be read of its entry.
pub(super) struct WrittenEntry {
    /// The name that mcpzip uses.
    pub(super) name: String,
    /// The name in the configuration.
    pub(super) key: String,
    /// The identity provider that the entry names.
    pub(super) provider: Option<WrittenProvider>,
}

/// An identity provider in an entry (`oauth.idp`).
pub(super) enum WrittenProvider {
    /// Its issuer, and the id of mcpzip there.
    Known(String, String),
    /// It needs a value that is not known.
    Unknown,
}

impl WrittenEntry {
    /// The entry in the configuration `text` of the server `name`, which may be either of its names. Without an entry, its names alone.
    pub(super) fn of(name: &str, text: &str) -> Self {
        let document = Document::parse(text).ok();
        let keys = document.as_ref().map(|document| document.keys(&[SERVERS]));
        let keys = keys.unwrap_or_default();
        let key = written_name(&keys, name).unwrap_or(name).to_owned();
        let written: Vec<&str> = keys.iter().map(String::as_str).collect();
        let at = written.iter().position(|written| *written == key);
        let name = match at {
            Some(at) => safe_names(&written).swap_remove(at),
            None => safe_name(name),
        };
        let idp = document.and_then(|document| document.get(&[SERVERS, &key, "oauth", "idp"]));
        let provider = idp.map(|idp| WrittenProvider::of(&idp));
        Self {
            name,
            key,
            provider,
        }
    }
}

impl WrittenProvider {
    fn of(idp: &str) -> Self {
        let idp: Value = serde_json::from_str(idp).unwrap_or_default();
        // Other values have references to variables.
        let is_plain = |text: &&str| !text.contains(['$', '{']);
        let text = |key: &str| idp[key].as_str().map(str::trim).filter(is_plain);
        match text("issuer").zip(text("client_id")) {
            Some((issuer, client)) => Self::Known(issuer.to_owned(), client.to_owned()),
            None => Self::Unknown,
        }
    }
}
