//! Whether an entry may run a server that a person keeps within bounds, under another name.
//!
//! Compared is what a command or a URL is about: packages, scripts, images and hosts, in whatever order and beside whatever
//! else. An agent that may start any program can still write one that starts the server; this keeps it from doing so by an
//! entry alone.

use serde_json::Value;

use super::entries::{is_disabled, restrictions};
use crate::config::Document;

/// Programs that run others, by their names without an ending.
const RUNNERS: &[&str] = &[
    "bash",
    "bun",
    "bunx",
    "cargo",
    "cmd",
    "deno",
    "dnx",
    "docker",
    "dotnet",
    "env",
    "go",
    "java",
    "node",
    "npm",
    "npx",
    "php",
    "pipx",
    "pnpm",
    "podman",
    "powershell",
    "pwsh",
    "python",
    "python3",
    "ruby",
    "sh",
    "uv",
    "uvx",
    "yarn",
    "zsh",
];

/// Arguments that say nothing of what is run.
const GENERIC: &[&str] = &[
    "dlx",
    "exec",
    "false",
    "latest",
    "mcp",
    "mcp-remote",
    "run",
    "serve",
    "server",
    "start",
    "stdio",
    "tool",
    "true",
];

/// The shortest word that says something.
const SHORTEST: usize = 3;

/// The server within bounds that an entry called `name` with these texts may run.
pub(super) fn held_by(name: &str, texts: &Value, document: &Document) -> Option<String> {
    let mut words = Vec::new();
    collect(texts, &mut words);
    // Rules for all servers go by names: another name may be under none of them.
    let are_all_held = !document.keys(&["tools"]).is_empty();
    let mut others = document.keys(&["mcpServers"]).into_iter();
    others.find(|other| {
        let is_held = are_all_held
            || is_disabled(other, document)
            || !restrictions(other, document).is_empty();
        other != name
            && is_held
            && subject(other, document)
                .iter()
                .any(|word| words.contains(word))
    })
}

/// What an entry is about, in words.
fn subject(name: &str, document: &Document) -> Vec<String> {
    let text = |key: &str| -> Value {
        let json = document.get(&["mcpServers", name, key]);
        json.and_then(|json| serde_json::from_str(&json).ok())
            .unwrap_or_default()
    };
    let (mut program, mut rest) = (Vec::new(), Vec::new());
    collect(&text("command"), &mut program);
    collect(&text("args"), &mut rest);
    collect(&text("url"), &mut rest);
    let says = |word: &String| {
        let is_number = word.chars().all(|c| c.is_ascii_digit() || c == '.');
        word.chars().count() >= SHORTEST
            && !is_number
            && !word.starts_with(['-', '$'])
            && !GENERIC.contains(&word.as_str())
            && !RUNNERS.contains(&word.as_str())
    };
    let subject: Vec<String> = program
        .iter()
        .chain(&rest)
        .filter(|word| says(word))
        .cloned()
        .collect();
    if subject.is_empty() { program } else { subject }
}

fn collect(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => text
            .split(|c: char| c.is_whitespace() || "=\"'`;&|()<>,".contains(c))
            .for_each(|part| word(&part.to_lowercase(), words)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(members) => members.values().for_each(|value| collect(value, words)),
        _ => {}
    }
}

/// A URL's host; a package without its version; a file's name without its directory and, of a program, its ending.
fn word(part: &str, words: &mut Vec<String>) {
    if let Some((_, rest)) = part.split_once("://") {
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let host = host
            .strip_suffix(":443")
            .or_else(|| host.strip_suffix(":80"))
            .unwrap_or(host);
        words.push(host.trim_end_matches('.').to_owned());
        return;
    }
    for piece in part.split(':') {
        let scope = usize::from(piece.starts_with('@'));
        let end = piece[scope..]
            .find('@')
            .map_or(piece.len(), |at| at + scope);
        let bare = &piece[..end];
        let bare = match scope {
            0 => bare.rsplit(['/', '\\']).next().unwrap_or_default(),
            _ => bare,
        };
        let bare = [".exe", ".cmd", ".bat"]
            .iter()
            .find_map(|ending| bare.strip_suffix(ending))
            .unwrap_or(bare);
        if !bare.is_empty() {
            words.push(bare.to_owned());
        }
    }
}
