//! Errors of requests to a registry.

/// A request to a registry that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The address is not a URL.
    #[error(
        "the registry's address `{base}` is not a URL that begins with `http://` or `https://`"
    )]
    Address {
        /// The address as it was written.
        base: String,
    },
    /// The requested name is not a name in a registry.
    #[error(
        "`{name}` is not a registry name, such as `io.github.user/server`; `mcpzip registry search` finds names"
    )]
    Name {
        /// The name as it was written.
        name: String,
    },
    /// The requested version is not a version.
    #[error("`{version}` is not a version, such as `1.2.0`")]
    Version {
        /// The version as it was written.
        version: String,
    },
    /// The registry cannot be reached.
    #[error("the registry {base} cannot be reached: {reason}")]
    Unreachable {
        /// The registry's address.
        base: String,
        /// The reason.
        reason: String,
    },
    /// The registry answered with an error status.
    #[error("the registry {base} answers with HTTP {status}")]
    Status {
        /// The registry's address.
        base: String,
        /// The status.
        status: u16,
    },
    /// The registry has no such server.
    #[error("the registry has no server `{name}`{}", version.as_ref().map(|version| format!(" of version `{version}`")).unwrap_or_default())]
    NotFound {
        /// The name.
        name: String,
        /// The version, if one was requested.
        version: Option<String>,
    },
    /// The answer is too long.
    #[error("the registry's answer has more than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The answer has an unexpected form.
    #[error("the registry's answer cannot be used: {reason}")]
    Unreadable {
        /// The reason.
        reason: String,
    },
}

impl Error {
    /// Whether an old answer is the best available.
    #[must_use]
    pub(crate) fn is_absence(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Status { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }
}
