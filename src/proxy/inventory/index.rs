//! The search index, kept in step with the catalog by one task.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::document::document;
use super::vectors::Vectors;
use crate::catalog::{Catalog, Snapshot};
use crate::config::SearchOptions;
use crate::search::{Document, Error, Explanation, Fingerprint, Hit, Request, Search};
use crate::shutdown::Tasks;
use crate::statistics::Statistics;
use crate::tool::ServerName;

/// Listings that arrive within this time are indexed together.
const PAUSE: Duration = Duration::from_millis(40);

/// The time limit of a search by meaning, which takes a few milliseconds; after it, words alone are used.
const MEANING: Duration = Duration::from_millis(500);

/// Search over the catalog's tools. While a new index is built, the previous one answers.
pub(in crate::proxy) struct Index {
    catalog: Arc<Catalog>,
    search: Arc<Search>,
    wanted: Notify,
    /// The content of the newest index; `None` before the first one.
    built: watch::Sender<Option<Built>>,
    vectors: Arc<Vectors>,
    /// Whether the newest index may have tools that the clients must not notice.
    is_narrowed: AtomicBool,
    /// The number of searches that were answered from the cache.
    pub(in crate::proxy) cached: AtomicU64,
    tasks: Tasks,
}

/// The state of the catalog that an index was built from.
#[derive(Debug)]
struct Built {
    /// Of all its tools, also those that cannot be read: nothing has to wait for an index with them.
    fingerprint: Fingerprint,
    servers: BTreeSet<ServerName>,
    /// The servers of which it lacks tools, because their definitions cannot be read.
    unread: BTreeSet<ServerName>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index")
            .field("built", &*self.built.borrow())
            .finish_non_exhaustive()
    }
}

impl Index {
    /// Creates a search without an index. The first index is built after the first call of `catalog_changed`.
    pub(in crate::proxy) fn new(
        catalog: Arc<Catalog>,
        search: Search,
        statistics: Arc<Statistics>,
        tasks: Tasks,
    ) -> Arc<Self> {
        let (built, search) = (watch::Sender::new(None), Arc::new(search));
        let vectors = Vectors::new(catalog.clone(), search.clone(), statistics, tasks.clone());
        let index = Arc::new(Self {
            catalog,
            search,
            wanted: Notify::new(),
            built,
            vectors,
            is_narrowed: AtomicBool::new(false),
            cached: AtomicU64::new(0),
            tasks,
        });
        let keeper = index.clone();
        index.tasks.spawn(async move {
            tokio::select! {
                () = keeper.keep() => {}
                () = keeper.tasks.stopped() => {}
            }
        });
        index
    }

    /// Rebuilds the index. Call it after every change of the catalog.
    pub(in crate::proxy) fn catalog_changed(&self) {
        self.wanted.notify_one();
    }

    /// Resolves when every server in the catalog is in the index, even with outdated tools, or after `limit`. Only a
    /// server that was never listed makes a search wait, and a catalog that was narrowed.
    pub(in crate::proxy) async fn wait(&self, limit: Duration) {
        if self.is_narrowed.load(Ordering::Acquire) && self.wait_current(limit).await {
            self.is_narrowed.store(false, Ordering::Release);
        }
        let snapshot = self.catalog.snapshot();
        let holds_all = |built: &Option<Built>| {
            built.as_ref().is_some_and(|built| {
                snapshot
                    .servers()
                    .all(|server| built.servers.contains(server.name()))
            })
        };
        let mut built = self.built.subscribe();
        // Servers that are not indexed by then are missing from the answer, which reports a missing index.
        let _ = tokio::time::timeout(limit, built.wait_for(holds_all)).await;
    }

    /// Has the next search wait for an index of the catalog as it is now.
    pub(in crate::proxy) fn catalog_narrowed(&self) {
        self.is_narrowed.store(true, Ordering::Release);
        self.catalog_changed();
    }

    /// Resolves when the index equals the catalog, or after `limit`. Returns whether it does.
    pub(in crate::proxy) async fn wait_current(&self, limit: Duration) -> bool {
        let wanted = fingerprint(&self.catalog.snapshot());
        let mut built = self.built.subscribe();
        // If it does not, an index of another state suffices.
        let is_wanted = |built: &Option<Built>| {
            built
                .as_ref()
                .is_some_and(|built| built.fingerprint == wanted)
        };
        let waited = tokio::time::timeout(limit, built.wait_for(is_wanted)).await;
        waited.is_ok_and(|built| built.is_ok())
    }

    /// The servers of which the newest index lacks tools, because their definitions cannot be read; each index says them once.
    pub(super) fn take_unread(&self) -> BTreeSet<ServerName> {
        let mut unread = BTreeSet::new();
        let has_some = |built: &Built| !built.unread.is_empty();
        if self.built.borrow().as_ref().is_some_and(has_some) {
            self.built.send_if_modified(|built| {
                let all = built.as_mut().map(|built| &mut built.unread);
                unread = all.map(std::mem::take).unwrap_or_default();
                false
            });
        }
        unread
    }

    /// Prepares `query`, which will be searched for as soon as there is an index.
    pub(in crate::proxy) fn prepare(&self, query: &str) {
        self.search.prepare(query);
    }

    /// Finds the best tools for a request; see [`Search::search`].
    pub(in crate::proxy) async fn search(
        &self,
        request: &Request<'_>,
    ) -> Result<Arc<[Hit]>, Error> {
        if let Some(hits) = self.search.cached(request) {
            self.cached.fetch_add(1, Ordering::Relaxed);
            return Ok(hits);
        }
        let by_meaning = self.run(request, Search::search);
        let searched = match tokio::time::timeout(MEANING, by_meaning).await {
            Ok(searched) => searched,
            Err(_) => {
                tracing::warn!("search by meaning took too long; words alone are used");
                self.run(request, Search::search_words).await
            }
        };
        if searched.as_ref().is_err_and(Error::is_rebuild_needed) {
            self.catalog_changed();
        }
        searched
    }

    /// The tools' vectors.
    pub(in crate::proxy) fn vectors(&self) -> &Arc<Vectors> {
        &self.vectors
    }

    /// Applies the search options.
    pub(in crate::proxy) fn configure(&self, options: &SearchOptions) {
        if self.search.set_semantic(options.semantic) {
            self.vectors.catalog_changed();
        }
    }

    /// Explains a search; see [`Search::explain`].
    pub(in crate::proxy) async fn explain(
        &self,
        request: &Request<'_>,
    ) -> Result<Explanation, Error> {
        self.run(request, Search::explain).await
    }

    /// Runs work that may take milliseconds on a blocking thread.
    async fn run<T: Send + 'static>(
        &self,
        request: &Request<'_>,
        run: impl FnOnce(&Search, &Request<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let Request {
            query,
            limit,
            server,
            without,
        } = *request;
        let (search, query, server) = (
            self.search.clone(),
            query.to_owned(),
            server.map(str::to_owned),
        );
        let without = without.to_vec();
        self.tasks
            .spawn_blocking(move || {
                run(
                    &search,
                    &Request {
                        query: &query,
                        limit,
                        server: server.as_deref(),
                        without: &without,
                    },
                )
            })
            .await
            .unwrap_or(Err(Error::Panicked))
    }

    async fn keep(&self) {
        loop {
            self.wanted.notified().await;
            // The first search may be waiting for the first index, which is usually on disk already.
            if self.built.borrow().is_some() {
                tokio::time::sleep(PAUSE).await;
            }
            let (catalog, search) = (self.catalog.clone(), self.search.clone());
            let outcome = self
                .tasks
                .spawn_blocking(move || build(&catalog.snapshot(), &search))
                .await;
            match outcome {
                Ok(Ok(built)) => {
                    self.built.send_replace(Some(built));
                    self.vectors.catalog_changed();
                }
                Ok(Err(error)) => tracing::error!(%error, "the search index cannot be built"),
                Err(error) => tracing::error!(%error, "building the search index failed"),
            }
        }
    }
}

fn fingerprint(snapshot: &Snapshot) -> Fingerprint {
    Fingerprint::of(snapshot.identities())
}

fn build(snapshot: &Snapshot, search: &Search) -> Result<Built, Error> {
    let whole = fingerprint(snapshot);
    let servers = snapshot
        .servers()
        .map(|server| server.name().clone())
        .collect();
    // If the directory cannot be read, the index is built in memory.
    if search.open(&whole).unwrap_or(false) {
        return Ok(Built {
            fingerprint: whole,
            servers,
            unread: BTreeSet::new(),
        });
    }
    let mut unread = BTreeSet::new();
    let documents = snapshot.tools().filter_map(|tool| {
        let document = document(&tool);
        if document.is_none() {
            unread.insert(tool.server().name().clone());
        }
        document
    });
    let documents: Vec<Document> = documents.collect();
    // Named by its real content: an index without a tool whose definition is damaged must not later pass for a
    // complete one.
    let fingerprint = Fingerprint::of(
        documents
            .iter()
            .map(|found| (&found.server, &found.tool, found.hash)),
    );
    search.rebuild(&fingerprint, &documents)?;
    Ok(Built {
        fingerprint: whole,
        servers,
        unread,
    })
}
