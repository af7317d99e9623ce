//! Files and directories of files: one that cannot be read or listed is not taken for a missing or an empty one.

use std::io;
use std::path::{Path, PathBuf};

/// The largest file of the user's servers, in bytes; some clients keep histories in it, too.
pub(super) const USER_LIMIT: u64 = 128 * 1024 * 1024;
/// The largest size of such a file after an edit, in bytes.
pub(super) const FILE_LIMIT: u64 = 2 * USER_LIMIT;

/// The most entries of a directory in which each file may have servers.
pub(super) const MOST_ENTRIES: usize = 1000;

/// The error of a directory with more than [`MOST_ENTRIES`] entries.
pub(super) fn crowded(directory: &Path) -> Option<io::Error> {
    let is_crowded = listed(directory, MOST_ENTRIES + 1).len() > MOST_ENTRIES;
    is_crowded.then(|| io::Error::other("it has more than 1,000 files, and none of them is read"))
}

/// The entries of `directory`, at most `most` of them, sorted; none if there is no directory. If it cannot be listed, the
/// only one is the directory itself: it cannot be read as a file, so its content counts as unknown.
pub(super) fn listed(directory: &Path, most: usize) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).and_then(|entries| {
        let paths = entries.take(most).map(|entry| Ok(entry?.path()));
        paths.collect::<io::Result<Vec<PathBuf>>>()
    });
    match entries {
        Ok(mut paths) => {
            paths.sort();
            paths
        }
        Err(error) if is_missing(directory, &error) => Vec::new(),
        Err(_) => vec![directory.to_owned()],
    }
}

/// The entries of `directory` with the extension `ending`, as [`listed`].
pub(super) fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut files = listed(directory, usize::MAX);
    files.retain(|path| path == directory || path.extension().is_some_and(|known| known == ending));
    files
}

/// Whether there is nothing at `path`, as the error of reading it says. A path below a file does not exist either, but a link that leads
/// nowhere, there or on the way, may lead to something at another time.
pub(super) fn is_missing(path: &Path, error: &io::Error) -> bool {
    let is_absent = matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    );
    let there = path
        .ancestors()
        .find(|above| above.symlink_metadata().is_ok());
    is_absent && there.is_none_or(|there| there.exists())
}

/// Whether there is something at `path`, also if it cannot be read.
pub(super) fn may_be_there(path: &Path) -> bool {
    path.metadata()
        .err()
        .is_none_or(|error| !is_missing(path, &error))
}
