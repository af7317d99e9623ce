//! The cache of programs' help, valid until a program's file changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::{CommandLine, Stdio};
use crate::files;

/// The size limit of a file, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The state of a program's file, and how it is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Program {
    file: PathBuf,
    size: u64,
    /// Its time of change in nanoseconds since 1970.
    changed: u128,
    arguments: Vec<String>,
    help: Option<String>,
    /// The way in which its help was asked for.
    way: u8,
}

/// The way in which help is asked for now. Texts that were got another way are not used.
const WAY: u8 = 2;

#[derive(Serialize, Deserialize)]
struct Kept {
    program: Program,
    /// Subcommand and text.
    pages: Vec<(Vec<String>, String)>,
}

impl Program {
    /// The current state. Of a file that cannot be examined, size and time are 0.
    pub(super) fn of(file: &Path, program: &Stdio, command_line: &CommandLine) -> Self {
        let metadata = std::fs::metadata(file).ok();
        let changed = metadata
            .as_ref()
            .and_then(|metadata| metadata.modified().ok());
        let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            file: file.to_owned(),
            size: metadata.map_or(0, |metadata| metadata.len()),
            changed: changed.map_or(0, |time| time.as_nanos()),
            arguments: program.args.clone(),
            help: command_line.help.clone(),
            way: WAY,
        }
    }

    fn path(&self, directory: &Path) -> PathBuf {
        let mut hash = Sha256::new();
        hash.update(self.file.to_string_lossy().as_bytes());
        for argument in self.arguments.iter().chain(&self.help) {
            hash.update([0]);
            hash.update(argument);
        }
        directory.join(format!("{}.json", HEXLOWER.encode(&hash.finalize()[..8])))
    }
}

/// The kept pages of a program; none if its file has changed, or they cannot be read.
pub(super) fn load(directory: &Path, program: &Program) -> BTreeMap<Vec<String>, String> {
    let bytes = files::read_regular(&program.path(directory), LARGEST).unwrap_or_default();
    match serde_json::from_slice::<Kept>(&bytes) {
        Ok(kept) if kept.program == *program => kept.pages.into_iter().collect(),
        _ => BTreeMap::new(),
    }
}

/// Keeps pages. If that fails, the next start reads the help again.
pub(super) fn store(directory: &Path, program: &Program, pages: &BTreeMap<Vec<String>, String>) {
    let kept = Kept {
        program: program.clone(),
        pages: pages
            .iter()
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect(),
    };
    let stored = files::create_private_directory(directory)
        .and_then(|()| Ok(serde_json::to_vec(&kept)?))
        .and_then(|json| files::replace(&program.path(directory), &[&json]));
    if let Err(error) = stored {
        tracing::warn!(%error, "the help of a program was not kept");
    }
}
