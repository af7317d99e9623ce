//! Search: ranks tools for a query. It gets the names and texts of tools, and depends neither on the catalog nor on
//! connections to servers.
//!
//! [`Search`] holds one index at a time, on disk if possible, and replaces it whole; a search finishes with the index
//! it started with. An index is named by the fingerprint of its tools, so processes with the same tools share one.
//!
//! The index format is our own, one file of a few megabytes that is read whole (`layout`): ranking needs only a
//! small part of an index library, and the library took a tenth of the program's size. A damaged index does not stop
//! the program: it is removed,
//! and [`Error::is_rebuild_needed`] tells the caller to rebuild it.

mod cache;
mod embedding;
mod explain;
mod fingerprint;
mod fitting;
mod folding;
mod fusion;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
pub(crate) mod habits;
mod index;
mod layout;
mod lexical;
mod library;
mod meaning;
mod postings;
mod prefetch;
mod query;
pub(crate) mod rerank;
mod schema;
mod soundness;
mod store;
mod synonyms;
mod tokenizer;
mod vectors;
mod vocabulary;
mod writing;

#[cfg(test)]
mod tests;

#[cfg(feature = "semantic")]
pub use embedding::Bundled;
pub use embedding::VectorKey;
pub(crate) use embedding::{Embedder, Unavailable};
pub use explain::Explained;
pub(crate) use explain::Explanation;
pub use fingerprint::Fingerprint;
pub use habits::Habits;
pub(crate) use vectors::VERSION as VECTOR_FORMAT;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::tool::{ServerName, ToolHash, ToolName};
use index::Index;
use library::Library;
use meaning::in_parallel;
use parking_lot::RwLock;
use prefetch::Prefetch;
use query::Query;
use vectors::{EmbeddingLock, Table, Vectors};

/// The text of one tool, as it is indexed.
#[derive(Debug, Clone)]
pub struct Document {
    /// The server that has the tool.
    pub server: ServerName,
    /// The tool's own name there.
    pub tool: ToolName,
    /// The hash of its definition.
    pub hash: ToolHash,
    /// The title for people.
    pub title: Option<String>,
    /// The description, empty if there is none.
    pub description: String,
    /// Name and description of each parameter.
    pub parameters: Vec<(String, String)>,
}

/// A search request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The need in the agent's words; a query may have several needs.
    pub query: &'a str,
    /// The most hits there may be.
    pub limit: usize,
    /// The only server to search.
    pub server: Option<&'a str>,
    /// Servers to leave out.
    pub without: &'a [ServerName],
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The server that has the tool.
    pub server: ServerName,
    /// The tool's own name there.
    pub tool: ToolName,
    /// The score: about 1 for a perfect match of every word, more if the query names the server or the tool.
    pub score: f32,
}

/// The index over all tools. All methods block; [`Search::cached`] is as quick as a look-up.
pub struct Search {
    library: Arc<Library>,
    // Locked only to read or replace the pointer.
    current: RwLock<Option<Arc<Index>>>,
    semantic: Option<Semantic>,
    /// Whether search by meaning is switched on.
    is_semantic: AtomicBool,
}

/// The parts of search by meaning.
struct Semantic {
    embedder: Arc<dyn Embedder>,
    vectors: Arc<Vectors>,
    /// The prefetched vector of an announced query, and the vectors of the tools.
    next_query: Prefetch<(String, Result<Vec<f32>, Unavailable>)>,
    next_vectors: Prefetch<Arc<Table>>,
}

/// A search or an index operation that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No index has been opened or built.
    #[error("there is no search index yet")]
    Missing,
    /// The index's files are damaged.
    #[error("the search index is damaged")]
    Damaged,
    /// A search panicked. The index is kept: it was checked when it was opened, so this is a bug in the program.
    #[error("the search failed; this is a bug of mcpzip, and its log has the details")]
    Panicked,
    /// There are more tools than an index can hold.
    #[error("the tools are too many for a search index")]
    TooLarge,
    /// A file operation failed.
    #[error("cannot use the search index at `{path}`")]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// Whether [`Search::rebuild`] can repair it.
    #[must_use]
    pub fn is_rebuild_needed(&self) -> bool {
        matches!(self, Self::Missing | Self::Damaged)
    }
}

impl Search {
    /// Creates a search with its indexes in `directory`. `None` keeps them in memory. Touches no file yet.
    #[must_use]
    pub fn new(directory: Option<PathBuf>) -> Self {
        Self::over(Library::new(directory), None)
    }

    fn over(library: Arc<Library>, semantic: Option<Semantic>) -> Self {
        Self {
            library,
            current: RwLock::new(None),
            semantic,
            is_semantic: true.into(),
        }
    }

    /// Creates a search over other tools with the same directory and embedder. Both hold an index with the same tools only once.
    #[must_use]
    pub(crate) fn another(&self) -> Self {
        let semantic = self.semantic.as_ref();
        let semantic =
            semantic.map(|known| Semantic::new(known.embedder.clone(), known.vectors.clone()));
        Self::over(self.library.clone(), semantic)
    }

    /// Adds search by meaning.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        let directory = self.library.directory.clone();
        let vectors = Vectors::new(directory, &embedder.name(), embedder.width());
        self.semantic = Some(Semantic::new(embedder, Arc::new(vectors)));
        self
    }

    /// Switches search by meaning on or off, if there is an embedder. Returns whether that changed anything.
    pub fn set_semantic(&self, is_semantic: bool) -> bool {
        let changed = self.is_semantic.swap(is_semantic, Ordering::Relaxed) != is_semantic;
        if changed {
            self.vectors_changed();
        }
        changed
    }

    /// Whether it searches by meaning.
    #[must_use]
    pub fn is_semantic(&self) -> bool {
        self.semantic().is_some()
    }

    fn semantic(&self) -> Option<&Semantic> {
        self.semantic
            .as_ref()
            .filter(|_| self.is_semantic.load(Ordering::Relaxed))
    }

    /// The lock for embedding tools, until it is dropped. `None` if another process holds it, or without an embedder.
    #[must_use]
    pub fn begin_embedding(&self) -> Option<Embedding<'_>> {
        let semantic = self.semantic()?;
        Some(Embedding {
            search: self,
            semantic,
            _lock: semantic.vectors.lock()?,
        })
    }

    /// The tools that have no vector yet.
    #[must_use]
    pub fn without_vector(&self, tools: &HashSet<VectorKey>) -> HashSet<VectorKey> {
        let Some(semantic) = self.semantic() else {
            return HashSet::new();
        };
        let table = semantic.vectors.load();
        tools
            .iter()
            .filter(|key| !table.has(**key))
            .copied()
            .collect()
    }

    /// Reloads the vectors; call it when another process may have added some.
    pub fn vectors_changed(&self) {
        if let Some(semantic) = &self.semantic {
            semantic.next_vectors.clear();
        }
        if let Some(index) = self.current() {
            index.forget_meaning();
        }
    }

    /// Prefetches the data for a query that must wait for the first index.
    pub fn prepare(&self, query: &str) {
        if self.current().is_none()
            && let Some(semantic) = self.semantic()
        {
            semantic.prepare(&Query::parse(query));
        }
    }

    /// Opens the index of `fingerprint`. `false` if it must be built first.
    ///
    /// # Errors
    /// When the directory cannot be read. A damaged index is not an error: it is removed and must be built.
    pub fn open(&self, fingerprint: &Fingerprint) -> Result<bool, Error> {
        if self
            .current()
            .is_some_and(|index| index.fingerprint == *fingerprint)
        {
            return Ok(true);
        }
        let index = self.library.open(fingerprint)?;
        let is_there = index.is_some();
        if index.is_some() {
            self.replace(index);
        }
        Ok(is_there)
    }

    /// Builds the index for exactly these documents and makes it the current one. If the disk fails, the index is
    /// built in memory.
    ///
    /// # Errors
    /// When it cannot be built even in memory.
    pub fn rebuild(&self, fingerprint: &Fingerprint, documents: &[Document]) -> Result<(), Error> {
        let index = self.library.build(fingerprint, documents)?;
        self.replace(Some(index));
        Ok(())
    }

    /// The best tools for a request, best first; empty if nothing fits. Equal scores are ordered by name.
    ///
    /// # Errors
    /// When there is no index, or it turned out to be damaged. A damaged index is removed and must be built again.
    pub fn search(&self, request: &Request<'_>) -> Result<Arc<[Hit]>, Error> {
        self.with_current(|index| index.search(request, self.semantic()))
    }

    /// Like [`Search::search`], by words alone, for a request whose vector is late.
    ///
    /// # Errors
    /// Those of [`Search::search`].
    pub fn search_words(&self, request: &Request<'_>) -> Result<Arc<[Hit]>, Error> {
        self.with_current(|index| index.search_words(request))
    }

    /// Explains the scores of each stage for the hits of a search, including those that do not fit. Slow.
    ///
    /// # Errors
    /// Those of [`Search::search`].
    pub fn explain(&self, request: &Request<'_>) -> Result<Explanation, Error> {
        self.with_current(|index| index.explain(request, self.semantic()))
    }

    fn with_current<T>(&self, run: impl FnOnce(&Index) -> Result<T, Error>) -> Result<T, Error> {
        let index = self.current().ok_or(Error::Missing)?;
        run(&index).inspect_err(|error| {
            if matches!(error, Error::Damaged) {
                self.set_aside(&index, error);
            }
        })
    }

    /// The cached answer of the current index to a request. Quick enough to be called inline.
    #[must_use]
    pub fn cached(&self, request: &Request<'_>) -> Option<Arc<[Hit]>> {
        self.current()?.cached(request, self.semantic().is_some())
    }

    fn current(&self) -> Option<Arc<Index>> {
        self.current.read().clone()
    }

    fn replace(&self, index: Option<Arc<Index>>) {
        *self.current.write() = index;
    }

    fn set_aside(&self, index: &Arc<Index>, error: &Error) {
        let mut current = self.current.write();
        if current
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, index))
        {
            *current = None;
            drop(current);
            self.library.discard(index, error);
        }
    }
}

impl Semantic {
    fn new(embedder: Arc<dyn Embedder>, vectors: Arc<Vectors>) -> Self {
        let (next_query, next_vectors) = (Prefetch::default(), Prefetch::default());
        Self {
            embedder,
            vectors,
            next_query,
            next_vectors,
        }
    }

    fn prepare(&self, query: &Query) {
        if query.needs.is_empty() || !self.vectors.are_there() {
            return;
        }
        let (embedder, text) = (self.embedder.clone(), query.text());
        self.next_query.start(move || {
            let vector = vector(&*embedder, &text);
            (text, vector)
        });
        let vectors = self.vectors.clone();
        self.next_vectors.start(move || vectors.load());
    }

    /// The vector of a query.
    fn embed(&self, text: &str) -> Result<Vec<f32>, Unavailable> {
        match self.next_query.take() {
            Some((known, vector)) if known == text => vector,
            _ => vector(&*self.embedder, text),
        }
    }

    /// The vectors of the tools.
    fn table(&self) -> Arc<Table> {
        self.next_vectors
            .take()
            .unwrap_or_else(|| self.vectors.load())
    }
}

fn vector(embedder: &dyn Embedder, query: &str) -> Result<Vec<f32>, Unavailable> {
    let vector = embedder.embed(&[query], embedding::QUERY_PIECES)?.pop();
    vector.ok_or_else(|| Unavailable {
        reason: "it gave no vector".to_owned(),
    })
}

/// The lock for making vectors; only one of the processes that share a cache holds it.
pub struct Embedding<'a> {
    search: &'a Search,
    semantic: &'a Semantic,
    _lock: EmbeddingLock,
}

impl Embedding<'_> {
    /// Computes a vector for each document.
    ///
    /// # Errors
    /// When the embedder fails.
    pub fn embed(&self, documents: &[Document]) -> Result<Vec<(VectorKey, Vec<f32>)>, Unavailable> {
        let texts: Vec<String> = documents.iter().map(embedding::text).collect();
        let vectors = self.semantic.embedder.embed(
            &texts.iter().map(String::as_str).collect::<Vec<_>>(),
            embedding::TOOL_PIECES,
        )?;
        let keys = documents
            .iter()
            .map(|document| VectorKey::of(&document.server, document.hash));
        Ok(keys.zip(vectors).collect())
    }

    /// Like [`Embedding::embed`], on one thread or on two.
    ///
    /// # Errors
    /// When the embedder fails.
    pub(crate) fn embed_by(
        &self,
        threads: usize,
        documents: &[Document],
    ) -> Result<Vec<(VectorKey, Vec<f32>)>, Unavailable> {
        if threads < 2 || documents.len() < 2 {
            return self.embed(documents);
        }
        let (some, others) = documents.split_at(documents.len() / 2);
        let (some, others) = in_parallel(|| self.embed(some), || self.embed(others));
        let mut vectors = some?;
        vectors.extend(others?);
        Ok(vectors)
    }

    /// Stores vectors and uses them from now on. Older vectors of `tools` are kept, and a limited number of others.
    pub fn keep(&self, vectors: &HashMap<VectorKey, Vec<f32>>, tools: &HashSet<VectorKey>) {
        self.semantic.vectors.add(vectors, tools);
        self.search.vectors_changed();
    }
}
