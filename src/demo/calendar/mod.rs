//! The calendar server: events in one file, and arithmetic with dates.
//!
//! Times carry their offset from UTC. There are no time zones: a rule for summer time needs a table that changes several
//! times a year, and a demonstration has no use for one.

mod dates;
mod event;
mod events;
mod planning;

use std::path::Path;

use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use self::event::{Event, Occurrence};
use super::arguments::Arguments;
use super::file::JsonFile;
use super::moment;
use super::schema::{Field, IDENTIFIER, Kind, TEXTS, optional, required, with_default};
use super::server::Service;

pub(super) const SERVICE: Service = Service {
    name: "calendar",
    title: "Calendar",
    instructions: "A calendar that lasts, with events that may repeat, free time and conflicts, and arithmetic with dates \
                   and ISO weeks. Times are RFC 3339 with an offset from UTC, dates are YYYY-MM-DD. Ask current_time \
                   first when a request says today or tomorrow.",
    groups: &[events::TOOLS, planning::TOOLS, dates::TOOLS],
};

const REPEAT: &[Field] = &[
    required(
        "every",
        Kind::Choice(&["day", "week", "month", "year"]),
        "The unit of repetition.",
    ),
    with_default(
        "interval",
        Kind::Integer(1, 1000),
        "1",
        "Every how many units, 2 for every other one.",
    ),
    optional(
        "count",
        Kind::Integer(1, 100_000),
        "How often it takes place in all. Without count and until, endlessly.",
    ),
    optional(
        "until",
        Kind::Date,
        "The last day on which it may take place.",
    ),
];

const EVENT: &[Field] = &[
    required("id", IDENTIFIER, "The event's number."),
    required("title", Kind::Text, "What it is."),
    required(
        "start",
        Kind::Moment,
        "When it begins; the first time, if it repeats.",
    ),
    required(
        "end",
        Kind::Moment,
        "When it ends; the first time, if it repeats.",
    ),
    optional("location", Kind::Text, "Where."),
    optional("notes", Kind::Text, "What else there is to know."),
    required("attendees", TEXTS, "Who takes part."),
    optional("repeat", Kind::Object(REPEAT), "How it repeats."),
    required(
        "skipped",
        Kind::List(&Kind::Date),
        "Days on which it does not take place after all.",
    ),
];

/// One time at which an event happens.
const OCCURRENCE: &[Field] = &[
    required("id", IDENTIFIER, "The event's number."),
    required("title", Kind::Text, "What it is."),
    required("start", Kind::Moment, "When it begins this time."),
    required("end", Kind::Moment, "When it ends this time."),
    optional("location", Kind::Text, "Where."),
];

const ID: Field = required(
    "id",
    IDENTIFIER,
    "The event's number, from list_events or search_events.",
);
const FROM: Field = required(
    "from",
    Kind::Moment,
    "Where the range begins, e.g. 2026-03-01T00:00:00+01:00.",
);
const TO: Field = required(
    "to",
    Kind::Moment,
    "Where it ends; this moment is no longer part of it.",
);

fn file(store: &Path) -> JsonFile {
    JsonFile::new(store, "calendar")
}

/// The two moments, of which the first must be the earlier one.
///
/// # Errors
/// When it is not, or the range is so long that an event of every day would fill the memory.
fn range(
    arguments: &Arguments,
    from: &str,
    to: &str,
) -> Result<(OffsetDateTime, OffsetDateTime), String> {
    const LONGEST: Duration = Duration::days(3 * 366);
    let range = (arguments.moment(from)?, arguments.moment(to)?);
    match range.1 - range.0 {
        length if !length.is_positive() => Err(format!("`{to}` must be later than `{from}`.")),
        length if length > LONGEST => Err(format!(
            "`{from}` and `{to}` may be three years apart at most."
        )),
        _ => Ok(range),
    }
}

fn occurrence_value((event, occurrence): (&Event, Occurrence)) -> Value {
    let mut value = json!({
        "id": event.id,
        "title": event.title,
        "start": moment::written(occurrence.start),
        "end": moment::written(occurrence.end),
    });
    if !event.location.is_empty() {
        value["location"] = event.location.clone().into();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::super::{Server, trial};
    use super::*;

    #[test]
    fn every_tool_for_events_and_dates_does_what_it_says() {
        let id = |id| json!({ "id": id });
        let week = json!({"from": "2026-03-02T00:00:00+01:00", "to": "2026-03-09T00:00:00+01:00"});
        trial::check(
            Server::Calendar,
            &[
                (
                    "create_event",
                    json!({"title": "Stand-up", "start": "2026-03-02T09:00:00+01:00", "minutes": 15,
                           "repeat": {"every": "day", "count": 4}, "attendees": ["Ada"]}),
                    json!({"id": 1, "end": "2026-03-02T09:15:00+01:00", "repeat": {"every": "day", "interval": 1, "count": 4}}),
                ),
                (
                    "create_event",
                    json!({"title": "Review", "start": "2026-03-04T14:00:00+01:00", "end": "2026-03-04T16:00:00+01:00", "location": "Room 2"}),
                    json!({"id": 2, "location": "Room 2", "attendees": [], "skipped": []}),
                ),
                (
                    "create_event",
                    json!({"title": "x", "start": "2026-03-04T14:00:00Z", "end": "2026-03-04T13:00:00Z"}),
                    json!({"error": "ends before it begins"}),
                ),
                (
                    "create_event",
                    json!({"title": "x", "start": "tomorrow"}),
                    json!({"error": "UTC offset"}),
                ),
                (
                    "create_event",
                    json!({"title": " ", "start": "2026-03-04T14:00:00Z"}),
                    json!({"error": "needs a title"}),
                ),
                ("get_event", id(2), json!({"title": "Review"})),
                ("get_event", id(7), json!({"error": "There is no event 7"})),
                (
                    "skip_occurrence",
                    json!({"id": 1, "date": "2026-03-03"}),
                    json!({"skipped": ["2026-03-03"]}),
                ),
                (
                    "skip_occurrence",
                    json!({"id": 1, "date": "2026-03-06"}),
                    json!({"error": "does not take place on 2026-03-06"}),
                ),
                (
                    "list_events",
                    week.clone(),
                    json!({"total": 4, "events": [
                        {"id": 1, "start": "2026-03-02T09:00:00+01:00"},
                        {"id": 1, "start": "2026-03-04T09:00:00+01:00"},
                        {"id": 2},
                        {"id": 1, "start": "2026-03-05T09:00:00+01:00"}
                    ]}),
                ),
                (
                    "list_events",
                    json!({"from": "2026-03-05T00:00:00Z", "to": "2026-03-05T00:00:00Z"}),
                    json!({"error": "`to` must be later"}),
                ),
                (
                    "search_events",
                    json!({"query": "room"}),
                    json!({"events": [{"id": 2}]}),
                ),
                (
                    "next_event",
                    json!({}),
                    json!({"found": true, "event": {"id": 2}}),
                ),
                (
                    "next_event",
                    json!({"after": "2026-03-04T15:00:00+01:00"}),
                    json!({"event": {"id": 1, "start": "2026-03-05T09:00:00+01:00"}}),
                ),
                (
                    "next_event",
                    json!({"after": "2027-01-01T00:00:00Z"}),
                    json!({"found": false}),
                ),
                (
                    "update_event",
                    json!({"id": 2, "location": "", "attendees": ["Bob"]}),
                    json!({"title": "Review", "attendees": ["Bob"]}),
                ),
                (
                    "move_event",
                    json!({"id": 2, "start": "2026-03-04T10:00:00+01:00"}),
                    json!({"end": "2026-03-04T12:00:00+01:00"}),
                ),
                (
                    "check_conflicts",
                    json!({"start": "2026-03-04T09:10:00+01:00", "end": "2026-03-04T10:00:00+01:00"}),
                    json!({"free": false, "conflicts": [{"id": 1}]}),
                ),
                (
                    "check_conflicts",
                    json!({"start": "2026-03-04T12:00:00+01:00", "end": "2026-03-04T13:00:00+01:00"}),
                    json!({"free": true, "conflicts": []}),
                ),
                (
                    "find_free_slots",
                    json!({"from": "2026-03-04T00:00:00+01:00", "to": "2026-03-05T00:00:00+01:00", "minutes": 60}),
                    json!({"slots": [{"start": "2026-03-04T12:00:00+01:00", "end": "2026-03-04T17:00:00+01:00", "minutes": 300}]}),
                ),
                (
                    "find_free_slots",
                    json!({"from": "2026-03-07T00:00:00Z", "to": "2026-03-09T00:00:00Z", "minutes": 60}),
                    json!({"slots": []}),
                ),
                (
                    "find_free_slots",
                    json!({"from": "2026-03-07T00:00:00Z", "to": "2026-03-09T00:00:00Z", "minutes": 60, "day_start": "9"}),
                    json!({"error": "`day_start` must be a time of day"}),
                ),
                (
                    "move_event",
                    json!({"id": 1, "start": "2026-03-03T08:00:00+01:00"}),
                    json!({"end": "2026-03-03T08:15:00+01:00", "skipped": ["2026-03-04"]}),
                ),
                ("delete_event", id(1), json!({"title": "Stand-up"})),
                (
                    "list_events",
                    week,
                    json!({"total": 1, "events": [{"id": 2}]}),
                ),
                (
                    "current_time",
                    json!({"offset": "+05:30"}),
                    json!({"time": "2026-03-04T15:30:00+05:30", "weekday": "Wednesday"}),
                ),
                (
                    "current_time",
                    json!({"offset": "CET"}),
                    json!({"error": "offset"}),
                ),
                (
                    "convert_time",
                    json!({"time": "2026-03-04T01:00:00+01:00", "offset": "-08:00"}),
                    json!({"time": "2026-03-03T16:00:00-08:00", "weekday": "Tuesday"}),
                ),
                (
                    "convert_time",
                    json!({"time": "2026-03-04T01:00:00+01:00", "offset": "Z"}),
                    json!({"time": "2026-03-04T00:00:00Z"}),
                ),
                (
                    "add_to_date",
                    json!({"date": "2026-01-31", "months": 1}),
                    json!({"date": "2026-02-28", "weekday": "Saturday"}),
                ),
                (
                    "add_to_date",
                    json!({"date": "2024-02-29", "years": 1, "days": -1}),
                    json!({"date": "2025-02-27"}),
                ),
                (
                    "add_to_date",
                    json!({"date": "9999-12-31", "weeks": 1}),
                    json!({"error": "beyond the calendar"}),
                ),
                (
                    "add_business_days",
                    json!({"date": "2026-03-06", "days": 1}),
                    json!({"date": "2026-03-09"}),
                ),
                (
                    "add_business_days",
                    json!({"date": "2026-03-08", "days": -6}),
                    json!({"date": "2026-02-27"}),
                ),
                (
                    "days_between",
                    json!({"from": "2026-03-04", "to": "2026-03-16"}),
                    json!({"days": 12, "weeks": 1, "days_over": 5, "business_days": 8}),
                ),
                (
                    "days_between",
                    json!({"from": "2026-03-09", "to": "2026-03-06"}),
                    json!({"days": -3, "business_days": -1}),
                ),
                (
                    "describe_date",
                    json!({"date": "2027-01-01"}),
                    json!({"weekday": "Friday", "iso_year": 2026, "iso_week": 53, "day_of_year": 1, "quarter": 1, "leap_year": false, "days_in_month": 31}),
                ),
                (
                    "iso_week_dates",
                    json!({"year": 2026, "week": 1}),
                    json!({"monday": "2025-12-29", "sunday": "2026-01-04"}),
                ),
                (
                    "iso_week_dates",
                    json!({"year": 2025, "week": 53}),
                    json!({"error": "2025 has 52 weeks"}),
                ),
            ],
        );
    }
}
