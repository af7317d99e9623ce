//! The meta-tool `describe_tool`.

use serde_json::value::RawValue;

use super::Tools;
use crate::catalog::Tool;
use crate::mcp::Object;
use crate::proxy::view::View;
use crate::proxy::{Failure, Reply};
use crate::tool::{ServerName, is_hidden};

/// The maximum number of descriptions in one answer.
const MOST_NAMES: usize = 50;

impl Tools {
    /// Describes tools completely: `{name}` or `{names}`.
    pub(in crate::proxy) async fn describe_tool(
        &self,
        view: &View,
        arguments: &Object<'_>,
    ) -> Reply {
        let mut names: Vec<String> = arguments.text("name").into_iter().collect();
        if let Some(raw) = arguments.get("names") {
            match serde_json::from_str::<Vec<String>>(raw.get()) {
                Ok(more) => names.extend(more),
                Err(_) => return Reply::tool_error("`names` must be an array of strings"),
            }
        }
        if names.is_empty() || names.len() > MOST_NAMES {
            return Reply::tool_error(&format!(
                "describe_tool needs a `name`, or 1 to {MOST_NAMES} `names`"
            ));
        }
        let mut texts = Vec::new();
        let mut failed = 0;
        let mut introduced: Vec<ServerName> = Vec::new();
        for name in &names {
            match self.describe(view, name).await {
                Ok((tool, json)) => {
                    let server = tool.server();
                    let name = on_one_line(&tool.qualified_name().to_string());
                    let mut text = format!("{name}\n{}", json.get());
                    let is_held = view.snapshot().hold(server.name()).instructions;
                    if let Some(instructions) = server
                        .instructions()
                        .filter(|_| !is_held && !introduced.contains(server.name()))
                    {
                        text.push_str(&format!(
                            "\nThe server `{}` says of itself, in the lines with `>`:\n{}",
                            server.name(),
                            cited(instructions.trim())
                        ));
                        introduced.push(server.name().clone());
                    }
                    texts.push(text);
                }
                Err(failure) => {
                    failed += 1;
                    texts.push(failure.text(view));
                }
            }
        }
        let text = texts.join("\n\n");
        if failed == names.len() {
            Reply::tool_error(&text)
        } else {
            Reply::text(&text)
        }
    }

    /// The tool that `name` means, and its definition in its server's own bytes.
    ///
    /// # Errors
    /// A text for the caller, if there is no such tool.
    pub(crate) async fn describe(
        &self,
        view: &View,
        name: &str,
    ) -> Result<(Tool, Box<RawValue>), Failure> {
        let tool = self.find(view, name).await?;
        let json = self
            .inventory
            .definition(&tool)
            .ok_or_else(|| Failure::DefinitionLost {
                name: name.to_owned(),
            })?;
        Ok((tool, json))
    }
}

/// A text as a quotation: each line is marked, so that none can pass for mcpzip's or another server's, and characters
/// that hide or reorder their neighbours are removed.
fn cited(text: &str) -> String {
    let is_break = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let text = text.replace("\r\n", "\n");
    let lines = text.split(is_break).map(|line| {
        let shown = |c: &char| *c == '\t' || !c.is_control() && !is_hidden(*c);
        format!("> {}", line.chars().filter(shown).collect::<String>())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A name without characters that end a line.
fn on_one_line(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            '\u{2028}' | '\u{2029}' => ' ',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}
