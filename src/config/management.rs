//! What agents may do to `mcpzip` itself, as the configuration says.

/// What agents may do to `mcpzip` itself, by the tools of the built-in server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Management {
    /// Nothing.
    Off,
    /// Look.
    #[default]
    Read,
    /// Also add, change, remove and switch servers.
    Full,
}

impl Management {
    /// As the file would have it.
    pub(super) fn text(self) -> String {
        let word = match self {
            Self::Off => "off",
            Self::Read => "read",
            Self::Full => "full",
        };
        word.to_owned()
    }
}
