//! Changes a configuration file on disk, ours or another program's.
//!
//! A lock beside the file lets one `mcpzip` at a time edit it. Editors know no such lock, so what was read is compared
//! with what is there right before it is replaced, and the change is made again on what somebody else wrote meanwhile.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::document::{Document, DocumentError};
use super::paths::is_inline;
use crate::files;

/// How long the edit of another process is waited for.
const LOCK_LIMIT: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// How often an edit is made again on what somebody else wrote.
const MOST_ATTEMPTS: usize = 8;

/// How many links lead to a file at most.
const MOST_LINKS: usize = 16;

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    /// Another process has been editing the file for long, or others write it all the time.
    #[error("`{path}` is being edited by somebody else")]
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
        /// Why not.
        source: io::Error,
    },
    /// The file is in another encoding than UTF-8.
    #[error("`{path}` is not UTF-8")]
    Encoding {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be understood, or not be edited so.
    #[error("{path}:{source}")]
    Document {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: DocumentError,
    },
}

/// Makes `change` in the file at `path`, of which a symbolic link is followed, and replaces it whole: after a crash it is
/// the old one or the new one, with the old one's permissions. A file that is not there is created, open to the user
/// alone. `change` may run several times; when it fails, or changes nothing, nothing is written.
///
/// Blocks on the disk, and up to ten seconds on other processes.
///
/// # Errors
/// What `change` gives, or why the file cannot be edited.
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
    let _lock = FileLock::take(&target)
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
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The file that links at `path` lead to; it need not exist.
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

/// The right to edit a file, until it is dropped; a file beside it, which goes with it, keeps other processes out.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    _file: File,
}

impl FileLock {
    /// Waits for the lock of `target`, up to ten seconds; nothing when others keep it longer.
    ///
    /// # Errors
    /// When the directory cannot be written to.
    pub(crate) fn take(target: &Path) -> io::Result<Option<Self>> {
        let directory = target.parent().unwrap_or(Path::new(""));
        files::create_private_directory(directory)?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = directory.join(format!(".{name}.mcpzip-lock"));
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        files::private(&mut options);
        let start = Instant::now();
        loop {
            let file = options.open(&path)?;
            match file.try_lock() {
                // Whoever had it before removed the file, perhaps, and then it keeps nobody out.
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
        // It would lie about in a home directory. Elsewhere an open file cannot be removed, and it stays.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether `file` is what stands at `path`.
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
    reason = "as on Unix; here nobody removes it"
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
        // The lock's file goes with the lock, where an open file can be removed.
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
        add(&link, "dangling");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
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
