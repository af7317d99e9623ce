//! The ways in which a server may read an argument. A condition is certain only if it has the same result for all of them.

use percent_encoding::percent_decode_str;
use serde_json::{Number, Value};
use unicode_normalization::UnicodeNormalization as _;

use crate::text::caseless;
use crate::tool::is_hidden;

/// The readings of a text, and a number or flag as text. `None` for a value of another kind.
pub(super) fn of_value(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(of_text(text)),
        Value::Number(number) => Some(vec![written(number)]),
        Value::Bool(flag) => Some(vec![flag.to_string()]),
        _ => None,
    }
}

/// A text in lower case; in plain letters without spaces around it and hidden characters; and as the number that it may be.
fn of_text(text: &str) -> Vec<String> {
    let visible: String = text.chars().filter(|c| !is_hidden(*c)).collect();
    let plain: String = caseless(visible.trim()).nfc().collect();
    let number = plain.parse().ok().and_then(Number::from_f64);
    let readings = [text.to_lowercase(), plain].into_iter();
    readings.chain(number.as_ref().map(written)).collect()
}

/// A path as written; without spaces around it; percent-decoded; with slashes for backslashes; and in plain letters. `None` for one
/// with control characters or variables, which programs read in many ways.
pub(super) fn of_path(path: &str) -> Option<Vec<String>> {
    if path.contains(char::is_control) || has_variable(path) {
        return None;
    }
    let mut readings = vec![path.to_owned()];
    let others = [
        path.trim().to_owned(),
        percent_decode_str(path).decode_utf8().ok()?.into_owned(),
        path.replace('\\', "/"),
        path.nfkc().collect(),
    ];
    for other in others {
        if !readings.contains(&other) {
            readings.push(other);
        }
    }
    Some(readings)
}

/// Whether a shell, or a program that imitates one, would put in a value: `$HOME`, `${x}`, `$(x)`, `` `x` `` or `%HOME%`.
fn has_variable(path: &str) -> bool {
    let is_upper = |c: char| c.is_ascii_uppercase() || c == '_';
    let mut after = path.split('$').skip(1);
    let dollar = after.any(|rest| rest.starts_with(|c| is_upper(c) || matches!(c, '{' | '(')));
    let parts: Vec<&str> = path.split('%').collect();
    let mut between = parts.iter().skip(1).take(parts.len().saturating_sub(2));
    let percent = between.any(|name| !name.is_empty() && name.chars().all(is_upper));
    dollar || percent || path.contains('`')
}

/// A number as text; one without a fraction as an integer, since `5.0` and `5` are the same to a JSON Schema.
fn written(number: &Number) -> String {
    // Above this, not every integer is a floating-point number.
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(value) if number.is_f64() && value.fract() == 0.0 && value.abs() < LARGEST => {
            format!("{value:.0}")
        }
        _ => number.to_string(),
    }
}
