//! The MCP server that clients see: three tools in front of all the others.
//!
//! A [`Proxy`] joins catalog, search and upstream; it serves any number of sessions, and keeps nothing of any of them.
//! What a session needs of its own comes with each request, in a [`Caller`].
//!
//! *Invariant*: nothing here reads from or writes to a transport.

mod answers;
pub(crate) mod arguments;
mod callers;
mod failure;
mod features;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod inbound;
mod inventory;
mod ledger;
mod metrics;
mod relay;
mod tools;
mod view;

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use bytes::Bytes;

pub(crate) use answers::projection;
pub(crate) use answers::reply::Reply;
pub(crate) use callers::caller::Caller;
pub(crate) use callers::client::{Client, Shows};
pub(crate) use callers::listener::{Change, Interests, Listener};
pub(crate) use failure::Failure;
pub(crate) use inventory::{Progress, ServerReport, Start, Status, counted};
pub(crate) use metrics::CONTENT_TYPE as METRICS_TYPE;
pub(crate) use relay::RequestContext;
pub(crate) use relay::instrument;
pub(crate) use tools::call::Call;
pub(crate) use tools::search::SearchError;
pub(crate) use view::{Mode, View};

use crate::catalog::Catalog;
use crate::config::{Config, SessionEnv};
use crate::mcp::{ClientCapabilities, ErrorCode, LogLevel, Object, Revision};
use crate::results::{Owner, Results};
use crate::shutdown::Tasks;
use crate::statistics::Statistics;
use crate::telemetry::trace::Tracer;
use crate::upstream::oauth::Vault;
use crate::upstream::{Pool, SharedServers, UpstreamContext};
use answers::Answers;
use callers::Callers;
use features::Features;
use inbound::Inbound;
use inventory::Inventory;
use ledger::Ledger;
use metrics::Metrics;
use relay::Relay;
use tools::{Tools, definitions};
use view::{Views, Workspace};

/// Everything behind the three tools.
#[derive(Debug)]
pub(crate) struct Proxy {
    callers: Arc<Callers>,
    /// What is known of the servers.
    pub(crate) inventory: Arc<Inventory>,
    /// The tools, for commands of the user.
    pub(crate) tools: Tools,
    features: Arc<Features>,
    relay: Arc<Relay>,
    /// What is counted.
    pub(crate) metrics: Metrics,
}

/// Where a proxy keeps what outlives it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directories {
    /// Tool lists and search indexes; `None` keeps them in memory.
    pub cache: Option<PathBuf>,
    /// The servers' logs; `None` keeps none.
    pub logs: Option<PathBuf>,
    /// Results that were too large to be shown; a temporary directory without it.
    pub results: Option<PathBuf>,
    /// Whose results these are.
    pub owner: Owner,
    /// What was counted; `None` keeps it in memory.
    pub statistics: Option<PathBuf>,
    /// What tools were like when they were first seen; `None` notices no change.
    pub pins: Option<PathBuf>,
    /// The servers that asked for roots; `None` forgets them.
    pub sharing: Option<PathBuf>,
    /// The logins at remote servers; `None` knows none.
    pub logins: Option<PathBuf>,
    /// Below which the audit log is; `None` keeps none.
    pub audit: Option<PathBuf>,
}

impl Proxy {
    /// A proxy for the servers of `config`. It knows what the cache knows as soon as that is read, in the background.
    #[must_use]
    pub(crate) fn new(
        config: Config,
        directories: &Directories,
        session: SessionEnv,
        tasks: &Tasks,
        servers: &Arc<SharedServers>,
        start: Start,
        mode: Mode,
    ) -> Arc<Self> {
        let statistics = Statistics::new(directories.statistics.as_deref());
        statistics.start(tasks);
        statistics.live().count_calls(config.counts_calls());
        let results = directories.results.clone();
        let results = results.unwrap_or_else(|| std::env::temp_dir().join("mcpzip"));
        let answers = Arc::new(Answers::new(
            Arc::new(Results::new(&results, directories.owner.clone())),
            statistics.clone(),
            tasks.clone(),
        ));
        Arc::new_cyclic(|proxy: &Weak<Self>| {
            let pool = pool(&config, directories, &session, servers, proxy);
            let relay = Relay::new(pool.clone(), statistics.clone(), tasks.clone());
            let relay = Arc::new(relay);
            let catalog = Arc::new(Catalog::new());
            let views = Views::new(config, catalog.clone(), mode);
            views.start_servers_in(session.directory.as_ref());
            let callers = Arc::new(Callers::new(views));
            let config = callers.unscoped().config();
            let ledger = Ledger::new(directories.audit.clone(), &config, tasks.clone());
            let inventory = inventory::Parts {
                ledger: ledger.clone(),
                pool: pool.clone(),
                catalog,
                callers: callers.clone(),
                directories,
                own_tools: tools::own_tools,
                tasks,
            };
            let inventory = Inventory::new(inventory, start);
            let tools = tools::Parts {
                inventory: inventory.clone(),
                relay: relay.clone(),
                answers: answers.clone(),
                statistics,
                ledger,
                directories,
                variables: session.environment,
                proxy: proxy.clone(),
                tasks: tasks.clone(),
            };
            Self {
                tools: Tools::new(tools),
                features: Features::new(
                    callers.clone(),
                    inventory.clone(),
                    relay.clone(),
                    pool,
                    tasks,
                ),
                metrics: Metrics {
                    inventory: inventory.clone(),
                    relay: relay.clone(),
                    answers,
                },
                callers,
                inventory,
                relay,
            }
        })
    }

    /// Takes over an edited configuration.
    pub(crate) fn configure(&self, config: Config) {
        self.tools.configure(&config);
        self.tools.ledger.configure(&config);
        let before = self.unscoped().config();
        self.relay
            .configure(&before, &config, &self.inventory.snapshot());
        self.inventory.configure(config);
    }

    /// The view of every server: for commands of the user in person, and for what belongs to no client. What works for a
    /// client gets its view with the request.
    #[must_use]
    pub(crate) fn unscoped(&self) -> View {
        self.callers.unscoped()
    }

    /// Ends what the tasks of the run leave open, after they have ended.
    pub(crate) async fn close(&self) {
        self.relay.close().await;
        self.tools.ledger.close();
    }

    /// From now on, requests have spans of this tracer; the first one stays.
    pub(crate) fn trace_with(&self, tracer: Arc<Tracer>) {
        self.relay.trace_with(tracer);
    }

    /// The maker of spans, if traces are sent anywhere.
    #[must_use]
    pub(crate) fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.relay.tracer()
    }

    /// The workspace of this process.
    #[must_use]
    pub(crate) fn workspace(&self) -> Workspace {
        self.callers.workspace()
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

    /// The view of a client, as far as its workspace is known. Servers that are reachable from there are listed too.
    fn enter(&self, client: &Client) -> View {
        let workspace = client.workspace();
        if self.callers.enter(&workspace) {
            self.inventory.list_reachable();
        }
        self.callers.view(workspace)
    }

    /// Tells `listener` of changes, as long as somebody holds it.
    pub(crate) fn listen(&self, listener: &Arc<Listener>) {
        self.callers.listen(listener);
    }

    /// What of a client's `interests` there can be news of.
    pub(crate) async fn offered(&self, client: &Client, interests: Interests) -> Interests {
        let view = self.callers.view(client.workspace());
        self.features.offered(&view, interests).await
    }

    /// The result of `initialize` for a client of `revision`, which hears from now on what is told unasked.
    #[must_use]
    pub(crate) fn initialize(
        &self,
        client: &Arc<Client>,
        revision: Revision,
        capabilities: ClientCapabilities,
    ) -> Reply {
        self.callers.joined(client, capabilities);
        let view = self.callers.view(client.workspace());
        let instructions = self.inventory.instructions(&view);
        Reply::Result(definitions::initialize(revision, &view, &instructions).into())
    }

    /// Answers a request; `line` is what its `params` are a part of.
    ///
    /// What calls seldom need is boxed on the way, here and below: the task of a request has room for the largest of all
    /// ways, and is copied several times before it runs.
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
        let view = self.view_for(caller, method).await;
        match method {
            "tools/list" => self.tools.list(&view, caller, params).await,
            "tools/call" => self.tools.call(&view, caller, params, line).await,
            "server/discover" => Reply::constant(self.discover(&view).into(), true),
            "ping" if !modern => Reply::Result(Bytes::from_static(b"{}")),
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
        }
    }

    /// What the client of a request may see.
    async fn view_for(&self, caller: &Caller, method: &str) -> View {
        match method {
            // What is the same for everybody is answered at once.
            "tools/list" if self.callers.mode() == Mode::MetaTools => {
                self.callers.view(caller.client.workspace())
            }
            "server/discover" | "ping" | "logging/setLevel" => {
                self.callers.view(caller.client.workspace())
            }
            _ => {
                if self.callers.may_fetch_roots(caller) {
                    Box::pin(self.callers.know_roots(caller)).await;
                }
                self.enter(&caller.client)
            }
        }
    }

    fn discover(&self, view: &View) -> String {
        definitions::discover(view, &self.inventory.instructions(view))
    }

    /// Passes the level on to the servers that can be told; what is below it is left out here as well.
    fn set_log_level(&self, caller: &Caller, params: &Object<'_>) -> Reply {
        let Some(level) = params
            .text("level")
            .and_then(|level| LogLevel::parse(&level))
        else {
            return Reply::error(
                ErrorCode::INVALID_PARAMS,
                "`level` must be a log level".to_owned(),
            );
        };
        caller.client.set_log_level(level);
        self.relay.set_log_level();
        Reply::Result(Bytes::from_static(b"{}"))
    }
}

/// The connections to the servers.
fn pool(
    config: &Config,
    directories: &Directories,
    session: &SessionEnv,
    servers: &Arc<SharedServers>,
    proxy: &Weak<Proxy>,
) -> Arc<Pool> {
    let logs = directories.logs.clone();
    let mut context = UpstreamContext::new(servers.clone(), session.clone(), logs);
    context.sharing_directory.clone_from(&directories.sharing);
    let tasks = context.tasks.clone();
    let vault = |directory: &PathBuf| {
        Arc::new(Vault::new(
            directory.clone(),
            config.credentials,
            &session.environment,
            tasks.clone(),
        ))
    };
    context.logins = directories.logins.as_ref().map(vault);
    Arc::new(Pool::new(context, Arc::new(Inbound(proxy.clone()))))
}
