//! The demo's calls of the three meta-tools, each with a text that the answer must contain.

use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::value::RawValue;

use super::client::Client;
use super::report::Exchange;
use crate::cli::tokens::Tokens;
use crate::mcp::Object;
use crate::mcp::object::quoted;

/// A call of a meta-tool, and the text expected in its answer.
pub(super) struct Ask {
    tool: &'static str,
    arguments: String,
    expected: &'static str,
    is_mistake: bool,
    /// The tool's own name and arguments, for a client without mcpzip. `None` for a search or a description.
    without: Option<(String, String)>,
}

/// A call with its answer.
pub(super) struct Answered {
    ask: Ask,
    text: String,
    is_error: bool,
    took: Duration,
}

impl Ask {
    fn new(tool: &'static str, arguments: String, expected: &'static str) -> Self {
        Self {
            tool,
            arguments,
            expected,
            is_mistake: false,
            without: None,
        }
    }

    pub(super) fn search(query: &str, expected: &'static str) -> Self {
        Self::new(
            "search_tools",
            format!(r#"{{"query":{},"limit":3}}"#, quoted(query)),
            expected,
        )
    }

    pub(super) fn describe(name: &str, expected: &'static str) -> Self {
        Self::new(
            "describe_tool",
            format!(r#"{{"name":{}}}"#, quoted(name)),
            expected,
        )
    }

    pub(super) fn execute(name: &str, arguments: &str, expected: &'static str) -> Self {
        let outer = format!(r#"{{"name":{},"arguments":{arguments}}}"#, quoted(name));
        let without = Some((name.to_owned(), arguments.to_owned()));
        Self {
            without,
            ..Self::new("execute_tool", outer, expected)
        }
    }

    /// Expects the answer to be an error.
    pub(super) fn mistaken(self) -> Self {
        Self {
            is_mistake: true,
            ..self
        }
    }
}

impl Answered {
    pub(super) fn counted(self, tokens: &Tokens) -> Exchange {
        let count = |name: &str, arguments: &str| {
            tokens.count(name) + tokens.count(arguments) + tokens.count(&self.text)
        };
        let tokens_without = self
            .ask
            .without
            .as_ref()
            .map_or(0, |(name, arguments)| count(name, arguments));
        Exchange {
            tool: self.ask.tool,
            tokens: count(self.ask.tool, &self.ask.arguments),
            tokens_without,
            arguments: RawValue::from_string(self.ask.arguments).expect("asks are written as JSON"),
            answer: self.text,
            is_error: self.is_error,
            took: self.took,
        }
    }
}

/// Sends all calls at once. Fails if an answer is an unexpected one.
pub(super) async fn ask(gateway: &mut Client, asks: Vec<Ask>) -> anyhow::Result<Vec<Answered>> {
    let params: Vec<String> = asks
        .iter()
        .map(|ask| format!(r#"{{"name":"{}","arguments":{}}}"#, ask.tool, ask.arguments))
        .collect();
    let answers = gateway.ask_all("tools/call", &params).await?;
    let mut answered = Vec::new();
    for (ask, answer) in asks.into_iter().zip(answers) {
        let result = Object::parse(&answer.result)?;
        let is_error = result.get("isError").is_some_and(|raw| raw.get() == "true");
        let text = text_of(&result)?;
        if is_error != ask.is_mistake || !text.contains(ask.expected) {
            bail!(
                "unexpected answer to `{} {}`: {text}",
                ask.tool,
                ask.arguments
            );
        }
        answered.push(Answered {
            ask,
            text,
            is_error,
            took: answer.took,
        });
    }
    Ok(answered)
}

/// The text of a tool's result. Every tool of the demo returns one.
fn text_of(result: &Object<'_>) -> anyhow::Result<String> {
    let blocks = result.get("content").context("a result has no content")?;
    let blocks: Vec<Object<'_>> = serde_json::from_str(blocks.get())?;
    blocks
        .first()
        .and_then(|block| block.text("text"))
        .context("a result has no text")
}
