//! Values of parameters in their styles (OpenAPI 3.1, 4.8.12.3 and appendix E).

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::operation::{Parameter, Style};

/// All but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The escaped characters if reserved ones are allowed: those that would end a value or a query are escaped.
const RESERVED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'^')
    .add(b'\\')
    .add(b'|')
    .add(b'%')
    .add(b'#')
    .add(b'&')
    .add(b'+');

pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// A value by its kind, its parts as texts.
enum Parts {
    One(String),
    List(Vec<String>),
    Members(Vec<(String, String)>),
}

impl Parts {
    fn of(value: &Value) -> Self {
        match value {
            Value::Array(items) => Self::List(items.iter().map(plain).collect()),
            Value::Object(members) => Self::Members(
                members
                    .iter()
                    .map(|(name, value)| (name.clone(), plain(value)))
                    .collect(),
            ),
            value => Self::One(plain(value)),
        }
    }

    fn encoded(self, encode: impl Fn(&str) -> String) -> Self {
        match self {
            Self::One(text) => Self::One(encode(&text)),
            Self::List(items) => Self::List(items.iter().map(|text| encode(text)).collect()),
            Self::Members(members) => Self::Members(
                members
                    .iter()
                    .map(|(name, text)| (encode(name), encode(text)))
                    .collect(),
            ),
        }
    }
}

/// A value as text; what is nested is JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

/// The text of a parameter in a path.
pub(super) fn in_path(parameter: &Parameter, value: &Value) -> String {
    let parts = match parameter.is_json {
        true => Parts::One(value.to_string()),
        false => Parts::of(value),
    };
    let (parts, name) = (parts.encoded(encoded), encoded(&parameter.name));
    let pairs = |members: Vec<(String, String)>, between: &str| {
        let pairs = members
            .into_iter()
            .map(|(name, value)| format!("{name}{between}{value}"));
        pairs.collect::<Vec<_>>()
    };
    match (parameter.style, parts, parameter.explode) {
        (Style::Label, Parts::One(text), _) => format!(".{text}"),
        (Style::Label, Parts::List(items), true) => {
            items.iter().map(|text| format!(".{text}")).collect()
        }
        (Style::Label, Parts::List(items), false) => format!(".{}", items.join(",")),
        (Style::Label, Parts::Members(all), true) => format!(".{}", pairs(all, "=").join(".")),
        (Style::Label, Parts::Members(all), false) => format!(".{}", pairs(all, ",").join(",")),
        (Style::Matrix, Parts::One(text), _) => format!(";{name}={text}"),
        (Style::Matrix, Parts::List(items), true) => {
            items.iter().map(|text| format!(";{name}={text}")).collect()
        }
        (Style::Matrix, Parts::List(items), false) => format!(";{name}={}", items.join(",")),
        (Style::Matrix, Parts::Members(all), true) => format!(";{}", pairs(all, "=").join(";")),
        (Style::Matrix, Parts::Members(all), false) => {
            format!(";{name}={}", pairs(all, ",").join(","))
        }
        (_, parts, explode) => simple(parts, explode),
    }
}

/// The text of a parameter in a header.
pub(super) fn in_header(parameter: &Parameter, value: &Value) -> String {
    match parameter.is_json {
        true => value.to_string(),
        false => simple(Parts::of(value), parameter.explode),
    }
}

fn simple(parts: Parts, explode: bool) -> String {
    match parts {
        Parts::One(text) => text,
        Parts::List(items) => items.join(","),
        Parts::Members(members) => {
            let between = if explode { "=" } else { "," };
            let pairs = members
                .into_iter()
                .map(|(name, value)| format!("{name}{between}{value}"));
            pairs.collect::<Vec<_>>().join(",")
        }
    }
}

/// How a value is written in a query, a cookie or a form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) style: Style,
    pub(super) explode: bool,
    pub(super) allows_reserved: bool,
}

/// The pairs of a value in a query or a form, percent-encoded.
pub(super) fn pairs(name: &str, value: &Value, written: Written) -> Vec<(String, String)> {
    let encode = |text: &str| match written.allows_reserved {
        true => utf8_percent_encode(text, RESERVED).to_string(),
        false => encoded(text),
    };
    let key = encoded(name);
    if written.style == Style::DeepObject && (value.is_object() || value.is_array()) {
        let mut all = Vec::new();
        deep(&key, value, &encode, &mut all);
        return all;
    }
    let between = match written.style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        Style::TabDelimited => "%09",
        _ => ",",
    };
    match Parts::of(value).encoded(encode) {
        Parts::One(text) => vec![(key, text)],
        Parts::List(items) if written.explode => {
            items.into_iter().map(|text| (key.clone(), text)).collect()
        }
        // An empty list has no value that could be sent.
        Parts::List(items) if items.is_empty() => Vec::new(),
        Parts::List(items) => vec![(key, items.join(between))],
        Parts::Members(members) if written.explode => members,
        Parts::Members(members) => {
            let flat: Vec<String> = members
                .into_iter()
                .flat_map(|(name, text)| [name, text])
                .collect();
            vec![(key, flat.join(between))]
        }
    }
}

/// `name[member]=value`, as deep as the value is. Lists repeat their name.
fn deep(
    key: &str,
    value: &Value,
    encode: &impl Fn(&str) -> String,
    all: &mut Vec<(String, String)>,
) {
    match value {
        Value::Object(members) => deep_members(key, members, encode, all),
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::Object(members) => {
                        deep_members(&format!("{key}[]"), members, encode, all);
                    }
                    item => all.push((key.to_owned(), encode(&plain(item)))),
                }
            }
        }
        value => all.push((key.to_owned(), encode(&plain(value)))),
    }
}

fn deep_members(
    key: &str,
    members: &Map<String, Value>,
    encode: &impl Fn(&str) -> String,
    all: &mut Vec<(String, String)>,
) {
    for (name, value) in members {
        deep(&format!("{key}[{}]", encoded(name)), value, encode, all);
    }
}

/// Pairs as one text.
pub(super) fn joined(pairs: &[(String, String)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sources::openapi::operation::ParameterLocation;

    fn parameter(style: Style, explode: bool) -> Parameter {
        Parameter {
            argument: "color".to_owned(),
            name: "color".to_owned(),
            place: ParameterLocation::Path,
            style,
            explode,
            is_required: true,
            allows_reserved: false,
            is_json: false,
            schema: json!({}),
        }
    }

    /// The table of examples of the specification (4.8.12.4).
    #[test]
    fn every_style_is_written_as_the_specification_shows() {
        let (one, list) = (json!("blue"), json!(["blue", "black", "brown"]));
        let members = json!({ "R": 100, "G": 200, "B": 150 });
        let sorted = |text: &str| {
            let mut parts: Vec<&str> = text.split(['&', ';', '.', ',']).collect();
            parts.sort_unstable();
            parts.join(" ")
        };
        for (style, explode, expected) in [
            (
                Style::Matrix,
                false,
                [
                    ";color=blue",
                    ";color=blue,black,brown",
                    ";color=B,150,G,200,R,100",
                ],
            ),
            (
                Style::Matrix,
                true,
                [
                    ";color=blue",
                    ";color=blue;color=black;color=brown",
                    ";B=150;G=200;R=100",
                ],
            ),
            (
                Style::Label,
                false,
                [".blue", ".blue,black,brown", ".B,150,G,200,R,100"],
            ),
            (
                Style::Label,
                true,
                [".blue", ".blue.black.brown", ".B=150.G=200.R=100"],
            ),
            (
                Style::Simple,
                false,
                ["blue", "blue,black,brown", "B,150,G,200,R,100"],
            ),
            (
                Style::Simple,
                true,
                ["blue", "blue,black,brown", "B=150,G=200,R=100"],
            ),
        ] {
            for (value, expected) in [&one, &list, &members].into_iter().zip(expected) {
                let written = in_path(&parameter(style, explode), value);
                assert_eq!(sorted(&written), sorted(expected), "{style:?} {explode}");
            }
        }
        for (style, explode, value, expected) in [
            (Style::Form, false, &list, "color=blue,black,brown"),
            (
                Style::Form,
                true,
                &list,
                "color=blue&color=black&color=brown",
            ),
            (Style::Form, true, &members, "B=150&G=200&R=100"),
            (Style::Form, false, &members, "color=B,150,G,200,R,100"),
            (
                Style::SpaceDelimited,
                false,
                &list,
                "color=blue%20black%20brown",
            ),
            (
                Style::PipeDelimited,
                false,
                &list,
                "color=blue%7Cblack%7Cbrown",
            ),
            (
                Style::DeepObject,
                true,
                &members,
                "color[B]=150&color[G]=200&color[R]=100",
            ),
        ] {
            let written = Written {
                style,
                explode,
                allows_reserved: false,
            };
            let text = joined(&pairs("color", value, written));
            assert_eq!(sorted(&text), sorted(expected), "{style:?} {explode}");
        }
    }

    #[test]
    fn a_value_never_ends_its_parameter() {
        let hostile = json!("a/../b?c=d&e#f g");
        assert_eq!(
            in_path(&parameter(Style::Simple, false), &hostile),
            "a%2F..%2Fb%3Fc%3Dd%26e%23f%20g"
        );
        let written = Written {
            style: Style::Form,
            explode: true,
            allows_reserved: true,
        };
        assert_eq!(
            joined(&pairs("q", &hostile, written)),
            "q=a/../b?c=d%26e%23f%20g"
        );
    }
}
