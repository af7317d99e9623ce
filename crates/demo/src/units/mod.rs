//! The units server: units of measure, money and arithmetic. It stores nothing.

mod measures;

use std::sync::OnceLock;

use serde_json::json;

use crate::tool::Output::Data;
use crate::tool::{Arguments, Context, Outcome, Service, number, numbers};

pub(crate) static SERVICE: Service = Service {
    name: "units",
    title: "Units and calculation",
    instructions: "Exact calculation: units of measure, percentages, bills, and currencies by a \
                   fixed table of sample rates.",
    definitions: include_str!("tools.json"),
    tools: OnceLock::new(),
    call,
};

/// The price of one euro on the last day of 2024. The demo must work without a network, so every answer gives the date.
const PER_EURO: &[(&str, f64)] = &[
    ("EUR", 1.0),
    ("AUD", 1.677),
    ("BRL", 6.425),
    ("CAD", 1.495),
    ("CHF", 0.9412),
    ("CNY", 7.583),
    ("DKK", 7.458),
    ("GBP", 0.8292),
    ("INR", 88.93),
    ("JPY", 163.1),
    ("NOK", 11.8),
    ("PLN", 4.275),
    ("SEK", 11.46),
    ("TRY", 36.74),
    ("USD", 1.0389),
];

fn call(tool: &str, _: &Context, args: &Arguments) -> Outcome {
    match tool {
        "convert_units" => measures::convert(args),
        "list_units" => Ok(measures::list(args)),
        "calculate_percentage" => {
            let of = args.number("of");
            let part = of * args.number("percent") / 100.0;
            numbers(&[
                ("result", part),
                ("added", of + part),
                ("subtracted", of - part),
            ])
        }
        "percentage_change" => {
            let (from, to) = (args.number("from"), args.number("to"));
            if from == 0.0 {
                return Err("A change from zero has no percentage.".to_owned());
            }
            numbers(&[
                ("percent", (to - from) / from.abs() * 100.0),
                ("difference", to - from),
            ])
        }
        "to_roman_numerals" => Ok(Data(json!({ "roman": roman(args.integer("number")) }))),
        "convert_currency" => convert_currency(args),
        "split_bill" => split_bill(args),
        _ => Err(format!("there is no tool `{tool}`")),
    }
}

fn roman(mut number: i64) -> String {
    const VALUES: [i64; 13] = [1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1];
    const SIGNS: [&str; 13] = [
        "M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I",
    ];
    let mut roman = String::new();
    for (value, sign) in VALUES.into_iter().zip(SIGNS) {
        while number >= value {
            roman.push_str(sign);
            number -= value;
        }
    }
    roman
}

fn convert_currency(args: &Arguments) -> Outcome {
    let rate = |name| {
        let code = args.text(name).trim();
        let found = PER_EURO
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(code));
        found.map(|(_, rate)| *rate).ok_or_else(|| {
            let known: Vec<_> = PER_EURO.iter().map(|(code, _)| *code).collect();
            format!(
                "`{code}` is not in the table of currencies: {}.",
                known.join(", ")
            )
        })
    };
    let (from, to) = (rate("from")?, rate("to")?);
    let mut output = numbers(&[
        ("result", cents(args.number("amount") * to / from)),
        ("rate", to / from),
    ])?;
    if let Data(data) = &mut output {
        data["date"] = "2024-12-31".into();
        data["note"] = "sample rates from a fixed table, rounded; not for real payments".into();
    }
    Ok(output)
}

fn split_bill(args: &Arguments) -> Outcome {
    let (amount, tip_percent) = (args.number("amount"), args.number("tip_percent"));
    if !(0.0..=1e12).contains(&amount) || !(0.0..=1000.0).contains(&tip_percent) {
        return Err("`amount` must be from 0 to 10^12, `tip_percent` from 0 to 1000.".to_owned());
    }
    let tip = cents(amount * tip_percent / 100.0);
    let total = cents(amount + tip);
    // Within the bounds above, a sum in cents is a whole number that both types hold exactly.
    let (in_cents, people) = (
        (total * 100.0).round() as i64,
        args.integer("people").max(1),
    );
    let share = |person| in_cents / people + i64::from(person < in_cents % people);
    let shares: Vec<_> = (0..people)
        .map(|person| number(share(person) as f64 / 100.0))
        .collect();
    Ok(Data(
        json!({ "tip": number(tip), "total": number(total), "shares": shares }),
    ))
}

/// A value rounded to two places.
fn cents(amount: f64) -> f64 {
    (amount * 100.0).round() / 100.0
}
