//! A server's response to the opening of a connection.

use serde_json::value::RawValue;

use crate::mcp::{Revision, ServerCapabilities};

/// The server's description of itself when the connection was opened.
#[derive(Debug, Clone)]
pub(crate) struct Introduction {
    /// The negotiated protocol revision.
    pub revision: Revision,
    /// `serverInfo.name` and `.version`, for display only.
    pub software: Option<String>,
    /// Its instructions for agents.
    pub instructions: Option<String>,
    /// The features it declares.
    pub capabilities: ServerCapabilities,
}

impl Introduction {
    /// That of a server inside the program, which declares these capabilities, a JSON object.
    pub(crate) fn of_source(capabilities: &str) -> Self {
        let capabilities = RawValue::from_string(capabilities.to_owned());
        Self {
            revision: Revision::NEWEST_LEGACY,
            software: None,
            instructions: None,
            capabilities: capabilities
                .map(|json| ServerCapabilities::new(&json))
                .unwrap_or_default(),
        }
    }
}
