//! The window: pages in the user's browser over the control interface and the commands.
//!
//! It serves the files of `web/dist` and a few endpoints (`doors`) on a loopback address. It has no view and no
//! action of its own: its [`Host`] answers the methods of the control interface and sends the events, and each
//! action is a command of the program (`actions`), which runs with the variables and the directory of the process
//! that opened the window.
//!
//! A link works once and sets a cookie. Browsers send a cookie to all ports of a host, so the cookie is bound to a
//! random path: a server of another user on this machine never gets it.

mod access;
mod actions;
mod assets;
mod commands;
mod decide;
mod doors;
mod gateway;
mod peer;
mod rights;
pub(crate) mod servers;

#[cfg(test)]
pub(crate) use actions::samples;
pub(crate) use decide::decide;
pub(crate) use gateway::Gateway;
#[cfg(test)]
pub(crate) use rights::METHODS;
pub(crate) use rights::Offered;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use futures_util::future::BoxFuture;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::events::Events;
use crate::secret::{Secret, is_same_secret, random_token};
use crate::shutdown::Tasks;

/// The version of the control interface. Raise it with each change that breaks clients. New members and methods do not.
pub(crate) const API: u32 = 1;

/// How long a link can be used.
const LINK: Duration = Duration::from_secs(60);

/// How long a session of the window lasts.
const SESSION: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum numbers of links and of sessions. A new one replaces the oldest.
const MOST: usize = 32;

/// Maximum number of connections. Others wait.
const MOST_CONNECTIONS: usize = 64;

/// Time limit for the head of a request, also of the next one on a connection.
const HEAD: Duration = Duration::from_secs(30);

/// The size of a connection's buffers, in bytes. The head of a request must fit into one.
const BUFFER: usize = 64 * 1024;

/// The pause after a connection could not be accepted: the process may have too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The process that the window shows.
pub(crate) trait Host: Send + Sync {
    /// Answers a method of the control interface for the window that `process` opened. The result is JSON.
    ///
    /// # Errors
    /// The code and message of the refusal.
    fn answer(
        &self,
        process: u32,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<String, (i32, String)>;

    /// The source of events.
    fn events(&self) -> Arc<Events>;

    /// Approves or rejects differences of a server. The command asks the person at a terminal; the window is the terminal here.
    fn decide<'a>(
        &'a self,
        opening: &'a Opening,
        decision: &'a Decision,
    ) -> BoxFuture<'a, Result<Value, String>>;

    /// Records an action that changes something.
    fn record(&self, process: u32, action: &str, server: Option<&str>);

    /// Keeps the process alive until the value is dropped.
    fn stay(&self) -> Box<dyn Send>;
}

/// The process that opens the window: its variables and its directory are those of the window's commands. It has no `Debug`, because
/// values of variables may be secrets.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Opening {
    /// The id of the process.
    pub(crate) process: u32,
    /// Its working directory.
    pub(crate) directory: PathBuf,
    /// The environment of the process.
    pub(crate) variables: BTreeMap<String, String>,
    /// The options that each command begins with, such as `--config`.
    pub(crate) options: Vec<String>,
}

/// The link to the window.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WindowLink {
    /// The link, which works once.
    pub(crate) url: String,
    /// How long it can be used, in seconds.
    pub(crate) seconds: u64,
}

/// A person's decision about the differences of a server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) is_approval: bool,
    pub(crate) server: String,
    /// The digest of the differences that the person saw.
    pub(crate) digest: String,
    /// Only these tools, prompts and resources; all if there is none.
    pub(crate) tools: Vec<String>,
}

/// The window of a process.
pub(crate) struct Window {
    host: Weak<dyn Host>,
    tasks: Tasks,
    ended: CancellationToken,
    /// The first part of the path of everything but links.
    path: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` until the window is opened for the first time.
    address: Option<SocketAddr>,
    links: Vec<Link>,
    sessions: Vec<Arc<Session>>,
}

struct Link {
    key: Secret<String>,
    until: Instant,
    opening: Arc<Opening>,
}

/// A browser that has used a link.
struct Session {
    cookie: Secret<String>,
    until: Instant,
    opening: Arc<Opening>,
    ended: CancellationToken,
}

impl Window {
    /// The window of `host`. It listens once it is opened.
    pub(crate) fn new(host: Weak<dyn Host>, tasks: Tasks) -> Arc<Self> {
        Arc::new(Self {
            host,
            tasks,
            ended: CancellationToken::new(),
            path: random_token(),
            state: Mutex::default(),
        })
    }

    /// Makes a link for the process that opens the window.
    ///
    /// # Errors
    /// When no loopback address can be bound.
    pub(crate) fn open(self: &Arc<Self>, opening: Opening) -> io::Result<WindowLink> {
        let mut state = self.state.lock();
        let address = match state.address {
            Some(address) => address,
            None => *state.address.insert(self.listen()?),
        };
        let key = random_token();
        let now = Instant::now();
        state.links.retain(|link| link.until > now);
        keep_few(&mut state.links);
        state.links.push(Link {
            key: key.clone().into(),
            until: now + LINK,
            opening: Arc::new(opening),
        });
        Ok(WindowLink {
            url: format!("http://{address}/enter?key={key}"),
            seconds: LINK.as_secs(),
        })
    }

    /// Ends all sessions and links. Returns the number of sessions.
    pub(crate) fn close(&self) -> usize {
        let mut state = self.state.lock();
        state.links.clear();
        let now = Instant::now();
        let sessions = std::mem::take(&mut state.sessions);
        sessions.iter().for_each(|session| session.ended.cancel());
        sessions.iter().filter(|one| one.until > now).count()
    }

    /// The number of open sessions.
    pub(crate) fn count(&self) -> usize {
        let now = Instant::now();
        let state = self.state.lock();
        state.sessions.iter().filter(|one| one.until > now).count()
    }

    /// Ends all connections, and does not accept any more.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    /// Uses a link. The text is the cookie of the new session; `None` if there is no such link, or not any more.
    fn enter(&self, key: &str) -> Option<String> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let at = state
            .links
            .iter()
            .position(|link| is_same_secret(link.key.expose(), key))?;
        let link = state.links.remove(at);
        if link.until <= now {
            return None;
        }
        let cookie = random_token();
        state.sessions.retain(|session| session.until > now);
        keep_few(&mut state.sessions);
        state.sessions.push(Arc::new(Session {
            cookie: cookie.clone().into(),
            until: now + SESSION,
            opening: link.opening,
            ended: self.ended.child_token(),
        }));
        Some(cookie)
    }

    /// The session of a cookie.
    fn session(&self, cookie: &str) -> Option<Arc<Session>> {
        let now = Instant::now();
        let state = self.state.lock();
        let mut sessions = state.sessions.iter().filter(|session| session.until > now);
        let session = sessions.find(|one| is_same_secret(one.cookie.expose(), cookie));
        session.cloned()
    }

    /// Host and port, as browsers name them.
    fn authority(&self) -> String {
        let address = self.state.lock().address;
        address.map_or_else(String::new, |address| address.to_string())
    }

    fn listen(self: &Arc<Self>) -> io::Result<SocketAddr> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let ended = self.ended.clone();
        let accepting = accept(self.clone(), listener, self.router());
        self.tasks.spawn(ended.run_until_cancelled_owned(accepting));
        Ok(address)
    }

    fn router(self: &Arc<Self>) -> Router {
        let path = &self.path;
        let doors = Router::new()
            .route("/actions", get(doors::actions))
            .route("/control", post(doors::control))
            .route("/command", post(doors::command))
            .route("/events", get(doors::events))
            .layer(from_fn_with_state(self.clone(), access::check_session));
        Router::new()
            .route("/enter", get(doors::enter))
            .nest(&format!("/{path}/api"), doors)
            .route(&format!("/{path}/"), get(doors::index))
            .route(&format!("/{path}/{{*file}}"), get(doors::file))
            .fallback(doors::nothing_here)
            .layer(from_fn_with_state(self.clone(), access::check_host))
            .with_state(self.clone())
    }
}

impl Session {
    /// Waits for the end of the session.
    async fn over(&self) {
        tokio::select! {
            () = self.ended.cancelled() => {}
            () = tokio::time::sleep_until(self.until.into()) => {}
        }
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").finish_non_exhaustive()
    }
}

/// Makes place for another one.
fn keep_few<T>(all: &mut Vec<T>) {
    if all.len() >= MOST {
        all.remove(0);
    }
}

async fn accept(window: Arc<Window>, listener: TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    while let Ok(place) = places.clone().acquire_owned().await {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection of the window could not be taken");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if let Ok(own) = stream.local_addr()
            && !peer::is_own_user(peer, own)
        {
            tracing::warn!("a process of another user tried to open the window");
            continue;
        }
        // If this fails, responses are only slower.
        let _ = stream.set_nodelay(true);
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(BUFFER);
        let service = TowerToHyperService::new(router.clone());
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let ended = window.ended.clone();
        window.tasks.spawn(async move {
            if let Some(Err(error)) = ended.run_until_cancelled(connection).await {
                tracing::debug!(%error, "a connection of the window broke off");
            }
            drop(place);
        });
    }
}
