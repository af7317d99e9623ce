//! Lists of servers and vectors of tools that replicas pass to each other through the store.
//!
//! A replica that starts takes those that it does not have, or that are newer there, before it reads its cache. A replica whose cache has
//! changed puts the changed files into the store. All of it can be made again, so a failure is not one of the run. The lists of one person
//! stay where they are.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use crate::catalog;
use crate::config::{Config, Environment, Paths};
use crate::files;
use crate::proxy::VectorFiles;
use crate::search;
use crate::shutdown::Tasks;
use crate::store::{Item, ItemKind, Records};

/// The time between two looks at the cache.
const LOOK: Duration = Duration::from_secs(15);

/// The time for which a file is kept in the store after it was put there.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The largest file in the store, in bytes.
const LARGEST: u64 = 32 * 1024 * 1024;

/// The ends of the names of lists and of vectors.
const LISTS: &str = ".tools";
const VECTORS: &str = ".vectors";

/// A file of the cache: its kind, and its name.
type Name = (ItemKind, String);

/// The cache of a replica.
#[derive(Debug)]
struct Cache<'p> {
    directory: &'p Path,
    store: &'p dyn Records,
}

/// Takes what the store has for the servers of the configuration, and this replica has not. It waits for the store.
pub(crate) fn take_caches(paths: &Paths, environment: &Environment) {
    let Some(store) = environment.store() else {
        return;
    };
    // Without a configuration there are no lists.
    let Ok(config) = Config::load_or_default(paths, environment) else {
        return;
    };
    let cache = Cache {
        directory: &paths.cache_dir,
        store: store.as_ref(),
    };
    let entries = config.servers.iter().filter(|(_, entry)| !entry.disabled);
    let lists = entries.map(|(server, entry)| {
        let name = format!("{server}-{}{LISTS}", entry.hash);
        (ItemKind::Lists, name)
    });
    let vectors = store.keys_of(ItemKind::Vectors).unwrap_or_default();
    let vectors = vectors.into_iter().map(|name| (ItemKind::Vectors, name));
    for name in lists.chain(vectors) {
        match cache.take(&name) {
            Ok(true) => tracing::debug!(name = name.1, "taken from another replica"),
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(name = name.1, %error, "not taken from the store");
                if store.fault().is_some() {
                    return;
                }
            }
        }
    }
}

/// The files of vectors of a cache.
#[derive(Debug)]
pub(super) struct SharedVectors {
    pub(super) directory: PathBuf,
    pub(super) store: Arc<dyn Records>,
}

impl SharedVectors {
    fn cache(&self) -> Cache<'_> {
        Cache {
            directory: &self.directory,
            store: self.store.as_ref(),
        }
    }
}

impl VectorFiles for SharedVectors {
    fn take(&self) {
        let names = self.store.keys_of(ItemKind::Vectors).unwrap_or_default();
        for name in names {
            if let Err(error) = self.cache().take(&(ItemKind::Vectors, name)) {
                tracing::debug!(%error, "vectors are not taken from the store");
            }
        }
    }

    fn put(&self) {
        let cache = self.cache();
        cache.put_changed_of(ItemKind::Vectors, VECTORS, &mut Known::default());
    }
}

/// Puts changed files into the store until the run ends.
pub(super) async fn share_caches(directory: PathBuf, store: Arc<dyn Records>, tasks: Tasks) {
    let mut known = Known::default();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = tasks.stopped() => return,
        }
        let (directory, store) = (directory.clone(), store.clone());
        let shared = tasks.spawn_blocking(move || {
            let cache = Cache {
                directory: &directory,
                store: store.as_ref(),
            };
            cache.put_changed(&mut known);
            known
        });
        let Ok(now) = shared.await else { return };
        known = now;
    }
}

/// The files that were looked at: their times, and the hashes of what the store has.
type Known = HashMap<String, (SystemTime, [u8; 32])>;

impl Cache<'_> {
    fn folder(&self, kind: ItemKind) -> PathBuf {
        match kind {
            ItemKind::Vectors => self
                .directory
                .join("search/vectors")
                .join(search::VECTOR_FORMAT),
            ItemKind::Lists | ItemKind::Result => {
                let lists = self.directory.join(catalog::DIRECTORY);
                lists.join(catalog::FORMAT)
            }
        }
    }

    /// Takes a file if the store has a newer one. Returns whether it has.
    fn take(&self, name: &Name) -> io::Result<bool> {
        // A name from the store must not lead elsewhere.
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !name.1.chars().all(is_part) || name.1.starts_with('.') {
            return Ok(false);
        }
        let path = self.folder(name.0).join(&name.1);
        let Some(body) = self.store.fetch(item(name))? else {
            return Ok(false);
        };
        let Some((time, content)) = body.split_first_chunk() else {
            return Ok(false);
        };
        let time = UNIX_EPOCH + Duration::from_secs(u64::from_be_bytes(*time));
        let own = fs::metadata(&path).and_then(|file| file.modified());
        if own.is_ok_and(|own| own >= time) {
            return Ok(false);
        }
        files::replace(&path, &[content])?;
        // The time of a list is that at which its server has listed its tools.
        File::options()
            .append(true)
            .open(&path)?
            .set_modified(time)?;
        Ok(true)
    }

    /// Puts the files into the store that have changed since the last look.
    fn put_changed(&self, known: &mut Known) {
        for (kind, end) in [(ItemKind::Lists, LISTS), (ItemKind::Vectors, VECTORS)] {
            self.put_changed_of(kind, end, known);
        }
    }

    fn put_changed_of(&self, kind: ItemKind, end: &str, known: &mut Known) {
        // A folder that is not there has no files.
        let files = fs::read_dir(self.folder(kind)).into_iter().flatten();
        for file in files.flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            if name.ends_with(end)
                && !name.contains('+')
                && let Err(error) = self.put(&file.path(), (kind, name), known)
            {
                tracing::debug!(%error, "a file of the cache is not put into the store");
                if self.store.fault().is_some() {
                    return;
                }
            }
        }
    }

    fn put(&self, path: &Path, name: Name, known: &mut Known) -> io::Result<()> {
        let time = fs::metadata(path)?.modified()?;
        let before = known.get(&name.1);
        if before.is_some_and(|(seen, _)| *seen == time) {
            return Ok(());
        }
        let content = files::read_regular(path, LARGEST)?;
        let hash: [u8; 32] = Sha256::digest(&content).into();
        let is_there = match before {
            Some((_, known)) => *known == hash,
            // Another replica may have put it there.
            None => self
                .store
                .fetch(item(&name))?
                .is_some_and(|body| body.get(8..) == Some(&content[..]) || newer(&body, time)),
        };
        if !is_there {
            let seconds = time
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs();
            let body = [&seconds.to_be_bytes()[..], &content].concat();
            self.store.keep(item(&name), &body, KEPT)?;
        }
        known.insert(name.1, (time, hash));
        Ok(())
    }
}

/// Whether the body of an item is of a later time.
fn newer(body: &[u8], time: SystemTime) -> bool {
    let there = body.first_chunk().map(|time| u64::from_be_bytes(*time));
    there.is_some_and(|there| UNIX_EPOCH + Duration::from_secs(there) > time)
}

fn item((kind, name): &Name) -> Item {
    Item {
        kind: *kind,
        scope: String::new(),
        key: name.clone(),
    }
}
