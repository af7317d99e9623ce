//! Finds a program in the directories of `PATH`, on systems that have no endings of programs.

use std::path::{Path, PathBuf};

/// The file of `command`, absolute.
pub(super) fn find(command: &str, path: &str) -> Option<PathBuf> {
    if command.contains('/') {
        let path = PathBuf::from(command);
        return (path.is_absolute() && is_program(&path)).then_some(path);
    }
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(command))
        .find(|file| is_program(file))
}

/// A tool of the system, which may be missing in the `PATH` of a session.
pub(super) fn tool(name: &str, path: &str) -> Option<PathBuf> {
    find(name, path).or_else(|| {
        find(
            name,
            "/usr/bin:/usr/local/bin:/bin:/run/current-system/sw/bin",
        )
    })
}

fn is_program(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else {
        return false;
    };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    metadata.is_file() && may_run
}
