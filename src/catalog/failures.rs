//! The last failed listing of each server, kept on disk so that a later process can say what happened.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::Key;
use crate::files;

/// Records are removed after this time.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A server that failed within this time is expected to fail again.
const FRESH: Duration = Duration::from_secs(10 * 60);

/// The largest record that is read, in bytes; reasons are cut well below it.
const LARGEST: u64 = 64 * 1024;
const LONGEST_REASON: usize = 4 * 1024;

/// The records: one file per server and configuration entry, so that an edited entry begins without one.
#[derive(Debug)]
pub(crate) struct Failures {
    /// `None` when nothing is kept on disk.
    directory: Option<PathBuf>,
}

/// One failed listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The reason, with secrets masked.
    pub reason: String,
    /// When, in seconds since 1970.
    pub at: u64,
}

impl Failure {
    /// Creates the record of a failure that happens now.
    #[must_use]
    pub(crate) fn now(reason: &str) -> Self {
        Self {
            reason: reason.chars().take(LONGEST_REASON).collect(),
            at: seconds(SystemTime::now()),
        }
    }

    /// How long ago it happened.
    #[must_use]
    pub(crate) fn age(&self) -> Duration {
        Duration::from_secs(seconds(SystemTime::now()).saturating_sub(self.at))
    }
}

impl Failures {
    /// Creates the records below the cache directory. `None` keeps none.
    #[must_use]
    pub(crate) fn new(cache: Option<&Path>) -> Self {
        Self {
            directory: cache.map(|cache| cache.join("failures")),
        }
    }

    /// Reads a server's last failure, if its last listing failed.
    #[must_use]
    pub(crate) fn load(&self, key: &Key) -> Option<Failure> {
        let bytes = files::read_regular(&self.path(key)?, LARGEST).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Whether a server failed to list its tools in the last ten minutes.
    #[must_use]
    pub(crate) fn is_fresh(&self, key: &Key) -> bool {
        self.load(key).is_some_and(|failure| failure.age() < FRESH)
    }

    /// Stores the failure. If the disk refuses it, only the log has it.
    pub(crate) fn store(&self, key: &Key, failure: &Failure) {
        let (Some(directory), Some(path)) = (&self.directory, self.path(key)) else {
            return;
        };
        let json = serde_json::to_vec(failure).unwrap_or_default();
        let kept = files::create_private_directory(directory)
            .and_then(|()| files::replace(&path, &[json.as_slice()]));
        if let Err(error) = kept {
            tracing::debug!(path = %path.display(), %error, "a failure cannot be kept on disk");
        }
        tidy(directory);
    }

    /// Removes the record of a server that has listed its tools.
    pub(crate) fn remove(&self, key: &Key) {
        if let Some(path) = self.path(key) {
            // Usually there is none.
            let _ = fs::remove_file(path);
        }
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        let name = format!("{}-{}.json", key.server, key.configuration);
        Some(self.directory.as_ref()?.join(name))
    }
}

fn tidy(directory: &Path) {
    for file in fs::read_dir(directory).into_iter().flatten().flatten() {
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > KEPT_FOR) {
            // Another process may have removed it first.
            let _ = fs::remove_file(file.path());
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
