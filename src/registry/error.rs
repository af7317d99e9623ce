//! What can go wrong with a registry.

/// Why a registry gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Its address is none.
    #[error("the registry's address `{base}` is no URL that begins with `http://` or `https://`")]
    Address {
        /// As it was written.
        base: String,
    },
    /// What was asked for is no name.
    #[error(
        "`{name}` is no name of a registry, such as `io.github.user/server`; `mcpzip registry search` finds them"
    )]
    Name {
        /// As it was written.
        name: String,
    },
    /// What was asked for is no version.
    #[error("`{version}` is no version, such as `1.2.0`")]
    Version {
        /// As it was written.
        version: String,
    },
    /// Nobody answers there.
    #[error("the registry {base} cannot be reached: {reason}")]
    Unreachable {
        /// Its address.
        base: String,
        /// Why not.
        reason: String,
    },
    /// It does not give what is asked for.
    #[error("the registry {base} answers with HTTP {status}")]
    Status {
        /// Its address.
        base: String,
        /// The status.
        status: u16,
    },
    /// It has no such server.
    #[error("the registry has no server `{name}`{}", version.as_ref().map(|version| format!(" of version `{version}`")).unwrap_or_default())]
    NotFound {
        /// The name.
        name: String,
        /// The version, if one was asked for.
        version: Option<String>,
    },
    /// It says too much.
    #[error("the registry's answer has more than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// It says something else.
    #[error("the registry's answer cannot be used: {reason}")]
    Unreadable {
        /// Why not.
        reason: String,
    },
}

impl Error {
    /// Whether an old answer is as good as one gets.
    #[must_use]
    pub(crate) fn is_absence(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Status { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }
}
