//! A server's response to the opening of a connection.

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
