//! The step that is missing before a server accepts a request.

/// The step that is missing before a server accepts a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum AuthRequired {
    /// Credentials of the configuration, which has them or must get them.
    #[default]
    Credentials,
    /// Credentials that its `headers_command` must give, and gave none that are good.
    Command,
    /// A login, as there is none.
    Login,
    /// The login that there is to be opened, which the keychain does not do; or a new one.
    Sealed(String),
    /// A new login, as the one there was is over.
    Renewal,
    /// A login that is good for more.
    Scopes(Vec<String>),
    /// Nothing that we could do: the login is good for all that was asked for.
    Rights,
    /// The login to be renewed, which did not work just now.
    Patience(String),
}
