//! Tools that calculate with dates and times.

use serde_json::json;
use time::macros::format_description;
use time::{Date, Duration, OffsetDateTime, UtcOffset, Weekday};

use super::event::month_after;
use crate::demo::arguments::Arguments;
use crate::demo::moment;
use crate::demo::schema::{Field, Kind, required, with_default};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool};

const DATE: Field = required("date", Kind::Date, "The date, YYYY-MM-DD.");
const WEEKDAY: Field = required("weekday", Kind::Text, "The day of the week, in English.");
const AMOUNT: Kind = Kind::Integer(-4_000_000, 4_000_000);
const ANY: Kind = Kind::Integer(i64::MIN, i64::MAX);

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "current_time",
        title: "Current time",
        description: "Tell the current date, time and day of the week, in UTC or at a given offset from it.",
        effect: Effect::Reads,
        parameters: &[with_default(
            "offset",
            Kind::Text,
            "\"Z\"",
            "The offset from UTC, e.g. +01:00, or Z.",
        )],
        returns: &[required("time", Kind::Moment, "The time now."), WEEKDAY],
        run: |context, arguments| at_offset((context.now)(), arguments.text("offset")),
    },
    Tool {
        name: "convert_time",
        title: "Convert time",
        description: "Say what time it is elsewhere: convert a moment to another offset from UTC.",
        effect: Effect::Reads,
        parameters: &[
            required(
                "time",
                Kind::Moment,
                "The moment, e.g. 2026-03-01T09:00:00+01:00.",
            ),
            required(
                "offset",
                Kind::Text,
                "The offset wanted, e.g. -08:00, or Z.",
            ),
        ],
        returns: &[
            required("time", Kind::Moment, "The same moment at that offset."),
            WEEKDAY,
        ],
        run: |_, arguments| at_offset(arguments.moment("time")?, arguments.text("offset")),
    },
    Tool {
        name: "add_to_date",
        title: "Add to date",
        description: "Calculate the date some days, weeks, months or years after another, or before it with negative \
                      numbers. The last day of a shorter month stands in for a day that it does not have.",
        effect: Effect::Reads,
        parameters: &[
            DATE,
            with_default("days", AMOUNT, "0", "Days to add."),
            with_default("weeks", AMOUNT, "0", "Weeks to add."),
            with_default("months", AMOUNT, "0", "Months to add."),
            with_default(
                "years",
                AMOUNT,
                "0",
                "Years to add; months and years come first.",
            ),
        ],
        returns: &[DATE, WEEKDAY],
        run: add,
    },
    Tool {
        name: "add_business_days",
        title: "Add business days",
        description: "Calculate a deadline: the date some working days, Monday to Friday, after another or before it. \
                      Public holidays are not known.",
        effect: Effect::Reads,
        parameters: &[
            DATE,
            required(
                "days",
                Kind::Integer(-100_000, 100_000),
                "Working days to add.",
            ),
        ],
        returns: &[DATE, WEEKDAY],
        run: add_business_days,
    },
    Tool {
        name: "days_between",
        title: "Days between dates",
        description: "Count the days from one date to another, in all, in weeks, and those from Monday to Friday. \
                      Negative when the second date is the earlier one.",
        effect: Effect::Reads,
        parameters: &[
            required("from", Kind::Date, "The first date; counted."),
            required("to", Kind::Date, "The second date; not counted."),
        ],
        returns: &[
            required("days", ANY, "All days."),
            required("weeks", ANY, "Whole weeks in them."),
            required("days_over", ANY, "Days beyond the whole weeks."),
            required("business_days", ANY, "Days from Monday to Friday."),
        ],
        run: days_between,
    },
    Tool {
        name: "describe_date",
        title: "Describe date",
        description: "Tell the day of the week of a date, its ISO 8601 week, its day of the year, its quarter, and whether \
                      the year is a leap year.",
        effect: Effect::Reads,
        parameters: &[DATE],
        returns: &[
            WEEKDAY,
            required("iso_year", ANY, "The year that the ISO week belongs to."),
            required("iso_week", Kind::Integer(1, 53), "The ISO week."),
            required("day_of_year", Kind::Integer(1, 366), "The day of the year."),
            required("quarter", Kind::Integer(1, 4), "The quarter."),
            required("leap_year", Kind::Flag, "Whether the year has 366 days."),
            required(
                "days_in_month",
                Kind::Integer(28, 31),
                "How many days the month has.",
            ),
        ],
        run: describe,
    },
    Tool {
        name: "iso_week_dates",
        title: "Dates of an ISO week",
        description: "Tell from which Monday to which Sunday a calendar week lasts, by ISO 8601.",
        effect: Effect::Reads,
        parameters: &[
            required("year", Kind::Integer(1, 9998), "The year of the week."),
            required("week", Kind::Integer(1, 53), "The number of the week."),
        ],
        returns: &[
            required("monday", Kind::Date, "The first day."),
            required("sunday", Kind::Date, "The last day."),
        ],
        run: iso_week,
    },
];

fn at_offset(time: OffsetDateTime, offset: &str) -> Outcome {
    let format = format_description!("[offset_hour sign:mandatory]:[offset_minute]");
    let offset = match offset {
        "Z" | "z" | "UTC" => Some(UtcOffset::UTC),
        text => UtcOffset::parse(text, format).ok(),
    };
    let offset =
        offset.ok_or("`offset` must be an offset from UTC such as \"+01:00\", or \"Z\".")?;
    let time = time.checked_to_offset(offset).ok_or_else(beyond)?;
    Ok(Output::Data(
        json!({ "time": moment::written(time), "weekday": time.weekday().to_string() }),
    ))
}

fn add(_: &Context, arguments: &Arguments) -> Outcome {
    let date = arguments.date("date")?;
    let months = arguments.integer("years") * 12 + arguments.integer("months");
    let (year, month) = month_after(date, months).ok_or_else(beyond)?;
    let day = date.day().min(month.length(year));
    let date = Date::from_calendar_date(year, month, day)
        .ok()
        .and_then(|date| {
            date.checked_add(Duration::days(
                arguments.integer("weeks") * 7 + arguments.integer("days"),
            ))
        })
        .ok_or_else(beyond)?;
    date_answer(date)
}

fn add_business_days(_: &Context, arguments: &Arguments) -> Outcome {
    let mut date = arguments.date("date")?;
    let days = arguments.integer("days");
    let mut left = days.abs();
    while left > 0 {
        let neighbour = if days > 0 {
            date.next_day()
        } else {
            date.previous_day()
        };
        date = neighbour.ok_or_else(beyond)?;
        left -= i64::from(is_business_day(date));
    }
    date_answer(date)
}

fn days_between(_: &Context, arguments: &Arguments) -> Outcome {
    let (from, to) = (arguments.date("from")?, arguments.date("to")?);
    let days = (to - from).whole_days();
    let (earlier, sign) = if days < 0 { (to, -1) } else { (from, 1) };
    let weeks = days.abs() / 7;
    let over = std::iter::successors(Some(earlier), |day| day.next_day())
        .take(usize::try_from(days.abs() % 7).unwrap_or_default())
        .filter(|day| is_business_day(*day))
        .count();
    let business_days = sign * (weeks * 5 + i64::try_from(over).unwrap_or_default());
    Ok(Output::Data(json!({
        "days": days, "weeks": sign * weeks, "days_over": days % 7, "business_days": business_days,
    })))
}

fn describe(_: &Context, arguments: &Arguments) -> Outcome {
    let date = arguments.date("date")?;
    let (iso_year, iso_week, _) = date.to_iso_week_date();
    Ok(Output::Data(json!({
        "weekday": date.weekday().to_string(),
        "iso_year": iso_year,
        "iso_week": iso_week,
        "day_of_year": date.ordinal(),
        "quarter": u8::from(date.month()).div_ceil(3),
        "leap_year": time::util::is_leap_year(date.year()),
        "days_in_month": date.month().length(date.year()),
    })))
}

fn iso_week(_: &Context, arguments: &Arguments) -> Outcome {
    // The bounds of the declaration fit both types.
    let year = i32::try_from(arguments.integer("year")).unwrap_or_default();
    let week = u8::try_from(arguments.integer("week")).unwrap_or_default();
    let day = |weekday| Date::from_iso_week_date(year, week, weekday);
    match (day(Weekday::Monday), day(Weekday::Sunday)) {
        (Ok(monday), Ok(sunday)) => Ok(Output::Data(
            json!({ "monday": monday.to_string(), "sunday": sunday.to_string() }),
        )),
        _ => Err(format!(
            "The year {year} has {} weeks.",
            time::util::weeks_in_year(year)
        )),
    }
}

fn is_business_day(date: Date) -> bool {
    !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
}

fn date_answer(date: Date) -> Outcome {
    if !(0..=9999).contains(&date.year()) {
        return Err(beyond());
    }
    Ok(Output::Data(
        json!({ "date": date.to_string(), "weekday": date.weekday().to_string() }),
    ))
}

fn beyond() -> String {
    "That is beyond the calendar, which has the years 0 to 9999.".to_owned()
}
