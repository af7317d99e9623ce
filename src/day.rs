//! Calendar days in UTC.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

const FORM: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");

const SECONDS: u64 = 24 * 60 * 60;

/// The time that this thread had the processor, where the system says so: other programs may have it for long.
#[cfg(test)]
pub(crate) fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let time = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(time))
}

/// A calendar day in UTC, which is the same for processes in different time zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(u32);

impl Day {
    /// The current day.
    #[must_use]
    pub fn today() -> Self {
        Self::of(SystemTime::now())
    }

    /// The day of `time`. Times before 1970 give the first day.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        let seconds = time
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        Self(u32::try_from(seconds / SECONDS).unwrap_or(u32::MAX))
    }

    /// Parses a date such as `2026-11-21`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let date = time::Date::parse(text, FORM).ok()?;
        let days = date.to_julian_day() - OffsetDateTime::UNIX_EPOCH.date().to_julian_day();
        u32::try_from(days).ok().map(Self)
    }

    /// The day `days` later.
    #[must_use]
    pub fn plus(self, days: u32) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// The day `days` earlier.
    #[must_use]
    pub fn minus(self, days: u32) -> Self {
        Self(self.0.saturating_sub(days))
    }

    /// The number of days from `earlier` to this day; 0 if that is later.
    #[must_use]
    pub fn days_since(self, earlier: Self) -> u32 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Formats the day like `2026-11-21`.
impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = UNIX_EPOCH + Duration::from_secs(u64::from(self.0) * SECONDS);
        let text = OffsetDateTime::from(time)
            .date()
            .format(FORM)
            .map_err(|_| fmt::Error)?;
        f.write_str(&text)
    }
}

/// Reads a date, or a number of days or weeks that ends today, such as `7d` or `2w`.
pub(crate) fn since(text: &str) -> Result<Day, String> {
    let back = |number: &str, days: u32| number.parse::<u32>().ok()?.checked_mul(days);
    let days = match text.strip_suffix('d') {
        Some(number) => back(number, 1),
        None => text.strip_suffix('w').and_then(|number| back(number, 7)),
    };
    let counted = days
        .filter(|days| *days > 0)
        .map(|days| Day::today().minus(days - 1));
    counted.or_else(|| Day::parse(text)).ok_or_else(|| {
        "a number of days or weeks such as 7d or 4w, or a date such as 2026-11-01".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_written_as_it_is_read() {
        for text in ["1970-01-01", "2026-11-21", "2028-02-29"] {
            assert_eq!(Day::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            Day::parse("2026-11-21").unwrap().plus(10).to_string(),
            "2026-12-01"
        );
        assert_eq!(
            Day::parse("2026-03-01").unwrap().minus(1).to_string(),
            "2026-02-28"
        );
        for text in ["", "2026-13-01", "21.11.2026", "1969-12-31"] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
    }

    #[test]
    fn days_weeks_and_dates_are_understood() {
        let today = Day::today();
        assert_eq!(since("1d"), Ok(today));
        assert_eq!(since("7d"), Ok(today.minus(6)));
        assert_eq!(since("2w"), Ok(today.minus(13)));
        assert_eq!(since("2026-11-01"), Ok(Day::parse("2026-11-01").unwrap()));
        for wrong in ["", "d", "0d", "-1d", "7", "yesterday", "99999999999w"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
