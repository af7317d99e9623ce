//! TLS of the server: its certificate, which is read again when a file changes, and the certificates of clients.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::config::TlsOptions;
use crate::files;

/// The largest file, in bytes.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The protocols for requests, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// TLS with the current certificate.
#[derive(Debug)]
pub(super) struct Tls {
    options: TlsOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    config: Arc<ServerConfig>,
    stamp: Stamp,
    /// The file of the authorities of clients.
    authorities: Option<Vec<u8>>,
    /// Cancelled when they are replaced.
    replaced: CancellationToken,
}

/// The state of the files, as far as their directory shows it.
type Stamp = Vec<Option<(SystemTime, u64)>>;

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("the file of `http.tls.{key}`, `{}`, cannot be read: {source}", path.display())]
    Read {
        key: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("the file of `http.tls.{key}`, `{}`, has no {wanted} in PEM form", path.display())]
    Missing {
        key: &'static str,
        path: PathBuf,
        wanted: &'static str,
    },
    #[error("other users can read the private key `{}`; `chmod 600` prevents that", path.display())]
    Open { path: PathBuf },
    #[error("the certificate and key of `http.tls` cannot be used: {0}")]
    Unusable(String),
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub(super) fn new(options: TlsOptions) -> Result<Self, TlsError> {
        let stamp = stamp(&options);
        // Read before, so that a change meanwhile counts as one.
        let authorities = authorities(&options);
        let config = Arc::new(load(&options)?);
        let state = State {
            config,
            stamp,
            authorities,
            replaced: CancellationToken::new(),
        };
        Ok(Self {
            options,
            state: Mutex::new(state),
        })
    }

    /// Accepts a connection with the current certificate; the token is cancelled when the authorities of clients are replaced.
    pub(super) fn acceptor(&self) -> (TlsAcceptor, CancellationToken) {
        let state = self.state.lock();
        (
            TlsAcceptor::from(state.config.clone()),
            state.replaced.clone(),
        )
    }

    /// Reads the files again if one has changed. The certificate in use stays where the new one cannot be used. Returns whether the
    /// authorities of clients are others now.
    pub(super) fn renew(&self) -> bool {
        let stamp = stamp(&self.options);
        if self.state.lock().stamp == stamp {
            return false;
        }
        let authorities = authorities(&self.options);
        let loaded = load(&self.options);
        let mut state = self.state.lock();
        state.stamp = stamp;
        match loaded {
            Ok(config) => {
                state.config = Arc::new(config);
                tracing::info!("new connections get the changed certificate");
                let is_replaced = state.authorities != authorities;
                if is_replaced {
                    state.authorities = authorities;
                    std::mem::take(&mut state.replaced).cancel();
                }
                is_replaced
            }
            Err(error) => {
                tracing::error!(%error, "the certificate in use stays, until the files are correct");
                false
            }
        }
    }
}

/// The text of the file of authorities; `None` without one.
fn authorities(options: &TlsOptions) -> Option<Vec<u8>> {
    read("client_ca", options.client_ca.as_deref()?).ok()
}

fn stamp(options: &TlsOptions) -> Stamp {
    let files = [
        Some(&options.cert),
        Some(&options.key),
        options.client_ca.as_ref(),
    ];
    let files = files.into_iter().flatten();
    let stamps = files.map(|file| {
        let metadata = std::fs::metadata(file).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    });
    stamps.collect()
}

fn load(options: &TlsOptions) -> Result<ServerConfig, TlsError> {
    let chain = certificates("cert", &options.cert)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = std::fs::metadata(&options.key);
        let mode = metadata.map(|metadata| metadata.permissions().mode());
        if mode.is_ok_and(|mode| mode & 0o007 != 0) {
            let path = options.key.clone();
            return Err(TlsError::Open { path });
        }
    }
    let key = PrivateKeyDer::from_pem_slice(&read("key", &options.key)?);
    let key = key.map_err(|_| TlsError::Missing {
        key: "key",
        path: options.key.clone(),
        wanted: "private key",
    })?;
    let unusable = |error: &dyn std::fmt::Display| TlsError::Unusable(error.to_string());
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    let builder = match &options.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates("client_ca", path)? {
                roots.add(certificate).map_err(|error| unusable(&error))?;
            }
            // A client may show another credential in place of a certificate.
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build();
            builder.with_client_cert_verifier(verifier.map_err(|error| unusable(&error))?)
        }
    };
    let config = builder.with_single_cert(chain, key);
    let mut config = config.map_err(|error| unusable(&error))?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    // A session that is resumed would keep a certificate that a changed `client_ca` does not accept.
    if options.client_ca.is_some() {
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read(key, path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.unwrap_or_default();
    match certificates.is_empty() {
        true => Err(TlsError::Missing {
            key,
            path: path.to_owned(),
            wanted: "certificate",
        }),
        false => Ok(certificates),
    }
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    files::read_regular(path, LARGEST).map_err(|source| TlsError::Read {
        key,
        path: path.to_owned(),
        source,
    })
}
