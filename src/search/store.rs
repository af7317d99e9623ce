//! Where indexes lie on disk: a directory for each fingerprint, shared by every process with the same cache.
//!
//! A directory appears under its name only when it is whole, and is never changed after. Whoever uses one holds a
//! shared lock on the file beside it; whoever removes one must get that lock alone. The lock files lie beside the
//! directories, not in them, so that a directory can be renamed on every system.

use std::cmp::Reverse;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::files;

/// A new form of the index gets a new number, and leaves the old one to the versions that know it.
const VERSION: &str = "v2";
/// Unused indexes that are kept: several clients, each with its own servers, take turns.
const KEPT: usize = 3;
/// How long another process may build before this one goes its own way.
const PATIENCE: Duration = Duration::from_secs(20);
const LOCK: &str = "lock";

pub(super) struct Store {
    root: PathBuf,
}

/// An index directory that nobody removes while this exists.
pub(super) struct Held {
    pub(super) path: PathBuf,
    _lock: File,
}

/// The right to add and remove directories, until it is dropped.
pub(super) struct Writer<'a> {
    store: &'a Store,
    _lock: File,
}

impl Store {
    pub(super) fn new(directory: &Path) -> Self {
        Self { root: directory.join(VERSION) }
    }

    /// The index `name`, if there is one.
    pub(super) fn hold(&self, name: &str) -> io::Result<Option<Held>> {
        let path = self.root.join(name);
        if !path.is_dir() {
            return Ok(None);
        }
        let lock = self.lock_file(name)?;
        // Waits only while somebody renames or removes it, which has happened when the lock is granted.
        lock.lock_shared()?;
        // The time of last use; without it, the index may only be removed earlier.
        let _ = lock.set_modified(SystemTime::now());
        Ok(path.is_dir().then_some(Held { path, _lock: lock }))
    }

    /// Waits until no other process builds.
    pub(super) fn write(&self) -> io::Result<Writer<'_>> {
        files::create_private_directory(&self.root)?;
        let lock = self.lock_file("write")?;
        let start = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Writer { store: self, _lock: lock }),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if start.elapsed() > PATIENCE => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the index's lock"));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Takes a damaged index out of the way, whoever uses it: they all have the same damage.
    pub(super) fn discard(&self, name: &str) -> io::Result<()> {
        let aside = self.root.join(temporary("removed"));
        fs::rename(self.root.join(name), &aside)?;
        fs::remove_dir_all(aside)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn lock_file(&self, name: &str) -> io::Result<File> {
        let path = self.root.join(name).with_extension(LOCK);
        File::options().create(true).truncate(false).read(true).write(true).open(path)
    }

    /// The names of all whole indexes, the last used first.
    fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.root) else { return Vec::new() };
        let mut names: Vec<(Reverse<SystemTime>, String)> = entries
            .filter_map(|entry| {
                let name = entry.ok()?.file_name().into_string().ok()?;
                let used = fs::metadata(self.root.join(&name).with_extension(LOCK)).and_then(|lock| lock.modified());
                is_name(&name).then_some((Reverse(used.unwrap_or(SystemTime::UNIX_EPOCH)), name))
            })
            .collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name).collect()
    }
}

impl Writer<'_> {
    /// The index that was used last, to build on.
    pub(super) fn latest(&self) -> Option<Held> {
        self.store.names().into_iter().find_map(|name| self.store.hold(&name).ok().flatten())
    }

    /// An empty directory to build in.
    pub(super) fn begin(&self) -> io::Result<PathBuf> {
        let path = self.store.root.join(temporary("building"));
        fs::create_dir(&path)?;
        Ok(path)
    }

    /// Gives what was built its name.
    pub(super) fn publish(&self, built: &Path, name: &str) -> io::Result<Held> {
        fs::rename(built, self.store.root.join(name))?;
        self.store.hold(name)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Removes what nobody uses: old indexes beyond the few that are kept, and what a crash left half done. What cannot
    /// be removed now can be the next time.
    pub(super) fn tidy(&self, current: &str) {
        for name in self.store.names().into_iter().filter(|name| name != current).skip(KEPT) {
            let Ok(lock) = self.store.lock_file(&name) else { continue };
            if lock.try_lock().is_ok() && self.store.discard(&name).is_ok() {
                let _ = fs::remove_file(self.store.root.join(&name).with_extension(LOCK));
            }
        }
        for entry in fs::read_dir(&self.store.root).into_iter().flatten().flatten() {
            if entry.path().is_dir() && !entry.file_name().to_str().is_some_and(is_name) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Whether it is a fingerprint, and neither a lock nor something temporary.
fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A name that no other thread or process uses.
fn temporary(purpose: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{purpose}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(store: &Store, name: &str) -> Held {
        let writer = store.write().unwrap();
        let built = writer.begin().unwrap();
        fs::write(built.join("data"), name).unwrap();
        writer.publish(&built, name).unwrap()
    }

    #[test]
    fn old_indexes_go_when_nobody_uses_them() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(home.path());
        let used = build(&store, "a0");
        for n in 1..8 {
            drop(build(&store, &format!("a{n}")));
            // File times may be coarse.
            std::thread::sleep(Duration::from_millis(5));
        }
        store.write().unwrap().tidy("a7");
        assert!(used.path.join("data").exists(), "in use");
        assert_eq!(store.names(), ["a7", "a6", "a5", "a4", "a0"]);
        drop(used);
        store.write().unwrap().tidy("a7");
        assert!(store.hold("a0").unwrap().is_none());
    }

    #[test]
    fn what_a_crash_left_is_removed_and_never_opened() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(home.path());
        let half = store.write().unwrap().begin().unwrap();
        fs::write(half.join("data"), "").unwrap();
        assert!(store.names().is_empty());
        store.write().unwrap().tidy("a0");
        assert!(!half.exists());
    }
}
