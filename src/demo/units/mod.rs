//! The units server: measures, money and calculation. It keeps nothing.

mod calculation;
mod currency;
mod expression;
mod measures;
mod money;

use super::server::Service;

pub(super) const SERVICE: Service = Service {
    name: "units",
    title: "Units and calculation",
    instructions: "Exact calculation instead of guessing: convert units of measure, evaluate arithmetic, percentages, \
                   loans, interest, bills, statistics, number bases. Currency rates are a fixed sample table with a \
                   date, not for real payments.",
    groups: &[
        measures::TOOLS,
        calculation::TOOLS,
        money::TOOLS,
        currency::TOOLS,
    ],
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Server, trial};

    #[test]
    fn every_tool_calculates() {
        trial::check(
            Server::Units,
            &[
                (
                    "convert_units",
                    json!({"value": 10, "from": "km", "to": "miles"}),
                    json!({"result": 6.213_711_922_37, "quantity": "length"}),
                ),
                (
                    "convert_units",
                    json!({"value": 100, "from": "C", "to": "°F"}),
                    json!({"result": 212, "quantity": "temperature"}),
                ),
                (
                    "convert_units",
                    json!({"value": 0, "from": "kelvin", "to": "celsius"}),
                    json!({"result": -273.15}),
                ),
                (
                    "convert_units",
                    json!({"value": 1, "from": "GiB", "to": "MB"}),
                    json!({"result": 1_073.741_824}),
                ),
                (
                    "convert_units",
                    json!({"value": 1, "from": "Mb", "to": "kB"}),
                    json!({"result": 125}),
                ),
                (
                    "convert_units",
                    json!({"value": 1, "from": "kWh", "to": "MJ"}),
                    json!({"result": 3.6}),
                ),
                (
                    "convert_units",
                    json!({"value": 1, "from": "lb", "to": "m"}),
                    json!({"error": "pound is a unit of mass, metre one of length"}),
                ),
                (
                    "convert_units",
                    json!({"value": 1, "from": "cubit", "to": "m"}),
                    json!({"error": "`cubit` is not a known unit"}),
                ),
                (
                    "list_units",
                    json!({"quantity": "temperature"}),
                    json!({"units": [
                        {"name": "kelvin", "symbol": "K"}, {"name": "celsius"}, {"name": "fahrenheit"}, {"name": "rankine"}
                    ]}),
                ),
                (
                    "evaluate_expression",
                    json!({"expression": "2 * (3 + x)^2", "variables": {"x": 1}}),
                    json!({"result": 32}),
                ),
                (
                    "evaluate_expression",
                    json!({"expression": "2 +"}),
                    json!({"error": "ends too early"}),
                ),
                (
                    "calculate_percentage",
                    json!({"percent": 15, "of": 80}),
                    json!({"result": 12}),
                ),
                (
                    "percentage_change",
                    json!({"from": 80, "to": 100}),
                    json!({"percent": 25, "difference": 20}),
                ),
                (
                    "percentage_change",
                    json!({"from": 0, "to": 1}),
                    json!({"error": "from zero"}),
                ),
                (
                    "describe_statistics",
                    json!({"numbers": [2, 4, 4, 4, 5, 5, 7, 9]}),
                    json!({
                        "count": 8, "sum": 40, "mean": 5, "median": 4.5, "minimum": 2, "maximum": 9, "deviation": 2, "modes": [4]
                    }),
                ),
                (
                    "describe_statistics",
                    json!({"numbers": []}),
                    json!({"error": "at least one"}),
                ),
                (
                    "describe_statistics",
                    json!({"numbers": [1, "2"]}),
                    json!({"error": "`numbers[1]` must be a number"}),
                ),
                (
                    "convert_base",
                    json!({"number": "-ff", "from": 16, "to": 2}),
                    json!({"result": "-11111111"}),
                ),
                (
                    "convert_base",
                    json!({"number": "129", "from": 8, "to": 10}),
                    json!({"error": "not a whole number in base 8"}),
                ),
                (
                    "prime_factors",
                    json!({"number": 360}),
                    json!({"factors": [2, 2, 2, 3, 3, 5], "prime": false}),
                ),
                (
                    "prime_factors",
                    json!({"number": 999_999_999_989_i64}),
                    json!({"factors": [999_999_999_989_i64], "prime": true}),
                ),
                (
                    "greatest_common_divisor",
                    json!({"numbers": [12, 18, 30]}),
                    json!({"divisor": 6, "multiple": 180}),
                ),
                (
                    "to_roman_numerals",
                    json!({"number": 1994}),
                    json!({"roman": "MCMXCIV"}),
                ),
                (
                    "loan_payment",
                    json!({"principal": 100_000, "annual_rate": 6, "months": 360}),
                    json!({"payment": 599.55, "interest": 115_838.19}),
                ),
                (
                    "loan_payment",
                    json!({"principal": 1200, "annual_rate": 0, "months": 3, "schedule": true}),
                    json!({
                        "payment": 400, "interest": 0, "schedule": [{"month": 1, "balance": 800}, {"month": 2}, {"month": 3, "balance": 0}]
                    }),
                ),
                (
                    "compound_interest",
                    json!({"principal": 1000, "annual_rate": 5, "years": 10}),
                    json!({"amount": 1628.89, "interest": 628.89}),
                ),
                (
                    "split_bill",
                    json!({"amount": 100, "tip_percent": 15, "people": 3}),
                    json!({"tip": 15, "total": 115, "shares": [38.34, 38.33, 38.33]}),
                ),
                (
                    "convert_currency",
                    json!({"amount": 100, "from": "eur", "to": "USD"}),
                    json!({"result": 103.89, "date": "2024-12-31"}),
                ),
                (
                    "convert_currency",
                    json!({"amount": 1, "from": "EUR", "to": "XXX"}),
                    json!({"error": "`XXX` is not in the table"}),
                ),
                (
                    "list_currency_rates",
                    json!({"base": "USD"}),
                    json!({"base": "USD", "date": "2024-12-31"}),
                ),
            ],
        );
    }
}
