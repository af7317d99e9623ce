//! The servers' lists in memory: sessions of one process share the list of a cache file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use super::cache::{Cache, Key};
use super::server_tools::{Body, Listed, ServerTools};

/// Two times of listing that differ by less than this are taken for one.
const SAME: Duration = Duration::from_secs(2);

/// The cache of lists, and those that are in use.
#[derive(Debug)]
pub(crate) struct Lists {
    cache: Cache,
    /// By the name of the cache file.
    held: Mutex<BTreeMap<String, Weak<ServerTools>>>,
}

impl Lists {
    /// Creates the lists of the cache in `directory`. `None` keeps lists in memory only.
    #[must_use]
    pub(crate) fn new(directory: Option<&Path>) -> Arc<Self> {
        Arc::new(Self {
            cache: Cache::new(directory),
            held: Mutex::default(),
        })
    }

    /// The server's last list; see [`Cache::load`].
    #[must_use]
    pub(crate) fn load(&self, key: &Key) -> Option<Arc<ServerTools>> {
        if let Some(held) = self.held(key)
            && self
                .cache
                .path(key)
                .is_some_and(|path| is_content(&held, &path))
        {
            return Some(held);
        }
        Some(self.hold(key, self.cache.load(key)?))
    }

    /// Stores a list; see [`Cache::store`].
    #[must_use]
    pub(crate) fn store(&self, key: &Key, listed: &Listed) -> Arc<ServerTools> {
        self.hold(key, self.cache.store(key, listed))
    }

    /// See [`Cache::tidy`].
    pub(crate) fn tidy(&self) {
        self.cache.tidy();
    }

    /// Sets aside a list that turned out to be damaged; see [`Cache::discard`].
    pub(crate) fn discard(&self, key: &Key) {
        self.held.lock().remove(&name(key));
        self.cache.discard(key);
    }

    fn held(&self, key: &Key) -> Option<Arc<ServerTools>> {
        self.held.lock().get(&name(key))?.upgrade()
    }

    /// Holds `tools`, or returns the held list if it has the same content and time.
    fn hold(&self, key: &Key, tools: ServerTools) -> Arc<ServerTools> {
        let mut held = self.held.lock();
        held.retain(|_, known| known.strong_count() > 0);
        let known = held.get(&name(key)).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| is_same(known, &tools)) {
            return known;
        }
        let tools = Arc::new(tools);
        held.insert(name(key), Arc::downgrade(&tools));
        tools
    }
}

fn name(key: &Key) -> String {
    format!("{}-{}", key.server, key.configuration)
}

/// Whether `path` is still the file that `tools` was read from, and was listed at the same time.
fn is_content(tools: &ServerTools, path: &Path) -> bool {
    let Body::File { file, .. } = &*tools.body else {
        return false;
    };
    let (Ok(own), Ok(now)) = (file.metadata(), std::fs::metadata(path)) else {
        return false;
    };
    let is_recent = now.modified().is_ok_and(|at| is_close(at, tools.listed_at));
    identity(&own).is_some_and(|own| Some(own) == identity(&now)) && is_recent
}

/// Whether both have the same file, which never changes, and the same time.
fn is_same(one: &ServerTools, other: &ServerTools) -> bool {
    let (Body::File { file: one_file, .. }, Body::File { file, .. }) = (&*one.body, &*other.body)
    else {
        return false;
    };
    let identities = [one_file, file].map(|file| identity(&file.metadata().ok()?));
    let [Some(of_one), Some(of_other)] = identities else {
        return false;
    };
    of_one == of_other && is_close(one.listed_at, other.listed_at)
}

fn is_close(one: SystemTime, other: SystemTime) -> bool {
    let between = one
        .duration_since(other)
        .unwrap_or_else(|error| error.duration());
    between < SAME
}

/// The device and the inode of a file.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
fn identity(metadata: &std::fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some((metadata.dev(), metadata.ino()))
}

/// Sessions share no process on other systems.
#[cfg(not(unix))]
fn identity(_: &std::fs::Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::tool::ServerName;

    fn key() -> Key {
        Key {
            server: ServerName::new("s").unwrap(),
            configuration: "0123".to_owned(),
        }
    }

    fn listed(tool: &'static str) -> Listed {
        Listed {
            tools: vec![Bytes::from_static(tool.as_bytes())],
            ..Listed::default()
        }
    }

    #[test]
    fn a_list_is_held_once_and_a_replaced_file_is_read() {
        let home = tempfile::tempdir().unwrap();
        let lists = Lists::new(Some(home.path()));
        let stored = lists.store(&key(), &listed(r#"{"name":"a"}"#));
        assert!(Arc::ptr_eq(&stored, &lists.load(&key()).unwrap()));
        let again = lists.store(&key(), &listed(r#"{"name":"a"}"#));
        assert!(Arc::ptr_eq(&stored, &again));
        // Another process lists the server.
        let other = Cache::new(Some(home.path())).store(&key(), &listed(r#"{"name":"b"}"#));
        let loaded = lists.load(&key()).unwrap();
        assert_eq!(loaded.entries()[0].name, other.entries()[0].name);
        assert!(!Arc::ptr_eq(&stored, &loaded));
        // An outdated list is not held for a newer one of the same file.
        let file = std::fs::read_dir(home.path().join("catalog").join(super::super::FORMAT));
        let path = file.unwrap().next().unwrap().unwrap().path();
        let later = SystemTime::now() + Duration::from_secs(60);
        let file = std::fs::File::options().append(true).open(path).unwrap();
        file.set_modified(later).unwrap();
        let newer = lists.load(&key()).unwrap();
        assert!(newer.listed_at() > loaded.listed_at());
    }

    #[test]
    fn lists_in_memory_are_not_mixed_up() {
        let lists = Lists::new(None);
        let one = lists.store(&key(), &listed(r#"{"name":"a"}"#));
        let other = lists.store(&key(), &listed(r#"{"name":"b"}"#));
        assert_ne!(one.entries()[0].name, other.entries()[0].name);
        assert!(lists.load(&key()).is_none());
    }
}
