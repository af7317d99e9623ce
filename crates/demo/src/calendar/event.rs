//! Events and the moments at which they happen.

use serde::{Deserialize, Serialize};
use time::serde::rfc3339;
use time::{Duration, OffsetDateTime};

use crate::store::{Record, Records};

/// All events, in the order in which they were made.
pub(super) type Calendar = Records<Event>;

/// An event; also the shape in which tools answer it.
#[derive(Serialize, Deserialize)]
pub(super) struct Event {
    pub(super) id: i64,
    pub(super) title: String,
    #[serde(with = "rfc3339")]
    pub(super) start: OffsetDateTime,
    #[serde(with = "rfc3339")]
    pub(super) end: OffsetDateTime,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) location: String,
    pub(super) attendees: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) repeat: Option<Repeat>,
}

/// How often an event happens in all, each `day` or each `week`.
#[derive(Serialize, Deserialize)]
pub(super) struct Repeat {
    pub(super) every: String,
    pub(super) count: i64,
}

/// One of the times at which an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occurrence {
    pub(super) start: OffsetDateTime,
    pub(super) end: OffsetDateTime,
}

impl Record for Event {
    const NAME: &str = "event";
    fn id(&mut self) -> &mut i64 {
        &mut self.id
    }
}

impl Calendar {
    /// Each time at which each event happens.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Event, Occurrence)> {
        self.items
            .iter()
            .flat_map(|event| event.occurrences().map(move |times| (event, times)))
    }

    /// What happens between two moments, in order of time.
    pub(super) fn between(
        &self,
        from: OffsetDateTime,
        to: OffsetDateTime,
    ) -> Vec<(&Event, Occurrence)> {
        let is_within =
            |times: &Occurrence| times.start < to && (times.end > from || times.start >= from);
        let mut found: Vec<_> = self.all().filter(|(_, times)| is_within(times)).collect();
        found.sort_by_key(|(event, times)| (times.start, event.id));
        found
    }
}

impl Event {
    fn occurrences(&self) -> impl Iterator<Item = Occurrence> {
        let (step, count) = match &self.repeat {
            Some(Repeat { every, count }) if every == "week" => (Duration::WEEK, *count),
            Some(Repeat { count, .. }) => (Duration::DAY, *count),
            None => (Duration::ZERO, 1),
        };
        (0..count).map_while(move |turn| {
            let later = step * i32::try_from(turn).ok()?;
            Some(Occurrence {
                start: self.start.checked_add(later)?,
                end: self.end.checked_add(later)?,
            })
        })
    }
}

/// What is left of a stretch of time; `busy` is in order of its starts.
pub(super) fn gaps(
    from: OffsetDateTime,
    to: OffsetDateTime,
    busy: &[Occurrence],
) -> Vec<Occurrence> {
    let mut gaps = Vec::new();
    let mut free_from = from;
    for taken in busy.iter().take_while(|taken| taken.start < to) {
        if taken.start > free_from {
            gaps.push(Occurrence {
                start: free_from,
                end: taken.start,
            });
        }
        free_from = free_from.max(taken.end);
    }
    if to > free_from {
        gaps.push(Occurrence {
            start: free_from,
            end: to,
        });
    }
    gaps
}
