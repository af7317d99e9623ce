//! Certificates that are trusted in addition to the system's. They are read with the configuration, so that a missing
//! or invalid file is a fault of the configuration and not of the first call.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::error::PemError;
use crate::tls;

/// The certificates of a file, as DER; never empty.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Certificates(Arc<[Vec<u8>]>);

impl Certificates {
    /// Reads the certificates among the PEM sections of a file; other sections are ignored.
    ///
    /// # Errors
    /// When the file cannot be read, or has no usable certificate.
    pub(super) fn read(path: &Path) -> Result<Self, PemError> {
        let pem = PemError::read(path)?;
        let sections: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let certificates = sections.map_err(|_| PemError::Damaged)?;
        if certificates.is_empty() {
            return Err(PemError::NoCertificate);
        }
        if !certificates.iter().all(tls::is_certificate) {
            return Err(PemError::Certificate);
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
