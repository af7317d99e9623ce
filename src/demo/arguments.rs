//! The arguments of a call, checked once against the tool's declaration and then read without further ado.

use serde_json::{Map, Value};
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, OffsetDateTime};

use super::schema::{Field, Kind, Presence};

/// Arguments that fit their declaration; what was left out has its default.
pub(super) struct Arguments {
    values: Map<String, Value>,
    fields: &'static [Field],
}

impl Arguments {
    /// Checks `values` against `fields`.
    ///
    /// # Errors
    /// Every fault, each with the place where it is.
    pub(super) fn check(
        fields: &'static [Field],
        values: &Map<String, Value>,
    ) -> Result<Self, String> {
        let mut faults = Vec::new();
        let values = object(fields, values, "", &mut faults);
        if faults.is_empty() {
            Ok(Self { values, fields })
        } else {
            Err(faults.join("; "))
        }
    }

    /// The value of `name`, if it was given or has a default.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        debug_assert!(
            self.fields.iter().any(|field| field.name == name),
            "`{name}` is not declared"
        );
        self.values.get(name)
    }

    /// A text; empty when it was left out.
    pub(super) fn text(&self, name: &str) -> &str {
        self.optional_text(name).unwrap_or_default()
    }

    /// A text that may be left out.
    pub(super) fn optional_text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Several texts; none when they were left out.
    pub(super) fn texts(&self, name: &str) -> Vec<&str> {
        self.list(name).iter().filter_map(Value::as_str).collect()
    }

    /// A number; 0 when it was left out.
    pub(super) fn number(&self, name: &str) -> f64 {
        self.get(name).and_then(Value::as_f64).unwrap_or_default()
    }

    /// Several numbers.
    pub(super) fn numbers(&self, name: &str) -> Vec<f64> {
        self.list(name).iter().filter_map(Value::as_f64).collect()
    }

    /// A whole number; 0 when it was left out.
    pub(super) fn integer(&self, name: &str) -> i64 {
        self.optional_integer(name).unwrap_or_default()
    }

    /// A whole number that may be left out.
    pub(super) fn optional_integer(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(whole)
    }

    /// A whole number as a length or a limit; 0 when it was left out or is negative.
    pub(super) fn size(&self, name: &str) -> usize {
        usize::try_from(self.integer(name)).unwrap_or_default()
    }

    /// A flag; false when it was left out.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A day that may be left out.
    pub(super) fn optional_date(&self, name: &str) -> Option<Date> {
        parse_date(self.get(name)?.as_str()?)
    }

    /// A day.
    ///
    /// # Errors
    /// When it was left out, which the check rules out for a required one.
    pub(super) fn date(&self, name: &str) -> Result<Date, String> {
        self.optional_date(name)
            .ok_or_else(|| format!("`{name}` is missing"))
    }

    /// A moment that may be left out.
    pub(super) fn optional_moment(&self, name: &str) -> Option<OffsetDateTime> {
        parse_moment(self.get(name)?.as_str()?)
    }

    /// A moment.
    ///
    /// # Errors
    /// When it was left out, which the check rules out for a required one.
    pub(super) fn moment(&self, name: &str) -> Result<OffsetDateTime, String> {
        self.optional_moment(name)
            .ok_or_else(|| format!("`{name}` is missing"))
    }

    /// The items of a list; none when it was left out.
    pub(super) fn list(&self, name: &str) -> &[Value] {
        self.get(name)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// An object with any member names.
    pub(super) fn map(&self, name: &str) -> Option<&Map<String, Value>> {
        self.get(name)?.as_object()
    }

    /// An object with members of its own.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        let values = self.map(name)?.clone();
        match self.fields.iter().find(|field| field.name == name)?.kind {
            Kind::Object(fields) => Some(Self { values, fields }),
            _ => None,
        }
    }
}

/// Reads a day such as `2026-03-01`.
pub(super) fn parse_date(text: &str) -> Option<Date> {
    Date::parse(text, format_description!("[year]-[month]-[day]")).ok()
}

/// Reads a moment such as `2026-03-01T09:00:00+01:00`.
pub(super) fn parse_moment(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

fn object(
    fields: &'static [Field],
    values: &Map<String, Value>,
    path: &str,
    faults: &mut Vec<String>,
) -> Map<String, Value> {
    let place = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    for name in values
        .keys()
        .filter(|name| fields.iter().all(|field| field.name != name.as_str()))
    {
        let known: Vec<_> = fields
            .iter()
            .map(|field| format!("`{}`", field.name))
            .collect();
        let known = if known.is_empty() {
            "there are no parameters".to_owned()
        } else {
            known.join(", ")
        };
        faults.push(format!(
            "`{}` is not a parameter (known: {known})",
            place(name)
        ));
    }
    let mut checked = Map::new();
    for field in fields {
        let given = values
            .get(field.name)
            .filter(|value| !value.is_null() || matches!(field.kind, Kind::Any));
        let value = match (given, field.presence) {
            (Some(value), _) => fitting(&field.kind, value, &place(field.name), faults),
            (None, Presence::Optional) => continue,
            (None, Presence::Default(json)) => serde_json::from_str(json).unwrap_or_default(),
            (None, Presence::Required) => {
                faults.push(format!(
                    "`{}` is missing: {}",
                    place(field.name),
                    field.description
                ));
                continue;
            }
        };
        checked.insert(field.name.to_owned(), value);
    }
    checked
}

/// The value with its defaults filled in; a fault is noted when it does not fit.
fn fitting(kind: &Kind, value: &Value, path: &str, faults: &mut Vec<String>) -> Value {
    match (kind, value) {
        (Kind::List(item), Value::Array(items)) => {
            return items
                .iter()
                .enumerate()
                .map(|(i, v)| fitting(item, v, &format!("{path}[{i}]"), faults))
                .collect();
        }
        (Kind::Object(fields), Value::Object(values)) => {
            return Value::Object(object(fields, values, path, faults));
        }
        (Kind::Map(item), Value::Object(values)) => {
            for (name, value) in values {
                fitting(item, value, &format!("{path}.{name}"), faults);
            }
            return value.clone();
        }
        _ => {}
    }
    let fits = match kind {
        Kind::Any => true,
        Kind::Text => value.is_string(),
        Kind::Number => value.is_number(),
        Kind::Flag => value.is_boolean(),
        Kind::Date => value.as_str().and_then(parse_date).is_some(),
        Kind::Moment => value.as_str().and_then(parse_moment).is_some(),
        Kind::Choice(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        Kind::Integer(least, most) => whole(value).is_some_and(|n| (*least..=*most).contains(&n)),
        Kind::List(_) | Kind::Object(_) | Kind::Map(_) => false,
    };
    if !fits {
        faults.push(format!(
            "`{path}` must be {}, not {}",
            wanted(kind),
            shortened(value)
        ));
    }
    value.clone()
}

/// A whole number, also when it was written with a fraction of zero, which JSON Schema takes for an integer.
fn whole(value: &Value) -> Option<i64> {
    // A float beyond the range saturates, and the bounds of the declaration then refuse it.
    value.as_i64().or_else(|| {
        value
            .as_f64()
            .filter(|n| n.fract() == 0.0)
            .map(|n| n as i64)
    })
}

fn wanted(kind: &Kind) -> String {
    match kind {
        Kind::Text => "a string".to_owned(),
        Kind::Date => "a date such as \"2026-03-01\"".to_owned(),
        Kind::Moment => {
            "a time with its UTC offset such as \"2026-03-01T09:00:00+01:00\"".to_owned()
        }
        Kind::Choice(words) => format!("one of {}", words.join(", ")),
        Kind::Number => "a number".to_owned(),
        Kind::Integer(least, i64::MAX) => format!("a whole number from {least}"),
        Kind::Integer(least, most) => format!("a whole number from {least} to {most}"),
        Kind::Flag => "true or false".to_owned(),
        Kind::List(_) => "an array".to_owned(),
        Kind::Object(_) | Kind::Map(_) => "an object".to_owned(),
        Kind::Any => "any value".to_owned(),
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::schema::{optional, required, with_default};
    use super::*;

    const INNER: &[Field] = &[with_default(
        "every",
        Kind::Integer(1, 9),
        "1",
        "How often.",
    )];
    const FIELDS: &[Field] = &[
        required("title", Kind::Text, "What it is called."),
        optional("repeat", Kind::Object(INNER), "How it repeats."),
        optional("days", Kind::List(&Kind::Date), "When."),
    ];

    #[track_caller]
    fn refuses(arguments: &Value, fault: &str) {
        match Arguments::check(FIELDS, arguments.as_object().unwrap()) {
            Ok(_) => panic!("{arguments} was taken"),
            Err(error) => assert_eq!(error, fault),
        }
    }

    #[test]
    fn what_was_left_out_has_its_default_at_any_depth() {
        let given = json!({"title": "a", "repeat": {}, "days": null});
        let arguments = Arguments::check(FIELDS, given.as_object().unwrap()).unwrap();
        assert_eq!(arguments.object("repeat").unwrap().integer("every"), 1);
        assert!(arguments.list("days").is_empty());
    }

    #[test]
    fn every_fault_is_named_with_its_place() {
        refuses(&json!({}), "`title` is missing: What it is called.");
        refuses(
            &json!({"title": 1, "day": 2}),
            "`day` is not a parameter (known: `title`, `repeat`, `days`); `title` must be a string, not 1",
        );
        refuses(
            &json!({"title": "a", "repeat": {"every": 10}}),
            "`repeat.every` must be a whole number from 1 to 9, not 10",
        );
        refuses(
            &json!({"title": "a", "days": ["2026-02-28", "2026-02-29"]}),
            "`days[1]` must be a date such as \"2026-03-01\", not \"2026-02-29\"",
        );
    }
}
