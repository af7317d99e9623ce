//! Tools that calculate with numbers.

use serde_json::{Map, Value, json};

use super::expression::evaluate;
use crate::demo::arguments::Arguments;
use crate::demo::schema::{COUNT, Kind, optional, required, with_default};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool, number};

/// Trial division up to the root of it takes a moment.
const LARGEST_TO_FACTOR: i64 = 1_000_000_000_000;
const WHOLE: Kind = Kind::Integer(0, 1_000_000_000_000_000);

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "evaluate_expression",
        title: "Evaluate expression",
        description: "Calculate an arithmetic expression with + - * / % ^, parentheses, functions (sqrt, ln, sin, round, \
                      min, max, ...), the constants pi, e and tau, and variables. Angles are in radians.",
        effect: Effect::Reads,
        parameters: &[
            required(
                "expression",
                Kind::Text,
                "What to calculate, e.g. `2 * (3 + x)^2`.",
            ),
            optional(
                "variables",
                Kind::Map(&Kind::Number),
                "Values of the names in it.",
            ),
        ],
        returns: &[required("result", Kind::Number, "Its value.")],
        run: |_, arguments| {
            let none = Map::new();
            let variables = arguments.map("variables").unwrap_or(&none);
            match evaluate(arguments.text("expression"), variables) {
                Ok(value) => Ok(Output::Data(json!({ "result": number(value) }))),
                Err(error) => Err(format!("The expression cannot be calculated: {error}.")),
            }
        },
    },
    Tool {
        name: "calculate_percentage",
        title: "Percentage of a number",
        description: "Calculate what some per cent of a number is, e.g. 15 % of 80, for discounts, taxes and shares.",
        effect: Effect::Reads,
        parameters: &[
            required("percent", Kind::Number, "How many per cent."),
            required("of", Kind::Number, "Of what."),
        ],
        returns: &[
            required("result", Kind::Number, "The part."),
            required("added", Kind::Number, "The number with the part added."),
            required("subtracted", Kind::Number, "The number without the part."),
        ],
        run: |_, arguments| {
            let of = arguments.number("of");
            let part = of * arguments.number("percent") / 100.0;
            finite(&[
                ("result", part),
                ("added", of + part),
                ("subtracted", of - part),
            ])
        },
    },
    Tool {
        name: "percentage_change",
        title: "Percentage change",
        description: "Calculate by how many per cent a value has grown or fallen from one number to another.",
        effect: Effect::Reads,
        parameters: &[
            required("from", Kind::Number, "The value before."),
            required("to", Kind::Number, "The value after."),
        ],
        returns: &[
            required(
                "percent",
                Kind::Number,
                "The change in per cent; negative for a fall.",
            ),
            required("difference", Kind::Number, "The change itself."),
        ],
        run: |_, arguments| {
            let (from, to) = (arguments.number("from"), arguments.number("to"));
            if from == 0.0 {
                return Err("A change from zero has no percentage.".to_owned());
            }
            finite(&[
                ("percent", (to - from) / from.abs() * 100.0),
                ("difference", to - from),
            ])
        },
    },
    Tool {
        name: "describe_statistics",
        title: "Statistics of a list",
        description: "Summarise a list of numbers: count, sum, mean (average), median, minimum, maximum, standard \
                      deviation of the whole population, and the most frequent values.",
        effect: Effect::Reads,
        parameters: &[required(
            "numbers",
            Kind::List(&Kind::Number),
            "The numbers.",
        )],
        returns: &[
            required("count", COUNT, "How many there are."),
            required("sum", Kind::Number, "Their sum."),
            required("mean", Kind::Number, "Their average."),
            required("median", Kind::Number, "The one in the middle."),
            required("minimum", Kind::Number, "The smallest."),
            required("maximum", Kind::Number, "The largest."),
            required("deviation", Kind::Number, "Their standard deviation."),
            required(
                "modes",
                Kind::List(&Kind::Number),
                "The most frequent ones; none if each is there once.",
            ),
        ],
        run: statistics,
    },
    Tool {
        name: "convert_base",
        title: "Convert number base",
        description: "Write a whole number in another base: binary, octal, decimal, hexadecimal, any from 2 to 36.",
        effect: Effect::Reads,
        parameters: &[
            required(
                "number",
                Kind::Text,
                "The number as it is written, e.g. `ff` or `-101`.",
            ),
            with_default(
                "from",
                Kind::Integer(2, 36),
                "10",
                "The base that it is in.",
            ),
            required("to", Kind::Integer(2, 36), "The base wanted."),
        ],
        returns: &[required(
            "result",
            Kind::Text,
            "The number in that base, lower case.",
        )],
        run: convert_base,
    },
    Tool {
        name: "prime_factors",
        title: "Prime factors",
        description: "Factor a whole number into primes, and so tell whether it is one.",
        effect: Effect::Reads,
        parameters: &[required(
            "number",
            Kind::Integer(2, LARGEST_TO_FACTOR),
            "The number.",
        )],
        returns: &[
            required(
                "factors",
                Kind::List(&WHOLE),
                "Its prime factors in ascending order.",
            ),
            required("prime", Kind::Flag, "Whether it is a prime."),
        ],
        run: |_, arguments| {
            let factors = factors(arguments.integer("number"));
            Ok(Output::Data(
                json!({ "prime": factors.len() == 1, "factors": factors }),
            ))
        },
    },
    Tool {
        name: "greatest_common_divisor",
        title: "Common divisor and multiple",
        description: "Find the greatest common divisor and the least common multiple of whole numbers.",
        effect: Effect::Reads,
        parameters: &[required(
            "numbers",
            Kind::List(&Kind::Integer(1, 1_000_000_000)),
            "The numbers.",
        )],
        returns: &[
            required(
                "divisor",
                WHOLE,
                "The greatest number that divides all of them.",
            ),
            required(
                "multiple",
                WHOLE,
                "The least number that all of them divide.",
            ),
        ],
        run: common_divisor,
    },
    Tool {
        name: "to_roman_numerals",
        title: "Roman numerals",
        description: "Write a number from 1 to 3999 in Roman numerals, e.g. 1994 as MCMXCIV.",
        effect: Effect::Reads,
        parameters: &[required("number", Kind::Integer(1, 3999), "The number.")],
        returns: &[required("roman", Kind::Text, "The numeral.")],
        run: |_, arguments| {
            Ok(Output::Data(
                json!({ "roman": roman(arguments.integer("number")) }),
            ))
        },
    },
];

/// An answer of numbers.
///
/// # Errors
/// When one of them grew beyond what a number can hold.
pub(super) fn finite(results: &[(&str, f64)]) -> Outcome {
    if results.iter().any(|(_, value)| !value.is_finite()) {
        return Err("The result is too large.".to_owned());
    }
    Ok(Output::Data(Value::Object(
        results
            .iter()
            .map(|(name, value)| ((*name).to_owned(), number(*value)))
            .collect(),
    )))
}

fn statistics(_: &Context, arguments: &Arguments) -> Outcome {
    let mut numbers = arguments.numbers("numbers");
    if numbers.is_empty() {
        return Err("There must be at least one number.".to_owned());
    }
    numbers.sort_by(f64::total_cmp);
    // A list that fits into memory has far fewer items than an `f64` counts exactly.
    let count = numbers.len() as f64;
    let sum: f64 = numbers.iter().sum();
    let mean = sum / count;
    let variance = numbers.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / count;
    let median = f64::midpoint(numbers[(numbers.len() - 1) / 2], numbers[numbers.len() / 2]);
    let results = [
        ("count", count),
        ("sum", sum),
        ("mean", mean),
        ("median", median),
        ("minimum", numbers[0]),
        ("maximum", numbers[numbers.len() - 1]),
        ("deviation", variance.sqrt()),
    ];
    let mut output = finite(&results)?;
    if let Output::Data(data) = &mut output {
        data["modes"] = modes(&numbers).into_iter().map(number).collect();
    }
    Ok(output)
}

/// The most frequent of sorted numbers; none if each is there once.
fn modes(sorted: &[f64]) -> Vec<f64> {
    let runs: Vec<_> = sorted.chunk_by(|a, b| a == b).collect();
    let longest = runs.iter().map(|run| run.len()).max().unwrap_or_default();
    runs.into_iter()
        .filter(|run| longest > 1 && run.len() == longest)
        .map(|run| run[0])
        .collect()
}

fn convert_base(_: &Context, arguments: &Arguments) -> Outcome {
    let base = |name| u32::try_from(arguments.integer(name)).unwrap_or(10);
    let (text, from, to) = (arguments.text("number").trim(), base("from"), base("to"));
    let value = i128::from_str_radix(text, from).map_err(|_| {
        format!("`{text}` is not a whole number in base {from} of at most 127 bits.")
    })?;
    let mut digits = Vec::new();
    let mut rest = value.unsigned_abs();
    while rest > 0 || digits.is_empty() {
        let digit = u32::try_from(rest % u128::from(to)).unwrap_or_default();
        digits.extend(char::from_digit(digit, to));
        rest /= u128::from(to);
    }
    digits.extend((value < 0).then_some('-'));
    Ok(Output::Data(
        json!({ "result": digits.into_iter().rev().collect::<String>() }),
    ))
}

fn factors(number: i64) -> Vec<i64> {
    let mut factors = Vec::new();
    let mut rest = number;
    let mut divisor = 2;
    while divisor * divisor <= rest {
        while rest % divisor == 0 {
            factors.push(divisor);
            rest /= divisor;
        }
        divisor += if divisor == 2 { 1 } else { 2 };
    }
    if rest > 1 {
        factors.push(rest);
    }
    factors
}

fn common_divisor(_: &Context, arguments: &Arguments) -> Outcome {
    let numbers: Vec<i64> = arguments
        .list("numbers")
        .iter()
        .filter_map(Value::as_i64)
        .collect();
    if numbers.is_empty() {
        return Err("There must be at least one number.".to_owned());
    }
    let divisor = numbers.iter().copied().fold(0, gcd);
    let multiple = numbers
        .iter()
        .try_fold(1_i64, |all, n| {
            (all / gcd(all, *n))
                .checked_mul(*n)
                .filter(|all| *all <= 1_000_000_000_000_000)
        })
        .ok_or("The least common multiple is beyond 10^15.")?;
    Ok(Output::Data(
        json!({ "divisor": divisor, "multiple": multiple }),
    ))
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn roman(mut number: i64) -> String {
    const SIGNS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut roman = String::new();
    for (value, sign) in SIGNS {
        while number >= value {
            roman.push_str(sign);
            number -= value;
        }
    }
    roman
}
