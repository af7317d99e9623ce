//! Reads session logs of Claude Code: one JSON object per line, each an entry of the conversation.
//!
//! The format is not documented, so unknown entries are skipped.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{BufRead, Read as _};

use serde::Deserialize;
use serde_json::value::RawValue;

/// A call of an MCP tool and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct McpCall {
    /// Identifies the call, also in a log that was copied into another.
    pub(super) id: String,
    pub(super) server: String,
    pub(super) tool: String,
    /// The arguments as JSON.
    pub(super) input: String,
    /// The text of the result, if there was one.
    pub(super) output: Option<String>,
    /// Number of blocks in the result that are not text.
    pub(super) others: usize,
    /// Number of later answers of the model whose context contained the result.
    pub(super) turns: u64,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(default, borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    subtype: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default, borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    role: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    input: Option<&'a RawValue>,
    #[serde(default, borrow)]
    tool_use_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
}

/// Maximum bytes of an entry.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;

/// The calls of MCP tools in a log, from the day `since` on (`2026-11-21`). Lines that are not JSON are skipped.
///
/// # Errors
/// When the log cannot be read to its end.
pub(super) fn calls(mut log: impl BufRead, since: Option<&str>) -> std::io::Result<Vec<McpCall>> {
    let mut reading = Reading::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut log).take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(reading.calls);
        }
        // The rest of an oversized line is read as another line, which is not a valid entry.
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(&line) else {
            continue;
        };
        let is_early = entry
            .timestamp
            .as_deref()
            .zip(since)
            .is_some_and(|(time, since)| time < since);
        reading.take(&entry, is_early);
    }
}

#[derive(Default)]
struct Reading {
    calls: Vec<McpCall>,
    by_id: HashMap<String, usize>,
    /// The first call whose result is still in the model's context.
    first: usize,
    answer: String,
}

impl Reading {
    fn take(&mut self, entry: &Entry<'_>, is_early: bool) {
        if entry.subtype.as_deref() == Some("compact_boundary") {
            self.first = self.calls.len();
        }
        let Some(message) = &entry.message else {
            return;
        };
        let is_answer = message.role.as_deref() == Some("assistant");
        // An answer of several blocks is several entries with one id.
        if is_answer && message.id.as_deref().is_none_or(|id| id != self.answer) {
            self.answer = message.id.as_deref().unwrap_or_default().to_owned();
            let known = self.calls[self.first..].iter_mut();
            known
                .filter(|call| call.output.is_some())
                .for_each(|call| call.turns += 1);
        }
        for block in message.content.map(blocks).unwrap_or_default() {
            match block.kind.as_ref() {
                "tool_use" if !is_early => self.called(&block),
                "tool_result" => self.answered(&block),
                _ => {}
            }
        }
    }

    fn called(&mut self, block: &Block<'_>) {
        let (Some(id), Some(name)) = (&block.id, &block.name) else {
            return;
        };
        let Some((server, tool)) = name
            .strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"))
        else {
            return;
        };
        self.by_id.insert(id.clone().into_owned(), self.calls.len());
        self.calls.push(McpCall {
            id: id.clone().into_owned(),
            server: server.to_owned(),
            tool: tool.to_owned(),
            input: block
                .input
                .map(|raw| raw.get().to_owned())
                .unwrap_or_default(),
            output: None,
            others: 0,
            turns: 0,
        });
    }

    fn answered(&mut self, block: &Block<'_>) {
        let call = block
            .tool_use_id
            .as_deref()
            .and_then(|id| self.by_id.get(id))
            .map(|at| &mut self.calls[*at]);
        let (Some(call), Some(content)) = (call, block.content) else {
            return;
        };
        if let Ok(text) = serde_json::from_str::<String>(content.get()) {
            call.output = Some(text);
            return;
        }
        let parts = blocks(content);
        call.others = parts.iter().filter(|part| part.text.is_none()).count();
        call.output = Some(
            parts
                .iter()
                .filter_map(|part| part.text.as_deref())
                .collect::<Vec<_>>()
                .join("\n"),
        );
    }
}

fn blocks(content: &RawValue) -> Vec<Block<'_>> {
    let raw: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    raw.iter()
        .filter_map(|block| serde_json::from_str(block.get()).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    const LOG: &str = concat!(
        r#"{"type":"summary","summary":"x"}"#,
        "\n",
        "no JSON\n",
        r#"{"type":"user","timestamp":"2026-11-20T10:00:00Z","message":{"role":"user","content":"list them"}}"#,
        "\n",
        r#"{"type":"assistant","timestamp":"2026-11-20T10:00:01Z","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"I will"}]}}"#,
        "\n",
        r#"{"type":"assistant","timestamp":"2026-11-20T10:00:01Z","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"mcp__git_hub__list_issues","input":{"repo":"a"}}]}}"#,
        "\n",
        r#"{"type":"assistant","timestamp":"2026-11-20T10:00:01Z","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Read","input":{}}]}}"#,
        "\n",
        r#"{"type":"user","timestamp":"2026-11-20T10:00:02Z","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":[{"type":"text","text":"one"},{"type":"image","source":{}},{"type":"text","text":"two"}]}]},"toolUseResult":"x"}"#,
        "\n",
        r#"{"type":"assistant","timestamp":"2026-11-20T10:00:03Z","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"so"}]}}"#,
        "\n",
        r#"{"type":"assistant","timestamp":"2026-11-21T10:00:03Z","message":{"id":"m3","role":"assistant","content":[{"type":"tool_use","id":"t3","name":"mcp__a__b__c","input":{}}]}}"#,
        "\n",
        r#"{"type":"system","subtype":"compact_boundary"}"#,
        "\n",
        r#"{"type":"user","timestamp":"2026-11-21T10:00:04Z","message":{"role":"user","content":[{"tool_use_id":"t3","type":"tool_result","content":"plain"}]}}"#,
        "\n",
        r#"{"type":"assistant","message":{"id":"m4","role":"assistant","content":"done"}}"#,
    );

    #[test]
    fn calls_are_read_with_their_results_and_how_long_they_stayed() {
        let calls = super::calls(LOG.as_bytes(), None).unwrap();
        let [first, second] = &calls[..] else {
            panic!("{calls:?}")
        };
        assert_eq!(
            (first.server.as_str(), first.tool.as_str()),
            ("git_hub", "list_issues")
        );
        assert_eq!(
            (first.input.as_str(), first.output.as_deref()),
            (r#"{"repo":"a"}"#, Some("one\ntwo"))
        );
        assert_eq!((first.others, first.turns), (1, 2));
        assert_eq!(
            (second.server.as_str(), second.tool.as_str()),
            ("a", "b__c")
        );
        assert_eq!((second.output.as_deref(), second.turns), (Some("plain"), 0));
        let later = super::calls(LOG.as_bytes(), Some("2026-11-21")).unwrap();
        assert_eq!(later, calls[1..]);
    }
}
