//! The lists, open search indexes and vectors that all sessions of a process use. The view of them is each
//! session's own: it has a catalog with its own rules, and searches the index of exactly its tools.

use std::path::Path;
use std::sync::Arc;

use crate::catalog::Lists;
use crate::search::{Embedder, Search};

/// The lists and indexes of one cache directory.
pub(crate) struct SharedLists {
    pub(super) lists: Arc<Lists>,
    pub(super) search: Search,
}

impl std::fmt::Debug for SharedLists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedLists")
            .field("lists", &self.lists)
            .finish_non_exhaustive()
    }
}

impl SharedLists {
    /// Creates those of the cache in `directory`. `None` keeps them in memory.
    #[must_use]
    pub(crate) fn new(directory: Option<&Path>) -> Self {
        let search = Search::new(directory.map(|directory| directory.join("search")));
        #[cfg(feature = "semantic")]
        let search = search.with_embedder(Arc::new(crate::search::Bundled::default()));
        Self {
            lists: Lists::new(directory),
            search,
        }
    }

    /// Creates those of the cache in `directory`, with another model for search by meaning.
    #[must_use]
    pub(crate) fn with_embedder(directory: Option<&Path>, embedder: Arc<dyn Embedder>) -> Self {
        let search = Search::new(directory.map(|directory| directory.join("search")));
        Self {
            lists: Lists::new(directory),
            search: search.with_embedder(embedder),
        }
    }

    /// A copy with these lists, and its own search over these indexes.
    pub(super) fn for_session(&self) -> Self {
        Self {
            lists: self.lists.clone(),
            search: self.search.another(),
        }
    }
}
