//! Units of measure. Each has a factor to the base unit of its quantity; temperatures also have a zero point.

use std::sync::LazyLock;

use serde_json::json;

use crate::tool::Output::Data;
use crate::tool::{Arguments, Outcome, Output, number};

/// Columns: quantity, name, symbol, base units per unit, and zero point in base units.
const TABLE: &str = include_str!("units.tsv");

static UNITS: LazyLock<Vec<Unit>> = LazyLock::new(|| {
    TABLE
        .lines()
        .map(|line| Unit::read(line).expect("a test reads the table"))
        .collect()
});

struct Unit {
    quantity: &'static str,
    name: &'static str,
    symbol: &'static str,
    factor: f64,
    zero: f64,
}

impl Unit {
    fn read(line: &'static str) -> Option<Self> {
        let mut cells = line.split('\t');
        Some(Self {
            quantity: cells.next()?,
            name: cells.next()?,
            symbol: cells.next()?,
            factor: cells.next()?.parse().ok()?,
            zero: cells.next()?.parse().ok()?,
        })
    }
}

pub(super) fn convert(args: &Arguments) -> Outcome {
    let (from, to) = (find(args.text("from"))?, find(args.text("to"))?);
    if from.quantity != to.quantity {
        return Err(format!(
            "{} is a unit of {}, {} one of {}.",
            from.name, from.quantity, to.name, to.quantity
        ));
    }
    let base = args.number("value") * from.factor + from.zero;
    let result = (base - to.zero) / to.factor;
    if !result.is_finite() {
        return Err("The result is too large.".to_owned());
    }
    Ok(Data(
        json!({ "result": number(result), "unit": to.name, "quantity": to.quantity }),
    ))
}

pub(super) fn list(args: &Arguments) -> Output {
    let wanted = args.optional_text("quantity");
    let units: Vec<_> = UNITS
        .iter()
        .filter(|unit| wanted.is_none_or(|quantity| unit.quantity == quantity))
        .map(|unit| json!({ "name": unit.name, "symbol": unit.symbol, "quantity": unit.quantity }))
        .collect();
    Data(json!({ "units": units }))
}

/// The unit with this symbol or name. An exact match comes first, because letter case distinguishes symbols (`MB`,
/// `Mb`).
fn find(text: &str) -> Result<&'static Unit, String> {
    let text = text.trim();
    let plain = plain_name(text);
    let by = |matches: &dyn Fn(&Unit) -> bool| UNITS.iter().find(|unit| matches(unit));
    by(&|unit| unit.symbol == text)
        .or_else(|| by(&|unit| plain_name(unit.name) == plain))
        .or_else(|| by(&|unit| plain_symbol(unit.symbol) == plain_symbol(text)))
        .filter(|_| !text.is_empty())
        .ok_or_else(|| format!("`{text}` is not a known unit. list_units shows which there are."))
}

/// A name in lower case, singular, and one spelling.
fn plain_name(name: &str) -> String {
    let name = name.to_lowercase().replace(['_', '-'], " ");
    let name = name.replace("meter", "metre").replace("liter", "litre");
    let name = match name.as_str() {
        "feet" => "foot",
        "inches" => "inch",
        "gallon" | "gallons" => "us gallon",
        "horsepower" => "mechanical horsepower",
        name => name.strip_suffix('s').unwrap_or(name),
    };
    name.replace("s per ", " per ")
}

fn plain_symbol(symbol: &str) -> String {
    symbol
        .to_lowercase()
        .replace('°', "")
        .replace('²', "2")
        .replace('³', "3")
        .replace('μ', "µ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_found_by_its_name_and_by_its_symbol() {
        for unit in UNITS.iter() {
            assert_eq!(find(unit.name).unwrap().name, unit.name);
            assert_eq!(find(unit.symbol).unwrap().name, unit.name);
        }
    }
}
