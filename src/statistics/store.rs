//! Stores statistics by day: in a file per day, or in a record per day in the store of several replicas. Each is changed under a lock and
//! replaced as a whole.

use std::collections::BTreeMap;
use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::DayRecord;
use crate::day::Day;
use crate::files;
use crate::store::{Records, State};

/// How long to wait for another process's lock.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// Number of days that are kept.
const KEPT: u32 = 400;

/// The statistics cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the statistics at `{path}`: {source}")]
pub struct Error {
    path: PathBuf,
    source: io::Error,
}

/// The place of the statistics.
#[derive(Debug, Clone)]
pub(crate) enum StatisticsStorage {
    /// A directory of this machine.
    Directory(PathBuf),
    /// The store of several replicas.
    Shared(Arc<dyn Records>),
}

impl StatisticsStorage {
    /// The store if the run has one, and otherwise `directory` below its state directory.
    #[must_use]
    pub(crate) fn of(state: &State, directory: &str) -> Self {
        match &state.shared {
            None => Self::Directory(state.directory.join(directory)),
            Some(shared) => Self::Shared(shared.clone()),
        }
    }

    /// Loads the statistics from the day `since` on.
    ///
    /// # Errors
    /// When they cannot be read. An unreadable day is skipped with a warning.
    pub(crate) fn load(&self, since: Option<Day>) -> Result<History, Error> {
        let records = match self {
            Self::Directory(directory) => return load(directory, since),
            Self::Shared(records) => records,
        };
        let since = since.map(|day| day.to_string());
        let days = records.counts(since.as_deref()).map_err(in_store)?;
        let days = days.iter().filter_map(|(day, body)| {
            let record = serde_json::from_slice(body);
            let record = record.inspect_err(|error| {
                tracing::warn!(%error, day, "a day of statistics cannot be read");
            });
            Some((Day::parse(day)?, record.ok()?))
        });
        Ok(History {
            days: days.collect(),
        })
    }

    /// Adds `record` to those of `day`.
    pub(super) fn add(&self, day: Day, record: &DayRecord) -> Result<(), Error> {
        let records = match self {
            Self::Directory(directory) => return add(directory, day, record),
            Self::Shared(records) => records,
        };
        let merge = &mut |known: Option<Vec<u8>>| {
            let known = known.map(|body| serde_json::from_slice::<DayRecord>(&body));
            let known = known.transpose().inspect_err(|error| {
                tracing::warn!(%error, %day, "a day of statistics is damaged, and is begun again");
            });
            let mut all = known.ok().flatten().unwrap_or_default();
            all.merge(record);
            serde_json::to_vec(&all).expect("numbers by names are JSON")
        };
        records.count(&day.to_string(), merge).map_err(in_store)
    }
}

fn in_store(source: io::Error) -> Error {
    Error {
        path: PathBuf::from("the store"),
        source,
    }
}

/// Statistics by day.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The days with any counts.
    pub days: BTreeMap<Day, DayRecord>,
}

impl History {
    /// The sum of all days.
    #[must_use]
    pub fn total(&self) -> DayRecord {
        let mut total = DayRecord::default();
        self.days.values().for_each(|day| total.merge(day));
        total
    }
}

/// Loads the statistics under `directory` from the day `since` on.
///
/// # Errors
/// When the directory cannot be read. An unreadable file is skipped with a warning.
pub(super) fn load(directory: &Path, since: Option<Day>) -> Result<History, Error> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(History::default()),
        Err(source) => {
            return Err(Error {
                path: directory.to_owned(),
                source,
            });
        }
    };
    let days = entries.flatten().filter_map(|entry| {
        let path = entry.path();
        let day = day_of(&path).filter(|day| since.is_none_or(|since| *day >= since))?;
        match read(&path) {
            Ok(record) => record.map(|record| (day, record)),
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "a day of statistics cannot be read");
                None
            }
        }
    });
    Ok(History {
        days: days.collect(),
    })
}

/// Adds `record` to the file of `day`.
fn add(directory: &Path, day: Day, record: &DayRecord) -> Result<(), Error> {
    let path = directory.join(format!("{day}.json"));
    let failed = |source| Error {
        path: path.clone(),
        source,
    };
    files::create_private_directory(directory).map_err(failed)?;
    let _lock = lock(&directory.join("lock")).map_err(failed)?;
    let mut all = match read(&path) {
        Ok(record) => record.unwrap_or_default(),
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "a day of statistics is damaged, and was set aside");
            fs::rename(&path, path.with_extension("damaged")).map_err(failed)?;
            DayRecord::default()
        }
    };
    all.merge(record);
    let json = serde_json::to_vec(&all).expect("numbers by names are JSON");
    files::replace(&path, &[&json]).map_err(failed)?;
    tidy(directory, day);
    Ok(())
}

fn read(path: &Path) -> io::Result<Option<DayRecord>> {
    match files::read_any(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Locks the statistics against other writers until the file is dropped.
fn lock(path: &Path) -> io::Result<fs::File> {
    let file = files::open_lock(path)?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if start.elapsed() < LOCK_LIMIT => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::from(io::ErrorKind::WouldBlock));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn day_of(path: &Path) -> Option<Day> {
    if path.extension()? != "json" {
        return None;
    }
    Day::parse(path.file_stem()?.to_str()?)
}

/// Removes days that are too old. One that cannot be removed only takes up space.
fn tidy(directory: &Path, today: Day) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if day_of(&path).is_some_and(|day| day < today.minus(KEPT)) {
            let _ = fs::remove_file(path);
        }
    }
}
