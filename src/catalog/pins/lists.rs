//! Which servers had a record, and which of them may run one program.
//!
//! Every server that ever had a record has a mark, a small file of its own, and is in the list of each program that it may run. A list
//! is needed for its own program alone, as the marks say whose record is lost. Older versions made lists only: until all of them were
//! read once (`mark_all`), they say it.

use std::collections::BTreeSet;
use std::io;

use super::change::{self, Pending};
use super::fault::Fault;
use super::record::{Record, Rejections};
use super::store::{PENDING, Store, stem_of};
use crate::config::any_program;
use crate::tool::ServerName;

/// How the name of a mark ends.
const MARK: &str = ".seen";

/// There is a mark for every server that had a record.
const COMPLETE: &str = "~.seen";

impl Store<'_> {
    /// Succeeds if the server never had a record.
    ///
    /// # Errors
    /// When it had one, or that is not known.
    pub(super) fn is_first(&self) -> io::Result<()> {
        let stem = self.stem(None);
        let had_one = self.files.is_there(&mark_of(&stem))?
            || !self.files.is_there(COMPLETE)? && self.all_stems(None)?.contains(&stem);
        match had_one {
            true => Err(self.missing()),
            false => Ok(()),
        }
    }

    /// [`Store::read`] of a server that may run `program`. A list of that may have a server whose mark is gone as well.
    ///
    /// # Errors
    /// As there.
    pub(super) fn read_of(&self, program: &str) -> io::Result<Option<Record>> {
        let record = self.read()?;
        if record.is_none() && self.stems_of(program)?.contains(&self.stem(None)) {
            return Err(self.missing());
        }
        Ok(record)
    }

    /// The records of other servers that may run one of `program`: each may hold back a tool.
    ///
    /// # Errors
    /// When it cannot be told which these are. Each is an error of its own if it cannot be read.
    pub(super) fn of_program(
        &self,
        program: &str,
    ) -> io::Result<impl Iterator<Item = (String, io::Result<Record>)>> {
        let known = program.split(' ').filter(|it| *it != any_program());
        let mut stems = self.stems_of(&Vec::from_iter(known).join(" "))?;
        stems.remove(&self.stem(None));
        Ok(stems.into_iter().map(move |stem| {
            let name = format!("{stem}.json");
            let record = self.files.read(&name);
            let missing = || self.missing_file(&name);
            let record = record.and_then(|record| record.ok_or_else(missing));
            (name, record)
        }))
    }

    /// The rejections of each server that may run one of `program` only because a program is not known: of all if it is one of these, and
    /// also where the list of these cannot be read. No more of them counts, as it would hold every server.
    ///
    /// The rejections of a record that cannot be read are not known. If the program of this server is not known, that is an error, with the
    /// rejections that can be read; otherwise those among what waits count.
    pub(super) fn rejected_of_any(&self, program: &str) -> (Rejections, Option<io::Error>) {
        let any = any_program();
        let is_any = |program: &str| program.split(' ').any(|it| it == any);
        let is_own = is_any(program);
        let mut fault = None;
        let (stems, is_certain) = match self.stems_of(&any) {
            Ok(stems) if !is_own => (Ok(stems), true),
            _ => (self.recorded(), is_own),
        };
        let mut stems = stems.unwrap_or_else(|error| {
            fault = Some(error);
            BTreeSet::new()
        });
        stems.remove(&self.stem(None));
        let mut rejected = Rejections::default();
        for stem in stems {
            let name = format!("{stem}.json");
            let record = self.record(&name);
            let record = record.and_then(|record| record.ok_or_else(|| self.missing_file(&name)));
            if let Ok(record) = &record
                && !is_certain
                && !is_any(&record.program)
            {
                continue;
            }
            match record {
                Ok(record) => {
                    rejected.rejected.extend(record.rejected);
                    rejected.rejected_entries.extend(record.rejected_entries);
                }
                Err(error) => drop(fault.get_or_insert(error)),
            }
            let waiting = self.files.read::<Pending>(&format!("{stem}{PENDING}"));
            if let Ok(Some(waiting)) = waiting {
                rejected.rejected.extend(change::rejected(&waiting.tools));
                rejected
                    .rejected_entries
                    .extend(change::rejected(&waiting.entries));
            }
        }
        (rejected, fault.filter(|_| is_own))
    }

    /// All servers that have a record, or have lost theirs.
    fn recorded(&self) -> io::Result<BTreeSet<String>> {
        let names = self.files.names()?;
        let mut stems = named(&names);
        if !self.files.is_there(COMPLETE)? {
            stems.extend(self.all_stems(None)?);
        }
        Ok(stems)
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
        self.complete()
    }

    /// Gives all servers of older versions their marks. Where a list cannot be read, nothing changes until that is repaired.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn complete(&self) -> io::Result<()> {
        if !self.files.is_there(COMPLETE)?
            && let Ok(stems) = self.all_stems(None)
        {
            self.mark_all(&stems)?;
        }
        Ok(())
    }

    /// Whether an older version has made records.
    pub(super) fn is_older(&self) -> bool {
        let has_files = || self.files.names().is_ok_and(|names| !names.is_empty());
        self.files.is_there(COMPLETE).is_ok_and(|it| !it) && has_files()
    }

    /// Makes the lists of `program` again that cannot be read. `servers` are all that an older version may have had in one.
    ///
    /// # Errors
    /// When a list could not be opened now, or cannot be made.
    pub(super) fn repair_lists(&self, program: &str, servers: &[ServerName]) -> io::Result<()> {
        if !self.files.is_there(COMPLETE)? {
            self.mark_all(&self.all_stems(Some(servers))?)?;
        }
        for list in lists_of(program) {
            match self.stems_in(&list) {
                Err(error) if Fault::of(&error).is_passing() => return Err(error),
                Err(_) => {
                    self.set_aside(&list)?;
                    self.rebuild(&list)?;
                }
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// The faults of the lists of `program`.
    pub(super) fn faults_of_lists(&self, program: &str) -> impl Iterator<Item = io::Error> {
        lists_of(program).filter_map(|list| self.stems_in(&list).err())
    }

    /// Notes that a server has a record.
    pub(super) fn mark(&self, stem: &str) -> io::Result<()> {
        let mark = mark_of(stem);
        match self.files.is_there(&mark)? {
            true => Ok(()),
            false => self.files.make(&mark),
        }
    }

    fn mark_all(&self, stems: &BTreeSet<String>) -> io::Result<()> {
        stems.iter().try_for_each(|stem| self.mark(stem))?;
        // It is on the disk when this returns, and so are those before it.
        self.files.write(COMPLETE, &())
    }

    /// All servers in lists or with a record. Where a list cannot be read, `servers` may have been in it, and all that it still names.
    fn all_stems(&self, servers: Option<&[ServerName]>) -> io::Result<BTreeSet<String>> {
        let mut stems = BTreeSet::new();
        for name in self.files.names()? {
            if !is_list(&name) {
                stems.extend(stem_in(&name).map(str::to_owned));
                continue;
            }
            match (self.stems_in(&name), servers) {
                (Ok(list), _) => stems.extend(list),
                (Err(error), Some(servers)) if !Fault::of(&error).is_passing() => {
                    let text = self.files.text(&name);
                    let named = text.split('"').filter(|word| word.contains('~'));
                    stems.extend(named.map(str::to_owned));
                    stems.extend(servers.iter().map(|server| stem_of(server, None)));
                }
                (Err(error), _) => return Err(error),
            }
        }
        Ok(stems)
    }

    /// Makes a list again. A record that cannot be read, or is gone, may be of its program.
    fn rebuild(&self, list: &str) -> io::Result<()> {
        let mut stems = BTreeSet::new();
        for stem in named(&self.files.names()?) {
            let may_run = |record: &Record| lists_of(&record.program).any(|name| name == list);
            match self.record(&format!("{stem}.json")) {
                Ok(Some(record)) if !may_run(&record) => {}
                _ => drop(stems.insert(stem)),
            }
        }
        self.files.write(list, &stems)
    }

    fn stems_of(&self, program: &str) -> io::Result<BTreeSet<String>> {
        let mut stems = BTreeSet::new();
        for list in lists_of(program) {
            stems.extend(self.stems_in(&list)?);
        }
        Ok(stems)
    }

    fn stems_in(&self, list: &str) -> io::Result<BTreeSet<String>> {
        Ok(self.files.read(list)?.unwrap_or_default())
    }
}

/// The servers that files are about: by their marks, and by their records.
fn named(names: &BTreeSet<String>) -> BTreeSet<String> {
    let of_mark = |name: &'_ str| {
        let stem = name.strip_prefix('~')?.strip_suffix(MARK)?;
        (!stem.is_empty()).then(|| stem.to_owned())
    };
    let of = |name: &String| of_mark(name).or_else(|| stem_in(name).map(str::to_owned));
    names.iter().filter_map(of).collect()
}

/// Whether a file is a list of the servers that run a program.
fn is_list(name: &str) -> bool {
    name.starts_with('~') && name.ends_with(".json")
}

/// The list of the servers that run `program`.
fn lists_of(program: &str) -> impl Iterator<Item = String> + '_ {
    program.split(' ').map(|program| format!("~{program}.json"))
}

fn mark_of(stem: &str) -> String {
    format!("~{stem}{MARK}")
}

/// The server of a record by its name.
fn stem_in(name: &str) -> Option<&str> {
    let stem = name
        .strip_suffix(".json")
        .filter(|_| !name.ends_with(PENDING))?;
    let stem = stem.split_once('@').map_or(stem, |(stem, _)| stem);
    (!stem.starts_with(['~', '.'])).then_some(stem)
}
