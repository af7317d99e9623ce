//! Gives every tool its vector, in the background, so that it can be found by what it means.
//!
//! The work has a thread of its own, which yields to everything else: a thread of the pool would stay slow after it.
//! The end of a run waits for it shortly, so that it can keep what it has; what is not kept is made the next time.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::{Notify, oneshot, watch};

use super::document::document;
use crate::catalog::{Catalog, Tool};
use crate::search::{Document, Search, VectorKey};
use crate::shutdown::{Tasks, spawn_thread};

/// Starting up and the first search go before.
const PAUSE: Duration = Duration::from_secs(1);
/// How often to look whether another process, which does the work, has made progress.
const ELSEWHERE: Duration = Duration::from_secs(3);
/// Tools that are embedded together. Between two batches the work can be stopped.
const BATCH: usize = 8;
/// How long vectors may be in memory only; the first ones are used sooner.
const FIRST_KEPT: Duration = Duration::from_secs(2);
const KEPT: Duration = Duration::from_secs(10);
/// How long the end of a run waits for what was made to be kept.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How many of the tools can be found by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Coverage {
    /// All tools.
    pub tools: usize,
    /// Those with a vector.
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

/// Keeps the tools' vectors in step with the catalog.
pub(in crate::proxy) struct Vectors {
    catalog: Arc<Catalog>,
    search: Arc<Search>,
    wanted: Notify,
    coverage: watch::Sender<Option<Coverage>>,
    tasks: Tasks,
}

/// How a round of work ended.
enum Round {
    /// Every tool of the catalog that it began with has its vector, or never will.
    Done,
    /// Another process is at it.
    Elsewhere,
}

impl Vectors {
    pub(in crate::proxy) fn new(
        catalog: Arc<Catalog>,
        search: Arc<Search>,
        tasks: Tasks,
    ) -> Arc<Self> {
        let coverage = watch::Sender::new(None);
        let vectors = Arc::new(Self {
            catalog,
            search,
            wanted: Notify::new(),
            coverage,
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

    /// To be told when there is a new index.
    pub(in crate::proxy) fn catalog_changed(&self) {
        self.wanted.notify_one();
    }

    /// How far the work is; nothing before it was looked at, and without search by meaning.
    pub(in crate::proxy) fn coverage(&self) -> Option<Coverage> {
        if self.search.is_semantic() {
            *self.coverage.borrow()
        } else {
            None
        }
    }

    /// Counts how far the work is by now, whoever does it.
    pub(in crate::proxy) async fn look(self: &Arc<Self>) {
        let looking = self.clone();
        if self.search.is_semantic() {
            // Where it fails, the run is over.
            let _ = self
                .tasks
                .spawn_blocking(move || drop(looking.lacking()))
                .await;
        }
    }

    /// Resolves when every tool has its vector, or after `limit`.
    pub(in crate::proxy) async fn wait(&self, limit: Duration) {
        if !self.search.is_semantic() {
            return;
        }
        let mut coverage = self.coverage.subscribe();
        let is_whole =
            |coverage: &Option<Coverage>| coverage.is_some_and(|c| c.embedded == c.tools);
        // What has no vector by then is found by its words.
        let _ = tokio::time::timeout(limit, coverage.wait_for(is_whole)).await;
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
        let looking = self.clone();
        let Ok(lacking) = self.tasks.spawn_blocking(move || looking.lacking()).await else {
            return Round::Done;
        };
        if lacking.is_empty() {
            return Round::Done;
        }
        let (ended, end) = oneshot::channel();
        let working = self.clone();
        let work = move || {
            // Whoever waited has gone when the run is over.
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
        tokio::select! {
            round = end => round.unwrap_or(Round::Done),
            () = last_words => Round::Done,
        }
    }

    /// The tools without a vector, by their keys.
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

    /// Makes what is lacking.
    fn work(&self) -> Round {
        let Some(embedding) = self.search.begin_embedding() else {
            return Round::Elsewhere;
        };
        // Once more: another process may have done it just now.
        let lacking: Vec<Tool> = self.lacking().into_values().collect();
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
        for batch in lacking.chunks(BATCH) {
            if self.tasks.stop().is_cancelled() {
                break;
            }
            let start = Instant::now();
            let documents: Vec<Document> = batch.iter().filter_map(document).collect();
            match embedding.embed(&documents) {
                Ok(vectors) => made.extend(vectors),
                Err(error) => {
                    tracing::warn!(%error, "tools are found by their words alone");
                    break;
                }
            }
            // A tool whose definition cannot be read counts as done: it is not in the index either.
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

    fn report(&self, coverage: Coverage) {
        self.coverage.send_replace(Some(coverage));
    }
}

/// Gives this thread the lowest priority. Elsewhere than on Linux that would be the whole process's.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    // At the usual priority it is still one thread only.
    let _ = rustix::process::nice(19);
}

/// Leaves the processor to others after some work, where priorities don't see to it.
fn rest(work: Duration) {
    if !cfg!(target_os = "linux") {
        std::thread::sleep(work / 3);
    }
}
