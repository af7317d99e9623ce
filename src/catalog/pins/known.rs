//! The state of one server's pins in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::change::{ChangeKind, Pending, rejected};
use super::fault::Fault;
use super::record::{Record, in_force};
use super::store::Store;
use crate::config::Trust;

/// The pins of one server in memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub(super) pending: Pending,
    /// The tools that may be used, with the hashes of their definitions. Not read under `Trust::Report`.
    pub(super) free: BTreeMap<String, String>,
    /// The prompts, resources and templates that may be used, by their labels, with the hashes of their definitions.
    pub(super) free_entries: BTreeMap<String, String>,
    /// Whether its instructions may be shown. Not read under `Trust::Report`.
    pub(super) has_free_instructions: bool,
    pub(super) is_quarantined: bool,
    pub(super) is_whole: bool,
    pub(super) may_start: bool,
    /// There is no record yet, or no more.
    pub(super) is_unrecorded: bool,
    /// The tools that a person has rejected; `None` where they are not known.
    pub(super) rejected: Option<BTreeSet<String>>,
    /// The labels of prompts, resources and templates that a person has rejected; `None` where they are not known.
    pub(super) rejected_entries: Option<BTreeSet<String>>,
    /// The error, if there was one.
    pub(super) fault: Option<Fault>,
    /// An earlier record is lost, and a person has not decided since.
    pub(super) is_lost: bool,
}

impl Known {
    /// The state of a server whose records cannot be read.
    pub(super) fn unknown(fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::default()
        }
    }

    /// The state of a server by what is kept of it. Where its record cannot be read, it is not known what a person has rejected.
    pub(super) fn kept(
        store: &Store<'_>,
        record: io::Result<Option<Record>>,
        trust: Trust,
    ) -> Self {
        let pending = store.read_pending::<Pending>();
        let errors = [pending.as_ref().err(), record.as_ref().err()];
        let fault = errors.into_iter().flatten().next().map(Fault::of);
        let pending = pending.ok().flatten().unwrap_or_default();
        let is_unknown = record.is_err();
        let is_unrecorded = matches!(record, Ok(None));
        let record = record.ok().flatten().unwrap_or_default();
        let mut known = Self {
            is_unrecorded,
            ..Self::of(&record, pending, trust, fault)
        };
        if is_unknown {
            known.rejected = None;
            known.rejected_entries = None;
        }
        known
    }

    /// Its part that stays in force while there is no record.
    pub(super) fn unread(&self) -> Self {
        Self {
            rejected: self.rejected.clone(),
            rejected_entries: self.rejected_entries.clone(),
            fault: self.fault.clone(),
            ..Self::default()
        }
    }

    /// Whether it is not known what a person has rejected, as something cannot be read.
    pub(super) fn is_unknown(&self) -> bool {
        self.rejected.is_none() && self.fault.is_some()
    }

    /// Whether both hold back the same. Under `Trust::Report`, approvals are only read when a server is listed.
    pub(super) fn is_same(&self, other: &Self, trust: Trust) -> bool {
        let held = |known: &Self| {
            let is_held = (known.is_quarantined, known.is_lost);
            (is_held, known.may_start, known.is_unrecorded)
        };
        let trust = Self::trust(Some(self), trust);
        let free = |known: &Self| (known.has_free_instructions, known.is_whole);
        held(self) == held(other)
            && self.pending == other.pending
            && self.rejected == other.rejected
            && self.rejected_entries == other.rejected_entries
            && self.fault == other.fault
            && (trust.is_report()
                || free(self) == free(other)
                    && self.free == other.free
                    && self.free_entries == other.free_entries)
    }

    /// The `trust` in force of a server.
    pub(super) fn trust(known: Option<&Self>, trust: Trust) -> Trust {
        known.map_or(trust, |known| {
            in_force(trust, known.is_lost, known.is_quarantined)
        })
    }

    /// Whether nothing but approved tools of a server may reach a client.
    pub(super) fn is_held_whole(known: Option<&Self>, trust: Trust) -> bool {
        let trust = Self::trust(known, trust);
        // After a change of `trust`, the pins may not have been read again yet.
        let is_unapproved = trust.is_quarantine() && !known.is_some_and(|it| it.is_whole);
        !trust.is_report() && (is_unapproved || known.is_some_and(|it| it.is_quarantined))
    }

    pub(super) fn of(
        record: &Record,
        pending: Pending,
        trust: Trust,
        fault: Option<Fault>,
    ) -> Self {
        let trust = record.in_force(trust);
        // A change waits for everyone: also for a session whose own list still has the approved definition.
        let waits = |name: &String| {
            let change = pending.tools.get(name);
            change.is_some_and(|change| change.kind != ChangeKind::Vanished)
        };
        let tools = record.tools.iter().filter(|(name, _)| !waits(name));
        let free = tools
            .filter(|(name, pinned)| record.permits(name, &pinned.hash, trust))
            .map(|(name, pinned)| (name.clone(), pinned.hash.clone()));
        let of_tools = rejected(&pending.tools).chain(record.rejected.iter().cloned());
        let of_entries = record.rejected_entries.iter().cloned();
        let of_entries = rejected(&pending.entries).chain(of_entries);
        let is_free = |label: &String| {
            !record.rejected_entries.contains(label) && !pending.entries.contains_key(label)
        };
        let entries = record.entries.iter().flatten();
        let entries = entries.filter(|(label, _)| is_free(label));
        let entries = entries.map(|(label, pinned)| (label.clone(), pinned.hash.clone()));
        Self {
            rejected: Some(of_tools.collect()),
            rejected_entries: Some(of_entries.collect()),
            free: free.collect(),
            free_entries: entries.collect(),
            has_free_instructions: pending.instructions.is_none() && fault.is_none(),
            is_quarantined: record.is_quarantined(trust),
            is_whole: record.is_whole_here,
            may_start: record.may_start,
            is_unrecorded: false,
            is_lost: record.lost,
            pending,
            fault,
        }
    }
}
