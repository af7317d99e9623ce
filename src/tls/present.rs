//! TLS by `rustls`, with the algorithms of `ring`.

use std::path::PathBuf;

use reqwest::{Certificate, Client, ClientBuilder};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

/// Begins a client of HTTP.
pub(crate) fn begin() -> ClientBuilder {
    // It fails if a provider is installed already; any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
}

/// Makes a client load no certificates: its URLs are plain.
pub(crate) fn plain(builder: ClientBuilder) -> ClientBuilder {
    builder.tls_certs_only([])
}

/// Makes a client trust these certificates in addition to the system's.
pub(crate) fn trusting<'c>(
    builder: ClientBuilder,
    extra: impl Iterator<Item = &'c [u8]>,
) -> ClientBuilder {
    builder.tls_certs_merge(extra.filter_map(|der| Certificate::from_der(der).ok()))
}

/// Makes a client trust the certificates of these files and directories alone, and the extra ones. `None` if there are none.
pub(crate) fn trusting_only<'c>(
    builder: ClientBuilder,
    file: Option<&PathBuf>,
    directories: &[PathBuf],
    extra: impl Iterator<Item = &'c [u8]>,
) -> Option<ClientBuilder> {
    let mut trusted = certificates(file, directories);
    trusted.extend(extra.filter_map(|der| Certificate::from_der(der).ok()));
    (!trusted.is_empty()).then(|| builder.tls_certs_only(trusted))
}

/// The certificates of the files that can be read.
#[cfg(not(any(target_os = "macos", windows)))]
fn certificates(file: Option<&PathBuf>, directories: &[PathBuf]) -> Vec<Certificate> {
    let file = rustls_native_certs::load_certs_from_paths(file.map(PathBuf::as_path), None);
    let directories = directories
        .iter()
        .map(|directory| rustls_native_certs::load_certs_from_paths(None, Some(directory)));
    let mut certificates = Vec::new();
    for found in std::iter::once(file).chain(directories) {
        for error in found.errors {
            tracing::warn!(%error, "a certificate of `SSL_CERT_FILE` or `SSL_CERT_DIR` is not used");
        }
        // One that cannot be used costs the others nothing.
        let usable = found.certs.into_iter().filter(is_certificate);
        certificates.extend(usable.filter_map(|one| Certificate::from_der(&one).ok()));
    }
    certificates
}

/// Elsewhere the system's certificates hold.
#[cfg(any(target_os = "macos", windows))]
fn certificates(_: Option<&PathBuf>, _: &[PathBuf]) -> Vec<Certificate> {
    Vec::new()
}

/// Whether it is a certificate that can be trusted.
pub(crate) fn is_certificate(der: &CertificateDer<'_>) -> bool {
    RootCertStore::empty().add(der.clone().into_owned()).is_ok()
}
