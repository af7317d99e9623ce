//! `http.tls`: the certificate of the server.

use std::path::PathBuf;

use super::error::EntryError;
use super::key::{Table, Value, key};
use super::reader::{At, Field};

/// The keys of `http.tls`.
pub(super) const TLS: Table = &[
    key(
        "cert",
        Value::Text,
        "A PEM file with the server's certificate, and those between it and its authority. Required.",
    ),
    key(
        "key",
        Value::Text,
        "A PEM file with the certificate's private key. Required.",
    ),
    key(
        "client_ca",
        Value::Text,
        "A PEM file of authorities whose certificates clients may show (`http.auth.certificates`).",
    ),
];

pub(super) const EXPECTED: &str =
    "an object with the files `cert` and `key`, and perhaps `client_ca`";

/// `http.tls` as it stands in the file.
#[derive(Default)]
pub(super) struct TlsEntry {
    pub(super) offset: usize,
    pub(super) cert: Option<At<String>>,
    pub(super) key: Option<At<String>>,
    pub(super) client_ca: Option<At<String>>,
}

/// The files of the server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    /// The certificate and its chain.
    pub(crate) cert: PathBuf,
    /// Its private key.
    pub(crate) key: PathBuf,
    /// The authorities of clients' certificates.
    pub(crate) client_ca: Option<PathBuf>,
}

/// Reads `http.tls`.
pub(super) fn tls(field: &Field<'_>) -> Result<TlsEntry, At<EntryError>> {
    let mut entry = TlsEntry {
        offset: field.offset(),
        ..TlsEntry::default()
    };
    field.object()?;
    field.members(|name, member| {
        match name {
            "cert" => entry.cert = Some(member.text()?),
            "key" => entry.key = Some(member.text()?),
            "client_ca" => entry.client_ca = Some(member.text()?),
            _ => return Err(member.wrong("one of the keys `cert`, `key` and `client_ca`")),
        }
        Ok(())
    })?;
    match (&entry.cert, &entry.key) {
        (Some(_), Some(_)) => Ok(entry),
        _ => Err(field.wrong(EXPECTED)),
    }
}
