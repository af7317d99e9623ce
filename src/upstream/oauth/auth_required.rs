//! The step that is missing before a server accepts a request.

/// The step that is missing before a server accepts a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum AuthRequired {
    /// Credentials in the configuration: missing or invalid ones.
    #[default]
    Credentials,
    /// A valid `Authorization` in the `headers` of the configuration: the server refused the one that is there.
    Header,
    /// Valid credentials from its `headers_command`.
    Command,
    /// A first login.
    Login,
    /// Access to the stored login, which the keychain does not open; or a new login.
    Sealed(String),
    /// A new login, because the last one has ended.
    Renewal,
    /// Another account, or rights of this one: the token of its login is new, and refused.
    Refused,
    /// Rights of our client or of the account, whose new token is refused: the entry decides which token a login gets.
    Client,
    /// A login with more scopes.
    Scopes(Vec<String>),
    /// Nothing we can do: the login has all scopes that were asked for.
    Rights,
    /// A login of the person at the page with this URL, if the gateway knows it.
    Page(Option<String>),
    /// Another identity, or rights of this one: it is named by the gateway.
    Identity,
    /// A renewal of the login, which failed just now.
    Patience(String),
}

impl AuthRequired {
    /// The predicate of a sentence about the server.
    pub(crate) const fn demand(&self) -> &'static str {
        match self {
            Self::Header => "refused the `Authorization` of its `headers`",
            Self::Refused | Self::Client => "refused the token of its login",
            _ => "requires a login",
        }
    }
}
