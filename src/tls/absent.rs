//! No TLS: a request to an `https` URL fails, and a server at one is refused with its configuration.

use std::path::PathBuf;

use reqwest::{Client, ClientBuilder};
use rustls_pki_types::CertificateDer;

/// Begins a client of HTTP.
pub(crate) fn begin() -> ClientBuilder {
    Client::builder()
}

/// Leaves a client as it is.
pub(crate) fn plain(builder: ClientBuilder) -> ClientBuilder {
    builder
}

/// Leaves a client as it is.
pub(crate) fn trusting<'c>(
    builder: ClientBuilder,
    _: impl Iterator<Item = &'c [u8]>,
) -> ClientBuilder {
    builder
}

/// Leaves a client as it is.
pub(crate) fn trusting_only<'c>(
    builder: ClientBuilder,
    _: Option<&PathBuf>,
    _: &[PathBuf],
    _: impl Iterator<Item = &'c [u8]>,
) -> Option<ClientBuilder> {
    Some(builder)
}

/// No certificate is looked into.
pub(crate) fn is_certificate(_: &CertificateDer<'_>) -> bool {
    true
}
