//! The opened key of the file, for the processes of one user's session.
//!
//! It is a file in the user's runtime directory, which is in memory and ends with the session. A directory or file that others
//! could have written or read is refused.

use std::path::{Path, PathBuf};

use super::KeyringError;
use crate::config::Environment;
use crate::sealing::Key;

/// The place of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionKey {
    path: PathBuf,
}

impl SessionKey {
    /// The place of the key of the file at `file`. `None` if the system has no directory that ends with the session.
    #[cfg(unix)]
    pub(super) fn of(environment: &Environment, file: &Path) -> Option<Self> {
        use sha2::{Digest as _, Sha256};

        let directory = environment.runtime_directory(Path::new("/run/user"))?;
        if !directory.is_absolute() {
            return None;
        }
        let hash = Sha256::digest(file.as_os_str().as_encoded_bytes());
        let name = format!("secrets-{}.key", data_encoding::HEXLOWER.encode(&hash[..6]));
        let path = directory.join("mcpzip").join(name);
        Some(Self { path })
    }

    /// Other systems have keychains.
    #[cfg(not(unix))]
    pub(super) fn of(_: &Environment, _: &Path) -> Option<Self> {
        None
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The key, if it is there.
    pub(super) fn read(&self) -> Result<Option<Key>, KeyringError> {
        if !self.path.exists() {
            return Ok(None);
        }
        check(self.path.parent().unwrap_or(&self.path), 0o700)?;
        check(&self.path, 0o600)?;
        let bytes = crate::files::read_regular(&self.path, 4096);
        let bytes = bytes.map_err(|source| KeyringError::Read {
            path: self.path.clone(),
            source,
        })?;
        Ok(Key::parse(&bytes))
    }

    pub(super) fn write(&self, key: &Key) -> Result<(), KeyringError> {
        let failed = |source| KeyringError::Write {
            path: self.path.clone(),
            source,
        };
        let directory = self.path.parent().unwrap_or(&self.path);
        crate::files::create_private_directory(directory).map_err(failed)?;
        check(directory, 0o700)?;
        crate::files::replace(&self.path, &[key.to_text().expose().as_bytes()]).map_err(failed)
    }

    pub(super) fn remove(&self) -> Result<bool, KeyringError> {
        match std::fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(KeyringError::Write {
                path: self.path.clone(),
                source,
            }),
        }
    }
}

/// Checks that only this user can read and write what is at `path`, and that it is not a link.
#[cfg(unix)]
fn check(path: &Path, widest: u32) -> Result<(), KeyringError> {
    use std::os::unix::fs::MetadataExt as _;

    let unfit = |problem| KeyringError::Unsafe {
        path: path.to_owned(),
        problem,
    };
    let metadata = std::fs::symlink_metadata(path).map_err(|source| KeyringError::Read {
        path: path.to_owned(),
        source,
    })?;
    if metadata.is_symlink() {
        return Err(unfit("it is a link"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(unfit("it belongs to another user"));
    }
    match metadata.mode() & 0o777 & !widest {
        0 => Ok(()),
        _ => Err(unfit("other users can reach it")),
    }
}

#[cfg(not(unix))]
fn check(_: &Path, _: u32) -> Result<(), KeyringError> {
    Ok(())
}
