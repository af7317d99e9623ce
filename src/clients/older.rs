//! Import of the configuration of mcpzip 0.1, in `~/.config/compressed-mcp-proxy`. Settings without a counterpart are
//! reported.
//!
//! No file there is changed, because the older program may still be in use. Its cache is not used: servers are listed
//! again. Its logins cannot be renewed, because they lack the client registration.

use std::path::{Path, PathBuf};

use super::Item;
use super::cache::read_source;
use super::reading;
use super::servers::Servers;
use super::{Client, Edit, Entry, Node, PlanError, Scope, Syntax, Verdict};
use crate::secret::{Masker, Secret};

/// A planned import.
#[derive(Debug)]
pub(crate) struct Import {
    /// A verdict for each server, as for a client's servers.
    pub items: Vec<Item>,
    /// Our configuration, if it changes.
    pub edit: Option<Edit>,
    /// The settings that are not taken over, one sentence each.
    pub notes: Vec<String>,
    /// Hides the secrets.
    pub masker: Masker,
}

/// The keys of a server that it read; it ignored all others.
const SERVER_KEYS: &[&str] = &["type", "command", "args", "env", "url", "headers"];

impl Import {
    /// Plans to import the configuration at `older` into the one at `config_file`.
    ///
    /// # Errors
    /// When one of them cannot be read, or ours cannot be edited.
    pub(crate) fn new(older: &Path, config_file: &Path) -> Result<Self, PlanError> {
        let read = |path: &Path| {
            let unreadable = |source| PlanError::Unreadable {
                path: path.to_owned(),
                source,
            };
            read_source(path, Syntax::Json).map_err(unreadable)
        };
        let (from, source) = (read(older)?, read(config_file)?);
        let node = from.text.node();
        let mut text = source.text.clone();
        let mut servers = Servers::of(&text);
        let (mut items, mut notes, mut secrets) = (Vec::new(), Vec::new(), Vec::new());
        for (name, written) in node
            .get("mcpServers")
            .map(Node::members)
            .unwrap_or_default()
        {
            let known = written
                .members()
                .into_iter()
                .filter(|(key, _)| SERVER_KEYS.contains(key));
            let entry = match written {
                Node::Map(_) => Node::map(known.map(|(key, value)| (key, value.clone()))),
                other => other.clone(),
            };
            // It expanded no references, like Claude Desktop.
            let entry = reading::read(Client::ClaudeDesktop, &entry, None);
            secrets.extend(
                entry
                    .as_ref()
                    .ok()
                    .map(Entry::secrets)
                    .into_iter()
                    .flatten(),
            );
            let is_off = entry.as_ref().is_ok_and(|entry| entry.is_disabled);
            let verdict = match entry {
                Err(reason) => Verdict::Stays(reason),
                Ok(entry) if entry.is_mcpzip() => Verdict::Stays("is mcpzip itself".to_owned()),
                Ok(entry) => servers.add(name, entry.to_node()),
            };
            let left = written.members().into_iter().map(|(key, _)| key.to_owned());
            items.push(Item {
                client: Client::ClaudeDesktop,
                scope: Scope::User,
                path: older.to_owned(),
                server: name.to_owned(),
                verdict,
                left_behind: left
                    .filter(|key| !SERVER_KEYS.contains(&key.as_str()))
                    .collect(),
                notes: Vec::new(),
                is_off,
            });
        }
        let failed = |source| PlanError::Edit {
            path: config_file.to_owned(),
            source,
        };
        let mut paths = servers.write(&mut text).map_err(failed)?;
        for (path, value) in settings(node, &mut notes) {
            let path: Vec<String> = path.iter().map(|key| (*key).to_owned()).collect();
            if text.node().at(&path).is_none() {
                text.set(&path, &value).map_err(failed)?;
                paths.push(path);
            } else if text.node().at(&path) != Some(&value) {
                notes.push(format!("`{}` stays as it is here", path.join(".")));
            }
        }
        if let Some(Node::Text(key)) = node.get("gemini_api_key") {
            secrets.push(Secret::new(key.clone()));
        }
        notes.extend(left(older, node));
        let edit = Edit::new(None, config_file, Syntax::Json, &source, &text, paths);
        Ok(Self {
            items,
            edit,
            notes,
            masker: Masker::new(secrets),
        })
    }
}

/// The settings in our keys.
fn settings(node: &Node, notes: &mut Vec<String>) -> Vec<(Vec<&'static str>, Node)> {
    let mut settings = Vec::new();
    let mut time = |key: &str, ours: &'static str, unit: &str| match node.get(key) {
        None | Some(Node::Null) => {}
        Some(Node::Number(number)) if number.parse::<u32>().is_ok_and(|number| number > 0) => {
            settings.push((vec![ours], Node::Text(format!("{number}{unit}"))));
        }
        Some(other) => notes.push(format!("`{key}` is {}, which is no time", other.to_json())),
    };
    time("idle_timeout_minutes", "idle_timeout", "m");
    time("call_timeout_seconds", "call_timeout", "s");
    if let Some(limit @ Node::Number(_)) = node.at(&["search", "default_limit"]) {
        settings.push((vec!["search", "default_limit"], limit.clone()));
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
        settings.push((vec!["search", "llm"], Node::map(model)));
    }
    settings
}

/// The settings that stay behind.
fn left(older: &Path, node: &Node) -> Vec<String> {
    let mut notes = Vec::new();
    let known = [
        "mcpServers",
        "gemini_api_key",
        "search",
        "idle_timeout_minutes",
        "call_timeout_seconds",
    ];
    let unknown: Vec<String> = node
        .members()
        .into_iter()
        .filter(|(key, _)| !known.contains(key))
        .map(|(key, _)| format!("`{key}`"))
        .collect();
    if !unknown.is_empty() {
        notes.push(format!(
            "{} is not known here and stays behind",
            unknown.join(", ")
        ));
    }
    let directory = older.parent().unwrap_or(Path::new(""));
    let logins = files(&directory.join("auth")).len();
    if logins > 0 {
        notes.push(format!(
            "{logins} logins there cannot be renewed by anybody else: those that are still good are used until they end, then `mcpzip login` logs in anew"
        ));
    }
    if !files(&directory.join("cache")).is_empty() {
        notes.push("the cached lists stay behind: the servers are asked anew".to_owned());
    }
    notes
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect()
}
