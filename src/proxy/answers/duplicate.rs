//! Removes a text block that only serializes the structured content. Servers send both; one suffices.
//!
//! Two JSON texts are equal if they have the same tokens in the same order, because then one was made from the other.
//! Any other difference (the order of keys, `1.0` for `1`) keeps both.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::config::Duplicates;
use crate::mcp::Object;
use crate::mcp::object::text;
use crate::proxy::callers::client::Shows;
use crate::upstream::{RawResult, Word};

/// The one of the two to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum KeptForm {
    Text,
    Structured,
}

impl KeptForm {
    /// The one to keep for a client that shows `shows`, by the setting.
    pub(in crate::proxy) fn of(setting: Duplicates, shows: Option<Shows>) -> Option<Self> {
        match (setting, shows) {
            (Duplicates::Keep, _) | (Duplicates::Auto, None) => None,
            (Duplicates::Text, _) | (Duplicates::Auto, Some(Shows::Text | Shows::Both)) => {
                Some(Self::Text)
            }
            (Duplicates::Structured, _) | (Duplicates::Auto, Some(Shows::Structured)) => {
                Some(Self::Structured)
            }
        }
    }
}

/// The result with one of the two removed; `None` if it has no duplicate.
pub(in crate::proxy) fn without_duplicate(result: &RawResult, kept: KeptForm) -> Option<Bytes> {
    // Most results have no structured content and need no parsing.
    if !result.may_have(Word::Structured) {
        return None;
    }
    let raw: &RawValue = serde_json::from_slice(result).ok()?;
    let object = Object::parse(raw).ok()?;
    let structured = object
        .get("structuredContent")
        .filter(|raw| raw.get() != "null")?;
    let blocks: Vec<&RawValue> = serde_json::from_str(object.get("content")?.get()).ok()?;
    let (same, others): (Vec<&RawValue>, Vec<_>) = blocks
        .into_iter()
        .partition(|block| repeats(block, structured));
    if same.is_empty() {
        return None;
    }
    let rest = match kept {
        KeptForm::Text => object.without("structuredContent"),
        KeptForm::Structured => {
            let others: Vec<&str> = others.into_iter().map(RawValue::get).collect();
            object.with("content", &format!("[{}]", others.join(",")))
        }
    };
    Some(rest.into())
}

/// The factor by which structured content may be longer than its text, by whitespace and escapes. With it, the blocks
/// that are compared are together not much shorter than the content, so that many small ones cost no more than one.
const SPACED: usize = 16;

/// Whether a text block contains `structured` and nothing else.
pub(in crate::proxy) fn repeats(block: &RawValue, structured: &RawValue) -> bool {
    let Ok(block) = Object::parse(block) else {
        return false;
    };
    // Annotations and other members are information that the structured content lacks.
    if block.members().len() != 2 || block.text("type").as_deref() != Some("text") {
        return false;
    }
    let Some(written) = block.text("text") else {
        return false;
    };
    if written.len() < structured.get().len() / SPACED {
        return false;
    }
    if is_same(&written, structured.get()) {
        return true;
    }
    // Frameworks wrap other values in an object: {"result": …} (Python SDK), {"content": …} (server-filesystem).
    let wrapped = Object::parse(structured)
        .ok()
        .filter(|object| object.members().len() == 1);
    let wrapped = wrapped.and_then(|object| object.members().first().map(|(_, value)| *value));
    wrapped.is_some_and(|value| {
        is_same(&written, value.get()) || text(value).is_some_and(|value| value == written)
    })
}

/// Whether two JSON texts have equal tokens.
fn is_same(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one, other);
    loop {
        match (token(&mut one), token(&mut other)) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b || is_same_text(a, b) => {}
            _ => return false,
        }
    }
}

/// Whether two JSON strings are equal except for their escapes.
fn is_same_text(one: &str, other: &str) -> bool {
    let parsed = |json: &str| serde_json::from_str::<String>(json).ok();
    one.starts_with('"')
        && other.starts_with('"')
        && parsed(one).is_some_and(|one| Some(one) == parsed(other))
}

/// Splits the first token off `text`: punctuation, a string with its quotes, or a word.
fn token<'t>(text: &mut &'t str) -> Option<&'t str> {
    let rest = text.trim_start_matches([' ', '\t', '\r', '\n']);
    let end = match rest.as_bytes().first()? {
        b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
        b'"' => {
            let mut is_escaped = false;
            let end = rest.bytes().skip(1).position(|byte| {
                let is_end = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                is_end
            });
            end.map_or(rest.len(), |end| end + 2)
        }
        _ => rest
            .find(|c: char| "{}[],:\" \t\r\n".contains(c))
            .unwrap_or(rest.len()),
    };
    let (token, rest) = rest.split_at(end);
    *text = rest;
    Some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: &str, kept: KeptForm, expected: Option<&str>) {
        let found = without_duplicate(&result.to_owned().into(), kept);
        assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{result}");
    }

    #[test]
    fn one_of_two_that_say_the_same_is_left_out() {
        let result = r#"{"content":[{"type":"text","text":"{\n  \"a\": [1e400, \"é\", true]\n}"},{"type":"image","data":"x"}],"structuredContent":{"a":[1e400,"\u00e9",true]},"later":1.0}"#;
        check(
            result,
            KeptForm::Structured,
            Some(
                r#"{"content":[{"type":"image","data":"x"}],"structuredContent":{"a":[1e400,"\u00e9",true]},"later":1.0}"#,
            ),
        );
        check(
            result,
            KeptForm::Text,
            Some(
                r#"{"content":[{"type":"text","text":"{\n  \"a\": [1e400, \"é\", true]\n}"},{"type":"image","data":"x"}],"later":1.0}"#,
            ),
        );
        let wrapped = r#"{"content":[{"text":"three words here","type":"text"}],"structuredContent":{"result":"three words here"},"isError":false}"#;
        check(
            wrapped,
            KeptForm::Structured,
            Some(
                r#"{"content":[],"structuredContent":{"result":"three words here"},"isError":false}"#,
            ),
        );
        let list =
            r#"{"content":[{"type":"text","text":"[1, 2]"}],"structuredContent":{"result":[1,2]}}"#;
        check(
            list,
            KeptForm::Text,
            Some(r#"{"content":[{"type":"text","text":"[1, 2]"}]}"#),
        );
    }

    #[test]
    fn what_says_something_else_stays() {
        for result in [
            r#"{"content":[{"type":"text","text":"{\"a\":1}"}]}"#,
            r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":null}"#,
            r#"{"content":[{"type":"text","text":"{\"a\":1.0}"}],"structuredContent":{"a":1}}"#,
            r#"{"content":[{"type":"text","text":"{\"a\":18446744073709551617}"}],"structuredContent":{"a":18446744073709551616}}"#,
            r#"{"content":[{"type":"text","text":"{\"a\":1} and more"}],"structuredContent":{"a":1}}"#,
            r#"{"content":[{"type":"text","text":"{\"b\":2,\"a\":1}"}],"structuredContent":{"a":1,"b":2}}"#,
            r#"{"content":[{"type":"text","text":"{\"a\":\"x y\"}"}],"structuredContent":{"a":"xy"}}"#,
            r#"{"content":[{"type":"text","text":"{\"a\":1}","annotations":{"audience":["user"]}}],"structuredContent":{"a":1}}"#,
            r#"{"content":[{"type":"new","text":"{\"a\":1}"}],"structuredContent":{"a":1}}"#,
            r#"{"content":"odd","structuredContent":{"a":1}}"#,
        ] {
            check(result, KeptForm::Text, None);
            check(result, KeptForm::Structured, None);
        }
    }

    #[test]
    fn by_default_only_known_clients_get_one_of_two() {
        use Duplicates::{Auto, Keep, Structured, Text};
        let kept = |setting, client: &str| KeptForm::of(setting, Shows::of(client));
        assert_eq!(kept(Auto, "claude-code"), Some(KeptForm::Structured));
        assert_eq!(kept(Auto, "codex-mcp-client"), Some(KeptForm::Structured));
        assert_eq!(
            kept(Auto, "gemini-cli-mcp-client-zip"),
            Some(KeptForm::Text)
        );
        assert_eq!(kept(Auto, "opencode"), Some(KeptForm::Text));
        assert_eq!(kept(Auto, "copilot-cli"), Some(KeptForm::Text));
        assert_eq!(kept(Auto, "github-copilot-developer"), Some(KeptForm::Text));
        assert_eq!(kept(Auto, "somebody"), None);
        for client in ["claude-code", "opencode", "somebody"] {
            assert_eq!(kept(Keep, client), None);
            assert_eq!(
                (kept(Text, client), kept(Structured, client)),
                (Some(KeptForm::Text), Some(KeptForm::Structured))
            );
        }
    }
}
