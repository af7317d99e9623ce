//! The place of the pins: a directory, or the store of several replicas.
//!
//! A replica has the records of the store in memory. A comparison that changes nothing waits for no statement, and works while the store
//! does not answer.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::files::{FORM, Files, lock};
use super::store::Store;
use crate::catalog::Key;
use crate::store::{Kind, Records, Table};

/// The place of the pins.
#[derive(Debug, Clone)]
pub(crate) enum PinHome {
    /// A directory of this machine.
    Directory(PathBuf),
    /// The store.
    Shared(Arc<dyn Records>),
}

/// The last write: the time of the directory, or the number of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Time(Option<SystemTime>),
    Number(u64),
}

/// The records as they are now.
pub(super) enum View<'h> {
    Directory(&'h Path),
    Table(Arc<Table>),
}

impl PinHome {
    /// The store if there is one, and otherwise `directory`.
    #[must_use]
    pub(crate) fn of(shared: Option<&Arc<dyn Records>>, directory: PathBuf) -> Self {
        match shared {
            Some(shared) => Self::Shared(shared.clone()),
            None => Self::Directory(directory),
        }
    }

    /// The store, if they are there.
    pub(super) fn shared(&self) -> Option<&Arc<dyn Records>> {
        match self {
            Self::Directory(_) => None,
            Self::Shared(records) => Some(records),
        }
    }

    /// The last write that is known.
    pub(super) fn seen(&self) -> Seen {
        match self {
            Self::Directory(directory) => {
                let metadata = fs::metadata(directory.join(FORM));
                Seen::Time(metadata.and_then(|form| form.modified()).ok())
            }
            Self::Shared(records) => Seen::Number(records.stamp(Kind::Pins)),
        }
    }

    /// The records, without a lock.
    ///
    /// # Errors
    /// When the store has not answered for a while.
    pub(super) fn view(&self) -> io::Result<View<'_>> {
        Ok(match self {
            Self::Directory(directory) => View::Directory(directory),
            Self::Shared(records) => View::Table(records.all(Kind::Pins)?),
        })
    }

    /// Changes the records of a server, which nothing else changes meanwhile. `work` may run twice.
    ///
    /// # Errors
    /// Those of `work`, and when the place cannot be written.
    pub(super) fn edit<T>(
        &self,
        key: &Key,
        work: impl Fn(&Store<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        match self {
            Self::Directory(directory) => {
                let _lock = lock(directory)?;
                work(&Store::new(Files::below(directory), key))
            }
            Self::Shared(records) => {
                // Most comparisons change nothing.
                if let Ok(table) = records.all(Kind::Pins) {
                    let store = Store::new(Files::of(&table), key);
                    let outcome = work(&store)?;
                    if store.into_changes().is_empty() {
                        return Ok(outcome);
                    }
                }
                let mut outcome = None;
                records.change(Kind::Pins, &mut |table| {
                    let store = Store::new(Files::of(table), key);
                    let done = work(&store);
                    let changes = match &done {
                        Ok(_) => store.into_changes(),
                        Err(_) => Vec::new(),
                    };
                    outcome = Some(done);
                    changes
                })?;
                outcome.expect("the change was made")
            }
        }
    }
}

impl View<'_> {
    /// The records of a server.
    pub(super) fn store<'v>(&'v self, key: &'v Key) -> Store<'v> {
        let files = match self {
            Self::Directory(directory) => Files::below(directory),
            Self::Table(table) => Files::of(table),
        };
        Store::new(files, key)
    }
}
