//! The compact form of results: JSON without insignificant whitespace, and arrays of like objects as tables.
//!
//! `[{"id":1,"name":"a"},{"id":2,"name":"b"}]` becomes `{"$columns":["id","name"],"$rows":[[1,"a"],[2,"b"]]}`. The text
//! stays JSON, and every key, number and string keeps its own characters, so nothing is lost. On the real results of
//! docs/answers.md this form takes 32 % fewer tokens than the servers' own; without the tables 30 %, as TOON 25 %.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::duplicate::repeats;
use crate::mcp::Object;
use crate::mcp::object::quoted;

/// The keys of a table. Data that have one of them already get no tables.
const COLUMNS: &str = "$columns";
const ROWS: &str = "$rows";

/// The size in bytes above which a result is left as it is.
const LARGEST: usize = 1024 * 1024;

/// The nesting above which data get no tables: the recursion ends before the thread's stack does.
const DEEPEST: usize = 64;

/// The result with its JSON texts in compact form, and without the structured content that one of them repeats, unless the
/// client may check that by a schema. `None` if that would not be shorter, or if the result is an error.
pub(in crate::proxy) fn compacted(result: &[u8], has_schema: bool) -> Option<Bytes> {
    if result.len() > LARGEST {
        return None;
    }
    let raw: &RawValue = serde_json::from_slice(result).ok()?;
    let object = Object::parse(raw).ok()?;
    if object.get("isError").is_some_and(|raw| raw.get() == "true") {
        return None;
    }
    let structured = object
        .get("structuredContent")
        .filter(|raw| raw.get() != "null");
    let blocks: Vec<&RawValue> = serde_json::from_str(object.get("content")?.get()).ok()?;
    let is_repeated = !has_schema
        && structured
            .is_some_and(|structured| blocks.iter().any(|block| repeats(block, structured)));
    let blocks: Vec<Cow<'_, str>> = blocks.into_iter().map(block).collect();
    let content = format!("[{}]", blocks.join(","));
    let shorter = object.with("content", &content);
    let shorter = match is_repeated {
        true => {
            let raw: &RawValue = serde_json::from_str(&shorter).ok()?;
            Object::parse(raw).ok()?.without("structuredContent")
        }
        false => shorter,
    };
    (shorter.len() < result.len()).then(|| shorter.into())
}

/// A content block, with its text in compact form if that is JSON.
fn block(raw: &RawValue) -> Cow<'_, str> {
    let compact = || {
        let block = Object::parse(raw).ok()?;
        if block.text("type").as_deref() != Some("text") {
            return None;
        }
        let text = block.text("text")?;
        let compact = compact(&text)?;
        (compact.len() < text.len()).then(|| block.with("text", &quoted(&compact)))
    };
    compact().map_or(Cow::Borrowed(raw.get()), Cow::Owned)
}

/// The compact form of a JSON text; `None` if it is neither an object nor an array.
fn compact(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    let plain = without_whitespace(raw.get());
    let raw = serde_json::from_str(&plain).ok();
    match raw.and_then(|raw| with_tables(raw, DEEPEST)) {
        Some(tables) => Some(tables),
        None => Some(plain),
    }
}

/// A JSON text without the whitespace between its tokens.
fn without_whitespace(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let kept = json.chars().filter(|c| {
        let is_kept = is_text || !c.is_ascii_whitespace();
        match c {
            '"' if !is_escaped => is_text = !is_text,
            _ => {}
        }
        is_escaped = *c == '\\' && !is_escaped;
        is_kept
    });
    kept.collect()
}

/// A value, whose text has no whitespace, with its arrays of like objects as tables. `None` if its data have a key of
/// tables already, or more than `depth` levels.
fn with_tables(raw: &RawValue, depth: usize) -> Option<String> {
    let below = depth.checked_sub(1)?;
    match raw.get().as_bytes().first() {
        Some(b'{') => Some(object(&members(&Object::parse(raw).ok()?, below)?)),
        Some(b'[') => array(&serde_json::from_str::<Vec<_>>(raw.get()).ok()?, below),
        _ => Some(raw.get().to_owned()),
    }
}

/// The members of an object: each key with its quotes, and its value with tables.
fn members<'a>(object: &Object<'a>, depth: usize) -> Option<Vec<(&'a str, String)>> {
    let is_taken = |(key, _): (Cow<'_, str>, _)| key == COLUMNS || key == ROWS;
    if object.iter().any(is_taken) {
        return None;
    }
    let members = object.members().iter();
    members
        .map(|(key, value)| Some((key.get(), with_tables(value, depth)?)))
        .collect()
}

fn object(members: &[(&str, String)]) -> String {
    let members = members.iter().map(|(key, value)| format!("{key}:{value}"));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// An array, as a table if it has at least two objects with the same keys in the same order, each once, and that is
/// shorter.
fn array(items: &[&RawValue], depth: usize) -> Option<String> {
    let objects: Option<Vec<Object<'_>>> =
        items.iter().map(|item| Object::parse(item).ok()).collect();
    let objects = objects.filter(|objects| objects.len() > 1 && is_alike(objects));
    let Some(objects) = objects else {
        let items = items.iter().map(|item| with_tables(item, depth));
        return Some(format!(
            "[{}]",
            items.collect::<Option<Vec<_>>>()?.join(",")
        ));
    };
    let rows = objects.iter().map(|object| members(object, depth));
    let rows: Vec<_> = rows.collect::<Option<_>>()?;
    let columns: Vec<&str> = rows[0].iter().map(|(key, _)| *key).collect();
    // A row has its keys and a colon each, and braces for brackets; a table has the keys once, and its frame.
    let keys: usize = columns.iter().map(|key| key.len() + 1).sum();
    let frame = format!(r#"{{"{COLUMNS}":[],"{ROWS}":[]}}"#).len();
    if keys * rows.len() <= keys + frame {
        let rows: Vec<String> = rows.iter().map(|row| object(row)).collect();
        return Some(format!("[{}]", rows.join(",")));
    }
    let row = |row: &Vec<(&str, String)>| {
        let cells: Vec<&str> = row.iter().map(|(_, value)| value.as_str()).collect();
        format!("[{}]", cells.join(","))
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    Some(format!(
        r#"{{"{COLUMNS}":[{}],"{ROWS}":[{}]}}"#,
        columns.join(","),
        rows.join(",")
    ))
}

/// Whether all objects have the same keys in the same order, each once.
fn is_alike(objects: &[Object<'_>]) -> bool {
    let keys = |object: &Object<'_>| -> Vec<String> {
        object.iter().map(|(key, _)| key.into_owned()).collect()
    };
    let first = keys(&objects[0]);
    let is_unique = first.iter().collect::<HashSet<_>>().len() == first.len();
    !first.is_empty() && is_unique && objects.iter().all(|object| keys(object) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(compact(text).as_deref(), Some(expected));
    }

    /// The data that a compact text stands for.
    fn expanded(value: &serde_json::Value) -> serde_json::Value {
        use serde_json::Value;
        match value {
            Value::Array(items) => items.iter().map(expanded).collect(),
            Value::Object(members) => match (members.get("$columns"), members.get("$rows")) {
                (Some(Value::Array(columns)), Some(Value::Array(rows))) => {
                    let row = |row: &Value| {
                        let cells = row.as_array().unwrap().iter().map(expanded);
                        let names = columns.iter().map(|name| name.as_str().unwrap().to_owned());
                        Value::Object(names.zip(cells).collect())
                    };
                    rows.iter().map(row).collect()
                }
                _ => {
                    let members = members
                        .iter()
                        .map(|(key, value)| (key.clone(), expanded(value)));
                    Value::Object(members.collect())
                }
            },
            other => other.clone(),
        }
    }

    #[test]
    fn whitespace_between_tokens_goes_and_every_other_character_stays() {
        check(
            "{ \"a\" : [ 1.0 , 1e400,\n\t\"x  \\\" y\\\\\" ] }",
            r#"{"a":[1.0,1e400,"x  \" y\\"]}"#,
        );
        check(r#"{"a": 1, "a": 2}"#, r#"{"a":1,"a":2}"#);
        assert_eq!(compact("just words"), None);
        assert_eq!(compact("{not json}"), None);
        assert_eq!(compact("12345"), None);
    }

    #[test]
    fn like_objects_become_a_table_if_that_is_shorter() {
        check(
            r#"[{"identity": 1, "name": "a"}, {"identity": 2, "name": "b"}, {"identity": 3, "name": "c"}]"#,
            r#"{"$columns":["identity","name"],"$rows":[[1,"a"],[2,"b"],[3,"c"]]}"#,
        );
        check(r#"[{"i": 1}, {"i": 2}]"#, r#"[{"i":1},{"i":2}]"#);
        let unlike = r#"[{"identity":1},{"identity":2,"other":3},{"identity":4}]"#;
        check(unlike, unlike);
        let in_another_order = r#"[{"identity":1,"other":2},{"other":2,"identity":1}]"#;
        check(in_another_order, in_another_order);
        check(
            r#"{"all":[{"identity":1,"parts":[{"length":1,"width":2},{"length":3,"width":4},{"length":5,"width":6}]},{"identity":2,"parts":[]}]}"#,
            r#"{"all":[{"identity":1,"parts":{"$columns":["length","width"],"$rows":[[1,2],[3,4],[5,6]]}},{"identity":2,"parts":[]}]}"#,
        );
    }

    #[test]
    fn data_that_look_like_a_table_get_none() {
        let own = r#"[{"$rows":1,"name":2},{"$rows":3,"name":4},{"$rows":5,"name":6}]"#;
        check(own, own);
        let escaped =
            r#"[{"\u0024rows":1,"name":2},{"\u0024rows":3,"name":4},{"\u0024rows":5,"name":6}]"#;
        check(escaped, escaped);
    }

    #[test]
    fn data_of_many_levels_get_no_tables() {
        let like = r#"[{"identity":1,"name":2},{"identity":3,"name":4},{"identity":5,"name":6}]"#;
        let nested = |levels: usize| format!("{}{like}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(compact(&nested(20)).unwrap().contains(COLUMNS));
        for levels in [DEEPEST, 400_000] {
            assert_eq!(compact(&nested(levels)), Some(nested(levels)));
        }
    }

    #[test]
    fn nothing_is_lost() {
        let texts = [
            r#"[[{"key":null,"other":true},{"key":[],"other":{}},{"key":"","other":[{"long name":1},{"long name":2},{"long name":3}]}]]"#,
            r#"{"a": {"b": [{"c c": "ä\n", "d d": 1}, {"c c": "\t", "d d": 2}, {"c c": "", "d d": -0.0}]}}"#,
            "[[], {}, [[]], [{}], [{}, {}]]",
        ];
        for text in texts {
            let before: serde_json::Value = serde_json::from_str(text).unwrap();
            let after = serde_json::from_str(&compact(text).unwrap()).unwrap();
            assert_eq!(expanded(&after), before);
        }
    }

    #[test]
    fn errors_and_other_content_stay_as_they_are() {
        let error = br#"{"content":[{"type":"text","text":"{ \"a\" : 1 }"}],"isError":true}"#;
        assert_eq!(compacted(error, false), None);
        let text =
            br#"{"content":[{"type":"text","text":"two  words"},{"type":"image","data":"x"}]}"#;
        assert_eq!(compacted(text, false), None);
        let both = br#"{"content":[{"type":"text","text":"{ \"a\" : 1 }"},{"type":"image","data":"x"}],"structuredContent":{"a":1}}"#;
        assert_eq!(
            compacted(both, false).unwrap(),
            r#"{"content":[{"type":"text","text":"{\"a\":1}"},{"type":"image","data":"x"}]}"#
        );
        assert_eq!(
            compacted(both, true).unwrap(),
            r#"{"content":[{"type":"text","text":"{\"a\":1}"},{"type":"image","data":"x"}],"structuredContent":{"a":1}}"#
        );
    }
}
