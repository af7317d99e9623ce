//! The questions while they are read and changed: the files of a directory, or records of the store.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Error, LIFE, Question, State};
use crate::files;
use crate::store::{Change, Records, Table};

/// The maximum size of a question's file, in bytes.
const LARGEST: u64 = 512 * 1024;

/// The questions of one place.
pub(super) enum Desk<'a> {
    /// A file for each.
    Directory(&'a Path),
    /// A sealed record for each, and the changes.
    Table {
        records: &'a dyn Records,
        table: &'a Table,
        changes: RefCell<BTreeMap<String, Option<Vec<u8>>>>,
    },
}

impl<'a> Desk<'a> {
    /// The questions of a table.
    pub(super) fn of(records: &'a dyn Records, table: &'a Table) -> Self {
        Self::Table {
            records,
            table,
            changes: RefCell::default(),
        }
    }

    /// The changes of a table.
    pub(super) fn into_changes(self) -> Vec<Change> {
        match self {
            Self::Directory(_) => Vec::new(),
            Self::Table { changes, .. } => changes.into_inner().into_iter().collect(),
        }
    }

    /// All questions that are valid. Others are removed.
    pub(super) fn read_all(&self) -> Result<Vec<Question>, Error> {
        let mut questions = Vec::new();
        for id in self.ids()? {
            match self.read(&id)? {
                Some(question) if question.state() != State::Gone => questions.push(question),
                // One of a newer version stays until it is old.
                None if !self.is_old(&id) => {}
                _ => self.remove(&id)?,
            }
        }
        Ok(questions)
    }

    /// A question; `None` if there is none, or it cannot be understood.
    pub(super) fn read(&self, id: &str) -> Result<Option<Question>, Error> {
        if !is_id(id) {
            return Ok(None);
        }
        let json = match self {
            Self::Directory(directory) => {
                match files::read_regular(&path(directory, id), LARGEST) {
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    Err(source) => return Err(disk(directory, source)),
                }
            }
            Self::Table {
                records,
                table,
                changes,
            } => {
                let changes = changes.borrow();
                let sealed = match changes.get(id) {
                    Some(changed) => changed.as_deref(),
                    None => table.get(id).map(|body| &**body),
                };
                match sealed.and_then(|sealed| records.open(&context(id), sealed)) {
                    Some(json) => json,
                    None => return Ok(None),
                }
            }
        };
        let question: Option<Question> = serde_json::from_slice(&json).ok();
        Ok(question.filter(|question| question.id == id))
    }

    pub(super) fn write(&self, question: &Question) -> Result<(), Error> {
        let id = &question.id;
        let json = serde_json::to_vec(question).unwrap_or_default();
        match self {
            Self::Directory(directory) => {
                let written = files::replace(&path(directory, id), &[&json]);
                written.map_err(|source| disk(directory, source))
            }
            Self::Table {
                records, changes, ..
            } => {
                let sealed = records.seal(&context(id), &json);
                changes.borrow_mut().insert(id.clone(), Some(sealed));
                Ok(())
            }
        }
    }

    pub(super) fn remove(&self, id: &str) -> Result<(), Error> {
        match self {
            Self::Directory(_) if !is_id(id) => Ok(()),
            Self::Directory(directory) => match fs::remove_file(path(directory, id)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(disk(directory, error))
                }
                _ => Ok(()),
            },
            Self::Table { table, changes, .. } => {
                let mut changes = changes.borrow_mut();
                match table.contains_key(id) {
                    true => drop(changes.insert(id.to_owned(), None)),
                    false => drop(changes.remove(id)),
                }
                Ok(())
            }
        }
    }

    /// The ids of all questions. Names that are no ids are those of other files, or of a newer version.
    fn ids(&self) -> Result<Vec<String>, Error> {
        let directory = match self {
            Self::Directory(directory) => *directory,
            Self::Table { table, .. } => return Ok(table.keys().cloned().collect()),
        };
        let mut ids = Vec::new();
        let files = fs::read_dir(directory).map_err(|source| disk(directory, source))?;
        for file in files {
            let file = file.map_err(|source| disk(directory, source))?;
            let path = file.path();
            let is_file = file.file_type().is_ok_and(|kind| kind.is_file());
            if is_file
                && path
                    .extension()
                    .is_some_and(|extension| extension == "json")
            {
                let stem = path.file_stem().unwrap_or_default();
                ids.push(stem.to_string_lossy().into_owned());
            }
        }
        Ok(ids)
    }

    /// Whether a question that cannot be understood has ended. The store removes its records itself.
    fn is_old(&self, id: &str) -> bool {
        let Self::Directory(directory) = self else {
            return false;
        };
        let modified = fs::metadata(path(directory, id)).and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|time| time.elapsed().ok());
        age.is_some_and(|age| age > Duration::from_secs(LIFE))
    }
}

/// Locks out other processes until the returned file is dropped.
pub(super) fn lock(directory: &Path) -> Result<File, Error> {
    let locked = files::create_private_directory(directory).and_then(|()| {
        let file = files::open_lock(&directory.join("lock"))?;
        file.lock()?;
        Ok(file)
    });
    locked.map_err(|source| disk(directory, source))
}

/// Whether a text is an id, so that none leads out of the directory.
fn is_id(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() == 8 && text.bytes().all(is_part)
}

fn path(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.json"))
}

/// The context in which a question is sealed.
fn context(id: &str) -> String {
    format!("approval {id}")
}

fn disk(directory: &Path, source: io::Error) -> Error {
    Error::Disk {
        path: directory.to_owned(),
        source,
    }
}
