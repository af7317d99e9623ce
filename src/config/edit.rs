//! Changes a configuration file on disk, ours or another program's.
//!
//! A lock file lets one `mcpzip` process edit at a time. Editors do not know that lock, so the content is compared
//! again right before it is replaced; if another program wrote meanwhile, the change is repeated on its content.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::document::{Document, DocumentError};
use super::paths::is_inline;
use crate::files::{self, leads_nowhere};

/// The largest size of a configuration file.
pub(crate) const LARGEST_FILE: u64 = 64 * 1024 * 1024;

/// The time to wait for another process's edit.
const LOCK_LIMIT: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The number of attempts when other programs keep writing.
const MOST_ATTEMPTS: usize = 8;

/// The longest chain of symbolic links that is followed.
const MOST_LINKS: usize = 16;

/// A file that was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    /// Another process holds the lock for too long, or other programs keep writing.
    #[error("`{path}` is being edited by another program")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The configuration is the value of a variable.
    #[error(
        "the configuration is in the variable MCPZIP_CONFIG_JSON, which a command cannot change; change it there, or name a \
         file with `--config`"
    )]
    Inline,
    /// The file cannot be read or replaced.
    #[error("`{path}` cannot be edited: {source}")]
    Disk {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not UTF-8.
    #[error("`{path}` is not UTF-8")]
    Encoding {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be parsed, or cannot be edited as asked.
    #[error("{path}:{source}")]
    Document {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: DocumentError,
    },
}

/// Applies `change` to the file at `path`, following symbolic links, and replaces it atomically: after a crash it is
/// the old one or the new one, with the old permissions. A missing file is created, readable by the user alone, but not behind a link.
/// `change` may run several times; if it fails or changes nothing, nothing is written.
///
/// Blocks on the disk, and up to ten seconds on other processes.
///
/// # Errors
/// The error of `change`, or the reason why the file cannot be edited.
pub(crate) fn edit<T, E: From<EditError>>(
    path: &Path,
    mut change: impl FnMut(&mut Document) -> Result<T, E>,
) -> Result<T, E> {
    if is_inline(path) {
        return Err(EditError::Inline.into());
    }
    let disk = |source| EditError::Disk {
        path: path.to_owned(),
        source,
    };
    let target = link_target(path).map_err(disk)?;
    if let Some(error) = leads_nowhere(path) {
        return Err(disk(error).into());
    }
    // The lock file needs a writable directory, which a device or pipe may not be in: report those first.
    read(&target).map_err(disk)?;
    let _lock = FileLock::acquire(&target)
        .map_err(disk)?
        .ok_or_else(|| EditError::Busy {
            path: path.to_owned(),
        })?;
    for _ in 0..MOST_ATTEMPTS {
        let before = read(&target).map_err(disk)?;
        let text = match before.clone().map(String::from_utf8) {
            None => String::new(),
            Some(Ok(text)) => text,
            Some(Err(_)) => {
                return Err(EditError::Encoding {
                    path: path.to_owned(),
                }
                .into());
            }
        };
        let mut document = Document::parse(&text).map_err(|source| EditError::Document {
            path: path.to_owned(),
            source,
        })?;
        let untouched = document.clone();
        let outcome = change(&mut document)?;
        if document == untouched {
            return Ok(outcome);
        }
        if read(&target).map_err(disk)? == before {
            files::replace_in_place(&target, document.text().as_bytes()).map_err(disk)?;
            return Ok(outcome);
        }
    }
    Err(EditError::Busy {
        path: path.to_owned(),
    }
    .into())
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match files::read_regular(path, LARGEST_FILE) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The file that the symbolic links at `path` lead to; it need not exist.
///
/// # Errors
/// When a link cannot be read, or there are too many.
pub(crate) fn link_target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {
                let next = fs::read_link(&path)?;
                path = path.parent().unwrap_or(Path::new("")).join(next);
            }
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "too many symbolic links",
    ))
}

/// The lock for editing a file, until it is dropped. A lock file next to the edited file keeps other processes out.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    _file: File,
}

impl FileLock {
    /// Waits for the lock of `target`, up to ten seconds. `None` if another process holds it longer.
    ///
    /// # Errors
    /// When the directory cannot be written to.
    pub(crate) fn acquire(target: &Path) -> io::Result<Option<Self>> {
        let directory = target.parent().unwrap_or(Path::new(""));
        files::create_private_directory(directory)?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = directory.join(format!(".{name}.mcpzip-lock"));
        let start = Instant::now();
        loop {
            let file = files::open_lock(&path)?;
            match file.try_lock() {
                // The previous owner may have removed the file; a lock on it then excludes no other process.
                Ok(()) if is_at(&file, &path)? => return Ok(Some(Self { path, _file: file })),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if start.elapsed() > LOCK_LIMIT => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // It would stay behind in a home directory. On other systems an open file cannot be removed.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether `file` is the file at `path`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let own = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((own.dev(), own.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "as on Unix; here the file is never removed"
)]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(path: &Path, key: &str) {
        edit(path, |document| -> Result<(), EditError> {
            document
                .set(&["mcpServers", key], "{\"command\":\"x\"}")
                .unwrap();
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_file_that_is_not_there_is_created_for_the_user_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/config.json");
        add(&path, "a");
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n"
        );
        // The lock file is removed with the lock on systems that can remove an open file.
        let files = if cfg!(unix) { 1 } else { 2 };
        assert_eq!(
            fs::read_dir(path.parent().unwrap()).unwrap().count(),
            files,
            "something else stayed"
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_the_permissions_stay() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let (link, real) = (
            directory.path().join("config.json"),
            directory.path().join("dotfiles/real.json"),
        );
        fs::create_dir(real.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("dotfiles/real.json", &link).unwrap();
        // Its disk may not be mounted.
        let refused = edit(&link, |_| -> Result<(), EditError> { Ok(()) });
        assert!(refused.unwrap_err().to_string().contains("is a link to"));
        assert!(!real.exists());
        // Nor may that of a directory above.
        let gone = directory.path().join("gone");
        std::os::unix::fs::symlink(&gone, directory.path().join("mcpzip")).unwrap();
        let below = directory.path().join("mcpzip/profiles/config.json");
        let refused = edit(&below, |_| -> Result<(), EditError> { Ok(()) });
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("mcpzip` is a link to")
        );
        assert!(!gone.exists());
        fs::write(&real, "{}").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        add(&link, "again");
        assert!(
            fs::symlink_metadata(&link).unwrap().is_symlink(),
            "the link was replaced"
        );
        assert!(fs::read_to_string(&real).unwrap().contains("again"));
        assert_eq!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o640
        );
    }

    #[test]
    fn edits_side_by_side_all_survive() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.json");
        fs::write(&path, "{} // mine\n").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    (0..20).for_each(|edit| add(path, &format!("s{thread}-{edit}")));
                });
            }
        });
        let document = Document::parse(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(document.keys(&["mcpServers"]).len(), 160);
        assert!(document.text().ends_with("} // mine\n"));
    }

    #[test]
    fn what_an_editor_writes_in_between_survives() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.json");
        fs::write(&path, "{}").unwrap();
        let mut round = 0;
        edit(&path, |document| -> Result<(), EditError> {
            round += 1;
            if round == 1 {
                fs::write(&path, "{\"theirs\": 1}").unwrap();
            }
            document.set(&["ours"], "2").unwrap();
            Ok(())
        })
        .unwrap();
        assert_eq!(
            (round, fs::read_to_string(&path).unwrap().as_str()),
            (2, "{\"theirs\": 1, \"ours\": 2}")
        );
    }

    #[test]
    fn what_cannot_be_understood_or_is_not_wanted_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.json");
        for content in [&b"{\"a\": }"[..], b"[1]", b"\xff\xfe{}"] {
            fs::write(&path, content).unwrap();
            let refused = edit(&path, |document| -> Result<(), EditError> {
                document.set(&["a"], "1").unwrap();
                Ok(())
            });
            assert!(refused.is_err());
            assert_eq!(fs::read(&path).unwrap(), content);
        }
        fs::write(&path, "{}").unwrap();
        let refused = edit(&path, |document| -> Result<(), EditError> {
            document.set(&["a"], "1").unwrap();
            Err(EditError::Busy { path: "x".into() })
        });
        assert!(refused.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"{}");
    }
}
