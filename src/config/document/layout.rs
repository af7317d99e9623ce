//! Formats new values like the text around them.

use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::Ranged as _;

use crate::mcp::object::quoted;

/// The format of values.
pub(super) struct Layout<'d> {
    /// The indentation of one level.
    pub(super) unit: &'d str,
    pub(super) line_end: &'d str,
}

impl Layout<'_> {
    /// The value in one line; texts and numbers as written in `source`.
    pub(super) fn inline(&self, value: &Value<'_>, source: &str) -> String {
        match value {
            Value::Object(object) => {
                let members = object.properties.iter().map(|property| {
                    format!(
                        "{}: {}",
                        name(property),
                        self.inline(&property.value, source)
                    )
                });
                format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
            }
            Value::Array(array) => {
                let items = array.elements.iter().map(|item| self.inline(item, source));
                format!("[{}]", items.collect::<Vec<_>>().join(", "))
            }
            scalar => source[scalar.start()..scalar.end()].to_owned(),
        }
    }

    /// The value with one line per member of an object; lists of plain values in one line.
    pub(super) fn lines(&self, value: &Value<'_>, source: &str, indent: &str) -> String {
        let (inner, line_end) = (format!("{indent}{}", self.unit), self.line_end);
        let parts: Vec<String> = match value {
            Value::Object(object) => object
                .properties
                .iter()
                .map(|property| {
                    format!(
                        "{}: {}",
                        name(property),
                        self.lines(&property.value, source, &inner)
                    )
                })
                .collect(),
            Value::Array(array)
                if array
                    .elements
                    .iter()
                    .any(|item| matches!(item, Value::Object(_))) =>
            {
                array
                    .elements
                    .iter()
                    .map(|item| self.lines(item, source, &inner))
                    .collect()
            }
            plain => return self.inline(plain, source),
        };
        if parts.is_empty() {
            return self.inline(value, source);
        }
        let (open, close) = if matches!(value, Value::Object(_)) {
            ('{', '}')
        } else {
            ('[', ']')
        };
        let parts = parts.join(&format!(",{line_end}{inner}"));
        format!("{open}{line_end}{inner}{parts}{line_end}{indent}{close}")
    }
}

fn name(property: &ObjectProp<'_>) -> String {
    quoted(property.name.as_str())
}
