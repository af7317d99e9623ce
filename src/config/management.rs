//! The setting that permits agents to change `mcpzip` itself.

/// The permission of agents to change `mcpzip`, with the tools of the built-in server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Management {
    /// They have no such tools.
    Off,
    /// They may look at servers and logs.
    #[default]
    Read,
    /// They may also add, change, remove and switch servers.
    Full,
}
