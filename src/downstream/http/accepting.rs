//! The loop that accepts connections, and the life of each connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};

use super::access::LetIn;
use super::connections::{Connection, Connections, Ongoing};
use super::request_body::RequestBody;
use super::shared::Shared;
use super::slow_reader::SlowReaderGuard;
use crate::shutdown::Tasks;

/// The time limit for the head of a request on a known client's connection, including the wait for the request.
const HEAD_TIME: Duration = Duration::from_secs(90);

/// The maximum number of headers of a request.
const MOST_HEADERS: usize = 64;
/// The size of a connection's buffers in bytes. The head of a request must fit into one.
const BUFFER: usize = 64 * 1024;

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
pub(super) async fn accept(listener: TcpListener, router: Router, shared: Arc<Shared>) {
    let tasks = shared.tasks.clone();
    let taking = async {
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
                    tasks.spawn(serve(stream, router.clone(), tasks.clone(), connection));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    };
    let tidying = async {
        loop {
            tokio::time::sleep(TIDY).await;
            shared.sessions.tidy(Instant::now());
        }
    };
    tokio::select! {
        () = taking => {}
        () = tidying => {}
        () = tasks.stopped() => {}
    }
    shared.sessions.end_all();
}

/// Has the system probe an idle connection, so that one of a machine that is gone ends and frees its place. If this
/// fails, the connection stays until something is written to it.
fn keep_alive(stream: &TcpStream) {
    let probes = TcpKeepalive::new().with_time(SILENCE).with_interval(PROBES);
    let _ = SockRef::from(stream).set_tcp_keepalive(&probes);
}

async fn serve(
    stream: SlowReaderGuard<TcpStream>,
    router: Router,
    tasks: Tasks,
    connection: Connection,
) {
    let permit = Arc::new(connection);
    let router = TowerToHyperService::new(router);
    let service = service_fn(|request: Request<Incoming>| {
        let ongoing = permit.begin();
        let answer = router.call(request.map(|body| RequestBody::new(body, permit.clone())));
        async move { answer.await.map(|answer| held(answer, ongoing)) }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(MOST_HEADERS)
        .max_buf_size(BUFFER);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
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
