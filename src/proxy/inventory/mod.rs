//! Keeps the catalog what the servers say it is.
//!
//! One task per server lists its tools: at the start if nothing is known of it, when the server says that they changed,
//! when somebody asks, and again after a failure, later each time. What a server that failed had before stays. What is
//! known is not started: old lists are renewed in the background.

mod document;
mod index;
mod listing;
mod policy;
mod renewal;
mod status;
mod topics;
mod vectors;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::index::Index;
use self::listing::Listing;
pub(crate) use self::status::{ServerReport, Status, counted};
use self::topics::Topics;
pub(crate) use self::vectors::Coverage;
use super::Directories;
use super::callers::Callers;
use super::callers::listener::Change;
use super::view::View;

use crate::catalog::{
    Cache, Catalog, Changes, Entries, Failure, Failures, Key, Pins, ServerTools, Snapshot, Tool,
};
use crate::config::{Config, Management};
use crate::mcp::Revision;
use crate::search::Search;
use crate::shutdown::Tasks;
use crate::tool::ServerName;
use crate::upstream::Pool;

/// Servers that begin to list side by side; each may be a process that starts.
const SIDE_BY_SIDE: usize = 16;

/// How long the cache is left alone for a client's handshake at most.
const PATIENCE: Duration = Duration::from_millis(20);

/// When servers are listed without being asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Those of which the cache knows nothing, soon after the start, and those whose list is old, later.
    Serving,
    /// None: a command says which it needs.
    Nothing,
}

/// What is known of a tool that its pin withholds.
pub(super) enum PinState {
    /// Its definition has changed.
    Changed,
    /// It cannot be compared, for this reason or because its server was not listed yet.
    Unknown(Option<String>),
}

/// How far the listing of one server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It was not asked in this run.
    NotAsked,
    /// It is being asked.
    UnderWay,
    /// It answered.
    Listed,
    /// It did not, with the reason; it will be asked again.
    Failed(String),
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
    pub(super) pool: Arc<Pool>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) callers: Arc<Callers>,
    pub(super) directories: &'a Directories,
    pub(super) own_tools: fn(Management) -> ServerTools,
    pub(super) tasks: &'a Tasks,
}

#[derive(Debug)]
struct Watched {
    key: Key,
    watch: Arc<Watch>,
    stop: CancellationToken,
}

/// The listing of one server, as its task and those who wait for it see it.
#[derive(Debug)]
struct Watch {
    asked: Notify,
    /// A client waits for this listing.
    urgent: Notify,
    /// The server is started for the next listing alone, and ends after it.
    is_brief: AtomicBool,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone)]
struct State {
    progress: Progress,
    /// How many listings are through, failed ones included.
    rounds: u64,
    /// When it was first asked for in this run.
    since: Option<Instant>,
}

impl Watch {
    fn new() -> Arc<Self> {
        let state = State {
            progress: Progress::NotAsked,
            rounds: 0,
            since: None,
        };
        Arc::new(Self {
            asked: Notify::new(),
            urgent: Notify::new(),
            is_brief: AtomicBool::new(false),
            state: watch::Sender::new(state),
        })
    }

    /// Asks for a first listing, unless that was done before.
    fn begin(&self) {
        let is_new = self.state.send_if_modified(|state| {
            let is_new = state.progress == Progress::NotAsked;
            if is_new {
                state.progress = Progress::UnderWay;
                state.since = Some(Instant::now());
            }
            is_new
        });
        if is_new {
            self.asked.notify_one();
        }
    }

    /// Whether it was asked for, and never came through in this run.
    fn is_first(&self) -> bool {
        let state = self.state.borrow();
        state.progress == Progress::UnderWay && state.rounds == 0
    }
}

impl Inventory {
    /// The servers of the configuration in force. What the cache knows of them is read in the background.
    pub(super) fn new(parts: Parts<'_>, start: Start) -> Arc<Self> {
        let Parts {
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

    /// Takes over an edited configuration.
    pub(super) fn configure(self: &Arc<Self>, config: Config) {
        self.catalog.reserve(config.names.iter().cloned());
        self.pins.require(policy::pinned(&config));
        self.pool.configure(&config);
        self.take_over(&self.callers.reachable(&config));
        self.index.configure(&config.search);
        self.restrict(&config);
        let config = Arc::new(config);
        let before = self.callers.configure(config.clone());
        self.callers.lists_changed(exposed_lists(&before, &config));
        if before.tools != config.tools || before.servers != config.servers {
            self.callers.lists_changed(&[Change::Tools]);
        }
    }

    /// Withholds the tools that the rules of `config` forbid, and no others.
    fn restrict(&self, config: &Config) {
        let mode = self.callers.mode();
        self.catalog
            .restrict(Some(policy::rules(config, &self.pins, mode)));
        self.index.catalog_changed();
    }

    /// Restricts tools anew, as other pins are known, and tells clients.
    fn pins_changed(&self) {
        self.restrict(&self.callers.unscoped().config());
        self.callers.lists_changed(&[Change::Tools]);
    }

    /// Lists the servers that are visible from the workspace of any client.
    pub(super) fn list_reachable(self: &Arc<Self>) {
        let config = self.callers.unscoped().config();
        self.take_over(&self.callers.reachable(&config));
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

    /// Takes over the servers of `config`: new and changed ones are read from the cache, or listed, removed and disabled
    /// ones disappear.
    fn take_over(self: &Arc<Self>, config: &Config) {
        *self.max_age.lock() = config.max_age;
        self.catalog.update(|servers| {
            let tools = (self.own_tools)(config.management);
            servers.insert(tools.name().clone(), Arc::new(tools));
        });
        let wanted: BTreeMap<ServerName, Key> = config
            .servers
            .iter()
            .filter(|(_, entry)| !entry.disabled)
            .map(|(server, entry)| {
                (
                    server.clone(),
                    Key {
                        server: server.clone(),
                        configuration: entry.hash.to_string(),
                    },
                )
            })
            .collect();
        let mut fresh = Vec::new();
        let mut gone = Vec::new();
        let is_first;
        {
            let mut watched = self.watched();
            is_first = watched.is_empty();
            watched.retain(|server, known| {
                let stays = wanted
                    .get(server)
                    .is_some_and(|key| key.configuration == known.key.configuration);
                if !stays {
                    known.stop.cancel();
                    gone.push(server.clone());
                }
                stays
            });
            for (server, key) in wanted {
                watched.entry(server).or_insert_with(|| {
                    let watched = Watched {
                        key,
                        watch: Watch::new(),
                        stop: CancellationToken::new(),
                    };
                    fresh.push((
                        watched.key.clone(),
                        watched.watch.clone(),
                        watched.stop.clone(),
                    ));
                    watched
                });
            }
        }
        self.loading.send_modify(|loading| *loading += 1);
        let inventory = self.clone();
        self.tasks.spawn(async move {
            // Soon in any case: not everybody who looks at the catalog says so before.
            let _ = tokio::time::timeout(PATIENCE, inventory.begun.cancelled()).await;
            let keys: Vec<Key> = fresh.iter().map(|(key, ..)| key.clone()).collect();
            let known = inventory.load(keys).await;
            let modern = known
                .iter()
                .filter(|known| known.revision().is_some_and(Revision::is_modern));
            modern.for_each(|known| inventory.pool.remember_modern(known.name()));
            let before = inventory.catalog.snapshot();
            let snapshot = inventory.catalog.update(|servers| {
                gone.iter().for_each(|server| drop(servers.remove(server)));
                servers.extend(
                    known
                        .into_iter()
                        .map(|tools| (tools.name().clone(), Arc::new(tools))),
                );
            });
            inventory.index.catalog_changed();
            inventory.loading.send_modify(|loading| *loading -= 1);
            // At the start there is nothing that a client could have seen before.
            if !is_first {
                let others = gone.iter().chain(fresh.iter().map(|(key, ..)| &key.server));
                inventory.callers.lists_changed(
                    &others
                        .flat_map(|server| changes(server, &before, &snapshot))
                        .collect::<Vec<_>>(),
                );
            }
            for (key, watch, stop) in fresh {
                if inventory.start == Start::Serving && snapshot.server(&key.server).is_none() {
                    watch.begin();
                }
                let listing = Listing {
                    inventory: inventory.clone(),
                    server: key.server,
                    watch,
                };
                inventory.tasks.spawn(listing.run(stop));
            }
        });
        if is_first && self.start == Start::Serving {
            let stop = self.tasks.stop().clone();
            let renewal = renewal::run(self.clone());
            self.tasks.spawn(stop.run_until_cancelled_owned(renewal));
        }
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

    /// Takes over what another process has noticed or approved of changed tools, if it has.
    pub(crate) fn read_pins(&self) {
        if self.pins.load_again(self.keys().iter()) {
            self.pins_changed();
        }
    }

    /// The tools of a server that are not what they were when they were first seen.
    #[must_use]
    pub(crate) fn changed_tools(&self, server: &ServerName) -> Changes {
        self.pins.changes(server)
    }

    /// Why a tool is withheld whose definition may have changed since it was first seen.
    pub(super) fn pin_state(&self, tool: &Tool) -> PinState {
        let server = tool.server().name();
        if self.pins.is_changed(server, tool.entry()) {
            PinState::Changed
        } else {
            PinState::Unknown(self.pins.fault(server))
        }
    }

    /// Takes tools of a server as they are in `seen` for what they should be. Only ever called for a person.
    ///
    /// # Errors
    /// When that cannot be kept.
    pub(crate) fn approve(&self, server: &ServerName, seen: &Changes) -> std::io::Result<()> {
        if let Some((key, _)) = self.key(server) {
            self.pins.approve(&key, seen)?;
        }
        self.pins_changed();
        Ok(())
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

    async fn load(&self, keys: Vec<Key>) -> Vec<ServerTools> {
        let (cache, pins, all) = (self.cache.clone(), self.pins.clone(), self.keys());
        let load = move || {
            pins.load(all.iter());
            keys.iter().filter_map(|key| cache.load(key)).collect()
        };
        let known = self.tasks.spawn_blocking(load).await.unwrap_or_default();
        let cache = self.cache.clone();
        drop(self.tasks.spawn_blocking(move || cache.tidy()));
        known
    }

    fn watched(&self) -> parking_lot::MutexGuard<'_, BTreeMap<ServerName, Watched>> {
        self.watched.lock()
    }
}

/// Which lists look different because the configuration shows others.
fn exposed_lists(before: &Config, now: &Config) -> &'static [Change] {
    let shown = |config: &Config| -> Vec<_> {
        config
            .servers
            .keys()
            .map(|server| config.exposes(server))
            .collect()
    };
    if shown(before) == shown(now) {
        &[]
    } else {
        &[Change::Prompts, Change::Resources]
    }
}

/// Which lists are others for `server` now.
fn changes(server: &ServerName, before: &Snapshot, now: &Snapshot) -> Vec<Change> {
    let differs =
        |list: fn(&ServerTools) -> &Entries| match (before.server(server), now.server(server)) {
            (Some(before), Some(now)) => !list(before).is_same(list(now)),
            (Some(only), None) | (None, Some(only)) => !list(only).is_empty(),
            (None, None) => false,
        };
    let tools = |snapshot: &Snapshot| -> Vec<_> {
        snapshot
            .server(server)
            .iter()
            .flat_map(|known| known.entries())
            .map(|tool| tool.hash)
            .collect()
    };
    let mut changes = Vec::new();
    if tools(before) != tools(now) {
        changes.push(Change::Tools);
    }
    if differs(ServerTools::prompts) {
        changes.push(Change::Prompts);
    }
    if differs(ServerTools::resources) || differs(ServerTools::templates) {
        changes.push(Change::Resources);
    }
    changes
}
