//! The comparison of a server's list with its record.

use std::collections::BTreeSet;
use std::io;

use super::change::{Listed, Pending, differences};
use super::deciding::kept;
use super::record::{Record, Rejections};
use super::store::{Store, server_of};
use crate::config::Trust;
use crate::tool::ServerName;

/// A comparison of a server's list with its record.
pub(super) struct Compared {
    pub(super) record: Record,
    pub(super) pending: Pending,
    /// The changes that waited before.
    pub(super) known: Pending,
}

impl Compared {
    /// Whether something waits that did not before.
    pub(super) fn is_news(&self) -> bool {
        self.pending.has_news(&self.known)
    }

    /// Says which tools differ that did not before.
    pub(super) fn report(&self, server: &ServerName) {
        for (name, change) in &self.pending.tools {
            let last = self.known.tools.get(name);
            if last.is_none_or(|last| last.now != change.now) {
                tracing::warn!(%server, tool = name, change = change.kind.word(), "a tool is not one that was approved");
            }
        }
    }
}

/// Compares the list of a server with its record, and keeps both.
pub(super) fn compare(
    store: &Store<'_>,
    program: &str,
    listed: &Listed,
    trust: Trust,
) -> io::Result<Compared> {
    let before = store.read_of(program)?;
    let (others, fault) = match &before {
        None => store.rejected_of_any(program),
        // It was edited to another program. Only the rejections that can be read count, as a person may have no record to replace.
        Some(known) if is_other(&known.program, program) => rejected_elsewhere(store, program),
        Some(_) => (Rejections::default(), None),
    };
    let first = || match fault {
        Some(error) => Err(error),
        None => first_sight(store, program, listed, trust),
    };
    let (mut record, known) = kept(store, before.clone(), first)?;
    record.rejected.extend(others.rejected);
    record.rejected_entries.extend(others.rejected_entries);
    program.clone_into(&mut record.program);
    let trust = record.in_force(trust);
    record.quarantined = match trust.is_report() {
        true => false,
        false => record.quarantined || record.is_quarantined(trust),
    };
    let mut pending = differences(&mut record, listed, trust);
    for (name, change) in &mut pending.tools {
        // The list before may have been compared where its definitions were still known.
        let last = known.tools.get(name);
        change.before = change.before.take().or_else(|| last?.before.clone());
    }
    if pending != known {
        store.write_pending((!pending.is_empty()).then_some(&pending))?;
    }
    if before.as_ref() != Some(&record) || !store.is_sealed() {
        store.write(&record, false)?;
    }
    // After the record: a server in a list without a record has lost it.
    store.note_program(program)?;
    Ok(Compared {
        record,
        pending,
        known,
    })
}

/// The hashes of the definitions that wait under every name, as they have changed or a person has rejected them, each with the name of a
/// record. A quarantine is about its program alone: what counts for others would depend on which of them is listed first.
pub(super) fn waiting(store: &Store<'_>) -> io::Result<impl Iterator<Item = (String, String)>> {
    let all = store.all_pending::<Pending>()?.into_iter();
    Ok(all.flat_map(|(record, pending)| {
        let is_whole = store.is_quarantined(&record);
        let changes = pending.tools.into_values();
        let changes = changes.chain(pending.entries.into_values());
        let changes = changes.filter(move |change| !is_whole || change.is_rejected);
        changes.map(move |change| (record.clone(), change.now))
    }))
}

/// The pins of a server that is listed for the first time under its name.
fn first_sight(
    store: &Store<'_>,
    program: &str,
    listed: &Listed,
    trust: Trust,
) -> io::Result<Record> {
    let others = store.of_program(program)?;
    let others = others.map(|(name, other)| Ok((name, other?)));
    let others: Vec<(String, Record)> = others.collect::<io::Result<_>>()?;
    if others.is_empty() {
        let mut record = Record::default();
        if trust.is_quarantine() {
            return Ok(record);
        }
        let waiting = waiting(store)?.map(|(_, hash)| hash);
        let waiting: BTreeSet<String> = waiting.collect();
        let free = listed
            .tools
            .iter()
            .filter(|(_, (hash, _))| !waiting.contains(hash));
        for (name, (hash, json)) in free {
            record.pin(name, hash, json.clone(), false);
        }
        record.entries = Some(listed.pinned_entries(|hash| !waiting.contains(hash)));
        return Ok(record);
    }
    Ok(inherited(others))
}

/// Whether a server may run a program now that is not one of `before`.
fn is_other(before: &str, now: &str) -> bool {
    let before = BTreeSet::from_iter(before.split(' '));
    // Older versions did not record it.
    !before.contains("") && now.split(' ').any(|program| !before.contains(program))
}

/// The rejections under the other names of a program, as far as they can be read, and the error of the rest.
pub(super) fn rejected_elsewhere(
    store: &Store<'_>,
    program: &str,
) -> (Rejections, Option<io::Error>) {
    let (mut rejected, mut fault) = store.rejected_of_any(program);
    let others = store
        .of_program(program)
        .map(|others| others.map(|(_, record)| record));
    let mut add = |record: io::Result<Record>| match record {
        Ok(record) => {
            rejected.rejected.extend(record.rejected);
            rejected.rejected_entries.extend(record.rejected_entries);
        }
        Err(error) => drop(fault.get_or_insert(error)),
    };
    match others {
        Ok(others) => others.for_each(add),
        Err(error) => add(Err(error)),
    }
    (rejected, fault)
}

/// The record that those of other servers with the same program leave.
fn inherited(others: Vec<(String, Record)>) -> Record {
    let mut record = Record::default();
    for (name, other) in others {
        record.inherit(server_of(&name), other);
    }
    record
}
