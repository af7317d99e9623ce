//! The files of records: in a directory, where they are replaced whole, or in the store of several replicas, by the same names.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fault::Fault;
use super::record::Record;
use crate::files;
use crate::store::Table;

/// The directory of this form. Files of newer forms are left alone.
pub(super) const FORM: &str = "v2";

/// The form before it: hashes by name, in files named by the server and its entry.
const OLDER_FORM: &str = "v1";

/// The end that the name of a file gets which cannot be used.
const ASIDE: &str = ".damaged";

/// The first bytes of a record, as it is written.
const HEAD: &[u8] = br#"{"program":""#;

/// The members before the seal of a record of which nothing was rejected. A comma and a quotation mark cannot follow each other within a
/// text, and the seal closes the record, so these are its own members. A start reads them alone: a record has every definition.
pub(super) const NOTHING_REJECTED: &[u8] = br#","rejected":[],"rejected_entries":[]"#;

/// The length of a seal.
const SEAL: usize = 24;

/// The maximum size of a file. A server's lists have 64 MB at most, and a file has two versions of them.
const LARGEST: u64 = 512 * 1024 * 1024;

/// The place of the records.
#[derive(Debug)]
pub(super) enum Files<'a> {
    /// A directory, and that of the older form.
    Disk { directory: PathBuf, older: PathBuf },
    /// A table of the store, and its changes.
    Table {
        table: &'a Table,
        changes: RefCell<BTreeMap<String, Option<Vec<u8>>>>,
    },
}

impl<'a> Files<'a> {
    /// The files below `root`.
    pub(super) fn below(root: &Path) -> Self {
        Self::Disk {
            directory: root.join(FORM),
            older: root.join(OLDER_FORM),
        }
    }

    /// The records of a table.
    pub(super) fn of(table: &'a Table) -> Self {
        Self::Table {
            table,
            changes: RefCell::default(),
        }
    }

    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match self {
            Self::Disk { directory, .. } => read(&directory.join(name)),
            Self::Table { table, changes } => {
                let changes = changes.borrow();
                let body = match changes.get(name) {
                    Some(changed) => changed.as_deref(),
                    None => table.get(name).map(|body| &**body),
                };
                let of =
                    |error: serde_json::Error| Fault::at(Path::new(name), &io::Error::from(error));
                body.map(|body| serde_json::from_slice(body).map_err(of))
                    .transpose()
            }
        }
    }

    /// Whether the record is one as it is written, and ends with `end` and its seal. The rest is not read.
    pub(super) fn is_sealed(&self, name: &str, end: &[u8]) -> io::Result<bool> {
        let end = |length| [end, seal(length).as_bytes()].concat();
        match self {
            Self::Disk { directory, .. } => {
                let mut file = files::open_regular(&directory.join(name))?;
                let end = end(file.metadata()?.len());
                let (mut head, mut tail) = (vec![0; HEAD.len()], vec![0; end.len()]);
                file.read_exact(&mut head)?;
                let length = i64::try_from(tail.len()).map_err(io::Error::other)?;
                file.seek(io::SeekFrom::End(-length))?;
                file.read_exact(&mut tail)?;
                Ok(head == HEAD && tail == end)
            }
            Self::Table { table, changes } => {
                let is_sealed =
                    |body: &[u8]| body.starts_with(HEAD) && body.ends_with(&end(body.len() as u64));
                let is_changed = changes.borrow().contains_key(name);
                Ok(!is_changed && table.get(name).is_some_and(|body| is_sealed(body)))
            }
        }
    }

    /// Writes a record with its seal.
    pub(super) fn write_record(&self, name: &str, record: &Record) -> io::Result<()> {
        let mut body = serde_json::to_vec(record)?;
        // The bracket that closes the record is that of the seal.
        body.pop();
        body.extend_from_slice(seal((body.len() + SEAL) as u64).as_bytes());
        self.write_body(name, body)
    }

    pub(super) fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        self.write_body(name, serde_json::to_vec(value)?)
    }

    fn write_body(&self, name: &str, body: Vec<u8>) -> io::Result<()> {
        match self {
            Self::Disk { directory, .. } => {
                let path = directory.join(name);
                files::replace(&path, &[&body]).map_err(|error| Fault::at(&path, &error))
            }
            Self::Table { table, changes } => {
                let is_known = table.get(name).is_some_and(|known| **known == *body);
                let mut changes = changes.borrow_mut();
                match is_known {
                    true => drop(changes.remove(name)),
                    false => drop(changes.insert(name.to_owned(), Some(body))),
                }
                Ok(())
            }
        }
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match self {
            Self::Disk { directory, .. } => {
                let path = directory.join(name);
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        Err(Fault::at(&path, &error))
                    }
                    _ => Ok(()),
                }
            }
            Self::Table { table, changes } => {
                let mut changes = changes.borrow_mut();
                match table.contains_key(name) {
                    true => drop(changes.insert(name.to_owned(), None)),
                    false => drop(changes.remove(name)),
                }
                Ok(())
            }
        }
    }

    /// Whether there is a file of this name.
    pub(super) fn is_there(&self, name: &str) -> io::Result<bool> {
        match self {
            Self::Disk { directory, .. } => {
                let path = directory.join(name);
                match fs::symlink_metadata(&path) {
                    Ok(_) => Ok(true),
                    Err(error) if is_absent(&error, &path) => Ok(false),
                    Err(error) => Err(Fault::at(&path, &error)),
                }
            }
            Self::Table { table, changes } => Ok(match changes.borrow().get(name) {
                Some(changed) => changed.is_some(),
                None => table.contains_key(name),
            }),
        }
    }

    /// Makes a file that says something by its name alone. It need not be on the disk before the next one that is replaced.
    pub(super) fn make(&self, name: &str) -> io::Result<()> {
        match self {
            Self::Disk { directory, .. } => {
                let path = directory.join(name);
                let mut options = fs::OpenOptions::new();
                files::private(options.write(true).create(true).truncate(true));
                let made = options.open(&path);
                made.map(drop).map_err(|error| Fault::at(&path, &error))
            }
            Self::Table { .. } => self.write(name, &()),
        }
    }

    /// A file as far as it is text.
    pub(super) fn text(&self, name: &str) -> String {
        let bytes = match self {
            Self::Disk { directory, .. } => {
                files::read_regular(&directory.join(name), LARGEST).unwrap_or_default()
            }
            Self::Table { table, .. } => table
                .get(name)
                .map(|body| body.to_vec())
                .unwrap_or_default(),
        };
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Keeps a record that cannot be used under another name, which no earlier one has. There may be none.
    pub(super) fn set_aside(&self, name: &str) -> io::Result<()> {
        let mut aside = format!("{name}{ASIDE}");
        let mut number = 2;
        while self.is_there(&aside)? {
            aside = format!("{name}{ASIDE}.{number}");
            number += 1;
        }
        match self {
            Self::Disk { directory, .. } => {
                let path = directory.join(name);
                match fs::rename(&path, directory.join(aside)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        Err(Fault::at(&path, &error))
                    }
                    _ => Ok(()),
                }
            }
            Self::Table { table, changes } => {
                if let Some(body) = table.get(name) {
                    let mut changes = changes.borrow_mut();
                    changes.insert(aside, Some(body.to_vec()));
                    changes.insert(name.to_owned(), None);
                }
                Ok(())
            }
        }
    }

    /// The names of all records.
    pub(super) fn names(&self) -> io::Result<BTreeSet<String>> {
        match self {
            Self::Disk { directory, .. } => {
                let files = match fs::read_dir(directory) {
                    Err(error) if is_absent(&error, directory) => return Ok(BTreeSet::new()),
                    files => files.map_err(|error| Fault::at(directory, &error))?,
                };
                let names = files.map(|file| {
                    let name = file?.file_name();
                    Ok(name.to_string_lossy().into_owned())
                });
                names.collect()
            }
            Self::Table { table, changes } => {
                let changes = changes.borrow();
                let known = table.keys().filter(|name| !changes.contains_key(*name));
                let changed = changes.iter().filter(|(_, body)| body.is_some());
                let changed = changed.map(|(name, _)| name);
                Ok(known.chain(changed).cloned().collect())
            }
        }
    }
}

/// Locks out other processes until the returned file is dropped.
///
/// # Errors
/// When there can be no lock.
pub(super) fn lock(root: &Path) -> io::Result<File> {
    let directory = root.join(FORM);
    files::create_private_directory(&directory).map_err(|error| Fault::at(&directory, &error))?;
    let path = directory.join("lock");
    let file = files::open_lock(&path).map_err(|error| match error.kind() {
        // It names the lock.
        io::ErrorKind::Other => error,
        _ => Fault::at(&path, &error),
    })?;
    file.lock().map_err(|error| Fault::at(&path, &error))?;
    Ok(file)
}

pub(super) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match files::read_regular(path, LARGEST) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| Fault::at(path, &error.into())),
        Err(error) if is_absent(&error, path) => Ok(None),
        Err(error) => Err(Fault::at(path, &error)),
    }
}

/// Whether an error means that there is nothing at `path`.
fn is_absent(error: &io::Error, path: &Path) -> bool {
    error.kind() == io::ErrorKind::NotFound && files::leads_nowhere(path).is_none()
}

/// The last member of a record, and its last bracket: the number of bytes of the whole, so that nothing that was cut, appended or merged
/// has it. It was `bytes` while a quarantine did not follow the rejections.
fn seal(length: u64) -> String {
    format!(r#","total":"{length:012}"}}"#)
}
