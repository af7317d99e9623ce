//! Units of measure: each is a factor, and for temperatures a zero, against the base unit of its quantity.

use serde_json::json;

use crate::demo::arguments::Arguments;
use crate::demo::schema::{Field, Kind, optional, required};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool, number};

const QUANTITIES: &[&str] = &[
    "length",
    "mass",
    "temperature",
    "volume",
    "area",
    "speed",
    "time",
    "data",
    "energy",
    "power",
    "pressure",
    "angle",
];

const UNIT: &[Field] = &[
    required("name", Kind::Text, "Its name."),
    required("symbol", Kind::Text, "Its symbol."),
    required("quantity", Kind::Text, "What it measures."),
];

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "convert_units",
        title: "Convert units",
        description: "Convert a measurement into another unit: length, mass and weight, temperature, volume, area, speed, \
                      time, data size, energy, power, pressure, angle. Units by name or symbol, e.g. km, mile, °F, GiB.",
        effect: Effect::Reads,
        parameters: &[
            required("value", Kind::Number, "How much."),
            required("from", Kind::Text, "The unit that it is in."),
            required("to", Kind::Text, "The unit wanted, of the same quantity."),
        ],
        returns: &[
            required("result", Kind::Number, "How much it is in the unit wanted."),
            required("unit", Kind::Text, "The name of that unit."),
            required("quantity", Kind::Text, "What is measured."),
        ],
        run: convert,
    },
    Tool {
        name: "list_units",
        title: "List units",
        description: "List the units that convert_units knows, with their symbols, of one quantity or of all.",
        effect: Effect::Reads,
        parameters: &[optional(
            "quantity",
            Kind::Choice(QUANTITIES),
            "Only units of this quantity.",
        )],
        returns: &[required(
            "units",
            Kind::List(&Kind::Object(UNIT)),
            "The units.",
        )],
        run: list,
    },
];

struct Unit {
    quantity: &'static str,
    name: &'static str,
    symbol: &'static str,
    /// Base units in one of it.
    factor: f64,
    /// Its zero in base units.
    zero: f64,
}

const fn unit(
    quantity: &'static str,
    name: &'static str,
    symbol: &'static str,
    factor: f64,
) -> Unit {
    Unit {
        quantity,
        name,
        symbol,
        factor,
        zero: 0.0,
    }
}

const UNITS: &[Unit] = &[
    unit("length", "metre", "m", 1.0),
    unit("length", "kilometre", "km", 1e3),
    unit("length", "centimetre", "cm", 1e-2),
    unit("length", "millimetre", "mm", 1e-3),
    unit("length", "micrometre", "µm", 1e-6),
    unit("length", "inch", "in", 0.0254),
    unit("length", "foot", "ft", 0.3048),
    unit("length", "yard", "yd", 0.9144),
    unit("length", "mile", "mi", 1609.344),
    unit("length", "nautical mile", "nmi", 1852.0),
    unit("length", "light year", "ly", 9_460_730_472_580_800.0),
    unit("mass", "kilogram", "kg", 1.0),
    unit("mass", "gram", "g", 1e-3),
    unit("mass", "milligram", "mg", 1e-6),
    unit("mass", "tonne", "t", 1e3),
    unit("mass", "pound", "lb", 0.453_592_37),
    unit("mass", "ounce", "oz", 0.028_349_523_125),
    unit("mass", "stone", "st", 6.350_293_18),
    unit("temperature", "kelvin", "K", 1.0),
    Unit {
        quantity: "temperature",
        name: "celsius",
        symbol: "°C",
        factor: 1.0,
        zero: 273.15,
    },
    Unit {
        quantity: "temperature",
        name: "fahrenheit",
        symbol: "°F",
        factor: 5.0 / 9.0,
        zero: 459.67 * 5.0 / 9.0,
    },
    unit("temperature", "rankine", "°R", 5.0 / 9.0),
    unit("volume", "litre", "l", 1.0),
    unit("volume", "millilitre", "ml", 1e-3),
    unit("volume", "cubic metre", "m³", 1e3),
    unit("volume", "US gallon", "gal", 3.785_411_784),
    unit("volume", "US quart", "qt", 0.946_352_946),
    unit("volume", "US pint", "pt", 0.473_176_473),
    unit("volume", "US cup", "cup", 0.236_588_236_5),
    unit("volume", "US fluid ounce", "fl oz", 0.029_573_529_562_5),
    unit("volume", "tablespoon", "tbsp", 0.014_786_764_781_25),
    unit("volume", "teaspoon", "tsp", 0.004_928_921_593_75),
    unit("volume", "imperial gallon", "imp gal", 4.546_09),
    unit("area", "square metre", "m²", 1.0),
    unit("area", "square kilometre", "km²", 1e6),
    unit("area", "hectare", "ha", 1e4),
    unit("area", "acre", "ac", 4_046.856_422_4),
    unit("area", "square foot", "ft²", 0.092_903_04),
    unit("area", "square mile", "mi²", 2_589_988.110_336),
    unit("speed", "metre per second", "m/s", 1.0),
    unit("speed", "kilometre per hour", "km/h", 1.0 / 3.6),
    unit("speed", "mile per hour", "mph", 0.447_04),
    unit("speed", "knot", "kn", 1852.0 / 3600.0),
    unit("time", "second", "s", 1.0),
    unit("time", "millisecond", "ms", 1e-3),
    unit("time", "minute", "min", 60.0),
    unit("time", "hour", "h", 3600.0),
    unit("time", "day", "d", 86_400.0),
    unit("time", "week", "wk", 604_800.0),
    unit("data", "byte", "B", 1.0),
    unit("data", "bit", "b", 0.125),
    unit("data", "kilobyte", "kB", 1e3),
    unit("data", "megabyte", "MB", 1e6),
    unit("data", "gigabyte", "GB", 1e9),
    unit("data", "terabyte", "TB", 1e12),
    unit("data", "kibibyte", "KiB", 1024.0),
    unit("data", "mebibyte", "MiB", 1_048_576.0),
    unit("data", "gibibyte", "GiB", 1_073_741_824.0),
    unit("data", "tebibyte", "TiB", 1_099_511_627_776.0),
    unit("data", "kilobit", "kb", 125.0),
    unit("data", "megabit", "Mb", 1.25e5),
    unit("data", "gigabit", "Gb", 1.25e8),
    unit("energy", "joule", "J", 1.0),
    unit("energy", "kilojoule", "kJ", 1e3),
    unit("energy", "megajoule", "MJ", 1e6),
    unit("energy", "calorie", "cal", 4.184),
    unit("energy", "kilocalorie", "kcal", 4184.0),
    unit("energy", "watt hour", "Wh", 3600.0),
    unit("energy", "kilowatt hour", "kWh", 3.6e6),
    unit("energy", "electronvolt", "eV", 1.602_176_634e-19),
    unit("energy", "British thermal unit", "BTU", 1_055.055_852_62),
    unit("power", "watt", "W", 1.0),
    unit("power", "kilowatt", "kW", 1e3),
    unit("power", "megawatt", "MW", 1e6),
    unit("power", "metric horsepower", "PS", 735.498_75),
    unit(
        "power",
        "mechanical horsepower",
        "hp",
        745.699_871_582_270_2,
    ),
    unit("pressure", "pascal", "Pa", 1.0),
    unit("pressure", "kilopascal", "kPa", 1e3),
    unit("pressure", "hectopascal", "hPa", 100.0),
    unit("pressure", "bar", "bar", 1e5),
    unit("pressure", "atmosphere", "atm", 101_325.0),
    unit(
        "pressure",
        "pound per square inch",
        "psi",
        6_894.757_293_168,
    ),
    unit("pressure", "torr", "Torr", 101_325.0 / 760.0),
    unit("angle", "degree", "°", 1.0),
    unit("angle", "radian", "rad", 180.0 / std::f64::consts::PI),
    unit("angle", "gradian", "gon", 0.9),
    unit("angle", "turn", "tr", 360.0),
];

fn convert(_: &Context, arguments: &Arguments) -> Outcome {
    let (from, to) = (find(arguments.text("from"))?, find(arguments.text("to"))?);
    if from.quantity != to.quantity {
        return Err(format!(
            "{} is a unit of {}, {} one of {}.",
            from.name, from.quantity, to.name, to.quantity
        ));
    }
    let base = arguments.number("value") * from.factor + from.zero;
    let result = (base - to.zero) / to.factor;
    if !result.is_finite() {
        return Err("The result is too large.".to_owned());
    }
    Ok(Output::Data(
        json!({ "result": number(result), "unit": to.name, "quantity": to.quantity }),
    ))
}

fn list(_: &Context, arguments: &Arguments) -> Outcome {
    let wanted = arguments.optional_text("quantity");
    let units: Vec<_> = UNITS
        .iter()
        .filter(|unit| wanted.is_none_or(|quantity| unit.quantity == quantity))
        .map(|unit| json!({ "name": unit.name, "symbol": unit.symbol, "quantity": unit.quantity }))
        .collect();
    Ok(Output::Data(json!({ "units": units })))
}

/// The unit of that symbol or name. Letter case tells symbols apart (`MB`, `Mb`), so it is ignored last.
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

/// A name in lower case, singular, in one spelling.
fn plain_name(name: &str) -> String {
    let name = name
        .to_lowercase()
        .replace(['_', '-'], " ")
        .replace("meter", "metre")
        .replace("liter", "litre");
    match name.as_str() {
        "feet" => "foot".to_owned(),
        "inches" => "inch".to_owned(),
        "gallon" | "gallons" => "us gallon".to_owned(),
        "horsepower" => "mechanical horsepower".to_owned(),
        _ => name
            .strip_suffix('s')
            .map_or_else(|| name.clone(), str::to_owned),
    }
    .replace("s per ", " per ")
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
    fn a_unit_is_found_by_symbol_name_plural_and_spelling() {
        for (text, name) in [
            ("Mb", "megabit"),
            ("MB", "megabyte"),
            ("mb", "megabyte"),
            ("kilometers", "kilometre"),
            ("Feet", "foot"),
            ("m2", "square metre"),
            ("fahrenheit", "fahrenheit"),
            ("c", "celsius"),
            ("celsius", "celsius"),
            ("kilometers per hour", "kilometre per hour"),
            ("miles per hour", "mile per hour"),
        ] {
            assert_eq!(find(text).unwrap().name, name, "{text}");
        }
    }

    #[test]
    fn every_unit_is_found_by_its_name_and_by_its_symbol_and_has_a_listed_quantity() {
        for unit in UNITS {
            assert_eq!(find(unit.name).unwrap().name, unit.name);
            assert_eq!(find(unit.symbol).unwrap().name, unit.name);
            assert!(QUANTITIES.contains(&unit.quantity), "{}", unit.name);
        }
    }
}
