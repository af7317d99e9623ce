//! The files and directories of a sandbox, and the places to which their paths may lead.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use parking_lot::RwLock;

use super::Refusal;
use crate::config::Sandbox;
use crate::files::create_private_directory;

/// The access of a server to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    /// It is in a directory that is open, and not open itself.
    None,
    Read,
    Write,
}

/// The files and directories of a sandbox, by their paths, which are the same inside.
#[derive(Debug)]
pub(super) struct Mounts<'a> {
    /// Its data directory, which is its home.
    pub(super) data: PathBuf,
    pub(super) opened: BTreeMap<PathBuf, Access>,
    project: Option<PathBuf>,
    /// The paths that the server may change, by all names.
    writable: BTreeSet<PathBuf>,
    around: &'a Around,
}

/// The paths that the sandbox of each server has to respect.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// Files and directories of mcpzip that no server may change.
    pub(super) closed: Vec<PathBuf>,
    /// Directories that a server of the configuration may change, or of an earlier one, by all names.
    pub(super) changeable: RwLock<BTreeSet<PathBuf>>,
}

/// The name of mcpzip's own directories in those of the user.
pub(crate) const OWN_NAME: &str = "mcpzip";

/// Directories that a sandbox makes itself.
pub(super) const OWN: &[&str] = &["/proc", "/dev", "/sys"];

impl<'a> Mounts<'a> {
    /// A sandbox with a data directory alone.
    pub(super) fn new(data: &Path, around: &'a Around) -> Self {
        Self {
            data: data.to_owned(),
            opened: BTreeMap::from([(data.to_owned(), Access::Write)]),
            project: None,
            writable: BTreeSet::from([data.to_owned()]),
            around,
        }
    }

    /// Opens the session's project.
    pub(super) fn project(
        &mut self,
        directory: Option<&Path>,
        home: Option<&Path>,
    ) -> Result<(), Refusal> {
        let Some(directory) = directory else {
            let problem = "the session has no directory".to_owned();
            return Err(Refusal::Project(problem));
        };
        let real = project(directory, home)?;
        if self.is_changeable(&real) {
            let problem = "the session's directory is in one that a server may change, which could put a link there";
            return Err(Refusal::Project(problem.to_owned()));
        }
        self.check_closed(&real, directory)?;
        self.opened.insert(real.clone(), Access::Write);
        self.writable.extend([directory.to_owned(), real.clone()]);
        self.project = Some(real);
        Ok(())
    }

    /// Opens what the entry names.
    pub(super) fn named(&mut self, sandbox: &Sandbox) -> Result<(), Refusal> {
        for path in &sandbox.write {
            self.writable.insert(path.clone());
            self.writable.extend(path.canonicalize());
        }
        for (paths, access) in [
            (&sandbox.write, Access::Write),
            (&sandbox.read, Access::Read),
        ] {
            for path in paths {
                self.open(path, access)?;
            }
        }
        self.hide_closed()
    }

    /// Hides the directories of mcpzip in directories that are open, by each name that leads to them: they have its secrets, and those of other
    /// servers. One that the entry names itself stays open.
    ///
    /// A single file cannot be hidden, because the next edit puts another one in its place.
    fn hide_closed(&mut self) -> Result<(), Refusal> {
        for closed in &self.around.closed {
            let real = real_name(closed);
            // A file in a closed directory is hidden with it, or open with it.
            let mut others = self.around.closed.iter();
            if !real.is_dir() && others.any(|outer| is_inside(&real, &real_name(outer))) {
                continue;
            }
            let inside = self.opened.keys().filter_map(|outer| {
                let rest = real.strip_prefix(outer.canonicalize().ok()?).ok()?;
                Some((outer.clone(), rest.to_owned()))
            });
            let inside: Vec<(PathBuf, PathBuf)> = inside.collect();
            if inside.iter().any(|(_, rest)| rest.as_os_str().is_empty()) {
                continue;
            }
            for (outer, rest) in inside {
                let name = outer.join(rest);
                if !self.opens(&name) {
                    continue;
                }
                if !real.exists() && real.ends_with(OWN_NAME) {
                    // It may come while the server runs.
                    create_private_directory(&real)?;
                }
                if !real.is_dir() {
                    return Err(Refusal::Path {
                        path: outer,
                        problem: "has files of mcpzip that cannot be hidden there: name the parts that the server needs",
                    });
                }
                self.opened.insert(name, Access::None);
            }
        }
        Ok(())
    }

    fn open(&mut self, path: &Path, access: Access) -> Result<(), Refusal> {
        let refuse = |problem| {
            Err(Refusal::Path {
                path: path.to_owned(),
                problem,
            })
        };
        // A server could have put a link there when it last ran, and this one would now get what the link leads to.
        if self.is_changeable(path) {
            let is_below = self
                .writable
                .iter()
                .any(|outer| path != outer && path.starts_with(outer));
            return if access == Access::Write && is_below {
                // It is open already.
                Ok(())
            } else {
                refuse(
                    "is in a directory that this or another server may change, which could put a link there",
                )
            };
        }
        let Ok(real) = path.canonicalize() else {
            return refuse("does not exist");
        };
        if OWN.iter().any(|own| real.starts_with(own)) {
            return refuse("belongs to the system, and a sandbox has one of its own");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileTypeExt as _;
            let kind = real.metadata()?.file_type();
            if kind.is_socket() {
                return refuse(
                    "is a socket; a server in a sandbox cannot use sockets of other programs",
                );
            }
            if kind.is_block_device() || kind.is_fifo() {
                return refuse("is neither a file nor a directory");
            }
        }
        if access == Access::Write {
            self.check_closed(&real, path)?;
        }
        // By both names: the entry's arguments have the one, and links inside lead to the other.
        for name in [path.to_owned(), real] {
            let known = self.opened.entry(name).or_insert(access);
            *known = (*known).max(access);
        }
        Ok(())
    }

    /// Whether a server may change where `path` leads: a step of its way is in a directory that this or another server may change.
    pub(super) fn is_changeable(&self, path: &Path) -> bool {
        let mut steps = steps(path).into_iter();
        steps.any(|step| self.is_own(&step) || self.is_of_others(&step))
    }

    /// Whether a server may change where `path` leads that gets nothing by it in this sandbox: a step of its way is in a directory that another
    /// server may change, and not this one.
    pub(super) fn is_foreign(&self, path: &Path) -> bool {
        let mut steps = steps(path).into_iter();
        steps.any(|step| self.is_of_others(&step) && !self.is_own(&step))
    }

    fn is_own(&self, step: &Path) -> bool {
        self.writable.iter().any(|outer| is_inside(step, outer))
    }

    fn is_of_others(&self, step: &Path) -> bool {
        let others = self.around.changeable.read();
        others.iter().any(|outer| is_inside(step, outer))
    }

    /// Refuses to let a server change the files of mcpzip, or a link on the way to them.
    fn check_closed(&self, real: &Path, path: &Path) -> Result<(), Refusal> {
        if has_closed(real, &self.around.closed) {
            return Err(Refusal::Path {
                path: path.to_owned(),
                problem: "has files of mcpzip in it, so that the server could change its own sandbox",
            });
        }
        Ok(())
    }

    /// Opens files of the server's program.
    pub(super) fn runtime(&mut self, path: PathBuf) {
        if !self.opens(&path) && !self.is_changeable(&path) && path.exists() {
            self.opened.insert(path, Access::Read);
        }
    }

    /// Whether `path` is open already. `/tmp` is the sandbox's own, also with all of `/`.
    pub(super) fn opens(&self, path: &Path) -> bool {
        let own = Path::new("/tmp");
        let outer = self.opened.iter().rev().find(|(outer, _)| {
            path.starts_with(outer) && (!path.starts_with(own) || outer.starts_with(own))
        });
        outer.is_some_and(|(_, access)| *access != Access::None)
    }

    /// Opens certificates that are outside of the system's directories.
    pub(super) fn certificates(&mut self, path: PathBuf) {
        let is_system = super::runtime::SYSTEM
            .iter()
            .any(|system| path.starts_with(system));
        if path.is_absolute() && !is_system {
            self.runtime(path);
        }
    }

    /// The working directory: the entry's, the project, or the data directory.
    pub(super) fn working_directory(&self, cwd: Option<&Path>) -> Result<PathBuf, Refusal> {
        let Some(cwd) = cwd else {
            return Ok(self.project.clone().unwrap_or_else(|| self.data.clone()));
        };
        let is_open = |path: &Path| self.opens(path);
        let real = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        match (is_open(cwd), is_open(&real)) {
            (true, _) => Ok(cwd.to_owned()),
            (false, true) => Ok(real),
            (false, false) => Err(Refusal::Directory(cwd.to_owned())),
        }
    }
}

/// Whether one of `closed` or a link on the way to it is in `real`, or `real` in one of them.
pub(super) fn has_closed(real: &Path, closed: &[PathBuf]) -> bool {
    closed.iter().any(|closed| {
        let is_way = steps(closed).iter().any(|step| step.starts_with(real));
        let closed = closed.canonicalize().unwrap_or_else(|_| closed.clone());
        is_way || closed.starts_with(real) || real.starts_with(&closed)
    })
}

/// The name of a path without links; its last part may be missing.
fn real_name(path: &Path) -> PathBuf {
    let parent = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let real = path.canonicalize().ok().or_else(parent);
    real.unwrap_or_else(|| path.to_owned())
}

/// Whether `path` is in the directory `outer`, and not the directory itself.
fn is_inside(path: &Path, outer: &Path) -> bool {
    path != outer && path.starts_with(outer)
}

/// Directories of the home directory that have keys, or what programs know of a user.
const KEYS: &[&str] = &[
    ".aws",
    ".azure",
    ".cargo",
    ".config/1Password",
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/containers",
    ".config/gcloud",
    ".config/gh",
    ".config/git",
    ".config/github-copilot",
    ".config/google-chrome",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".docker",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".password-store",
    ".ssh",
    ".terraform.d",
    ".thunderbird",
    "Library/Application Support",
    "Library/Keychains",
];

/// Directories of the system, with all in them.
const OF_SYSTEM: &[&str] = &[
    "/Library",
    "/System",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/private/etc",
    "/proc",
    "/sbin",
    "/sys",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local/bin",
    "/usr/local/etc",
    "/usr/local/lib",
    "/usr/local/libexec",
    "/usr/local/sbin",
    "/usr/local/share",
    "/usr/sbin",
    "/usr/share",
    "/var/cache",
    "/var/lib/dpkg",
    "/var/log",
    "/var/spool",
];

/// Directories that belong to many programs or users. One in them may be a project.
const OF_MANY: &[&str] = &[
    "/",
    "/Applications",
    "/Users",
    "/Volumes",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/private",
    "/private/tmp",
    "/private/var",
    "/root",
    "/run",
    "/run/user",
    "/srv",
    "/tmp",
    "/usr",
    "/usr/local",
    "/usr/share",
    "/var",
    "/var/lib",
    "/var/tmp",
];

/// Whether a directory is one of the system, in which no project is.
pub(super) fn is_of_system(directory: &Path) -> bool {
    OF_SYSTEM.iter().any(|system| directory.starts_with(system))
        || OF_MANY.iter().any(|many| directory == Path::new(many))
}

/// The directory of a project, if it is one: it is not that of the system or of the user's keys, and it was not replaced by a link since the
/// session began, which had its directory from the system, without links.
pub(super) fn project(directory: &Path, home: Option<&Path>) -> Result<PathBuf, Refusal> {
    let real = directory.canonicalize()?;
    let refuse = |problem: &str| {
        let directory = directory.display();
        let said = format!("the session's directory is `{directory}`, which {problem}");
        Err(Refusal::Project(said))
    };
    if real != directory {
        return refuse("leads through a link now");
    }
    if is_of_system(&real) {
        return refuse("belongs to the system: start the client in a project");
    }
    let Some(home) = home.and_then(|home| home.canonicalize().ok()) else {
        return refuse(
            "may have the home directory in it, as that is not known: set HOME where the client is started",
        );
    };
    if home.starts_with(&real) {
        return refuse("has the home directory in it: start the client in a project");
    }
    let Ok(below) = real.strip_prefix(&home) else {
        return Ok(real);
    };
    let is_dot = below.as_os_str().as_encoded_bytes().starts_with(b".");
    let mut keys = KEYS.iter().map(Path::new);
    if is_dot && below.components().count() == 1
        || keys.any(|keys| below.starts_with(keys) || keys.starts_with(below))
    {
        return refuse("has settings or keys of your programs: start the client in a project");
    }
    Ok(real)
}

/// Every place that is looked at on the way to `path`: each directory and link, with the targets of links.
pub(super) fn steps(path: &Path) -> Vec<PathBuf> {
    /// The number of links that the system follows.
    const LINKS: usize = 40;
    let mut steps = Vec::new();
    let mut links = 0;
    let mut at = PathBuf::new();
    let mut ahead: Vec<PathBuf> = parts(path);
    while let Some(part) = ahead.pop() {
        if part == Path::new("..") {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        steps.push(next.clone());
        match std::fs::read_link(&next) {
            Ok(target) if links < LINKS => {
                links += 1;
                // An absolute target replaces the whole way so far.
                ahead.extend(parts(&target));
            }
            _ => at = next,
        }
    }
    steps
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().rev();
    let parts = parts.filter(|part| *part != Component::CurDir);
    parts.map(|part| PathBuf::from(part.as_os_str())).collect()
}
