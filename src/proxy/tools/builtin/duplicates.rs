//! Whether an entry may run a server that a person has restricted, under another name.
//!
//! Two entries are compared by the words of their command or URL: packages, scripts, images and hosts, in any order
//! and with any other words. Entries that hide these words, with variables or shells, are refused while there is any
//! restricted server. An agent that may start any program can still write one that starts the server; this prevents
//! only that an entry alone does so.

use std::collections::BTreeSet;
use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde_json::Value;

use super::denied::Denied;
use super::restrictions::{is_disabled, restrictions};
use crate::config::{Config, Document, Transport, addresses_of, any_program, programs_of};

/// Programs that run other programs, without their file extension.
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

/// Programs that run the text of their arguments or variables.
const SHELLS: &[&str] = &[
    "ash",
    "bash",
    "busybox",
    "cmd",
    "csh",
    "dash",
    "doas",
    "env",
    "eval",
    "expect",
    "fish",
    "ksh",
    "nohup",
    "osascript",
    "powershell",
    "pwsh",
    "script",
    "setsid",
    "sh",
    "sudo",
    "tcsh",
    "toybox",
    "wsl",
    "xargs",
    "zsh",
];

/// Options with a program's text, of programs that run others, except container tools.
const TEXT_OPTIONS: &[&str] = &["c", "e", "r", "p", "pe", "call", "eval", "print"];
const CONTAINERS: &[&str] = &["docker", "podman"];

/// Arguments that do not identify what is run.
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

/// The shortest word that identifies something.
const SHORTEST: usize = 3;

/// Why an agent may not have `entry` under the name `name`: a server that a person has restricted.
pub(super) fn refusal(
    name: &str,
    entry: &Value,
    document: &Document,
    config: &Config,
) -> Option<Denied> {
    // Rules for all servers go by name, and another name may have no rule.
    let are_all_held = !document.keys(&["tools"]).is_empty();
    let mut others = document.keys(&["mcpServers"]);
    others.retain(|other| {
        other != name
            && (are_all_held
                || is_disabled(other, document)
                || !restrictions(other, document).is_empty())
    });
    let first = others.first()?;
    let mut words = Vec::new();
    collect(entry, true, &mut words);
    for other in &others {
        let Some(subject) = subject(other, document, config) else {
            let server = other.clone();
            return Some(Denied::Incomparable { server });
        };
        let is_same = || {
            let there = transport(other, config).map(Transport::programs);
            !programs(entry).is_disjoint(&there.unwrap_or_default())
        };
        if subject.iter().any(|word| words.contains(word)) || is_same() {
            let server = other.clone();
            return Some(Denied::Duplicate { server });
        }
    }
    let cause = match () {
        () if has_variable(entry) => "variables",
        () if runs_text(entry) => "a shell or a program's text",
        () if programs(entry).contains(&any_program()) => "a program that is not known",
        () => return None,
    };
    let server = first.clone();
    Some(Denied::Unclear { cause, server })
}

/// The words that identify the server of the entry `name`, as written and with its variables expanded; `None` if a
/// variable is unknown.
fn subject(name: &str, document: &Document, config: &Config) -> Option<Vec<String>> {
    let text = |key: &str| -> Value {
        let json = document.get(&["mcpServers", name, key]);
        json.and_then(|json| serde_json::from_str(&json).ok())
            .unwrap_or_default()
    };
    let written = [text("command"), text("args"), text("url")];
    let (mut program, mut rest) = (Vec::new(), Vec::new());
    collect(&written[0], false, &mut program);
    collect(&written[1], false, &mut rest);
    collect(&written[2], false, &mut rest);
    match transport(name, config) {
        Some(Transport::Stdio(stdio)) => {
            collect(&Value::from(stdio.command.as_str()), false, &mut program);
            collect(&Value::from(stdio.args.clone()), false, &mut rest);
        }
        Some(Transport::Http(remote) | Transport::Sse(remote)) => {
            collect(&Value::from(remote.url.as_str()), false, &mut rest);
        }
        Some(Transport::Folder(folder)) => {
            let path = folder.path.to_string_lossy();
            collect(&Value::from(path.as_ref()), false, &mut rest);
        }
        None if written.iter().any(has_variable) => return None,
        None => {}
    }
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
    Some(if subject.is_empty() { program } else { subject })
}

/// The server of the entry `name`, if it is usable.
fn transport<'c>(name: &str, config: &'c Config) -> Option<&'c Transport> {
    let mut servers = config.servers.iter();
    let known = servers.find(|(server, _)| {
        let written = config.renamed.get(*server);
        written.map_or(server.as_str(), String::as_str) == name
    });
    known.map(|(_, server)| &server.transport)
}

/// The programs that an entry may start, as it is written.
fn programs(entry: &Value) -> BTreeSet<String> {
    let args = entry["args"].as_array().into_iter().flatten();
    let args: Vec<String> = args
        .filter_map(|arg| arg.as_str().map(str::to_owned))
        .collect();
    match (entry["url"].as_str(), entry["command"].as_str()) {
        (Some(url), _) => addresses_of(url),
        (None, Some(command)) => programs_of(command, &args),
        (None, None) => BTreeSet::new(),
    }
}

fn has_variable(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${"),
        Value::Array(items) => items.iter().any(has_variable),
        Value::Object(members) => members.values().any(has_variable),
        _ => false,
    }
}

/// Whether an entry runs a shell, or another program with a program's text.
fn runs_text(entry: &Value) -> bool {
    let (mut program, mut words) = (Vec::new(), Vec::new());
    collect(&entry["command"], false, &mut program);
    collect(&entry["args"], false, &mut words);
    let is_in = |list: &[&str], words: &[String]| words.iter().any(|word| list.contains(&&**word));
    let takes_text = is_in(RUNNERS, &program) && !is_in(CONTAINERS, &program);
    let args = entry["args"].as_array().into_iter().flatten();
    let mut options = args
        .filter_map(Value::as_str)
        .filter(|arg| arg.starts_with(['-', '/']))
        .map(|arg| arg.trim_start_matches(['-', '/']));
    is_in(SHELLS, &program)
        || is_in(SHELLS, &words)
        || takes_text
            && options
                .any(|option| TEXT_OPTIONS.contains(&option.split('=').next().unwrap_or(option)))
}

/// The words of the texts in `value`; with `all`, also those that may only describe what is run, such as a directory.
fn collect(value: &Value, all: bool, words: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let text = text.to_lowercase();
            // A URL may contain a separator.
            let urls = ["http", "ws"].map(|scheme| text.match_indices(scheme));
            for (at, _) in urls.into_iter().flatten() {
                url(&text[at..], all, words);
            }
            text.split(|c: char| c.is_whitespace() || "=\"'`;&|()<>,".contains(c))
                .for_each(|part| word(part, all, words));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, all, words)),
        Value::Object(members) => members
            .values()
            .for_each(|value| collect(value, all, words)),
        _ => {}
    }
}

/// The host of a URL, as programs parse it. For this machine, any of its names with the port.
fn url(text: &str, all: bool, words: &mut Vec<String>) {
    let Ok(url) = Url::parse(text) else { return };
    let Some(host) = url.host_str() else { return };
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    let address = host.parse().map(|address: IpAddr| address.to_canonical());
    let is_here = match address {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    };
    if is_here {
        let port = url.port_or_known_default().unwrap_or_default();
        words.push(format!("localhost:{port}"));
    } else {
        words.push(address.map_or_else(|_| host.to_owned(), |address| address.to_string()));
    }
    if all {
        path(url.path(), words);
    }
}

/// Each part of a path, and each pair that may be a package with its scope.
fn path(text: &str, words: &mut Vec<String>) {
    let text = percent_decode_str(text).decode_utf8_lossy().to_lowercase();
    let parts: Vec<&str> = text
        .split(['/', '\\'])
        .filter(|part| !part.is_empty())
        .collect();
    words.extend(parts.iter().map(|part| plain(part)));
    words.extend(
        parts
            .windows(2)
            .filter(|pair| pair[0].starts_with('@'))
            .map(|pair| plain(&pair.join("/"))),
    );
}

/// The host of a URL; a package without its version; a file's name without its directory and, for a program, without
/// its extension.
fn word(part: &str, all: bool, words: &mut Vec<String>) {
    if let Some((scheme, rest)) = part.split_once("://") {
        // `git+https`.
        let scheme = scheme.rsplit('+').next().unwrap_or_default();
        return url(&format!("{scheme}://{rest}"), all, words);
    }
    if all && part.contains(':') {
        url(&format!("http://{part}"), false, words);
    }
    if all && part.contains(['/', '\\']) {
        path(part, words);
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
        if !bare.is_empty() {
            words.push(plain(bare));
        }
    }
}

/// A name without a program's extension, with the separators that package indexes treat as equal unified.
fn plain(name: &str) -> String {
    let endings = [".exe", ".cmd", ".bat", ".tgz", ".git"];
    let bare = endings.iter().find_map(|ending| name.strip_suffix(ending));
    bare.unwrap_or(name).replace('_', "-")
}
