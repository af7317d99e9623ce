//! Applies the configuration: the servers to list, and the tools to withhold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::listing::ListingTask;
use super::watched::Watched;
use super::{Inventory, Start, changes, policy, renewal};
use crate::catalog::{Failures, Key, Lists, ServerTools, Snapshot};
use crate::config::Config;
use crate::mcp::Revision;
use crate::proxy::callers::listener::ChangeNotice;
use crate::tool::ServerName;

/// The longest time for which reading the cache waits for a client's handshake.
const PATIENCE: Duration = Duration::from_millis(20);

/// The longest time for which the words of instructions wait for the index.
const INDEXED: Duration = Duration::from_secs(5);

/// How much later they are counted: a first search, which waited for the index as well, needs the processors.
const ANSWERED: Duration = Duration::from_millis(250);

/// The number of threads that read lists.
const READERS: usize = 4;

/// The servers that a configuration adds and removes. A server whose entry has changed is in both.
struct Difference {
    fresh: Vec<Watched>,
    gone: Vec<ServerName>,
    /// Whether no server was listed before.
    is_first: bool,
}

impl Inventory {
    /// Applies an edited configuration.
    pub(in crate::proxy) fn configure(self: &Arc<Self>, config: &Arc<Config>) {
        let before = self.callers.unscoped().config();
        let is_narrowed = !before.profile_names().eq(config.profile_names());
        match is_narrowed {
            false => self.catalog.reserve(config.names.iter().cloned()),
            true => self.catalog.reserve_only(config.names.clone()),
        }
        self.pins.require(policy::pinned(config));
        self.pool.configure(config);
        self.take_over(&self.callers.reachable(config));
        self.index.configure(&config.search);
        self.restrict(config);
        if is_narrowed {
            self.index.catalog_narrowed();
        }
        let before = self.callers.configure(config.clone());
        self.callers
            .lists_changed(changes::by_configuration(&before, config));
        if before.tools != config.tools
            || before.profile_rules != config.profile_rules
            || before.servers != config.servers
        {
            self.callers.lists_changed(&[ChangeNotice::Tools]);
        }
    }

    /// Withholds the tools that the rules of `config` deny.
    pub(super) fn restrict(&self, config: &Config) {
        self.catalog
            .restrict(Some(policy::rules(config, &self.pins)));
        self.note_topics(config);
        self.index.catalog_changed();
    }

    /// Stores the words of the tools that may be shown, for later instructions, and the extensions of their servers.
    fn note_topics(&self, config: &Config) {
        // Other sessions read them, and see other tools.
        if !config.has_profile_rules() {
            self.extensions.note(&self.catalog.snapshot());
            let (topics, catalog) = (self.topics.clone(), self.catalog.clone());
            let (index, tasks) = (self.index.clone(), self.tasks.clone());
            let turn = topics.take_turn();
            self.tasks.spawn(async move {
                let indexed = async {
                    index.wait(INDEXED).await;
                    tokio::time::sleep(ANSWERED).await;
                };
                let is_over = tasks.stop().run_until_cancelled(indexed).await.is_none();
                if !is_over && topics.is_latest(turn) {
                    drop(tasks.spawn_blocking(move || topics.note(&catalog, None)));
                }
            });
        }
    }

    /// Lists the servers that any client's workspace makes visible.
    pub(in crate::proxy) fn list_reachable(self: &Arc<Self>) {
        let config = self.callers.unscoped().config();
        self.take_over(&self.callers.reachable(&config));
    }

    /// Applies the servers of `config`: new and changed ones are read from the cache or listed; removed and disabled
    /// ones disappear.
    fn take_over(self: &Arc<Self>, config: &Config) {
        *self.max_age.lock() = config.max_age;
        self.catalog.update(|servers| {
            let tools = (self.own_tools)(config);
            servers.insert(tools.name().clone(), Arc::new(tools));
        });
        let difference = self.watch(config);
        let is_first = difference.is_first;
        let before = self.catalog.snapshot();
        // Servers that are no longer visible must not be seen by a request that comes before the task runs.
        let stays = |server: &ServerName| config.servers.contains_key(server);
        let removed = difference.gone.iter().filter(|server| !stays(server));
        let removed: Vec<&ServerName> = removed.collect();
        if !removed.is_empty() {
            self.catalog.update(|servers| {
                removed
                    .iter()
                    .for_each(|server| drop(servers.remove(*server)));
            });
        }
        self.loading.send_modify(|loading| *loading += 1);
        self.tasks.spawn(self.clone().read(difference, before));
        if is_first && self.start == Start::Serving {
            let stop = self.tasks.stop().clone();
            let renewal = renewal::run(self.clone());
            self.tasks.spawn(stop.run_until_cancelled_owned(renewal));
        }
    }

    /// Watches exactly the servers of `config`.
    fn watch(&self, config: &Config) -> Difference {
        let used = config.servers.iter().filter(|(_, entry)| !entry.disabled);
        let wanted: BTreeMap<&ServerName, String> = used
            .map(|(server, entry)| (server, self.pool.list_key(entry)))
            .collect();
        let mut watched = self.watched();
        let mut difference = Difference {
            fresh: Vec::new(),
            gone: Vec::new(),
            is_first: watched.is_empty(),
        };
        watched.retain(|server, known| {
            let stays = wanted.get(server) == Some(&known.key.configuration);
            if !stays {
                known.stop.cancel();
                difference.gone.push(server.clone());
            }
            stays
        });
        for (server, configuration) in wanted {
            watched.entry(server.clone()).or_insert_with(|| {
                let entry = config.servers.get(server);
                let server = server.clone();
                let key = Key {
                    server,
                    configuration,
                };
                let watched = Watched::new(key, entry);
                difference.fresh.push(watched.clone());
                watched
            });
        }
        difference
    }

    /// Updates the catalog from the cache, then starts to list. `before` is the catalog before the difference.
    async fn read(self: Arc<Self>, difference: Difference, before: Arc<Snapshot>) {
        let Difference {
            fresh,
            gone,
            is_first,
        } = difference;
        // With a limit, because some readers of the catalog do not announce themselves.
        let _ = tokio::time::timeout(PATIENCE, self.begun.cancelled()).await;
        let keys = fresh.iter().map(|watched| watched.key.clone()).collect();
        let Cached { known, doubtful } = self.load(keys).await;
        for Watched { key, watch, .. } in &fresh {
            let is_doubtful = doubtful.contains(&key.server);
            watch.is_doubtful.store(is_doubtful, Ordering::Relaxed);
        }
        let modern = known
            .iter()
            .filter(|known| known.revision().is_some_and(Revision::is_modern));
        modern.for_each(|known| self.pool.remember_modern(known.name()));
        let snapshot = self.catalog.update(|servers| {
            let has_ended = |server: &ServerName| {
                let mut fresh = fresh.iter();
                fresh.any(|watched| watched.key.server == *server && watched.stop.is_cancelled())
            };
            for server in gone.iter().filter(|server| !has_ended(server)) {
                servers.remove(server);
            }
            // A later configuration may have removed or changed an entry meanwhile.
            let known = known.into_iter().filter(|tools| !has_ended(tools.name()));
            servers.extend(known.map(|tools| (tools.name().clone(), tools)));
        });
        self.note_topics(&self.callers.unscoped().config());
        self.index.catalog_changed();
        self.loading.send_modify(|loading| *loading -= 1);
        // At the start, no client has seen an earlier state.
        if !is_first {
            let fresh = fresh.iter().map(|watched| &watched.key.server);
            let others = gone.iter().chain(fresh);
            let changes = others.flat_map(|server| changes::by_listing(server, &before, &snapshot));
            self.callers.lists_changed(&changes.collect::<Vec<_>>());
        }
        for Watched {
            key, watch, stop, ..
        } in fresh
        {
            if self.start == Start::Serving && snapshot.server(&key.server).is_none() {
                let _ = watch.begin();
            }
            let listing = ListingTask {
                inventory: self.clone(),
                server: key.server,
                watch,
            };
            self.tasks.spawn(listing.run(stop));
        }
    }

    /// Reads the pins and the lists of these servers, on several threads: a first search waits for them.
    async fn load(&self, keys: Vec<Key>) -> Cached {
        let (pins, all) = (self.pins.clone(), self.keys());
        let pinned = self.tasks.spawn_blocking(move || pins.load(all.iter()));
        let parts = keys.chunks(keys.len().div_ceil(READERS).max(1));
        let parts: Vec<_> = parts
            .map(|keys| {
                let (keys, lists) = (keys.to_vec(), self.lists.clone());
                let failures = self.failures.clone();
                self.tasks
                    .spawn_blocking(move || Cached::load(keys, &lists, &failures))
            })
            .collect();
        let mut cached = Cached::default();
        for part in parts {
            let Cached { known, doubtful } = part.await.unwrap_or_default();
            cached.known.extend(known);
            cached.doubtful.extend(doubtful);
        }
        // Tools are shown when it is known which of them wait.
        let _ = pinned.await;
        let lists = self.lists.clone();
        drop(self.tasks.spawn_blocking(move || lists.tidy()));
        cached
    }
}

/// The content of the cache for some servers.
#[derive(Default)]
struct Cached {
    known: Vec<Arc<ServerTools>>,
    /// The servers without a list that failed to list their tools a short time ago.
    doubtful: Vec<ServerName>,
}

impl Cached {
    fn load(keys: Vec<Key>, lists: &Lists, failures: &Failures) -> Self {
        let mut cached = Self::default();
        for key in keys {
            match lists.load(&key) {
                Some(known) => cached.known.push(known),
                None if failures.is_fresh(&key) => cached.doubtful.push(key.server),
                None => {}
            }
        }
        cached
    }
}
