//! The identity in a client's certificate, which the connection has checked.

use std::sync::Arc;
use std::time::SystemTime;

use super::Fingerprint;
use crate::config::Claims;

/// The certificate of a client, from the connection.
#[derive(Debug, Clone)]
pub(crate) struct ClientCertificate {
    pub(super) claims: Claims,
    pub(super) expires: SystemTime,
    pub(super) fingerprint: Fingerprint,
    /// The certificate itself.
    pub(crate) der: Arc<[u8]>,
}

#[cfg(feature = "cli")]
impl ClientCertificate {
    /// The identity of a checked certificate: its common name, with its organizational units as groups. `None` if it has no name
    /// that can be one, or several.
    #[must_use]
    pub(crate) fn of(der: &[u8]) -> Option<Self> {
        use std::collections::BTreeSet;
        use std::time::{Duration, UNIX_EPOCH};

        use sha2::{Digest as _, Sha256};
        use x509_parser::prelude::{FromDer as _, X509Certificate};

        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let subject = certificate.subject();
        let mut names = subject.iter_common_name();
        let (name, None) = (names.next()?.as_str().ok()?, names.next()) else {
            return None;
        };
        let groups: BTreeSet<String> = subject
            .iter_organizational_unit()
            .filter_map(|unit| Some(unit.as_str().ok()?.to_owned()))
            .collect();
        let ends = u64::try_from(certificate.validity().not_after.timestamp()).ok()?;
        let mut hash = Sha256::new();
        // No credential of a header has a line break.
        hash.update("certificate\n");
        hash.update(der);
        super::is_name(name).then(|| Self {
            claims: Claims {
                identity: format!("cert:{name}"),
                name: name.to_owned(),
                groups,
                ..Claims::default()
            },
            expires: UNIX_EPOCH + Duration::from_secs(ends),
            fingerprint: hash.finalize().into(),
            der: der.into(),
        })
    }
}
