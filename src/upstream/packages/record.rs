//! The names of files in the cache of packages, and the record of a version that was looked up.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Settings;
use crate::config::PackageRun;
use crate::files;

/// How long a version that was looked up is used, and how long the last one if the lookup fails.
const FRESH: Duration = Duration::from_secs(24 * 3600);
const RETRY: Duration = Duration::from_secs(3600);

/// The size limit of a record, in bytes.
const LARGEST: u64 = 4096;

/// A version that was looked up.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) version: String,
    /// When it is to be looked up again, in seconds since 1970.
    until: u64,
}

impl Record {
    pub(super) fn now(version: &str) -> Self {
        Self::lasting(version, FRESH)
    }

    /// A version that is used again, because the lookup failed.
    pub(super) fn retried(version: &str) -> Self {
        Self::lasting(version, RETRY)
    }

    fn lasting(version: &str, time: Duration) -> Self {
        Self {
            version: version.to_owned(),
            until: seconds() + time.as_secs(),
        }
    }

    /// The record in `file`, if there is one that can be read.
    pub(super) fn read(file: &Path) -> Option<Self> {
        let bytes = files::read_regular(file, LARGEST).ok()?;
        let record: Self = serde_json::from_slice(&bytes).ok()?;
        // It becomes a part of a path.
        is_version(&record.version).then_some(record)
    }

    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        files::replace(file, &[&serde_json::to_vec(self)?])
    }

    pub(super) fn is_fresh(&self) -> bool {
        let now = seconds();
        // A clock that was wrong does not keep a version for long.
        now < self.until && self.until <= now + FRESH.as_secs()
    }
}

fn seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

/// Whether a text can be a version: part of a command line and of a path.
pub(super) fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= 128
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ".-+!".contains(c))
}

/// The directory of all versions of a package.
pub(super) fn directory_name(package: &PackageRun) -> String {
    let name = package.name.replace('@', "").replace('/', "+");
    format!("{}-{name}", package.ecosystem.word())
}

/// The directory of one version, with what else decides what is installed: the entry's options, and the settings of the package manager,
/// such as the registry.
pub(super) fn version_name(package: &PackageRun, version: &str, settings: &Settings) -> String {
    let further = format!(
        "{:?} {:?} {:?} {}",
        package.extras, package.python, package.with, settings.hash
    );
    format!("{version}-{}", hash(&further))
}

/// The record of the version that an entry's range or tag means under these settings.
pub(super) fn file_name(package: &PackageRun, settings: &Settings) -> String {
    let wanted = format!(
        "{:?} {:?} {}",
        package.version, package.python, settings.hash
    );
    format!("wanted-{}.json", hash(&wanted))
}

/// A short hash for a part of a name.
pub(super) fn hash(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text)[..6])
}
