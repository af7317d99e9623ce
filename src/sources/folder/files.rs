//! The files of a folder. A link to a folder with a skill is followed, a link inside such a folder is not.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

/// The size limit of one file, in bytes.
pub(super) const LARGEST: u64 = 4 * 1024 * 1024;

/// The levels of folders in which skills are searched: collections have them in packages, by language.
const SEARCHED: usize = 8;

/// The levels of folders inside a skill.
const DEEPEST: usize = 5;

/// The maximum number of files of one skill, and of skills of one folder.
const MOST_FILES: usize = 500;
pub(super) const MOST_SKILLS: usize = 2_000;

/// The file that makes a folder a skill.
pub(super) const SKILL: &str = "SKILL.md";

/// Names of folders that hold no skills and no part of one.
fn is_skipped(name: &str) -> bool {
    name.starts_with('.') || matches!(name, "node_modules" | "__pycache__")
}

/// The entries of a folder, sorted by name. An unreadable folder has none.
fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        (!is_skipped(&name)).then(|| (name, entry.path()))
    });
    let mut all: Vec<_> = named.collect();
    all.sort();
    all
}

/// The folders with a skill, in the order of their paths.
pub(super) fn skills(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    search(folder, 0, &mut seen, &mut found);
    found
}

fn search(folder: &Path, depth: usize, seen: &mut BTreeSet<PathBuf>, found: &mut Vec<PathBuf>) {
    let is_new = fs::canonicalize(folder).is_ok_and(|real| seen.insert(real));
    if !is_new || depth > SEARCHED || found.len() >= MOST_SKILLS {
        return;
    }
    // A link is none: what it leads to would not be a file of the skill.
    let own = fs::symlink_metadata(folder.join(SKILL));
    if own.is_ok_and(|file| file.is_file()) {
        found.push(folder.to_owned());
        return;
    }
    for (_, path) in entries(folder) {
        if path.is_dir() {
            search(&path, depth + 1, seen, found);
        }
    }
}

/// The regular files in `folder`, by their paths in it with `/` between the segments.
///
/// # Errors
/// When there are too many: a part of them would not be the whole skill.
pub(super) fn within(folder: &Path) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    collect(folder, "", 0, &mut all);
    limited(all)
}

/// The regular files in `folder` itself.
///
/// # Errors
/// When there are too many.
pub(super) fn beside(folder: &Path) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    collect(folder, "", DEEPEST, &mut all);
    limited(all)
}

fn limited(all: Vec<String>) -> Result<Vec<String>, String> {
    match all.len() > MOST_FILES {
        true => Err(format!("it has more than {MOST_FILES} files")),
        false => Ok(all),
    }
}

fn collect(folder: &Path, prefix: &str, depth: usize, all: &mut Vec<String>) {
    for (name, path) in entries(folder) {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if all.len() > MOST_FILES {
            return;
        }
        if metadata.is_file() {
            all.push(format!("{prefix}{name}"));
        } else if metadata.is_dir() && depth < DEEPEST {
            collect(&path, &format!("{prefix}{name}/"), depth + 1, all);
        }
    }
}

/// The content of a file of [`within`]. No link is followed, also if a folder on the way became one since it was listed.
pub(super) fn read(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    let read = || {
        let file = open(folder, name)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > LARGEST {
            let reason = format!("it is not a regular file of at most {LARGEST} bytes");
            return Err(io::Error::other(reason));
        }
        let mut content = Vec::new();
        file.take(LARGEST).read_to_end(&mut content)?;
        Ok(content)
    };
    read().map_err(|error: io::Error| format!("`{name}` cannot be read: {error}"))
}

#[cfg(unix)]
fn open(folder: &Path, name: &str) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(folder, flags | OFlags::DIRECTORY, Mode::empty())?;
    let mut segments = name.split('/').peekable();
    while let Some(segment) = segments.next() {
        let kind = match segments.peek() {
            Some(_) => OFlags::DIRECTORY,
            // Opening a pipe does not wait for a writer.
            None => OFlags::NONBLOCK,
        };
        at = rustix::fs::openat(&at, segment, flags | OFlags::NOFOLLOW | kind, Mode::empty())?;
    }
    Ok(File::from(at))
}

#[cfg(not(unix))]
fn open(folder: &Path, name: &str) -> io::Result<File> {
    crate::files::open_regular(&folder.join(name))
}

/// A text file. Bytes that are no UTF-8 are replaced.
pub(super) fn read_text(folder: &Path, name: &str) -> Result<String, String> {
    read(folder, name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Something that changes whenever one of the files changes: for each its path, time of change and size.
pub(super) fn state(
    files: impl Iterator<Item = PathBuf>,
) -> Vec<(PathBuf, Option<SystemTime>, u64)> {
    let stated = files.map(|path| {
        let metadata = fs::metadata(&path).ok();
        let changed = metadata
            .as_ref()
            .and_then(|metadata| metadata.modified().ok());
        let size = metadata.map_or(0, |metadata| metadata.len());
        (path, changed, size)
    });
    stated.collect()
}

/// A hash of files with their names.
pub(super) struct Hash(Sha256);

impl Hash {
    pub(super) fn new() -> Self {
        Self(Sha256::new())
    }

    pub(super) fn add(&mut self, name: &str, content: &[u8]) {
        for part in [name.as_bytes(), content] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
    }

    pub(super) fn finish(self) -> String {
        data_encoding::HEXLOWER.encode(&self.0.finalize())
    }
}
