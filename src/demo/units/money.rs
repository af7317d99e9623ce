//! Tools for sums of money. They calculate in whole cents wherever a sum is split, so that no cent is lost.

use serde_json::{Value, json};

use super::calculation::finite;
use crate::demo::arguments::Arguments;
use crate::demo::schema::{Field, Kind, optional, required, with_default};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool, number};

const PAYMENT: &[Field] = &[
    required("month", Kind::Integer(1, 1200), "Which payment."),
    required("interest", Kind::Number, "The part that is interest."),
    required(
        "principal",
        Kind::Number,
        "The part that pays the loan back.",
    ),
    required("balance", Kind::Number, "What is still owed after it."),
];

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "loan_payment",
        title: "Loan payment",
        description: "Calculate the monthly payment of a loan or mortgage with a fixed rate, the interest in all, and, if \
                      wanted, the schedule month by month.",
        effect: Effect::Reads,
        parameters: &[
            required("principal", Kind::Number, "The sum that is borrowed."),
            required(
                "annual_rate",
                Kind::Number,
                "The yearly interest in per cent.",
            ),
            required(
                "months",
                Kind::Integer(1, 1200),
                "How many monthly payments.",
            ),
            with_default(
                "schedule",
                Kind::Flag,
                "false",
                "Whether to list each payment.",
            ),
        ],
        returns: &[
            required("payment", Kind::Number, "What is paid each month."),
            required("total", Kind::Number, "What is paid in all."),
            required("interest", Kind::Number, "How much of it is interest."),
            optional(
                "schedule",
                Kind::List(&Kind::Object(PAYMENT)),
                "Each payment.",
            ),
        ],
        run: loan,
    },
    Tool {
        name: "compound_interest",
        title: "Compound interest",
        description: "Calculate what savings grow to at a fixed rate over some years, with interest on interest and a \
                      monthly deposit if there is one.",
        effect: Effect::Reads,
        parameters: &[
            required("principal", Kind::Number, "The sum at the beginning."),
            required(
                "annual_rate",
                Kind::Number,
                "The yearly interest in per cent.",
            ),
            required("years", Kind::Integer(1, 200), "How many years."),
            with_default(
                "times_per_year",
                Kind::Integer(1, 365),
                "1",
                "How often interest is added in a year.",
            ),
            with_default(
                "monthly_deposit",
                Kind::Number,
                "0",
                "What is put in at the end of each month.",
            ),
        ],
        returns: &[
            required("amount", Kind::Number, "The sum at the end."),
            required("deposited", Kind::Number, "What was put in altogether."),
            required("interest", Kind::Number, "The difference."),
        ],
        run: compound,
    },
    Tool {
        name: "split_bill",
        title: "Split bill",
        description: "Add a tip to a restaurant bill and split it among people, to the cent: the shares add up to the total.",
        effect: Effect::Reads,
        parameters: &[
            required("amount", Kind::Number, "The bill."),
            with_default(
                "tip_percent",
                Kind::Number,
                "0",
                "The tip in per cent of it.",
            ),
            with_default("people", Kind::Integer(1, 1000), "1", "How many share it."),
        ],
        returns: &[
            required("tip", Kind::Number, "The tip."),
            required("total", Kind::Number, "The bill with the tip."),
            required("shares", Kind::List(&Kind::Number), "What each pays."),
        ],
        run: split,
    },
];

fn loan(_: &Context, arguments: &Arguments) -> Outcome {
    let (principal, annual_rate) = (
        arguments.number("principal"),
        arguments.number("annual_rate"),
    );
    if principal <= 0.0 || annual_rate < 0.0 {
        return Err("`principal` must be more than 0, `annual_rate` not less.".to_owned());
    }
    let rate = annual_rate / 1200.0;
    let months = i32::try_from(arguments.integer("months")).unwrap_or(1);
    let payment = if rate == 0.0 {
        principal / f64::from(months)
    } else {
        principal * rate / (1.0 - (1.0 + rate).powi(-months))
    };
    let total = payment * f64::from(months);
    let mut output = finite(&[
        ("payment", cents(payment)),
        ("total", cents(total)),
        ("interest", cents(total - principal)),
    ])?;
    if arguments.flag("schedule")
        && let Output::Data(data) = &mut output
    {
        data["schedule"] = schedule(principal, rate, payment, months);
    }
    Ok(output)
}

fn schedule(principal: f64, rate: f64, payment: f64, months: i32) -> Value {
    let mut balance = principal;
    (1..=months)
        .map(|month| {
            let interest = balance * rate;
            balance -= payment - interest;
            json!({
                "month": month,
                "interest": number(cents(interest)),
                "principal": number(cents(payment - interest)),
                // What rounding leaves at the end may be a hair below zero.
                "balance": number(cents(balance.max(0.0))),
            })
        })
        .collect()
}

fn compound(_: &Context, arguments: &Arguments) -> Outcome {
    let whole = |name| i32::try_from(arguments.integer(name)).unwrap_or(1);
    let (principal, deposit) = (
        arguments.number("principal"),
        arguments.number("monthly_deposit"),
    );
    let (years, times) = (whole("years"), whole("times_per_year"));
    let growth = 1.0 + arguments.number("annual_rate") / 100.0 / f64::from(times);
    if growth <= 0.0 {
        return Err("Nothing would be left: the rate is too far below zero.".to_owned());
    }
    // Deposits come monthly whatever the interest's rhythm, so each month grows by its part of a year.
    let monthly = growth.powf(f64::from(times) / 12.0);
    let months = years * 12;
    let deposits = if (monthly - 1.0).abs() < 1e-12 {
        deposit * f64::from(months)
    } else {
        deposit * (monthly.powi(months) - 1.0) / (monthly - 1.0)
    };
    let amount = principal * growth.powi(years * times) + deposits;
    let deposited = principal + deposit * f64::from(months);
    finite(&[
        ("amount", cents(amount)),
        ("deposited", cents(deposited)),
        ("interest", cents(amount - deposited)),
    ])
}

fn split(_: &Context, arguments: &Arguments) -> Outcome {
    const MOST: f64 = 1e12;
    let (amount, tip_percent) = (arguments.number("amount"), arguments.number("tip_percent"));
    if !(0.0..=MOST).contains(&amount) || !(0.0..=1000.0).contains(&tip_percent) {
        return Err("`amount` must be from 0 to 10^12, `tip_percent` from 0 to 1000.".to_owned());
    }
    let tip = cents(amount * tip_percent / 100.0);
    let total = cents(amount + tip);
    // Within the bounds above a sum in cents is a whole number that both types hold.
    let in_cents = (total * 100.0).round() as i64;
    let people = arguments.integer("people");
    let share = |cents: i64| number(cents as f64 / 100.0);
    let shares: Vec<_> = (0..people)
        .map(|person| share(in_cents / people + i64::from(person < in_cents % people)))
        .collect();
    Ok(Output::Data(
        json!({ "tip": number(tip), "total": number(total), "shares": shares }),
    ))
}

/// Rounded to two places.
pub(super) fn cents(amount: f64) -> f64 {
    (amount * 100.0).round() / 100.0
}
