//! Files that survive a crash and that other users cannot read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A temporary file of this age has no writer any more.
const ABANDONED: Duration = Duration::from_secs(600);

/// The error of a path that is a link to something that is not there, or below one. Nothing is made behind the link: the disk of it may
/// only not be mounted.
#[must_use]
pub(crate) fn leads_nowhere(path: &Path) -> Option<io::Error> {
    let there = path.ancestors().find(|it| it.symlink_metadata().is_ok())?;
    let is_absent = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    let is_nowhere = there.metadata().is_err_and(is_absent);
    let target = fs::read_link(there).ok().filter(|_| is_nowhere)?;
    let link = match there == path {
        true => "it".to_owned(),
        false => format!("`{}`", there.display()),
    };
    let text = format!(
        "{link} is a link to `{}`, which is not there; put that back, as by mounting its disk, or remove the link",
        target.display()
    );
    Some(io::Error::new(io::ErrorKind::NotFound, text))
}

/// Creates `directory` and its parents. Only the user can enter them.
///
/// # Errors
/// When it cannot be created.
pub(crate) fn create_private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Makes files that are created with `options` readable by the user only.
pub(crate) fn private(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

/// Reads the regular file at `path`, of at most `limit` bytes. A pipe, device or directory is rejected without being
/// read, and opening it does not block.
///
/// # Errors
/// When it cannot be opened or read, is not a regular file, or is larger.
pub(crate) fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= limit {
        file.take(limit + 1).read_to_end(&mut bytes)?;
    }
    if length.max(bytes.len() as u64) > limit {
        let limit = limit / (1024 * 1024);
        return Err(io::Error::other(format!("is larger than {limit} MB")));
    }
    Ok(bytes)
}

/// As [`read_regular`], for a file of any size.
///
/// # Errors
/// Those of [`open_regular`], and when it cannot be read.
pub(crate) fn read_any(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the file at `path` as [`read_regular`] does, if no other user may read or write it.
///
/// # Errors
/// As there, and when other users may.
pub(crate) fn read_private(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
            let reason = format!(
                "`{}` is open to other users: `chmod 600` closes it",
                path.display()
            );
            return Err(io::Error::other(reason));
        }
    }
    read_regular(path, limit)
}

/// Whether there is a file at `path` that can be run.
pub(crate) fn is_program(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else {
        return false;
    };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    metadata.is_file() && may_run
}

/// Opens the regular file at `path` for reading, without blocking.
///
/// # Errors
/// Those of [`open_with`].
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens the regular file at `path` with `options`, without blocking. A pipe, device or directory is rejected.
///
/// # Errors
/// When it cannot be opened, or is not a regular file.
pub(crate) fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    never_block(options);
    // The open file is checked, because the path may now lead elsewhere.
    let opened = options
        .open(path)
        .and_then(|file| Ok((file.metadata()?.is_file(), file)));
    // A pipe without a reader cannot be opened for writing at all.
    let is_other = || fs::metadata(path).is_ok_and(|there| !there.is_file());
    match opened {
        Ok((true, file)) => Ok(file),
        Err(error) if !is_other() => Err(error),
        _ => Err(io::Error::other("is not a regular file")),
    }
}

/// Opens the file at `path`, which processes lock, and creates it if needed. It does not block, and rejects a pipe or device.
///
/// # Errors
/// When it cannot be opened, or is not a regular file.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    private(&mut options);
    open_with(&mut options, path).map_err(|error| match error.kind() {
        io::ErrorKind::Other => io::Error::other(format!("the lock `{}` {error}", path.display())),
        _ => error,
    })
}

/// Has files that are opened with `options` open at once, also a pipe that nothing writes or reads.
fn never_block(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits().cast_signed());
    }
    #[cfg(not(unix))]
    let _ = options;
}

/// Replaces the file at `path` with one that contains `parts`. A reader, or a power failure at any moment, gets the old
/// file or the new one. Missing directories are created.
///
/// # Errors
/// When it cannot be written. The old file is then unchanged.
pub(crate) fn replace(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    prepare(path, parts)?.commit()
}

/// The first half of [`replace`]: all that needs space.
///
/// # Errors
/// Those of [`replace`].
pub(crate) fn prepare(path: &Path, parts: &[&[u8]]) -> io::Result<Replacement> {
    let directory = directory_of(path)?;
    create_private_directory(directory)?;
    remove_abandoned(directory, ABANDONED, |name| {
        name.starts_with('.') && name.ends_with(".tmp")
    });
    Replacement::write(path, parts, None)
}

/// Replaces a file in a directory that is not mcpzip's. The file keeps its permissions and, if the system permits it,
/// its owner.
///
/// # Errors
/// When it cannot be written. The old file is then unchanged.
pub(crate) fn replace_in_place(path: &Path, content: &[u8]) -> io::Result<()> {
    prepare_there(path, content, u32::MAX)?.commit()
}

/// As [`replace_in_place`], but only the owner may read and write the new file.
///
/// # Errors
/// Those of [`replace_in_place`].
pub(crate) fn replace_in_place_for_owner(path: &Path, content: &[u8]) -> io::Result<()> {
    prepare_in_place_for_owner(path, content)?.commit()
}

/// Why the file at `path` cannot be replaced in place, as far as its directory shows it.
#[cfg(unix)]
pub(crate) fn unwritable(path: &Path) -> Option<io::Error> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    // Missing directories are made.
    let nearest = target.ancestors().skip(1).find(|it| it.is_dir())?;
    let needed = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(nearest, needed)
        .err()
        .map(io::Error::from)
}

/// The attributes of a directory do not show it elsewhere.
#[cfg(not(unix))]
pub(crate) fn unwritable(_: &Path) -> Option<io::Error> {
    None
}

/// The first half of [`replace_in_place_for_owner`]: all that needs space.
///
/// # Errors
/// Those of [`replace_in_place`].
pub(crate) fn prepare_in_place_for_owner(path: &Path, content: &[u8]) -> io::Result<Replacement> {
    prepare_there(path, content, 0o600)
}

/// The new file gets those permissions of the old one that are in `mask`.
fn prepare_there(path: &Path, content: &[u8], mask: u32) -> io::Result<Replacement> {
    let before = match fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let directory = directory_of(path)?;
    create_private_directory(directory)?;
    let own = path.file_name().unwrap_or_default().to_string_lossy();
    // Others may have temporary files there, so only those of this file are removed.
    remove_abandoned(directory, ABANDONED, |name| is_temporary_of(&own, name));
    let before = before.as_ref().map(|before| (before, mask));
    Replacement::write(path, &[content], before)
}

/// A complete new file next to the one that it replaces. Dropping it removes the new one.
#[derive(Debug)]
pub(crate) struct Replacement {
    temporary: PathBuf,
    path: PathBuf,
}

fn directory_of(path: &Path) -> io::Result<&Path> {
    match path.parent() {
        // A plain name.
        Some(parent) if parent.as_os_str().is_empty() => Ok(Path::new(".")),
        Some(parent) => Ok(parent),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path has no directory",
        )),
    }
}

impl Replacement {
    fn write(
        path: &Path,
        parts: &[&[u8]],
        before: Option<(&fs::Metadata, u32)>,
    ) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = format!(".{name}.{}.{number}.tmp", std::process::id());
        let replacement = Self {
            temporary: directory_of(path)?.join(name),
            path: path.to_owned(),
        };
        write_synced(&replacement.temporary, parts)?;
        if let Some((before, mask)) = before {
            take_over(&replacement.temporary, before, mask)?;
        }
        Ok(replacement)
    }

    /// Puts the new file in the place of the old one.
    ///
    /// # Errors
    /// When the system refuses. The old file is then unchanged.
    pub(crate) fn commit(self) -> io::Result<()> {
        rename(&self.temporary, &self.path)?;
        sync_directory(directory_of(&self.path)?)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // After a rename it does not exist.
        let _ = fs::remove_file(&self.temporary);
    }
}

#[cfg(not(windows))]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Renames a file. Windows cannot replace a file that another process has open, and an indexer or a virus scanner opens
/// each new file for a moment, so this tries again.
#[cfg(windows)]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(2);
    const PAUSE: Duration = Duration::from_millis(5);
    /// The error codes of access denied and of a sharing violation.
    const IN_USE: [i32; 2] = [5, 32];
    let start = std::time::Instant::now();
    loop {
        match fs::rename(from, to) {
            Err(error)
                if error
                    .raw_os_error()
                    .is_some_and(|code| IN_USE.contains(&code))
                    && start.elapsed() < PATIENCE =>
            {
                std::thread::sleep(PAUSE);
            }
            renamed => return renamed,
        }
    }
}

/// Gives a file the owner and the permissions of another, as far as they are in `mask`.
#[cfg(unix)]
fn take_over(path: &Path, other: &fs::Metadata, mask: u32) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    // Only root may change the owner, and only root needs to.
    let _ = std::os::unix::fs::chown(path, Some(other.uid()), Some(other.gid()));
    fs::set_permissions(path, fs::Permissions::from_mode(other.mode() & mask))
}

/// Gives a file the permissions of another. On this system they have no mode.
#[cfg(not(unix))]
fn take_over(path: &Path, other: &fs::Metadata, _: u32) -> io::Result<()> {
    fs::set_permissions(path, other.permissions())
}

/// Whether `name` is that of a temporary file of a [`Replacement`] for the file `own`.
fn is_temporary_of(own: &str, name: &str) -> bool {
    let rest = name.strip_prefix('.').and_then(|it| it.strip_prefix(own));
    let numbers = rest.and_then(|it| it.strip_prefix('.')?.strip_suffix(".tmp"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    numbers
        .and_then(|numbers| numbers.split_once('.'))
        .is_some_and(|(process, count)| is_number(process) && is_number(count))
}

/// Removes the temporary files for the file at `path`, which no other process of mcpzip may be writing.
pub(crate) fn remove_temporary(path: &Path) {
    let own = path.file_name().unwrap_or_default().to_string_lossy();
    if let Ok(directory) = directory_of(path) {
        remove_abandoned(directory, Duration::ZERO, |name| {
            is_temporary_of(&own, name)
        });
    }
}

/// Removes temporary files of killed writers that are older than `least`, whose names `is_ours` knows. One that cannot be removed only takes
/// up space.
fn remove_abandoned(directory: &Path, least: Duration, is_ours: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        // A link, and where it leads, is left alone.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let is_temporary = is_file && name.to_str().is_some_and(&is_ours);
        let age = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|time| time.elapsed().ok());
        if is_temporary && age.is_some_and(|age| age > least) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn write_synced(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    private(&mut options);
    let mut file = options.open(path)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_data()
}

/// Makes a rename in `directory` survive a power failure. Only Unix can open a directory for that.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/file");
        replace(&path, &[b"one", b"two"]).unwrap();
        replace(&path, &[b"three"]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert_eq!(
            fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "a temporary file stayed"
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600
            );
            assert_eq!(
                fs::metadata(directory.path().join("a"))
                    .unwrap()
                    .permissions()
                    .mode()
                    & 0o777,
                0o700
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_is_a_regular_file_and_never_waits_for_a_reader() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        open_lock(&path).unwrap().lock().unwrap();
        open_lock(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let refused = |path: &Path| open_lock(path).unwrap_err().to_string();
        assert!(refused(&path).contains("is not a regular file"));
        let _reader = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        assert!(refused(&path).contains("is not a regular file"));
        assert!(refused(Path::new("/dev/null")).contains("is not a regular file"));
        assert!(refused(directory.path()).contains("is not a regular file"));
    }

    #[cfg(unix)]
    #[test]
    fn only_a_regular_file_is_opened_for_reading_or_appending() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for path in [&*pipe, Path::new("/dev/null"), directory.path()] {
            let told = |error: io::Error| error.to_string();
            assert_eq!(told(read_any(path).unwrap_err()), "is not a regular file");
            let append = open_with(OpenOptions::new().append(true).create(true), path);
            assert_eq!(told(append.unwrap_err()), "is not a regular file");
        }
        let missing = read_any(&directory.path().join("none")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
