//! Habits on disk: a file per person, and the salt of all of them.

use std::collections::BTreeSet;
use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::table::{Lesson, Table};
use crate::day::Day;
use crate::files;
use crate::secret::random_bytes;

/// The format of the files. A program reads and writes only the directory of its own format, and erases all.
const VERSION: &str = "v1";
/// The name of the user's own file; those of people are hashes.
const OWN: &str = "own";
const SALT: &str = "salt";
const LOCK: &str = "lock";
/// The largest file that is read. The bounds of a table and of names keep it below.
const LARGEST: u64 = 1024 * 1024;
/// Nothing is left of the counts of a file that was not written for so long.
const OUTDATED: Duration = Duration::from_secs(200 * 24 * 60 * 60);
/// How long to wait for the lock of another process.
const TRIES: u32 = 25;
const TRY: Duration = Duration::from_millis(20);

/// The random bytes that are hashed with each word. Erasing habits replaces them, so that no process goes on with old counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Salt(pub(super) [u8; 16]);

/// The file of one person.
#[derive(Debug)]
pub(super) struct HabitsFile {
    directory: PathBuf,
    name: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    salt: String,
    day: String,
    table: Table,
}

/// The extent of stored habits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Learnt {
    /// The number of tools, of which one counts once.
    pub(crate) tools: usize,
    /// The number of people, the user included.
    pub(crate) people: usize,
}

impl Salt {
    pub(super) fn random() -> Self {
        Self(random_bytes())
    }

    fn text(self) -> String {
        HEXLOWER.encode(&self.0)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let bytes = HEXLOWER.decode(text.trim_ascii()).ok()?;
        bytes.try_into().ok().map(Self)
    }
}

impl HabitsFile {
    /// The file of `identity` below `root`; the user's own without one.
    pub(super) fn of(root: &Path, identity: Option<&str>) -> Self {
        let name = identity.map(|identity| {
            let digest = Sha256::digest(identity);
            HEXLOWER.encode(&digest[..16])
        });
        Self {
            directory: root.join(VERSION),
            name: format!("{}.json", name.as_deref().unwrap_or(OWN)),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// The salt, and the counts as of today. `None` if nothing was stored, or all was erased. A damaged file counts as an empty
    /// one, until the next lesson sets it aside.
    pub(super) fn read(&self) -> io::Result<Option<(Salt, Table)>> {
        let Some(salt) = read_salt(&self.directory)? else {
            return Ok(None);
        };
        let table = read_table(&self.path(), salt).inspect_err(|error| {
            warn_once(error, "what search has learnt cannot be read");
        });
        Ok(Some((salt, table.ok().flatten().unwrap_or_default())))
    }

    /// Adds lessons whose words were hashed with `salt`. If the salt is another one by now, the lessons are dropped. Returns the salt and
    /// the counts that are there afterwards.
    pub(super) fn add(&self, salt: Salt, lessons: &[Lesson]) -> io::Result<(Salt, Table)> {
        files::create_private_directory(&self.directory)?;
        let _lock = lock(&self.directory)?;
        let there = read_salt(&self.directory)?;
        if there.is_none() {
            files::replace(&self.directory.join(SALT), &[salt.text().as_bytes()])?;
        }
        let there = there.unwrap_or(salt);
        let path = self.path();
        let mut table = match read_table(&path, there) {
            Ok(table) => table.unwrap_or_default(),
            // The system does not let it be read: nothing is known about its content.
            Err(error) if error.raw_os_error().is_some() => return Err(error),
            Err(error) => {
                fs::rename(&path, path.with_extension("damaged"))?;
                let path = path.display();
                tracing::warn!(%error, %path, "what search had learnt is damaged, and was set aside");
                Table::default()
            }
        };
        if there != salt {
            return Ok((there, table));
        }
        lessons.iter().for_each(|lesson| table.learn(lesson));
        let written = Written {
            salt: there.text(),
            day: Day::today().to_string(),
            table,
        };
        let json = serde_json::to_vec(&written).expect("numbers by names are JSON");
        files::replace(&path, &[&json])?;
        remove_outdated(&self.directory);
        Ok((there, written.table))
    }
}

/// The habits that are stored below `root`, of all people. Those that cannot be read count as people without tools.
pub(crate) fn learnt(root: &Path) -> Learnt {
    let directory = root.join(VERSION);
    let salt = read_salt(&directory).ok().flatten();
    let (mut tools, mut people) = (BTreeSet::new(), 0);
    for path in entries(&directory).filter(|path| is_table(path)) {
        let table = salt.and_then(|salt| read_table(&path, salt).ok().flatten());
        if let Some(table) = table.filter(|table| !table.is_empty()) {
            people += 1;
            tools.extend(table.names());
        }
    }
    Learnt {
        tools: tools.len(),
        people,
    }
}

/// Erases the habits of all people below `root`, also those of other versions of the program.
///
/// # Errors
/// When something cannot be erased.
pub(crate) fn forget(root: &Path) -> io::Result<Learnt> {
    let learnt = learnt(root);
    if !root.try_exists()? {
        return Ok(learnt);
    }
    let directory = root.join(VERSION);
    files::create_private_directory(&directory)?;
    let _lock = lock(&directory)?;
    // Running processes have lessons and counts in memory, which they drop when they see another salt.
    files::replace(&directory.join(SALT), &[Salt::random().text().as_bytes()])?;
    for path in entries(&directory) {
        let name = path.file_name().unwrap_or_default();
        if name != SALT && name != LOCK {
            remove(&path)?;
        }
    }
    for path in entries(root).filter(|path| *path != directory) {
        remove(&path)?;
    }
    Ok(learnt)
}

/// Logs a failure of the files as a warning once in a process: each search and each batch of lessons may meet it again.
pub(super) fn warn_once(error: &io::Error, text: &'static str) {
    static WARNED: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    match WARNED.lock().insert(text) {
        true => tracing::warn!(%error, "{text}"),
        false => tracing::debug!(%error, "{text}"),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "json")
}

/// The salt; `None` if there is none, or an unreadable one, with which nothing was stored.
fn read_salt(directory: &Path) -> io::Result<Option<Salt>> {
    match files::read_regular(&directory.join(SALT), LARGEST) {
        Ok(text) => Ok(Salt::parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The counts of a file as of today; `None` without a file, and if it was written with another salt.
fn read_table(path: &Path, salt: Salt) -> io::Result<Option<Table>> {
    let bytes = match files::read_regular(path, LARGEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Written {
        salt: of_file,
        day,
        mut table,
    } = serde_json::from_slice(&bytes)?;
    let day = Day::parse(&day).filter(|_| table.is_sound());
    let day = day.ok_or_else(|| io::Error::other("has numbers that mcpzip does not write"))?;
    if of_file != salt.text() {
        return Ok(None);
    }
    table.age(day, Day::today());
    Ok(Some(table))
}

/// Locks the directory against other writers until the file is dropped.
fn lock(directory: &Path) -> io::Result<fs::File> {
    let file = files::open_lock(&directory.join(LOCK))?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(TRY),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Removes the files of people who have not been there for long. One that cannot be removed only takes up space.
fn remove_outdated(directory: &Path) {
    let is_outdated = |path: &PathBuf| {
        let written = fs::metadata(path).and_then(|metadata| metadata.modified());
        let age = written
            .ok()
            .and_then(|time| SystemTime::now().duration_since(time).ok());
        age.is_some_and(|age| age > OUTDATED)
    };
    for path in entries(directory).filter(|path| is_table(path) && is_outdated(path)) {
        let _ = fs::remove_file(path);
    }
}
