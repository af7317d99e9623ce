//! TLS servers on loopback, with certificates of an authority that no other program trusts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use time::{Duration, OffsetDateTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;

use super::setup::Home;

/// Signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate with its key.
#[derive(Debug)]
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

/// A TLS server. Its threads end with the test process.
#[derive(Debug)]
pub(crate) struct TlsServer {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority for tests");
        (params.not_before, params.not_after) =
            (now() - Duration::days(1), now() + Duration::days(90));
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// A certificate for a host. `change` may modify its parameters.
    pub(crate) fn identity(
        &self,
        host: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        // Some systems require both.
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        (params.not_before, params.not_after) =
            (now() - Duration::days(1), now() + Duration::days(90));
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        Identity {
            certificate,
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        }
    }

    /// The authority's own certificate.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Writes the authority's own certificate to a file in a home, so that it can be trusted.
    pub(crate) fn save(&self, home: &Home) -> PathBuf {
        let path = home.path("authority.pem");
        std::fs::write(&path, &self.pem).unwrap();
        path
    }
}

impl Identity {
    /// The certificate and its key.
    pub(crate) fn pem(&self) -> String {
        let certificate = section("CERTIFICATE", &self.certificate);
        certificate + &section("PRIVATE KEY", self.key.secret_der())
    }

    /// Writes both to files in a home.
    pub(crate) fn save(&self, home: &Home, name: &str) {
        let write = |ending: &str, text: String| {
            let path = home.path(&format!("{name}.{ending}"));
            std::fs::write(&path, text).unwrap();
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                let private = std::fs::Permissions::from_mode(0o600);
                std::fs::set_permissions(&path, private).unwrap();
            }
        };
        write("key", section("PRIVATE KEY", self.key.secret_der()));
        write("pem", section("CERTIFICATE", &self.certificate));
    }
}

/// A section of a PEM file.
fn section(kind: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")
}

fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

impl TlsServer {
    /// Adds TLS in front of the plain server at `behind`.
    pub(crate) fn before(behind: SocketAddr, identity: Identity) -> Self {
        Self::start(identity, &[], move |mut stream| async move {
            let Ok(mut plain) = TcpStream::connect(behind).await else {
                return;
            };
            plain.set_nodelay(true).unwrap();
            // Either side may disconnect.
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut plain).await;
        })
    }

    /// A server that offers `protocols` and runs `serve` for each connection.
    pub(crate) fn start<F: Future<Output = ()> + Send + 'static>(
        identity: Identity,
        protocols: &[&str],
        serve: impl Fn(TlsStream<TcpStream>) -> F + Send + Sync + 'static,
    ) -> Self {
        let mut config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![identity.certificate], identity.key)
            .unwrap();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
        };
        let connections = server.connections.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                let serve = Arc::new(serve);
                let mut serving = JoinSet::new();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    stream.set_nodelay(true).unwrap();
                    let accepting = acceptor.accept(stream);
                    let (serve, connections) = (serve.clone(), connections.clone());
                    serving.spawn(async move {
                        // A client that does not trust the certificate disconnects here.
                        let Ok(stream) = accepting.await else { return };
                        connections.fetch_add(1, Ordering::SeqCst);
                        serve(stream).await;
                    });
                }
            });
        });
        server
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of completed handshakes.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}
