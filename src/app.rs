//! One run of the program: builds its parts from a configuration, serves, and ends everything.

mod caching;
mod store;

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::approvals::Approvals;
use crate::catalog::PinHome;
use crate::config::{
    self, Config, ConfigWatch, EntryError, Environment, Keyring, Paths, RemoteServer, SessionEnv,
    Stamp, SurfaceRequest, secrets_file,
};
use crate::downstream::{self, http};
use crate::events::{self, Events};
use crate::pause::Pause;
use crate::proxy::{
    Directories, ProfileChoice, Progress, Proxies, Proxy, Request, SURFACES, SharedFigures,
    SharedLists, Start, counted,
};
use crate::replicas::{self, Replicas};
use crate::results::Owner;
pub(crate) use crate::results::SessionId;
use crate::search::habits;
use crate::shutdown::{self, Tasks};
use crate::statistics;
use crate::telemetry::trace::Tracer;
use crate::upstream::SharedServers;
use crate::upstream::oauth::{LoginStorage, SharedLogins};
use crate::{telemetry, upstream};
pub(crate) use caching::take_caches;
use futures_util::future::join_all;
use tokio::sync::Notify;

/// Directory of the statistics, below the state directory.
pub(crate) const STATISTICS: &str = "statistics";

/// Directory of the logs, below the state directory.
pub(crate) const LOGS: &str = "logs";

/// How long the last spans may take to be sent when the client leaves. After a signal there is less time.
const FLUSH: Duration = Duration::from_secs(1);
const SHORT_FLUSH: Duration = Duration::from_millis(150);

/// Interval between two checks of the configuration file.
const WATCH: Duration = Duration::from_secs(1);

/// Interval between two attempts to read a secret that could not be read.
const ASK_KEYRING: Duration = Duration::from_secs(5);

/// The proxies of a run with their tasks.
#[derive(Debug)]
pub(crate) struct App {
    /// The proxy of the run's own profiles.
    proxy: Arc<Proxy>,
    /// That one, and those of clients with further profiles.
    proxies: Arc<Proxies>,
    tasks: Tasks,
    paths: Paths,
    session: SessionEnv,
    /// Servers of the command line, in addition to those of the configuration.
    remotes: Vec<RemoteServer>,
    /// Wakes the reader of the configuration file.
    reload: Arc<Notify>,
}

/// A reference to a session's run, for the daemon that serves it.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    pub(crate) proxy: Arc<Proxy>,
    proxies: Arc<Proxies>,
    reload: Arc<Notify>,
}

impl Handle {
    /// A handle for each proxy of the run.
    pub(crate) fn each(&self) -> impl Iterator<Item = Self> {
        let all = self.proxies.all().into_iter();
        let handle = self.clone();
        all.map(move |proxy| Self {
            proxy,
            ..handle.clone()
        })
    }

    /// Reads the configuration again, soon.
    pub(crate) fn reload(&self) {
        self.reload.notify_one();
    }
}

/// The servers, lists and indexes that the sessions of one process share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) servers: Arc<SharedServers>,
    lists: Arc<SharedLists>,
}

impl Shared {
    /// The parts of a run that uses these servers and lists.
    fn build(&self, request: Request, owner: Owner) -> Build {
        Build {
            start: Start::Serving,
            request,
            tasks: Tasks::new(),
            servers: self.servers.clone(),
            lists: Some(self.lists.clone()),
            owner,
        }
    }

    /// For sessions with this cache.
    #[must_use]
    pub(crate) fn new(events: Arc<Events>, cache_dir: &Path) -> Self {
        Self {
            servers: SharedServers::new(events),
            lists: Arc::new(SharedLists::new(Some(cache_dir))),
        }
    }
}

/// The parameters of [`App::build`].
struct Build {
    start: Start,
    request: Request,
    tasks: Tasks,
    servers: Arc<SharedServers>,
    lists: Option<Arc<SharedLists>>,
    owner: Owner,
}

impl App {
    /// Builds a run for one request. Only the reading of the cache is started.
    ///
    /// # Errors
    /// When the configuration cannot be used at all.
    pub(crate) fn new(
        paths: Paths,
        session: SessionEnv,
        profile: Option<String>,
    ) -> Result<Self, config::Error> {
        let config = Config::load(&paths, &session.environment)?;
        telemetry::hide(&config.masker);
        sum(&faulty(&config), config.warnings.len(), &paths);
        let request = named(profile, &config)?;
        let start = Start::Nothing;
        Ok(Self::with_config(config, paths, session, start, request))
    }

    /// Builds a run that serves clients, as `request` asks for by the configuration. `remotes` are the servers of the command line.
    ///
    /// # Errors
    /// When the configuration cannot be used at all, or a profile cannot.
    pub(crate) fn serving(
        paths: Paths,
        session: SessionEnv,
        remotes: Vec<RemoteServer>,
        request: impl FnOnce(&Config) -> Request,
    ) -> Result<Self, config::Error> {
        let config = Config::load_with(&remotes, &paths, &session.environment)?;
        telemetry::hide(&config.masker);
        report(&config, &paths);
        let request = request(&config);
        request.profiles.narrow(&config)?;
        let app = Self::with_config(config, paths, session, Start::Serving, request);
        Ok(Self { remotes, ..app })
    }

    /// Builds a run for one request without logging the configuration's faults: the command prints them, or is about one server.
    ///
    /// # Errors
    /// When the configuration cannot be used at all.
    pub(crate) fn quiet(
        paths: Paths,
        session: SessionEnv,
        profile: Option<String>,
    ) -> Result<Self, config::Error> {
        let config = Config::load(&paths, &session.environment)?;
        telemetry::hide(&config.masker);
        let request = named(profile, &config)?;
        let start = Start::Nothing;
        Ok(Self::with_config(config, paths, session, start, request))
    }

    /// Builds a run from a configuration whose faults the caller reports.
    #[must_use]
    pub(crate) fn with_config(
        config: Config,
        paths: Paths,
        session: SessionEnv,
        start: Start,
        request: Request,
    ) -> Self {
        write_logs(&config);
        let tasks = Tasks::new();
        // The window of a gateway shows events from before it was opened.
        let has_window = config.http.as_ref().is_ok_and(|http| http.ui);
        let kept = if has_window { events::KEPT } else { 0 };
        let servers = SharedServers::of_run(tasks.clone(), Events::new(kept));
        let build = Build {
            start,
            request,
            tasks,
            servers,
            lists: None,
            owner: Owner::default(),
        };
        Self::build(config, paths, session, build)
    }

    /// Builds a run for a session that shares servers with other sessions of this process. `paths` are those of the
    /// session's own process. `id` names the session in every process that serves it. `profile` is that of its command line.
    /// A session that `is_continued` from another process has no server until its configuration can be used again.
    ///
    /// # Errors
    /// When the configuration cannot be used at all, or a profile cannot, and the session is new.
    pub(crate) fn for_session(
        paths: Paths,
        session: SessionEnv,
        surface: SurfaceRequest,
        profile: Option<String>,
        id: SessionId,
        is_continued: bool,
        shared: &Shared,
    ) -> Result<Self, config::Error> {
        let config = match Config::load(&paths, &session.environment) {
            Err(error) if is_continued => {
                tracing::error!(%error, "the session has no servers until the configuration can be used");
                Config::parse("{}", &paths.config_file, &session.environment)?
            }
            loaded => loaded?,
        };
        telemetry::hide(&config.masker);
        write_logs(&config);
        report(&config, &paths);
        let request = request_of(&session, surface, profile);
        match request.profiles.narrow(&config) {
            // The session shows nothing as long as its profile cannot be used.
            Err(error) if is_continued => tracing::error!(%error, "the session has no servers"),
            narrowed => drop(narrowed?),
        }
        let build = shared.build(request, Owner::Session(id));
        Ok(Self::build(config, paths, session, build))
    }

    /// Builds a run for HTTP clients that share servers with the sessions of this process. `config` was read for
    /// `session`.
    pub(crate) fn for_http(
        config: Config,
        paths: Paths,
        session: SessionEnv,
        surface: SurfaceRequest,
        shared: &Shared,
    ) -> Self {
        telemetry::hide(&config.masker);
        write_logs(&config);
        report(&config, &paths);
        let profiles = ProfileChoice {
            is_over_http: true,
            ..ProfileChoice::default()
        };
        let request = Request {
            surface,
            profiles,
            ..Request::default()
        };
        let build = shared.build(request, Owner::default());
        Self::build(config, paths, session, build)
    }

    /// For a command that runs over the servers that sessions of this process share; its own process says what is wrong with the
    /// configuration.
    ///
    /// # Errors
    /// When the configuration cannot be used at all.
    pub(crate) fn for_command(
        paths: Paths,
        session: SessionEnv,
        profile: Option<String>,
        id: SessionId,
        shared: &Shared,
    ) -> Result<Self, config::Error> {
        let config = Config::load(&paths, &session.environment)?;
        telemetry::hide(&config.masker);
        let request = named(profile, &config)?;
        let build = Build {
            start: Start::Nothing,
            request,
            tasks: Tasks::new(),
            servers: shared.servers.clone(),
            lists: Some(shared.lists.clone()),
            owner: Owner::Session(id),
        };
        let app = Self::build(config, paths, session, build);
        app.set_workspace();
        Ok(app)
    }

    fn build(config: Config, paths: Paths, session: SessionEnv, build: Build) -> Self {
        let Build {
            start,
            request,
            tasks,
            servers,
            lists,
            owner,
        } = build;
        // Each proxy of a run for several clients searches the same lists.
        let is_for_many = start == Start::Serving && !request.has_one_client;
        let shared = || Arc::new(SharedLists::new(Some(&paths.cache_dir)));
        let lists = lists.or_else(|| is_for_many.then(shared));
        let state = session.environment.state(&paths.state_dir);
        let shared_store = state.shared.as_ref();
        let directories = Directories {
            cache: Some(paths.cache_dir.clone()),
            logs: Some(paths.state_dir.join(LOGS)),
            results: Some(paths.state_dir.join("results")),
            owner,
            statistics: Some(statistics::StatisticsStorage::of(&state, STATISTICS)),
            habits: Some(paths.state_dir.join(habits::DIRECTORY)),
            pins: Some(PinHome::of(shared_store, paths.state_dir.join("pins"))),
            sharing: Some(paths.state_dir.join("sharing")),
            sandboxes: Some(paths.state_dir.join(crate::sandbox::DIRECTORY)),
            closed: closed(&paths, &session),
            audit: Some(paths.state_dir.clone()),
            approvals: Some(Approvals::of(&state)),
            pause: Some(Pause::below(&paths.state_dir)),
            tasks: Some(paths.state_dir.join("tasks.key")),
            logins: Some(logins(&paths, &session)),
            surfaces: Some(paths.state_dir.join(SURFACES)),
            shared: lists,
        };
        let profiles = request.profiles.clone();
        let (env, all_tasks) = (session.clone(), tasks.clone());
        let make = move |config, profiles, figures: Option<SharedFigures>, own: Option<&Tasks>| {
            let mut directories = directories.clone();
            if figures.is_some() {
                // Results that one profile has stored cannot be read under another.
                directories.owner = Owner::default();
            }
            let request = Request {
                profiles,
                figures,
                ..request.clone()
            };
            let env = env.clone();
            Proxy::new(
                config,
                &directories,
                env,
                own.unwrap_or(&all_tasks),
                &servers,
                start,
                request,
            )
        };
        let proxies = Arc::new(Proxies::new(config, profiles, Box::new(make)));
        let people: Weak<Proxies> = Arc::downgrade(&proxies);
        proxies.main().metrics.count_people(people);
        Self {
            proxy: proxies.main().clone(),
            proxies,
            tasks,
            paths,
            session,
            remotes: Vec::new(),
            reload: Arc::default(),
        }
    }

    /// A reference to it.
    pub(crate) fn handle(&self) -> Handle {
        Handle {
            proxy: self.proxy.clone(),
            proxies: self.proxies.clone(),
            reload: self.reload.clone(),
        }
    }

    /// Uses the session's project directory (`CLAUDE_PROJECT_DIR`) and its working directory as the client's workspace.
    pub(crate) fn set_workspace(&self) {
        self.proxy.set_workspace(&workspace(&self.session));
    }

    /// Applies the settings for serving: the log level, and where metrics and traces are sent.
    fn observe(&self) -> Option<Arc<Tracer>> {
        let config = self.proxy.unscoped().config();
        telemetry::configure(config.log);
        if let Some(options) = config.metrics_export.clone() {
            let (proxy, resource) = (self.proxy.clone(), options.collector.resource.clone());
            let body = move || proxy.metrics.request(&resource);
            let export = telemetry::metrics::export(options, self.tasks.clone(), body);
            self.tasks.spawn(export);
        }
        let tracer = config
            .traces
            .clone()
            .map(|traces| Tracer::start(traces, &self.tasks))?;
        tracing::info!(service = tracer.service(), "traces are sent");
        self.proxy.trace_with(tracer.clone());
        Some(tracer)
    }

    /// The paths of the configuration, cache and state.
    #[must_use]
    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The directory and the variables of the session.
    #[must_use]
    pub(crate) fn session(&self) -> &SessionEnv {
        &self.session
    }

    /// The proxy.
    #[must_use]
    pub(crate) fn proxy(&self) -> &Arc<Proxy> {
        &self.proxy
    }

    /// Runs blocking work on the blocking pool. `None` if the run has ended.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.tasks.spawn_blocking(work).await.ok()
    }

    /// Serves the client on stdin and stdout until it leaves or a signal arrives, then ends everything.
    ///
    /// # Errors
    /// When stdin or stdout cannot be used.
    pub(crate) async fn serve_stdio(self, ready: impl FnOnce()) -> io::Result<()> {
        let signal = shutdown::signal();
        ready();
        self.set_workspace();
        self.refuse_stdout();
        let tracer = self.begin();
        self.report_start("stdio");
        let (outcome, limit) = tokio::select! {
            outcome = downstream::stdio::serve(self.proxy.clone(), &self.tasks) => (outcome, FLUSH),
            signal = signal => (signal, SHORT_FLUSH),
        };
        self.finish_traced(tracer, limit).await;
        outcome
    }

    /// Serves a client over `streams` until it leaves or `ended` is cancelled, then ends its session.
    ///
    /// # Errors
    /// When a stream cannot be used.
    pub(crate) async fn serve_streams(
        self,
        streams: downstream::stdio::Streams,
        ended: CancellationToken,
    ) -> io::Result<()> {
        // If this panics, the session's tasks end, too.
        let _ended = self.tasks.stop().clone().drop_guard();
        self.set_workspace();
        self.refuse_stdout();
        let tracer = self.begin();
        self.report_start("daemon");
        let session = downstream::Session::new(self.proxy.clone(), self.tasks.clone());
        session.share_workspace();
        let serving = downstream::stdio::serve_streams(&session, &self.proxy, &self.tasks, streams);
        let outcome = ended
            .run_until_cancelled_owned(serving)
            .await
            .unwrap_or(Ok(()));
        self.finish_traced(tracer, SHORT_FLUSH).await;
        outcome
    }

    /// Serves clients over HTTP until a signal arrives, then ends everything. `listening` gets the URL.
    ///
    /// # Errors
    /// When the address cannot be bound, or signals cannot be received.
    pub(crate) async fn serve_http(
        self,
        options: http::Options,
        pages: Arc<dyn http::Pages>,
        listening: impl FnOnce(&str),
    ) -> Result<(), http::Error> {
        self.proxies.free_stdout();
        let tracer = self.begin();
        let bound = async {
            let server = http::Server::bind(options).await?;
            let replicas = self.replicas(&server).await?;
            Ok((server, replicas))
        };
        let outcome = match bound.await {
            Ok((server, replicas)) => {
                self.report_start(&server.url());
                listening(&server.url());
                let (proxies, tasks) = (self.proxies.clone(), &self.tasks);
                let state = self.session.environment.state(&self.paths.state_dir);
                let others = replicas.clone();
                let running = server.start(proxies, tasks, &state, Some(pages), others);
                // Listing need not wait for a handshake here.
                self.proxy.inventory.release();
                let signal = shutdown::signal().await;
                running.drain(shutdown::signal()).await;
                if let Some(replicas) = replicas {
                    replicas.retire().await;
                }
                signal.map_err(|source| http::Error::Signals { source })
            }
            Err(error) => Err(error),
        };
        self.finish_traced(tracer, SHORT_FLUSH).await;
        outcome
    }

    /// The other replicas of the gateway, if it has a store.
    async fn replicas(&self, server: &http::Server) -> Result<Option<Arc<Replicas>>, http::Error> {
        #[cfg(not(feature = "postgres"))]
        return Ok(None);
        #[cfg(feature = "postgres")]
        {
            let shared = self.session.environment.store();
            let Some(store) = shared.and_then(|shared| shared.database()) else {
                return Ok(None);
            };
            let peer_url = server.peer_url()?;
            let announced = store.announce(&peer_url, env!("CARGO_PKG_VERSION")).await;
            announced.map_err(|error| http::Error::Store(error.to_string()))?;
            tracing::info!(
                id = store.id().as_str(),
                peer_url,
                "this is one of several replicas"
            );
            let backing = replicas::of_store(store.clone(), self.tasks.clone());
            let keys = store.keys().all().map(crate::sealing::Key::bytes);
            Ok(Some(Replicas::start(Arc::new(backing), keys, &self.tasks)))
        }
    }

    /// Serves clients over HTTP until `ended` is cancelled, then ends their sessions.
    pub(crate) async fn serve_http_until(self, server: http::Server, ended: CancellationToken) {
        self.refuse_stdout();
        let tracer = self.begin();
        self.report_start(&server.url());
        // A daemon that is to end does not wait for calls.
        let state = self.session.environment.state(&self.paths.state_dir);
        let _ = server.start(self.proxies.clone(), &self.tasks, &state, None, None);
        self.proxy.inventory.release();
        ended.cancelled().await;
        self.finish_traced(tracer, SHORT_FLUSH).await;
    }

    /// Starts the telemetry, and the task that follows the configuration file.
    fn begin(&self) -> Option<Arc<Tracer>> {
        let tracer = self.observe();
        self.use_store();
        self.tasks.spawn(watch(
            self.proxies.clone(),
            self.paths.clone(),
            self.session.environment.clone(),
            self.remotes.clone(),
            self.tasks.clone(),
            self.reload.clone(),
        ));
        tracer
    }

    /// Says that the audit log is not copied to stdout where a client reads that.
    fn refuse_stdout(&self) {
        if self.proxy.unscoped().config().audit_copies.stdout {
            tracing::error!(
                "the audit log is not copied to stdout, which belongs to the client here: `audit.to` may have `stdout` only for `mcpzip serve --http`"
            );
        }
    }

    fn report_start(&self, way: &str) {
        let (version, config) = (env!("CARGO_PKG_VERSION"), self.paths.config_file.display());
        tracing::info!(version, %config, way, "serving");
    }

    /// Ends all tasks, connections and servers.
    pub(crate) async fn finish(self) {
        self.finish_traced(None, FLUSH).await;
    }

    /// Ends all tasks, connections and servers, and sends the remaining spans within `limit`.
    async fn finish_traced(self, tracer: Option<Arc<Tracer>>, limit: Duration) {
        self.tasks.finish().await;
        self.proxies.finish().await;
        let flushed = async {
            if let Some(tracer) = tracer {
                tracer.flush(limit).await;
            }
        };
        let all = self.proxies.all();
        let closed = join_all(all.iter().map(|proxy| proxy.close()));
        tokio::join!(closed, flushed);
        tracing::debug!("everything has ended");
    }
}

/// Applies edits of the configuration file. An edit that cannot be used changes nothing.
async fn watch(
    proxies: Arc<Proxies>,
    paths: Paths,
    environment: Environment,
    servers: Vec<RemoteServer>,
    tasks: Tasks,
    reload: Arc<Notify>,
) {
    let path = paths.config_file.clone();
    let proxy = proxies.main();
    let mut file = match proxy.unscoped().config().stand_in {
        Some(_) => ConfigWatch::of_missing(path),
        None => ConfigWatch::new(path),
    };
    let mut secrets = ConfigWatch::new(secrets_file(&paths.config_file));
    let mut keyring = KeyringWatch::new(&environment);
    let logins = paths.state_dir.join(upstream::oauth::DIRECTORY);
    // The directory's time changes when a file in it is replaced.
    let changed = || {
        std::fs::metadata(&logins)
            .and_then(|directory| directory.modified())
            .ok()
    };
    let mut known = changed();
    loop {
        let is_asked = tokio::select! {
            () = tokio::time::sleep(WATCH) => false,
            () = reload.notified() => true,
            () = tasks.stopped() => return,
        };
        let now = changed();
        if std::mem::replace(&mut known, now) != now {
            proxies.all().iter().for_each(|proxy| ask_again(proxy));
        }
        for proxy in proxies.all() {
            proxy.inventory.read_pins();
        }
        let has_new_secrets = secrets.changed() || keyring.changed(proxy, &tasks).await;
        if !file.changed() && !has_new_secrets && !is_asked {
            continue;
        }
        match Config::load_with(&servers, &paths, &environment) {
            Ok(config) => {
                telemetry::hide(&config.masker);
                tracing::info!(path = %paths.config_file.display(), "configuration read again");
                report(&config, &paths);
                telemetry::configure(config.log);
                write_logs(&config);
                if proxy.unscoped().config().traces != config.traces {
                    tracing::warn!(
                        "the settings of `traces` have changed; they apply from the next start on"
                    );
                }
                proxies.configure(&config);
            }
            Err(error) => {
                tracing::error!(%error, "the edited configuration is not used, the one before stays");
            }
        }
    }
}

/// Detects changes of the secrets of `${keyring:NAME}`.
struct KeyringWatch {
    keyring: Option<Arc<dyn Keyring>>,
    known: Vec<Option<Stamp>>,
    asked: Instant,
}

impl KeyringWatch {
    fn new(environment: &Environment) -> Self {
        let keyring = environment.keyring().cloned();
        Self {
            known: keyring
                .as_ref()
                .map(|keyring| keyring.stamp())
                .unwrap_or_default(),
            keyring,
            asked: Instant::now(),
        }
    }

    /// Whether secrets may have changed since the last look, or one can be read that could not be. Nothing says that a keychain was
    /// unlocked, so it is asked from time to time.
    async fn changed(&mut self, proxy: &Proxy, tasks: &Tasks) -> bool {
        let Some(keyring) = &self.keyring else {
            return false;
        };
        let now = keyring.stamp();
        if self.known != now {
            self.known = now;
            return true;
        }
        if self.asked.elapsed() < ASK_KEYRING {
            return false;
        }
        self.asked = Instant::now();
        let config = proxy.unscoped().config();
        let names: Vec<_> = config.unread_secrets().cloned().collect();
        if names.is_empty() {
            return false;
        }
        let keyring = keyring.clone();
        let is_readable = move || names.iter().any(|name| keyring.secret(name).is_ok());
        let asked = tasks.spawn_blocking(is_readable);
        asked.await.unwrap_or(false)
    }
}

/// The directories of a session: that of its project (`CLAUDE_PROJECT_DIR`) and its working directory.
fn workspace(session: &SessionEnv) -> Vec<PathBuf> {
    let project = session
        .environment
        .get(config::env::CLAUDE_PROJECT_DIR.name);
    let project = project.filter(|path| !path.is_empty()).map(PathBuf::from);
    project
        .into_iter()
        .chain(session.directory.clone())
        .collect()
}

/// The place of the logins at servers: the store, if replicas share one.
fn logins(paths: &Paths, session: &SessionEnv) -> LoginStorage {
    match session.environment.store() {
        Some(store) => LoginStorage::of_program(SharedLogins::new(store.clone())),
        None => LoginStorage::Directory(paths.state_dir.join(upstream::oauth::DIRECTORY)),
    }
}

/// The request of a command, which has the profile that its command line names.
fn named(profile: Option<String>, config: &Config) -> Result<Request, config::Error> {
    let mut request = Request::default();
    request.profiles.named.extend(profile);
    request.profiles.narrow(config)?;
    Ok(request)
}

/// The request of a process that has one client.
#[must_use]
pub(crate) fn request_of(
    session: &SessionEnv,
    surface: SurfaceRequest,
    profile: Option<String>,
) -> Request {
    let directories = workspace(session);
    let directories = directories.iter().map(|directory| config::real(directory));
    Request {
        surface,
        profiles: ProfileChoice {
            named: profile.into_iter().collect(),
            directories: directories.collect(),
            ..ProfileChoice::default()
        },
        has_one_client: true,
        figures: None,
    }
}

/// Lists failed servers again after a change of the logins.
fn ask_again(proxy: &Proxy) {
    for (server, progress) in proxy.inventory.progress() {
        if matches!(progress, Progress::Failed(_)) {
            proxy.inventory.poke(&server);
        }
    }
}

/// Applies the configuration's settings for logs.
fn write_logs(config: &Config) {
    telemetry::write_as(config.logs.format);
    telemetry::limit_files(telemetry::Limits {
        largest: config.logs.largest,
        kept: config.logs.kept,
        oldest: config.logs.oldest,
    });
}

/// Logs each warning and fault with its position.
fn report(config: &Config, paths: &Paths) {
    let path = paths.config_file.display();
    for warning in &config.warnings {
        tracing::warn!("{path}:{warning}");
    }
    for fault in &config.faults {
        tracing::error!("{path}:{fault}");
    }
}

/// The first names of servers, quoted.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{}`", name.escape_debug()))
        .collect();
    if names.len() > SHOWN {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

/// The names of the servers with faults. A variable that is not set is none: a command about other servers need not mention it.
pub(crate) fn faulty(config: &Config) -> Vec<String> {
    let is_unset = |fault: &EntryError| matches!(fault, EntryError::MissingVariable { .. });
    let faults = config.faults.iter();
    faults
        .filter(|fault| !is_unset(&fault.fault))
        .map(|fault| fault.name.clone())
        .collect()
}

/// Logs which servers have faults, and the number of warnings, for commands that concern only one server.
pub(crate) fn sum(faulty: &[String], warnings: usize, paths: &Paths) {
    let path = paths.config_file.display();
    let names = listed(faulty);
    match faulty.len() {
        0 => {}
        1 => tracing::error!("{path}: 1 entry cannot be used ({names}): see `mcpzip doctor`"),
        count => {
            tracing::error!(
                "{path}: {count} entries cannot be used ({names}): see `mcpzip doctor`"
            );
        }
    }
    if warnings > 0 {
        let warnings = counted(warnings, "warning");
        tracing::warn!("{path}: {warnings}: see `mcpzip doctor`");
    }
}

/// The files and directories of mcpzip that no server in a sandbox may change.
fn closed(paths: &Paths, session: &SessionEnv) -> Vec<PathBuf> {
    let own = |directory: &Path| directory.ends_with(crate::sandbox::OWN_NAME);
    // The directory of the configuration, if that is mcpzip's own. A file in it may be a link to another place, so files count as well.
    let file = &paths.config_file;
    let directory = file.parent().filter(|parent| own(parent));
    let scripts = config::scripts_folder(file);
    let configuration = directory
        .map(Path::to_owned)
        .into_iter()
        .chain([file.clone(), config::secrets_file(file)])
        .chain(scripts.filter(|scripts| scripts.is_symlink()));
    #[cfg(unix)]
    let runtime = session
        .environment
        .runtime_directory(Path::new("/run/user"));
    #[cfg(not(unix))]
    let runtime: Option<PathBuf> = None;
    let runtime = runtime.map(|directory| directory.join(crate::sandbox::OWN_NAME));
    [&paths.cache_dir, &paths.state_dir]
        .into_iter()
        .cloned()
        .chain(configuration)
        .chain(runtime)
        .filter(|path| path.is_absolute())
        .collect()
}
