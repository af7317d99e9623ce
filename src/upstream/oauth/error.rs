//! Errors of a login, for the command line and the log. No text here holds a secret.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::keychain::KeychainError;

/// The reason that a login failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    /// The server does not offer a login that we can use.
    #[error("server `{server}` {reason}")]
    NotOffered {
        /// The server.
        server: String,
        /// Why not; it reads on after the server's name.
        reason: String,
    },
    /// A URL that we were told to use must not be used.
    #[error("`{url}` is not used for a login: {reason}")]
    Forbidden {
        /// Scheme, host, port and path.
        url: String,
        /// Why.
        reason: &'static str,
    },
    /// The fetch failed, timed out, or brought an unusable answer.
    #[error("`{url}` {reason}")]
    Fetch {
        /// Scheme, host, port and path.
        url: String,
        /// What happened; it reads on after the URL.
        reason: String,
    },
    /// What the servers say of themselves cannot be used.
    #[error("the login is not offered as it has to be: {reason}")]
    Metadata {
        /// What is wrong.
        reason: String,
    },
    /// There is no way to tell the authorization server who we are.
    #[error(
        "`{issuer}` lets no client register by itself; register one there with the redirect URL `{redirect}`, and write its \
         id (and secret, if it has one) to the server's entry: \"oauth\": {{\"client_id\": \"…\", \"redirect_port\": {port}}}"
    )]
    NoClient {
        /// The authorization server.
        issuer: String,
        /// What is to be registered.
        redirect: String,
        /// Its port.
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
        /// What a person can do.
        advice: String,
    },
    /// The authorization server said no.
    #[error("`{issuer}` refuses: {reason}")]
    Refused {
        /// The authorization server.
        issuer: String,
        /// Its error code.
        code: String,
        /// The code, and its words.
        reason: String,
    },
    /// What came back from the browser does not belong to this login.
    #[error("the answer does not belong to this login: {reason}")]
    Foreign {
        /// What gave it away.
        reason: &'static str,
    },
    /// Nobody logged in.
    #[error("nobody logged in within {} minutes", .limit.as_secs() / 60)]
    TimedOut {
        /// How long there was.
        limit: std::time::Duration,
    },
    /// The redirect cannot be listened for.
    #[error("port {port} of this machine cannot be listened on, which the login's redirect needs")]
    Port {
        /// The wanted port.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The login cannot be kept.
    #[error("the login cannot be written to `{path}`")]
    Store {
        /// Where it is kept.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is a login, which the keychain does not open now.
    #[error("the login that is kept cannot be opened: {source}")]
    Sealed {
        /// The vault's error.
        source: VaultError,
    },
    /// The configuration wants a keychain, and none can be used.
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
    /// There is no login to be renewed.
    #[error("there is no login that could be renewed")]
    NothingToRenew,
}

impl LoginError {
    /// Whether the authorization server does not know the token (any more), so that asking again is no use.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if matches!(code.as_str(), "invalid_grant" | "invalid_client" | "unauthorized_client"))
    }

    /// Whether it does not know the client (any more).
    pub(super) fn is_unknown_client(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if matches!(code.as_str(), "invalid_client" | "unauthorized_client"))
    }
}

/// The reason that there is no key.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum VaultError {
    /// This system has no keychain.
    #[error("there is no keychain here")]
    NoKeychain,
    /// The keychain failed.
    #[error(transparent)]
    Keychain(Arc<KeychainError>),
    /// It is still at work, or shows a dialog.
    #[error("the keychain gave no answer within {limit:?}")]
    Silent {
        /// The time that it had.
        limit: Duration,
    },
    /// Its thread ended without an answer.
    #[error("the keychain failed")]
    Lost,
    /// It has no key.
    #[error("the keychain has no key for it")]
    NoKey,
    /// It has something else under the key's name.
    #[error("what the keychain has is no key")]
    NotAKey,
    /// Its key is not the one in use when the login was written.
    #[error("the keychain has another key than it was sealed with")]
    OtherKey,
    /// The lock of the key, or the thread, cannot be had.
    #[error(transparent)]
    System(Arc<io::Error>),
    /// A new key could not be made.
    #[error("the system gives no random bytes")]
    Random,
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
