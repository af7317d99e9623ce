//! The place of the records of logins: files of a directory, or a store of the program that uses the library.
//!
//! One task at a time changes a record, and with files, one process.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::lock::{Lock, lock_file};
use crate::files;
use crate::shutdown::Tasks;

/// A place of the program for records of logins. A name is that of one record, and a valid file name.
pub(crate) trait LoginPlace: Send + Sync {
    /// The record.
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Vec<u8>>>>;

    /// Replaces the record; `None` removes it.
    fn save<'a>(&'a self, name: &'a str, record: Option<Vec<u8>>) -> BoxFuture<'a, io::Result<()>>;

    /// Waits until no other process changes the record, and keeps it so until the result is dropped.
    fn lock<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Any + Send + Sync>>>;
}

/// The place of the records.
#[derive(Clone)]
pub(crate) enum LoginStorage {
    /// In files, open to the user alone.
    Directory(PathBuf),
    /// With the program.
    Program(Arc<Program>),
}

/// The place of the program, and the records that a task of this process changes.
pub(crate) struct Program {
    place: Box<dyn LoginPlace>,
    busy: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// The records of a [`LoginStorage`].
#[derive(Debug)]
pub(super) struct Records {
    place: LoginStorage,
    tasks: Tasks,
}

/// The exclusive access to a record, until it is dropped.
pub(super) enum Held {
    File {
        _lock: Lock,
    },
    Program {
        _lock: Box<dyn Any + Send + Sync>,
        _task: tokio::sync::OwnedMutexGuard<()>,
    },
}

impl LoginStorage {
    /// The place of the program.
    pub(crate) fn of_program(place: impl LoginPlace + 'static) -> Self {
        let (place, busy) = (Box::new(place), Mutex::default());
        Self::Program(Arc::new(Program { place, busy }))
    }
}

impl Records {
    pub(super) fn new(place: LoginStorage, tasks: Tasks) -> Self {
        Self { place, tasks }
    }

    /// The directory, if the records are files.
    pub(super) fn directory(&self) -> Option<&Path> {
        match &self.place {
            LoginStorage::Directory(directory) => Some(directory),
            LoginStorage::Program(_) => None,
        }
    }

    /// The place of a record in words, for errors.
    pub(super) fn shown(&self, name: &str) -> PathBuf {
        match &self.place {
            LoginStorage::Directory(directory) => file(directory, name),
            LoginStorage::Program(_) => PathBuf::from(name),
        }
    }

    /// The record called `name`.
    pub(super) async fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let directory = match &self.place {
            LoginStorage::Directory(directory) => directory,
            LoginStorage::Program(program) => return program.place.load(name).await,
        };
        let path = file(directory, name);
        let read = move || crate::files::read_any(&path);
        let read = self.tasks.spawn_blocking(read).await;
        match read.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into())) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the record.
    ///
    /// # Cancel safety
    /// The record is written even if this is dropped.
    pub(super) async fn save(&self, name: &str, record: Vec<u8>) -> io::Result<()> {
        let written = match &self.place {
            LoginStorage::Directory(directory) => {
                let path = file(directory, name);
                let write = move || files::replace(&path, &[&record]);
                self.tasks.spawn_blocking(write).await
            }
            LoginStorage::Program(program) => {
                let (program, name) = (program.clone(), name.to_owned());
                let write = async move { program.place.save(&name, Some(record)).await };
                self.tasks.spawn(write).await
            }
        };
        written.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))
    }

    /// Removes the record. Returns whether there was one.
    pub(super) async fn remove(&self, name: &str) -> io::Result<bool> {
        match &self.place {
            LoginStorage::Directory(directory) => match std::fs::remove_file(file(directory, name))
            {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            },
            LoginStorage::Program(program) => {
                let was_there = program.place.load(name).await?.is_some();
                program.place.save(name, None).await.map(|()| was_there)
            }
        }
    }

    /// Renames the file of a damaged record. In a store of the program, the next login overwrites it.
    pub(super) fn set_aside(&self, name: &str) {
        if let LoginStorage::Directory(directory) = &self.place {
            let path = file(directory, name);
            // If that fails, the next login overwrites it.
            let _ = std::fs::rename(&path, path.with_extension("damaged"));
        }
    }

    /// Waits until no other task or process changes the record.
    ///
    /// # Errors
    /// `TimedOut` if another process changes it for too long, and what the place answers.
    pub(super) async fn lock(&self, name: &str) -> io::Result<Held> {
        let program = match &self.place {
            LoginStorage::Directory(directory) => {
                let lock = lock_file(&file(directory, name).with_extension("lock")).await?;
                return Ok(Held::File { _lock: lock });
            }
            LoginStorage::Program(program) => program,
        };
        let own = program
            .busy
            .lock()
            .entry(name.to_owned())
            .or_default()
            .clone();
        let task = own.lock_owned().await;
        let lock = program.place.lock(name).await?;
        Ok(Held::Program {
            _lock: lock,
            _task: task,
        })
    }
}

fn file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.json"))
}

impl std::fmt::Debug for LoginStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(directory) => f.debug_tuple("Directory").field(directory).finish(),
            Self::Program(_) => f.write_str("Program"),
        }
    }
}
