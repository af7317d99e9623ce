//! A new record in the place of one that cannot be used.

use std::io;

use super::change::{Pending, rejected};
use super::fault::Fault;
use super::record::Record;
use super::store::{Store, server_of};
use crate::tool::ServerName;

/// Sets aside all records of a server that cannot be used, and writes one under which everything of it waits for a person. It has the
/// rejections that can still be read. Does nothing if the records can be used. `servers` are all that are known here.
///
/// # Errors
/// When a record could not be opened now, or cannot be replaced.
pub(super) fn renew(store: &Store<'_>, program: &str, servers: &[ServerName]) -> io::Result<()> {
    store.repair_lists(program, servers)?;
    let known = usable(store.read_of(program))?;
    let is_first = matches!(known, Some(None));
    let mut record = Record {
        program: program.to_owned(),
        quarantined: true,
        lost: true,
        ..Record::default()
    };
    match usable(store.read_pending::<Pending>())? {
        Some(pending) => {
            let pending = pending.unwrap_or_default();
            record.rejected.extend(rejected(&pending.tools));
            let entries = rejected(&pending.entries);
            record.rejected_entries.extend(entries);
        }
        None => store.set_aside(&store.pending_name())?,
    }
    let mut damaged = Vec::new();
    for name in store.record_names()? {
        match usable(store.record(&name))? {
            Some(known) => {
                let known = known.unwrap_or_default();
                record.rejected.extend(known.rejected);
                record.rejected_entries.extend(known.rejected_entries);
            }
            None => damaged.push(name),
        }
    }
    let shared = store.name(None);
    // The record of all directories is gone, or it is not known whether there was one.
    let is_gone = known.is_none() && usable(store.record(&shared))? == Some(None);
    let (mut others, mut is_whole) = (Vec::new(), true);
    for (name, other) in store.of_program(program)? {
        let is_lost = other
            .as_ref()
            .is_err_and(|error| Fault::of(error).is_loss());
        is_whole &= other.is_ok();
        match usable(other)? {
            Some(other) => record.inherit(server_of(&name), other),
            // It is whole, perhaps, and that is for a person to find out.
            None if !is_lost => {}
            None => {
                let pending = usable(store.pending_with::<Pending>(&name))?;
                let pending = pending.flatten().unwrap_or_default();
                record.rejected.extend(rejected(&pending.tools));
                let entries = rejected(&pending.entries);
                record.rejected_entries.extend(entries);
                others.push(name);
            }
        }
    }
    // The records of programs that have nothing in common with this one stay as they are.
    let (rejected, fault) = store.rejected_of_any(program);
    record.rejected.extend(rejected.rejected);
    record.rejected_entries.extend(rejected.rejected_entries);
    if let Some(error) = fault {
        is_whole = false;
        usable::<()>(Err(error))?;
    }
    if is_gone || is_first && !is_whole {
        damaged.push(shared);
    }
    // Those of other servers that are lost, or each server of the program that comes later would be held for them.
    for name in damaged.into_iter().chain(others) {
        store.set_aside(&name)?;
        store.write_record(&name, &record)?;
    }
    // It is made again by the next comparison.
    store.write_pending(None::<&Pending>)?;
    match is_first && is_whole {
        true => Ok(()),
        false => store.note_program(program),
    }
}

/// `None` if it is damaged, gone or in the way.
fn usable<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if Fault::of(&error).is_passing() => Err(error),
        Err(_) => Ok(None),
    }
}
