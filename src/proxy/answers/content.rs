//! The text of a result, and the parts of a result that a shortened answer consists of.

use serde_json::value::RawValue;

use super::duplicate::repeats;
use super::projection::{data_of, shape_of, text_as_data, text_of_block, texts_of};
use crate::mcp::Object;
use crate::mcp::object::quoted;
use crate::proxy::Reply;
use crate::tool::tokens_of;

/// The default number of characters that are shown of a stored result.
pub(in crate::proxy) const HEAD: usize = 4000;

/// The content of a result.
pub(in crate::proxy) struct Content<'a> {
    texts: Vec<String>,
    structured: Option<&'a RawValue>,
    /// Whether a text block equals the structured content.
    is_double: bool,
}

impl<'a> Content<'a> {
    pub(in crate::proxy) fn of(result: &Object<'a>) -> Self {
        let structured = result
            .get("structuredContent")
            .filter(|raw| raw.get() != "null");
        let is_double = structured.is_some_and(|structured| {
            blocks(result)
                .iter()
                .any(|block| repeats(block, structured))
        });
        Self {
            texts: texts_of(result),
            structured,
            is_double,
        }
    }

    /// All text: the text blocks, the resources that are texts, and the structured content unless a text block equals it.
    pub(in crate::proxy) fn text(&self) -> String {
        self.parts().collect::<Vec<_>>().join("\n")
    }

    /// All text with JSON pretty-printed, for reading by offset and by line.
    pub(in crate::proxy) fn readable(&self) -> String {
        self.parts().map(in_lines).collect::<Vec<_>>().join("\n")
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        let structured = self
            .structured
            .filter(|_| !self.is_double)
            .map(RawValue::get);
        self.texts.iter().map(String::as_str).chain(structured)
    }

    /// The text that a client shows: the text blocks, or the structured content instead of them.
    fn shown(&self) -> std::borrow::Cow<'_, str> {
        let length: usize = self.texts.iter().map(String::len).sum();
        match self.structured {
            Some(structured) if structured.get().len() > length => structured.get().into(),
            _ => self.texts.join("\n").into(),
        }
    }
}

fn in_lines(text: &str) -> std::borrow::Cow<'_, str> {
    let value: Option<serde_json::Value> = if text.trim_start().starts_with(['{', '[']) {
        serde_json::from_str(text).ok()
    } else {
        None
    };
    value
        .and_then(|value| serde_json::to_string_pretty(&value).ok())
        .map_or(text.into(), Into::into)
}

/// All text of `result`, which is JSON.
pub(in crate::proxy) fn text_of(result: &[u8]) -> String {
    let raw: &RawValue = serde_json::from_slice(result).expect("it was read as JSON");
    Content::of(&Object::parse(raw).unwrap_or_default()).text()
}

/// The data about a result that are needed to answer with something else.
pub(in crate::proxy) struct Looked {
    /// Whether it has `isError`.
    pub(in crate::proxy) failed: bool,
    /// The number of characters that a client shows, which the budget limits.
    pub(in crate::proxy) characters: usize,
    /// The estimated number of tokens that a client shows.
    pub(in crate::proxy) tokens: usize,
    /// The number of characters of all text.
    pub(in crate::proxy) length: usize,
    /// The beginning of the text.
    pub(in crate::proxy) head: String,
    /// The shape of its data, if it has any.
    pub(in crate::proxy) shape: Option<String>,
    /// The input of a filter, if requested.
    pub(in crate::proxy) input: Option<Box<RawValue>>,
    /// The blocks that are not text, in their original bytes, each after a comma.
    others: String,
}

impl Looked {
    /// Examines a result, which is JSON. Anything but an object is empty.
    pub(in crate::proxy) fn into(result: &[u8], with_input: bool) -> Self {
        let raw: &RawValue =
            serde_json::from_slice(result).expect("a reply's payload was read as JSON");
        let object = Object::parse(raw).unwrap_or_default();
        let content = Content::of(&object);
        let (text, shown) = (content.text(), content.shown());
        let data = data_of(&object).map(std::borrow::Cow::into_owned);
        Self {
            failed: object.get("isError").is_some_and(|raw| raw.get() == "true"),
            characters: shown.chars().count(),
            tokens: tokens_of(&shown),
            length: text.chars().count(),
            head: head(&text, HEAD),
            shape: data.as_deref().map(shape_of),
            input: if with_input {
                data.or_else(|| text_as_data(&object))
            } else {
                None
            },
            others: others(&object),
        }
    }

    /// A result with one text, followed by the blocks that are not text: images, audio, resources.
    pub(in crate::proxy) fn with_text(&self, text: &str, is_error: bool) -> Reply {
        let error = if is_error { r#","isError":true"# } else { "" };
        let others = &self.others;
        Reply::Result(
            format!(
                r#"{{"content":[{{"type":"text","text":{}}}{others}]{error}}}"#,
                quoted(text)
            )
            .into(),
        )
    }
}

fn blocks<'a>(result: &Object<'a>) -> Vec<&'a RawValue> {
    result
        .get("content")
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

fn others(result: &Object<'_>) -> String {
    let blocks = blocks(result);
    let others = blocks.iter().filter(|raw| {
        let text = Object::parse(raw)
            .ok()
            .and_then(|block| text_of_block(&block));
        text.is_none()
    });
    others.map(|raw| format!(",{raw}")).collect()
}

/// The first `length` characters, cut at a line end in the second half, or else at a comma or space.
pub(in crate::proxy) fn head(text: &str, length: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(length) else {
        return text.to_owned();
    };
    let part = &text[..end];
    let cut = part
        .rfind('\n')
        .filter(|at| *at > end / 2)
        .or_else(|| part.rfind([',', ' ']).filter(|at| *at > end / 2));
    part[..cut.unwrap_or(end)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_at_a_line_or_a_word() {
        assert_eq!(head("short", 10), "short");
        assert_eq!(head("one line\nanother line", 12), "one line");
        assert_eq!(head("some words here", 12), "some words");
        assert_eq!(head("äöüäöüäöü", 4), "äöüä");
    }

    #[test]
    fn blocks_that_are_no_text_stay() {
        let result = r#"{"content":[{"type":"text","text":"long"},{"type":"image","data":"x"},{"type":"new","n":1e400}]}"#;
        let Reply::Result(body) = Looked::into(result.as_bytes(), false).with_text("short", true)
        else {
            panic!("no result")
        };
        assert_eq!(
            &body[..],
            br#"{"content":[{"type":"text","text":"short"},{"type":"image","data":"x"},{"type":"new","n":1e400}],"isError":true}"#
        );
    }

    #[test]
    fn all_that_is_said_is_said_once() {
        let result = r#"{"content":[{"type":"text","text":"a summary"}],"structuredContent":{"items":[1,2,3,4,5]}}"#;
        let looked = Looked::into(result.as_bytes(), true);
        assert_eq!((looked.characters, looked.length), (21, 31));
        assert_eq!(looked.head, "a summary\n{\"items\":[1,2,3,4,5]}");
        let twice =
            r#"{"content":[{"type":"text","text":"{\"a\": 1}"}],"structuredContent":{"a":1}}"#;
        assert_eq!(Looked::into(twice.as_bytes(), false).head, "{\"a\": 1}");
        assert_eq!(looked.input.unwrap().get(), r#"{"items":[1,2,3,4,5]}"#);
    }
}
