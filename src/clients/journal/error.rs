//! The errors of the journal.

use std::io;
use std::path::{Path, PathBuf};

/// The changes that an undo does not revert.
pub(crate) const NO_RUNS: &str =
    "changes by `add` without `--force`, `remove`, `enable` and `disable` are no runs";

/// Files that were not changed, or not restored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// Another program wrote a file after it was read; nothing was changed.
    #[error("another program has changed `{path}` in the meantime; nothing was done, try again")]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read or written; the changes before it were undone.
    #[error("`{path}` cannot be read or written: {source}")]
    Disk {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no run with this name.
    #[error("there is no run `{id}`; `mcpzip undo --list` shows all")]
    Unknown {
        /// The requested name.
        id: String,
    },
    /// The run was undone.
    #[error("the run `{id}` is undone already; `mcpzip undo --list` shows all")]
    Over {
        /// The run.
        id: String,
    },
    /// There is no run left to undo.
    #[error("there is nothing to undo; {}", NO_RUNS)]
    Nothing,
    /// A file cannot be put back now; nothing was changed.
    #[error(
        "the run {id} is not undone, and nothing was changed, as `{path}` cannot be put back: {problem}; then `mcpzip undo {id}` reverts the run"
    )]
    Blocked {
        /// The run.
        id: String,
        /// The file.
        path: PathBuf,
        /// The fault, and its remedy.
        problem: String,
    },
    /// A file cannot be written, and others have been.
    #[error(
        "{reason}. The run {id} is undone in part. Put back: {}. Not put back: {}. When that file can be written, `mcpzip undo {id}` continues",
        listed(done),
        listed(rest)
    )]
    Partly {
        /// The run.
        id: String,
        /// The files that are written.
        done: Vec<PathBuf>,
        /// The others, the one with the error first.
        rest: Vec<PathBuf>,
        /// The error of the file.
        reason: Box<JournalError>,
    },
    /// All files are written, and the record is not.
    #[error(
        "{reason}. All files of the run {id} are put back, but its record still says otherwise: when that file can be written, `mcpzip undo {id}` corrects it"
    )]
    Unrecorded {
        /// The run.
        id: String,
        /// The error of the record.
        reason: Box<JournalError>,
    },
    /// The files of a run are damaged; nothing was changed.
    #[error(
        "the run {id} cannot be undone, and nothing was changed: {problem}. In {} are {kept}; `.before` is a file as it was before the run. \
         Put back by hand what you want to have back, and remove that directory: then the run is forgotten. `mcpzip undo --list` shows the \
         other runs, which `mcpzip undo RUN` reverts",
        directory.display()
    )]
    Damaged {
        /// The run.
        id: String,
        /// The directory of the run.
        directory: PathBuf,
        /// The fault.
        problem: String,
        /// The files that there are.
        kept: String,
    },
}

impl JournalError {
    /// The error of a file of the run `id` that the system does not let us read or write, before any was changed.
    pub(super) fn blocked(id: &str, path: &Path, error: &io::Error) -> Self {
        Self::Blocked {
            id: id.to_owned(),
            path: path.to_owned(),
            problem: format!("{error}; correct that"),
        }
    }
}

fn listed(paths: &[PathBuf]) -> String {
    let paths = paths.iter().map(|path| format!("`{}`", path.display()));
    paths.collect::<Vec<_>>().join(", ")
}

pub(super) fn disk(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    |source| JournalError::Disk { path, source }
}
