//! Events and their occurrences.

use serde::{Deserialize, Serialize};
use time::serde::rfc3339;
use time::{Duration, OffsetDateTime};

use crate::store::{Record, Records};

/// All events, in the order of their creation.
pub(super) type Calendar = Records<Event>;

/// An event. Tools return it in this form.
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

/// The repetition of an event: `count` occurrences in total, each `day` or each `week`.
#[derive(Serialize, Deserialize)]
pub(super) struct Repeat {
    pub(super) every: String,
    pub(super) count: i64,
}

/// One occurrence of an event.
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
    /// All occurrences of all events.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Event, Occurrence)> {
        self.items
            .iter()
            .flat_map(|event| event.occurrences().map(move |times| (event, times)))
    }

    /// The occurrences between two moments, by time.
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

/// The free parts of a period. `busy` is sorted by start.
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
