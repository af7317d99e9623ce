//! Finds a program in the directories of `PATH`, on systems that have no endings of programs.

use std::path::{Path, PathBuf};

use crate::files::is_program;

/// The file of `command`, absolute: of those in `path`, the first that no server may change.
pub(super) fn find(
    command: &str,
    path: &str,
    changeable: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    if command.contains('/') {
        let path = PathBuf::from(command);
        return (path.is_absolute() && is_program(&path)).then_some(path);
    }
    chosen(command, path, changeable)
}

/// The directories of the system's programs.
const SYSTEM: &str = "/usr/bin:/usr/local/bin:/bin:/run/current-system/sw/bin";

/// A tool that runs outside of every sandbox: that of the system, otherwise the first of `path` that no server may change.
pub(super) fn tool(name: &str, path: &str, changeable: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    chosen(name, SYSTEM, |_| false).or_else(|| chosen(name, path, changeable))
}

/// A tool of which people have several: the first of `path` that no server may change, otherwise that of the system.
pub(super) fn chosen_tool(
    name: &str,
    path: &str,
    changeable: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    chosen(name, path, changeable).or_else(|| chosen(name, SYSTEM, |_| false))
}

fn chosen(name: &str, path: &str, changeable: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| is_program(file) && !changeable(file))
}
