//! Currency conversion by a table that never changes.
//!
//! A demonstration must not need the network, so these are samples, and every answer says so with their date.

use serde_json::{Map, Value, json};

use super::money::cents;
use crate::demo::arguments::Arguments;
use crate::demo::schema::{Field, Kind, required, with_default};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool, number};

const DATE: &str = "2024-12-31";
const NOTE: &str = "sample rates from a fixed table, rounded; not for real payments";

const DATE_FIELD: Field = required("date", Kind::Date, "The day that the table stands for.");
const NOTE_FIELD: Field = required("note", Kind::Text, "What to keep in mind about it.");

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "convert_currency",
        title: "Convert currency",
        description: "Convert an amount of money into another currency by a fixed table of sample rates of the end of \
                      2024: good for a rough idea, not for real payments.",
        effect: Effect::Reads,
        parameters: &[
            required("amount", Kind::Number, "How much."),
            required(
                "from",
                Kind::Text,
                "The currency it is in, an ISO 4217 code such as EUR.",
            ),
            required("to", Kind::Text, "The currency wanted."),
        ],
        returns: &[
            required("result", Kind::Number, "The amount in the currency wanted."),
            required(
                "rate",
                Kind::Number,
                "What one unit of the first is in the second.",
            ),
            DATE_FIELD,
            NOTE_FIELD,
        ],
        run: convert,
    },
    Tool {
        name: "list_currency_rates",
        title: "List currency rates",
        description: "List all currencies that convert_currency knows and what one unit of a base currency is in each, by \
                      the fixed table of sample rates.",
        effect: Effect::Reads,
        parameters: &[with_default(
            "base",
            Kind::Text,
            "\"EUR\"",
            "The currency to compare with.",
        )],
        returns: &[
            required("base", Kind::Text, "That currency."),
            required(
                "rates",
                Kind::Map(&Kind::Number),
                "The rates by currency code.",
            ),
            DATE_FIELD,
            NOTE_FIELD,
        ],
        run: list,
    },
];

/// What one euro was.
const PER_EURO: &[(&str, f64)] = &[
    ("EUR", 1.0),
    ("AUD", 1.677),
    ("BRL", 6.425),
    ("CAD", 1.495),
    ("CHF", 0.9412),
    ("CNY", 7.583),
    ("CZK", 25.19),
    ("DKK", 7.458),
    ("GBP", 0.8292),
    ("HKD", 8.069),
    ("HUF", 411.4),
    ("IDR", 16_821.0),
    ("ILS", 3.789),
    ("INR", 88.93),
    ("JPY", 163.1),
    ("KRW", 1532.0),
    ("MXN", 21.55),
    ("NOK", 11.8),
    ("NZD", 1.853),
    ("PLN", 4.275),
    ("RON", 4.974),
    ("SEK", 11.46),
    ("SGD", 1.416),
    ("THB", 35.68),
    ("TRY", 36.74),
    ("USD", 1.0389),
    ("ZAR", 19.62),
];

fn convert(_: &Context, arguments: &Arguments) -> Outcome {
    let (_, from) = rate(arguments.text("from"))?;
    let (_, to) = rate(arguments.text("to"))?;
    let result = cents(arguments.number("amount") * to / from);
    if !result.is_finite() {
        return Err("The result is too large.".to_owned());
    }
    Ok(Output::Data(
        json!({ "result": number(result), "rate": number(to / from), "date": DATE, "note": NOTE }),
    ))
}

fn list(_: &Context, arguments: &Arguments) -> Outcome {
    let (base, per_euro) = rate(arguments.text("base"))?;
    let rates: Map<String, Value> = PER_EURO
        .iter()
        .map(|(code, rate)| ((*code).to_owned(), number(rate / per_euro)))
        .collect();
    Ok(Output::Data(
        json!({ "base": base, "rates": rates, "date": DATE, "note": NOTE }),
    ))
}

fn rate(code: &str) -> Result<(&'static str, f64), String> {
    PER_EURO
        .iter()
        .copied()
        .find(|(known, _)| known.eq_ignore_ascii_case(code.trim()))
        .ok_or_else(|| {
            let known: Vec<_> = PER_EURO.iter().map(|(code, _)| *code).collect();
            format!(
                "`{code}` is not in the table of currencies: {}.",
                known.join(", ")
            )
        })
}
