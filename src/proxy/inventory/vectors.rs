//! Embeds every tool in the background, so that it can be found by meaning: first the tools of the servers that were called most.
//!
//! The work has a thread of its own with the lowest priority; a pool thread would keep that priority afterwards. The
//! end of a run waits briefly for the thread to store its results; lost results are computed again next time.
//! Of several replicas, one at a time works, and the others take its results.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::{Notify, oneshot, watch};

use super::document::document;
use super::idle;
use crate::catalog::{Catalog, Tool};
use crate::day::Day;
use crate::proxy::callers::Callers;
use crate::replicas::Turn;
use crate::search::{Document, Search, VectorKey};
use crate::shutdown::{Tasks, spawn_thread};
use crate::statistics::{Statistics, Tally};

/// The delay before the work starts, so that startup and the first search go first.
const PAUSE: Duration = Duration::from_secs(1);
/// The interval of checks for progress when another process does the work.
const ELSEWHERE: Duration = Duration::from_secs(3);
/// The number of tools that are embedded together, and twice as many if the machine has a core to spare. The work can stop between
/// two batches.
const BATCH: usize = 8;
/// The days of which calls count for the order of the servers.
const USED: u32 = 30;
/// The longest time for which vectors are in memory only; the first ones are used sooner.
const FIRST_KEPT: Duration = Duration::from_secs(2);
const KEPT: Duration = Duration::from_secs(10);
/// The time that the end of a run waits for vectors to be stored.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The number of tools that can be found by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Coverage {
    /// The number of tools.
    pub tools: usize,
    /// The number of tools with a vector.
    pub embedded: usize,
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tools, embedded } = self;
        if embedded == tools {
            f.write_str("every tool is ready")
        } else {
            write!(f, "{embedded} of {tools} tools are ready")
        }
    }
}

/// The time between two prolongations of the turn among replicas.
const PROLONG: Duration = Duration::from_secs(5);

/// The files by which replicas pass vectors to each other. Both functions wait for the store.
pub(crate) trait VectorFiles: Send + Sync {
    /// Takes the vectors of other replicas if they are newer.
    fn take(&self);

    /// Gives those of this replica to the others.
    fn put(&self);
}

/// Keeps the tools' vectors equal to the catalog.
pub(in crate::proxy) struct Vectors {
    catalog: Arc<Catalog>,
    search: Arc<Search>,
    statistics: Arc<Statistics>,
    wanted: Notify,
    coverage: watch::Sender<Option<Coverage>>,
    /// The way to other replicas.
    shared: OnceLock<(Arc<dyn VectorFiles>, Arc<Callers>)>,
    tasks: Tasks,
}

/// The result of a round of work.
enum Round {
    /// Every tool of the catalog at its beginning has a vector, or can never have one.
    Done,
    /// Another process or replica does the work.
    Elsewhere,
}

impl Vectors {
    pub(in crate::proxy) fn new(
        catalog: Arc<Catalog>,
        search: Arc<Search>,
        statistics: Arc<Statistics>,
        tasks: Tasks,
    ) -> Arc<Self> {
        let coverage = watch::Sender::new(None);
        let vectors = Arc::new(Self {
            catalog,
            search,
            statistics,
            wanted: Notify::new(),
            coverage,
            shared: OnceLock::new(),
            tasks,
        });
        let keeper = vectors.clone();
        vectors.tasks.spawn(async move {
            tokio::select! {
                () = keeper.keep() => {}
                () = keeper.tasks.stopped() => {}
            }
        });
        vectors
    }

    /// Shares the work with other replicas from now on, if there are some.
    pub(super) fn share(&self, files: Arc<dyn VectorFiles>, callers: Arc<Callers>) {
        // A run has them from its start.
        let _ = self.shared.set((files, callers));
    }

    /// The files by which replicas pass vectors to each other, if there are some.
    pub(super) fn files(&self) -> Option<Arc<dyn VectorFiles>> {
        self.shared.get().map(|(files, _)| files.clone())
    }

    /// Updates the vectors. Call it after building a new index.
    pub(in crate::proxy) fn catalog_changed(&self) {
        self.wanted.notify_one();
    }

    /// The progress of the work; `None` before the first check, and without search by meaning.
    pub(in crate::proxy) fn coverage(&self) -> Option<Coverage> {
        if self.search.is_semantic() {
            *self.coverage.borrow()
        } else {
            None
        }
    }

    /// Updates the progress; this or another process may do the work.
    pub(in crate::proxy) async fn look(self: &Arc<Self>) {
        let looking = self.clone();
        if self.search.is_semantic() {
            // This fails only at the end of the run.
            let _ = self
                .tasks
                .spawn_blocking(move || drop(looking.lacking()))
                .await;
        }
    }

    /// Resolves when every tool has a vector, or after `limit`. Returns whether that is so, or no vectors are wanted.
    pub(in crate::proxy) async fn wait(self: &Arc<Self>, limit: Duration) -> bool {
        if !self.search.is_semantic() {
            return true;
        }
        // The work begins after a pause, which a run with all vectors need not wait for.
        self.look().await;
        let mut coverage = self.coverage.subscribe();
        let is_whole =
            |coverage: &Option<Coverage>| coverage.is_some_and(|c| c.embedded == c.tools);
        // Tools without a vector by then are found by words.
        let made = tokio::time::timeout(limit, coverage.wait_for(is_whole)).await;
        made.is_ok()
    }

    async fn keep(self: &Arc<Self>) {
        let mut pause = PAUSE;
        loop {
            self.wanted.notified().await;
            tokio::time::sleep(pause).await;
            pause = Duration::ZERO;
            while matches!(self.round().await, Round::Elsewhere) {
                tokio::time::sleep(ELSEWHERE).await;
                self.search.vectors_changed();
            }
        }
    }

    async fn round(self: &Arc<Self>) -> Round {
        if self.is_whole().await {
            return Round::Done;
        }
        let turn = match self.turn().await {
            Ok(turn) => turn,
            Err(round) => return round,
        };
        let round = self.work_aside(turn.as_ref()).await;
        if let Some(turn) = turn {
            self.with_files(|files| files.put()).await;
            turn.end().await;
        }
        round
    }

    /// Whether no vector is missing.
    async fn is_whole(self: &Arc<Self>) -> bool {
        let looking = self.clone();
        let lacking = self.tasks.spawn_blocking(move || looking.lacking()).await;
        // It fails at the end of the run.
        lacking.is_ok_and(|lacking| lacking.is_empty())
    }

    /// The turn of this replica to work, if there are others, with what these have made. `Err`: there is nothing to do now.
    async fn turn(self: &Arc<Self>) -> Result<Option<Turn>, Round> {
        let shared = self.shared.get();
        let Some(replicas) = shared.and_then(|(_, callers)| callers.replicas()) else {
            return Ok(None);
        };
        let turn = match replicas.embedding_turn().await {
            Ok(Some(turn)) => turn,
            Ok(None) => return Err(Round::Elsewhere),
            Err(error) => {
                tracing::debug!(%error, "tools are embedded without a turn");
                return Ok(None);
            }
        };
        self.with_files(|files| files.take()).await;
        self.search.vectors_changed();
        if self.is_whole().await {
            turn.end().await;
            return Err(Round::Done);
        }
        Ok(Some(turn))
    }

    async fn with_files(&self, work: fn(&dyn VectorFiles)) {
        if let Some((files, _)) = self.shared.get() {
            let files = files.clone();
            // Work that is lost with the run is done again.
            let _ = self.tasks.spawn_blocking(move || work(&*files)).await;
        }
    }

    /// Works in a thread, and prolongs the turn meanwhile.
    async fn work_aside(self: &Arc<Self>, turn: Option<&Turn>) -> Round {
        let (ended, end) = oneshot::channel();
        let working = self.clone();
        let work = move || {
            // The receiver is gone at the end of the run.
            let _ = ended.send(working.work());
        };
        if let Err(error) = spawn_thread("vectors", work) {
            tracing::warn!(%error, "tools are found by their words alone");
            return Round::Done;
        }
        let last_words = async {
            self.tasks.stopped().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        let prolonging = async {
            loop {
                tokio::time::sleep(PROLONG).await;
                if let Some(turn) = turn {
                    turn.keep().await;
                }
            }
        };
        tokio::select! {
            round = end => round.unwrap_or(Round::Done),
            () = last_words => Round::Done,
            () = prolonging => Round::Done,
        }
    }

    /// The tools without a vector, by key.
    fn lacking(&self) -> HashMap<VectorKey, Tool> {
        let snapshot = self.catalog.snapshot();
        let mut tools: HashMap<VectorKey, Tool> = snapshot
            .tools()
            .map(|tool| (VectorKey::of(tool.server().name(), tool.entry().hash), tool))
            .collect();
        let all = tools.len();
        let lacking = self.search.without_vector(&tools.keys().copied().collect());
        tools.retain(|key, _| lacking.contains(key));
        self.report(Coverage {
            tools: all,
            embedded: all - tools.len(),
        });
        tools
    }

    /// Computes the missing vectors.
    fn work(&self) -> Round {
        let Some(embedding) = self.search.begin_embedding() else {
            return Round::Elsewhere;
        };
        // Checked again: another process may have just computed them.
        let mut lacking: Vec<Tool> = self.lacking().into_values().collect();
        let calls = self.calls();
        lacking.sort_by_cached_key(|tool| {
            let name = tool.qualified_name();
            let calls = calls.get(name.server.as_str()).copied().unwrap_or_default();
            (Reverse(calls), name.server, name.tool)
        });
        if !lacking.is_empty() {
            tracing::debug!(tools = lacking.len(), "tools are embedded");
        }
        let all: HashSet<VectorKey> = self
            .catalog
            .snapshot()
            .identities()
            .map(|(server, _, hash)| VectorKey::of(server, hash))
            .collect();
        yield_to_others();
        let mut made = HashMap::new();
        let (mut kept, mut patience) = (Instant::now(), FIRST_KEPT);
        let mut coverage = Coverage {
            tools: all.len(),
            embedded: all.len() - lacking.len().min(all.len()),
        };
        let mut waiting = &lacking[..];
        while !waiting.is_empty() {
            let threads = if idle::has_spare_core() { 2 } else { 1 };
            let (batch, others) = waiting.split_at(waiting.len().min(threads * BATCH));
            waiting = others;
            if self.tasks.stop().is_cancelled() {
                break;
            }
            let start = Instant::now();
            let documents: Vec<Document> = batch.iter().filter_map(document).collect();
            match embedding.embed_by(threads, &documents) {
                Ok(vectors) => made.extend(vectors),
                Err(error) => {
                    tracing::warn!(%error, "tools are found by their words alone");
                    break;
                }
            }
            // A tool with an unreadable definition counts as done, because it is not in the index either.
            coverage.embedded += batch.len();
            if kept.elapsed() > patience {
                embedding.keep(&std::mem::take(&mut made), &all);
                (kept, patience) = (Instant::now(), KEPT);
            }
            self.report(coverage);
            rest(start.elapsed());
        }
        if !made.is_empty() {
            embedding.keep(&made, &all);
        }
        self.report(coverage);
        Round::Done
    }

    /// The calls of each server in the last weeks; none if the statistics cannot be read.
    fn calls(&self) -> HashMap<String, u64> {
        let history = self.statistics.history(Some(Day::today().minus(USED)));
        let history = history.inspect_err(|error| {
            tracing::debug!(%error, "tools are embedded in the order of their names");
        });
        let tools = history.unwrap_or_default().total().tools;
        let calls =
            |tools: BTreeMap<String, Tally>| tools.values().map(|tally| tally.calls).sum::<u64>();
        tools
            .into_iter()
            .map(|(server, tools)| (server, calls(tools)))
            .collect()
    }

    fn report(&self, coverage: Coverage) {
        self.coverage.send_replace(Some(coverage));
    }
}

/// Gives this thread the lowest priority. On systems other than Linux, that would affect the whole process.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    // If this fails, it is one thread at normal priority.
    let _ = rustix::process::nice(19);
}

/// Sleeps after some work, on systems without a priority for threads.
fn rest(work: Duration) {
    if !cfg!(target_os = "linux") {
        std::thread::sleep(work / 3);
    }
}
