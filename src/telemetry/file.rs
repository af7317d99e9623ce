//! A log file that is rotated by size. The last few files are kept for a while.
//!
//! Any number of processes append to one file. None of them owns it: each reopens it now and then, and so finds the
//! new one after another process has rotated it. No process waits for another.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::RwLock;

use crate::files;

/// The limits of logs. Nothing is rotated before they are known; a command that reads no configuration leaves that to others.
static LIMITS: RwLock<Option<Limits>> = RwLock::new(None);

/// The limits of each log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// A file beyond this size, in bytes, is rotated.
    pub largest: u64,
    /// The number of files of one log, including the current one.
    pub kept: usize,
    /// Files not written to for this long are removed.
    pub oldest: Duration,
}

/// Keeps all logs of the process within `limits` from now on.
pub(super) fn set_limits(limits: Limits) {
    *LIMITS.write() = Some(limits);
}

/// The time for which an open file is assumed to be the current one.
const SURE: Duration = Duration::from_secs(1);

/// One log. It opens its file at the first write.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    open: Option<Open>,
    /// In place of those of the process.
    #[cfg(test)]
    limits: Option<Limits>,
}

#[derive(Debug)]
struct Open {
    file: File,
    length: u64,
    since: Instant,
}

impl LogFile {
    /// The log at `path`.
    #[must_use]
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            open: None,
            #[cfg(test)]
            limits: None,
        }
    }

    fn limits(&self) -> Option<Limits> {
        #[cfg(test)]
        if self.limits.is_some() {
            return self.limits;
        }
        *LIMITS.read()
    }

    /// The path of the log.
    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends whole lines.
    ///
    /// # Errors
    /// When they cannot be written. Later lines may succeed.
    pub(crate) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let open = match self.open.take().filter(|open| open.since.elapsed() < SURE) {
            Some(open) => open,
            None => self.open()?,
        };
        let open = match self.limits() {
            Some(limits) if open.length > limits.largest => self.rotate(open, limits)?,
            _ => open,
        };
        let open = self.open.insert(open);
        open.length += lines.len() as u64;
        open.file.write_all(lines)
    }

    fn open(&self) -> io::Result<Open> {
        if let Some(parent) = self.path.parent() {
            files::create_private_directory(parent)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        files::private(&mut options);
        let file = files::open_with(&mut options, &self.path)?;
        let length = file.metadata()?.len();
        Ok(Open {
            file,
            length,
            since: Instant::now(),
        })
    }

    /// Puts the file aside, unless another process does so just now, or has.
    fn rotate(&self, open: Open, limits: Limits) -> io::Result<Open> {
        if open.file.try_lock().is_err() {
            return Ok(open);
        }
        if fs::metadata(&self.path)?.len() > limits.largest {
            for number in (1..limits.kept.saturating_sub(1)).rev() {
                // There may be fewer files.
                let _ = fs::rename(aside(&self.path, number), aside(&self.path, number + 1));
            }
            fs::rename(&self.path, aside(&self.path, 1))?;
            // Others were kept when the limit was another.
            let surplus = (limits.kept.max(1)..).map(|number| aside(&self.path, number));
            surplus
                .take_while(|path| fs::remove_file(path).is_ok())
                .for_each(drop);
            if let Some(directory) = self.path.parent() {
                remove_old(directory, limits.oldest);
            }
        }
        drop(open);
        self.open()
    }
}

/// The path of an older file of the log at `path`; 1 is the latest.
#[must_use]
pub(crate) fn aside(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    path.with_file_name(name)
}

/// All files of the log at `path`, the newest first.
pub(super) fn all(path: &Path) -> impl Iterator<Item = PathBuf> {
    let aside = (1..)
        .map(|number| aside(path, number))
        .take_while(|path| path.exists());
    std::iter::once(path.to_owned()).chain(aside)
}

/// Removes logs in `directory` that were not written to for longer than `oldest`.
pub(super) fn remove_old(directory: &Path, oldest: Duration) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_log = entry.file_name().to_string_lossy().contains(".log");
        let written = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok();
        let age = written.and_then(|written| SystemTime::now().duration_since(written).ok());
        if is_log && age.is_some_and(|age| age > oldest) {
            // Another process may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        largest: 10,
        kept: 5,
        oldest: Duration::from_secs(30 * 24 * 60 * 60),
    };

    fn log(directory: &Path) -> LogFile {
        LogFile {
            limits: Some(LIMITS),
            ..LogFile::new(directory.join("logs").join("s.log"))
        }
    }

    #[test]
    fn five_files_are_kept() {
        let home = tempfile::tempdir().unwrap();
        let mut log = log(home.path());
        for number in 0..9 {
            log.append(format!("line number {number}\n").as_bytes())
                .unwrap();
        }
        let texts: Vec<_> = all(log.path())
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        assert_eq!(
            texts,
            [8, 7, 6, 5, 4].map(|number| format!("line number {number}\n"))
        );
        assert_eq!(
            fs::read_dir(home.path().join("logs")).unwrap().count(),
            LIMITS.kept
        );
    }

    #[test]
    fn fewer_files_are_kept_when_the_limit_falls() {
        let home = tempfile::tempdir().unwrap();
        let mut log = log(home.path());
        for kept in [5, 2, 1] {
            log.limits = Some(Limits { kept, ..LIMITS });
            for number in 0..9 {
                log.append(format!("line number {number}\n").as_bytes())
                    .unwrap();
            }
            let count = fs::read_dir(home.path().join("logs")).unwrap().count();
            assert_eq!(count, kept);
        }
        assert_eq!(fs::read_to_string(log.path()).unwrap(), "line number 8\n");
    }

    #[test]
    fn two_writers_put_a_file_aside_once_and_lose_nothing() {
        let home = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (log(home.path()), log(home.path()));
        one.append(b"one, more than ten bytes\n").unwrap();
        other.append(b"other\n").unwrap();
        one.append(b"one again\n").unwrap();
        other.open.as_mut().unwrap().since -= SURE;
        other.append(b"other again\n").unwrap();
        let all: String = all(one.path())
            .filter_map(|path| fs::read_to_string(path).ok())
            .collect();
        let mut lines: Vec<_> = all.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "one again",
                "one, more than ten bytes",
                "other",
                "other again"
            ]
        );
        assert!(!aside(one.path(), 3).exists());
    }

    #[test]
    fn old_logs_go() {
        let home = tempfile::tempdir().unwrap();
        let (old, new) = (home.path().join("a.log.1"), home.path().join("a.log"));
        let month_ago = SystemTime::now() - LIMITS.oldest - Duration::from_secs(60);
        File::create(&old).unwrap().set_modified(month_ago).unwrap();
        File::create(home.path().join("other"))
            .unwrap()
            .set_modified(month_ago)
            .unwrap();
        File::create(&new).unwrap();
        remove_old(home.path(), LIMITS.oldest);
        assert!(!old.exists() && new.exists() && home.path().join("other").exists());
    }
}
