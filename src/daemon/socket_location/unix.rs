//! The directories for a Unix socket, and the identity of this process.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::config::{Environment, Paths, env};

/// Why a directory cannot have the socket.
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

/// The path of the socket.
pub(super) fn address(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.sock"))
}

pub(in crate::daemon) fn directories(paths: &Paths, environment: &Environment) -> Vec<PathBuf> {
    let runtime = environment
        .runtime_directory(Path::new("/run/user"))
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

/// Creates `directory` if needed, and checks that only this user can enter it.
pub(super) fn prepare(directory: &Path) -> Result<(), Unusable> {
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
pub(in crate::daemon) fn check(directory: &Path) -> Result<(), Unusable> {
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

/// The confinement of this process: its user, namespaces, root directory, and security labels. The control group is
/// left out, because each terminal has a different one.
#[cfg(target_os = "linux")]
pub(super) fn confinement(add: &mut impl FnMut(&[u8])) -> io::Result<()> {
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

/// The user and the root directory of this process.
#[cfg(not(target_os = "linux"))]
pub(super) fn confinement(add: &mut impl FnMut(&[u8])) -> io::Result<()> {
    add(&geteuid().as_raw().to_le_bytes());
    let root = std::fs::metadata("/")?;
    add(format!("{} {}", root.dev(), root.ino()).as_bytes());
    Ok(())
}
