//! The calendar server: events in one file, and arithmetic with dates.
//!
//! Times carry their offset from UTC. There are no time zones: a rule for summer time needs a table that changes several
//! times a year.

mod dates;
mod event;

use std::sync::OnceLock;

use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Duration, OffsetDateTime, Time, Weekday};

use crate::store;
use crate::tool::Output::Data;
use crate::tool::{Arguments, Context, Outcome, Output, Service, whole};
use event::{Calendar, Event, Occurrence, Repeat};

pub(crate) static SERVICE: Service = Service {
    name: "calendar",
    title: "Calendar",
    instructions: "A calendar that lasts, with events that may repeat, free time and conflicts, and arithmetic with \
                   dates. Times are RFC 3339 with an offset from UTC, dates are YYYY-MM-DD. Ask current_time first \
                   when a request says today or tomorrow.",
    definitions: include_str!("tools.json"),
    tools: OnceLock::new(),
    call,
};

const FILE: &str = "calendar.json";
const BEYOND: &str = "That is beyond the calendar, which has the years 0 to 9999.";

fn call(tool: &str, context: &Context, args: &Arguments) -> Outcome {
    match tool {
        "create_event" => create(context, args),
        "get_event" => {
            let mut calendar: Calendar = store::read(&context.store, FILE)?;
            calendar
                .get(args.integer("id"))
                .map(|event| Output::of(event))
        }
        "list_events" => list(context, args),
        "search_events" => search(context, args),
        "update_event" => update(context, args),
        "move_event" => {
            let start = args.moment("start")?;
            edit(context, args, |event| {
                event.end = start.checked_add(event.end - event.start).ok_or(BEYOND)?;
                event.start = start;
                Ok(())
            })
        }
        "delete_event" => store::change(&context.store, FILE, |calendar: &mut Calendar| {
            calendar
                .remove(args.integer("id"))
                .map(|event| Output::of(&event))
        }),
        "find_free_slots" => free_slots(context, args),
        "check_conflicts" => {
            let (start, end) = range(args, "start", "end")?;
            let calendar: Calendar = store::read(&context.store, FILE)?;
            let conflicts: Vec<_> = calendar
                .between(start, end)
                .into_iter()
                .map(occurrence)
                .collect();
            Ok(Data(
                json!({ "free": conflicts.is_empty(), "conflicts": conflicts }),
            ))
        }
        _ => dates::call(tool, context, args),
    }
}

fn create(context: &Context, args: &Arguments) -> Outcome {
    let start = args.moment("start")?;
    let end = match args.get("end") {
        Some(_) => args.moment("end")?,
        None => start
            .checked_add(Duration::minutes(args.integer("minutes")))
            .ok_or(BEYOND)?,
    };
    if end < start {
        return Err("The event ends before it begins.".to_owned());
    }
    let event = Event {
        id: 0,
        title: args.title()?.unwrap_or_default(),
        start,
        end,
        location: args.text("location").trim().to_owned(),
        attendees: args.texts("attendees"),
        repeat: args.get("repeat").map(|repeat| Repeat {
            every: repeat["every"].as_str().unwrap_or_default().to_owned(),
            count: whole(&repeat["count"]).unwrap_or(1),
        }),
    };
    store::change(&context.store, FILE, |calendar: &mut Calendar| {
        Ok(Output::of(calendar.add(event)))
    })
}

fn list(context: &Context, args: &Arguments) -> Outcome {
    let (from, to) = range(args, "from", "to")?;
    let calendar: Calendar = store::read(&context.store, FILE)?;
    let found = calendar.between(from, to);
    let total = found.len();
    let events: Vec<_> = found
        .into_iter()
        .take(args.size("limit"))
        .map(occurrence)
        .collect();
    Ok(Data(json!({ "events": events, "total": total })))
}

fn search(context: &Context, args: &Arguments) -> Outcome {
    let mut calendar: Calendar = store::read(&context.store, FILE)?;
    let people = |event: &Event| event.attendees.join("\n");
    let text = |event: &Event| format!("{}\n{}\n{}", event.title, event.location, people(event));
    calendar.items.retain(|event| args.is_sought(&text(event)));
    Ok(Data(json!({ "events": calendar.items })))
}

fn update(context: &Context, args: &Arguments) -> Outcome {
    let title = args.title()?;
    edit(context, args, |event| {
        event.title = title.unwrap_or_else(|| std::mem::take(&mut event.title));
        if let Some(location) = args.optional_text("location") {
            location.trim().clone_into(&mut event.location);
        }
        if args.get("attendees").is_some() {
            event.attendees = args.texts("attendees");
        }
        Ok(())
    })
}

/// Changes the event with the given `id` and returns it.
fn edit(
    context: &Context,
    args: &Arguments,
    change: impl FnOnce(&mut Event) -> Result<(), String>,
) -> Outcome {
    store::change(&context.store, FILE, |calendar: &mut Calendar| {
        let event = calendar.get(args.integer("id"))?;
        change(event)?;
        Ok(Output::of(event))
    })
}

fn free_slots(context: &Context, args: &Arguments) -> Outcome {
    let (from, to) = range(args, "from", "to")?;
    let (opens, closes) = (
        time_of_day(args, "day_start")?,
        time_of_day(args, "day_end")?,
    );
    if closes <= opens {
        return Err("`day_end` must be later than `day_start`.".to_owned());
    }
    let calendar: Calendar = store::read(&context.store, FILE)?;
    let busy: Vec<_> = calendar
        .between(from, to)
        .into_iter()
        .map(|(_, times)| times)
        .collect();
    let wanted = Duration::minutes(args.integer("minutes"));
    let at = |day, time| OffsetDateTime::new_in_offset(day, time, from.offset());
    let is_wanted =
        |day: Weekday| args.flag("weekends") || !matches!(day, Weekday::Saturday | Weekday::Sunday);
    let slots: Vec<_> = std::iter::successors(Some(from.date()), |day| day.next_day())
        .take_while(|day| at(*day, Time::MIDNIGHT) < to)
        .filter(|day| is_wanted(day.weekday()))
        .flat_map(|day| event::gaps(at(day, opens).max(from), at(day, closes).min(to), &busy))
        .filter(|gap| gap.end - gap.start >= wanted)
        .take(args.size("limit"))
        .map(|gap| {
            let local = |moment: OffsetDateTime| {
                written(moment.checked_to_offset(from.offset()).unwrap_or(moment))
            };
            let minutes = (gap.end - gap.start).whole_minutes();
            json!({ "start": local(gap.start), "end": local(gap.end), "minutes": minutes })
        })
        .collect();
    Ok(Data(json!({ "slots": slots })))
}

fn time_of_day(args: &Arguments, name: &str) -> Result<Time, String> {
    Time::parse(args.text(name), format_description!("[hour]:[minute]"))
        .map_err(|_| format!("`{name}` must be a time of day such as \"09:00\"."))
}

/// Two moments in order of time.
///
/// # Errors
/// When they are in the wrong order, or so far apart that the answer would fill the memory.
fn range(
    args: &Arguments,
    from: &str,
    to: &str,
) -> Result<(OffsetDateTime, OffsetDateTime), String> {
    let range = (args.moment(from)?, args.moment(to)?);
    match range.1 - range.0 {
        length if !length.is_positive() => Err(format!("`{to}` must be later than `{from}`.")),
        length if length > Duration::days(3 * 366) => Err(format!(
            "`{from}` and `{to}` may be three years apart at most."
        )),
        _ => Ok(range),
    }
}

fn occurrence((event, times): (&Event, Occurrence)) -> Value {
    let mut value = json!({
        "id": event.id, "title": event.title, "start": written(times.start), "end": written(times.end),
    });
    if !event.location.is_empty() {
        value["location"] = event.location.clone().into();
    }
    value
}

/// The moment as RFC 3339 text. The format fails only for an offset with seconds, which no argument can contain.
fn written(moment: OffsetDateTime) -> String {
    moment
        .format(&Rfc3339)
        .unwrap_or_else(|_| moment.to_string())
}
