//! The reasons why a request is not sent in a person's name.

/// Why a request cannot be sent in a person's name; it continues a sentence after the server's name.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum IdentityError {
    #[error(
        "no access token of the person is there to exchange: only one of the issuer of `http.auth.oauth` can be, as long as it is valid"
    )]
    NoToken,
    #[error("the person's token was not exchanged: {0}")]
    Exchange(String),
    #[error("the key that signs assertions cannot be used: {0}")]
    Key(String),
    #[error("the gateway does not know its own URL: set `http.public_url`")]
    NoUrl,
    #[error("the person's name cannot stand in a header")]
    Name,
}
