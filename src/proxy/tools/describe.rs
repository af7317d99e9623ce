//! The meta-tool `describe_tool`.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Tools;
use super::types::types;
use crate::catalog::Tool;
use crate::config::Server;
use crate::mcp::object::quoted;
use crate::mcp::{Frame, Object};
use crate::proxy::relay::Relayed;
use crate::proxy::view::View;
use crate::proxy::{Failure, Reply};
use crate::tool::{ServerName, is_hidden};
use crate::upstream::{SCHEMA_MARK, SCHEMA_REQUEST, ServerReply, message_of};

/// The maximum number of descriptions in one answer.
const MOST_NAMES: usize = 50;

impl Tools {
    /// Describes tools completely: `{name}` or `{names}`, with `as` by their types.
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
        let as_types = match arguments.text("as").as_deref() {
            None if arguments.get("as").is_none_or(|raw| raw.get() == "null") => false,
            Some("schema") => false,
            Some("types") => true,
            _ => return Reply::tool_error("`as` must be \"types\" or \"schema\""),
        };
        let mut texts = Vec::new();
        let mut failed = 0;
        let mut introduced: Vec<ServerName> = Vec::new();
        for name in &names {
            if let Some((tool, path)) = name.split_once('#') {
                match self.part(view, tool, &format!("#{path}")).await {
                    Ok(part) => texts.push(format!("{}\n{part}", on_one_line(name))),
                    Err(failure) => {
                        failed += 1;
                        texts.push(failure.text(view));
                    }
                }
                continue;
            }
            match self.describe(view, name).await {
                Ok((tool, json)) if as_types => {
                    let input = match is_partial(&json) {
                        true => self.schema_part(view, &tool, "#").await.ok(),
                        false => None,
                    };
                    texts.push(typed(&tool, &json, input.as_deref()));
                }
                Ok((tool, json)) => {
                    let server = tool.server();
                    let name = on_one_line(&tool.qualified_name().to_string());
                    let mut text = format!("{name}\n{}", json.get());
                    if is_partial(&json) {
                        text.push_str(&format!(
                            "\nWhere `more` stands, describe_tool shows the rest for `{name}` followed by its path: `{name}#/…`"
                        ));
                    }
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

    /// A part of a tool's input schema that its definition leaves out.
    async fn part(&self, view: &View, name: &str, path: &str) -> Result<String, Failure> {
        let tool = self.find(view, name).await?;
        let part = self.schema_part(view, &tool, path).await;
        part.map_err(|message| Failure::Refused {
            name: tool.qualified_name(),
            message,
            data: None,
        })
    }

    /// Asks a tool's server for a part of its input schema; `#` is all of it.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(super) fn schema_part<'a>(
        &'a self,
        view: &'a View,
        tool: &'a Tool,
        path: &'a str,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let is_partial = |json: Box<RawValue>| is_partial(&json);
            let config = view.config();
            let entry = config.servers.get(tool.server().name());
            // Another server could show a text here that was not compared with the pins.
            if !entry.is_some_and(Server::is_interface)
                || !self.inventory.definition(tool).is_some_and(is_partial)
            {
                return Err("its definition has all of it".to_owned());
            }
            let name = tool.own_name();
            let relayed = Relayed {
                method: SCHEMA_REQUEST,
                name: Some(name.tool.as_str()),
                params: Frame {
                    head: format!(r#"{{"name":{},"path":"#, quoted(name.tool.as_str()))
                        .into_bytes(),
                    body: Bytes::from(quoted(path)),
                    tail: Vec::new(),
                },
                limit: self.relay.limit(view, &name.server),
                is_repeatable: true,
                takes_task: false,
            };
            match self.relay.request(&name.server, relayed, None).await {
                Ok(ServerReply::Result(part)) => Ok(String::from_utf8_lossy(&part).into_owned()),
                Ok(ServerReply::Error(error)) => Err(message_of(&error)),
                Err(error) => Err(error.to_string()),
            }
        })
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

/// The types of a tool; `input` is its whole input schema if the definition leaves out parts of it.
fn typed(tool: &Tool, definition: &RawValue, input: Option<&str>) -> String {
    let definition: Value = serde_json::from_str(definition.get()).unwrap_or_default();
    let whole = input.and_then(|schema| serde_json::from_str(schema).ok());
    let input = whole.unwrap_or_else(|| definition["inputSchema"].clone());
    types(tool.server().name().as_str(), &definition, &input)
}

/// Whether a definition leaves out parts of its input schema, which its server shows.
pub(super) fn is_partial(definition: &RawValue) -> bool {
    let object = Object::parse(definition).unwrap_or_default();
    let meta = object
        .get("_meta")
        .and_then(|meta| Object::parse(meta).ok());
    meta.is_some_and(|meta| meta.get(SCHEMA_MARK).is_some())
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
