//! Directories of files, listed so that one that cannot be listed is not taken for an empty one.

use std::io;
use std::path::{Path, PathBuf};

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
        Err(error) if is_missing(&error) => Vec::new(),
        Err(_) => vec![directory.to_owned()],
    }
}

/// The entries of `directory` with the extension `ending`, as [`listed`].
pub(super) fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut files = listed(directory, usize::MAX);
    files.retain(|path| path == directory || path.extension().is_some_and(|known| known == ending));
    files
}

/// Whether there is nothing at a path. A path below a file does not exist either.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
