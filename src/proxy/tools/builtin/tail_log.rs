//! The built-in tool that shows the end of a server's log.

use super::Builtin;
use crate::mcp::Object;
use crate::proxy::Reply;
use crate::proxy::view::View;
use crate::telemetry::{OWN_LINE, tail};
use crate::text::shortened;

/// The default number of lines.
const LINES: usize = 50;
/// The maximum number of lines.
const MOST_LINES: usize = 500;

/// The number of lines of a log that are read; mcpzip's own lines among them are left out.
const LOOKED_AT: usize = 5000;

/// The length at which a line is cut, in characters.
const LONGEST_LINE: usize = 400;

impl Builtin {
    /// The last lines of a server's log: `{server, lines?}`.
    pub(super) async fn tail_log(&self, view: &View, arguments: &Object<'_>) -> Reply {
        let Some(name) = arguments.text("server") else {
            return Reply::tool_error("tail_log needs the name of a `server`");
        };
        let server = match self.configured(view, &name) {
            Ok(server) => server,
            Err(refusal) => return refusal,
        };
        if self.inventory.is_quarantined(&server) {
            let text = format!(
                "the log of server `{server}` is withheld, because no person has approved the server; `mcpzip logs {server}` shows it to a person"
            );
            return Reply::tool_error(&view.advised(&text));
        }
        let wanted = arguments
            .get("lines")
            .and_then(|raw| raw.get().parse().ok())
            .unwrap_or(LINES);
        let Some(logs) = self.logs.clone() else {
            return Reply::tool_error("no logs are kept in this run");
        };
        let path = logs.join(format!("{server}.log"));
        let wanted = wanted.clamp(1, MOST_LINES);
        let tail = self.tasks.spawn_blocking(move || tail(&path, LOOKED_AT));
        let lines = match tail.await {
            Ok(Ok(lines)) => lines,
            Ok(Err(error)) => {
                tracing::warn!(%server, %error, "the log cannot be read");
                return Reply::tool_error(&format!("the log of server `{server}` cannot be read"));
            }
            Err(_) => {
                return Reply::tool_error(&format!("the log of server `{server}` cannot be read"));
            }
        };
        // mcpzip's own lines in this log contain internals, which are meant for a person.
        let lines: Vec<String> = lines
            .iter()
            .filter(|line| !line.starts_with(OWN_LINE))
            .map(|line| view.masked(line))
            .collect();
        let last = &lines[lines.len().saturating_sub(wanted)..];
        if last.is_empty() {
            return Reply::text(&format!("server `{server}` has written nothing to stderr"));
        }
        Reply::text(
            &last
                .iter()
                .map(|line| shortened(line, LONGEST_LINE))
                .collect::<Vec<_>>()
                .join("\n"),
        )
    }
}
