//! A tool as a document of the search index.

use crate::catalog::Tool;
use crate::search::Document;
use crate::tool::Definition;

/// The document of a tool; `None` if its definition cannot be read.
pub(super) fn document(tool: &Tool) -> Option<Document> {
    let json = tool
        .json()
        .inspect_err(|error| tracing::warn!(server = %tool.server().name(), %error, "left out of the search index"))
        .ok()?;
    let definition = Definition::parse(&json).ok()?;
    Some(Document {
        server: tool.server().name().clone(),
        hash: tool.entry().hash,
        tool: definition.name,
        title: definition.title,
        description: definition.description,
        parameters: definition
            .parameters
            .into_iter()
            .map(|p| (p.name, p.description))
            .collect(),
    })
}
