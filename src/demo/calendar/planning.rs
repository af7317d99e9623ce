//! Tools that look for time.

use serde_json::json;
use time::macros::format_description;
use time::{Duration, OffsetDateTime, Time, Weekday};

use super::event::{Calendar, Occurrence};
use super::{FROM, OCCURRENCE, TO, file, occurrence_value, range};
use crate::demo::arguments::Arguments;
use crate::demo::moment;
use crate::demo::schema::{Field, Kind, required, with_default};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool};

const SLOT: &[Field] = &[
    required("start", Kind::Moment, "Where the free time begins."),
    required("end", Kind::Moment, "Where it ends."),
    required("minutes", Kind::Integer(1, i64::MAX), "How long it is."),
];

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "find_free_slots",
        title: "Find free time",
        description: "Find gaps in the calendar that are long enough for a meeting, within working hours, on working days \
                      unless told otherwise. Hours are taken in the UTC offset of `from`.",
        effect: Effect::Reads,
        parameters: &[
            FROM,
            TO,
            required(
                "minutes",
                Kind::Integer(1, 1440),
                "How long the gap must be.",
            ),
            with_default(
                "day_start",
                Kind::Text,
                "\"09:00\"",
                "Where a day begins, HH:MM.",
            ),
            with_default(
                "day_end",
                Kind::Text,
                "\"17:00\"",
                "Where a day ends, HH:MM.",
            ),
            with_default(
                "weekends",
                Kind::Flag,
                "false",
                "Whether Saturdays and Sundays count.",
            ),
            with_default(
                "limit",
                Kind::Integer(1, 500),
                "20",
                "How many gaps to return at most.",
            ),
        ],
        returns: &[required(
            "slots",
            Kind::List(&Kind::Object(SLOT)),
            "The gaps, earliest first, each in full length.",
        )],
        run: free_slots,
    },
    Tool {
        name: "check_conflicts",
        title: "Check conflicts",
        description: "Tell whether a stretch of time is free, and which events it would collide with.",
        effect: Effect::Reads,
        parameters: &[
            required("start", Kind::Moment, "Where the time begins."),
            required("end", Kind::Moment, "Where it ends."),
        ],
        returns: &[
            required("free", Kind::Flag, "Whether nothing else takes place."),
            required(
                "conflicts",
                Kind::List(&Kind::Object(OCCURRENCE)),
                "What does.",
            ),
        ],
        run: conflicts,
    },
];

fn free_slots(context: &Context, arguments: &Arguments) -> Outcome {
    let (from, to) = range(arguments, "from", "to")?;
    let (opens, closes) = (
        time_of_day(arguments, "day_start")?,
        time_of_day(arguments, "day_end")?,
    );
    if closes <= opens {
        return Err("`day_end` must be later than `day_start`.".to_owned());
    }
    let calendar: Calendar = file(&context.store).read()?;
    let busy: Vec<Occurrence> = calendar
        .between(from, to)
        .into_iter()
        .map(|(_, occurrence)| occurrence)
        .collect();
    let wanted = Duration::minutes(arguments.integer("minutes"));
    let days = std::iter::successors(Some(from.date()), |day| day.next_day())
        .take_while(|day| OffsetDateTime::new_in_offset(*day, Time::MIDNIGHT, from.offset()) < to)
        .filter(|day| {
            arguments.flag("weekends")
                || !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday)
        });
    let slots: Vec<_> = days
        .flat_map(|day| {
            let at = |time| OffsetDateTime::new_in_offset(day, time, from.offset());
            gaps(at(opens).max(from), at(closes).min(to), &busy)
        })
        .filter(|gap| gap.end - gap.start >= wanted)
        .take(arguments.size("limit"))
        .map(|gap| {
            json!({
                "start": moment::written(gap.start.checked_to_offset(from.offset()).unwrap_or(gap.start)),
                "end": moment::written(gap.end.checked_to_offset(from.offset()).unwrap_or(gap.end)),
                "minutes": (gap.end - gap.start).whole_minutes(),
            })
        })
        .collect();
    Ok(Output::Data(json!({ "slots": slots })))
}

/// What is left of a stretch of time; `busy` is in order of its starts.
fn gaps(from: OffsetDateTime, to: OffsetDateTime, busy: &[Occurrence]) -> Vec<Occurrence> {
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

fn conflicts(context: &Context, arguments: &Arguments) -> Outcome {
    let (start, end) = range(arguments, "start", "end")?;
    let calendar: Calendar = file(&context.store).read()?;
    let conflicts: Vec<_> = calendar
        .between(start, end)
        .into_iter()
        .map(occurrence_value)
        .collect();
    Ok(Output::Data(
        json!({ "free": conflicts.is_empty(), "conflicts": conflicts }),
    ))
}

fn time_of_day(arguments: &Arguments, name: &str) -> Result<Time, String> {
    Time::parse(arguments.text(name), format_description!("[hour]:[minute]"))
        .map_err(|_| format!("`{name}` must be a time of day such as \"09:00\"."))
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn overlapping_events_leave_one_gap_on_each_side() {
        let [a, b, c, d, e] =
            [9, 10, 11, 12, 13].map(|hour| datetime!(2026-03-04 0:00 UTC) + Duration::hours(hour));
        let taken = |start, end| Occurrence { start, end };
        assert_eq!(
            gaps(a, e, &[taken(b, d), taken(b, c)]),
            [taken(a, b), taken(d, e)]
        );
        assert_eq!(gaps(a, c, &[taken(a, d)]), []);
        assert_eq!(gaps(a, b, &[taken(c, d)]), [taken(a, b)]);
    }
}
