//! The pause: while its file is in the state directory, no new request of a client reaches a server, in any process of mcpzip.
//!
//! *Invariant*: a file that cannot be examined counts as a pause.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::files;
use crate::text::ago;

/// The name of the file.
const NAME: &str = "paused";

/// The content of the file, for a person who finds it.
const CONTENT: &str = "While this file exists, mcpzip passes no call on to a server. `mcpzip daemon resume` removes it.\n";

/// How long a look at the file counts for the steps of a request.
const COUNTS: Duration = Duration::from_millis(1);

/// The switch of all processes that use a state directory.
#[derive(Debug, Clone)]
pub(crate) struct Pause {
    file: PathBuf,
    /// The time just before the last look that found no pause.
    looked: Arc<Mutex<Option<Instant>>>,
}

/// mcpzip is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Paused {
    /// The time at which the pause began, in seconds since 1970; absent if the file system does not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<u64>,
    /// Why mcpzip cannot find out whether it is paused. Nothing reaches a server until it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<String>,
}

impl Pause {
    /// The switch below this state directory.
    #[must_use]
    pub(crate) fn below(state_dir: &Path) -> Self {
        Self {
            file: state_dir.join(NAME),
            looked: Arc::default(),
        }
    }

    /// Whether mcpzip is paused, for a step of a request that was received at `received`. A look counts if it was after that and a moment
    /// ago, so that requests that arrive together, and the steps of one that waits for nothing, need a single one.
    #[must_use]
    pub(crate) fn state_for(&self, received: Instant) -> Option<Paused> {
        let now = Instant::now();
        let counts = |looked| looked >= received && now.duration_since(looked) < COUNTS;
        if self.looked.lock().is_some_and(counts) {
            return None;
        }
        let state = self.state();
        if state.is_none() {
            *self.looked.lock() = Some(now);
        }
        state
    }

    /// Whether mcpzip is paused. It costs one call of the system.
    #[must_use]
    pub(crate) fn state(&self) -> Option<Paused> {
        // A link that leads nowhere is a file, too.
        match fs::symlink_metadata(&self.file) {
            Ok(file) => {
                let since = file.modified().ok();
                let since = since.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
                Some(Paused {
                    since: since.map(|since| since.as_secs()),
                    fault: None,
                })
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                None
            }
            Err(error) => Some(Paused {
                since: None,
                fault: Some(format!("{}: {error}", self.file.display())),
            }),
        }
    }

    /// Pauses. A pause that there is goes on.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn begin(&self) -> io::Result<Paused> {
        if self.state().is_none_or(|paused| paused.fault.is_some()) {
            files::replace(&self.file, &[CONTENT.as_bytes()])?;
        }
        self.state()
            .ok_or_else(|| io::Error::other("the file is gone again"))
    }

    /// Ends the pause, and returns the one that there was.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub(crate) fn end(&self) -> io::Result<Option<Paused>> {
        let before = self.state();
        match fs::remove_file(&self.file) {
            Err(error) if before.is_some() => Err(error),
            _ => Ok(before),
        }
    }
}

impl Paused {
    /// How long ago it began, in words.
    #[must_use]
    pub(crate) fn ago(&self) -> Option<String> {
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(self.since?);
        // A clock that was set back.
        let age = since.elapsed().unwrap_or_default();
        Some(ago(age))
    }
}

impl fmt::Display for Paused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(fault) = &self.fault {
            return write!(
                f,
                "it cannot be told whether the user has paused mcpzip ({fault}), and nothing reaches a server until it can"
            );
        }
        f.write_str("the user paused mcpzip")?;
        if let Some(ago) = self.ago() {
            write!(f, " {ago}")?;
        }
        f.write_str(", and nothing reaches a server until the user resumes it (`mcpzip daemon resume` or in the window)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_has_one_beginning_and_one_end() {
        let home = tempfile::tempdir().unwrap();
        let pause = Pause::below(&home.path().join("not there yet"));
        assert_eq!(pause.state(), None);
        assert_eq!(pause.end().unwrap(), None);
        let begun = pause.begin().unwrap();
        assert!(begun.since.is_some() && begun.fault.is_none());
        assert_eq!(pause.begin().unwrap(), begun);
        assert_eq!(pause.state(), Some(begun.clone()));
        assert!(begun.to_string().contains("mcpzip daemon resume"));
        assert_eq!(pause.end().unwrap(), Some(begun));
        assert_eq!(pause.state(), None);
    }

    #[test]
    fn a_look_counts_for_requests_that_were_received_before_it() {
        let home = tempfile::tempdir().unwrap();
        let pause = Pause::below(home.path());
        let first = Instant::now();
        assert_eq!(pause.state_for(first), None);
        pause.begin().unwrap();
        assert!(pause.state_for(Instant::now()).is_some());
        std::thread::sleep(COUNTS);
        assert!(
            pause.state_for(first).is_some(),
            "the look was too long ago"
        );
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_looked_at_is_a_pause() {
        let home = tempfile::tempdir().unwrap();
        let ring = home.path().join("ring");
        std::os::unix::fs::symlink(&ring, &ring).unwrap();
        let pause = Pause::below(&ring);
        let paused = pause.state().unwrap();
        assert!(paused.since.is_none());
        assert!(paused.to_string().contains("cannot be told"), "{paused}");
        assert!(pause.begin().is_err() && pause.end().is_err());
        // The file itself may be a link that leads nowhere.
        let pause = Pause::below(home.path());
        std::os::unix::fs::symlink("nowhere", home.path().join(NAME)).unwrap();
        assert!(pause.state().is_some_and(|paused| paused.fault.is_none()));
        assert!(pause.end().unwrap().is_some());
        assert_eq!(pause.state(), None);
    }
}
