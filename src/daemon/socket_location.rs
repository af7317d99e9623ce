//! The address of a user's daemon. The name of its socket is a hash of everything that must match, so that different
//! builds or configurations never meet.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use sha2::{Digest as _, Sha256};

use super::message::PROTOCOL;
use crate::config::{Environment, Paths, env};

/// Maximum length of a socket's path, in bytes.
const LONGEST: usize = 107;

/// The reason why there is no location for the socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The socket's name needs the confinement.
    #[error("the confinement of this process cannot be read: {0}")]
    Confinement(#[source] io::Error),
    /// Each directory with its fault.
    #[error("no directory for the socket: {}", listed(.0))]
    NoDirectory(Vec<(PathBuf, Unusable)>),
}

/// The reason why a directory cannot have the socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is not writable")]
    ReadOnly(#[source] rustix::io::Errno),
    #[error("it is not a directory")]
    NotDirectory,
    #[error("it belongs to another user")]
    AnotherUser,
    /// The mode lets other users in.
    #[error("its mode is {0:o} and must be 700")]
    Mode(u32),
}

fn listed(refusals: &[(PathBuf, Unusable)]) -> String {
    let refusals = refusals.iter();
    let texts: Vec<String> = refusals
        .map(|(directory, reason)| format!("`{}`: {reason}", directory.display()))
        .collect();
    texts.join("; ")
}

/// The directory of a user's sockets, and the name of the socket for these paths.
#[derive(Debug, Clone)]
pub(super) struct SocketLocation {
    pub(super) directory: PathBuf,
    name: String,
}

impl SocketLocation {
    /// Finds the first usable directory.
    ///
    /// # Errors
    /// When no directory is usable.
    pub(super) fn find(paths: &Paths, environment: &Environment) -> Result<Self, Error> {
        let name = name(paths).map_err(Error::Confinement)?;
        let mut refusals = Vec::new();
        for directory in directories(paths, environment) {
            match prepare(&directory) {
                Ok(()) => return Ok(Self { directory, name }),
                Err(reason) => refusals.push((directory, reason)),
            }
        }
        Err(Error::NoDirectory(refusals))
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.directory.join(format!("{}.sock", self.name))
    }

    /// The lock file for starting or ending a daemon. It is never removed.
    pub(super) fn lock(&self) -> PathBuf {
        self.directory.join(format!("{}.lock", self.name))
    }

    /// Calls `with` with a path that is short enough to bind or connect a socket, even if the real path is too long.
    pub(super) fn with_short_path<T>(
        &self,
        with: impl FnOnce(&Path) -> io::Result<T>,
    ) -> io::Result<T> {
        let socket = self.socket();
        if socket.as_os_str().len() <= LONGEST {
            return with(&socket);
        }
        use std::os::fd::AsRawFd as _;
        let directory = std::fs::File::open(&self.directory)?;
        let link = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string());
        with(&link.join(format!("{}.sock", self.name)))
    }
}

pub(super) fn directories(paths: &Paths, environment: &Environment) -> Vec<PathBuf> {
    let runtime = runtime(environment, Path::new("/run/user"))
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("mcpzip"));
    let temporary = environment.get(env::TEMPORARY_DIR);
    let temporary = Path::new(temporary.filter(|path| !path.is_empty()).unwrap_or("/tmp"))
        .join(format!("mcpzip-{}", geteuid().as_raw()));
    runtime
        .into_iter()
        .chain([paths.state_dir.join("run"), temporary])
        .collect()
}

/// The user's runtime directory. Codex starts its servers without the variable that names it, so that the fallback is the
/// directory of systemd: sessions of Codex find the daemon of other clients there. An empty variable means that there is
/// none.
fn runtime(environment: &Environment, system: &Path) -> Option<PathBuf> {
    match environment.get(env::RUNTIME_DIR) {
        Some(directory) => Some(directory.into()),
        None => {
            Some(system.join(geteuid().as_raw().to_string())).filter(|directory| directory.is_dir())
        }
    }
}

/// Creates `directory` if needed, and checks that only this user can enter it.
fn prepare(directory: &Path) -> Result<(), Unusable> {
    let made = std::fs::DirBuilder::new().mode(0o700).create(directory);
    match made {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // The state directory may not exist yet. The system's own directories are not created.
            let parent = directory.parent().filter(|_| directory.ends_with("run"));
            let parent = parent.ok_or(error)?;
            let mut builder = std::fs::DirBuilder::new();
            let made = builder.recursive(true).mode(0o700).create(parent);
            made.and_then(|()| std::fs::DirBuilder::new().mode(0o700).create(directory))?;
        }
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    check(directory)?;
    rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).map_err(Unusable::ReadOnly)
}

/// Checks that only this user can enter `directory`.
pub(super) fn check(directory: &Path) -> Result<(), Unusable> {
    let metadata = std::fs::symlink_metadata(directory)?;
    if !metadata.is_dir() {
        return Err(Unusable::NotDirectory);
    }
    if metadata.uid() != geteuid().as_raw() {
        return Err(Unusable::AnotherUser);
    }
    match metadata.mode() & 0o777 {
        0o700 => Ok(()),
        mode => Err(Unusable::Mode(mode)),
    }
}

/// A hash of the protocol version, the build, the paths and the confinement of this process.
fn name(paths: &Paths) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    add(&PROTOCOL.to_le_bytes());
    add(build()?.as_bytes());
    for path in [&paths.config_file, &paths.cache_dir, &paths.state_dir] {
        add(path.as_os_str().as_encoded_bytes());
    }
    confinement(&mut add)?;
    Ok(crate::text::hex(&hash.finalize()[..12]))
}

/// The identity of this build: its version and its file.
fn build() -> io::Result<String> {
    let file = std::fs::metadata("/proc/self/exe")?;
    Ok(format!(
        "{} {} {} {} {}",
        env!("CARGO_PKG_VERSION"),
        file.dev(),
        file.ino(),
        file.len(),
        file.mtime_nsec().wrapping_add(file.mtime() << 32)
    ))
}

/// The confinement of this process: its user, namespaces, root directory, and security labels. The control group is
/// left out, because each terminal has a different one.
fn confinement(add: &mut impl FnMut(&[u8])) -> io::Result<()> {
    add(&geteuid().as_raw().to_le_bytes());
    for namespace in ["user", "mnt", "pid", "net"] {
        let link = std::fs::read_link(Path::new("/proc/self/ns").join(namespace))?;
        add(link.as_os_str().as_encoded_bytes());
    }
    let root = std::fs::metadata("/")?;
    add(format!("{} {}", root.dev(), root.ino()).as_bytes());
    let status = std::fs::read_to_string("/proc/self/status")?;
    for line in status.lines() {
        if line.starts_with("NoNewPrivs:") || line.starts_with("Seccomp:") {
            add(line.as_bytes());
        }
    }
    // Without a security module there is no label.
    add(&std::fs::read("/proc/self/attr/current").unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_drops_the_runtime_directory_finds_the_daemon_of_one_that_does_not() {
        let system = tempfile::TempDir::new().unwrap();
        let own = system.path().join(geteuid().as_raw().to_string());
        let without = Environment::default();
        assert_eq!(runtime(&without, system.path()), None);
        std::fs::create_dir(&own).unwrap();
        let with = Environment::from_iter([(env::RUNTIME_DIR, own.to_str().unwrap())]);
        assert_eq!(runtime(&with, system.path()), Some(own.clone()));
        assert_eq!(runtime(&without, system.path()), Some(own));
        let none = Environment::from_iter([(env::RUNTIME_DIR, "")]);
        assert_eq!(runtime(&none, system.path()), Some("".into()));
    }
}
