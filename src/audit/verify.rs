//! Verifies the chains: each line must follow the one before it, and no line before the head may be missing.

use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Directories;
use super::chain::{self, Head, Link, Mark, Segment};
use crate::day::Day;
use crate::files;

/// The result of verifying one chain.
#[derive(Debug, Serialize)]
pub(crate) struct ChainReport {
    /// The chain's name.
    pub(crate) chain: String,
    /// The number of readable lines, those with a fault included.
    pub(crate) lines: u64,
    /// The last of these lines.
    pub(crate) last: Option<Link>,
    /// The faults. Empty if the chain is intact.
    pub(crate) faults: Vec<String>,
}

/// Verifies every chain, in order of their names.
///
/// # Errors
/// When the directory of chains cannot be read. A chain that cannot be read is reported as a fault.
pub(crate) fn verify(directories: &Directories) -> io::Result<Vec<ChainReport>> {
    let mut reports: Vec<ChainReport> = chain::chains(&directories.chains)?
        .into_iter()
        .map(|(name, directory)| check(name, &directory, &directories.heads))
        .collect();
    // A head without a chain means that the chain was removed.
    for (name, _) in heads(&directories.heads)? {
        if reports.iter().all(|report| report.chain != name) {
            reports.push(check(
                name.clone(),
                &directories.chains.join(&name),
                &directories.heads,
            ));
        }
    }
    Ok(reports)
}

fn heads(directory: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        names.extend(
            entry
                .file_name()
                .into_string()
                .ok()
                .filter(|name| !name.starts_with('.'))
                .map(|name| (name, entry.path())),
        );
    }
    names.sort_unstable();
    Ok(names)
}

fn check(chain: String, directory: &Path, heads: &Path) -> ChainReport {
    let mut faults = Vec::new();
    let head = chain::head(heads, &chain).unwrap_or_else(|error| {
        faults.push(format!("its head cannot be read: {error}"));
        Head::default()
    });
    let mut walk = Walk {
        last: None,
        lines: 0,
        faults,
    };
    match chain::segments(directory) {
        Ok(segments) => {
            let first = segments.first().map(|(segment, _)| *segment);
            walk.last = expected_before(&head, first);
            for (_, path) in &segments {
                if let Err(error) = walk.file(path, head.last.as_ref()) {
                    walk.faults
                        .push(format!("`{}` cannot be read: {error}", path.display()));
                }
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => walk
            .faults
            .push(format!("its files cannot be read: {error}")),
    }
    let reached = walk.last.as_ref().map_or(0, |last| last.number);
    if let Some(last) = head.last.filter(|last| last.number > reached) {
        let missing = last.number - reached;
        walk.faults
            .push(format!("{missing} lines are missing at its end"));
    }
    ChainReport {
        chain,
        lines: walk.lines,
        last: walk.last.filter(|_| walk.lines > 0),
        faults: walk.faults,
    }
}

/// The line that the first remaining one must follow. `None` if it is not known.
fn expected_before(head: &Head, first: Option<Segment>) -> Option<Link> {
    match &head.dropped {
        None => Some(Link::begin()),
        Some(dropped) => {
            let part = dropped.part;
            let removed = Day::parse(&dropped.day).map(|day| Segment { day, part });
            // If a crash interrupted the removal, the removed file still exists.
            let is_after = first.is_none_or(|first| removed.is_none_or(|removed| first > removed));
            is_after.then(|| dropped.last.clone())
        }
    }
}

/// The state of a walk along a chain.
struct Walk {
    last: Option<Link>,
    lines: u64,
    faults: Vec<String>,
}

impl Walk {
    fn file(&mut self, path: &Path, head: Option<&Link>) -> io::Result<()> {
        let name = path.display();
        let mut reader = BufReader::new(files::open_regular(path)?);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if line.pop() != Some(b'\n') {
                self.faults
                    .push(format!("`{name}`, line {number}: the line is not finished"));
                break;
            }
            self.line(
                &line,
                |fault| format!("`{name}`, line {number}: {fault}"),
                head,
            );
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], said: impl Fn(&str) -> String, head: Option<&Link>) {
        let Ok(mark) = serde_json::from_slice::<Mark>(line) else {
            self.faults.push(said("it is not a line of an audit log"));
            return;
        };
        let link = Link {
            number: mark.number,
            hash: chain::hash(line),
        };
        if let Some(last) = &self.last {
            if mark.number != last.number + 1 {
                let fault = format!("line {} follows line {}", mark.number, last.number);
                self.faults.push(said(&fault));
            } else if mark.prev != last.hash {
                self.faults.push(said("the line before it was changed"));
            }
        }
        if head.is_some_and(|head| head.number == link.number && head.hash != link.hash) {
            self.faults
                .push(said("it is not the line that the head names"));
        }
        self.lines += 1;
        self.last = Some(link);
    }
}
