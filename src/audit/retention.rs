//! Removes days of the log: those that are too old, the oldest beyond the total size, and those that a person removes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Directories;
use super::chain::{self, Dropped, Link};
use crate::config::AuditOptions;
use crate::day::Day;

/// A file that can be removed.
struct Candidate {
    day: Day,
    chain: String,
    path: PathBuf,
    bytes: u64,
}

/// Removes the days beyond the configured number and size. Today's files stay.
///
/// # Errors
/// When a directory cannot be read, or a file cannot be removed.
pub(super) fn sweep(
    directories: &Directories,
    options: AuditOptions,
    today: Day,
) -> io::Result<()> {
    let files = candidates(&directories.chains, today)?;
    let mut total: u64 = files.iter().map(|file| file.bytes).sum();
    let oldest = today.minus(options.days.saturating_sub(1));
    for file in files {
        if file.day >= oldest && total <= options.bytes() {
            break;
        }
        total -= file.bytes;
        remove(directories, &file)?;
    }
    Ok(())
}

/// Removes the days before `day`. Returns the number of removed files.
///
/// # Errors
/// When a directory cannot be read, or a file cannot be removed.
pub(crate) fn delete_before(directories: &Directories, day: Day) -> io::Result<usize> {
    let files = candidates(&directories.chains, Day::today())?;
    let old = files.iter().filter(|file| file.day < day);
    let mut count = 0;
    for file in old {
        remove(directories, file)?;
        count += 1;
    }
    Ok(count)
}

/// All files of days before today, oldest first.
fn candidates(chains: &Path, today: Day) -> io::Result<Vec<Candidate>> {
    let mut files = Vec::new();
    for (name, directory) in chain::chains(chains)? {
        for (day, path) in chain::days(&directory)? {
            if day >= today {
                continue;
            }
            // Another process may have removed the file.
            let Ok(metadata) = fs::metadata(&path) else {
                continue;
            };
            files.push(Candidate {
                day,
                chain: name.clone(),
                path,
                bytes: metadata.len(),
            });
        }
    }
    files.sort_by_key(|file| file.day);
    Ok(files)
}

/// Removes a day's file. First, its last hash is stored in the chain's head, so that the next day can still be
/// verified.
fn remove(directories: &Directories, file: &Candidate) -> io::Result<()> {
    if let Some(last) = last_link(&file.path)? {
        chain::change_head(&directories.heads, &file.chain, |head| {
            let is_later = head
                .dropped
                .as_ref()
                .is_none_or(|dropped| dropped.last.number < last.number);
            if is_later {
                head.dropped = Some(Dropped {
                    day: file.day.to_string(),
                    last,
                });
            }
        })?;
    }
    match fs::remove_file(&file.path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The last line of a file. `None` if another process removed the file or the line is damaged, which `verify` reports.
fn last_link(path: &Path) -> io::Result<Option<Link>> {
    match chain::end_of(path) {
        Ok(end) => Ok(end.last),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
