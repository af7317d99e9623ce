//! A short description of the structure of data, for writing a filter.

use serde_json::value::RawValue;

use crate::mcp::Object;
use crate::mcp::object::text;

/// The maximum length of a shape, in characters.
const LONGEST: usize = 1000;

const DEEPEST: usize = 4;
const MOST_MEMBERS: usize = 24;
const LONGEST_EXAMPLE: usize = 24;

/// The filters of `helpers.jq` that take a text.
const FOR_TEXTS: &str =
    r#"It is a text: `lines`, `grep("regex")`, `head(20)` and `tail(20)` take a part of it."#;

/// The shape of `data`: types, lengths and short examples, such as
/// `{total: 3, items: array[3] of {id: 7, title: "milk", tags: array[0]}}`.
/// For a text, the filters that take one.
#[must_use]
pub(crate) fn shape_of(data: &RawValue) -> String {
    if data.get().starts_with('"') {
        return format!("{}. {FOR_TEXTS}", string(data));
    }
    let shape = (1..=DEEPEST)
        .rev()
        .map(|depth| describe(data, depth))
        .find(|shape| shape.chars().count() <= LONGEST);
    shape.unwrap_or_else(|| {
        describe(data, 1)
            .chars()
            .take(LONGEST - 1)
            .chain(['…'])
            .collect()
    })
}

fn describe(raw: &RawValue, depth: usize) -> String {
    match raw.get().as_bytes().first() {
        Some(b'{') => object(raw, depth),
        Some(b'[') => array(raw, depth),
        Some(b'"') => string(raw),
        _ => raw.get().to_owned(),
    }
}

fn object(raw: &RawValue, depth: usize) -> String {
    let object = Object::parse(raw).unwrap_or_default();
    let count = object.members().len();
    if depth == 0 {
        return format!("object[{count}]");
    }
    let mut members: Vec<String> = object
        .iter()
        .take(MOST_MEMBERS)
        .map(|(key, value)| format!("{}: {}", name(&key), describe(value, depth - 1)))
        .collect();
    if count > MOST_MEMBERS {
        members.push(format!("… {} more", count - MOST_MEMBERS));
    }
    format!("{{{}}}", members.join(", "))
}

fn array(raw: &RawValue, depth: usize) -> String {
    let items: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    match items.first() {
        Some(first) if depth > 0 => {
            format!("array[{}] of {}", items.len(), describe(first, depth - 1))
        }
        _ => format!("array[{}]", items.len()),
    }
}

fn string(raw: &RawValue) -> String {
    let value = text(raw).unwrap_or_default();
    let length = value.chars().count();
    if length <= LONGEST_EXAMPLE {
        return crate::mcp::object::quoted(&value);
    }
    let start: String = value.chars().take(LONGEST_EXAMPLE - 8).collect();
    format!("string[{length}] {}…", crate::mcp::object::quoted(&start))
}

/// A key in the syntax of filters.
fn name(key: &str) -> String {
    let is_plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !key.starts_with(|c: char| c.is_ascii_digit());
    if is_plain && !key.is_empty() {
        key.to_owned()
    } else {
        crate::mcp::object::quoted(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        assert_eq!(shape_of(serde_json::from_str(json).unwrap()), expected);
    }

    #[test]
    fn a_shape_says_what_a_filter_can_reach() {
        check("[]", "array[0]");
        check(r#""word""#, &format!("\"word\". {FOR_TEXTS}"));
        check("1e400", "1e400");
        check(
            r#"{"total":3,"items":[{"id":7,"tags":[],"a-b":"milk"},{},{}],"next":null}"#,
            r#"{total: 3, items: array[3] of {id: 7, tags: array[0], "a-b": "milk"}, next: null}"#,
        );
        let long = format!(r#"{{"body":"{}"}}"#, "x".repeat(500));
        check(
            &long,
            &format!("{{body: string[500] \"{}\"…}}", "x".repeat(16)),
        );
    }

    #[test]
    fn a_shape_is_short_whatever_the_data() {
        let wide: Vec<String> = (0..5000)
            .map(|n| format!(r#""key{n}":{{"inner":[{{"x":"{}"}}]}}"#, "y".repeat(99)))
            .collect();
        let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        for json in [
            format!("{{{}}}", wide.join(",")),
            deep,
            format!("[\"{}\"]", "z".repeat(100_000)),
        ] {
            let shape = shape_of(serde_json::from_str(&json).unwrap());
            assert!(
                shape.chars().count() <= LONGEST,
                "{} characters",
                shape.len()
            );
            assert!(!shape.is_empty());
        }
    }
}
