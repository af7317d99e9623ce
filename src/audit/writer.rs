//! The chain that this process appends to, continued where it ended.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::chain::{self, Link, Segment};
use super::{Directories, log_line, retention};
use crate::config::AuditOptions;
use crate::day::Day;
use crate::files;

/// Maximum number of chains, above the number of sessions on any machine.
const MOST_CHAINS: u32 = 10_000;

/// The part of the configured size that one file may have, so that a long day can lose its beginning.
const SEGMENTS: u64 = 16;

/// The chain that this process appends to.
#[derive(Debug)]
pub(super) struct Writer {
    name: String,
    directory: PathBuf,
    /// The lock, held while the process appends.
    _lock: File,
    segment: Segment,
    file: File,
    /// The length of the file's complete lines.
    length: u64,
    /// Whether a write failed within a line.
    is_torn: bool,
    /// The last line whose hash is known.
    last: Link,
    /// The line after it, with its line break: it is hashed when nothing waits for the writer.
    unhashed: Option<String>,
    is_synced: bool,
    /// Full files whose last lines are not synced.
    full: Vec<File>,
    directories: Directories,
    options: AuditOptions,
}

/// Lines that are written but not synced.
#[derive(Debug)]
pub(super) struct Unsynced {
    chain: String,
    full: Vec<File>,
    file: io::Result<File>,
    last: Link,
}

impl Writer {
    /// Opens the first unlocked chain, and removes files beyond the limits.
    ///
    /// # Errors
    /// When the directories cannot be written, or the chain's last line cannot be read.
    pub(super) fn open(directories: &Directories, options: AuditOptions) -> io::Result<Self> {
        files::create_private_directory(&directories.chains)?;
        let mut cut = Vec::new();
        for number in 1..=MOST_CHAINS {
            let name = number.to_string();
            let directory = directories.chains.join(&name);
            files::create_private_directory(&directory)?;
            if directory.symlink_metadata()?.is_symlink() {
                let directory = directory.display();
                return Err(io::Error::other(format!("`{directory}` is a link")));
            }
            let lock = files::open_lock(&directory.join(".lock"))?;
            match lock.try_lock() {
                Ok(()) => {
                    let writer = Self::take_up(&name, directory, lock, directories, options)?;
                    let Some(mut writer) = writer else {
                        cut.push(name);
                        continue;
                    };
                    for chain in cut {
                        let detail = format!(
                            "chain {chain} is not continued, because lines are missing at its end"
                        );
                        writer.append(log_line(&detail))?;
                    }
                    return Ok(writer);
                }
                Err(fs::TryLockError::WouldBlock) => {}
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::other("every chain is in use"))
    }

    /// Continues a chain. `None` if it ends before its head, or with another line: its complete lines stay as they are, so
    /// that `verify` finds the missing end.
    fn take_up(
        name: &str,
        directory: PathBuf,
        lock: File,
        directories: &Directories,
        options: AuditOptions,
    ) -> io::Result<Option<Self>> {
        let today = Day::today();
        let head = chain::head(&directories.heads, name)?;
        let dropped = head.dropped;
        let before = dropped.map_or_else(Link::begin, |dropped| dropped.last);
        let (mut last, mut cut) = (None, 0);
        let segments = chain::segments(&directory)?;
        for (_, path) in segments.iter().rev() {
            let (end, unfinished) = last_line(path)?;
            cut += unfinished;
            last = end;
            if last.is_some() {
                break;
            }
        }
        let last = last.unwrap_or(before);
        let is_cut = |synced: Link| {
            synced.number > last.number || synced.number == last.number && synced.hash != last.hash
        };
        if head.last.is_some_and(is_cut) {
            return Ok(None);
        }
        let newest = segments.last().map(|(segment, _)| *segment);
        // After the clock was set back, the newest file is of a later day.
        let segment = newest
            .filter(|newest| newest.day >= today)
            .unwrap_or(Segment::first(today));
        let (file, length) = open_segment(&directory, segment)?;
        let mut writer = Self {
            name: name.to_owned(),
            directory,
            _lock: lock,
            segment,
            file,
            length,
            is_torn: false,
            last,
            unhashed: None,
            is_synced: true,
            full: Vec::new(),
            directories: directories.clone(),
            options,
        };
        if cut > 0 {
            let detail = format!("a process ended while it wrote a line: {cut} bytes removed");
            writer.append(log_line(&detail))?;
        }
        retention::sweep(directories, options, today)?;
        Ok(Some(writer))
    }

    /// Reserves space on the disk for the next lines, where the file system can.
    ///
    /// # Errors
    /// When the disk is full.
    pub(super) fn reserve(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{FallocateFlags, fallocate};
            use rustix::io::Errno;
            /// Space for a line with arguments of any size, in bytes.
            const SPACE: u64 = 128 * 1024;
            match fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.length, SPACE) {
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Appends an event's JSON, which lacks its closing brace. Returns the line.
    ///
    /// # Errors
    /// When it cannot be written completely. A partial line is removed before the next one.
    pub(super) fn append(&mut self, json: String) -> io::Result<&str> {
        self.turn()?;
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        self.settle();
        let line = self.last.follow(json);
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            self.is_torn = true;
            return Err(error);
        }
        self.length += line.len() as u64;
        self.is_synced = false;
        Ok(self.unhashed.insert(line))
    }

    /// The name of the chain.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The number of the last line.
    pub(super) fn number(&self) -> u64 {
        self.last.number + u64::from(self.unhashed.is_some())
    }

    /// Hashes the last line, if that was not done yet. Returns its buffer for the next one.
    pub(super) fn settle(&mut self) -> Option<String> {
        let line = self.unhashed.take()?;
        self.last = self.last.next(&line);
        Some(line)
    }

    /// Begins another file on a new day and where this one is full, and removes those beyond the limits.
    fn turn(&mut self) -> io::Result<()> {
        let today = Day::today();
        let next = if today > self.segment.day {
            Segment::first(today)
        } else if self.length >= self.options.bytes() / SEGMENTS {
            let Segment { day, part } = self.segment;
            Segment {
                day,
                part: part + 1,
            }
        } else {
            return Ok(());
        };
        let (file, length) = open_segment(&self.directory, next)?;
        self.full.push(std::mem::replace(&mut self.file, file));
        (self.segment, self.length) = (next, length);
        retention::sweep(&self.directories, self.options, today)
    }

    /// The lines written since the last call. `None` if there are none.
    pub(super) fn unsynced(&mut self) -> Option<Unsynced> {
        if std::mem::replace(&mut self.is_synced, true) {
            return None;
        }
        self.settle();
        Some(Unsynced {
            chain: self.name.clone(),
            full: std::mem::take(&mut self.full),
            file: self.file.try_clone(),
            last: self.last.clone(),
        })
    }
}

impl Unsynced {
    /// Syncs the lines, then the head that refers to the last of them.
    pub(super) fn sync(self, heads: &Path) -> io::Result<()> {
        for full in &self.full {
            full.sync_data()?;
        }
        self.file?.sync_data()?;
        let last = self.last;
        chain::change_head(heads, &self.chain, |head| {
            let is_newer = head
                .last
                .as_ref()
                .is_none_or(|old| old.number < last.number);
            if is_newer {
                head.last = Some(last);
            }
        })
    }
}

/// A file of the chain and its length.
fn open_segment(directory: &Path, segment: Segment) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    files::private(&mut options);
    let path = segment.file(directory);
    let file =
        files::open_with(&mut options, &path).map_err(|error| chain::of_file(&path, &error))?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// The last line of a file after the removal of an incomplete one, and the number of removed bytes.
fn last_line(path: &Path) -> io::Result<(Option<Link>, u64)> {
    let end = chain::end_of(path).map_err(|error| chain::of_file(path, &error))?;
    if end.is_damaged {
        let path = path.display();
        return Err(io::Error::other(format!(
            "the last line of `{path}` is damaged: move the directory of this chain away, and keep it"
        )));
    }
    if end.unfinished > 0 {
        files::open_with(OpenOptions::new().write(true), path)?.set_len(end.whole)?;
    }
    Ok((end.last, end.unfinished))
}
