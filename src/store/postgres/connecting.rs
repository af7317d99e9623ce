//! Connections to PostgreSQL, made in the store's own runtime.

use std::fmt;

use deadpool_postgres::Connect;
use futures_util::future::BoxFuture;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, Connection, Error, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::url::{StoreUrl, Tls, UrlFault};
use crate::files;

/// The largest file of authorities, in bytes.
const LARGEST_AUTHORITIES: u64 = 16 * 1024 * 1024;

/// The settings of each connection: PostgreSQL ends a statement, a wait for a lock and an idle transaction at its limit. That of a lock
/// is shorter than that of a statement, so that the wait for another replica is not taken for an outage.
const SETTINGS: &str = "set statement_timeout = '2s'; set lock_timeout = '1500ms'; \
    set idle_in_transaction_session_timeout = '5s'; set timezone = 'UTC'";

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    runtime: Handle,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    /// For connections to `url`, in this runtime.
    ///
    /// # Errors
    /// When certificates cannot be read.
    pub(super) fn new(url: &StoreUrl, runtime: Handle) -> Result<Self, UrlFault> {
        let tls = match url.tls() {
            Tls::Off => None,
            Tls::Verified { authorities } => {
                let unusable = |error: &dyn fmt::Display| UrlFault::Authorities(error.to_string());
                let provider = rustls::crypto::ring::default_provider();
                let builder = ClientConfig::builder_with_provider(provider.into())
                    .with_safe_default_protocol_versions()
                    .map_err(|error| unusable(&error))?;
                let config = match authorities {
                    None => builder
                        .with_platform_verifier()
                        .map_err(|error| unusable(&error))?,
                    Some(path) => {
                        let mut roots = RootCertStore::empty();
                        let text = files::read_regular(path, LARGEST_AUTHORITIES);
                        let text = text.map_err(|error| unusable(&error))?;
                        for one in CertificateDer::pem_slice_iter(&text) {
                            let one = one.map_err(|error| unusable(&error))?;
                            roots.add(one).map_err(|error| unusable(&error))?;
                        }
                        if roots.is_empty() {
                            return Err(unusable(&"it has no certificate"));
                        }
                        builder.with_root_certificates(roots)
                    }
                };
                Some(MakeRustlsConnect::new(config.with_no_client_auth()))
            }
        };
        Ok(Self { runtime, tls })
    }

    /// Makes a connection and gives its messages to `drive`, in the store's runtime.
    pub(super) async fn open<D: Drive>(&self, config: &Config, drive: D) -> Result<Opened, Error> {
        let (tls, config) = (self.tls.clone(), config.clone());
        let runtime = self.runtime.clone();
        let opening = self.runtime.spawn(async move {
            let (client, task) = match tls {
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    (client, runtime.spawn(drive.drive(connection)))
                }
                Some(tls) => {
                    let (client, connection) = config.connect(tls).await?;
                    (client, runtime.spawn(drive.drive(connection)))
                }
            };
            client.batch_execute(SETTINGS).await?;
            Ok((client, task))
        });
        match opening.await {
            Ok(opened) => opened,
            // The runtime has ended, or the task has panicked.
            Err(_) => Err(Error::__private_api_timeout()),
        }
    }
}

/// A client and the task of its connection.
pub(super) type Opened = (Client, JoinHandle<()>);

/// Reads the messages of a connection until it ends.
pub(super) trait Drive: Send + 'static {
    fn drive<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self,
        connection: Connection<Socket, T>,
    ) -> impl Future<Output = ()> + Send + 'static;
}

/// Reads answers only.
pub(super) struct Answers;

impl Drive for Answers {
    async fn drive<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self,
        connection: Connection<Socket, T>,
    ) {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to PostgreSQL has ended");
        }
    }
}

impl Connect for Connector {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<Opened, Error>> {
        let config = config.clone();
        Box::pin(async move { self.open(&config, Answers).await })
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}
