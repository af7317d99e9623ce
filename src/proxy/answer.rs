//! From a server's result to what the agent reads of it.
//!
//! A result passes through in its own bytes unless the agent asked for a part, or its text is over the budget. Then the
//! answer is text alone, because clients show structured content in place of the text, and the whole is stored.

use bytes::Bytes;
use regex::RegexBuilder;
use serde_json::value::RawValue;

use super::projection::{self, data_of, shape_of};
use super::duplicate::{Kept, without_duplicate};
use super::relay::required_input;
use super::{Caller, Proxy, Reply};
use crate::config::Lifetime;
use crate::mcp::Object;
use crate::mcp::frame::quoted;
use crate::results::Shelf;
use crate::statistics::Answer;
use crate::tool::{QualifiedName, tokens_of};

/// How much of a stored result is shown at once, in characters, when nothing else is said.
const HEAD: usize = 4000;

/// Lines that a search in a stored result shows.
const MOST_LINES: usize = 200;

/// What was called by whom, and what is wanted of the result.
pub(super) struct Asked<'a> {
    pub(super) name: &'a QualifiedName,
    pub(super) select: Option<&'a str>,
    pub(super) caller: &'a Caller,
}

impl Proxy {
    /// The answer to a call: the result as it came, the part that `select` makes of it, or its head.
    pub(super) async fn answer(&self, result: Bytes, asked: &Asked<'_>) -> Reply {
        let options = self.config().results;
        let budget = options.budget;
        let fits = budget == 0 || result.len() <= budget;
        if required_input(&result).is_some() {
            return Reply::Relayed(result);
        }
        let passed = |result: Bytes| {
            let kept = Kept::of(options.duplicates, asked.caller.shows);
            Reply::Relayed(kept.and_then(|kept| without_duplicate(&result, kept)).unwrap_or(result))
        };
        if asked.select.is_none() && fits {
            return passed(result);
        }
        let raw: &RawValue = serde_json::from_slice(&result).expect("a reply's payload was read as JSON");
        let object = Object::parse(raw).unwrap_or_default();
        let failed = object.get("isError").is_some_and(|raw| raw.get() == "true");
        let (reply, is_stored) = match asked.select {
            // What went wrong must not be filtered away.
            Some(filter) if !failed => {
                (self.projected(&result, &object, filter, budget, shelf_of(options.kept_for, asked.caller)).await, false)
            }
            _ if fits || Content::of(&object).characters() <= budget => return passed(result.clone()),
            _ => (self.shortened(&result, &object, failed, shelf_of(options.kept_for, asked.caller)), true),
        };
        let shown = match &reply {
            Reply::Result(body) => tokens_of(&String::from_utf8_lossy(body)),
            _ => 0,
        };
        let whole = Content::of(&object).tokens();
        self.statistics.reduced(asked.name.server.as_str(), asked.name.tool.as_str(), is_stored, whole, shown);
        reply
    }

    async fn projected(
        &self,
        result: &[u8],
        object: &Object<'_>,
        filter: &str,
        budget: usize,
        shelf: Shelf,
    ) -> Reply {
        let Some(data) = data_of(object) else {
            let whole = self.kept(shelf, result);
            let text = format!(
                "nothing was selected: the result is text, not JSON. {whole}\n{}",
                head(&Content::of(object).text(), HEAD)
            );
            return with_text(object, &text, true);
        };
        match self.projection.select(filter, &data).await {
            Ok(text) if budget == 0 || text.chars().count() <= budget => {
                let note = if result.len() > text.len() + HEAD { self.source(shelf, result) } else { String::new() };
                with_text(object, &format!("{text}{note}"), false)
            }
            Ok(text) => {
                let whole = self.kept(shelf, result);
                let length = text.chars().count();
                with_text(
                    object,
                    &format!("{}\n… the selection has {length} characters. {whole}", head(&text, HEAD)),
                    false,
                )
            }
            Err(error) => {
                let whole = self.kept(shelf, result);
                let shape = shape_of(&data);
                with_text(object, &format!("{error}. The call was made. {whole}\nThe data: {shape}"), true)
            }
        }
    }

    fn shortened(&self, result: &[u8], object: &Object<'_>, failed: bool, shelf: Shelf) -> Reply {
        let content = Content::of(object);
        let text = content.text();
        let shape = data_of(object).map(|data| format!("\nThe data: {}", shape_of(&data))).unwrap_or_default();
        let whole = self.kept(shelf, result);
        let length = text.chars().count();
        with_text(
            object,
            &format!("{}\n… these are the first of {length} characters. {whole}{shape}", head(&text, HEAD)),
            failed,
        )
    }

    /// Stores a result of which a part was enough, and says so in few words.
    fn source(&self, shelf: Shelf, result: &[u8]) -> String {
        match self.results.keep(shelf, result) {
            Ok(id) => {
                format!("\n… selected from {} characters, stored as `{id}` for mcpzip__read_result", result.len())
            }
            Err(error) => {
                tracing::error!(%error, "a result is lost");
                String::new()
            }
        }
    }

    /// Stores a result and says how to read on; or why that is not possible.
    fn kept(&self, shelf: Shelf, result: &[u8]) -> String {
        match self.results.keep(shelf, result) {
            Ok(id) => format!(
                r#"The whole result is stored; read on with execute_tool {{"name":"mcpzip__read_result","arguments":{{"id":"{id}","select":"a jq filter"}}}}, or "offset" and "limit" in characters, or "grep"."#
            ),
            Err(error) => {
                tracing::error!(%error, "a result is lost");
                "The whole result could not be stored.".to_owned()
            }
        }
    }

    /// Reads a stored result: `{id, select | offset, limit | grep}`.
    pub(super) async fn read_result(&self, arguments: &Object<'_>, caller: Option<&Caller>) -> Reply {
        let reply = self.part(arguments, caller).await;
        self.counted(Answer::Part, reply)
    }

    async fn part(&self, arguments: &Object<'_>, caller: Option<&Caller>) -> Reply {
        let Some(id) = arguments.text("id") else {
            return Reply::tool_error("read_result needs the `id` of a stored result");
        };
        let shelf = caller.map_or(Shelf::Run, |caller| shelf_of(self.config().results.kept_for, caller));
        let result = match self.results.load(shelf, &id) {
            Ok(result) => result,
            Err(error) => return Reply::tool_error(&error.to_string()),
        };
        let raw: &RawValue = match serde_json::from_slice(&result) {
            Ok(raw) => raw,
            Err(_) => return Reply::tool_error(&format!("the stored result `{id}` is damaged")),
        };
        let object = Object::parse(raw).unwrap_or_default();
        if let Some(filter) = arguments.text("select") {
            return self.read_selection(&object, &filter).await;
        }
        let text = Content::of(&object).readable();
        if let Some(pattern) = arguments.text("grep") {
            return grep(&text, &pattern);
        }
        let number = |key: &str| arguments.get(key).and_then(|raw| raw.get().parse::<usize>().ok());
        let (offset, limit) = (number("offset").unwrap_or(0), number("limit").unwrap_or(HEAD));
        let total = text.chars().count();
        let part: String = text.chars().skip(offset).take(limit).collect();
        let end = offset + part.chars().count();
        let rest = if end < total {
            format!("\n… {end} of {total} characters; read on with \"offset\":{end}")
        } else {
            String::new()
        };
        Reply::text(&format!("{part}{rest}"))
    }

    async fn read_selection(&self, object: &Object<'_>, filter: &str) -> Reply {
        let Some(data) = data_of(object) else {
            return Reply::tool_error(
                "the stored result is text, not JSON: read it by `offset` and `limit`, or `grep`",
            );
        };
        match self.projection.select(filter, &data).await {
            Ok(text) => {
                let length = text.chars().count();
                let budget = self.config().results.budget;
                if budget == 0 || length <= budget {
                    Reply::text(&text)
                } else {
                    Reply::text(&format!("{}\n… the selection has {length} characters; narrow it", head(&text, HEAD)))
                }
            }
            Err(error) => Reply::tool_error(&format!("{error}\nThe data: {}", shape_of(&data))),
        }
    }
}

/// Where the results of a caller's calls are kept. Without a handshake there is no session to keep them for.
fn shelf_of(kept_for: Lifetime, caller: &Caller) -> Shelf {
    match kept_for {
        Lifetime::For(time) => Shelf::Common(time),
        Lifetime::Session if caller.revision.is_modern() => Shelf::Run,
        Lifetime::Session => Shelf::Client(caller.client.number()),
    }
}

/// What a result says in words.
struct Content<'a> {
    texts: Vec<String>,
    structured: Option<&'a RawValue>,
}

impl<'a> Content<'a> {
    fn of(result: &Object<'a>) -> Self {
        let structured = result.get("structuredContent").filter(|raw| raw.get() != "null");
        Self { texts: projection::texts_of(result), structured }
    }

    /// What a client shows of it: the texts, or the structured content in their place.
    fn characters(&self) -> usize {
        let texts: usize = self.texts.iter().map(|text| text.chars().count()).sum();
        texts.max(self.structured.map_or(0, |raw| raw.get().chars().count()))
    }

    /// The same in tokens, estimated.
    fn tokens(&self) -> usize {
        let texts: usize = self.texts.iter().map(|text| tokens_of(text)).sum();
        texts.max(self.structured.map_or(0, |raw| tokens_of(raw.get())))
    }

    fn text(&self) -> String {
        match self.structured {
            Some(structured) if self.texts.is_empty() => structured.get().to_owned(),
            _ => self.texts.join("\n"),
        }
    }

    /// The text with JSON laid out in lines, for reading by offset and by line.
    fn readable(&self) -> String {
        let text = self.text();
        let value: Option<serde_json::Value> =
            if text.trim_start().starts_with(['{', '[']) { serde_json::from_str(&text).ok() } else { None };
        value.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or(text)
    }
}

/// The first `length` characters at most, cut at the end of a line where there is one in the second half, else at a comma or
/// space.
fn head(text: &str, length: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(length) else { return text.to_owned() };
    let part = &text[..end];
    let cut = part.rfind('\n').filter(|at| *at > end / 2).or_else(|| part.rfind([',', ' ']).filter(|at| *at > end / 2));
    part[..cut.unwrap_or(end)].to_owned()
}

/// A result of one text, followed by the blocks of `object` that are no text: images, audio, resources.
fn with_text(object: &Object<'_>, text: &str, is_error: bool) -> Reply {
    let blocks: Vec<&RawValue> =
        object.get("content").and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let others = blocks.iter().filter(|raw| {
        let kind = Object::parse(raw).ok().and_then(|block| block.text("type"));
        kind.as_deref() != Some("text")
    });
    let others: String = others.map(|raw| format!(",{raw}")).collect();
    let error = if is_error { r#","isError":true"# } else { "" };
    Reply::Result(format!(r#"{{"content":[{{"type":"text","text":{}}}{others}]{error}}}"#, quoted(text)).into())
}

fn grep(text: &str, pattern: &str) -> Reply {
    let pattern = match RegexBuilder::new(pattern).case_insensitive(true).size_limit(1 << 20).build() {
        Ok(pattern) => pattern,
        Err(error) => return Reply::tool_error(&format!("`grep` is no regular expression: {error}")),
    };
    let mut found = text.lines().enumerate().filter(|(_, line)| pattern.is_match(line));
    let lines: Vec<String> =
        found.by_ref().take(MOST_LINES).map(|(number, line)| format!("{}: {}", number + 1, head(line, 500))).collect();
    let more = found.count();
    match (lines.is_empty(), more) {
        (true, _) => Reply::text("no line matches"),
        (false, 0) => Reply::text(&lines.join("\n")),
        (false, more) => Reply::text(&format!("{}\n… {more} more lines match", lines.join("\n"))),
    }
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
        let raw: &RawValue = serde_json::from_str(
            r#"{"content":[{"type":"text","text":"long"},{"type":"image","data":"x"},{"type":"new","n":1e400}]}"#,
        )
        .unwrap();
        let Reply::Result(body) = with_text(&Object::parse(raw).unwrap(), "short", true) else { panic!("no result") };
        assert_eq!(
            body,
            r#"{"content":[{"type":"text","text":"short"},{"type":"image","data":"x"},{"type":"new","n":1e400}],"isError":true}"#
        );
    }
}
