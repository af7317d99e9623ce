//! Clients over HTTP: Streamable HTTP of both eras on `/mcp`, the older HTTP+SSE on `/sse`.
//!
//! A client with a handshake gets a session, kept between its requests under a random id. A request of the modern era
//! is a session by itself: its fields say all there is to know of its client, and its connection is its life.
//!
//! All clients share one byte budget for the messages they send, and one for those that wait for them: a message over the
//! first is refused, an answer over the second dropped, and a client that reads nothing loses its connection then.

mod accepting;
mod access;
mod answer;
mod body;
mod connections;
mod event;
mod event_log;
mod forms;
mod health;
mod incoming;
mod listening;
mod metrics;
mod modern;
mod post;
mod refusal;
mod request_body;
mod sessions;
mod shared;
mod slow_reader;
mod sse;
mod stream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware;
use axum::response::Response;
use axum::routing::{any, get};
use tokio::net::TcpListener;

pub(crate) use access::Origin;

use crate::config::ListenAddress;
use crate::mcp::ByteBudget;
use crate::proxy::Proxy;
use crate::secret::Secret;
use crate::shutdown::Tasks;
use access::Access;
use sessions::Sessions;
use shared::Shared;

/// What all clients together may have sent that is worked on, and what may wait for them in all: in large messages,
const LARGE: usize = 128 * 1024 * 1024;
/// and in short ones, in bytes.
const SHORT: usize = 32 * 1024 * 1024;

/// What the events may take that are kept for clients that resume, in large ones and in short ones each, in bytes. A part of
/// the budgets above, so that live messages always have most of those.
const KEPT: usize = 8 * 1024 * 1024;

/// Where clients find us.
const ENDPOINT: &str = "/mcp";

/// What the HTTP server is to do.
#[derive(Debug)]
pub(crate) struct Options {
    /// Where it listens; port 0 is any free one.
    pub address: ListenAddress,
    /// What every client has to send; required on any address but this machine's own.
    pub token: Option<Secret<String>>,
    /// Pages of these origins may speak to it, beside those of its own host.
    pub origins: Vec<Origin>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Everybody in reach could call every tool.
    #[error(
        "`{address}` can be reached from other machines, so clients must show a token: give one with `--token-file` or \
         `MCPZIP_TOKEN`, or listen on 127.0.0.1"
    )]
    Unprotected {
        /// The address.
        address: ListenAddress,
    },
    /// The host has no address.
    #[error("the host of `{address}` cannot be resolved")]
    Resolve {
        /// The address.
        address: ListenAddress,
        /// Why.
        source: io::Error,
    },
    /// Nobody could end us.
    #[error("cannot listen to signals")]
    Signals {
        /// Why.
        source: io::Error,
    },
    /// The system says no.
    #[error("cannot listen on `{address}`")]
    Bind {
        /// The address.
        address: ListenAddress,
        /// Why.
        source: io::Error,
    },
}

/// A server that has its address.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Server {
    /// Takes the address; clients wait until [`Server::start`].
    ///
    /// # Errors
    /// When the address is not to be had, or would be open to everybody.
    pub(crate) async fn bind(
        options: Options,
        proxy: Arc<Proxy>,
        tasks: Tasks,
    ) -> Result<Self, Error> {
        let Options {
            address,
            token,
            origins,
        } = options;
        let resolved = resolve(&address).await;
        let resolved = resolved.map_err(|source| Error::Resolve {
            address: address.clone(),
            source,
        })?;
        // Whichever of them is taken, the rules are those of the most open one.
        let is_loopback = resolved.iter().all(|address| address.ip().is_loopback());
        if !is_loopback && token.is_none() {
            return Err(Error::Unprotected { address });
        }
        let failed = |source| Error::Bind {
            address: address.clone(),
            source,
        };
        let listener = TcpListener::bind(&resolved[..]).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let outgoing = ByteBudget::new(LARGE, SHORT);
        let access = Arc::new(Access {
            is_loopback,
            token,
            origins,
        });
        let kept = ByteBudget::new(KEPT, KEPT);
        let sessions = Arc::new(Sessions::new(outgoing.clone(), kept, tasks.clone()));
        let shared = Shared {
            proxy,
            tasks,
            access,
            sessions,
            incoming: ByteBudget::new(LARGE, SHORT),
            outgoing,
            was_ready: AtomicBool::new(false),
        };
        Ok(Self {
            listener,
            address,
            shared: Arc::new(shared),
        })
    }

    /// The URL that clients are to be given.
    #[must_use]
    pub(crate) fn url(&self) -> String {
        format!("http://{}{ENDPOINT}", self.address)
    }

    /// Serves until the run is to end.
    pub(crate) fn start(self) {
        let router = router(self.shared.clone());
        let tasks = self.shared.tasks.clone();
        tasks.spawn(accepting::accept(self.listener, router, self.shared));
    }
}

async fn resolve(address: &ListenAddress) -> io::Result<Vec<SocketAddr>> {
    let found = tokio::net::lookup_host((address.host.as_str(), address.port)).await?;
    Ok(found.collect())
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route(ENDPOINT, any(endpoint))
        .route(sse::STREAM, any(sse::stream))
        // The name of it where avelino/mcp served.
        .route("/mcp/sse", any(sse::stream))
        .route("/health", get(health::counts))
        .route(sse::MESSAGES, any(sse::message))
        .route("/metrics", any(metrics::metrics))
        .layer(middleware::from_fn_with_state(
            shared.access.clone(),
            access::check,
        ))
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .fallback(async || refusal::nothing_here())
        .with_state(shared)
}

/// Streamable HTTP.
async fn endpoint(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    match parts.method {
        Method::POST => post::post(&shared, &parts.headers, body).await,
        Method::GET => listening::get(&shared, &parts.headers),
        Method::DELETE => listening::delete(&shared, &parts.headers),
        _ => refusal::method_not_allowed("GET, POST, DELETE"),
    }
}
