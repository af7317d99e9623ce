//! HTTP clients: Streamable HTTP of both eras on `/mcp`, the older HTTP+SSE on `/sse`.
//!
//! A client with a handshake gets a session, kept between its requests under a random id. A modern request is a
//! session of its own: its fields describe the client completely, and it ends with its connection.
//!
//! All clients share one byte budget for the messages they send, and one for the messages that wait for them. A
//! request over the first budget is refused. Over the second, a response is dropped, and a client that reads nothing
//! loses its connection.

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
mod options;
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
use axum::extract::{Path, Request, State};
use axum::http::Method;
use axum::middleware;
use axum::response::Response;
use axum::routing::{any, get};
use tokio::net::TcpListener;

pub(crate) use access::Origin;
#[cfg(target_os = "linux")]
pub(crate) use options::address;
pub(crate) use options::{Arguments, Options, OptionsError, of_variable};

use crate::config::ListenAddress;
use crate::mcp::ByteBudget;
use crate::proxy::Proxies;
use crate::shutdown::Tasks;
use access::Access;
use sessions::Sessions;
use shared::Shared;

/// The budget for large messages, in bytes: one for incoming messages in progress, one for outgoing ones.
const LARGE: usize = 128 * 1024 * 1024;
/// The budget for short messages, in bytes, likewise.
const SHORT: usize = 32 * 1024 * 1024;

/// The budget for events kept for resumption, in bytes, for large and for short ones each. It is part of the outgoing
/// budget, so that live messages always have most of that.
const KEPT: usize = 8 * 1024 * 1024;

/// The path of the endpoint.
const ENDPOINT: &str = "/mcp";
/// The path of the endpoint for one profile.
const PROFILED: &str = "/mcp/p/{profile}";

/// The reason why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Without a token, every program that reaches the address could call every tool.
    #[error(
        "`{address}` can be reached from other machines, so clients must show a token: give one with `--token-file` or \
         `MCPZIP_TOKEN`, or listen on 127.0.0.1"
    )]
    Unprotected {
        /// The address.
        address: ListenAddress,
    },
    /// The host cannot be resolved.
    #[error("the host of `{address}` cannot be resolved")]
    Resolve {
        /// The address.
        address: ListenAddress,
        /// The system's error.
        source: io::Error,
    },
    /// Signals cannot be handled, so the server could not be stopped.
    #[error("cannot listen to signals")]
    Signals {
        /// The system's error.
        source: io::Error,
    },
    /// The address cannot be bound.
    #[error("cannot listen on `{address}`")]
    Bind {
        /// The address.
        address: ListenAddress,
        /// The system's error.
        source: io::Error,
    },
}

/// A server that is bound to its address. Clients wait until [`Server::start`].
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    access: Access,
}

impl Server {
    /// Binds the address.
    ///
    /// # Errors
    /// When the address is not available, or would be open to other machines without a token.
    pub(crate) async fn bind(options: Options) -> Result<Self, Error> {
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
        // The rules are those of the most open resolved address, because any of them may be bound.
        let is_loopback = resolved.iter().all(|address| address.ip().is_loopback());
        if !is_loopback && token.is_none() {
            return Err(Error::Unprotected { address });
        }
        let failed = |source| Error::Bind {
            address: address.clone(),
            source,
        };
        let listener = TcpListener::bind(&resolved[..]).await.map_err(failed)?;
        Ok(Self {
            address: listener.local_addr().map_err(failed)?,
            listener,
            access: Access {
                is_loopback,
                token,
                origins,
            },
        })
    }

    /// The URL for clients.
    #[must_use]
    pub(crate) fn url(&self) -> String {
        url(self.address)
    }

    /// The address that it is bound to.
    #[must_use]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves clients with `proxies` until their run ends.
    pub(crate) fn start(self, proxies: Arc<Proxies>, tasks: &Tasks) {
        let outgoing = ByteBudget::new(LARGE, SHORT);
        let kept = ByteBudget::new(KEPT, KEPT);
        let sessions = Arc::new(Sessions::new(outgoing.clone(), kept, tasks.clone()));
        let shared = Arc::new(Shared {
            proxies,
            tasks: tasks.clone(),
            access: Arc::new(self.access),
            sessions,
            incoming: ByteBudget::new(LARGE, SHORT),
            outgoing,
            was_ready: AtomicBool::new(false),
        });
        let router = router(shared.clone());
        tasks.spawn(accepting::accept(self.listener, router, shared));
    }
}

/// The URL for clients of a server at this address.
pub(crate) fn url(address: SocketAddr) -> String {
    format!("http://{address}{ENDPOINT}")
}

async fn resolve(address: &ListenAddress) -> io::Result<Vec<SocketAddr>> {
    let found = tokio::net::lookup_host((address.host.as_str(), address.port)).await?;
    Ok(found.collect())
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route(ENDPOINT, any(endpoint))
        .route(PROFILED, any(profiled))
        .route(sse::STREAM, any(sse::stream))
        // The path of avelino/mcp.
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

/// The endpoint of Streamable HTTP.
async fn endpoint(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    serve(&shared, None, request).await
}

/// The endpoint of Streamable HTTP for one profile. A profile that cannot be used is not there.
async fn profiled(
    State(shared): State<Arc<Shared>>,
    Path(profile): Path<String>,
    request: Request,
) -> Response {
    match shared.proxies.has(&profile) {
        true => serve(&shared, Some(&profile), request).await,
        false => refusal::nothing_here(),
    }
}

async fn serve(shared: &Arc<Shared>, profile: Option<&str>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    match parts.method {
        Method::POST => post::post(shared, profile, &parts.headers, body).await,
        Method::GET => listening::get(shared, profile, &parts.headers),
        Method::DELETE => listening::delete(shared, profile, &parts.headers),
        _ => refusal::method_not_allowed("GET, POST, DELETE"),
    }
}
