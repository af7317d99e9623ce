//! `mcpzip describe`: prints a tool's signature, description and full definition.

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::completions;
use super::daemon_option::DaemonOption;
use super::diagnostics::Exit;
use super::output::{Output, strong};
use super::profile_option::ProfileOption;
use crate::app::App;
use crate::tool::{Definition, render_hit};

#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "Examples:
  mcpzip describe notes__create_note
  mcpzip describe --json create_note | jq .inputSchema")]
pub(super) struct Arguments {
    /// Name of the tool, as `mcpzip search` shows it; the server's part may be left out if the name is unique
    #[arg(add = completions::of_tools())]
    name: String,
    #[command(flatten)]
    pub(super) daemon: DaemonOption,
    #[command(flatten)]
    pub(super) profile: ProfileOption,
}

pub(super) async fn run(arguments: &Arguments, app: &App, output: &Output) -> Result<(), Exit> {
    let proxy = app.proxy();
    let view = proxy.unscoped();
    let described = {
        let _spinner = output.spinner("looking it up");
        proxy.tools.describe(&view, &arguments.name).await
    };
    let (tool, json) = described.map_err(|failure| Exit::of_call(&failure, &view))?;
    if output.is_json() {
        output.raw_json(json.get());
        return Ok(());
    }
    if let Ok(definition) = Definition::parse(&json) {
        let name = tool.qualified_name().to_string();
        let hit = render_hit(tool.server().name(), &definition);
        let (signature, _) = hit.split_once('\n').unwrap_or((&hit, ""));
        output.line(format!(
            "{}{}",
            strong(&name),
            signature.strip_prefix(&name).unwrap_or(signature)
        ));
        if !definition.description.trim().is_empty() {
            output.line(format!("\n{}", definition.description.trim()));
        }
    }
    output.line("");
    // Wrapped lines would not be JSON any more.
    output.verbatim(pretty(&json));
    Ok(())
}

/// Indents the definition. If it cannot be parsed, its own bytes are printed.
fn pretty(json: &RawValue) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(json.get()).ok();
    value
        .and_then(|value| serde_json::to_string_pretty(&value).ok())
        .unwrap_or_else(|| json.get().to_owned())
}
