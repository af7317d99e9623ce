//! Serves HTTP clients in addition to the sessions, with the same servers, if the configuration has an address (`http.address`).
//!
//! HTTP clients bring no variables. They get those of the first session of the daemon, or, with `mcpzip daemon run`, those
//! of the daemon, and the home directory as their directory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::{App, Handle, Shared};
use crate::config::{
    self, Config, ConfigWatch, Environment, Paths, SessionEnv, SurfaceRequest, env,
};
use crate::downstream::http::{self, Options, Server};
use crate::events::{Event, Events};
use crate::executable;
use crate::keyring::Store;
use crate::proxy::ProcessMetrics;
use crate::shutdown::Tasks;
use crate::text::chain;

/// Interval between two checks of the configuration, and between two attempts to listen on a taken address.
const LOOK: Duration = Duration::from_secs(1);

/// Interval between two readings of a configuration whose `http` cannot be used.
const RETRY: Duration = Duration::from_secs(5);

/// How the daemon serves HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct HttpState {
    /// The configured address.
    pub(super) address: Option<String>,
    /// The URL for clients, while the daemon listens.
    pub(super) url: Option<String>,
    /// Why it does not listen.
    pub(super) reason: Option<String>,
    /// Whether clients need a token.
    pub(super) has_token: bool,
    /// The process whose variables the clients' servers get.
    pub(super) variables_of: u32,
}

/// The HTTP side of a daemon.
#[derive(Debug)]
pub(super) struct Http {
    paths: Paths,
    shared: Shared,
    events: Arc<Events>,
    session: watch::Sender<Option<Origin>>,
    /// The soft limit of open files for servers.
    open_files: Option<u64>,
    reload: Notify,
    state: Mutex<Option<HttpState>>,
    handle: Mutex<Option<Handle>>,
    is_configured: AtomicBool,
    metrics: OnceLock<Weak<dyn ProcessMetrics>>,
    tasks: Tasks,
}

/// The variables for HTTP clients, and the process that they are from.
#[derive(Debug, Clone)]
struct Origin {
    session: SessionEnv,
    process: u32,
}

/// The configured HTTP server.
#[derive(Debug, Default)]
enum Wanted {
    /// There is no address.
    #[default]
    Nothing,
    /// A setting cannot be used.
    Faulty(String),
    /// Serve with these options.
    Options(Options, SurfaceRequest),
}

/// Why HTTP clients cannot be served.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Listen(#[from] http::Error),
    #[error(transparent)]
    Config(#[from] config::Error),
}

/// An HTTP server that listens.
struct Running {
    options: Options,
    surface: SurfaceRequest,
    ended: CancellationToken,
    task: JoinHandle<()>,
}

impl Http {
    pub(super) fn new(
        paths: Paths,
        shared: Shared,
        events: Arc<Events>,
        open_files: Option<u64>,
    ) -> Self {
        Self {
            open_files,
            paths,
            shared,
            events,
            session: watch::Sender::new(None),
            reload: Notify::new(),
            state: Mutex::default(),
            handle: Mutex::default(),
            is_configured: AtomicBool::new(false),
            metrics: OnceLock::new(),
            tasks: Tasks::new(),
        }
    }

    /// Offers the variables of a process. Only the first offer is used.
    pub(super) fn offer(&self, process: u32, environment: impl FnOnce() -> Environment) {
        self.session.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                *known = Some(Origin {
                    session: session(&self.paths, &environment(), self.open_files),
                    process,
                });
            }
            is_first
        });
    }

    /// The variables for HTTP clients and their process, if HTTP clients are served: the next daemon needs them.
    pub(super) fn variables(&self) -> Option<(u32, Environment)> {
        let known = self.session.borrow();
        let known = known.as_ref().filter(|_| self.keeps())?;
        Some((known.process, known.session.environment.clone()))
    }

    /// The state for `status`; `None` if no address is configured.
    pub(super) fn state(&self) -> Option<HttpState> {
        self.state.lock().clone()
    }

    /// The handle of the HTTP clients, while the daemon listens.
    pub(super) fn handle(&self) -> Option<Handle> {
        self.handle.lock().clone()
    }

    /// Reads the configuration and the token file again, soon.
    pub(super) fn reload(&self) {
        self.reload.notify_one();
    }

    /// Whether the daemon has to stay for HTTP clients. A program that was replaced by an update does not stay, because it
    /// would keep the address from the new one.
    pub(super) fn keeps(&self) -> bool {
        self.is_configured.load(Ordering::Relaxed) && executable::path().is_ok()
    }

    /// Starts to follow the configuration, until [`Http::end`]. `metrics` are those of the daemon.
    pub(super) fn start(self: &Arc<Self>, metrics: Weak<dyn ProcessMetrics>) {
        // It is started once.
        let _ = self.metrics.set(metrics);
        let http = self.clone();
        self.tasks.spawn(async move { http.run().await });
    }

    /// Stops the server.
    pub(super) async fn end(&self) {
        self.tasks.finish().await;
    }

    async fn run(&self) {
        let mut offered = self.session.subscribe();
        let offered = async {
            let known = offered.wait_for(Option::is_some).await;
            known.ok().and_then(|known| known.clone())
        };
        let Some(Some(origin)) = self.tasks.stop().run_until_cancelled(offered).await else {
            return;
        };
        let mut file = ConfigWatch::of_missing(self.paths.config_file.clone());
        let keyring = origin.session.environment.keyring().cloned();
        let stamp = || keyring.as_ref().map(|keyring| keyring.stamp());
        let mut known = stamp();
        let mut read = Instant::now();
        let mut is_asked = false;
        let (mut wanted, mut running) = (Wanted::default(), None);
        loop {
            let now = stamp();
            let has_new_secrets = std::mem::replace(&mut known, now.clone()) != now;
            // A secret of `http` that could not be read may be readable by now.
            let is_due = matches!(wanted, Wanted::Faulty(_)) && read.elapsed() >= RETRY;
            if file.changed() || has_new_secrets || is_asked || is_due {
                read = Instant::now();
                wanted = self.read(&origin.session.environment, wanted);
            }
            self.follow(&wanted, &origin, &mut running).await;
            is_asked = tokio::select! {
                () = tokio::time::sleep(LOOK) => false,
                () = self.reload.notified() => true,
                () = self.tasks.stopped() => break,
            };
        }
        self.stop(&mut running).await;
    }

    /// Reads the configuration. One that cannot be read leaves everything as it is.
    fn read(&self, environment: &Environment, before: Wanted) -> Wanted {
        let Ok(config) = Config::load(&self.paths, environment) else {
            // The sessions report the error.
            return before;
        };
        wanted(&config, environment)
    }

    /// Starts, stops or changes the server, so that it is as `wanted`.
    async fn follow(&self, wanted: &Wanted, origin: &Origin, running: &mut Option<Running>) {
        let is_configured = !matches!(wanted, Wanted::Nothing);
        self.is_configured.store(is_configured, Ordering::Relaxed);
        if let (Wanted::Options(options, surface), Some(known)) = (wanted, &*running)
            && known.options == *options
            && known.surface == *surface
        {
            return;
        }
        self.stop(running).await;
        let mut state = HttpState {
            address: None,
            url: None,
            reason: None,
            has_token: false,
            variables_of: origin.process,
        };
        match wanted {
            Wanted::Nothing => return *self.state.lock() = None,
            Wanted::Faulty(reason) => state.reason = Some(reason.clone()),
            Wanted::Options(options, surface) => {
                state.address = Some(options.address.to_string());
                state.has_token = !options.is_open();
                match self.serve(options, *surface, origin).await {
                    Ok((url, started)) => {
                        state.url = Some(url);
                        *running = Some(started);
                    }
                    Err(error) => state.reason = Some(chain(&error)),
                }
            }
        }
        self.show(state);
    }

    /// Binds the address and serves clients.
    async fn serve(
        &self,
        options: &Options,
        surface: SurfaceRequest,
        origin: &Origin,
    ) -> Result<(String, Running), Error> {
        let server = Server::bind(options.clone()).await?;
        let session = origin.session.clone();
        let config = Config::load(&self.paths, &session.environment)?;
        let app = App::for_http(config, self.paths.clone(), session, surface, &self.shared);
        let handle = app.handle();
        if let Some(metrics) = self.metrics.get() {
            handle.proxy.metrics.extend(metrics.clone());
        }
        *self.handle.lock() = Some(handle);
        let (url, ended) = (server.url(), CancellationToken::new());
        let running = Running {
            options: options.clone(),
            surface,
            ended: ended.clone(),
            task: self.tasks.spawn(app.serve_http_until(server, ended)),
        };
        Ok((url, running))
    }

    async fn stop(&self, running: &mut Option<Running>) {
        let Some(running) = running.take() else {
            return;
        };
        *self.handle.lock() = None;
        let before = self.state.lock().take();
        running.ended.cancel();
        if let Err(error) = running.task.await {
            tracing::error!(%error, "the HTTP server ended with a panic");
        }
        if let Some(url) = before.and_then(|state| state.url) {
            tracing::info!(url, "HTTP clients are not served any more");
            self.events.note(|| Event::HttpStopped { url });
        }
    }

    /// Keeps the state for `status`, and reports it if it is new.
    fn show(&self, state: HttpState) {
        let before = self.state.lock().replace(state.clone());
        if before.as_ref() == Some(&state) {
            return;
        }
        if let Some(url) = state.url {
            if state.has_token {
                tracing::info!(url, "HTTP clients are served");
            } else {
                tracing::warn!(
                    url,
                    "HTTP clients are served without a token: every user and every program of this machine can call all tools"
                );
            }
            self.events.note(|| Event::HttpListening { url });
        } else if let Some(reason) = state.reason {
            tracing::warn!(reason, "HTTP clients are not served");
            let address = state.address;
            self.events.note(|| Event::HttpFailed { address, reason });
        }
    }
}

/// The session of HTTP clients: these variables without those of a project, and the home directory.
fn session(paths: &Paths, environment: &Environment, open_files: Option<u64>) -> SessionEnv {
    let own = environment.iter();
    let environment: Environment = own
        .filter(|(name, _)| *name != env::CLAUDE_PROJECT_DIR.name)
        .collect();
    let environment = Store::around(paths, environment);
    SessionEnv {
        directory: Some(environment.home().unwrap_or_else(|| "/".into())),
        environment,
        open_files,
    }
}

fn wanted(config: &Config, environment: &Environment) -> Wanted {
    let configured = match &config.http {
        Ok(configured) => configured,
        Err(error) => return Wanted::Faulty(format!("`http` cannot be used: {error}")),
    };
    match http::address(environment, configured) {
        Ok(None) => return Wanted::Nothing,
        Ok(Some(_)) => {}
        Err(error) => return Wanted::Faulty(error.to_string()),
    }
    let surface = SurfaceRequest {
        http: configured.surface,
        ..SurfaceRequest::default()
    };
    let arguments = http::Arguments::default();
    let open_file = |path: &std::path::Path| {
        tracing::warn!(path = %path.display(), "other users can read the token file; `chmod 600` prevents that");
    };
    match Options::new(arguments, environment, &config.http, open_file) {
        Ok(options) => Wanted::Options(options, surface),
        Err(error) => Wanted::Faulty(error.to_string()),
    }
}
