//! The MCP server that clients see: three tools in front of all configured servers.
//!
//! A [`Proxy`] joins catalog, search and upstream. It serves any number of sessions. Each request comes with its
//! [`Caller`], which has the state of the session. The proxy itself keeps only state that outlives a request, such
//! as the subscriptions of clients and the calls that wait for an answer of the user.
//!
//! *Invariant*: nothing here reads from or writes to a transport.

mod answers;
pub(crate) mod arguments;
mod callers;
mod extensions;
mod failure;
mod features;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod inbound;
mod inventory;
mod ledger;
mod metrics;
mod own_uris;
mod profile;
mod proxies;
mod relay;
mod skill;
mod surfaces;
mod tools;
mod view;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use futures_util::future::BoxFuture;

pub(crate) use answers::projection;
pub(crate) use answers::reply::Reply;
pub(crate) use callers::caller::Caller;
pub(crate) use callers::client::{Client, Consenting, Shows};
pub(crate) use callers::listener::{ChangeNotice, Interests, Listener};
pub(crate) use failure::{Failure, Unlisted, Withheld};
pub(crate) use features::told_apart;
pub(crate) use inventory::{
    Progress, ServerReport, SharedLists, Start, Status, VectorFiles, counted, neighbours,
};
pub(crate) use metrics::{CONTENT_TYPE as METRICS_TYPE, ProcessMetric, ProcessMetrics};
pub(crate) use profile::ProfileChoice;
pub(crate) use proxies::Proxies;
pub(crate) use relay::RequestContext;
pub(crate) use relay::approval::wait_of as approval_wait;
pub(crate) use relay::consent::Agreement;
pub(crate) use relay::instrument;
pub(crate) use surfaces::{Decision, SURFACES, decisions};
pub(crate) use tools::TaskWatch;
pub(crate) use tools::call::Call;
pub(crate) use tools::listable::Listable;
pub(crate) use tools::search::SearchError;
pub(crate) use view::View;

use crate::approvals::Approvals;
use crate::audit::{Kind, Outcome, Shipping};
use crate::catalog::{Catalog, PinHome};
use crate::config::{Config, SessionEnv, SurfaceRequest, env};
use crate::events::{Events, Source};
use crate::homes::HomesOfReplicas;
use crate::limits::Limits;
use crate::mcp::{ClientCapabilities, ErrorCode, LogLevel, Object, Revision};
use crate::notify::Notifier;
use crate::pause::Pause;
use crate::replicas::Replicas;
use crate::results::{Owner, Results};
use crate::sandbox::Sandboxes;
use crate::search::habits::HabitsOfAll;
use crate::secret::Secret;
use crate::shutdown::Tasks;
use crate::sources::Sources;
use crate::statistics::Statistics;
use crate::telemetry::trace::Tracer;
use crate::tool::ServerName;
use crate::upstream::oauth::{self, LoginStorage, OwnKey, Vault};
use crate::upstream::person::{self, Person};
use crate::upstream::{PACKAGES, Pool, SharedServers, UpstreamContext};
use answers::Answers;
use callers::Callers;
use features::Features;
use inbound::Inbound;
use inventory::Inventory;
use ledger::Ledger;
use metrics::Metrics;
use profile::ProfileScope;
use relay::Relay;
use surfaces::Surfaces;
use tools::{Tools, definitions};
use view::{ViewSource, Workspace};

/// The answer to clients whose profiles cannot be used; the log has the reason.
const REFUSED: &str = "the profile of this session cannot be used, so nothing is served: the user has to correct `profiles` in the \
                       configuration (`mcpzip doctor` shows the reason)";

/// The proxy: dispatches requests by method.
#[derive(Debug)]
pub(crate) struct Proxy {
    callers: Arc<Callers>,
    /// The servers' lists.
    pub(crate) inventory: Arc<Inventory>,
    /// The tools, also for commands of the user.
    pub(crate) tools: Tools,
    features: Arc<Features>,
    relay: Arc<Relay>,
    surfaces: Surfaces,
    profiles: ProfileScope,
    /// Whether all clients are one, whose name and directories decide its profiles.
    has_one_client: bool,
    figures: SharedFigures,
    /// The use that its clients have made of their limits.
    pub(crate) limits: Arc<Limits>,
    /// The metrics.
    pub(crate) metrics: Metrics,
}

/// The options that a proxy's clients request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// Their surface.
    pub surface: SurfaceRequest,
    /// Their profiles.
    pub profiles: ProfileChoice,
    /// Whether the proxy has one client.
    pub has_one_client: bool,
    /// The figures of the run's first proxy, which the others add to.
    pub figures: Option<SharedFigures>,
}

/// The figures that the proxies of one run have together.
#[derive(Debug, Clone)]
pub(crate) struct SharedFigures {
    statistics: Arc<Statistics>,
    surfaces: Arc<surfaces::Figures>,
    habits: Arc<HabitsOfAll>,
    scripts: Arc<crate::scripts::Figures>,
    /// The audit log of the first proxy.
    ledger: Option<Arc<Ledger>>,
    limits: Arc<Limits>,
    people: Arc<person::Figures>,
}

/// The directories for data that outlive a proxy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directories {
    /// The cache of tool lists and search indexes; `None` keeps them in memory.
    pub cache: Option<PathBuf>,
    /// The servers' logs; `None` keeps none.
    pub logs: Option<PathBuf>,
    /// Stored results; `None` stores none.
    pub results: Option<PathBuf>,
    /// The owner of these results.
    pub owner: Owner,
    /// The statistics; `None` keeps them in memory.
    pub statistics: Option<crate::statistics::StatisticsStorage>,
    /// The habits that search has learnt from calls; `None` keeps them in memory.
    pub habits: Option<PathBuf>,
    /// The pins of tools; `None` notices no changes.
    pub pins: Option<PinHome>,
    /// The records of servers that asked for roots; `None` keeps none.
    pub sharing: Option<PathBuf>,
    /// The data directories of servers in sandboxes; `None` refuses sandboxes.
    pub sandboxes: Option<PathBuf>,
    /// Files and directories of mcpzip that no server in a sandbox may change.
    pub closed: Vec<PathBuf>,
    /// The logins at remote servers; `None` keeps none.
    pub logins: Option<LoginStorage>,
    /// The directory that contains the audit log; `None` keeps none.
    pub audit: Option<PathBuf>,
    /// The lists and indexes that sessions share; `None` for a proxy that is alone in its process.
    pub shared: Option<Arc<SharedLists>>,
    /// The file with the key of tasks' ids; `None` makes a key for this proxy alone.
    pub tasks: Option<PathBuf>,
    /// The questions about calls that wait for an approval; `None` keeps none.
    pub approvals: Option<Approvals>,
    /// The user's switch that holds all calls; `None` for a proxy that cannot be paused.
    pub pause: Option<Pause>,
    /// The decisions on clients' surfaces; `None` keeps none.
    pub surfaces: Option<PathBuf>,
}

impl Proxy {
    /// A proxy with the default configuration.
    #[cfg(test)]
    pub(crate) fn without_servers(tasks: &Tasks) -> Arc<Self> {
        Self::new(
            Config::default(),
            &Directories::default(),
            crate::config::SessionEnv::default(),
            tasks,
            &crate::upstream::SharedServers::of_one(tasks.clone()),
            Start::Serving,
            Request::default(),
        )
    }

    /// Creates a proxy for the servers of `config`. The cache is read in the background.
    #[must_use]
    pub(crate) fn new(
        config: Config,
        directories: &Directories,
        session: SessionEnv,
        tasks: &Tasks,
        servers: &Arc<SharedServers>,
        start: Start,
        request: Request,
    ) -> Arc<Self> {
        let Request {
            surface,
            profiles,
            has_one_client,
            figures,
        } = request;
        let profiles = ProfileScope::new(profiles, config);
        let config = profiles.part();
        let figures = figures.unwrap_or_else(|| {
            let statistics = Statistics::at(directories.statistics.clone());
            statistics.start(tasks);
            SharedFigures {
                statistics,
                surfaces: Arc::default(),
                habits: Arc::new(HabitsOfAll::new(directories.habits.clone())),
                scripts: Arc::default(),
                ledger: None,
                limits: Limits::new(
                    directories.audit.as_deref(),
                    session.environment.store().cloned(),
                    tasks.clone(),
                ),
                people: Arc::default(),
            }
        });
        let (statistics, limits) = (figures.statistics.clone(), figures.limits.clone());
        statistics.live().count_calls(config.counts_calls());
        let owner = || directories.owner.clone();
        let person = profiles.entitlement().map(|one| one.identity.as_str());
        let results = directories.results.as_deref();
        let results = results.map_or_else(Results::absent, |root| {
            Results::new(root, owner())
                .of_person(person)
                .shared_in(session.environment.store().cloned())
        });
        let answers = Arc::new(Answers::new(
            Arc::new(results),
            statistics.clone(),
            tasks.clone(),
        ));
        Arc::new_cyclic(|proxy: &Weak<Self>| {
            let person = profiles.person(&figures.people);
            let identity = person.as_ref().map(|person| person.identity().to_owned());
            let pool = pool(&config, directories, &session, servers, person, proxy);
            pool.note_whole(&profiles.whole());
            let session_id = directories.owner.session();
            let events = Source::new(servers.events.clone(), session_id, identity.as_deref());
            let notifier = Notifier::new(session.environment.clone(), tasks.clone());
            let catalog = Arc::new(Catalog::new());
            let relay = Relay::new(
                pool.clone(),
                statistics.clone(),
                events.clone(),
                notifier.clone(),
                directories,
                catalog.clone(),
                tasks.clone(),
            );
            let relay = Arc::new(relay);
            let view_source = ViewSource::new(config, catalog.clone());
            view_source.start_servers_in(session.directory.as_ref());
            let callers = Arc::new(Callers::new(view_source));
            let config = callers.unscoped().config();
            let ledger = match (&figures.ledger, &identity) {
                (Some(ledger), Some(identity)) => ledger.of_identity(identity),
                _ => Ledger::new(
                    directories.audit.clone(),
                    &config,
                    session.environment.store().cloned(),
                    tasks.clone(),
                ),
            };
            let inventory = inventory::Parts {
                ledger: ledger.clone(),
                pool: pool.clone(),
                catalog,
                callers: callers.clone(),
                statistics: statistics.clone(),
                directories,
                own_tools: tools::own_tools,
                events,
                notifier,
                tasks,
            };
            let inventory = Inventory::new(inventory, start);
            let tools = tools::Parts {
                inventory: inventory.clone(),
                relay: relay.clone(),
                answers: answers.clone(),
                statistics,
                habits: figures.habits.of(identity.as_deref()),
                scripts: figures.scripts.clone(),
                ledger: ledger.clone(),
                limits: limits.clone(),
                directories,
                variables: session.environment,
                is_over_http: profiles.is_over_http(),
                proxy: proxy.clone(),
                tasks: tasks.clone(),
            };
            let scripts = figures.scripts.clone();
            let people = figures.people.clone();
            let surfaces = Surfaces::new(
                inventory.clone(),
                callers.clone(),
                surface,
                directories.surfaces.clone(),
                directories.owner.session().map(str::to_owned),
                figures.surfaces.clone(),
            );
            Self {
                profiles,
                has_one_client,
                limits: limits.clone(),
                figures,
                tools: Tools::new(tools),
                features: Features::new(
                    callers.clone(),
                    inventory.clone(),
                    relay.clone(),
                    pool,
                    ledger,
                    limits.clone(),
                    tasks,
                ),
                metrics: Metrics {
                    inventory: inventory.clone(),
                    relay: relay.clone(),
                    answers,
                    limits,
                    surfaces: surfaces.figures.clone(),
                    scripts,
                    people,
                    process: OnceLock::new(),
                    of_people: OnceLock::new(),
                },
                surfaces,
                callers,
                inventory,
                relay,
            }
        })
    }

    /// Applies an edited configuration, as far as the profiles permit.
    pub(crate) fn configure(&self, config: Config) {
        let _turn = self.profiles.turn.lock();
        self.relay.note_whole(&config);
        self.apply(&self.profiles.part_of(config));
    }

    fn apply(&self, config: &Arc<Config>) {
        self.tools.configure(config);
        let before = self.unscoped().config();
        if config.withholds_results_of(&before)
            && let Err(error) = self.tools.forget_results()
        {
            tracing::error!(%error, "stored results cannot be removed");
        }
        if !before.profile_names().eq(config.profile_names()) {
            let clients = self.callers.clients();
            clients
                .iter()
                .for_each(|client| client.forget_definitions());
        }
        self.tools.ledger.configure(Some(&before), config);
        self.relay
            .configure(&before, config, &self.inventory.snapshot());
        self.inventory.configure(config);
    }

    /// The view of every server: for commands of the user, and for work that belongs to no client. Requests of
    /// clients carry their own view.
    #[must_use]
    pub(crate) fn unscoped(&self) -> View {
        self.callers.unscoped()
    }

    /// Closes everything that the tasks of the run leave open. Call it after they have ended.
    pub(crate) async fn close(&self) {
        let written = self.tools.write_habits();
        tokio::join!(self.relay.close(), written);
        self.limits.flush();
        self.tools.ledger.close().await;
    }

    /// Records a login of a person at `server`, or its end, on the page of the gateway.
    pub(crate) fn note_login(&self, server: &ServerName, is_done: bool, detail: &str) {
        let (outcome, figure) = match is_done {
            true => (Outcome::Ok, &self.figures.people.logins),
            false => (Outcome::Failed, &self.figures.people.failed_logins),
        };
        figure.fetch_add(1, Ordering::Relaxed);
        let ledger = &self.tools.ledger;
        ledger.note(Kind::Login, outcome, server, None, detail);
    }

    /// Records the end of a person's login at `server`.
    pub(crate) fn note_logout(&self, server: &ServerName) {
        let ledger = &self.tools.ledger;
        ledger.note(Kind::Login, Outcome::Ok, server, None, "logged out");
    }

    /// Removes what was kept for other processes that may take the session over. Call it when the client has left.
    pub(crate) fn forget_session(&self) {
        self.surfaces.forget_session();
    }

    /// Writes an event of a person who logs in, or of a client that acts for one, to the audit log.
    pub(crate) fn note_identity(&self, identity: &str, detail: &str) {
        self.tools.ledger.note_identity(identity, detail);
    }

    /// Writes what a person does to the gateway in its window to the audit log, if there is one, before it is done.
    ///
    /// # Errors
    /// When the log cannot be written; it must not be done then.
    pub(crate) fn note_order(
        &self,
        identity: &str,
        order: &str,
        server: Option<&str>,
    ) -> Result<(), crate::audit::Error> {
        self.tools.ledger.note_order(identity, order, server)
    }

    /// The sender of audit lines to the store of several replicas; `None` without a store.
    #[must_use]
    pub(crate) fn shipping(&self) -> Option<&Arc<Shipping>> {
        self.tools.ledger.shipping()
    }

    /// Writes an event of the store to the audit log, if there is one.
    pub(crate) fn note_store(&self, outcome: Outcome, detail: &str) {
        self.tools.ledger.note_store(outcome, detail);
    }

    /// The identity of its clients, if they have one.
    #[must_use]
    pub(crate) fn identity(&self) -> Option<&str> {
        let entitlement = self.profiles.entitlement()?;
        Some(&entitlement.identity)
    }

    /// The events of the program.
    #[must_use]
    pub(crate) fn events(&self) -> &Arc<Events> {
        self.relay.events.all()
    }

    /// Lets the audit log use stdout, which no client reads.
    pub(crate) fn free_stdout(&self) {
        self.tools.ledger.free_stdout();
    }

    /// Records spans with this tracer from now on. Only the first tracer counts.
    pub(crate) fn trace_with(&self, tracer: Arc<Tracer>) {
        self.relay.trace_with(tracer);
    }

    /// The tracer, if traces are exported.
    #[must_use]
    pub(crate) fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.relay.tracer()
    }

    /// The workspace of this process.
    #[must_use]
    pub(crate) fn workspace(&self) -> Workspace {
        self.callers.workspace()
    }

    /// The figures that other proxies of the run add to.
    pub(super) fn figures(&self) -> SharedFigures {
        SharedFigures {
            ledger: Some(self.tools.ledger.clone()),
            ..self.figures.clone()
        }
    }

    /// Why clients are refused, after `client` has given its name, which may have a profile.
    fn refusal(&self, client: &Client) -> Option<Reply> {
        let name = client
            .software_name()
            .filter(|_| self.has_one_client && !client.has_surface());
        let turn = self.profiles.turn.lock();
        if let Some(part) = name.and_then(|name| self.profiles.note_client(name)) {
            self.apply(&part);
        }
        drop(turn);
        self.profiles.refusal()?;
        Some(Reply::error(ErrorCode::INVALID_REQUEST, REFUSED.to_owned()))
    }

    /// Sets the workspace of this process, which its only client shares.
    pub(crate) fn set_workspace(&self, directories: &[PathBuf]) {
        if self.callers.set_workspace(directories) {
            self.inventory.list_reachable();
        }
    }

    /// Requests the client's `roots` right after the handshake, so that no later call waits for them.
    pub(crate) async fn fetch_roots(&self, client: &Client) {
        if self.callers.fetch_roots(client).await {
            self.enter(client);
        }
    }

    /// The view of a client, as far as its workspace is known. It also triggers the listing of servers that become
    /// reachable.
    fn enter(&self, client: &Client) -> View {
        let workspace = client.workspace();
        if self.has_one_client {
            let _turn = self.profiles.turn.lock();
            if let Some(part) = self.profiles.note_directories(&workspace) {
                self.apply(&part);
            }
        }
        if self.callers.enter(&workspace) {
            self.inventory.list_reachable();
        }
        if !self.awaits_roots(client) {
            self.surfaces.settle(client);
        }
        self.callers.view(client)
    }

    /// Whether the client's `roots` may have a profile, and are not known yet.
    fn awaits_roots(&self, client: &Client) -> bool {
        let able = client.capabilities();
        self.has_one_client
            && able.is_some_and(|able| able.allow("roots/list"))
            && client.roots().get().is_none()
            && self.profiles.depend_on_directories()
    }

    /// Sends changes to `listener` as long as it exists.
    pub(crate) fn listen(&self, listener: &Arc<Listener>) {
        self.callers.listen(listener);
    }

    /// The part of a client's `interests` that can change.
    pub(crate) async fn offered(&self, client: &Client, interests: Interests) -> Interests {
        if self.refusal(client).is_some() {
            return Interests::default();
        }
        self.surfaces.settle(client);
        let view = self.callers.view(client);
        self.features.offered(&view, interests).await
    }

    /// Subscribes a caller to its own tasks among those of the `notifications` that it listens to.
    ///
    /// # Errors
    /// With the answer if that is refused.
    pub(crate) fn watch_tasks<'a>(
        &'a self,
        caller: &'a Caller,
        notifications: &'a Object<'_>,
    ) -> BoxFuture<'a, Result<TaskWatch, Reply>> {
        Box::pin(async move {
            if let Some(refusal) = self.refusal(&caller.client) {
                return Err(refusal);
            }
            let view = self.callers.view(&caller.client);
            self.tools.watch(&view, caller, notifications).await
        })
    }

    /// The next notification about a task of a subscription, as `params`. `None` if there will be none.
    pub(crate) async fn next_task_change(&self, watch: &mut TaskWatch) -> Option<String> {
        let client = watch.client().clone();
        let view = || self.callers.view(&client);
        self.tools.next_change(watch, view).await
    }

    /// The result of `initialize` for a client of `revision`, which gets notifications from now on.
    #[must_use]
    pub(crate) fn initialize(
        &self,
        client: &Arc<Client>,
        revision: Revision,
        capabilities: ClientCapabilities,
    ) -> Reply {
        if let Some(refusal) = self.refusal(client) {
            return refusal;
        }
        self.callers.joined(client, capabilities);
        self.relay.set_log_level();
        let awaits_roots = self.awaits_roots(client);
        if !awaits_roots {
            self.surfaces.settle(client);
        }
        let view = self.callers.view(client);
        let instructions = match awaits_roots {
            true => Inventory::plain_instructions(&view),
            false => self.inventory.instructions(&view),
        };
        let others = extensions::offered(&view, &self.inventory);
        Reply::Result(definitions::initialize(revision, &view, &instructions, &others).into())
    }

    /// Continues with a client whose handshake another replica has answered, and decided how it sees the tools.
    pub(crate) fn continue_with(
        &self,
        client: &Arc<Client>,
        capabilities: ClientCapabilities,
        surface: u8,
    ) {
        self.callers.joined(client, capabilities);
        self.relay.set_log_level();
        self.surfaces.continue_with(client, surface);
    }

    /// Sets the log levels of the servers, after a client's level has changed at another replica.
    pub(crate) fn levels_changed(&self) {
        self.relay.set_log_level();
        self.callers.interests_changed();
    }

    /// Tells other replicas of changed lists from now on, and reaches servers that run at one of them.
    pub(crate) fn join_replicas(&self, replicas: Arc<Replicas>, homes: HomesOfReplicas) {
        self.callers.join_replicas(replicas);
        self.relay.pool().join_homes(Arc::new(homes));
    }

    /// Another replica has lists with this hash of a server: lists the server again if this replica's lists
    /// differ.
    pub(crate) fn listed_elsewhere(&self, server: &str, hash: &str) {
        let Ok(server) = ServerName::new(server) else {
            return;
        };
        let snapshot = self.inventory.snapshot();
        let known = snapshot.server(&server);
        if known.is_some_and(|known| inventory::hash_of(known) != hash) {
            self.inventory.poke(&server);
        }
    }

    /// Answers a request; `line` contains its `params`.
    ///
    /// Rare parts of the way are boxed, here and below: a request's future is as large as its largest branch, and is
    /// moved several times before it runs.
    pub(crate) async fn handle(
        &self,
        caller: &Caller,
        method: &str,
        params: &Object<'_>,
        line: &Bytes,
    ) -> Reply {
        let modern = caller.revision.is_modern();
        if modern {
            self.callers.seen(caller.capabilities);
        }
        if let Some(refusal) = self.refusal(&caller.client) {
            return refusal.advised(&self.unscoped());
        }
        if !self.awaits_roots(&caller.client) {
            self.surfaces.settle(&caller.client);
        }
        let view = self.view_for(caller, method).await;
        let passing = self.with_common(&view, caller);
        let caller = passing.as_ref().unwrap_or(caller);
        let reply = match method {
            "tools/list" => self.tools.list(&view, caller, params).await,
            "tools/call" => self.tools.answer_call(&view, caller, params, line).await,
            "tasks/get" | "tasks/update" | "tasks/cancel" if modern => {
                Box::pin(self.tools.task(&view, caller, method, params)).await
            }
            "server/discover" => self.discover(&view),
            "ping" if !modern => Reply::Result("{}".into()),
            "logging/setLevel" if !modern => self.set_log_level(caller, params),
            _ => {
                let unknown = || {
                    Reply::error(
                        ErrorCode::METHOD_NOT_FOUND,
                        format!("unknown method `{method}`"),
                    )
                };
                Box::pin(self.features.answer(&view, caller, method, params))
                    .await
                    .unwrap_or_else(unknown)
            }
        };
        reply.advised(&view)
    }

    /// The view of a request's client.
    async fn view_for(&self, caller: &Caller, method: &str) -> View {
        match method {
            // The list of meta-tools does not depend on the client.
            "tools/list"
                if !caller.client.surface().lists_tools_of_servers()
                    && !self.profiles.depend_on_directories() =>
            {
                self.callers.view(&caller.client)
            }
            "server/discover" | "ping" | "logging/setLevel" => self.callers.view(&caller.client),
            _ => {
                if self.callers.may_fetch_roots(caller) {
                    Box::pin(self.callers.know_roots(caller)).await;
                }
                self.enter(&caller.client)
            }
        }
    }

    fn discover(&self, view: &View) -> Reply {
        let others = extensions::offered(view, &self.inventory);
        let instructions = self.inventory.instructions(view);
        let result = definitions::discover(view, &instructions, &others).into();
        match others.is_empty() {
            true => Reply::constant(result, true),
            // They come and go with their servers.
            false => Reply::changing(result, true),
        }
    }

    /// The caller with the extensions that it has in common with servers; `None` if there are none.
    fn with_common(&self, view: &View, caller: &Caller) -> Option<Caller> {
        let common = extensions::common(view, &self.inventory, caller.extensions.others());
        (!common.is_empty()).then(|| Caller {
            common: Arc::new(common),
            ..caller.clone()
        })
    }

    /// Sets the log level at the servers that support one; messages below it are dropped here as well.
    fn set_log_level(&self, caller: &Caller, params: &Object<'_>) -> Reply {
        let Some(level) = params
            .text("level")
            .and_then(|level| LogLevel::parse(&level))
        else {
            return Reply::invalid_params("`level` must be a log level");
        };
        caller.client.set_log_level(level);
        self.relay.set_log_level();
        Reply::Result("{}".into())
    }
}

/// The pool of connections to the servers.
fn pool(
    config: &Config,
    directories: &Directories,
    session: &SessionEnv,
    servers: &Arc<SharedServers>,
    person: Option<Arc<Person>>,
    proxy: &Weak<Proxy>,
) -> Arc<Pool> {
    let logs = directories.logs.clone();
    let mut context = UpstreamContext::new(servers.clone(), session.clone(), logs);
    context.sharing_directory.clone_from(&directories.sharing);
    context.sandboxes = Arc::new(Sandboxes::new(
        directories.sandboxes.clone(),
        directories.closed.clone(),
        config,
        session,
    ));
    context.packages = directories.cache.as_ref().map(|cache| cache.join(PACKAGES));
    context.sources = Some(Arc::new(Sources::new(directories.cache.clone())));
    let tasks = context.tasks.clone();
    if let (Some(LoginStorage::Directory(logins)), Some(_)) = (&directories.logins, &person) {
        let given = session.environment.get(env::LOGIN_KEY.name);
        let given = given.filter(|text| !text.trim().is_empty());
        let key = OwnKey {
            given: given.map(|text| Secret::new(text.to_owned())),
            variable: env::LOGIN_KEY.name,
            path: logins.with_file_name(format!("{}.key", oauth::PEOPLE)),
        };
        let place = LoginStorage::Directory(logins.join(oauth::PEOPLE));
        context.logins_of_people = Some(Arc::new(Vault::of_people(place, key, tasks.clone())));
    }
    let has_person = person.is_some();
    context.person = person;
    if let (Some(place), Some(store)) = (&directories.logins, session.environment.store()) {
        let vault = Vault::of_store(place.clone(), store.keys(), tasks);
        let vault = Arc::new(vault);
        context.logins_of_people = has_person.then(|| vault.clone());
        context.logins = Some(vault);
        return Arc::new(Pool::new(context, Arc::new(Inbound(proxy.clone()))));
    }
    let vault = |place: &LoginStorage| {
        Arc::new(Vault::new(
            place.clone(),
            config.credentials,
            &session.environment,
            tasks.clone(),
        ))
    };
    context.logins = directories.logins.as_ref().map(vault);
    Arc::new(Pool::new(context, Arc::new(Inbound(proxy.clone()))))
}
