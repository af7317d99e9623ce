//! Certificates that are trusted in addition to the system's. They are read with the configuration, so that a missing
//! or invalid file is a fault of the configuration and not of the first call.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// The certificates of a file, as DER; never empty.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Certificates(Arc<[Vec<u8>]>);

impl Certificates {
    /// Reads the certificates among the PEM sections of a file; other sections are ignored.
    ///
    /// # Errors
    /// A description of the fault, which continues a sentence after the file's name.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let pem = std::fs::read(path).map_err(|error| format!("cannot be read ({error})"))?;
        let sections: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let certificates =
            sections.map_err(|_| "is damaged: a PEM section in it cannot be read".to_owned())?;
        if certificates.is_empty() {
            return Err(
                "holds no certificate in PEM form (`-----BEGIN CERTIFICATE-----`)".to_owned(),
            );
        }
        let mut store = RootCertStore::empty();
        if certificates
            .iter()
            .any(|certificate| store.add(certificate.clone()).is_err())
        {
            return Err("holds a certificate that cannot be used".to_owned());
        }
        Ok(Self(
            certificates
                .iter()
                .map(|certificate| certificate.to_vec())
                .collect(),
        ))
    }

    /// The certificates, as DER.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificates({})", self.0.len())
    }
}
