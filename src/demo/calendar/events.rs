//! Tools that keep events.

use serde_json::{Value, json};
use time::Duration;

use super::event::{Calendar, Day, Event, Repeat, Unit};
use super::{EVENT, FROM, ID, OCCURRENCE, REPEAT, TO, file, occurrence_value, range};
use crate::demo::arguments::Arguments;
use crate::demo::schema::{COUNT, Kind, TEXTS, optional, required, with_default};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "create_event",
        title: "Create event",
        description: "Put an event into the calendar: a meeting, an appointment, a reminder. It may repeat by day, week, \
                      month or year. Give its end, or its length in minutes.",
        effect: Effect::Adds,
        parameters: &[
            required("title", Kind::Text, "What it is."),
            required(
                "start",
                Kind::Moment,
                "When it begins, e.g. 2026-03-01T09:00:00+01:00.",
            ),
            optional("end", Kind::Moment, "When it ends; comes before `minutes`."),
            with_default(
                "minutes",
                Kind::Integer(0, 527_040),
                "60",
                "How long it lasts, when no end is given.",
            ),
            with_default("location", Kind::Text, "\"\"", "Where."),
            with_default("notes", Kind::Text, "\"\"", "What else there is to know."),
            with_default(
                "attendees",
                TEXTS,
                "[]",
                "Who takes part, names or addresses.",
            ),
            optional(
                "repeat",
                Kind::Object(REPEAT),
                "How it repeats; left out, it takes place once.",
            ),
        ],
        returns: EVENT,
        run: create,
    },
    Tool {
        name: "get_event",
        title: "Read event",
        description: "Read one event in full by its id: times, place, people, repetition.",
        effect: Effect::Reads,
        parameters: &[ID],
        returns: EVENT,
        run: |context, arguments| {
            let mut calendar: Calendar = file(&context.store).read()?;
            Ok(data(calendar.event(arguments.integer("id"))?))
        },
    },
    Tool {
        name: "list_events",
        title: "List events",
        description: "List what is in the calendar between two moments, the agenda of a day, a week or a month, in order \
                      of time. An event that repeats is listed each time it takes place.",
        effect: Effect::Reads,
        parameters: &[
            FROM,
            TO,
            with_default(
                "limit",
                Kind::Integer(1, 5000),
                "100",
                "How many to return at most.",
            ),
        ],
        returns: &[
            required(
                "events",
                Kind::List(&Kind::Object(OCCURRENCE)),
                "What takes place.",
            ),
            required(
                "total",
                COUNT,
                "How many there are in all, also beyond the limit.",
            ),
        ],
        run: list,
    },
    Tool {
        name: "search_events",
        title: "Search events",
        description: "Find events by words in their title, place, notes or attendees, whenever they take place.",
        effect: Effect::Reads,
        parameters: &[required(
            "query",
            Kind::Text,
            "Words that must all be there, letter case aside.",
        )],
        returns: &[required(
            "events",
            Kind::List(&Kind::Object(EVENT)),
            "The events.",
        )],
        run: search,
    },
    Tool {
        name: "next_event",
        title: "Next event",
        description: "Tell which event begins next, from now on or after a given moment.",
        effect: Effect::Reads,
        parameters: &[optional(
            "after",
            Kind::Moment,
            "The moment to look from; now when left out.",
        )],
        returns: &[
            required("found", Kind::Flag, "Whether there is one."),
            optional("event", Kind::Object(OCCURRENCE), "The event."),
        ],
        run: next,
    },
    Tool {
        name: "update_event",
        title: "Update event",
        description: "Change what an event says: title, place, notes, attendees. What is left out stays. To change its \
                      time, use move_event.",
        effect: Effect::Replaces,
        parameters: &[
            ID,
            optional("title", Kind::Text, "The new title."),
            optional(
                "location",
                Kind::Text,
                "The new place; an empty text removes it.",
            ),
            optional(
                "notes",
                Kind::Text,
                "The new notes; an empty text removes them.",
            ),
            optional(
                "attendees",
                TEXTS,
                "All attendees, in place of the old ones.",
            ),
        ],
        returns: EVENT,
        run: update,
    },
    Tool {
        name: "move_event",
        title: "Move event",
        description: "Reschedule an event: it begins at another moment and lasts as long as before. One that repeats is \
                      moved with all its repetitions.",
        effect: Effect::Replaces,
        parameters: &[ID, required("start", Kind::Moment, "When it begins now.")],
        returns: EVENT,
        run: shift,
    },
    Tool {
        name: "skip_occurrence",
        title: "Skip one occurrence",
        description: "Cancel an event on one day only and keep its other repetitions.",
        effect: Effect::Replaces,
        parameters: &[
            ID,
            required(
                "date",
                Kind::Date,
                "The day on which it does not take place.",
            ),
        ],
        returns: EVENT,
        run: skip,
    },
    Tool {
        name: "delete_event",
        title: "Delete event",
        description: "Remove an event and all its repetitions from the calendar for good. Returns it as it was.",
        effect: Effect::Replaces,
        parameters: &[ID],
        returns: EVENT,
        run: |context, arguments| {
            let id = arguments.integer("id");
            file(&context.store).change(|calendar: &mut Calendar| {
                let gone = calendar.event(id)?.clone();
                calendar.events.retain(|event| event.id != id);
                Ok(data(&gone))
            })
        },
    },
];

fn create(context: &Context, arguments: &Arguments) -> Outcome {
    let start = arguments.moment("start")?;
    let lasting = Duration::minutes(arguments.integer("minutes"));
    let end = arguments
        .optional_moment("end")
        .or_else(|| start.checked_add(lasting))
        .ok_or("The event ends beyond the calendar, which has years up to 9999.")?;
    if end < start {
        return Err("The event ends before it begins.".to_owned());
    }
    // One that repeats and lasts for centuries would be there many thousand times at once.
    if end - start > Duration::days(366) {
        return Err("An event may last a year at most.".to_owned());
    }
    titled(arguments.text("title"))?;
    let texts = |name| arguments.text(name).trim().to_owned();
    let mut event = Event {
        id: 0,
        title: texts("title"),
        start,
        end,
        location: texts("location"),
        notes: texts("notes"),
        attendees: arguments
            .texts("attendees")
            .into_iter()
            .map(str::to_owned)
            .collect(),
        repeat: arguments.object("repeat").map(|repeat| repetition(&repeat)),
        skipped: Vec::new(),
    };
    file(&context.store).change(|calendar: &mut Calendar| {
        calendar.last_id += 1;
        event.id = calendar.last_id;
        calendar.events.push(event.clone());
        Ok(data(&event))
    })
}

fn repetition(arguments: &Arguments) -> Repeat {
    Repeat {
        every: match arguments.text("every") {
            "day" => Unit::Day,
            "week" => Unit::Week,
            "month" => Unit::Month,
            _ => Unit::Year,
        },
        interval: arguments.integer("interval"),
        count: arguments
            .optional_integer("count")
            .and_then(|count| usize::try_from(count).ok()),
        until: arguments.optional_date("until").map(Day),
    }
}

fn list(context: &Context, arguments: &Arguments) -> Outcome {
    let (from, to) = range(arguments, "from", "to")?;
    let calendar: Calendar = file(&context.store).read()?;
    let found = calendar.between(from, to);
    let total = found.len();
    let events: Vec<Value> = found
        .into_iter()
        .take(arguments.size("limit"))
        .map(occurrence_value)
        .collect();
    Ok(Output::Data(json!({ "events": events, "total": total })))
}

fn search(context: &Context, arguments: &Arguments) -> Outcome {
    let words: Vec<_> = arguments
        .text("query")
        .split_whitespace()
        .map(str::to_lowercase)
        .collect();
    let calendar: Calendar = file(&context.store).read()?;
    let found: Vec<_> = calendar
        .events
        .iter()
        .filter(|event| {
            let people = event.attendees.join("\n");
            let text = [&event.title, &event.location, &event.notes, &people]
                .map(|part| part.to_lowercase())
                .join("\n");
            words.iter().all(|word| text.contains(word))
        })
        .collect();
    Ok(Output::Data(json!({ "events": found })))
}

fn next(context: &Context, arguments: &Arguments) -> Outcome {
    let after = arguments
        .optional_moment("after")
        .unwrap_or_else(context.now);
    let calendar: Calendar = file(&context.store).read()?;
    let next = calendar
        .events
        .iter()
        .filter_map(|event| {
            Some((
                event,
                event
                    .occurrences_from(after)
                    .find(|occurrence| occurrence.start >= after)?,
            ))
        })
        .min_by_key(|(event, occurrence)| (occurrence.start, event.id));
    Ok(Output::Data(match next {
        Some(found) => json!({ "found": true, "event": occurrence_value(found) }),
        None => json!({ "found": false }),
    }))
}

fn update(context: &Context, arguments: &Arguments) -> Outcome {
    arguments.optional_text("title").map_or(Ok(()), titled)?;
    edit(context, arguments, |event| {
        for (field, name) in [
            (&mut event.title, "title"),
            (&mut event.location, "location"),
            (&mut event.notes, "notes"),
        ] {
            if let Some(text) = arguments.optional_text(name) {
                text.trim().clone_into(field);
            }
        }
        if arguments.get("attendees").is_some() {
            event.attendees = arguments
                .texts("attendees")
                .into_iter()
                .map(str::to_owned)
                .collect();
        }
        Ok(())
    })
}

fn shift(context: &Context, arguments: &Arguments) -> Outcome {
    let start = arguments.moment("start")?;
    edit(context, arguments, |event| {
        let lasting = event.end - event.start;
        event.end = start
            .checked_add(lasting)
            .ok_or("The event ends beyond the calendar, which has years up to 9999.")?;
        // Days that were skipped move along, so that the same repetitions stay away.
        let moved = start.date() - event.start.date();
        event.skipped = event
            .skipped
            .iter()
            .filter_map(|day| day.0.checked_add(moved).map(Day))
            .collect();
        event.start = start;
        Ok(())
    })
}

fn skip(context: &Context, arguments: &Arguments) -> Outcome {
    let date = arguments.date("date")?;
    edit(context, arguments, |event| {
        let morning = date.midnight().assume_offset(event.start.offset());
        let found = event
            .occurrences_from(morning)
            .map(|occurrence| occurrence.start.date())
            .find(|day| *day >= date);
        if found != Some(date) {
            return Err(format!("The event does not take place on {date}."));
        }
        event.skipped.push(Day(date));
        Ok(())
    })
}

/// Changes an event and answers it.
fn edit(
    context: &Context,
    arguments: &Arguments,
    change: impl FnOnce(&mut Event) -> Result<(), String>,
) -> Outcome {
    file(&context.store).change(|calendar: &mut Calendar| {
        let event = calendar.event(arguments.integer("id"))?;
        change(event)?;
        Ok(data(event))
    })
}

fn titled(title: &str) -> Result<(), String> {
    if title.trim().is_empty() {
        Err("An event needs a title.".to_owned())
    } else {
        Ok(())
    }
}

fn data(event: &Event) -> Output {
    Output::Data(serde_json::to_value(event).unwrap_or_default())
}
