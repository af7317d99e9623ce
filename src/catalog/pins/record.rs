//! The approved definitions of a server's tools: a file per server, and one more for each directory in which its list depends on
//! that. They are replaced whole, under one lock. Several replicas have them in their store, by the names of the files (`home.rs`).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::fault::Fault;
use crate::catalog::Key;
use crate::config::Trust;
use crate::files;
use crate::store::{Change, Table};
use crate::tool::ServerName;

/// The directory of this form. Files of newer forms are left alone.
pub(super) const FORM: &str = "v2";

/// The form before it: hashes by name, in files named by the server and its entry.
const OLDER_FORM: &str = "v1";

/// How the names of files end that have what waits.
const PENDING: &str = ".pending.json";

/// The end that the name of a file gets which cannot be used.
const ASIDE: &str = ".damaged";

/// The first bytes of a record, as it is written.
const HEAD: &[u8] = br#"{"program":""#;

/// The members before the seal of a record of which nothing was rejected. A comma and a quotation mark cannot follow each other within a
/// text, and the seal closes the record, so these are its own members. A start reads them alone: a record has every definition.
const NOTHING_REJECTED: &[u8] = br#","rejected":[],"rejected_entries":[]"#;

/// The length of a seal.
const SEAL: usize = 24;

/// The maximum size of a file. A server's lists have 64 MB at most, and a file has two versions of them.
const LARGEST: u64 = 512 * 1024 * 1024;

/// The approved definitions of a server.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The hashes of the programs that it may be, or of the URL, without variables and versions. A space is between them.
    #[serde(default)]
    pub(super) program: String,
    /// The entry for which a person has approved something.
    #[serde(default)]
    pub(super) approved: Option<String>,
    /// The entry for which a person has approved the whole server, with its prompts and resources.
    #[serde(default)]
    pub(super) whole: Option<String>,
    /// The server was in quarantine, and was not approved as a whole since.
    #[serde(default)]
    pub(super) quarantined: bool,
    /// The entry whose start a person has approved, if an agent wrote it.
    #[serde(default)]
    pub(super) started: Option<String>,
    /// Every record has them: JSON of another form is a damaged one.
    pub(super) tools: BTreeMap<String, Pinned>,
    /// The prompts, resources and templates, by their labels. `None` where they are not known.
    #[serde(default)]
    pub(super) entries: Option<BTreeMap<String, Pinned>>,
    /// `None` where they are not known.
    #[serde(default)]
    pub(super) instructions: Option<Option<String>>,
    /// Tools that a person has rejected. The server's record has those of every directory.
    #[serde(default)]
    pub(super) rejected: BTreeSet<String>,
    /// Prompts, resources and templates that a person has rejected, by their labels, as above.
    #[serde(default)]
    pub(super) rejected_entries: BTreeSet<String>,
    /// The record before it was lost, so everything waits until a person has decided. It follows the rejections: see `NOTHING_REJECTED`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) lost: bool,
    /// Whether `approved` is the entry in force.
    #[serde(skip)]
    pub(super) is_approved_here: bool,
    /// Whether `whole` is the entry in force.
    #[serde(skip)]
    pub(super) is_whole_here: bool,
    /// Whether `started` is the entry in force.
    #[serde(skip)]
    pub(super) may_start: bool,
}

/// The part of a record that is in force under every value of `trust`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Rejections {
    /// As in a record.
    #[serde(rename = "tools")]
    _tools: IgnoredAny,
    #[serde(default)]
    pub(super) rejected: BTreeSet<String>,
    #[serde(default)]
    pub(super) rejected_entries: BTreeSet<String>,
    #[serde(default)]
    pub(super) lost: bool,
}

impl Rejections {
    fn add(&mut self, others: Self) {
        self.rejected.extend(others.rejected);
        self.rejected_entries.extend(others.rejected_entries);
        self.lost |= others.lost;
    }
}

/// The `trust` in force: after a lost record, nothing is free but what a person has approved since.
pub(super) fn in_force(trust: Trust, is_lost: bool) -> Trust {
    match is_lost && !trust.is_quarantine() {
        true => Trust::Quarantine,
        false => trust,
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The definition of a tool that counts as unchanged. No definition has the hash of the default, so that its tool waits.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pinned {
    pub(super) hash: String,
    #[serde(default)]
    pub(super) json: Option<String>,
    /// By a person; otherwise it was seen first.
    #[serde(default)]
    pub(super) approved: bool,
}

impl Pinned {
    /// The definition under another name of its server, where `known` was inherited already.
    fn inherited(self, known: Option<&Self>) -> Self {
        if self.approved || known.is_some_and(|known| known.hash != self.hash) {
            return Self::default();
        }
        self
    }

    /// Whether this definition differs in its bytes only.
    pub(super) fn is_alike(
        &self,
        json: Option<&str>,
        is_same: impl Fn(&str, &str) -> bool,
    ) -> bool {
        let both = self.json.as_deref().zip(json);
        both.is_some_and(|(one, other)| is_same(one, other))
    }
}

impl Record {
    pub(super) fn pin(&mut self, name: &str, hash: &str, json: Option<String>, approved: bool) {
        let pinned = Pinned {
            hash: hash.to_owned(),
            json,
            approved,
        };
        self.tools.insert(name.to_owned(), pinned);
    }

    /// Whether a tool of this definition may be used under `trust`.
    pub(super) fn permits(&self, name: &str, hash: &str, trust: Trust) -> bool {
        let known = self.tools.get(name).filter(|known| known.hash == hash);
        let is_enough =
            |known: &Pinned| !trust.is_quarantine() || known.approved && self.is_approved_here;
        known.is_some_and(is_enough) && !self.rejected.contains(name)
    }

    /// Notes that a person approves something of the entry. Approvals of another entry are void from then on.
    pub(super) fn approve_entry(&mut self, entry: &str) {
        if !self.is_approved_here {
            self.tools.values_mut().for_each(|it| it.approved = false);
        }
        self.approved = Some(entry.to_owned());
        self.is_approved_here = true;
    }

    /// Notes that a person approves the whole server, with these prompts, resources and templates.
    pub(super) fn approve_whole(&mut self, entry: &str, entries: BTreeMap<String, Pinned>) {
        self.entries = Some(entries);
        self.whole = Some(entry.to_owned());
        self.is_whole_here = true;
        self.quarantined = false;
        self.lost = false;
    }

    /// Whether everything but approved tools waits for the approval of the whole server. An edit from `"quarantine"` to
    /// `"pin"` changes nothing about that.
    pub(super) fn is_quarantined(&self, trust: Trust) -> bool {
        match trust {
            Trust::Report => false,
            Trust::Pin => self.quarantined,
            Trust::Quarantine | Trust::Unstarted => !self.is_whole_here,
        }
    }

    /// Takes over from the record of a server under another name what that holds back, and no approval: a definition that a
    /// person approved there waits here, and so does one for which two records differ.
    pub(super) fn inherit(&mut self, other: Self) {
        self.quarantined |= other.quarantined;
        self.lost |= other.lost;
        self.rejected.extend(other.rejected);
        self.rejected_entries.extend(other.rejected_entries);
        let theirs = match other.approved {
            // Which instructions were approved is not recorded.
            Some(_) => other.instructions.map(|_| None),
            None => other.instructions,
        };
        self.instructions = match (self.instructions.take(), theirs) {
            (Some(own), Some(theirs)) if own != theirs => Some(None),
            (own, theirs) => own.or(theirs),
        };
        for (name, pinned) in other.tools {
            let known = self.tools.get(&name);
            let pinned = pinned.inherited(known);
            self.tools.insert(name, pinned);
        }
        for (label, pinned) in other.entries.into_iter().flatten() {
            let entries = self.entries.get_or_insert_default();
            let pinned = pinned.inherited(entries.get(&label));
            entries.insert(label, pinned);
        }
    }

    fn for_entry(mut self, entry: &str) -> Self {
        self.is_whole_here = self.whole.as_deref() == Some(entry);
        self.is_approved_here = self.approved.as_deref() == Some(entry);
        self.may_start = self.started.as_deref() == Some(entry);
        self
    }
}

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

/// The records of one server.
#[derive(Debug)]
pub(super) struct Store<'a> {
    files: Files<'a>,
    key: &'a Key,
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

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
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
    fn is_sealed(&self, name: &str, end: &[u8]) -> io::Result<bool> {
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
    fn write_record(&self, name: &str, record: &Record) -> io::Result<()> {
        let mut body = serde_json::to_vec(record)?;
        // The bracket that closes the record is that of the seal.
        body.pop();
        body.extend_from_slice(seal((body.len() + SEAL) as u64).as_bytes());
        self.write_body(name, body)
    }

    fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
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

    fn remove(&self, name: &str) -> io::Result<()> {
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

    /// Keeps a record that cannot be used under another name. There may be none.
    fn set_aside(&self, name: &str) -> io::Result<()> {
        let aside = format!("{name}{ASIDE}");
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
    fn names(&self) -> io::Result<BTreeSet<String>> {
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

    /// Succeeds if the server never had a record.
    ///
    /// # Errors
    /// When it had one, or that is not known.
    fn is_first(&self) -> io::Result<()> {
        let stem = self.stem(None);
        let of_place = format!("{stem}@");
        for name in self.files.names()? {
            let is_known = match name.ends_with(".json") {
                true if is_list(&name) => self.stems_in(&name)?.contains(&stem),
                is_record => is_record && name.starts_with(&of_place) && !name.ends_with(PENDING),
            };
            if is_known {
                return Err(self.missing());
            }
        }
        Ok(())
    }

    fn missing(&self) -> io::Error {
        let name = self.name(None);
        match &self.files {
            Files::Disk { directory, .. } => Fault::missing(&directory.join(name)),
            Files::Table { .. } => Fault::missing(Path::new(&name)),
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
        self.files.write_record(&self.name(self.place()), record)
    }

    fn write_shared(&self, record: &Record, whole: bool) -> io::Result<()> {
        let name = self.name(None);
        let known: Option<Record> = self.files.read(&name)?;
        let mut shared = match known {
            Some(known) if !whole => known,
            _ => return self.files.write_record(&name, record),
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

    /// The records of other servers that may run one of `program`: each may hold back a tool.
    ///
    /// # Errors
    /// When it cannot be told which these are. Each is an error of its own if it cannot be read.
    pub(super) fn of_program(
        &self,
        program: &str,
    ) -> io::Result<impl Iterator<Item = (String, io::Result<Record>)>> {
        let mut stems = BTreeSet::new();
        for list in lists_of(program) {
            stems.extend(self.stems_in(&list)?);
        }
        stems.remove(&self.stem(None));
        Ok(stems.into_iter().map(move |stem| {
            let name = format!("{stem}.json");
            let missing = || Fault::missing(Path::new(&name));
            let record = self.files.read(&name);
            let record = record.and_then(|record| record.ok_or_else(missing));
            (name, record)
        }))
    }

    /// Notes that the server may run each of `program`, and has a record.
    ///
    /// # Errors
    /// When that cannot be kept.
    pub(super) fn note_program(&self, program: &str) -> io::Result<()> {
        for list in lists_of(program) {
            let mut stems = self.stems_in(&list)?;
            if stems.insert(self.stem(None)) {
                self.files.write(&list, &stems)?;
            }
        }
        Ok(())
    }

    /// The servers in a list of those that run a program.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn stems_in(&self, list: &str) -> io::Result<BTreeSet<String>> {
        Ok(self.files.read(list)?.unwrap_or_default())
    }

    /// The lists of the servers that run a program.
    ///
    /// # Errors
    /// When there is no list of the files.
    pub(super) fn lists(&self) -> io::Result<Vec<String>> {
        let names = self.files.names()?.into_iter();
        Ok(names.filter(|name| is_list(name)).collect())
    }

    /// Makes such a list again from the records. One that cannot be read may be of that program.
    ///
    /// # Errors
    /// When the list cannot be made.
    pub(super) fn rebuild(&self, list: &str) -> io::Result<()> {
        let mut stems = BTreeSet::new();
        for name in self.files.names()? {
            let stem = name.strip_suffix(".json");
            let is_shared = !is_list(&name) && !name.ends_with(PENDING) && !name.contains('@');
            if let Some(stem) = stem.filter(|_| is_shared) {
                let record = self.record(&name);
                let may_run = |record: Record| lists_of(&record.program).any(|name| name == list);
                if record.map_or(true, |record| record.is_some_and(may_run)) {
                    stems.insert(stem.to_owned());
                }
            }
        }
        self.files.write(list, &stems)
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
    pub(super) fn faults<P: DeserializeOwned>(&self) -> Vec<Fault> {
        let lists = self.lists().unwrap_or_default();
        let lists = lists.iter().filter_map(|list| self.stems_in(list).err());
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

    /// Writes one record.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write_record(&self, name: &str, record: &Record) -> io::Result<()> {
        self.files.write_record(name, record)
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
    fn place(&self) -> Option<&str> {
        self.key.parts().1
    }

    pub(super) fn name(&self, place: Option<&str>) -> String {
        format!("{}.json", self.stem(place))
    }

    pub(super) fn pending_name(&self) -> String {
        let stem = self.stem(self.place());
        format!("{stem}{PENDING}")
    }

    /// The hash tells apart names that some file systems take for the same.
    fn stem(&self, place: Option<&str>) -> String {
        let server = &self.key.server;
        let hash = &hash_of(server.as_str())[..8];
        match place {
            Some(place) => format!("{server}~{hash}@{place}"),
            None => format!("{server}~{hash}"),
        }
    }

    /// The pins of an older version: those of this entry, otherwise the latest of any entry of this name.
    fn read_older(&self) -> io::Result<Option<Record>> {
        let mut found: Option<(u8, std::time::SystemTime, PathBuf)> = None;
        let Files::Disk { older, .. } = &self.files else {
            return Ok(None);
        };
        let files = match fs::read_dir(older) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Fault::at(older, &error)),
        };
        for file in files {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            let Some(configuration) = older_configuration(&name, &self.key.server) else {
                continue;
            };
            let (entry, place) = configuration.split_once('-').unzip();
            let entry = entry.unwrap_or(configuration);
            let rank = match (self.entry().starts_with(entry), place) {
                (true, place) if place == self.place() => 2,
                (true, None) => 1,
                _ => 0,
            };
            let written = file.metadata()?.modified()?;
            let is_better = |(best, at, _): &(u8, _, _)| (rank, written) > (*best, *at);
            if found.as_ref().is_none_or(is_better) {
                found = Some((rank, written, file.path()));
            }
        }
        let Some((_, _, path)) = found else {
            return Ok(None);
        };
        let hashes: BTreeMap<String, String> = read(&path)?.unwrap_or_default();
        let mut record = Record::default();
        for (name, hash) in hashes {
            record.pin(&name, &hash, None, false);
        }
        Ok(Some(record))
    }
}

/// Whether a file is a list of the servers that run a program.
fn is_list(name: &str) -> bool {
    name.starts_with('~') && name.ends_with(".json")
}

/// The list of the servers that run `program`.
fn lists_of(program: &str) -> impl Iterator<Item = String> + '_ {
    program.split(' ').map(|program| format!("~{program}.json"))
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

/// The configuration in the name of an older file of `server`.
fn older_configuration<'n>(name: &'n str, server: &ServerName) -> Option<&'n str> {
    let rest = name.strip_prefix(server.as_str())?.strip_prefix('-')?;
    let configuration = rest.strip_suffix(".json")?;
    let is_hash = |part: &str| part.len() == 16 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let (entry, place) = configuration.split_once('-').unwrap_or((configuration, ""));
    (is_hash(entry) && place.bytes().all(|b| b.is_ascii_hexdigit())).then_some(configuration)
}

pub(super) fn hash_of(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text)[..16])
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
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
    error.kind() == io::ErrorKind::NotFound && !leads_nowhere(path)
}

/// Whether a file that is not found is a link, or below one, that leads nowhere, as to a disk that is not mounted.
fn leads_nowhere(path: &Path) -> bool {
    let is_link = |path: &Path| path.is_symlink() && !path.exists();
    path.ancestors().any(is_link)
}

/// The last member of a record, and its last bracket: the number of bytes of the whole, so that nothing that was cut, appended or merged
/// has it.
fn seal(length: u64) -> String {
    format!(r#","bytes":"{length:012}"}}"#)
}
