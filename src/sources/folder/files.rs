//! The files of a folder. Links are followed to folders with a skill, and to nothing inside one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use crate::files::read_regular;

/// The size limit of one file, in bytes.
pub(super) const LARGEST: u64 = 4 * 1024 * 1024;

/// The levels of folders in which skills are searched.
const DEEPEST: usize = 5;

/// The maximum number of files of one skill, and of skills of one folder.
const MOST_FILES: usize = 500;
const MOST_SKILLS: usize = 2_000;

/// The file that makes a folder a skill.
pub(super) const SKILL: &str = "SKILL.md";

/// Names of folders that hold no skills and no part of one.
fn is_skipped(name: &str) -> bool {
    name.starts_with('.') || matches!(name, "node_modules" | "__pycache__")
}

/// The entries of a folder, sorted by name; those that cannot be read are none.
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
    if !is_new || depth > DEEPEST || found.len() >= MOST_SKILLS {
        return;
    }
    if folder.join(SKILL).is_file() {
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
pub(super) fn within(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    collect(folder, "", 0, &mut all);
    all
}

fn collect(folder: &Path, prefix: &str, depth: usize, all: &mut Vec<String>) {
    for (name, path) in entries(folder) {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if all.len() >= MOST_FILES {
            return;
        }
        if metadata.is_file() {
            all.push(format!("{prefix}{name}"));
        } else if metadata.is_dir() && depth < DEEPEST {
            collect(&path, &format!("{prefix}{name}/"), depth + 1, all);
        }
    }
}

/// The content of a file of [`within`].
pub(super) fn read(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    read_regular(&folder.join(name), LARGEST)
        .map_err(|error| format!("`{name}` cannot be read: {error}"))
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
