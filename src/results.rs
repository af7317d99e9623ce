//! Results that were too large to be shown, or of which only a part was: kept so that nothing is cut and lost.
//!
//! Each run of the program has a directory of its own; results in it are named by an id that cannot be guessed from
//! another. They go with age and when there are too many; a result that is gone is cleanly gone.

use std::fmt;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::files;

/// Results older than this are removed.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// The oldest go when all together are larger than this, in bytes.
const LARGEST_TOTAL: u64 = 512 * 1024 * 1024;

/// Where results of this run are kept.
#[derive(Debug)]
pub struct Results {
    root: PathBuf,
    run: String,
    counter: AtomicU64,
}

/// What a result is called, such as `r1k3x9q`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultId(String);

/// Why there is no stored result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not an id, or nothing of this run has it any more.
    #[error("there is no stored result `{id}`; results are kept for a day, and for the client that made the call")]
    Unknown {
        /// The text as it was written.
        id: String,
    },
    /// The disk failed.
    #[error("the result cannot be kept: {source}")]
    Disk {
        /// What the system says.
        #[from]
        source: io::Error,
    },
}

impl Results {
    /// Results under `root`; touches no file yet.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        let run = format!("{}-{:x}", std::process::id(), random(0));
        Self { root: root.to_owned(), run, counter: AtomicU64::new(0) }
    }

    /// Keeps `result`, and makes room by removing the oldest.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn keep(&self, result: &[u8]) -> Result<ResultId, Error> {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        let id = ResultId(format!("r{}", base36(random(number) >> 29)));
        files::replace(&self.path(&id), &[result])?;
        self.tidy();
        Ok(id)
    }

    /// The result of this name.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn load(&self, id: &str) -> Result<Vec<u8>, Error> {
        let unknown = || Error::Unknown { id: id.chars().take(40).collect() };
        // Only what an id is made of reaches the disk.
        let id = ResultId::parse(id).ok_or_else(unknown)?;
        fs::read(self.path(&id)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => unknown(),
            _ => error.into(),
        })
    }

    fn path(&self, id: &ResultId) -> PathBuf {
        self.root.join(&self.run).join(format!("{id}.json"))
    }

    /// Removes what is too old, of all runs, and then the oldest beyond the total.
    fn tidy(&self) {
        let mut kept: Vec<(SystemTime, u64, PathBuf)> = entries(&self.root)
            .flat_map(|run| entries(&run).collect::<Vec<_>>())
            .filter_map(|path| {
                let metadata = fs::metadata(&path).ok()?;
                Some((metadata.modified().ok()?, metadata.len(), path))
            })
            .collect();
        kept.sort_unstable_by(|a, b| b.cmp(a));
        let mut total = 0;
        for (written, length, path) in kept {
            total += length;
            let is_old = written.elapsed().is_ok_and(|age| age > KEPT_FOR);
            if is_old || total > LARGEST_TOTAL {
                // Another process may have been quicker; an emptied directory goes with its last file.
                let _ = fs::remove_file(&path);
                let _ = path.parent().map(fs::remove_dir);
            }
        }
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        // Results belong to the client that is leaving; there may be none, and then no directory.
        let _ = fs::remove_dir_all(self.root.join(&self.run));
    }
}

impl ResultId {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('r')?;
        let is_id = !digits.is_empty() && digits.len() < 16 && digits.bytes().all(|b| b.is_ascii_alphanumeric());
        is_id.then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for ResultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The keys of a fresh `RandomState` are random, which is all that is asked of a name.
fn random(number: u64) -> u64 {
    RandomState::new().hash_one(number)
}

fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    while number > 0 || digits.is_empty() {
        let digit = u32::try_from(number % 36).expect("below 36");
        digits.push(char::from_digit(digit, 36).expect("a digit of base 36"));
        number /= 36;
    }
    digits.into_iter().rev().collect()
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    // A directory that cannot be read has nothing that could be removed.
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_and_goes_with_its_run() {
        let directory = tempfile::tempdir().unwrap();
        let results = Results::new(directory.path());
        let id = results.keep(b"{\"a\":1}").unwrap();
        assert_eq!(results.load(&id.to_string()).unwrap(), b"{\"a\":1}");
        assert!(Results::new(directory.path()).load(&id.to_string()).is_err(), "another run could read it");
        drop(results);
        assert_eq!(entries(directory.path()).count(), 0);
    }

    #[test]
    fn only_an_id_reaches_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("secret.json"), "no").unwrap();
        let results = Results::new(directory.path());
        for id in ["", "r", "x1", "../secret", "r../../secret", "r1/../../secret", "r1234567890123456"] {
            assert!(matches!(results.load(id), Err(Error::Unknown { .. })), "{id}");
        }
    }

    #[test]
    fn what_is_old_is_removed_whoever_left_it() {
        let directory = tempfile::tempdir().unwrap();
        let left = directory.path().join("1-a/rold.json");
        files::replace(&left, &[b"old"]).unwrap();
        let old = fs::File::options().append(true).open(&left).unwrap();
        old.set_modified(SystemTime::now() - KEPT_FOR - Duration::from_secs(60)).unwrap();
        Results::new(directory.path()).keep(b"new").unwrap();
        assert!(!left.exists());
        assert!(!left.parent().unwrap().exists());
    }
}
