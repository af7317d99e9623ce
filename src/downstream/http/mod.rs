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
mod admission;
mod answer;
mod authorization;
mod body;
mod connections;
mod continuing;
mod draining;
mod event;
mod event_log;
mod following;
mod forms;
mod health;
mod identities;
mod incoming;
mod keeping;
mod letters;
mod limiting;
mod listening;
mod logins;
mod metrics;
mod modern;
mod noticing;
mod options;
mod page;
mod passing;
mod post;
mod refusal;
mod request_body;
mod resource_metadata;
mod resuming;
mod sessions;
mod shared;
mod slow_reader;
mod sse;
mod staying;
mod stream;
#[cfg(feature = "cli")]
mod tls;
#[cfg(not(feature = "cli"))]
#[path = "no_tls.rs"]
mod tls;
mod window;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::Method;
use axum::middleware;
use axum::response::Response;
use axum::routing::{any, get};
use reqwest::Url;
use tokio::net::TcpListener;

pub(crate) use access::Origin;
pub(crate) use options::address;
pub(crate) use options::{Arguments, Options, OptionsError, of_variable, token};
pub(crate) use window::{Pages, Visit};

use crate::config::{Entitlement, EntryError, Environment, HttpAuth, HttpOptions, ListenAddress};
use crate::identity::{Authenticator, Pass};
use crate::mcp::ByteBudget;
use crate::proxy::Proxies;
use crate::replicas::Replicas;
use crate::shutdown::Tasks;
use crate::store::{Records, State as StateOfRun};
use crate::upstream::person::{AssertionKey, Front};
use access::Access;
use admission::Admission;
use draining::{Draining, Running};
use logins::Logins;
use sessions::Sessions;
use shared::Shared;
use tls::{Tls, TlsError};

/// The path of the window, with a slash behind.
pub(crate) const WINDOW: &str = "/ui/";

/// The budget for large messages, in bytes: one for incoming messages in progress, one for outgoing ones.
const LARGE: usize = 128 * 1024 * 1024;
/// The budget for short messages, in bytes, likewise.
const SHORT: usize = 32 * 1024 * 1024;

/// The budget for events kept for resumption, in bytes, for large and for short ones each. It is part of the outgoing
/// budget, so that live messages always have most of that.
const KEPT: usize = 8 * 1024 * 1024;

/// How long the end waits for calls in progress where other replicas serve meanwhile, unless the configuration says otherwise.
const DRAIN: Duration = Duration::from_secs(30);

/// How long the end is announced there before it begins, so that a balancer notices.
const NOTICE: Duration = Duration::from_secs(3);

/// The path of the endpoint.
const ENDPOINT: &str = "/mcp";
/// The path of the keys that check what the gateway says about people.
const KEYS: &str = "/.well-known/mcpzip-keys.json";

/// The path of the endpoint for one profile.
const PROFILED: &str = "/mcp/p/{profile}";

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Without a token, every program that reaches the address could call every tool.
    #[error(
        "`{address}` can be reached from other machines, so clients must show a token: give one with `--token-file` or \
         `MCPZIP_TOKEN`, or one to each person (`http.auth.tokens`), or listen on 127.0.0.1"
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
    /// Other replicas would not find this one.
    #[error(
        "with a `store`, `http.peer` must be the URL by which other replicas reach this one, because it listens on all addresses"
    )]
    Peer,
    /// The store cannot be used.
    #[error("the store cannot be used: {0}")]
    Store(String),
    /// Signals cannot be handled, so the server could not be stopped.
    #[error("cannot listen to signals")]
    Signals {
        /// The system's error.
        source: io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
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
    auth: Option<HttpAuth>,
    tls: Option<Arc<Tls>>,
    drain: Option<Duration>,
    public_url: Option<String>,
    peer: Option<String>,
    has_window: bool,
}

/// Checks what a server needs apart from its address: the settings, and the files that they name.
///
/// # Errors
/// When a server could not start.
pub(crate) fn check(
    environment: &Environment,
    configured: &Result<HttpOptions, EntryError>,
) -> Result<(), anyhow::Error> {
    let mut options = Options::new(Arguments::default(), environment, configured, |_| ())?;
    let tls = options.tls.take();
    tls.map(|tls| Tls::new(*tls)).transpose()?;
    Ok(())
}

impl Server {
    /// Binds the address.
    ///
    /// # Errors
    /// When the address is not available, or would be open to other machines without a token.
    pub(crate) async fn bind(mut options: Options) -> Result<Self, Error> {
        let (drain, has_window) = (options.drain, options.ui);
        let (public_url, peer) = (options.public_url.take(), options.peer.take());
        let tls = options.tls.take().map(|tls| Tls::new(*tls)).transpose()?;
        let address = options.address.clone();
        let (mut access, auth, resolved) = access_of(options, false).await?;
        access.is_tls = tls.is_some();
        let failed = |source| Error::Bind {
            address: address.clone(),
            source,
        };
        let listener = TcpListener::bind(&resolved[..]).await.map_err(failed)?;
        Ok(Self {
            address: listener.local_addr().map_err(failed)?,
            listener,
            access,
            auth,
            tls: tls.map(Arc::new),
            drain,
            public_url,
            peer,
            has_window,
        })
    }

    /// The URL for clients.
    #[must_use]
    pub(crate) fn url(&self) -> String {
        match self.tls {
            None => url(self.address),
            Some(_) => format!("https://{}{ENDPOINT}", self.address),
        }
    }

    /// The URL by which other replicas reach it.
    ///
    /// # Errors
    /// When it is not configured, and the server listens on all addresses.
    pub(crate) fn peer_url(&self) -> Result<String, Error> {
        let url = self.url();
        match &self.peer {
            Some(peer) => Ok(peer.clone()),
            None if self.address.ip().is_unspecified() => Err(Error::Peer),
            None => Ok(url.strip_suffix(ENDPOINT).unwrap_or(&url).to_owned()),
        }
    }

    /// The address that it is bound to.
    #[must_use]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL by which people and other servers reach it, as far as that is known.
    fn public_url(&self, authenticator: &Authenticator) -> Option<String> {
        if let Some(url) = &self.public_url {
            return Some(url.clone());
        }
        if let Some(resource) = authenticator.resource() {
            let url = resource.url.trim_end_matches('/');
            return Some(url.strip_suffix(ENDPOINT).unwrap_or(url).to_owned());
        }
        let url = self.url();
        let is_here = self.address.ip().is_loopback();
        is_here.then(|| url.strip_suffix(ENDPOINT).unwrap_or(&url).to_owned())
    }

    /// Serves clients with `proxies` until their run ends, and `pages` to people if the window is configured.
    pub(crate) fn start(
        mut self,
        proxies: Arc<Proxies>,
        tasks: &Tasks,
        state: &StateOfRun,
        pages: Option<Arc<dyn Pages>>,
        replicas: Option<Arc<Replicas>>,
    ) -> Running {
        let authenticator = self
            .auth
            .take()
            .map(|auth| Arc::new(Authenticator::new(&auth, state, proxies.whole())));
        self.access.authenticator.clone_from(&authenticator);
        if let Some(authenticator) = &authenticator {
            let url = self.public_url(authenticator);
            // Forms of the pages come from there, also if a proxy in front changes `Host`.
            let origin = url.as_deref().and_then(|url| Url::parse(url).ok());
            let origin = origin.and_then(|url| url.origin().ascii_serialization().parse().ok());
            self.access.own_origin.clone_from(&origin);
            self.access.origins.extend(origin);
            let tokens = Arc::downgrade(authenticator);
            let tokens = move |entitlement: &Entitlement| tokens.upgrade()?.token_of(entitlement);
            let front = Arc::new(Front::new(Box::new(tokens), url, AssertionKey::of(state)));
            if state.shared.is_some() {
                // No call must wait for the store.
                let front = front.clone();
                tasks.spawn_blocking(move || {
                    if let Err(error) = front.key.public() {
                        tracing::warn!(%error, "the key for assertions cannot be read now");
                    }
                });
            }
            proxies.set_front(front);
        }
        if let Some(replicas) = &replicas {
            proxies.join_replicas(replicas.clone(), tasks);
        }
        let (drain, notice) = match &replicas {
            None => (self.drain, Duration::ZERO),
            Some(_) => (self.drain.or(Some(DRAIN)), NOTICE),
        };
        let store = state.shared.clone();
        let shared = shared(self.access, proxies, tasks, store, replicas);
        if shared.replicas.is_some() {
            tasks.spawn(noticing::follow(shared.clone()));
            tasks.spawn(leave_homes(shared.clone(), shared.draining.hold()));
        }
        if let Some(authenticator) = authenticator {
            tasks.spawn(following::follow(authenticator, shared.clone()));
        }
        let pages = pages.filter(|_| self.has_window);
        let router = router(shared.clone(), pages);
        let sessions = shared.sessions.clone();
        let answered = Box::pin(async move { sessions.answered().await });
        let running = shared.draining.running(drain, notice, answered);
        tasks.spawn(accepting::accept(self.listener, self.tls, router, shared));
        running
    }
}

/// Ends the servers that run here for all replicas when the run is about to end, which waits for that.
async fn leave_homes(shared: Arc<Shared>, held: draining::InProgress) {
    let leaving = async {
        shared.draining.begun().await;
        if let Some(homes) = shared.proxies.homes() {
            homes.leave().await;
        }
    };
    tokio::select! {
        () = leaving => {}
        () = shared.tasks.stopped() => {}
    }
    drop(held);
}

/// The endpoints for clients, for another program's server at `options.address`, until the run ends. They take no address.
///
/// # Errors
/// As [`Server::bind`]; with `is_protected`, the other program decides who may call.
pub(crate) async fn mounted(
    options: Options,
    is_protected: bool,
    proxies: Arc<Proxies>,
    tasks: &Tasks,
) -> Result<Router, Error> {
    let (access, _, _) = access_of(options, is_protected).await?;
    let shared = shared(access, proxies, tasks, None, None);
    let tidied = shared.clone();
    tasks.spawn(async move { accepting::tidy(&tidied).await });
    Ok(endpoints(&shared).with_state(shared))
}

/// The rules of access for the address of `options`, and what it resolves to.
async fn access_of(
    options: Options,
    is_protected: bool,
) -> Result<(Access, Option<HttpAuth>, Vec<SocketAddr>), Error> {
    let Options {
        address,
        token,
        origins,
        auth,
        public_url: _,
        peer: _,
        tls: _,
        drain: _,
        ui: _,
    } = options;
    let resolved = match resolve(&address).await {
        Ok(resolved) => resolved,
        Err(source) => return Err(Error::Resolve { address, source }),
    };
    // The rules are those of the most open resolved address, because any of them may be bound.
    let is_loopback = resolved.iter().all(|address| address.ip().is_loopback());
    if !is_loopback && token.is_none() && auth.is_none() && !is_protected {
        return Err(Error::Unprotected { address });
    }
    let access = Access {
        is_loopback,
        token,
        origins,
        is_tls: false,
        own_origin: None,
        authenticator: None,
    };
    Ok((access, auth, resolved))
}

fn shared(
    access: Access,
    proxies: Arc<Proxies>,
    tasks: &Tasks,
    store: Option<Arc<dyn Records>>,
    replicas: Option<Arc<Replicas>>,
) -> Arc<Shared> {
    let outgoing = ByteBudget::new(LARGE, SHORT);
    let kept = ByteBudget::new(KEPT, KEPT);
    let sessions = Arc::new(Sessions::new(outgoing.clone(), kept, tasks.clone()));
    Arc::new(Shared {
        proxies,
        tasks: tasks.clone(),
        access: Arc::new(access),
        sessions,
        incoming: ByteBudget::new(LARGE, SHORT),
        outgoing,
        was_ready: AtomicBool::new(false),
        store,
        draining: Draining::default(),
        logins: Logins::default(),
        replicas,
    })
}

/// The URL for clients of a server at this address.
pub(crate) fn url(address: SocketAddr) -> String {
    format!("http://{address}{ENDPOINT}")
}

async fn resolve(address: &ListenAddress) -> io::Result<Vec<SocketAddr>> {
    let found = tokio::net::lookup_host((address.host.as_str(), address.port)).await?;
    Ok(found.collect())
}

fn router(shared: Arc<Shared>, pages: Option<Arc<dyn Pages>>) -> Router {
    let window = pages.map_or_else(Router::new, |pages| window::routes(&shared, pages));
    let figures = Router::new()
        .route("/health", get(health::counts))
        .route("/metrics", any(metrics::metrics));
    let pages = logins::routes::routes(&shared).merge(window);
    let letters = letters::routes(&shared, pages.clone());
    let staying = middleware::from_fn_with_state(shared.clone(), staying::stay);
    endpoints(&shared)
        .merge(letters)
        .merge(checked(figures, &shared))
        .merge(authorization::routes(&shared))
        .merge(pages.layer(staying))
        .route(KEYS, get(resource_metadata::keys))
        .route(identities::METADATA_PATH, get(resource_metadata::metadata))
        .route(resource_metadata::PATHS, get(resource_metadata::metadata))
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .fallback(async || refusal::nothing_here())
        .with_state(shared)
}

/// The endpoints for clients.
fn endpoints(shared: &Arc<Shared>) -> Router<Arc<Shared>> {
    let endpoints = Router::new()
        .route(ENDPOINT, any(endpoint))
        .route(PROFILED, any(profiled))
        .route(sse::STREAM, any(sse::stream))
        // The path of avelino/mcp.
        .route("/mcp/sse", any(sse::stream))
        .route(sse::MESSAGES, any(sse::message))
        .layer(middleware::from_fn_with_state(
            shared.clone(),
            limiting::check,
        ))
        .layer(middleware::from_fn_with_state(
            shared.draining.clone(),
            draining::count,
        ));
    checked(endpoints, shared)
}

/// The routes for requests that the rules of access permit.
fn checked(routes: Router<Arc<Shared>>, shared: &Shared) -> Router<Arc<Shared>> {
    routes.layer(middleware::from_fn_with_state(
        shared.access.clone(),
        access::check,
    ))
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
    let pass = admission::pass(request.extensions());
    let entitlement = pass.as_deref().map(Pass::entitlement);
    match shared.proxies.has(&profile, entitlement) {
        true => serve(&shared, Some(profile), request).await,
        false => refusal::nothing_here(),
    }
}

async fn serve(shared: &Arc<Shared>, profile: Option<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let pass = admission::pass(&parts.extensions);
    let arrival = passing::arrival(shared, &parts);
    let admission = Admission {
        profile,
        pass,
        arrival,
    };
    match parts.method {
        Method::POST => post::post(shared, &admission, &parts.headers, body).await,
        Method::GET => listening::get(shared, &admission, &parts.headers).await,
        Method::DELETE => listening::delete(shared, &admission, &parts.headers).await,
        _ => refusal::method_not_allowed("GET, POST, DELETE"),
    }
}
