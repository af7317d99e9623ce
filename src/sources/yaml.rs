//! Reads a YAML text as JSON. Keys and scalars of other kinds (numbers, dates) become texts where JSON has no kind for them.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use serde_json::{Map, Number, Value};

/// The deepest nesting that is read.
const DEEPEST: usize = 128;

/// The maximum size of what anchors keep and aliases repeat, as [`size`] counts it: a few lines could otherwise stand for any
/// amount of values.
const MOST_REPEATED: usize = 64 * 1024 * 1024;

/// The memory of a value in addition to its text, in bytes.
const VALUE: usize = 64;

/// Parses the first document of a text.
///
/// # Errors
/// The fault with its line.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader {
        events: Parser::new_from_str(text),
        anchors: BTreeMap::new(),
        repeated: 0,
    };
    loop {
        match reader.next()? {
            None | Some((Event::StreamEnd, _)) => return Ok(Value::Null),
            Some((
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing,
                _,
            )) => {}
            Some((event, _)) => return reader.value(event, 0),
        }
    }
}

struct Reader<'t> {
    events: Parser<'t, StrInput<'t>>,
    /// The values that aliases repeat, and their sizes.
    anchors: BTreeMap<usize, (Value, usize)>,
    repeated: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, String> {
        let event = self.events.next_event().transpose();
        event.map_err(|error| format!("line {}: {}", error.marker().line(), error.info()))
    }

    fn value(&mut self, event: Event<'t>, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err(format!("it is nested deeper than {DEEPEST} levels"));
        }
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, _) => (anchor, scalar(&text, style)),
            Event::Alias(id) => {
                let Some((value, size)) = self.anchors.get(&id) else {
                    return Ok(Value::Null);
                };
                let size = *size;
                let value = value.clone();
                self.repeat(size)?;
                return Ok(value);
            }
            Event::SequenceStart(anchor, _) => {
                let mut items = Vec::new();
                while let Some((event, _)) = self.next()? {
                    if matches!(event, Event::SequenceEnd) {
                        break;
                    }
                    items.push(self.value(event, depth + 1)?);
                }
                (anchor, Value::Array(items))
            }
            Event::MappingStart(anchor, _) => (anchor, Value::Object(self.members(depth)?)),
            _ => (0, Value::Null),
        };
        if anchor > 0 {
            let size = size(&value);
            self.repeat(size)?;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        Ok(value)
    }

    /// Counts a copy of this size.
    fn repeat(&mut self, size: usize) -> Result<(), String> {
        self.repeated += size;
        match self.repeated > MOST_REPEATED {
            true => Err("its aliases repeat too much".to_owned()),
            false => Ok(()),
        }
    }

    fn members(&mut self, depth: usize) -> Result<Map<String, Value>, String> {
        let (mut members, mut merged) = (Map::new(), Vec::new());
        while let Some((event, _)) = self.next()? {
            let key = match event {
                Event::MappingEnd => break,
                // A key is a text, also where it looks like a number or a date.
                Event::Scalar(text, ..) => text.into_owned(),
                other => self.value(other, depth + 1)?.to_string(),
            };
            let Some((event, _)) = self.next()? else {
                break;
            };
            let value = self.value(event, depth + 1)?;
            if key == "<<" {
                merged.push(value);
            } else {
                members.insert(key, value);
            }
        }
        for value in merged {
            let parts = match value {
                Value::Array(parts) => parts,
                part => vec![part],
            };
            for part in parts {
                let Value::Object(part) = part else {
                    continue;
                };
                for (key, value) in part {
                    members.entry(key).or_insert(value);
                }
            }
        }
        Ok(members)
    }
}

/// About how many bytes of memory `value` takes.
fn size(value: &Value) -> usize {
    let inside = match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| VALUE + key.len() + size(value))
            .sum(),
        Value::String(text) => text.len(),
        _ => 0,
    };
    VALUE + inside
}

/// A scalar of the core schema (YAML 1.2, 10.3).
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    if let Ok(number) = text.parse::<u64>() {
        return number.into();
    }
    let is_decimal = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E'));
    let number = text.parse::<f64>().ok().filter(|_| is_decimal);
    number
        .and_then(Number::from_f64)
        .map_or_else(|| text.into(), Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_becomes_json() {
        let text = "a: 1\n'b': '1'\n200: {c: [true, ~, 1.5, 1.2.3, 2020-01-01]}\nbase: &x {d: e}\nuse: *x\nmerged: {<<: *x, f: 0x1f}\n";
        let expected = json!({
            "a": 1, "b": "1", "200": { "c": [true, null, 1.5, "1.2.3", "2020-01-01"] },
            "base": { "d": "e" }, "use": { "d": "e" }, "merged": { "d": "e", "f": "0x1f" },
        });
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn aliases_that_repeat_without_end_are_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = level - 1;
            let list = vec![format!("*a{before}"); 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{list}]\n"));
        }
        assert!(parse(&text).unwrap_err().contains("repeat"));
        // Few values, but long ones.
        let text = format!(
            "a: &a {}\nb: [{}]\n",
            "x".repeat(1_000_000),
            vec!["*a"; 100].join(", ")
        );
        assert!(parse(&text).unwrap_err().contains("repeat"));
        assert!(parse("a: [1\nb: }").unwrap_err().contains("line"));
    }
}
