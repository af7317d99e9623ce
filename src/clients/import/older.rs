//! mcpzip 0.1: `~/.config/compressed-mcp-proxy/config.json`.
//!
//! Its cache is not used: servers are listed again. Its logins cannot be renewed, because they lack the client registration.

use std::path::{Path, PathBuf};

use super::super::{Client, Node};
use super::{Draft, DraftServer};
use crate::secret::Secret;

/// The keys of a server that it read; it ignored all others.
const SERVER_KEYS: &[&str] = &["type", "command", "args", "env", "url", "headers"];

const KEYS: &[&str] = &[
    "mcpServers",
    "gemini_api_key",
    "search",
    "idle_timeout_minutes",
    "call_timeout_seconds",
];

pub(super) fn draft(file: &Path, node: &Node) -> Draft {
    let mut draft = Draft::default();
    for (name, written) in node
        .get("mcpServers")
        .map(Node::members)
        .unwrap_or_default()
    {
        // It expanded no references, like Claude Desktop.
        let server = DraftServer::read(name, written, SERVER_KEYS, Client::ClaudeDesktop);
        draft.servers.push(server);
    }
    settings(node, &mut draft);
    if let Some(Node::Text(key)) = node.get("gemini_api_key") {
        draft.secrets.push(Secret::new(key.clone()));
    }
    draft.note_rest(node, KEYS);
    left(file, &mut draft);
    draft
}

/// The settings in our keys.
fn settings(node: &Node, draft: &mut Draft) {
    let mut time = |key: &str, ours: &'static str, unit: &str| match node.get(key) {
        None | Some(Node::Null) => {}
        Some(Node::Number(number)) if number.parse::<u32>().is_ok_and(|number| number > 0) => {
            draft.set(&[ours], Node::Text(format!("{number}{unit}")));
        }
        Some(other) => draft.notes.push(format!(
            "`{key}` is {}, which is not a time",
            other.to_json()
        )),
    };
    time("idle_timeout_minutes", "idle_timeout", "m");
    time("call_timeout_seconds", "call_timeout", "s");
    if let Some(limit @ Node::Number(_)) = node.at(&["search", "default_limit"]) {
        draft.set(&["search", "default_limit"], limit.clone());
    }
    if let Some(key @ Node::Text(text)) = node.get("gemini_api_key")
        && !text.is_empty()
    {
        let mut model = vec![("provider", Node::text("gemini"))];
        model.extend(
            node.at(&["search", "model"])
                .map(|model| ("model", model.clone())),
        );
        model.push(("api_key", key.clone()));
        draft.set(&["search", "llm"], Node::map(model));
    }
}

/// The other files in its directory, which stay behind.
fn left(file: &Path, draft: &mut Draft) {
    let directory = file.parent().unwrap_or(Path::new(""));
    let logins = files(&directory.join("auth")).len();
    if logins > 0 {
        let (logins, until) = match logins {
            1 => ("1 login".to_owned(), "it is used until it expires"),
            many => (
                format!("{many} logins"),
                "valid ones are used until they expire",
            ),
        };
        draft.notes.push(format!(
            "{logins} there cannot be renewed by another program: {until}, then `mcpzip login` logs in again"
        ));
    }
    if !files(&directory.join("cache")).is_empty() {
        draft.notes.push(
            "the cached lists are not imported: the servers list their tools again".to_owned(),
        );
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect()
}
