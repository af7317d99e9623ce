//! Checks of the owners and modes of mcpzip's files.

#[cfg(unix)]
use std::path::{Path, PathBuf};

use super::super::setup::Machine;
use super::Examination;
#[cfg(unix)]
use crate::config::secrets_file;

/// How deep the directories are searched. Below that is only the search index, which holds no secrets.
#[cfg(unix)]
const DEPTH: usize = 3;

#[cfg(unix)]
pub(super) fn examine(machine: &Machine, examination: &mut Examination) {
    let mut paths: Vec<PathBuf> = Vec::new();
    paths.extend(std::fs::canonicalize(&machine.paths.config_file));
    paths.extend(std::fs::canonicalize(secrets_file(
        &machine.paths.config_file,
    )));
    // No part of any path is a link, so that a repair follows none. The cache itself may be one of the user's.
    if let Ok(cache) = std::fs::canonicalize(&machine.paths.cache_dir) {
        collect(&cache.join(crate::catalog::DIRECTORY), 1, &mut paths);
        paths.push(cache);
    }
    collect(&placed(&machine.paths.state_dir), 0, &mut paths);
    look(&paths, examination);
}

/// On other systems the user's own directories are private.
#[cfg(not(unix))]
pub(super) fn examine(_: &Machine, _: &mut Examination) {}

/// The path without links, except that it may be one.
#[cfg(unix)]
pub(super) fn placed(path: &Path) -> PathBuf {
    let real = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    real().unwrap_or_else(|| path.to_owned())
}

#[cfg(unix)]
fn collect(path: &Path, depth: usize, paths: &mut Vec<PathBuf>) {
    // A link is not followed, because its target may belong to another user.
    let Ok(metadata) = path.symlink_metadata() else {
        return;
    };
    if metadata.is_symlink() || depth > DEPTH {
        return;
    }
    paths.push(path.to_owned());
    // Files in the data directory of a server are that server's own, and change while it runs. The directory of all of them keeps
    // others out.
    let above = path.parent().and_then(Path::file_name);
    let is_data = depth == 2 && above.is_some_and(|name| name == crate::sandbox::DIRECTORY);
    if metadata.is_dir() && !is_data {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            collect(&entry.path(), depth + 1, paths);
        }
    }
}

#[cfg(unix)]
fn look(paths: &[PathBuf], examination: &mut Examination) {
    use std::os::unix::fs::MetadataExt as _;

    use super::finding::{Finding, Fix, some};
    use super::kinds;

    let own = rustix::process::getuid().as_raw();
    let (mut open, mut found) = (Vec::new(), Vec::new());
    for path in paths {
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        if metadata.is_symlink() {
            continue;
        }
        let subject = path.display().to_string();
        if metadata.uid() != own {
            let what = format!("`{subject}` belongs to the user {}", metadata.uid());
            examination.add(Finding::new(&kinds::FILE_OWNER, subject, what));
            continue;
        }
        // A file in a private directory is out of reach; only the directory is reported.
        let others = metadata.mode() & 0o077;
        let is_closed = |above: &Path| {
            above
                .symlink_metadata()
                .is_ok_and(|above| above.mode() & 0o077 == 0)
        };
        if others == 0 || !metadata.is_dir() && path.parent().is_some_and(is_closed) {
            continue;
        }
        let mode = metadata.mode() & 0o777;
        found.push(format!("`{subject}` has the mode {mode:o}"));
        open.push(path.clone());
    }
    // They have one reason and one remedy, so they are one finding.
    let subject = match &open[..] {
        [] => return,
        [path] => path.display().to_string(),
        paths => format!("{} files and directories", paths.len()),
    };
    let finding = Finding::new(&kinds::FILE_OPEN, subject, some(&found));
    examination.add(finding.with_fix(Fix::Close(open)));
}
