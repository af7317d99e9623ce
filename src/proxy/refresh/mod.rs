//! Keeps the catalog what the servers say it is.
//!
//! One task per server lists its tools: at the start if nothing is known of it, when the server says that they changed,
//! when somebody asks, and again after a failure, later each time. What a server that failed had before stays. What is
//! known is not started: old lists are renewed in the background.

mod document;
pub(in crate::proxy) mod index;
mod listing;
pub(in crate::proxy) mod policy;
mod renewal;
pub(in crate::proxy) mod vectors;
mod waiting;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::index::Index;
use self::listing::Listing;
use super::{Change, Proxy, builtin};
use crate::catalog::{
    Cache, Catalog, Changes, Entries, Failure, Failures, Key, Pins, ServerTools, Snapshot,
};
use crate::config::Config;
use crate::mcp::Revision;
use crate::proxy::tools::instructions::Topics;
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

/// The listing of all servers.
#[derive(Debug)]
pub(crate) struct Refresh {
    parts: Parts,
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
}

/// What listing works on.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) pool: Arc<Pool>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) cache: Arc<Cache>,
    pub(super) failures: Arc<Failures>,
    pub(super) pins: Arc<Pins>,
    pub(super) index: Arc<Index>,
    pub(super) topics: Arc<Topics>,
    /// Who tells the clients what changed.
    pub(super) proxy: Weak<Proxy>,
    pub(super) tasks: Tasks,
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

impl Refresh {
    pub(super) fn new(parts: Parts, start: Start) -> Arc<Self> {
        Arc::new(Self {
            parts,
            start,
            permits: Arc::new(Semaphore::new(SIDE_BY_SIDE)),
            watched: Mutex::default(),
            max_age: Mutex::new(Duration::MAX),
            came: watch::Sender::new(None),
            loading: watch::Sender::new(0),
            begun: CancellationToken::new(),
            released: CancellationToken::new(),
        })
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
    pub(super) fn configure(self: &Arc<Self>, config: &Config) {
        *self.max_age.lock() = config.max_age;
        self.parts.catalog.update(|servers| {
            let tools = builtin::tools(config.management);
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
        let refresh = self.clone();
        self.parts.tasks.spawn(async move {
            // Soon in any case: not everybody who looks at the catalog says so before.
            let _ = tokio::time::timeout(PATIENCE, refresh.begun.cancelled()).await;
            let keys: Vec<Key> = fresh.iter().map(|(key, ..)| key.clone()).collect();
            let known = refresh.load(keys).await;
            let modern = known
                .iter()
                .filter(|known| known.revision().is_some_and(Revision::is_modern));
            modern.for_each(|known| refresh.parts.pool.remember_modern(known.name()));
            let before = refresh.parts.catalog.snapshot();
            let snapshot = refresh.parts.catalog.update(|servers| {
                gone.iter().for_each(|server| drop(servers.remove(server)));
                servers.extend(
                    known
                        .into_iter()
                        .map(|tools| (tools.name().clone(), Arc::new(tools))),
                );
            });
            refresh.parts.index.catalog_changed();
            refresh.loading.send_modify(|loading| *loading -= 1);
            // At the start there is nothing that a client could have seen before.
            if !is_first {
                let others = gone.iter().chain(fresh.iter().map(|(key, ..)| &key.server));
                refresh.tell(
                    &others
                        .flat_map(|server| changes(server, &before, &snapshot))
                        .collect::<Vec<_>>(),
                );
            }
            for (key, watch, stop) in fresh {
                if refresh.start == Start::Serving && snapshot.server(&key.server).is_none() {
                    watch.begin();
                }
                let listing = Listing {
                    refresh: refresh.clone(),
                    server: key.server,
                    watch,
                };
                refresh.parts.tasks.spawn(listing.run(stop));
            }
        });
        if is_first && self.start == Start::Serving {
            let stop = self.parts.tasks.stop().clone();
            let renewal = renewal::run(self.clone());
            self.parts
                .tasks
                .spawn(stop.run_until_cancelled_owned(renewal));
        }
    }

    /// Tells the clients.
    fn tell(&self, changes: &[Change]) {
        if let Some(proxy) = self.parts.proxy.upgrade() {
            proxy.lists_changed(changes);
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
            self.parts.cache.discard(&watched.key);
            watched.watch.asked.notify_one();
        }
    }

    /// Reads what is known of changed tools, if it was written since.
    pub(super) fn read_pins(&self) -> bool {
        self.parts.pins.load_again(self.keys().iter())
    }

    /// The servers whose last listing failed, by what is on disk.
    pub(super) async fn last_failures(&self) -> BTreeMap<ServerName, Failure> {
        let (failures, keys) = (self.parts.failures.clone(), self.keys());
        let load = move || {
            let loaded = |key: Key| failures.load(&key).map(|failure| (key.server, failure));
            keys.into_iter().filter_map(loaded).collect()
        };
        self.parts
            .tasks
            .spawn_blocking(load)
            .await
            .unwrap_or_default()
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

    /// Takes tools of a server for what they should be.
    pub(super) fn approve(&self, server: &ServerName, seen: &Changes) -> std::io::Result<()> {
        self.key(server)
            .map_or(Ok(()), |(key, _)| self.parts.pins.approve(&key, seen))
    }

    async fn load(&self, keys: Vec<Key>) -> Vec<ServerTools> {
        let (cache, pins, all) = (
            self.parts.cache.clone(),
            self.parts.pins.clone(),
            self.keys(),
        );
        let load = move || {
            pins.load(all.iter());
            keys.iter().filter_map(|key| cache.load(key)).collect()
        };
        let known = self
            .parts
            .tasks
            .spawn_blocking(load)
            .await
            .unwrap_or_default();
        let cache = self.parts.cache.clone();
        drop(self.parts.tasks.spawn_blocking(move || cache.tidy()));
        known
    }

    fn watched(&self) -> parking_lot::MutexGuard<'_, BTreeMap<ServerName, Watched>> {
        self.watched.lock()
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
