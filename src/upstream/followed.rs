//! The resources and tasks that clients follow at a server.

/// A resource or task that clients follow, by the server's own name for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Followed {
    /// A resource, by its URI.
    Resource(String),
    /// A task, by its id (extension `io.modelcontextprotocol/tasks`).
    Task(String),
}
