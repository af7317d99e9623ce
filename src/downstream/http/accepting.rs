//! The loop that takes connections, and the life of each.

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
use tokio::net::{TcpListener, TcpStream};

use super::access::LetIn;
use super::connections::{Connection, Connections, Ongoing};
use super::request_body::RequestBody;
use super::shared::Shared;
use super::slow_reader::SlowReaderGuard;
use crate::shutdown::Tasks;

/// How long the head of a request may take, the wait for a next request included, once a client is known.
const HEAD_TIME: Duration = Duration::from_secs(90);

/// What the head of a request may hold,
const MOST_HEADERS: usize = 64;
/// and what is read or written of a connection at once, in bytes; the head must fit.
const BUFFER: usize = 64 * 1024;

/// How long connections have, at the end, to take the last answers.
const GRACE: Duration = Duration::from_millis(100);

/// How long a client may take nothing of what there is for it, while others need the budget.
const STALL: Duration = Duration::from_secs(10);

/// How often unused sessions are looked for.
const TIDY: Duration = Duration::from_secs(60);

/// The answer where all connections are in use.
const ALL_IN_USE: &str = "HTTP/1.1 503 All connections are in use\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";

/// The pause after a connection could not be taken: the process may have too many files open.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes connections until the run is to end; then all streams end.
pub(super) async fn accept(listener: TcpListener, router: Router, shared: Arc<Shared>) {
    let tasks = shared.tasks.clone();
    let taking = async {
        let connections = Arc::new(Connections::default());
        for number in 0.. {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let Some(connection) = connections.admit(number, peer.ip()) else {
                        tracing::debug!(%peer, "all connections are in use");
                        // Where it cannot be said at once, the end of the connection says it.
                        let _ = stream.try_write(ALL_IN_USE.as_bytes());
                        continue;
                    };
                    // An answer must not wait for the acknowledgement of the one before. Without it, all is slower and nothing
                    // is wrong.
                    let _ = stream.set_nodelay(true);
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
    // A client that does not take its answers in time has lost interest.
    let _ = tokio::time::timeout(GRACE, connection).await;
}

/// The same answer; the request goes on until its body is gone.
fn held(answer: Response<Body>, ongoing: Ongoing) -> Response<Body> {
    if answer.extensions().get::<LetIn>().is_some() {
        ongoing.let_in();
    }
    answer.map(|body| {
        Body::new(body.map_err(move |error| {
            // Held as long as this is.
            let _ = &ongoing;
            error
        }))
    })
}
