//! A temporary directory for the demo.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How often a directory is removed in which another thread still writes, and the time between.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(25);

/// A temporary directory that is removed with its content on drop.
#[derive(Debug)]
pub(super) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Creates a directory that only the user can enter.
    pub(super) fn create() -> io::Result<Self> {
        let builder = private();
        loop {
            let moment = SystemTime::UNIX_EPOCH
                .elapsed()
                .map_or(0, |elapsed| elapsed.subsec_nanos());
            let path =
                std::env::temp_dir().join(format!("mcpzip-demo-{}-{moment}", std::process::id()));
            // An existing directory may belong to another user, so it is never reused.
            match builder.create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                created => return created.map(|()| Self(path)),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // The thread that computes vectors may write a file meanwhile, so the directory is not empty when it is removed. One that cannot
        // be removed is left to the system's cleaning of temporary files.
        for _ in 0..ATTEMPTS {
            match fs::remove_dir_all(&self.0) {
                Ok(()) => return,
                Err(error) if error.kind() == ErrorKind::NotFound => return,
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

#[cfg(unix)]
fn private() -> fs::DirBuilder {
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// The directory for temporary files is private to the user on these systems.
#[cfg(not(unix))]
fn private() -> fs::DirBuilder {
    fs::DirBuilder::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_private_and_goes_with_its_content() {
        let directory = TemporaryDirectory::create().unwrap();
        let other = TemporaryDirectory::create().unwrap();
        let path = directory.path().to_owned();
        assert_ne!(path, other.path());
        fs::create_dir(path.join("inner")).unwrap();
        fs::write(path.join("inner/file"), "text").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o700
            );
        }
        drop(directory);
        assert!(!path.exists() && other.path().exists());
    }
}
