//! The files that a program needs to run: itself, what its links lead to, and the interpreter that its first line names.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::lookup;

/// The number of links and interpreters that are followed.
const HOPS: usize = 24;

/// The directories of the system, which every sandbox has.
pub(super) const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
];

/// The files and directories outside of the system that `program` needs. A file that is `changeable` by the server is not followed: it
/// could name any file as its interpreter.
pub(super) fn of(
    program: &Path,
    path: &str,
    home: Option<&Path>,
    changeable: impl Fn(&Path) -> bool,
) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut ahead = vec![program.to_owned()];
    for _ in 0..HOPS {
        let Some(file) = ahead.pop() else { break };
        if changeable(&file) {
            continue;
        }
        let real = file.canonicalize().unwrap_or_else(|_| file.clone());
        found.extend(opened(&file, home));
        found.extend(opened(&real, home));
        match std::fs::read_link(&file) {
            Ok(target) => {
                let target = file.parent().map_or(target.clone(), |at| at.join(&target));
                ahead.push(without_dots(&target));
            }
            Err(_) => ahead.extend(interpreter(&real, path)),
        }
    }
    found
}

/// The path that is opened for a program at `file`: the prefix of its installation, or the file alone where that has much else in it.
fn opened(file: &Path, home: Option<&Path>) -> Option<PathBuf> {
    if SYSTEM.iter().any(|system| file.starts_with(system)) {
        return None;
    }
    let directory = file.parent()?;
    let has_bin = directory.file_name().is_some_and(|name| name == "bin");
    let prefix = directory.parent().filter(|_| has_bin);
    // `~/bin`, `~/.local/bin` and the like belong to many programs.
    let is_shared = |prefix: &Path| {
        prefix.parent().is_none()
            || home.is_some_and(|home| {
                home.starts_with(prefix)
                    || prefix == home.join(".local")
                    || prefix == home.join(".cargo")
            })
    };
    // The links of npm's programs lead into the packages next to them.
    if directory.ends_with("node_modules/.bin") {
        return directory.parent().map(Path::to_owned);
    }
    Some(match prefix {
        Some(prefix) if !is_shared(prefix) => prefix.to_owned(),
        _ => file.to_owned(),
    })
}

/// The program that the first line of a script names.
fn interpreter(file: &Path, path: &str) -> Option<PathBuf> {
    let mut start = [0; 256];
    let mut length = 0;
    let mut source = std::fs::File::open(file).ok()?;
    while length < start.len() {
        match source.read(&mut start[length..]).ok()? {
            0 => break,
            more => length += more,
        }
    }
    let line = start[..length].strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    let program = words.next()?;
    if Path::new(program).file_name()? == "env" {
        let named = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        return lookup::find(named, path);
    }
    Some(PathBuf::from(program))
}

/// `path` without `.` and `..`, as the names say, so that the directory of a link is known.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                plain.pop();
            }
            std::path::Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
