//! A chain on disk: its directory, its files by day, its lines and its head.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::day::Day;
use crate::files;

/// The hash of the line before the first one.
pub(super) const BEGIN: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The extension of a file.
const ENDING: &str = ".jsonl";

/// A line of a chain: its number, counted from 1, and its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) number: u64,
    /// SHA-256 of the line without its line break, in hexadecimal.
    pub(crate) hash: String,
}

/// The head of a chain: one file per chain.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Head {
    /// The last synced line.
    pub(super) last: Option<Link>,
    /// The last line of the last removed segment.
    #[serde(default)]
    pub(super) dropped: Option<Dropped>,
}

/// The last removed segment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Dropped {
    pub(super) day: String,
    /// Its number within the day.
    #[serde(default)]
    pub(super) part: u32,
    pub(super) last: Link,
}

/// A file of a chain: a day's lines, or a part of them where they are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Segment {
    pub(super) day: Day,
    /// Its number within the day.
    pub(super) part: u32,
}

/// The members that the chain adds to each line.
#[derive(Debug, Deserialize)]
pub(super) struct Mark {
    #[serde(rename = "n")]
    pub(super) number: u64,
    pub(super) prev: String,
}

impl Link {
    /// The link before the first line.
    #[must_use]
    pub(super) fn begin() -> Self {
        Self {
            number: 0,
            hash: BEGIN.to_owned(),
        }
    }

    /// The line that follows this one with the members `json`, closed and with its line break.
    #[must_use]
    pub(super) fn follow(&self, mut json: String) -> String {
        use std::fmt::Write as _;
        let number = self.number + 1;
        // Writing to a `String` cannot fail.
        let _ = write!(json, ",\"n\":{number},\"prev\":\"");
        json.push_str(&self.hash);
        json.push_str("\"}\n");
        json
    }

    /// The place of the line that follows this one.
    #[must_use]
    pub(super) fn next(&self, line: &str) -> Self {
        Self {
            number: self.number + 1,
            hash: hash(line.strip_suffix('\n').unwrap_or(line).as_bytes()),
        }
    }
}

/// The hash of a line without its line break.
#[must_use]
pub(super) fn hash(line: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(line))
}

/// The chains in `directory`, sorted by name. Empty if the directory does not exist.
///
/// # Errors
/// When the directory cannot be read.
pub(super) fn chains(directory: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut chains = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && entry.file_type()?.is_dir()
        {
            chains.push((name, entry.path()));
        }
    }
    chains.sort_unstable();
    Ok(chains)
}

impl Segment {
    /// The first one of a day.
    #[must_use]
    pub(super) const fn first(day: Day) -> Self {
        Self { day, part: 0 }
    }

    /// Reads the name of a file: `2026-11-21.jsonl`, `2026-11-21.1.jsonl`.
    fn parse(name: &str) -> Option<Self> {
        let name = name.strip_suffix(ENDING)?;
        let (day, part) = match name.split_once('.') {
            Some((day, part)) => (day, part.parse().ok().filter(|part| *part > 0)?),
            None => (name, 0),
        };
        let day = Day::parse(day)?;
        Some(Self { day, part })
    }

    /// Its file in a chain.
    #[must_use]
    pub(super) fn file(self, chain: &Path) -> PathBuf {
        let Self { day, part } = self;
        chain.join(match part {
            0 => format!("{day}{ENDING}"),
            part => format!("{day}.{part}{ENDING}"),
        })
    }
}

/// The files of a chain, oldest first.
///
/// # Errors
/// When the directory cannot be read.
pub(super) fn segments(chain: &Path) -> io::Result<Vec<(Segment, PathBuf)>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(chain)? {
        let entry = entry?;
        let segment = entry.file_name().to_str().and_then(Segment::parse);
        segments.extend(segment.map(|segment| (segment, entry.path())));
    }
    segments.sort_unstable();
    Ok(segments)
}

/// The end of a file.
#[derive(Debug)]
pub(super) struct End {
    /// The last complete line. `None` if there is none, or it is not a line of an audit log.
    pub(super) last: Option<Link>,
    /// Whether the last complete line cannot be parsed.
    pub(super) is_damaged: bool,
    /// Bytes of complete lines.
    pub(super) whole: u64,
    /// Bytes of an incomplete line after them.
    pub(super) unfinished: u64,
}

/// An error about a file, with its path.
pub(super) fn of_file(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

/// Reads the end of a file, backwards to the start of its last complete line.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn end_of(path: &Path) -> io::Result<End> {
    let mut file = files::open_regular(path)?;
    let length = file.metadata()?.len();
    let mut window: u64 = 64 * 1024;
    loop {
        let start = length.saturating_sub(window);
        file.seek(SeekFrom::Start(start))?;
        let mut end = Vec::new();
        file.by_ref().take(length - start).read_to_end(&mut end)?;
        let breaks = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte == b'\n');
        let whole = breaks(&end).map_or(0, |at| at + 1);
        let before = whole.checked_sub(1).and_then(|at| breaks(&end[..at]));
        if before.is_none() && start > 0 {
            window *= 4;
            continue;
        }
        let line = end[before.map_or(0, |at| at + 1)..whole].trim_ascii_end();
        let mark = serde_json::from_slice::<Mark>(line).ok();
        return Ok(End {
            is_damaged: whole > 0 && mark.is_none(),
            last: mark.map(|mark| Link {
                number: mark.number,
                hash: hash(line),
            }),
            whole: start + whole as u64,
            unfinished: (end.len() - whole) as u64,
        });
    }
}

/// The head of a chain. A new one if there is none yet.
///
/// # Errors
/// When it cannot be read, or is damaged.
pub(super) fn head(heads: &Path, chain: &str) -> io::Result<Head> {
    /// Far above the size of a head, in bytes.
    const LARGEST: u64 = 64 * 1024;
    match files::read_regular(&heads.join(chain), LARGEST) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Head::default()),
        Err(error) => Err(error),
    }
}

/// Changes the head of a chain under a lock that all processes share.
///
/// # Errors
/// When it cannot be read or written.
pub(super) fn change_head(
    heads: &Path,
    chain: &str,
    change: impl FnOnce(&mut Head),
) -> io::Result<()> {
    files::create_private_directory(heads)?;
    let lock = files::open_lock(&heads.join(".lock"))?;
    lock.lock()?;
    let mut head = head(heads, chain)?;
    change(&mut head);
    files::replace(&heads.join(chain), &[&serde_json::to_vec(&head)?])
}
