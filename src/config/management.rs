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

impl Management {
    /// The word in the file.
    pub(super) fn text(self) -> String {
        let word = match self {
            Self::Off => "off",
            Self::Read => "read",
            Self::Full => "full",
        };
        word.to_owned()
    }
}
