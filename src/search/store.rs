//! The indexes on disk: one file per fingerprint, shared by all processes with the same cache.
//!
//! A file is written under another name, synced and renamed, and never changed afterwards; readers read it whole. So
//! readers need no lock, and any process may remove a file at any time. Only builders hold a lock, so that two
//! processes do not do the same work.

use std::cmp::Reverse;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::files;

/// The version of the index format.
pub(super) const VERSION: &str = "v3";
/// The formats of earlier versions of this program, which are removed once there is an index of this one.
const EARLIER: [&str; 2] = ["v1", "v2"];
/// The number of unused indexes that are kept: several clients, each with its own servers, take turns.
const KEPT: usize = 3;
/// The time to wait for another process that builds, before building without the lock.
const PATIENCE: Duration = Duration::from_secs(20);
const EXTENSION: &str = "index";

pub(super) struct Store {
    directory: PathBuf,
    root: PathBuf,
}

/// The lock for adding and removing indexes, until it is dropped.
pub(super) struct Writer<'a> {
    store: &'a Store,
    _lock: File,
}

impl Store {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            root: directory.join(VERSION),
        }
    }

    /// The bytes of the index `name`, if there is one.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let path = self.file(name);
        match files::read_any(&path) {
            Ok(bytes) => {
                // Sets the time of last use. Without it the index may be removed earlier.
                let _ = files::open_with(File::options().append(true), &path)
                    .and_then(|file| file.set_modified(SystemTime::now()));
                Ok(Some(bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // Something other than a file is unreadable for every process.
            Err(_) if path.exists() && !path.is_file() => Ok(Some(Vec::new())),
            Err(error) => Err(error),
        }
    }

    /// Waits until no other process builds.
    pub(super) fn write(&self) -> io::Result<Writer<'_>> {
        files::create_private_directory(&self.root)?;
        let lock = files::open_lock(&self.root.join("write.lock"))?;
        let start = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => {
                    return Ok(Writer {
                        store: self,
                        _lock: lock,
                    });
                }
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if start.elapsed() > PATIENCE => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "another process holds the index's lock",
                    ));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Removes a damaged index.
    pub(super) fn discard(&self, name: &str) -> io::Result<()> {
        let path = self.file(name);
        if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root.join(name).with_extension(EXTENSION)
    }

    /// The names of all indexes, the last used first.
    fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.root) else {
            return Vec::new();
        };
        let mut names: Vec<(Reverse<SystemTime>, String)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry
                    .file_name()
                    .to_str()?
                    .strip_suffix(EXTENSION)?
                    .strip_suffix('.')?
                    .to_owned();
                let used = entry.metadata().and_then(|file| file.modified());
                is_name(&name).then_some((Reverse(used.unwrap_or(SystemTime::UNIX_EPOCH)), name))
            })
            .collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name).collect()
    }
}

impl Writer<'_> {
    /// Renames the written index to `name`.
    pub(super) fn publish(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        files::replace(&self.store.file(name), &[bytes])
    }

    /// Removes the oldest indexes beyond the number that is kept, and those of earlier versions. A failed removal is
    /// tried again next time.
    pub(super) fn tidy(&self, current: &str) {
        for name in self
            .store
            .names()
            .into_iter()
            .filter(|name| name != current)
            .skip(KEPT)
        {
            let _ = self.store.discard(&name);
        }
        for earlier in EARLIER {
            let _ = fs::remove_dir_all(self.store.directory.join(earlier));
        }
    }
}

/// Whether it is a fingerprint, and not a temporary file.
fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_indexes_go_and_so_do_those_of_earlier_versions() {
        let home = tempfile::tempdir().unwrap();
        let earlier = home.path().join("v2");
        fs::create_dir_all(earlier.join("a0")).unwrap();
        fs::create_dir(home.path().join("vectors")).unwrap();
        let store = Store::new(home.path());
        let writer = store.write().unwrap();
        let used = |age: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + age);
        for n in 0..8u64 {
            writer.publish(&format!("a{n}"), b"index").unwrap();
            File::options()
                .append(true)
                .open(store.file(&format!("a{n}")))
                .unwrap()
                .set_modified(used(n))
                .unwrap();
        }
        assert_eq!(
            store.read("a0").unwrap().unwrap(),
            b"index",
            "which makes it the last that was used"
        );
        writer.tidy("a7");
        assert_eq!(store.names(), ["a0", "a7", "a6", "a5"]);
        assert!(!earlier.exists() && home.path().join("vectors").exists());
        assert!(store.read("a1").unwrap().is_none());
    }

    #[test]
    fn what_a_crash_left_is_never_opened() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(home.path());
        let writer = store.write().unwrap();
        fs::write(store.root.join(".a0.index.1.0.tmp"), "half").unwrap();
        assert!(store.names().is_empty() && store.read("a0").unwrap().is_none());
        writer.publish("a0", b"whole").unwrap();
        assert_eq!(store.names(), ["a0"]);
    }
}
