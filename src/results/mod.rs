//! Stored results: a result that is shown only in part is stored whole, so that the client can read the rest.
//!
//! Each run of the program has a directory, which has a directory for each client with a session. A result's id
//! cannot be derived from another. Results are removed by age and total size. With the setting that keeps results
//! beyond a session, they are stored on a shelf, a directory that all runs share. A session that several processes
//! serve, one after the other, has one directory under its own random name.
//!
//! Several replicas of a gateway have the results in their store, too, so that each of them can read what another one has stored
//! (`shared.rs`).

mod shared;

use std::fmt;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use crate::files;
use crate::store::Records;
use crate::text::hex;

pub(crate) use shared::Holder;

/// Results older than this are removed.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Results on the common shelf are removed after this time if this run has no setting for it.
const COMMON_KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The directory of the common shelf; runs are named by numbers.
const COMMON: &str = "common";

/// When all results are larger than this, in bytes, the oldest are removed.
const LARGEST_TOTAL: u64 = 512 * 1024 * 1024;

/// The first letter of the ids of results in this process alone, and of those that every replica can read.
const OWN: char = 'r';
const SHARED: char = 's';

/// The results of this run.
#[derive(Debug)]
pub(crate) struct Results {
    /// `None` stores nothing.
    root: Option<PathBuf>,
    owner: Owner,
    /// The directory of its results on the common shelf.
    common: PathBuf,
    counter: AtomicU64,
    /// The store of several replicas.
    shared: Option<Arc<dyn Records>>,
}

/// The session or run that results are stored for.
#[derive(Debug, Clone)]
pub(crate) enum Owner {
    /// A run of the program, whose clients each have a shelf.
    Run(String),
    /// One session.
    Session(SessionId),
}

/// The random name of a session, the same for every process that serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionId(String);

/// The name of a result, such as `r1k3x9q`. One that every replica can read begins with `s`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultId(String);

/// The place of a result.
#[derive(Debug, Clone)]
pub(crate) struct ResultLocation {
    /// The shelf of this process.
    pub(crate) shelf: Shelf,
    /// Those who may read it at any replica. `None` if it stays in this process.
    pub(crate) holder: Option<Holder>,
}

/// A group of results that share one directory and one set of readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shelf {
    /// The results of the client with this number.
    Client(u64),
    /// The results of all clients of this run that have no session to distinguish them.
    Run,
    /// The results of all runs, kept for this time.
    Common(Duration),
}

/// A result that could not be stored or loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The text is not an id, or no result on the shelf has it any more.
    #[error(
        "there is no stored result `{id}`; results are kept for a time, and for the client that made the call"
    )]
    Unknown {
        /// The id as it was written.
        id: String,
    },
    /// There is no directory for results.
    #[error("the result cannot be kept: no directory is set for results")]
    Nowhere,
    /// It is only at the replica that made the call.
    #[error(
        "the stored result `{id}` is only at the replica of the gateway that made the call, because it was too large for the store or the store did not answer; call the tool again"
    )]
    Elsewhere {
        /// The id as it was written.
        id: String,
    },
    /// The store does not answer.
    #[error("the stored result cannot be read now: {source}; try again in a moment")]
    Store {
        /// The reason.
        source: io::Error,
    },
    /// The disk failed.
    #[error("the result cannot be kept: {source}")]
    Disk {
        /// The system's error.
        #[from]
        source: io::Error,
    },
}

impl Results {
    /// Creates the store under `root`; it touches no file yet.
    #[must_use]
    pub(crate) fn new(root: &Path, owner: Owner) -> Self {
        Self {
            root: Some(root.to_owned()),
            owner,
            common: PathBuf::from(COMMON),
            counter: AtomicU64::new(0),
            shared: None,
        }
    }

    /// Has the results in the store of several replicas, too.
    #[must_use]
    pub(crate) fn shared_in(mut self, shared: Option<Arc<dyn Records>>) -> Self {
        self.shared = shared;
        self
    }

    /// The store of one person: on the common shelf, too, only that person's results are.
    #[must_use]
    pub(crate) fn of_person(mut self, identity: Option<&str>) -> Self {
        if let Some(identity) = identity {
            let digest = Sha256::digest(identity);
            self.common = Path::new(COMMON).join(hex(&digest[..16]));
        }
        self
    }

    /// Creates a store that keeps nothing.
    #[must_use]
    pub(crate) fn absent() -> Self {
        Self {
            root: None,
            owner: Owner::default(),
            common: PathBuf::from(COMMON),
            counter: AtomicU64::new(0),
            shared: None,
        }
    }

    /// Whether it keeps nothing.
    #[must_use]
    pub(crate) fn is_absent(&self) -> bool {
        self.root.is_none()
    }

    /// Stores `result`, and removes the oldest results if it needs room. With a store of several replicas, it is committed there. A
    /// result that cannot be written there stays in this process.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn keep(&self, place: &ResultLocation, result: &[u8]) -> Result<ResultId, Error> {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        let digits = base36(random(number) >> 4);
        let root = self.root.as_deref().ok_or(Error::Nowhere)?;
        let id = match self.share(place, &digits, result) {
            true => ResultId(format!("{SHARED}{digits}")),
            false => ResultId(format!("{OWN}{digits}")),
        };
        files::replace(&self.path(root, place.shelf, &id), &[result])?;
        tidy(root, place.shelf);
        Ok(id)
    }

    /// Removes the results of this run's clients.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn forget(&self) -> io::Result<()> {
        let Some(root) = &self.root else {
            return Ok(());
        };
        match fs::remove_dir_all(root.join(self.owner.name())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            forgotten => forgotten,
        }
    }

    /// The number of results that this run has stored or tried to store.
    #[must_use]
    pub(crate) fn stored(&self) -> u64 {
        self.counter.load(Ordering::Relaxed)
    }

    /// The result with this id.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub(crate) fn load(&self, place: &ResultLocation, id: &str) -> Result<Vec<u8>, Error> {
        let unknown = || Error::Unknown {
            id: id.chars().take(40).collect(),
        };
        // Only the characters of an id reach the disk.
        let id = ResultId::parse(id).ok_or_else(unknown)?;
        let root = self.root.as_deref().ok_or_else(unknown)?;
        match files::read_any(&self.path(root, place.shelf, &id)) {
            Ok(result) => Ok(result),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.of_replicas(place, &id)?.ok_or_else(unknown)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn path(&self, root: &Path, shelf: Shelf, id: &ResultId) -> PathBuf {
        let directory = match shelf {
            Shelf::Client(number) if matches!(self.owner, Owner::Run(_)) => {
                root.join(self.owner.name()).join(number.to_string())
            }
            Shelf::Client(_) | Shelf::Run => root.join(self.owner.name()),
            Shelf::Common(_) => root.join(&self.common),
        };
        directory.join(format!("{id}.json"))
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        // Results belong to the client that is leaving; there may be none, and then no directory.
        if let Some(root) = &self.root {
            let _ = fs::remove_dir_all(root.join(self.owner.name()));
        }
    }
}

/// Removes expired results of all runs, and then the oldest ones beyond the total.
fn tidy(root: &Path, shelf: Shelf) {
    let common = root.join(COMMON);
    let mut kept = Vec::new();
    files_below(root, 3, &mut kept);
    kept.sort_unstable_by(|a, b| b.cmp(a));
    let mut total = 0;
    for (written, length, path) in kept {
        total += length;
        let limit = match shelf {
            Shelf::Common(limit) if path.starts_with(&common) => limit,
            _ if path.starts_with(&common) => COMMON_KEPT_FOR,
            _ => KEPT_FOR,
        };
        let is_old = written.elapsed().is_ok_and(|age| age > limit);
        if is_old || total > LARGEST_TOTAL {
            // Another process may have removed it first. An emptied directory is removed with its last file.
            let _ = fs::remove_file(&path);
            let _ = path
                .ancestors()
                .skip(1)
                .take_while(|path| *path != root)
                .try_for_each(fs::remove_dir);
        }
    }
}

/// A run of its own.
impl Default for Owner {
    fn default() -> Self {
        Self::Run(format!("{}-{:x}", std::process::id(), random(0)))
    }
}

impl Owner {
    /// The name of the session, if it is one.
    pub(crate) fn session(&self) -> Option<&str> {
        match self {
            Self::Run(_) => None,
            Self::Session(SessionId(name)) => Some(name),
        }
    }

    /// The name of its directory.
    fn name(&self) -> &str {
        match self {
            Self::Run(name) | Self::Session(SessionId(name)) => name,
        }
    }
}

impl SessionId {
    /// A new name.
    #[must_use]
    pub(crate) fn random() -> Self {
        Self(format!("s{:016x}{:016x}", random(0), random(1)))
    }

    /// A name that another process made; `None` for any other text, which could lead anywhere.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('s')?;
        let is_name = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_name.then(|| Self(text.to_owned()))
    }

    /// The name as text.
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl ResultId {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix([OWN, SHARED])?;
        let is_id = !digits.is_empty()
            && digits.len() < 16
            && digits.bytes().all(|b| b.is_ascii_alphanumeric());
        is_id.then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for ResultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The keys of a fresh `RandomState` are random, which is enough for a name.
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

/// The files in `directory` and up to `levels` levels below it: modification time, length, path.
fn files_below(directory: &Path, levels: usize, found: &mut Vec<(SystemTime, u64, PathBuf)>) {
    for path in entries(directory) {
        // A file that is gone needs no removal.
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_dir() && levels > 1 {
            files_below(&path, levels - 1, found);
        } else if let (true, Ok(written)) = (metadata.is_file(), metadata.modified()) {
            found.push((written, metadata.len(), path));
        }
    }
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    // An unreadable directory has nothing to remove.
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: ResultLocation = ResultLocation::of(Shelf::Client(7));

    #[test]
    fn what_is_kept_comes_back_and_goes_with_its_run() {
        let directory = tempfile::tempdir().unwrap();
        let results = Results::new(directory.path(), Owner::default());
        for shelf in [MINE, ResultLocation::of(Shelf::Run)] {
            let id = results.keep(&shelf, b"{\"a\":1}").unwrap().to_string();
            assert_eq!(results.load(&shelf, &id).unwrap(), b"{\"a\":1}");
            assert!(
                results
                    .load(&ResultLocation::of(Shelf::Client(8)), &id)
                    .is_err(),
                "another client could read it"
            );
            assert!(
                Results::new(directory.path(), Owner::default())
                    .load(&shelf, &id)
                    .is_err(),
                "another run could read it"
            );
        }
        drop(results);
        assert_eq!(entries(directory.path()).count(), 0);
    }

    #[test]
    fn what_stands_on_the_common_shelf_outlasts_its_run() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = ResultLocation::of(Shelf::Common(Duration::from_secs(3600)));
        let id = Results::new(directory.path(), Owner::default())
            .keep(&shelf, b"{}")
            .unwrap()
            .to_string();
        let later = Results::new(directory.path(), Owner::default());
        assert_eq!(later.load(&shelf, &id).unwrap(), b"{}");
        assert!(later.load(&MINE, &id).is_err());
        let file = directory.path().join(COMMON).join(format!("{id}.json"));
        let age = |hours: u64| {
            let file = fs::File::options().append(true).open(&file).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600))
                .unwrap();
        };
        age(48);
        later.keep(&MINE, b"{}").unwrap();
        assert!(file.exists(), "somebody who knows nothing of it removed it");
        later.keep(&shelf, b"{}").unwrap();
        assert!(!file.exists());
    }

    #[test]
    fn whoever_serves_a_session_next_finds_its_results_and_another_session_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let id = SessionId::random();
        let of = |id: &SessionId| {
            let id = SessionId::parse(id.as_str()).expect("a name of ours is one");
            Results::new(directory.path(), Owner::Session(id))
        };
        let killed = of(&id);
        let result = killed.keep(&MINE, b"{}").unwrap().to_string();
        std::mem::forget(killed);
        assert!(of(&SessionId::random()).load(&MINE, &result).is_err());
        // It may be another client to the process that serves it now.
        let next = of(&id);
        assert_eq!(
            next.load(&ResultLocation::of(Shelf::Client(8)), &result)
                .unwrap(),
            b"{}"
        );
        drop(next);
        assert_eq!(entries(directory.path()).count(), 0);
        for wrong in [
            "",
            "s",
            "../s",
            "common",
            "s0123456789abcdef0123456789abcde/",
        ] {
            assert_eq!(SessionId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_an_id_reaches_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("secret.json"), "no").unwrap();
        let results = Results::new(directory.path(), Owner::default());
        for id in [
            "",
            "r",
            "x1",
            "../secret",
            "r../../secret",
            "r1/../../secret",
            "r1234567890123456",
        ] {
            assert!(
                matches!(results.load(&MINE, id), Err(Error::Unknown { .. })),
                "{id}"
            );
        }
    }

    #[test]
    fn what_is_old_is_removed_whoever_left_it() {
        let directory = tempfile::tempdir().unwrap();
        for left in ["1-a/rold.json", "1-b/3/rold.json"] {
            let left = directory.path().join(left);
            files::replace(&left, &[b"old"]).unwrap();
            let old = fs::File::options().append(true).open(&left).unwrap();
            old.set_modified(SystemTime::now() - KEPT_FOR - Duration::from_secs(60))
                .unwrap();
        }
        let results = Results::new(directory.path(), Owner::default());
        results.keep(&MINE, b"new").unwrap();
        assert_eq!(
            entries(directory.path()).count(),
            1,
            "what another run left is still there"
        );
    }

    #[test]
    fn ids_are_many_and_differ() {
        let directory = tempfile::tempdir().unwrap();
        let results = Results::new(directory.path(), Owner::default());
        let ids: std::collections::HashSet<String> = (0..200)
            .map(|_| results.keep(&MINE, b"").unwrap().to_string())
            .collect();
        assert_eq!(ids.len(), 200);
        assert!(ids.iter().all(|id| ResultId::parse(id).is_some()));
    }
}
