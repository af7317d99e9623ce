//! Answers of the registry on disk, each with its time: to avoid repeated requests, and for use when the registry does
//! not answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::files;

/// The directory. The format's version is in its name, so another release does not read it.
const DIRECTORY: &str = "registry-v1";

/// Older answers are not used, even if the registry does not answer.
const OLDEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A directory with one file per URL, named by the URL's hash.
#[derive(Debug, Clone)]
pub(super) struct Cache(PathBuf);

impl Cache {
    pub(super) fn new(cache_dir: &Path) -> Self {
        Self(cache_dir.join(DIRECTORY))
    }

    /// The answer stored for `url`, and its age.
    pub(super) fn get(&self, url: &str) -> Option<(Vec<u8>, Duration)> {
        let path = self.path(url);
        let age = fs::metadata(&path)
            .and_then(|metadata| metadata.modified())
            .ok()?
            .elapsed()
            .unwrap_or_default();
        if age > OLDEST {
            return None;
        }
        Some((files::read_any(&path).ok()?, age))
    }

    /// Stores an answer. If that fails, it is requested again.
    pub(super) fn put(&self, url: &str, body: &[u8]) {
        self.remove_old();
        if let Err(error) = files::replace(&self.path(url), &[body]) {
            tracing::warn!(%error, "the registry's answer is not kept");
        }
    }

    fn path(&self, url: &str) -> PathBuf {
        let hash = HEXLOWER.encode(&Sha256::digest(url)[..16]);
        self.0.join(format!("{hash}.json"))
    }

    fn remove_old(&self) {
        let now = SystemTime::now();
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            if modified.is_ok_and(|time| now.duration_since(time).is_ok_and(|age| age > OLDEST)) {
                // A leftover file only takes up space.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}
