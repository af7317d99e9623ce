//! The MCP server that clients see: three tools in front of all the others.
//!
//! A [`Proxy`] joins catalog, search and upstream; it serves any number of sessions, and keeps nothing of any of them.
//! What a session needs of its own comes with each request, in a [`Caller`].
//!
//! *Invariant*: nothing here reads from or writes to a transport.

mod answer;
pub mod arguments;
mod builtin;
mod definitions;
mod describe_tool;
mod error;
mod execute_tool;
mod index;
mod instructions;
pub mod projection;
mod refresh;
mod reply;
mod search_tools;
mod status;

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use serde_json::value::RawValue;

pub use definitions::DEFINITIONS;
pub use execute_tool::{Call, Failure};
pub use refresh::{Progress, Refresh, Start};
pub use reply::Reply;
pub use search_tools::{Answer, Found};
pub use status::{ServerReport, Status};

use crate::catalog::{Cache, Catalog, Snapshot};
use crate::config::Config;
use crate::mcp::{ErrorCode, Object, Outbox, Revision};
use crate::results::Results;
use crate::search::Search;
use crate::shutdown::Tasks;
use crate::upstream::{Environment, Pool, State};
use index::Index;
use instructions::Topics;
use projection::Projection;

/// Everything behind the three tools.
#[derive(Debug)]
pub struct Proxy {
    config: RwLock<Arc<Config>>,
    catalog: Arc<Catalog>,
    pool: Arc<Pool>,
    index: Arc<Index>,
    refresh: Arc<Refresh>,
    topics: Arc<Topics>,
    schemas: execute_tool::Schemas,
    projection: Projection,
    results: Results,
    tasks: Tasks,
}

/// Who asks: what a request says of its session.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The revision the request is in.
    pub revision: Revision,
    /// Where notifications about the request go.
    pub outbox: Outbox,
}

/// Where a proxy keeps what outlives it.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Tool lists and search indexes; `None` keeps them in memory.
    pub cache: Option<std::path::PathBuf>,
    /// The servers' logs; `None` keeps none.
    pub logs: Option<std::path::PathBuf>,
    /// Results that were too large to be shown; a temporary directory without it.
    pub results: Option<std::path::PathBuf>,
}

impl Proxy {
    /// A proxy for the servers of `config`. It knows what the cache knows as soon as that is read, in the background.
    #[must_use]
    pub fn new(
        config: Config,
        places: &Places,
        variables: crate::config::Environment,
        tasks: &Tasks,
        start: Start,
    ) -> Arc<Self> {
        let cache = places.cache.as_deref();
        let catalog = Arc::new(Catalog::new());
        let search = Search::new(cache.map(|cache| cache.join("search")));
        let index = Index::new(catalog.clone(), search, tasks.clone());
        let topics = Arc::new(Topics::load(cache));
        Arc::new_cyclic(|proxy: &std::sync::Weak<Self>| {
            let proxy = proxy.clone();
            let changed = move |server: &crate::tool::ServerName| {
                if let Some(proxy) = proxy.upgrade() {
                    proxy.refresh.poke(server);
                }
            };
            let environment = Environment::new(tasks.clone(), variables, places.logs.clone());
            let pool = Arc::new(Pool::new(environment, Arc::new(changed)));
            pool.configure(&config);
            let refresh = Refresh::new(
                refresh::Parts {
                    pool: pool.clone(),
                    catalog: catalog.clone(),
                    cache: Arc::new(Cache::new(cache)),
                    index: index.clone(),
                    topics: topics.clone(),
                    tasks: tasks.clone(),
                },
                start,
            );
            refresh.configure(&config);
            Self {
                config: RwLock::new(Arc::new(config)),
                catalog,
                pool,
                index,
                refresh,
                topics,
                schemas: execute_tool::Schemas::default(),
                projection: Projection::default(),
                results: Results::new(&places.results.clone().unwrap_or_else(|| std::env::temp_dir().join("mcpzip"))),
                tasks: tasks.clone(),
            }
        })
    }

    /// Takes over an edited configuration.
    pub fn configure(&self, config: Config) {
        self.pool.configure(&config);
        self.refresh.configure(&config);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is known of the servers' tools now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.catalog.snapshot()
    }

    /// The listing of servers.
    #[must_use]
    pub fn refresh(&self) -> &Arc<Refresh> {
        &self.refresh
    }

    /// Whether a server is being started or greeted right now.
    #[must_use]
    pub fn is_connecting(&self) -> bool {
        self.pool.status().iter().any(|status| matches!(status.state, State::Connecting))
    }

    /// Ends what the tasks of the run leave open, after they have ended.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// The result of `initialize` for a client of `revision`.
    #[must_use]
    pub fn initialize(&self, revision: Revision) -> Reply {
        let body = definitions::initialize(revision, &self.instructions());
        Reply::Result(body.into())
    }

    /// Answers a request; `line` is what `params` is a part of.
    pub async fn handle(&self, caller: &Caller, method: &str, params: Option<&RawValue>, line: &Bytes) -> Reply {
        let modern = caller.revision.is_modern();
        match method {
            "tools/list" => Reply::cacheable(DEFINITIONS.into(), modern),
            "tools/call" => self.call(caller, params, line).await,
            "server/discover" => Reply::cacheable(definitions::discover(&self.instructions()).into(), true),
            "ping" if !modern => Reply::Result(Bytes::from_static(b"{}")),
            _ => Reply::error(ErrorCode::METHOD_NOT_FOUND, format!("unknown method `{method}`")),
        }
    }

    async fn call(&self, caller: &Caller, params: Option<&RawValue>, line: &Bytes) -> Reply {
        let params = params.and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
        let Some(name) = params.text("name") else {
            return Reply::error(ErrorCode::INVALID_PARAMS, "`name` must be a string".to_owned());
        };
        let arguments = match params.get("arguments").map(|raw| (raw, Object::parse(raw))) {
            None => Object::default(),
            Some((_, Ok(object))) => object,
            Some((raw, Err(_))) if raw.get() == "null" => Object::default(),
            Some((_, Err(_))) => {
                return Reply::error(ErrorCode::INVALID_PARAMS, "`arguments` must be an object".to_owned());
            }
        };
        match name.as_str() {
            "search_tools" => self.search_tools(&arguments).await,
            "describe_tool" => self.describe_tool(&arguments).await,
            "execute_tool" => self.execute_tool(caller, &arguments, &params, line).await,
            "proxy_status" => self.builtin(builtin::Tool::Status, &arguments).await,
            "proxy_refresh" => self.builtin(builtin::Tool::Refresh, &arguments).await,
            _ => Reply::error(
                ErrorCode::INVALID_PARAMS,
                format!(
                    "unknown tool `{name}`: there are search_tools, describe_tool and execute_tool, which calls all others"
                ),
            ),
        }
    }

    fn instructions(&self) -> String {
        self.topics.instructions(&self.config())
    }
}
