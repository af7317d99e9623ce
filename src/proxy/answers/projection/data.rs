//! The data in a tool's result: JSON, or its text.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::mcp::Object;
use crate::mcp::object::quoted;

/// The most characters of text around JSON that introduce it. A longer text is a part of the result, such as a page with one
/// example.
const INTRODUCTION: usize = 200;

/// The JSON data of a tool result: its `structuredContent`, else the one text block that is JSON, else the JSON in
/// the one fenced block of its text. The last two only if there is little other text.
#[must_use]
pub(crate) fn data_of<'a>(result: &Object<'a>) -> Option<Cow<'a, RawValue>> {
    if let Some(structured) = result
        .get("structuredContent")
        .filter(|raw| raw.get() != "null")
    {
        return Some(Cow::Borrowed(structured));
    }
    let texts = texts_of(result);
    let length: usize = texts.iter().map(|text| text.trim().chars().count()).sum();
    let only = |mut parsed: Vec<Box<RawValue>>| {
        let only = parsed.pop().filter(|_| parsed.is_empty())?;
        (length <= only.get().chars().count() + INTRODUCTION).then_some(Cow::Owned(only))
    };
    let parsed: Vec<_> = texts.iter().filter_map(|text| json(text)).collect();
    if !parsed.is_empty() {
        return only(parsed);
    }
    let fenced = texts.iter().flat_map(|text| fences(text));
    only(fenced.filter_map(json).collect())
}

/// The input of a filter on a tool result: its JSON data, else all its text as one string. `None` if it has no text.
pub(in crate::proxy) fn input_of<'a>(result: &Object<'a>) -> Option<Cow<'a, RawValue>> {
    data_of(result).or_else(|| text_as_data(result).map(Cow::Owned))
}

/// The text blocks of a result as one JSON string; `None` if there are none.
pub(in crate::proxy) fn text_as_data(result: &Object<'_>) -> Option<Box<RawValue>> {
    let texts = texts_of(result);
    let text = (!texts.is_empty()).then(|| quoted(&texts.join("\n")))?;
    Some(RawValue::from_string(text).expect("a quoted text is JSON"))
}

/// The texts of a result's text blocks, and of the resources in it that are texts.
pub(in crate::proxy) fn texts_of(result: &Object<'_>) -> Vec<String> {
    let blocks: Vec<&RawValue> = result
        .get("content")
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    let blocks = blocks.into_iter().filter_map(|raw| Object::parse(raw).ok());
    blocks.filter_map(|block| text_of_block(&block)).collect()
}

/// The text of a content block: its own, or that of the resource in it.
pub(in crate::proxy) fn text_of_block(block: &Object<'_>) -> Option<String> {
    match block.text("type").as_deref() {
        Some("text") => block.text("text"),
        Some("resource") => Object::parse(block.get("resource")?).ok()?.text("text"),
        _ => None,
    }
}

/// Parses a text as JSON. A bare word or number is taken as text.
fn json(text: &str) -> Option<Box<RawValue>> {
    let text = text.trim();
    (text.starts_with('{') || text.starts_with('['))
        .then(|| serde_json::from_str(text).ok())
        .flatten()
}

/// The contents of the blocks fenced by three backticks.
fn fences(text: &str) -> Vec<&str> {
    let mut parts = text.split("```");
    let mut found = Vec::new();
    while let (Some(_), Some(inner)) = (parts.next(), parts.next()) {
        // The first line names the language.
        found.push(inner.split_once('\n').map_or(inner, |(_, rest)| rest));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: &str, expected: Option<&str>) {
        let raw: &RawValue = serde_json::from_str(result).unwrap();
        let object = Object::parse(raw).unwrap();
        assert_eq!(
            data_of(&object).as_deref().map(RawValue::get),
            expected,
            "{result}"
        );
    }

    #[test]
    fn the_data_is_found_where_servers_put_it() {
        check(
            r#"{"structuredContent":{"a":1e400},"content":[]}"#,
            Some(r#"{"a":1e400}"#),
        );
        check(
            r#"{"content":[{"type":"text","text":" {\"a\": 1}"},{"type":"text","text":"words"}]}"#,
            Some(r#"{"a": 1}"#),
        );
        check(
            r#"{"content":[{"type":"text","text":"Here:\n```json\n[1]\n```\nDone"}]}"#,
            Some("[1]"),
        );
        check(
            r#"{"structuredContent":null,"content":[{"type":"text","text":"[2]"}]}"#,
            Some("[2]"),
        );
        check(
            r#"{"content":[{"type":"resource","resource":{"uri":"a:b","text":"[3]"}}]}"#,
            Some("[3]"),
        );
    }

    #[test]
    fn text_is_no_data() {
        check(r#"{"content":[{"type":"text","text":"words"}]}"#, None);
        check(r#"{"content":[{"type":"text","text":"12"}]}"#, None);
        check(
            r#"{"content":[{"type":"text","text":"[1]"},{"type":"text","text":"[2]"}]}"#,
            None,
        );
        check(r#"{"content":[{"type":"image","data":"e30="}]}"#, None);
        let page = "words ".repeat(50);
        for text in [
            format!("{page}```json\\n[1]\\n```"),
            format!(r#"[1]"}},{{"type":"text","text":"{page}"#),
        ] {
            let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
            check(&result, None);
        }
        check("{}", None);
    }
}
