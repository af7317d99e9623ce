//! Keeps the catalog what the servers say it is.
//!
//! One task per server lists its tools: at the start if nothing is known of it, when the server says that they changed,
//! when somebody asks, and again after a failure, later each time. What a server that failed had before stays. What is
//! known is not started: old lists are renewed in the background.

mod changes;
mod configuration;
mod document;
mod index;
mod listing;
mod pins;
mod policy;
mod renewal;
mod status;
mod topics;
mod vectors;
mod waiting;
mod watched;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::index::Index;
pub(in crate::proxy) use self::pins::PinState;
pub(crate) use self::status::{ServerReport, Status, counted};
use self::topics::Topics;
pub(crate) use self::vectors::Coverage;
pub(crate) use self::watched::Progress;
use self::watched::Watched;
use super::Directories;
use super::callers::Callers;
use super::ledger::Ledger;
use super::view::View;

use crate::catalog::{Cache, Catalog, Failure, Failures, Key, Pins, ServerTools, Snapshot, Tool};
use crate::config::Management;
use crate::search::Search;
use crate::shutdown::Tasks;
use crate::tool::ServerName;
use crate::upstream::Pool;

/// Servers that begin to list side by side; each may be a process that starts.
const SIDE_BY_SIDE: usize = 16;

/// When servers are listed without being asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Those of which the cache knows nothing, soon after the start, and those whose list is old, later.
    Serving,
    /// None: a command says which it needs.
    Nothing,
}

/// What is known of the servers, and the listing that keeps it current.
#[derive(Debug)]
pub(crate) struct Inventory {
    pool: Arc<Pool>,
    callers: Arc<Callers>,
    catalog: Arc<Catalog>,
    cache: Arc<Cache>,
    failures: Arc<Failures>,
    pins: Arc<Pins>,
    ledger: Arc<Ledger>,
    index: Arc<Index>,
    topics: Arc<Topics>,
    /// The entry of our own server in the catalog.
    own_tools: fn(Management) -> ServerTools,
    start: Start,
    permits: Arc<Semaphore>,
    watched: Mutex<BTreeMap<ServerName, Watched>>,
    /// How old a list may be (`catalog.max_age`).
    max_age: Mutex<Duration>,
    /// When a listing last came through.
    came: watch::Sender<Option<Instant>>,
    /// Counts what the first reading of the cache has yet to do.
    loading: watch::Sender<usize>,
    /// The cache may be read.
    begun: CancellationToken,
    /// Cancelled once the client had its first answer, or nobody waits for one.
    released: CancellationToken,
    tasks: Tasks,
}

/// What an inventory works with.
pub(super) struct Parts<'a> {
    pub(super) ledger: Arc<Ledger>,
    pub(super) pool: Arc<Pool>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) callers: Arc<Callers>,
    pub(super) directories: &'a Directories,
    pub(super) own_tools: fn(Management) -> ServerTools,
    pub(super) tasks: &'a Tasks,
}

impl Inventory {
    /// The servers of the configuration in force. What the cache knows of them is read in the background.
    pub(super) fn new(parts: Parts<'_>, start: Start) -> Arc<Self> {
        let Parts {
            ledger,
            pool,
            catalog,
            callers,
            directories,
            own_tools,
            tasks,
        } = parts;
        let config = callers.unscoped().config();
        let cache = directories.cache.as_deref();
        let pins = Arc::new(Pins::new(directories.pins.as_deref()));
        catalog.reserve(config.names.iter().cloned());
        pins.require(policy::pinned(&config));
        catalog.restrict(Some(policy::rules(&config, &pins, callers.mode())));
        let search = Search::new(cache.map(|cache| cache.join("search")));
        #[cfg(feature = "semantic")]
        let search = search.with_embedder(Arc::new(crate::search::Bundled::default()));
        search.set_semantic(config.search.semantic);
        pool.configure(&config);
        let inventory = Arc::new(Self {
            pool,
            index: Index::new(catalog.clone(), search, tasks.clone()),
            catalog,
            cache: Arc::new(Cache::new(cache)),
            failures: Arc::new(Failures::new(cache)),
            pins,
            ledger,
            topics: Arc::new(Topics::load(cache)),
            callers,
            own_tools,
            start,
            permits: Arc::new(Semaphore::new(SIDE_BY_SIDE)),
            watched: Mutex::default(),
            max_age: Mutex::new(Duration::MAX),
            came: watch::Sender::new(None),
            loading: watch::Sender::new(0),
            begun: CancellationToken::new(),
            released: CancellationToken::new(),
            tasks: tasks.clone(),
        });
        inventory.list_reachable();
        inventory
    }

    /// What is known now of all servers. A client's part of it is in its [`View`].
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.catalog.snapshot()
    }

    /// The search index.
    pub(super) fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// What the handshake says of the servers that `view` shows.
    pub(super) fn instructions(&self, view: &View) -> String {
        self.topics.instructions(&view.config(), view.mode())
    }

    /// The tool's definition; one that the cache has lost is asked for again.
    pub(super) fn definition(&self, tool: &Tool) -> Option<Box<RawValue>> {
        tool.json()
            .inspect_err(|error| {
                tracing::warn!(%error, "the server is listed again");
                self.discard(tool.server().name());
            })
            .ok()
    }

    /// Lets the reading of the cache begin, which the answer to a handshake does not need, and should not have beside it.
    pub(crate) fn begin(&self) {
        self.begun.cancel();
    }

    /// Lets the listing begin: starting many processes takes time that the client's first answer must not wait for.
    pub(crate) fn release(&self) {
        self.begin();
        self.released.cancel();
    }

    /// Asks for a new list of one server, soon.
    pub(crate) fn poke(&self, server: &ServerName) {
        if let Some(watched) = self.watched().get(server) {
            watched.watch.asked.notify_one();
        }
    }

    /// Whether the cache is read.
    #[must_use]
    pub(crate) fn is_loaded(&self) -> bool {
        *self.loading.borrow() == 0
    }

    /// Resolves when the cache is read.
    pub(crate) async fn loaded(&self) {
        self.begin();
        let mut loading = self.loading.subscribe();
        loading
            .wait_for(|loading| *loading == 0)
            .await
            .expect("the sender lives as long as we do");
    }

    /// How far each server's listing is.
    #[must_use]
    pub(crate) fn progress(&self) -> BTreeMap<ServerName, Progress> {
        self.watched()
            .iter()
            .map(|(name, watched)| (name.clone(), watched.watch.state.borrow().progress.clone()))
            .collect()
    }

    /// Forgets a server's list that turned out unreadable, and asks again.
    pub(crate) fn discard(&self, server: &ServerName) {
        if let Some(watched) = self.watched().get(server) {
            self.cache.discard(&watched.key);
            watched.watch.asked.notify_one();
        }
    }

    /// The servers whose last listing failed, by what is on disk.
    pub(super) async fn last_failures(&self) -> BTreeMap<ServerName, Failure> {
        let (failures, keys) = (self.failures.clone(), self.keys());
        let load = move || {
            let loaded = |key: Key| failures.load(&key).map(|failure| (key.server, failure));
            keys.into_iter().filter_map(loaded).collect()
        };
        self.tasks.spawn_blocking(load).await.unwrap_or_default()
    }

    /// The entry of `server` that is in force, and the token that is cancelled once it is not.
    fn key(&self, server: &ServerName) -> Option<(Key, CancellationToken)> {
        let watched = self.watched();
        let known = watched.get(server)?;
        Some((known.key.clone(), known.stop.clone()))
    }

    fn keys(&self) -> Vec<Key> {
        self.watched()
            .values()
            .map(|watched| watched.key.clone())
            .collect()
    }

    fn watched(&self) -> parking_lot::MutexGuard<'_, BTreeMap<ServerName, Watched>> {
        self.watched.lock()
    }
}
