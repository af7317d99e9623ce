//! The files that a program needs to run: its own file, the targets of its links, and the interpreter in its first line.

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

/// The surroundings in which a program is started.
pub(super) struct Needs<'a> {
    /// The `PATH` that it gets.
    pub(super) path: &'a str,
    /// The home directory, by all names.
    pub(super) homes: Vec<PathBuf>,
    /// The directory of its package, if that was fetched.
    pub(super) package: Option<&'a Path>,
}

impl Needs<'_> {
    /// The files and directories outside of the system that `program` needs. A file that is `changeable` by a server is not followed: it
    /// could name any file as its interpreter. Nor is one of a fetched package that names a file outside of it.
    pub(super) fn of(
        &self,
        program: &Path,
        changeable: impl Fn(&Path) -> bool,
    ) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let mut ahead = vec![program.to_owned()];
        // The first line of a script cannot name a long path, so it may name a shell.
        let python = self.package.map(|package| package.join("venv/bin/python"));
        ahead.extend(python.filter(|python| python.exists()));
        for _ in 0..HOPS {
            let Some(file) = ahead.pop() else { break };
            if changeable(&file) {
                continue;
            }
            let real = file.canonicalize().unwrap_or_else(|_| file.clone());
            found.extend(self.opened(&file));
            found.extend(self.opened(&real));
            match std::fs::read_link(&file) {
                Ok(target) => {
                    let target = file.parent().map_or(target.clone(), |at| at.join(&target));
                    ahead.push(without_dots(&target));
                }
                Err(_) => ahead.extend(self.interpreter(&real, &changeable)),
            }
        }
        found
    }

    /// The path that is opened for a program at `file`: the prefix of its installation, or the file alone.
    fn opened(&self, file: &Path) -> Option<PathBuf> {
        if SYSTEM.iter().any(|system| file.starts_with(system)) {
            return None;
        }
        let directory = file.parent()?;
        // The links of npm's programs lead into the packages next to them.
        if directory.ends_with("node_modules/.bin") {
            return directory.parent().map(Path::to_owned);
        }
        let has_bin = directory.file_name().is_some_and(|name| name == "bin");
        let prefix = directory.parent().filter(|_| has_bin);
        let prefix = prefix.filter(|prefix| !self.is_shared(prefix) && is_installation(prefix));
        Some(prefix.unwrap_or(file).to_owned())
    }

    /// Whether a directory belongs to many programs: one with the home directory in it, `~/.local` and the like.
    fn is_shared(&self, prefix: &Path) -> bool {
        let shared = [".local", ".cargo", ".config"];
        prefix.parent().is_none()
            || self.homes.iter().any(|home| {
                home.starts_with(prefix) || shared.iter().any(|name| prefix == home.join(name))
            })
    }

    /// The program that the first line of a script names.
    fn interpreter(&self, file: &Path, changeable: impl Fn(&Path) -> bool) -> Option<PathBuf> {
        let (program, named) = first_line(file)?;
        if program.file_name()? == "env" {
            // A file that it names by its path would be opened.
            return named
                .filter(|named| !named.contains('/'))
                .and_then(|named| lookup::find(&named, self.path, changeable));
        }
        let is_own = |path: &Path| {
            self.package
                .is_some_and(|package| path.starts_with(package))
        };
        let package = self.package.and_then(|package| package.canonicalize().ok());
        let is_fetched = package.is_some_and(|package| file.starts_with(package));
        let program = without_dots(&program);
        (!is_fetched || is_own(&program)).then_some(program)
    }
}

/// Whether a directory has an installation: Python or an environment of it, Node.js, Ruby, Java, Homebrew, or a package in `/opt`.
fn is_installation(prefix: &Path) -> bool {
    let libraries = std::fs::read_dir(prefix.join("lib"));
    let mut libraries = libraries.into_iter().flatten().flatten();
    prefix.join("pyvenv.cfg").exists()
        || ["conda-meta", "Cellar"]
            .iter()
            .any(|name| prefix.join(name).is_dir())
        || prefix.parent() == Some(Path::new("/opt"))
        || libraries.any(|library| {
            let name = library.file_name();
            let name = name.to_string_lossy();
            // The library of Java is the file `modules`.
            ["node_modules", "ruby", "modules"].contains(&&*name) || name.starts_with("python")
        })
}

/// The program that the first line of a script names, and the first of its arguments that is a program's name if it is `env`.
fn first_line(file: &Path) -> Option<(PathBuf, Option<String>)> {
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
    let program = PathBuf::from(words.next()?);
    let named = words.find(|word| !word.starts_with('-') && !word.contains('='));
    Some((program, named.map(str::to_owned)))
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
