//! The indexes of one directory, which several searches of a process may share: each open index exists once.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::fingerprint::Fingerprint;
use super::index::Index;
use super::store::Store;
use super::{Document, Error, writing};

/// Opens and builds indexes. All methods block.
pub(super) struct Library {
    /// `None` keeps the indexes in memory.
    pub(super) directory: Option<PathBuf>,
    store: Option<Store>,
    /// The indexes in use.
    open: Mutex<Vec<Weak<Index>>>,
    // Locked while a thread builds, so that no two threads of a process build at once.
    building: Mutex<()>,
}

impl Library {
    pub(super) fn new(directory: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self {
            store: directory.as_deref().map(Store::new),
            directory,
            open: Mutex::default(),
            building: Mutex::default(),
        })
    }

    /// The index of `fingerprint`. `None` if it must be built first.
    ///
    /// # Errors
    /// When the directory cannot be read. A damaged index is not an error: it is removed and must be built.
    pub(super) fn open(&self, fingerprint: &Fingerprint) -> Result<Option<Arc<Index>>, Error> {
        if let Some(index) = self.known(fingerprint) {
            return Ok(Some(index));
        }
        let Some(store) = &self.store else {
            return Ok(None);
        };
        Ok(open_in(store, fingerprint)?.map(|index| self.keep(index)))
    }

    /// Builds the index of these documents. If the disk fails, it is built in memory.
    ///
    /// # Errors
    /// When it cannot be built even in memory.
    pub(super) fn build(
        &self,
        fingerprint: &Fingerprint,
        documents: &[Document],
    ) -> Result<Arc<Index>, Error> {
        let _one_at_a_time = self.building.lock();
        if let Some(index) = self.known(fingerprint) {
            return Ok(index);
        }
        let on_disk = self.store.as_ref().and_then(|store| {
            let built = build_in(store, fingerprint, documents);
            built
                .inspect_err(|error| warn("the search index is built in memory", error))
                .ok()
        });
        let index = match on_disk {
            Some(index) => index,
            None => Index::in_memory(fingerprint, documents)?,
        };
        Ok(self.keep(index))
    }

    /// Forgets a damaged index, and removes its file.
    pub(super) fn discard(&self, index: &Arc<Index>, error: &Error) {
        let mut open = self.open.lock();
        let count = open.len();
        open.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(index)));
        // Another search that has it may have removed the file already, and built a new one.
        if open.len() == count {
            return;
        }
        drop(open);
        if let Some(store) = self.store.as_ref().filter(|_| !index.is_in_memory()) {
            discard(store, &index.fingerprint, error);
        }
    }

    fn known(&self, fingerprint: &Fingerprint) -> Option<Arc<Index>> {
        let open = self.open.lock();
        open.iter()
            .filter_map(Weak::upgrade)
            .find(|index| index.fingerprint == *fingerprint)
    }

    /// Adds an index, unless another thread has added the same one.
    fn keep(&self, index: Index) -> Arc<Index> {
        let mut open = self.open.lock();
        open.retain(|known| known.strong_count() > 0);
        let mut known = open.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.find(|known| known.fingerprint == index.fingerprint) {
            return known;
        }
        let index = Arc::new(index);
        open.push(Arc::downgrade(&index));
        index
    }
}

fn open_in(store: &Store, fingerprint: &Fingerprint) -> Result<Option<Index>, Error> {
    let read = store
        .read(fingerprint.as_str())
        .map_err(|source| Error::Disk {
            path: store.root().to_owned(),
            source,
        })?;
    let Some(bytes) = read else { return Ok(None) };
    let index = Index::open(fingerprint, bytes);
    if index.is_none() {
        discard(store, fingerprint, &Error::Damaged);
    }
    Ok(index)
}

/// Builds on disk, unless another process has done so in the meantime.
fn build_in(
    store: &Store,
    fingerprint: &Fingerprint,
    documents: &[Document],
) -> Result<Index, Error> {
    let failed = |source| Error::Disk {
        path: store.root().to_owned(),
        source,
    };
    let writer = store.write().map_err(failed)?;
    if let Some(index) = open_in(store, fingerprint)? {
        return Ok(index);
    }
    let bytes = writing::write(documents).map_err(|_| Error::TooLarge)?;
    writer
        .publish(fingerprint.as_str(), &bytes)
        .map_err(failed)?;
    writer.tidy(fingerprint.as_str());
    Index::open(fingerprint, bytes).ok_or(Error::Damaged)
}

fn discard(store: &Store, fingerprint: &Fingerprint, error: &Error) {
    warn("a search index cannot be read and is removed", error);
    if let Err(error) = store.discard(fingerprint.as_str()) {
        tracing::warn!(%fingerprint, %error, "the damaged search index cannot be removed");
    }
}

fn warn(what: &str, error: &Error) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::warn!(%error, cause, "{what}");
}
