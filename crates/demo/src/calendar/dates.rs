//! Tools that calculate with dates and times.

use serde_json::json;
use time::macros::format_description;
use time::{Date, Duration, Month, OffsetDateTime, UtcOffset, Weekday};

use super::{BEYOND, written};
use crate::tool::Output::Data;
use crate::tool::{Arguments, Context, Outcome};

pub(super) fn call(tool: &str, context: &Context, args: &Arguments) -> Outcome {
    match tool {
        "current_time" => at_offset((context.now)(), args.text("offset")),
        "convert_time" => at_offset(args.moment("time")?, args.text("offset")),
        "add_to_date" => add(args),
        "days_between" => days_between(args),
        "describe_date" => describe(args),
        _ => Err(format!("there is no tool `{tool}`")),
    }
}

fn at_offset(time: OffsetDateTime, offset: &str) -> Outcome {
    let format = format_description!("[offset_hour sign:mandatory]:[offset_minute]");
    let offset = match offset {
        "Z" | "z" | "UTC" => Some(UtcOffset::UTC),
        text => UtcOffset::parse(text, format).ok(),
    };
    let offset =
        offset.ok_or("`offset` must be an offset from UTC such as \"+01:00\", or \"Z\".")?;
    let time = time.checked_to_offset(offset).ok_or(BEYOND)?;
    Ok(Data(
        json!({ "time": written(time), "weekday": time.weekday().to_string() }),
    ))
}

fn add(args: &Arguments) -> Outcome {
    let date = args.date("date")?;
    let months = args.integer("years") * 12 + args.integer("months");
    let days = args.integer("weeks") * 7 + args.integer("days");
    let date = months_after(date, months)
        .and_then(|date| date.checked_add(Duration::days(days)))
        .filter(|date| (0..=9999).contains(&date.year()))
        .ok_or(BEYOND)?;
    Ok(Data(
        json!({ "date": date.to_string(), "weekday": date.weekday().to_string() }),
    ))
}

/// The date some months after `date`. If the month is too short, its last day.
fn months_after(date: Date, months: i64) -> Option<Date> {
    let months = i64::from(date.year()) * 12 + i64::from(u8::from(date.month())) - 1 + months;
    let year = i32::try_from(months.div_euclid(12))
        .ok()
        .filter(|year| (0..=9999).contains(year))?;
    let month = Month::try_from(u8::try_from(months.rem_euclid(12)).ok()? + 1).ok()?;
    Date::from_calendar_date(year, month, date.day().min(month.length(year))).ok()
}

fn days_between(args: &Arguments) -> Outcome {
    let (from, to) = (args.date("from")?, args.date("to")?);
    let days = (to - from).whole_days();
    let (earlier, sign) = if days < 0 { (to, -1) } else { (from, 1) };
    let weeks = days.abs() / 7;
    let is_business_day =
        |day: &Date| !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday);
    let over = std::iter::successors(Some(earlier), |day| day.next_day())
        .take(usize::try_from(days.abs() % 7).unwrap_or_default())
        .filter(is_business_day)
        .map(|_| 1)
        .sum::<i64>();
    Ok(Data(json!({
        "days": days, "weeks": sign * weeks, "days_over": days % 7, "business_days": sign * (weeks * 5 + over),
    })))
}

fn describe(args: &Arguments) -> Outcome {
    let date = args.date("date")?;
    let (iso_year, iso_week, _) = date.to_iso_week_date();
    Ok(Data(json!({
        "weekday": date.weekday().to_string(),
        "iso_year": iso_year,
        "iso_week": iso_week,
        "day_of_year": date.ordinal(),
        "quarter": u8::from(date.month()).div_ceil(3),
        "leap_year": time::util::is_leap_year(date.year()),
        "days_in_month": date.month().length(date.year()),
    })))
}
