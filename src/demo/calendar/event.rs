//! Events and the moments at which they happen.
//!
//! Recurrence follows iCalendar (RFC 5545, section 3.3.10) in what a day that does not exist means: an event on the 31st
//! is left out in a month of thirty days, rather than moved.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::{Date, Duration, Month, OffsetDateTime};

use crate::demo::arguments::parse_date;
use crate::demo::moment;

/// All events, in the order in which they were made.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Calendar {
    /// The last number given to an event. Numbers of deleted events are not given again.
    pub(super) last_id: i64,
    pub(super) events: Vec<Event>,
}

/// An event; also the shape in which tools answer it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Event {
    pub(super) id: i64,
    pub(super) title: String,
    #[serde(with = "moment")]
    pub(super) start: OffsetDateTime,
    #[serde(with = "moment")]
    pub(super) end: OffsetDateTime,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) location: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) notes: String,
    pub(super) attendees: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) repeat: Option<Repeat>,
    /// Days, in the offset of `start`, on which it does not take place after all.
    #[serde(default)]
    pub(super) skipped: Vec<Day>,
}

/// How an event repeats.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Repeat {
    pub(super) every: Unit,
    /// Every how many units.
    pub(super) interval: i64,
    /// How often in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<usize>,
    /// The last day on which it may begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<Day>,
}

/// A unit of repetition.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Unit {
    Day,
    Week,
    Month,
    Year,
}

/// A day as text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Day(pub(super) Date);

/// One of the times at which an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occurrence {
    pub(super) start: OffsetDateTime,
    pub(super) end: OffsetDateTime,
}

impl Calendar {
    /// The event of that number.
    ///
    /// # Errors
    /// When there is none, with how to find one.
    pub(super) fn event(&mut self, id: i64) -> Result<&mut Event, String> {
        self.events
            .iter_mut()
            .find(|event| event.id == id)
            .ok_or_else(|| {
                format!(
                    "There is no event {id}. list_events and search_events show which there are."
                )
            })
    }

    /// What happens between two moments, in order of time.
    pub(super) fn between(
        &self,
        from: OffsetDateTime,
        to: OffsetDateTime,
    ) -> Vec<(&Event, Occurrence)> {
        let mut found: Vec<_> = self
            .events
            .iter()
            .flat_map(|event| {
                event
                    .occurrences_from(from)
                    .map(move |occurrence| (event, occurrence))
                    .take_while(|(_, o)| o.start < to)
            })
            .collect();
        found.sort_by_key(|(event, occurrence)| (occurrence.start, event.id));
        found
    }
}

impl Event {
    /// Each time it happens that is not over by `from`, in order; endless when it repeats without end.
    pub(super) fn occurrences_from(
        &self,
        from: OffsetDateTime,
    ) -> impl Iterator<Item = Occurrence> + '_ {
        let length = self.end - self.start;
        self.starts(from)
            .filter(|start| self.skipped.iter().all(|day| day.0 != start.date()))
            .map_while(move |start| {
                Some(Occurrence {
                    start,
                    end: start.checked_add(length)?,
                })
            })
            .skip_while(move |occurrence| occurrence.end <= from && occurrence.start < from)
    }

    /// When it begins; times that are long over by `from` may be left out.
    fn starts(&self, from: OffsetDateTime) -> impl Iterator<Item = OffsetDateTime> + '_ {
        let once = Repeat {
            every: Unit::Day,
            interval: 1,
            count: Some(1),
            until: None,
        };
        let Repeat {
            every,
            interval,
            count,
            until,
        } = self.repeat.clone().unwrap_or(once);
        // Days and weeks always exist, so their turns can be counted instead of tried; `end` leaves room for the length.
        let over = match every {
            Unit::Day => (from - self.end).whole_days() / interval,
            Unit::Week => (from - self.end).whole_weeks() / interval,
            Unit::Month | Unit::Year => 0,
        };
        let over = usize::try_from(over).unwrap_or_default();
        (over..)
            .map_while(move |turn| {
                every.after(self.start, i64::try_from(turn).ok()?.checked_mul(interval)?)
            })
            .flatten()
            .take(count.unwrap_or(usize::MAX).saturating_sub(over))
            .take_while(move |start| until.is_none_or(|day| start.date() <= day.0))
    }
}

impl Unit {
    /// `start` moved by `n` units. The outer `None` is the end of the calendar, the inner one a day that does not exist.
    fn after(self, start: OffsetDateTime, n: i64) -> Option<Option<OffsetDateTime>> {
        match self {
            Self::Day => start.checked_add(Duration::days(n)).map(Some),
            Self::Week => start
                .checked_add(Duration::days(n.checked_mul(7)?))
                .map(Some),
            Self::Month => {
                let (year, month) = month_after(start.date(), n)?;
                Some(
                    Date::from_calendar_date(year, month, start.day())
                        .ok()
                        .map(|date| start.replace_date(date)),
                )
            }
            Self::Year => Self::Month.after(start, n.checked_mul(12)?),
        }
    }
}

/// The month that lies `n` months after the one of `date`; `None` beyond the calendar.
pub(super) fn month_after(date: Date, n: i64) -> Option<(i32, Month)> {
    let months =
        (i64::from(date.year()) * 12 + i64::from(u8::from(date.month())) - 1).checked_add(n)?;
    let year = i32::try_from(months.div_euclid(12))
        .ok()
        .filter(|year| (0..=9999).contains(year))?;
    let month = u8::try_from(months.rem_euclid(12)).ok()?;
    Some((year, Month::try_from(month + 1).ok()?))
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_date(&text)
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("`{text}` is no date")))
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    fn hour(start: OffsetDateTime, repeat: Repeat) -> Event {
        Event {
            id: 1,
            title: String::new(),
            start,
            end: start + Duration::HOUR,
            location: String::new(),
            notes: String::new(),
            attendees: Vec::new(),
            repeat: Some(repeat),
            skipped: Vec::new(),
        }
    }

    /// The first days of an event that begins on `start`.
    fn days(start: OffsetDateTime, repeat: Repeat) -> Vec<String> {
        let event = hour(start, repeat);
        event
            .occurrences_from(start)
            .take(4)
            .map(|occurrence| occurrence.start.date().to_string())
            .collect()
    }

    #[test]
    fn a_day_that_a_month_does_not_have_is_left_out() {
        let repeat = |every, interval| Repeat {
            every,
            interval,
            count: None,
            until: None,
        };
        let january = datetime!(2026-01-31 09:00 +1);
        assert_eq!(
            days(january, repeat(Unit::Month, 1)),
            ["2026-01-31", "2026-03-31", "2026-05-31", "2026-07-31"]
        );
        let leap = datetime!(2024-02-29 09:00 UTC);
        assert_eq!(
            days(leap, repeat(Unit::Year, 1)),
            ["2024-02-29", "2028-02-29", "2032-02-29", "2036-02-29"]
        );
    }

    #[test]
    fn repetition_ends_by_count_by_day_or_with_the_calendar() {
        let start = datetime!(2026-03-02 09:00 UTC);
        let weekly = |count, until: Option<Date>| Repeat {
            every: Unit::Week,
            interval: 2,
            count,
            until: until.map(Day),
        };
        assert_eq!(
            days(start, weekly(Some(2), None)),
            ["2026-03-02", "2026-03-16"]
        );
        assert_eq!(
            days(start, weekly(None, parse_date("2026-03-30"))),
            ["2026-03-02", "2026-03-16", "2026-03-30"]
        );
        let late = datetime!(9999-11-30 09:00 UTC);
        let monthly = Repeat {
            every: Unit::Month,
            interval: 1,
            count: None,
            until: None,
        };
        assert_eq!(days(late, monthly), ["9999-11-30", "9999-12-30"]);
    }

    #[test]
    fn looking_from_later_finds_the_same_times() {
        let start = datetime!(2026-01-31 09:00 +1);
        for (every, interval, count) in [
            (Unit::Day, 3, Some(40)),
            (Unit::Week, 2, None),
            (Unit::Month, 1, Some(5)),
            (Unit::Day, 1, Some(30)),
        ] {
            let event = hour(
                start,
                Repeat {
                    every,
                    interval,
                    count,
                    until: None,
                },
            );
            let all: Vec<_> = event.occurrences_from(start).take(60).collect();
            for hours in 0..1500 {
                let from = start + Duration::hours(hours);
                let expected = all.iter().find(|occurrence| occurrence.end > from).copied();
                assert_eq!(
                    event.occurrences_from(from).next(),
                    expected,
                    "{hours} hours later"
                );
            }
        }
    }
}
