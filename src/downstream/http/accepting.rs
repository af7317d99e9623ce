//! The loop that accepts connections, and the life of each connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use hyper_util::service::TowerToHyperService;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
#[cfg(feature = "cli")]
use tokio_rustls::TlsAcceptor;
#[cfg(feature = "cli")]
use tokio_util::sync::CancellationToken;

use super::access::LetIn;
use super::admission::Peer;
use super::connections::{Connection, Connections, Ongoing};
use super::request_body::RequestBody;
use super::shared::Shared;
use super::slow_reader::SlowReaderGuard;
use super::tls::Tls;
#[cfg(feature = "cli")]
use crate::identity::ClientCertificate;
use crate::shutdown::Tasks;

/// The time limit for the head of a request on a known client's connection, including the wait for the request.
const HEAD_TIME: Duration = Duration::from_secs(90);

/// The maximum number of headers of a request.
const MOST_HEADERS: usize = 64;
/// The size of a connection's buffers in bytes. The head of a request must fit into one.
const BUFFER: usize = 64 * 1024;

/// The interval at which a changed certificate is looked for.
const LOOK: Duration = Duration::from_secs(1);

/// The maximum number of requests at the same time on a connection of HTTP/2.
const MOST_STREAMS: u32 = 100;

/// The time that connections have at the end of the run to take their last responses.
const GRACE: Duration = Duration::from_millis(100);

/// The time for which a client may read nothing that is ready for it, while others need the budget.
const STALL: Duration = Duration::from_secs(10);

/// The time without traffic after which a client's machine is probed.
const SILENCE: Duration = Duration::from_secs(30);

/// The interval of these probes.
const PROBES: Duration = Duration::from_secs(10);

/// The interval at which unused sessions are removed.
const TIDY: Duration = Duration::from_secs(60);

/// The response when all connections are in use.
const ALL_IN_USE: &str = "HTTP/1.1 503 All connections are in use\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";

/// The pause after a connection could not be accepted: the process may have too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the run ends; then all streams end.
pub(super) async fn accept(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    router: Router,
    shared: Arc<Shared>,
) {
    let tasks = shared.tasks.clone();
    let taking = async {
        // Closed when the server is about to end, so that another one can be bound to the address.
        let listener = listener;
        let connections = Arc::new(Connections::default());
        for number in 0.. {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let Some(connection) = connections.admit(number, peer.ip()) else {
                        tracing::debug!(%peer, "all connections are in use");
                        // If it cannot be written at once, closing the connection must suffice.
                        let _ = stream.try_write(ALL_IN_USE.as_bytes());
                        continue;
                    };
                    // A response must not wait for the acknowledgement of the previous one. If this fails, responses
                    // are only slower.
                    let _ = stream.set_nodelay(true);
                    keep_alive(&stream);
                    let stream = SlowReaderGuard::new(stream, shared.outgoing.clone(), STALL);
                    let peer = Peer {
                        address: peer.ip(),
                        certificate: None,
                    };
                    let (router, own) = (router.clone(), tasks.clone());
                    match &tls {
                        None => tasks.spawn(serve(stream, peer, router, own, connection, false)),
                        #[cfg(not(feature = "cli"))]
                        Some(tls) => match **tls {},
                        #[cfg(feature = "cli")]
                        Some(tls) => {
                            let acceptor = tls.acceptor();
                            tasks.spawn(encrypted(acceptor, stream, peer, router, own, connection))
                        }
                    };
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    };
    let taking = async {
        tokio::select! {
            () = taking => {}
            // Other replicas pass on what requests in progress wait for.
            () = shared.draining.begun(), if shared.replicas.is_none() => {}
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = taking => {}
        () = tidy(&shared) => {}
        () = renew(tls.as_deref(), &shared) => {}
    }
}

/// Reads a changed certificate again, and ends what certificates of a replaced authority have opened.
async fn renew(tls: Option<&Tls>, shared: &Shared) {
    let Some(tls) = tls else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(LOOK).await;
        if tls.renew()
            && let Some(authenticator) = &shared.access.authenticator
        {
            authenticator.end_certificates();
        }
    }
}

/// Removes unused sessions until the run ends, and then all.
pub(super) async fn tidy(shared: &Shared) {
    let tidying = async {
        loop {
            tokio::time::sleep(TIDY).await;
            shared.sessions.tidy(Instant::now());
        }
    };
    tokio::select! {
        () = tidying => {}
        () = shared.tasks.stopped() => {}
    }
    // The last answers still have to be written.
    shared.sessions.end_all(GRACE / 2).await;
}

/// Has the system probe an idle connection, so that one of a machine that is gone ends and frees its place. If this
/// fails, the connection stays until something is written to it.
fn keep_alive(stream: &TcpStream) {
    let probes = TcpKeepalive::new().with_time(SILENCE).with_interval(PROBES);
    let _ = SockRef::from(stream).set_tcp_keepalive(&probes);
}

/// Serves a connection with TLS, after its handshake.
#[cfg(feature = "cli")]
async fn encrypted(
    (acceptor, replaced): (TlsAcceptor, CancellationToken),
    stream: SlowReaderGuard<TcpStream>,
    mut peer: Peer,
    router: Router,
    tasks: Tasks,
    connection: Connection,
) {
    let stream = tokio::select! {
        accepted = acceptor.accept(stream) => match accepted {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%error, "a client's TLS handshake failed");
                return;
            }
        },
        () = tasks.stopped() => return,
        () = connection.over() => return,
    };
    let session = stream.get_ref().1;
    let is_second = session.alpn_protocol() == Some(b"h2");
    let certificates = session.peer_certificates();
    let certificate = certificates.and_then(|certificates| certificates.first());
    let identity = certificate.and_then(|der| ClientCertificate::of(der));
    peer.certificate = identity.map(Arc::new);
    let has_certificate = peer.certificate.is_some();
    tokio::select! {
        () = serve(stream, peer, router, tasks, connection, is_second) => {}
        // The certificate was checked with authorities that count no more.
        () = replaced.cancelled(), if has_certificate => {}
    }
}

/// Serves a connection; over HTTP/2 if it `is_second`.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: Router,
    tasks: Tasks,
    connection: Connection,
    is_second: bool,
) {
    let permit = Arc::new(connection);
    let router = TowerToHyperService::new(router);
    let permit_of = permit.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        request.extensions_mut().insert(permit_of.clone());
        let ongoing = permit_of.begin();
        let answer = router.call(request.map(|body| RequestBody::new(body, permit_of.clone())));
        async move { answer.await.map(|answer| held(answer, ongoing)) }
    });
    if is_second {
        let mut builder = http2::Builder::new(OwnTasks(tasks.clone()));
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(MOST_STREAMS)
            .max_header_list_size(BUFFER as u32)
            .keep_alive_interval(SILENCE);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        return until_over(connection, &tasks, &permit).await;
    }
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(MOST_HEADERS)
        .max_buf_size(BUFFER);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    until_over(connection, &tasks, &permit).await;
}

/// Runs a connection to its end, or asks it to end with the run or when its place is needed.
async fn until_over(
    connection: impl GracefulConnection<Error = hyper::Error>,
    tasks: &Tasks,
    permit: &Connection,
) {
    tokio::pin!(connection);
    tokio::select! {
        outcome = connection.as_mut() => {
            if let Err(error) = outcome {
                tracing::debug!(%error, "a client's connection broke off");
            }
            return;
        }
        () = tasks.stopped() => {}
        () = permit.over() => {}
    }
    connection.as_mut().graceful_shutdown();
    // A client that does not take its responses in time is not waited for.
    let _ = tokio::time::timeout(GRACE, connection).await;
}

/// Runs the streams of a connection as tasks of the run.
#[derive(Clone)]
struct OwnTasks(Tasks);

impl<F: Future<Output: Send + 'static> + Send + 'static> Executor<F> for OwnTasks {
    fn execute(&self, stream: F) {
        self.0.spawn(stream);
    }
}

/// Wraps `answer` so that the request counts as ongoing until the body has been sent.
fn held(answer: Response<Body>, ongoing: Ongoing) -> Response<Body> {
    if answer.extensions().get::<LetIn>().is_some() {
        ongoing.let_in();
    }
    answer.map(|body| {
        Body::new(body.map_err(move |error| {
            // Moved into the body, so that it is dropped with it.
            let _ = &ongoing;
            error
        }))
    })
}
