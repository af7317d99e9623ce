//! The access tokens of an OAuth issuer that count for this server.

use std::net::IpAddr;

use super::network::Network;
use crate::secret::Secret;

pub(super) const URL_EXPECTED: &str = "a URL with `https://`; `http://` on this machine only";

/// The tokens of an OAuth issuer that count here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourceServer {
    /// The issuer, as in `iss`.
    pub(crate) issuer: String,
    /// The URL of this server, as in `aud`.
    pub(crate) audience: String,
    /// The URL of the keys, if it is configured.
    pub(crate) jwks_url: Option<String>,
    /// The member with the name.
    pub(crate) user: String,
    /// The member with the groups.
    pub(crate) groups: String,
    /// The scopes that a token must have.
    pub(crate) scopes: Vec<String>,
    /// The endpoint that says whether a token is valid, if there is one.
    pub(crate) introspection: Option<Introspection>,
    /// The way to the issuer.
    pub(crate) network: Network,
}

/// The endpoint of an issuer that says whether a token is valid, and our credentials there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Introspection {
    /// The URL.
    pub(crate) url: String,
    /// The id of this server.
    pub(crate) client_id: String,
    /// The client secret of this server.
    pub(crate) client_secret: Secret<String>,
}

/// Whether the way to a URL is protected: by TLS, or because it leads to this machine.
#[must_use]
pub(crate) fn is_protected(text: &str) -> bool {
    reqwest::Url::parse(text).is_ok_and(|url| {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_here = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        !host.is_empty() && (url.scheme() == "https" || url.scheme() == "http" && is_here)
    })
}
