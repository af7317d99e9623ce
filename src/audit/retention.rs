//! Removes files of the log: those that are too old, the oldest beyond the total size, and those that a person removes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::chain::{self, Dropped, Link, Segment};
use super::{Directories, shipping};
use crate::config::AuditOptions;
use crate::day::Day;

/// A file of the log.
struct Candidate {
    segment: Segment,
    chain: String,
    path: PathBuf,
    bytes: u64,
    /// The newest file of a chain, which a session may be writing.
    is_newest: bool,
}

impl Candidate {
    fn is_removable(&self, today: Day) -> bool {
        self.segment.day < today || !self.is_newest
    }
}

/// Removes the files beyond the configured number of days and size. The newest one of each chain stays if it is of today.
///
/// # Errors
/// When a directory cannot be read, or a file cannot be removed.
pub(super) fn sweep(
    directories: &Directories,
    options: AuditOptions,
    today: Day,
) -> io::Result<()> {
    let files = candidates(&directories.chains)?;
    let mut total: u64 = files.iter().map(|file| file.bytes).sum();
    let oldest = today.minus(options.days.saturating_sub(1));
    for file in files.iter().filter(|file| file.is_removable(today)) {
        if file.segment.day >= oldest && total <= options.bytes() {
            break;
        }
        total -= file.bytes;
        let unsent = shipping::unsent(directories, &file.chain, &file.path, file.bytes);
        if unsent > 0 {
            tracing::error!(
                bytes = unsent,
                day = %file.segment.day,
                "`audit.days` or `audit.megabytes` removes lines of the audit log that the store has not taken"
            );
        }
        remove(directories, file)?;
    }
    Ok(())
}

/// Removes the days before `day`. Returns the number of removed files.
///
/// # Errors
/// When a directory cannot be read, or a file cannot be removed.
pub(crate) fn delete_before(directories: &Directories, day: Day) -> io::Result<usize> {
    let today = Day::today();
    let files = candidates(&directories.chains)?;
    let old = files
        .iter()
        .filter(|file| file.segment.day < day && file.is_removable(today));
    let mut count = 0;
    for file in old {
        remove(directories, file)?;
        count += 1;
    }
    Ok(count)
}

/// All files, oldest first.
fn candidates(chains: &Path) -> io::Result<Vec<Candidate>> {
    let mut files = Vec::new();
    for (name, directory) in chain::chains(chains)? {
        let segments = chain::segments(&directory)?;
        let newest = segments.last().map(|(segment, _)| *segment);
        for (segment, path) in segments {
            // Another process may have removed the file.
            let Ok(metadata) = fs::metadata(&path) else {
                continue;
            };
            files.push(Candidate {
                segment,
                chain: name.clone(),
                path,
                bytes: metadata.len(),
                is_newest: newest == Some(segment),
            });
        }
    }
    files.sort_by_key(|file| file.segment);
    Ok(files)
}

/// Removes a file. First, its last hash is stored in the chain's head, so that the next file can still be verified.
fn remove(directories: &Directories, file: &Candidate) -> io::Result<()> {
    if let Some(last) = last_link(&file.path)? {
        chain::change_head(&directories.heads, &file.chain, |head| {
            let is_later = head
                .dropped
                .as_ref()
                .is_none_or(|dropped| dropped.last.number < last.number);
            if is_later {
                head.dropped = Some(Dropped {
                    day: file.segment.day.to_string(),
                    part: file.segment.part,
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
