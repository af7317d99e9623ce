//! Errors of a login, for the command line and the log. Their texts contain no secret.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::keychain::KeychainError;

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    /// The server offers no login that we support.
    #[error("server `{server}` {reason}")]
    NotOffered {
        /// The server.
        server: String,
        /// The reason, which continues a sentence after the server's name.
        reason: String,
    },
    /// Only people of a gateway log in there.
    #[error(
        "server `{server}` is used with each person's own login (`identity`: \"per_user\"): people log in on the page `/logins` of `mcpzip serve --http`"
    )]
    OfPeople {
        /// The server.
        server: String,
    },
    /// There is no client identity for a gateway.
    #[error(
        "`{issuer}` does not let clients register themselves; the administrator registers one there with the redirect URL `{redirect}`, and writes its id (and secret) to `oauth` of the server's entry"
    )]
    NoWebClient {
        /// The authorization server.
        issuer: String,
        /// The redirect URL to register.
        redirect: String,
    },
    /// The login of a person cannot be encrypted.
    #[error("a person's login cannot be encrypted: {source}")]
    NoKey {
        /// The vault's error.
        source: VaultError,
    },
    /// The server needs credentials and offers no login.
    #[error(
        "server `{server}` offers no login by OAuth; it needs a token or a key: `mcpzip login {server} --with-token` keeps one, \
         or `headers` in its entry give it"
    )]
    NoOAuth {
        /// The server.
        server: String,
    },
    /// The server does not take a token that a person gave.
    #[error("server `{server}` does not accept this token: {reason}")]
    TokenRefused {
        /// The server.
        server: String,
        /// The server's response.
        reason: String,
    },
    /// The server does not take the token of a login that has just been made.
    #[error(
        "server `{server}` refuses the token of this login, {reason}; the login is kept: {another}`mcpzip logout {server}` removes it"
    )]
    NotAccepted {
        /// The server.
        server: String,
        /// The reason, as a clause.
        reason: String,
        /// The beginning of a sentence: how to log in with another account or more scopes, if that is possible.
        another: String,
    },
    /// A URL that must not be used.
    #[error("`{url}` is not used for a login: {reason}")]
    Forbidden {
        /// Scheme, host, port and path.
        url: String,
        /// The reason.
        reason: &'static str,
    },
    /// The fetch failed, timed out, or brought an unusable answer.
    #[error("`{url}` {reason}")]
    Fetch {
        /// Scheme, host, port and path.
        url: String,
        /// The reason, which continues a sentence after the URL.
        reason: String,
    },
    /// An answer that cannot be used.
    #[error("`{url}` {reason}")]
    Answer {
        /// Scheme, host, port and path.
        url: String,
        /// The reason, which continues a sentence after the URL.
        reason: &'static str,
    },
    /// The metadata of the server or its authorization server is unusable.
    #[error("the metadata of the login is unusable: {reason}")]
    Metadata {
        /// The fault.
        reason: String,
    },
    /// There is no client identity for the authorization server.
    #[error(
        "`{issuer}` does not let clients register themselves; register one there with the redirect URL `{redirect}`, and write its \
         id (and secret, if it has one) to the server's entry: \"oauth\": {{\"client_id\": \"…\", \"redirect_port\": {port}}}"
    )]
    NoClient {
        /// The authorization server.
        issuer: String,
        /// The redirect URL to register.
        redirect: String,
        /// The port of the redirect URL.
        port: u16,
    },
    /// The server names an authorization server that our credentials are not for.
    #[error(
        "server `{server}` names `{named}` as its authorization server, and its configured credentials are for `{expected}`: {advice}"
    )]
    Issuer {
        /// The server.
        server: String,
        /// The authorization server that it names.
        named: String,
        /// The one that the credentials are for.
        expected: String,
        /// The next step for a person.
        advice: String,
    },
    /// The authorization server refused.
    #[error("`{issuer}` refused: {reason}")]
    Refused {
        /// The authorization server.
        issuer: String,
        /// Its error code.
        code: String,
        /// The code with its description.
        reason: String,
    },
    /// The redirect does not belong to this login.
    #[error("the answer does not belong to this login: {reason}")]
    Foreign {
        /// The mismatch.
        reason: &'static str,
    },
    /// The user did not log in in time.
    #[error("no one logged in within {} minutes", .limit.as_secs() / 60)]
    TimedOut {
        /// The time limit.
        limit: std::time::Duration,
    },
    /// The callback's port cannot be opened.
    #[error("port {port} of this machine cannot be listened on, which the login's redirect needs")]
    Port {
        /// The port.
        port: u16,
        /// The system's error.
        source: io::Error,
    },
    /// The login cannot be stored.
    #[error("the login cannot be written to `{path}`")]
    Store {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is a login, which the keychain does not open now.
    #[error("the stored login cannot be decrypted: {source}")]
    Sealed {
        /// The vault's error.
        source: VaultError,
    },
    /// The configuration requires a keychain, and none is usable.
    #[error("`credentials` is \"keychain\", and {source}")]
    Keychain {
        /// The vault's error.
        source: VaultError,
    },
    /// Another process holds the login for too long.
    #[error("another process is busy with the login of server `{server}`")]
    Busy {
        /// The server.
        server: String,
    },
    /// There is no login at the identity provider, or none that it accepts any more.
    #[error(
        "server `{server}` is used with a login at the identity provider `{provider}`, and there is none that is valid: `mcpzip login {server}` makes one"
    )]
    NoIdentity {
        /// The server.
        server: String,
        /// The provider.
        provider: String,
    },
    /// An identity provider gave a token that must not be used.
    #[error("the response of the identity provider `{issuer}` was rejected: {reason}")]
    Identity {
        /// The provider.
        issuer: String,
        /// The fault of its token.
        reason: &'static str,
    },
    /// Tokens of a login cannot be revoked.
    #[error("`{issuer}` revokes no tokens of this login")]
    NoRevocation {
        /// The authorization server, or the server that gave the token.
        issuer: String,
    },
    /// Tokens of a login cannot be revoked without the client's secret or key.
    #[error(
        "`{issuer}` revokes tokens only for a client with its secret or key, and the configuration has none for it"
    )]
    NoCredentials {
        /// The authorization server.
        issuer: String,
    },
    /// There is no login to renew.
    #[error("there is no login that could be renewed")]
    NothingToRenew,
}

impl LoginError {
    /// Whether the authorization server rejects the token for good, so that a retry is useless.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::NoIdentity { .. })
            || matches!(self, Self::Refused { code, .. } if matches!(code.as_str(), "invalid_grant" | "invalid_client" | "unauthorized_client"))
    }

    /// Whether the authorization server rejects a token or an assertion.
    pub(super) fn is_invalid_grant(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "invalid_grant")
    }

    /// Whether the kind of a token or of a grant is refused.
    pub(super) fn refuses_kind(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if matches!(&code[..], "invalid_request" | "unsupported_token_type" | "unsupported_grant_type"))
    }

    /// Whether a person has to log in first.
    #[must_use]
    pub(crate) fn wants_person(&self) -> bool {
        matches!(self, Self::NoIdentity { .. })
    }

    /// Whether a token that a person makes at the server could take the place of the login.
    #[must_use]
    pub(crate) fn may_take_token(&self) -> bool {
        matches!(self, Self::NoOAuth { .. } | Self::NoClient { .. })
    }

    /// Whether it does not know the client (any more).
    pub(super) fn is_unknown_client(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if matches!(code.as_str(), "invalid_client" | "unauthorized_client"))
    }
}

/// Why there is no key.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum VaultError {
    /// This system has no keychain.
    #[error("there is no keychain on this machine")]
    NoKeychain,
    /// The keychain failed.
    #[error(transparent)]
    Keychain(Arc<KeychainError>),
    /// It has not answered, or shows a dialog.
    #[error("the keychain gave no answer within {limit:?}")]
    Silent {
        /// The time limit.
        limit: Duration,
    },
    /// Its thread ended without an answer.
    #[error("the keychain failed")]
    Lost,
    /// It has no key.
    #[error("the keychain has no key for it")]
    NoKey,
    /// The keychain's item is not a key.
    #[error("the keychain's item is not a key")]
    NotAKey,
    /// Its key is not the one that encrypted the login.
    #[error("the keychain has another key than the login was encrypted with")]
    OtherKey,
    /// The key of people's logins is not one.
    #[error("{place} is not a key: 32 bytes in base64url")]
    WrongKey {
        /// The file or the variable.
        place: String,
    },
    /// The login was encrypted with another key of people's logins.
    #[error("it was encrypted with another key than that of {place}")]
    LostKey {
        /// The file or the variable.
        place: String,
    },
    /// The key's lock or a thread is not available.
    #[error(transparent)]
    System(Arc<io::Error>),
}

impl From<io::Error> for VaultError {
    fn from(error: io::Error) -> Self {
        Self::System(Arc::new(error))
    }
}

impl From<KeychainError> for VaultError {
    fn from(error: KeychainError) -> Self {
        Self::Keychain(Arc::new(error))
    }
}
