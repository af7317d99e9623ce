//! A person's decision about differences.

use std::io;

use super::change::{Change, ChangeKind, Pending, approved_entries, rejected};
use super::record::{self, Record};
use super::store::Store;

/// The record of a server, and what waits. Where `known` is none, `first` makes one. The rejections among what waits are kept in it: they
/// may be of a record that is lost, or in whose place is an older one.
pub(super) fn kept(
    store: &Store<'_>,
    known: Option<Record>,
    first: impl FnOnce() -> io::Result<Record>,
) -> io::Result<(Record, Pending)> {
    let pending: Pending = store.read_pending()?.unwrap_or_default();
    let mut record = known.map_or_else(first, Ok)?;
    record.rejected.extend(rejected(&pending.tools));
    record.rejected_entries.extend(rejected(&pending.entries));
    Ok((record, pending))
}

/// The record with the start of the entry approved, and what waits.
pub(super) fn approve_start(store: &Store<'_>) -> io::Result<(Record, Pending)> {
    let (mut record, pending) = kept(store, store.read()?, || Ok(Record::default()))?;
    record.started = Some(store.entry().to_owned());
    record.may_start = true;
    store.write(&record, true)?;
    Ok((record, pending))
}

/// Approves or rejects what of `seen` is still as it is there.
pub(super) fn decide(
    store: &Store<'_>,
    seen: &Pending,
    is_approved: bool,
) -> io::Result<(Record, Pending, Vec<String>)> {
    let (mut record, mut pending) = kept(store, store.read()?, || Ok(Record::default()))?;
    let is_current = |(name, change): &(&String, &Change)| {
        let current = pending.tools.get(*name);
        let shown = (&change.now, &change.kind, change.is_rejected);
        current.is_some_and(|it| (&it.now, &it.kind, it.is_rejected) == shown)
    };
    let current: Vec<_> = seen.tools.iter().filter(is_current).collect();
    let entries = seen.entries.iter().filter(|(label, change)| {
        let current = pending.entries.get(*label);
        let shown = (&change.now, change.is_rejected);
        current.is_some_and(|current| (&current.now, current.is_rejected) == shown)
    });
    let entries: Vec<_> = entries.collect();
    let same = |one: &Option<Change>| one.as_ref().map(|change| change.now.clone());
    let has_same_instructions =
        seen.instructions.is_some() && same(&seen.instructions) == same(&pending.instructions);
    let has_nothing =
        |of: &Pending| of.tools.is_empty() && of.entries.is_empty() && of.instructions.is_none();
    let has_same_features = same(&seen.features) == same(&pending.features);
    let is_empty = has_nothing(seen) && has_nothing(&pending) && has_same_features;
    // An approval of nothing leaves a server in quarantine.
    let has_current = !current.is_empty() || !entries.is_empty();
    if is_approved && (has_current || has_same_instructions || is_empty) {
        record.approve_entry(store.entry());
    }
    let mut decided = Vec::new();
    for (name, change) in current {
        decided.push(name.clone());
        if is_approved {
            record.approve(name, change);
            pending.tools.remove(name);
        } else {
            record.rejected.insert(name.clone());
            if let Some(current) = pending.tools.get_mut(name) {
                current.is_rejected = true;
            }
        }
    }
    for (label, change) in entries {
        decided.push(label.clone());
        if is_approved {
            pending.entries.remove(label);
            record.approve_entry_of(label, change);
        } else {
            record.rejected_entries.insert(label.clone());
            if let Some(current) = pending.entries.get_mut(label) {
                current.is_rejected = true;
            }
        }
    }
    if has_same_instructions && is_approved {
        let approved = pending.instructions.take();
        record.instructions = Some(approved.and_then(|change| change.after));
        decided.push(String::new());
    }
    // After a lost record, an end is also that a person keeps back what was rejected before.
    let is_settled = has_nothing(&pending) || record.lost && pending.has_only_rejected();
    let is_whole = seen.is_quarantined && has_same_features && is_settled;
    if is_approved && is_whole {
        let features = pending.features.take();
        let json = features.as_ref().and_then(|change| change.after.as_deref());
        record.approve_whole(store.entry(), approved_entries(json));
        decided.extend(features.map(|_| String::new()));
    }
    // A person has decided on everything. A server that lists nothing now leaves nothing to decide.
    let is_decision = !decided.is_empty() || !has_nothing(&pending);
    if record.lost && is_decision && pending.has_only_rejected() && pending.features.is_none() {
        record.lost = false;
        record.quarantined = false;
    }
    // The record first: after a crash between the two writes nothing more is free than was approved.
    store.write(&record, true)?;
    store.write_pending((!pending.is_empty()).then_some(&pending))?;
    Ok((record, pending, decided))
}

impl Record {
    /// Takes the current definition of a tool for the approved one.
    fn approve(&mut self, name: &str, change: &Change) {
        self.rejected.remove(name);
        match &change.kind {
            ChangeKind::Vanished => drop(self.tools.remove(name)),
            kind => {
                if let ChangeKind::Renamed { from } = kind {
                    self.tools.remove(from);
                }
                self.pin(name, &change.now, change.after.clone(), true);
            }
        }
    }

    /// Takes the current definition of a prompt, resource or template for the approved one.
    fn approve_entry_of(&mut self, label: &str, change: &Change) {
        self.rejected_entries.remove(label);
        let pinned = record::Pinned {
            hash: change.now.clone(),
            json: change.after.clone(),
            approved: true,
            elsewhere: None,
        };
        let entries = self.entries.get_or_insert_default();
        entries.insert(label.to_owned(), pinned);
    }
}
