use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A directory of this run alone, removed with all that is in it when dropped.
#[derive(Debug)]
pub(super) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Creates one, open to the user alone.
    pub(super) fn create() -> io::Result<Self> {
        let builder = private();
        loop {
            let moment = SystemTime::UNIX_EPOCH
                .elapsed()
                .map_or(0, |elapsed| elapsed.subsec_nanos());
            let path =
                std::env::temp_dir().join(format!("mcpzip-demo-{}-{moment}", std::process::id()));
            // One that is there already may be anybody's.
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
        // What cannot be removed is left to the system, whose directory it is in.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(unix)]
fn private() -> fs::DirBuilder {
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// The directory for temporary files is the user's own already.
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
