//! Detects edits of the configuration file by polling.
//!
//! Polling, unlike notifications of the system, works on every file system and needs no thread. A removed file is not
//! an edit: editors remove and create, and the running configuration stays until there is another.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The state of the file at the last look.
#[derive(Debug)]
pub(crate) struct ConfigWatch {
    path: PathBuf,
    seen: Option<Stamp>,
}

/// The identity of the file's content: an edit in place changes time and length, a rename changes the identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    identity: Option<(u64, u64)>,
}

impl ConfigWatch {
    /// Records the current file as known. To miss no edit, create the watch before the file is read.
    #[must_use]
    pub(crate) fn new(path: PathBuf) -> Self {
        let mut watch = Self { path, seen: None };
        watch.seen = watch.look();
        watch
    }

    /// Starts without a known file, so that an existing file counts as an edit.
    #[must_use]
    pub(crate) const fn of_missing(path: PathBuf) -> Self {
        Self { path, seen: None }
    }

    /// Whether the file has changed since the last look; `false` if there is none.
    pub(crate) fn changed(&mut self) -> bool {
        match self.look() {
            Some(now) if self.seen.as_ref() != Some(&now) => {
                self.seen = Some(now);
                true
            }
            _ => false,
        }
    }

    fn look(&self) -> Option<Stamp> {
        Stamp::of(&self.path)
    }
}

impl Stamp {
    /// Reads the state of the file at `path`, following symbolic links to the content. `None` if there is none.
    #[must_use]
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            identity: identity(&metadata),
        })
    }
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "other systems have none")]
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    /// Also sets the time, because a test is faster than the clock of some file systems.
    fn write(path: &std::path::Path, text: &str, second: u64) {
        fs::write(path, text).unwrap();
        set_time(path, second);
    }

    fn set_time(path: &std::path::Path, second: u64) {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second))
            .unwrap();
    }

    #[test]
    fn an_edit_is_seen_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.json");
        write(&path, "{}", 1);
        let mut watch = ConfigWatch::new(path.clone());
        assert!(!watch.changed(), "nothing happened");
        write(&path, "{ }", 1);
        assert!(watch.changed(), "another length at the same time");
        assert!(!watch.changed());
        write(&path, "{\t}", 2);
        assert!(watch.changed(), "another time at the same length");
        assert!(!watch.changed());
    }

    #[test]
    fn a_file_that_vanishes_is_no_edit_until_it_is_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.json");
        write(&path, "{}", 1);
        let mut watch = ConfigWatch::new(path.clone());
        fs::remove_file(&path).unwrap();
        assert!(!watch.changed());
        write(&path, "{ }", 2);
        assert!(watch.changed());
        assert!(!watch.changed());
    }

    #[test]
    fn a_file_that_appears_is_an_edit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.json");
        let mut watch = ConfigWatch::new(path.clone());
        assert!(!watch.changed());
        write(&path, "{}", 1);
        assert!(watch.changed());
    }

    #[cfg(unix)]
    #[test]
    fn a_rename_over_the_file_is_an_edit_whatever_its_time_and_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.json");
        let other = directory.path().join("config.json.new");
        write(&path, "{}", 1);
        write(&other, "[]", 1);
        let mut watch = ConfigWatch::new(path.clone());
        fs::rename(&other, &path).unwrap();
        assert!(watch.changed());
        assert!(!watch.changed());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (link, one, two) = (
            directory.path().join("link"),
            directory.path().join("1"),
            directory.path().join("2"),
        );
        write(&one, "{}", 1);
        write(&two, "{}", 1);
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let mut watch = ConfigWatch::new(link.clone());
        write(&one, "{ }", 2);
        assert!(watch.changed(), "the target was edited");
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&two, &link).unwrap();
        assert!(watch.changed(), "the link points elsewhere");
        assert!(!watch.changed());
    }
}
