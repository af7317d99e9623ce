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
mod metrics;
mod refresh;
mod relay;
mod status;
mod tools;
mod view;

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

pub(crate) use answers::projection;
pub(crate) use answers::reply::Reply;
pub(crate) use callers::caller::Caller;
pub(crate) use callers::client::{Client, Shows};
pub(crate) use callers::listener::{Change, Interests, Listener};
pub(crate) use failure::Failure;
pub(crate) use metrics::CONTENT_TYPE as METRICS_TYPE;
pub(crate) use refresh::vectors::Coverage;
pub(crate) use refresh::{Progress, Refresh, Start};
pub(crate) use relay::RequestContext;
pub(crate) use relay::instrument;
pub(crate) use status::{ServerReport, Status, counted};
pub(crate) use tools::definitions::DEFINITIONS;
pub(crate) use tools::execute::Call;
pub(crate) use view::View;

use crate::catalog::{Cache, Catalog, Changes, Failures, Pins};
use crate::config::Config;
use crate::mcp::{ClientCapabilities, ErrorCode, LogLevel, Object, Revision};
use crate::results::Results;
use crate::search::Search;
use crate::shutdown::Tasks;
use crate::statistics::Statistics;
use crate::telemetry::trace::Tracer;
use crate::tool::ServerName;
use crate::upstream::oauth::Vault;
use crate::upstream::{Pool, State, UpstreamContext};
use answers::Answers;
use answers::counting;
use callers::audience::{Audience, AudienceBridge};
use features::{lists, subscriptions};
use refresh::index::Index;
use refresh::policy;
use relay::Relay;
use tools::instructions::Topics;
use tools::reranking::Reranking;
use tools::{builtin, definitions, direct, execute};
use view::{Views, Workspace};

/// What clients see of the servers' tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// The three meta-tools.
    #[default]
    MetaTools,
    /// Every tool by itself.
    Direct,
}

/// Everything behind the three tools.
#[derive(Debug)]
pub(crate) struct Proxy {
    mode: Mode,
    views: Arc<Views>,
    /// The directories this process was started in, if its only client shares them.
    workspace: Mutex<Workspace>,
    catalog: Arc<Catalog>,
    pins: Arc<Pins>,
    pool: Arc<Pool>,
    relay: Relay,
    index: Arc<Index>,
    reranking: Reranking,
    refresh: Arc<Refresh>,
    topics: Arc<Topics>,
    schemas: execute::Schemas,
    answers: Answers,
    statistics: Arc<Statistics>,
    logs: Option<std::path::PathBuf>,
    variables: crate::config::Environment,
    direct_names: direct::DirectNames,
    audience: Audience,
    switches: Arc<builtin::Switches>,
    tasks: Tasks,
}

/// Where a proxy keeps what outlives it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directories {
    /// Tool lists and search indexes; `None` keeps them in memory.
    pub cache: Option<std::path::PathBuf>,
    /// The servers' logs; `None` keeps none.
    pub logs: Option<std::path::PathBuf>,
    /// Results that were too large to be shown; a temporary directory without it.
    pub results: Option<std::path::PathBuf>,
    /// What was counted; `None` keeps it in memory.
    pub statistics: Option<std::path::PathBuf>,
    /// What tools were like when they were first seen; `None` notices no change.
    pub pins: Option<std::path::PathBuf>,
    /// The logins at remote servers; `None` knows none.
    pub logins: Option<std::path::PathBuf>,
}

impl Proxy {
    /// A proxy for the servers of `config`. It knows what the cache knows as soon as that is read, in the background.
    #[must_use]
    pub(crate) fn new(
        config: Config,
        directories: &Directories,
        variables: crate::config::Environment,
        tasks: &Tasks,
        start: Start,
        mode: Mode,
    ) -> Arc<Self> {
        let cache = directories.cache.as_deref();
        let catalog = Arc::new(Catalog::new());
        let pins = Arc::new(Pins::new(directories.pins.as_deref()));
        catalog.reserve(config.names.iter().cloned());
        pins.require(policy::pinned(&config));
        catalog.restrict(Some(policy::rules(&config, &pins, mode)));
        let search = Search::new(cache.map(|cache| cache.join("search")));
        #[cfg(feature = "semantic")]
        let search = search.with_embedder(Arc::new(crate::search::Bundled::default()));
        search.set_semantic(config.search.semantic);
        let index = Index::new(catalog.clone(), search, tasks.clone());
        let topics = Arc::new(Topics::load(cache));
        let statistics = Statistics::new(directories.statistics.as_deref());
        statistics.start(tasks);
        statistics.live().count_calls(config.metrics);
        let proxy = Arc::new_cyclic(|proxy: &std::sync::Weak<Self>| {
            let vault = |directory: &std::path::PathBuf| {
                Arc::new(Vault::new(
                    directory.clone(),
                    config.credentials,
                    &variables,
                    tasks.clone(),
                ))
            };
            let logins = directories.logins.as_ref().map(vault);
            let mut environment =
                UpstreamContext::new(tasks.clone(), variables.clone(), directories.logs.clone());
            environment.logins = logins;
            let pool = Arc::new(Pool::new(
                environment,
                Arc::new(AudienceBridge(proxy.clone())),
            ));
            pool.configure(&config);
            let refresh = Refresh::new(
                refresh::Parts {
                    pool: pool.clone(),
                    catalog: catalog.clone(),
                    cache: Arc::new(Cache::new(cache)),
                    failures: Arc::new(Failures::new(cache)),
                    pins: pins.clone(),
                    index: index.clone(),
                    topics: topics.clone(),
                    proxy: proxy.clone(),
                    tasks: tasks.clone(),
                },
                start,
            );
            let views = Views::new(config, catalog.clone());
            refresh.configure(&views.reachable(&views.unscoped().config()));
            Self {
                mode,
                views,
                workspace: Mutex::default(),
                catalog,
                pins,
                relay: Relay::new(pool.clone(), statistics.clone(), tasks.clone()),
                pool,
                index,
                reranking: Reranking::default(),
                refresh,
                topics,
                schemas: execute::Schemas::default(),
                answers: Answers::new(
                    Arc::new(Results::new(
                        &directories
                            .results
                            .clone()
                            .unwrap_or_else(|| std::env::temp_dir().join("mcpzip")),
                    )),
                    statistics.clone(),
                    tasks.clone(),
                ),
                statistics,
                logs: directories.logs.clone(),
                variables,
                direct_names: direct::DirectNames::default(),
                audience: Audience::default(),
                switches: Arc::default(),
                tasks: tasks.clone(),
            }
        });
        let keep = subscriptions::keep(Arc::downgrade(&proxy));
        tasks.spawn(tasks.stop().clone().run_until_cancelled_owned(keep));
        proxy
    }

    /// Takes over an edited configuration.
    pub(crate) fn configure(&self, config: Config) {
        self.switches.compare(&config);
        self.catalog.reserve(config.names.iter().cloned());
        let before = self.unscoped().config();
        let is_kept =
            |server: &ServerName| before.servers.get(server) == config.servers.get(server);
        self.relay
            .named_uris
            .retire(&self.catalog.snapshot(), is_kept);
        self.pins.require(policy::pinned(&config));
        self.pool.configure(&config);
        self.refresh.configure(&self.views.reachable(&config));
        self.index.configure(&config.search);
        self.statistics.live().count_calls(config.metrics);
        self.catalog
            .restrict(Some(policy::rules(&config, &self.pins, self.mode)));
        self.index.catalog_changed();
        let config = Arc::new(config);
        let before = self.views.replace(config.clone());
        self.lists_changed(lists::changes(&before, &config));
        if before.tools != config.tools || before.servers != config.servers {
            self.lists_changed(&[Change::Tools]);
        }
    }

    /// Takes over what another process has noticed or approved of changed tools, if it has.
    pub(crate) fn read_pins(&self) {
        if self.refresh.read_pins() {
            self.tools_restricted(&self.unscoped().config());
        }
    }

    /// The tools of a server that are not what they were when they were first seen.
    #[must_use]
    pub(crate) fn changed_tools(&self, server: &ServerName) -> Changes {
        self.pins.changes(server)
    }

    /// Takes tools of a server as they are in `seen` for what they should be. Only ever called for a person.
    ///
    /// # Errors
    /// When that cannot be kept.
    pub(crate) fn approve(&self, server: &ServerName, seen: &Changes) -> std::io::Result<()> {
        self.refresh.approve(server, seen)?;
        self.tools_restricted(&self.unscoped().config());
        Ok(())
    }

    /// Other tools are withheld now.
    fn tools_restricted(&self, config: &Config) {
        self.catalog
            .restrict(Some(policy::rules(config, &self.pins, self.mode)));
        self.index.catalog_changed();
        self.lists_changed(&[Change::Tools]);
    }

    /// The view of every server: for commands of the user in person, and for what belongs to no client. What works for a
    /// client gets its view with the request.
    #[must_use]
    pub(crate) fn unscoped(&self) -> View {
        self.views.unscoped()
    }

    /// The listing of servers.
    #[must_use]
    pub(crate) fn refresh(&self) -> &Arc<Refresh> {
        &self.refresh
    }

    /// Whether a server is being started or greeted right now.
    #[must_use]
    pub(crate) fn is_connecting(&self) -> bool {
        self.pool
            .status()
            .iter()
            .any(|status| matches!(status.state, State::Connecting))
    }

    /// Resolves when every tool can be found by what it means, or after `limit`.
    pub(crate) async fn vectors_made(&self, limit: std::time::Duration) {
        self.index.vectors().wait(limit).await;
    }

    /// Ends what the tasks of the run leave open, after they have ended.
    pub(crate) async fn close(&self) {
        let statistics = self.statistics.clone();
        // Beside it, since a busy disk must not keep servers alive.
        let written = self.tasks.spawn_blocking(move || statistics.flush());
        let ((), _) = tokio::join!(self.pool.close(), written);
    }

    /// The result of `initialize` for a client of `revision`, which hears from now on what is told unasked.
    #[must_use]
    pub(crate) fn initialize(
        &self,
        client: &Arc<Client>,
        revision: Revision,
        capabilities: ClientCapabilities,
    ) -> Reply {
        self.audience.joined(client, capabilities);
        let view = self.views.from(client.workspace());
        let exposed = view.config().exposes_any();
        let instructions = self.instructions(&view);
        Reply::Result(definitions::initialize(revision, self.mode, exposed, &instructions).into())
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

    /// Tells `listener` of changes, as long as somebody holds it.
    pub(crate) fn listen(&self, listener: &Arc<Listener>) {
        self.audience.add(listener);
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
            self.audience.seen(caller.capabilities);
        }
        // What is the same for everybody is answered at once.
        let known = || self.views.from(caller.client.workspace());
        let view = match method {
            "tools/list" if self.mode == Mode::MetaTools => known(),
            "server/discover" | "ping" | "logging/setLevel" => known(),
            _ if self.may_fetch_roots(caller) => Box::pin(self.view_with_roots(caller)).await,
            _ => self.view_of(caller),
        };
        self.answer_method(&view, caller, method, params, line)
            .await
    }

    async fn answer_method(
        &self,
        view: &View,
        caller: &Caller,
        method: &str,
        params: &Object<'_>,
        line: &Bytes,
    ) -> Reply {
        let modern = caller.revision.is_modern();
        match method {
            "tools/list" if self.mode == Mode::Direct => {
                Box::pin(self.direct_tools(view, params, modern)).await
            }
            "tools/list" => {
                self.count_listing(view, caller);
                Reply::constant(DEFINITIONS.into(), modern)
            }
            "tools/call" => self.call(view, caller, params, line).await,
            "server/discover" => Reply::constant(self.discover(view).into(), true),
            "ping" if !modern => Reply::Result(Bytes::from_static(b"{}")),
            "logging/setLevel" if !modern => self.set_log_level(caller, params),
            _ => {
                let unknown = || {
                    Reply::error(
                        ErrorCode::METHOD_NOT_FOUND,
                        format!("unknown method `{method}`"),
                    )
                };
                Box::pin(self.answer_list(view, caller, method, params))
                    .await
                    .unwrap_or_else(unknown)
            }
        }
    }

    fn discover(&self, view: &View) -> String {
        definitions::discover(
            self.mode,
            view.config().exposes_any(),
            &self.instructions(view),
        )
    }

    async fn call(&self, view: &View, caller: &Caller, params: &Object<'_>, line: &Bytes) -> Reply {
        if self.mode == Mode::Direct {
            return Box::pin(self.direct_call(view, caller, params, line)).await;
        }
        let Some(name) = params.text("name") else {
            return Reply::error(
                ErrorCode::INVALID_PARAMS,
                "`name` must be a string".to_owned(),
            );
        };
        let arguments = match params.get("arguments").map(|raw| (raw, Object::parse(raw))) {
            None => Object::default(),
            Some((_, Ok(object))) => object,
            Some((raw, Err(_))) if raw.get() == "null" => Object::default(),
            Some((_, Err(_))) => {
                return Reply::error(
                    ErrorCode::INVALID_PARAMS,
                    "`arguments` must be an object".to_owned(),
                );
            }
        };
        match name.as_str() {
            "search_tools" => self.answers.counted(
                counting::Answer::Search,
                Box::pin(self.search_tools(view, &arguments)).await,
            ),
            "describe_tool" => self.answers.counted(
                counting::Answer::Description,
                Box::pin(self.describe_tool(view, &arguments)).await,
            ),
            // In a box too: it is moved once, and not again with each of the futures around it.
            "execute_tool" => {
                Box::pin(self.execute_tool(view, caller, &arguments, params, line)).await
            }
            "proxy_status" => {
                Box::pin(self.older(view, builtin::Tool::Status, &arguments, caller)).await
            }
            "proxy_refresh" => {
                Box::pin(self.older(view, builtin::Tool::Refresh, &arguments, caller)).await
            }
            _ => Reply::error(
                ErrorCode::INVALID_PARAMS,
                format!(
                    "unknown tool `{name}`: there are search_tools, describe_tool and execute_tool, which calls all others"
                ),
            ),
        }
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
        self.pool.set_log_level();
        Reply::Result(Bytes::from_static(b"{}"))
    }

    fn instructions(&self, view: &View) -> String {
        self.topics.instructions(&view.config(), self.mode)
    }
}
