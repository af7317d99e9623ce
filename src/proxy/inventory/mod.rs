//! The inventory: keeps the catalog equal to the servers' lists.
//!
//! One task per server lists its tools: at the start if the cache has no list, after a change notification, on
//! request, and again after a failure, with growing delays. A failed server keeps its previous tools. Servers with a
//! list are not started; old lists are renewed in the background.

mod changes;
mod configuration;
mod document;
mod findings;
mod idle;
mod index;
mod known_extensions;
mod listing;
mod pins;
mod policy;
mod renewal;
mod shared;
mod size;
mod skills;
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

pub(in crate::proxy) use self::changes::hash_of;
use self::findings::KeptFindings;
pub(crate) use self::findings::neighbours;
use self::index::Index;
use self::known_extensions::KnownExtensions;
pub(in crate::proxy) use self::pins::{PinState, waiting_text};
pub(crate) use self::shared::SharedLists;
pub(in crate::proxy) use self::size::ToolsSize;
use self::skills::KnownSkills;
pub(in crate::proxy) use self::skills::{KnownSkill, SkillGuard};
pub(in crate::proxy) use self::status::Reader;
pub(crate) use self::status::{ServerReport, Status, counted};
use self::topics::Topics;
pub(crate) use self::vectors::{Coverage, VectorFiles};
pub(crate) use self::watched::Progress;
use self::watched::Watched;
use super::Directories;
use super::callers::Callers;
use super::ledger::Ledger;
use super::view::{Mode, View};

use crate::catalog::{Catalog, Failure, Failures, Key, Lists, Pins, ServerTools, Snapshot, Tool};
use crate::config::Config;
use crate::events::Source;
use crate::mcp::Others;
use crate::notify::Notifier;
use crate::shutdown::Tasks;
use crate::statistics::Statistics;
use crate::telemetry;
use crate::text::ago;
use crate::tool::{ServerName, ToolName};
use crate::upstream::Pool;

/// The number of servers that begin to list in parallel; each may start a process.
const SIDE_BY_SIDE: usize = 16;

/// Which servers are listed without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Those without a list soon after the start, and those with an old list later.
    Serving,
    /// None: a command requests the servers it needs.
    Nothing,
}

/// The state of the servers' lists, and the tasks that keep it current.
#[derive(Debug)]
pub(crate) struct Inventory {
    pool: Arc<Pool>,
    callers: Arc<Callers>,
    catalog: Arc<Catalog>,
    lists: Arc<Lists>,
    failures: Arc<Failures>,
    findings: Arc<KeptFindings>,
    pins: Arc<Pins>,
    ledger: Arc<Ledger>,
    index: Arc<Index>,
    events: Source,
    notifier: Arc<Notifier>,
    topics: Arc<Topics>,
    extensions: Arc<KnownExtensions>,
    skills: KnownSkills,
    /// Creates the built-in server's catalog entry.
    own_tools: fn(&Config) -> ServerTools,
    start: Start,
    permits: Arc<Semaphore>,
    watched: Mutex<BTreeMap<ServerName, Watched>>,
    /// The maximum age of a list (`catalog.max_age`).
    max_age: Mutex<Duration>,
    /// The time of the last successful listing.
    came: watch::Sender<Option<Instant>>,
    /// The number of readings of the cache in progress.
    loading: watch::Sender<usize>,
    /// Cancelled when the cache may be read.
    begun: CancellationToken,
    /// Cancelled when the client has its first response, or no client waits for one.
    released: CancellationToken,
    tasks: Tasks,
}

/// The dependencies of an inventory.
pub(super) struct Parts<'a> {
    pub(super) ledger: Arc<Ledger>,
    pub(super) pool: Arc<Pool>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) callers: Arc<Callers>,
    pub(super) statistics: Arc<Statistics>,
    pub(super) directories: &'a Directories,
    pub(super) own_tools: fn(&Config) -> ServerTools,
    pub(super) events: Source,
    pub(super) notifier: Arc<Notifier>,
    pub(super) tasks: &'a Tasks,
}

impl Inventory {
    /// Creates an inventory for the servers of the configuration. The cache is read in the background.
    pub(super) fn new(parts: Parts<'_>, start: Start) -> Arc<Self> {
        let Parts {
            ledger,
            pool,
            catalog,
            callers,
            statistics,
            directories,
            own_tools,
            events,
            notifier,
            tasks,
        } = parts;
        let config = callers.unscoped().config();
        let cache = directories.cache.as_deref();
        let pins = Arc::new(Pins::new(directories.pins.clone()));
        catalog.reserve(config.names.iter().cloned());
        pins.require(policy::pinned(&config));
        let known = Arc::downgrade(&pins);
        telemetry::withhold(move |server| Some(known.upgrade()?.may_be_quarantined(server)));
        catalog.restrict(Some(policy::rules(&config, &pins)));
        let SharedLists { lists, search } = match &directories.shared {
            Some(shared) => shared.for_session(),
            None => SharedLists::new(cache),
        };
        search.set_semantic(config.search.semantic);
        pool.configure(&config);
        let inventory = Arc::new(Self {
            pool,
            index: Index::new(catalog.clone(), search, statistics, tasks.clone()),
            catalog,
            lists,
            failures: Arc::new(Failures::new(cache)),
            findings: Arc::new(KeptFindings::new(cache)),
            pins,
            ledger,
            topics: Arc::new(Topics::load(cache)),
            extensions: Arc::new(KnownExtensions::load(cache)),
            skills: KnownSkills::default(),
            callers,
            own_tools,
            events,
            notifier,
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

    /// The current catalog of all servers. A client sees the part in its [`View`].
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.catalog.snapshot()
    }

    /// The tool that its server calls `own`, also if it is for apps only; an override may have given it another name.
    pub(super) fn any_tool(&self, server: &ServerName, own: &ToolName) -> Option<Tool> {
        let snapshot = self.snapshot();
        let mut entries = snapshot.server(server)?.entries().iter();
        let tool = &entries.find(|entry| entry.as_listed().name == *own)?.name;
        let shown = snapshot.tool(server, tool);
        shown.or_else(|| snapshot.with_app_tools().tool(server, tool))
    }

    /// Embeds tools in turn with other replicas from now on, and passes the vectors to them and takes theirs by these files.
    pub(crate) fn share_vectors(&self, files: Arc<dyn VectorFiles>) {
        self.index.vectors().share(files, self.callers.clone());
    }

    /// The files by which replicas pass vectors to each other, if there are some.
    pub(super) fn vector_files(&self) -> Option<Arc<dyn VectorFiles>> {
        self.index.vectors().files()
    }

    /// The search index.
    pub(super) fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// The `instructions` of the handshake for a client whose directories may have a profile, before they are known.
    pub(super) fn plain_instructions(view: &View) -> String {
        match view.mode() {
            Mode::MetaTools => topics::HOW.to_owned(),
            Mode::Direct => String::new(),
        }
    }

    /// The `instructions` of the handshake, about the servers that `view` shows.
    pub(super) fn instructions(&self, view: &View) -> String {
        let config = view.config();
        let waiting = self.waiting(&config);
        let mut text = self.topics.instructions(&config, view.mode(), &waiting);
        if config.scripts.is_on && view.mode() == Mode::MetaTools {
            text.push_str(
                " For many calls in one, describe and call mcpzip__run, which runs JavaScript.",
            );
        }
        let text = match waiting_text(&waiting) {
            Some(waiting) => format!("{text} {waiting}").trim_start().to_owned(),
            None => text,
        };
        view.advised(&text).into_owned()
    }

    /// The extensions of a server that mcpzip does not know: those of its list, or until that is read those of an earlier run.
    pub(super) fn other_extensions(&self, snapshot: &Snapshot, server: &ServerName) -> Others {
        match snapshot.server(server) {
            Some(listed) => listed.capabilities().other_extensions(),
            None => self.extensions.of(server),
        }
    }

    /// A tool's definition. If the cache has lost it, its server is listed again.
    pub(super) fn definition(&self, tool: &Tool) -> Option<Box<RawValue>> {
        tool.json()
            .inspect_err(|error| {
                tracing::warn!(server = %tool.server().name(), %error, "the server is listed again");
                self.discard(tool.server().name());
            })
            .ok()
    }

    /// Lists the servers again of which the index lacks tools: no search finds those, so nothing else would notice.
    pub(in crate::proxy) fn list_unread(&self) {
        let unread = self.index.take_unread();
        unread.iter().for_each(|server| self.discard(server));
    }

    /// Allows reading the cache. The response to a handshake does not need the cache and should not compete with it.
    pub(crate) fn begin(&self) {
        self.begun.cancel();
    }

    /// Allows listing. Starting many processes takes time and must not delay the client's first response.
    pub(crate) fn release(&self) {
        self.begin();
        self.released.cancel();
    }

    /// Requests a new listing of one server soon.
    pub(crate) fn poke(&self, server: &ServerName) {
        if let Some(watched) = self.watched().get(server) {
            watched.watch.ask();
        }
    }

    /// Ends the connections of `server` now, with the calls that they have, or its start; the next call starts it. Whether there was
    /// either.
    pub(crate) fn stop(&self, server: &ServerName) -> bool {
        if let Some(watched) = self.watched().get(server) {
            watched.watch.stop();
        }
        self.pool.stop(server)
    }

    /// Ends the connections of `server`; the next request makes a new one.
    pub(crate) fn disconnect(&self, server: &ServerName) {
        self.pool.stop(server);
    }

    /// Whether the cache has been read.
    #[must_use]
    pub(crate) fn is_loaded(&self) -> bool {
        *self.loading.borrow() == 0
    }

    /// Resolves when the cache has been read.
    pub(crate) async fn loaded(&self) {
        self.begin();
        let mut loading = self.loading.subscribe();
        loading
            .wait_for(|loading| *loading == 0)
            .await
            .expect("the sender lives as long as we do");
    }

    /// The progress of each server's listing.
    #[must_use]
    pub(crate) fn progress(&self) -> BTreeMap<ServerName, Progress> {
        self.watched()
            .iter()
            .map(|(name, watched)| (name.clone(), watched.watch.state.borrow().progress.clone()))
            .collect()
    }

    /// The progress of the servers of which `snapshot` has no list.
    #[must_use]
    pub(in crate::proxy) fn unlisted(&self, snapshot: &Snapshot) -> BTreeMap<ServerName, Progress> {
        let watched = self.watched();
        let without = watched
            .iter()
            .filter(|(name, _)| snapshot.server(name).is_none());
        without
            .map(|(name, watched)| (name.clone(), watched.watch.state.borrow().progress.clone()))
            .collect()
    }

    /// Discards a server's unreadable list, and requests a new one.
    pub(crate) fn discard(&self, server: &ServerName) {
        if let Some(watched) = self.watched().get(server) {
            self.lists.discard(&watched.key);
            watched.watch.ask();
        }
    }

    /// The servers whose last listing failed, as stored on disk.
    pub(super) async fn last_failures(&self) -> BTreeMap<ServerName, Failure> {
        let (failures, keys) = (self.failures.clone(), self.keys());
        let load = move || {
            let loaded = |key: Key| failures.load(&key).map(|failure| (key.server, failure));
            keys.into_iter().filter_map(loaded).collect()
        };
        self.tasks.spawn_blocking(load).await.unwrap_or_default()
    }

    /// The last failures of those servers in `progress` that have no list and whose listing has not ended in this run, for display. The
    /// reason of a server in quarantine is not for agents, and is left out.
    pub(crate) async fn earlier_failures(
        &self,
        progress: &BTreeMap<ServerName, Progress>,
    ) -> BTreeMap<ServerName, String> {
        let snapshot = self.catalog.snapshot();
        let is_open = |server: &ServerName| {
            matches!(
                progress.get(server),
                Some(Progress::NotAsked | Progress::UnderWay)
            ) && snapshot.server(server).is_none()
                && !self.is_quarantined(server)
        };
        if !progress.keys().any(is_open) {
            return BTreeMap::new();
        }
        let failures = self.last_failures().await.into_iter();
        let failures = failures.filter(|(server, _)| is_open(server));
        let text =
            |failure: Failure| format!("it failed {}: {}", ago(failure.age()), failure.reason);
        failures
            .map(|(server, failure)| (server, text(failure)))
            .collect()
    }

    /// The current entry of `server`, and the token that is cancelled when the entry changes.
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
