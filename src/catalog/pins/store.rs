//! The records of one server: a file for it, and one more for each directory in which its list depends on that.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fault::Fault;
use super::files::{Files, NOTHING_REJECTED};
use super::record::{Pinned, Record, Rejections, hash_of};
use crate::catalog::Key;
use crate::store::Change;
use crate::tool::ServerName;

/// How the names of files end that have what waits.
pub(super) const PENDING: &str = ".pending.json";

/// The records of one server.
#[derive(Debug)]
pub(super) struct Store<'a> {
    pub(super) files: Files<'a>,
    pub(super) key: &'a Key,
}

impl<'a> Store<'a> {
    /// The records of `key`.
    pub(super) fn new(files: Files<'a>, key: &'a Key) -> Self {
        Self { files, key }
    }

    /// The changes of a table.
    pub(super) fn into_changes(self) -> Vec<Change> {
        match self.files {
            Files::Disk { .. } => Vec::new(),
            Files::Table { changes, .. } => changes.into_inner().into_iter().collect(),
        }
    }

    /// The server's entry, without the directory or person.
    pub(super) fn entry(&self) -> &str {
        self.key.parts().0
    }

    /// The record of this directory, or that of the server, or that of an older version.
    ///
    /// # Errors
    /// When a file that there is cannot be read.
    pub(super) fn read(&self) -> io::Result<Option<Record>> {
        let mut record: Option<Record> = self.files.read(&self.name(self.place()))?;
        match &mut record {
            Some(record) if self.place().is_some() => match self.rejections_in(None)? {
                Some(others) => {
                    record.rejected.extend(others.rejected);
                    record.rejected_entries.extend(others.rejected_entries);
                    record.lost |= others.lost;
                }
                None => return Err(self.missing()),
            },
            Some(_) => {}
            None => record = self.files.read(&self.name(None))?,
        }
        if record.is_none() {
            record = self.read_older()?;
        }
        if record.is_none()
            && let Err(error) = self.is_first()
        {
            // Another process may just have written it.
            record = self.files.read(&self.name(None))?;
            record.as_ref().ok_or(error)?;
        }
        Ok(record.map(|record: Record| record.for_entry(self.entry())))
    }

    /// The error that the server's record is gone.
    pub(super) fn missing(&self) -> io::Error {
        self.missing_file(&self.name(None))
    }

    pub(super) fn missing_file(&self, name: &str) -> io::Error {
        match &self.files {
            Files::Disk { directory, .. } => Fault::missing(&directory.join(name)),
            Files::Table { .. } => Fault::missing(Path::new(name)),
        }
    }

    /// Everything that a person has rejected, by the server's record and that of this directory.
    ///
    /// # Errors
    /// When a file that there is cannot be read.
    pub(super) fn rejections(&self) -> io::Result<Option<Rejections>> {
        let mut found = self.rejections_in(None)?;
        if self.place().is_some()
            && let Some(own) = self.rejections_in(self.place())?
        {
            // Another process may just have written both.
            found = found.or(self.rejections_in(None)?);
            found.as_mut().ok_or_else(|| self.missing())?.add(own);
        }
        if found.is_none()
            && self.read_older()?.is_none()
            && let Err(error) = self.is_first()
        {
            found = self.rejections_in(None)?;
            found.as_ref().ok_or(error)?;
        }
        Ok(found)
    }

    fn rejections_in(&self, place: Option<&str>) -> io::Result<Option<Rejections>> {
        let name = self.name(place);
        match self.files.is_sealed(&name, NOTHING_REJECTED) {
            Ok(true) => Ok(Some(Rejections::default())),
            // A whole read says why it fails.
            Ok(false) | Err(_) => self.files.read(&name),
        }
    }

    /// Whether the records are as this version writes them: older ones have no seal, and are read whole at every start.
    pub(super) fn is_sealed(&self) -> bool {
        let mut places = [None, self.place()].into_iter();
        places.all(|place| {
            let is_sealed = self.files.is_sealed(&self.name(place), b"");
            is_sealed.unwrap_or_default()
        })
    }

    /// Keeps `record`. Tools that no directory has had before are added to the server's record; with `whole`, that becomes the same.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, record: &Record, whole: bool) -> io::Result<()> {
        // The server's first: if only one of the two is written, a rejection is in force in every directory.
        if self.place().is_some() {
            self.write_shared(record, whole)?;
        }
        self.write_record(&self.name(self.place()), record)
    }

    fn write_shared(&self, record: &Record, whole: bool) -> io::Result<()> {
        let name = self.name(None);
        let known: Option<Record> = self.files.read(&name)?;
        let mut shared = match known {
            Some(known) if !whole => known,
            _ => return self.write_record(&name, record),
        };
        let count = |record: &Record| {
            let entries = record.entries.as_ref().map(BTreeMap::len);
            (record.tools.len(), entries)
        };
        let before = count(&shared);
        let add = |to: &mut BTreeMap<String, Pinned>, from: &BTreeMap<String, Pinned>| {
            for (name, pinned) in from {
                to.entry(name.clone()).or_insert_with(|| pinned.clone());
            }
        };
        add(&mut shared.tools, &record.tools);
        if let Some(entries) = &record.entries {
            add(shared.entries.get_or_insert_default(), entries);
        }
        let is_sealed = self.files.is_sealed(&name, b"").unwrap_or_default();
        match count(&shared) == before && is_sealed {
            true => Ok(()),
            false => self.files.write_record(&name, &shared),
        }
    }

    /// Everything that waited when the server was last listed.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn read_pending<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        self.files.read(&self.pending_name())
    }

    /// [`Store::read_pending`] for the server of the record `name`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn pending_with<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let stem = name.strip_suffix(".json").unwrap_or(name);
        self.files.read(&format!("{stem}{PENDING}"))
    }

    /// Keeps what waits; `None` removes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn write_pending(&self, pending: Option<&impl Serialize>) -> io::Result<()> {
        let name = self.pending_name();
        match pending {
            Some(pending) => self.files.write(&name, pending),
            None => self.files.remove(&name),
        }
    }

    /// The names of all records of the server, of each directory.
    ///
    /// # Errors
    /// When there is no list of the files.
    pub(super) fn record_names(&self) -> io::Result<Vec<String>> {
        let (own, stem) = (self.name(None), self.stem(None));
        let of_place = format!("{stem}@");
        let is_of_place = |name: &str| {
            name.starts_with(&of_place) && name.ends_with(".json") && !name.ends_with(PENDING)
        };
        let mut names: Vec<String> = self.files.names()?.into_iter().collect();
        names.retain(|name| *name == own || is_of_place(name));
        Ok(names)
    }

    /// One record by its name.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn record(&self, name: &str) -> io::Result<Option<Record>> {
        self.files.read(name)
    }

    /// Everything that keeps the records of the server from being used, each with its file.
    pub(super) fn faults<P: DeserializeOwned>(&self, program: &str) -> Vec<Fault> {
        let lists = self.faults_of_lists(program);
        let names = self.record_names().unwrap_or_default();
        let records = names.iter().filter_map(|name| self.record(name).err());
        let found = records.chain(self.read_pending::<P>().err()).chain(lists);
        let mut found: Vec<Fault> = found.map(|error| Fault::of(&error)).collect();
        if let Err(error) = self.read() {
            let whole = Fault::of(&error);
            if !found.contains(&whole) {
                found.push(whole);
            }
        }
        found
    }

    /// Keeps a file that cannot be used under another name.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub(super) fn set_aside(&self, name: &str) -> io::Result<()> {
        self.files.set_aside(name)
    }

    /// Writes one record. The mark comes after it: a server with a mark and without a record has lost that.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write_record(&self, name: &str, record: &Record) -> io::Result<()> {
        self.files.write_record(name, record)?;
        let stem = name.strip_suffix(".json").unwrap_or(name);
        self.mark(stem.split_once('@').map_or(stem, |(stem, _)| stem))
    }

    /// Everything that waits, of any server. A file that cannot be read concerns its own server alone.
    ///
    /// # Errors
    /// When there is no list of the files.
    pub(super) fn all_pending<T: DeserializeOwned>(&self) -> io::Result<Vec<(String, T)>> {
        let mut found = Vec::new();
        for name in self.files.names()? {
            if let Some(stem) = name.strip_suffix(PENDING)
                && !name.starts_with('.')
            {
                match self.files.read(&name) {
                    Ok(pending) => found.extend(pending.map(|it| (format!("{stem}.json"), it))),
                    Err(error) => {
                        tracing::warn!(%error, "what waits of one server cannot be read, and is not compared with others");
                    }
                }
            }
        }
        Ok(found)
    }

    /// Whether the record `name` is of a server in quarantine. One that cannot be read is not known to be.
    pub(super) fn is_quarantined(&self, name: &str) -> bool {
        let record = self.record(name).ok().flatten();
        record.is_some_and(|record| record.quarantined)
    }

    /// The part of the key that names a directory or person.
    pub(super) fn place(&self) -> Option<&str> {
        self.key.parts().1
    }

    pub(super) fn name(&self, place: Option<&str>) -> String {
        format!("{}.json", self.stem(place))
    }

    pub(super) fn pending_name(&self) -> String {
        let stem = self.stem(self.place());
        format!("{stem}{PENDING}")
    }

    pub(super) fn stem(&self, place: Option<&str>) -> String {
        stem_of(&self.key.server, place)
    }
}

/// The server of the record `name`.
pub(super) fn server_of(name: &str) -> &str {
    name.split('~').next().unwrap_or(name)
}

/// The names of a server's files, without their ends. The hash tells apart names that some file systems take for the same.
pub(super) fn stem_of(server: &ServerName, place: Option<&str>) -> String {
    let hash = &hash_of(server.as_str())[..8];
    match place {
        Some(place) => format!("{server}~{hash}@{place}"),
        None => format!("{server}~{hash}"),
    }
}
