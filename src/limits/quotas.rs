//! The counts of days and months, in a file: written a second after they change, and at the end of the run.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use time::{Date, OffsetDateTime, Time};

use super::{Exceeded, Key, Limits, State};
use crate::files;

/// The file, below the state directory.
const FILE: &str = "limits/used.json";
/// The version of the file's form.
const VERSION: u32 = 1;
/// The largest file, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;
/// The interval at which changes are written.
const WRITE: Duration = Duration::from_secs(1);

/// The state of the quotas.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    /// Whether the file was read.
    pub(super) is_known: bool,
    /// Whether the counts differ from the file.
    pub(super) is_changed: bool,
    /// The last attempt to read the file, if it failed.
    failed: Option<Instant>,
}

/// The use in one day or month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Period {
    /// The number of the day or month.
    number: i32,
    pub(super) calls: u64,
    pub(super) bytes: u64,
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    used: Vec<Used>,
}

/// The use of one limit.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Used {
    limit: String,
    /// The identity; absent for all people together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    who: Option<String>,
    day: Period,
    month: Period,
}

impl Period {
    /// Begins again if the day or month is another one.
    pub(super) fn turn(&mut self, number: i32) {
        if self.number != number {
            *self = Self {
                number,
                ..Self::default()
            };
        }
    }
}

/// The file below a state directory.
pub(super) fn file_below(state_dir: &Path) -> PathBuf {
    state_dir.join(FILE)
}

/// The number of the current day.
pub(super) fn day() -> i32 {
    OffsetDateTime::now_utc().to_julian_day()
}

/// The number of the current month.
pub(super) fn month() -> i32 {
    let now = OffsetDateTime::now_utc();
    now.year() * 12 + i32::from(u8::from(now.month())) - 1
}

/// The time until the next day.
pub(super) fn until_tomorrow() -> Duration {
    let now = OffsetDateTime::now_utc();
    until(now, now.date().next_day())
}

/// The time until the next month.
pub(super) fn until_next_month() -> Duration {
    let now = OffsetDateTime::now_utc();
    let next = now.month().next();
    let year = now.year() + i32::from(next == time::Month::January);
    until(now, Date::from_calendar_date(year, next, 1).ok())
}

fn until(now: OffsetDateTime, day: Option<Date>) -> Duration {
    // There is a next day until the year 9999.
    let then = day.map_or(now, |day| day.with_time(Time::MIDNIGHT).assume_utc());
    Duration::try_from(then - now).unwrap_or_default()
}

impl Limits {
    /// Reads the quotas' counts, the first time that one is asked for, and writes changes from then on.
    pub(super) fn read_quotas(self: &Arc<Self>) -> Result<(), Exceeded> {
        let mut state = self.state.lock();
        if state.quotas.is_known {
            return Ok(());
        }
        if state.quotas.failed.is_some_and(|at| at.elapsed() < WRITE) {
            return Err(Exceeded::Unknown);
        }
        if let Some(file) = &self.file {
            if let Err(error) = state.read(file) {
                let file = file.display();
                tracing::error!(%file, %error, "what was used of the quotas cannot be read, so calls with a quota are refused; without the file, counting begins again");
                state.quotas.failed = Some(Instant::now());
                return Err(Exceeded::Unknown);
            }
            let limits = self.clone();
            self.tasks.spawn(async move { limits.follow().await });
        }
        state.quotas.is_known = true;
        Ok(())
    }

    async fn follow(&self) {
        loop {
            let ends = tokio::select! {
                () = tokio::time::sleep(WRITE) => false,
                () = self.tasks.stopped() => true,
            };
            self.flush();
            if ends {
                return;
            }
        }
    }

    /// Writes the quotas' counts if they have changed.
    pub(crate) fn flush(&self) {
        let Some(file) = &self.file else { return };
        let written = {
            let mut state = self.state.lock();
            if !std::mem::take(&mut state.quotas.is_changed) {
                return;
            }
            state.written()
        };
        let write = || {
            if let Some(directory) = file.parent() {
                files::create_private_directory(directory)?;
            }
            files::replace(file, &[&serde_json::to_vec(&written)?])
        };
        if let Err(error) = write() {
            let file = file.display();
            tracing::error!(%file, %error, "what was used of the quotas cannot be written");
            self.state.lock().quotas.is_changed = true;
        }
    }
}

impl State {
    fn read(&mut self, file: &Path) -> io::Result<()> {
        let bytes = match files::read_regular(file, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let written: Written = serde_json::from_slice(&bytes)?;
        if written.version != VERSION {
            return Err(io::Error::other("another version of mcpzip wrote it"));
        }
        for Used {
            limit,
            who,
            day,
            month,
        } in written.used
        {
            let who = who.map(Into::into);
            let counts = self.counts.entry(Key { limit, who }).or_default();
            (counts.day, counts.month) = (day, month);
        }
        Ok(())
    }

    fn written(&self) -> Written {
        let (day, month) = (day(), month());
        let is_current = |period: &Period, number| period.number == number && period.calls > 0;
        let used = self
            .counts
            .iter()
            .filter(|(_, counts)| is_current(&counts.day, day) || is_current(&counts.month, month));
        let used = used.map(|(key, counts)| Used {
            limit: key.limit.clone(),
            who: key.who.as_deref().map(str::to_owned),
            day: counts.day,
            month: counts.month,
        });
        Written {
            version: VERSION,
            used: used.collect(),
        }
    }
}
