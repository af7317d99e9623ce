//! The loop that takes connections, and the life of each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Shared;
use super::stall::Stalling;
use crate::shutdown::Tasks;

/// Connections at once; more wait to be taken.
const MOST_CONNECTIONS: usize = 512;

/// How long the head of a request may take, the wait for a next request included.
const HEAD_TIME: Duration = Duration::from_secs(90);

/// What the head of a request may hold,
const MOST_HEADERS: usize = 64;
/// and what is read or written of a connection at once, in bytes; the head must fit.
const BUFFER: usize = 64 * 1024;

/// How long connections have, at the end, to take the last answers.
const GRACE: Duration = Duration::from_millis(100);

/// How long a client may take nothing of what there is for it, while others need the room.
const STALL: Duration = Duration::from_secs(10);

/// How often unused sessions are looked for.
const TIDY: Duration = Duration::from_secs(60);

/// The pause after a connection could not be taken: the process may have too many files open.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes connections until the run is to end; then all streams end.
pub(super) async fn accept(listener: TcpListener, router: Router, shared: Arc<Shared>) {
    let tasks = shared.tasks.clone();
    let taking = async {
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            let place = places
                .clone()
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            match listener.accept().await {
                Ok((stream, _)) => {
                    // An answer must not wait for the acknowledgement of the one before. Without it, all is slower and nothing
                    // is wrong.
                    let _ = stream.set_nodelay(true);
                    let stream = Stalling::new(stream, shared.outgoing.clone(), STALL);
                    tasks.spawn(serve(stream, router.clone(), tasks.clone(), place));
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
    stream: Stalling<TcpStream>,
    router: Router,
    tasks: Tasks,
    _place: OwnedSemaphorePermit,
) {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(MOST_HEADERS)
        .max_buf_size(BUFFER);
    let connection =
        builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        outcome = connection.as_mut() => {
            if let Err(error) = outcome {
                tracing::debug!(%error, "a client's connection broke off");
            }
            return;
        }
        () = tasks.stopped() => {}
    }
    connection.as_mut().graceful_shutdown();
    // A client that does not take its answers in time has lost interest.
    let _ = tokio::time::timeout(GRACE, connection).await;
}
