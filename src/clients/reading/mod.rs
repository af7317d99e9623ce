//! Converts a client's entry for a server, in any form, to one that `mcpzip` can use.
//!
//! Reading is lenient, because users paste one client's form into another's file. If an entry needs something that the
//! proxy cannot provide, the server stays, with a reason for the user.

mod tools;
mod url;

use std::path::{Path, is_separator};

use super::model::{Entry, Invocation, Target, ToolRule, Unmovable};
use super::references::{Role, translate};
use super::remote::Outcome;
use super::text::is_mark;
use super::{Client, Node, remote};
use crate::config::KeptData;
use tools::{ALLOWING_KEYS, DENYING_KEYS, FREEING_KEYS};

const COMMAND_KEYS: &[&str] = &["command", "cmd"];
const URL_KEYS: &[&str] = &["url", "serverUrl", "httpUrl", "uri", "endpoint"];
const ENV_KEYS: &[&str] = &["env", "environment", "envs"];
const CWD_KEYS: &[&str] = &["cwd", "working_directory", "workingDirectory"];
const HEADER_KEYS: &[&str] = &["headers", "http_headers"];
/// Keys that are read elsewhere in this module, or have no meaning outside of their client.
const QUIET_KEYS: &[&str] = &[
    "type",
    "args",
    "disabled",
    "enabled",
    "isActive",
    "active",
    "timeout",
    "tool_timeout_sec",
    "description",
    "oauth",
    "auth",
    "scopes",
    "tools",
    "name",
    "source",
    "env_vars",
    "env_keys",
    "bearer_token_env_var",
    "env_http_headers",
    "oauth_resource",
    "headersHelper",
    "requestOptions",
    "alwaysLoad",
    "displayName",
    "discoveryCache",
    "transport",
    "transportType",
    "$typeName",
    "gallery",
    "version",
];

/// Keys of a part of an entry that neither restrict the server nor change what runs.
const HARMLESS_KEYS: &[&str] = &[
    "disabled",
    "enabled",
    "isActive",
    "active",
    "required",
    "timeout",
    "tool_timeout_sec",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "supports_parallel_tool_calls",
    "description",
    "displayName",
    "name",
    "tools",
    "type",
];

/// Reads an entry of `client`. Relative paths of a project's entry are relative to `project`.
///
/// # Errors
/// The reason why the server cannot be moved.
pub(super) fn read(
    client: Client,
    entry: &Node,
    project: Option<&Path>,
) -> Result<Entry, Unmovable> {
    if !matches!(entry, Node::Map(_)) {
        return Err(Unmovable::NoEntry);
    }
    if entry.any_text(is_mark) {
        return Err(Unmovable::HalfCharacter);
    }
    needs_client(client, entry)?;
    let reader = Reader {
        client,
        entry,
        project,
    };
    let target = match (reader.command()?, reader.url()?) {
        (Some(_), Some(_)) => return Err(Unmovable::BothTargets),
        (None, None) => return Err(Unmovable::NoTarget),
        (Some((command, first)), None) => reader.local(command, first)?,
        (None, Some((key, url))) => reader.remote(key, url)?,
    };
    let mut tool_rules = reader.tool_rules();
    let (mut is_unwrapped, mut notes) = (false, Vec::new());
    let target = match remote::unwrapped(&target) {
        Outcome::Unwrapped(unwrapped) => {
            tool_rules.extend(unwrapped.tool_rules);
            notes.push("without mcp-remote, straight to its URL".to_owned());
            notes.extend(unwrapped.notes);
            is_unwrapped = true;
            unwrapped.target
        }
        Outcome::Kept(note) => {
            notes.push(note);
            target
        }
        Outcome::Other => target,
    };
    if let Target::Local {
        command, args, env, ..
    } = &target
    {
        let value = |name: &str| {
            let (_, value) = env.iter().find(|(own, _)| own == name)?;
            // One that is not expanded yet may be any.
            Some(if value.contains('$') { "/" } else { value })
        };
        notes.extend(KeptData::of(command, args, value).map(|data| data.to_string()));
    }
    Ok(Entry {
        target,
        is_unwrapped,
        notes,
        is_disabled: reader.is_disabled(),
        timeout: reader.timeout(),
        description: entry
            .get("description")
            .and_then(Node::as_text)
            .map(str::to_owned),
        tool_rules,
        left_behind: reader.left_behind(),
    })
}

/// The command line or URL of an entry, as written.
pub(super) fn written(client: Client, entry: &Node) -> Invocation {
    let reader = Reader {
        client,
        entry,
        project: None,
    };
    match (reader.command(), reader.url()) {
        (Ok(Some((command, first))), Ok(None)) => {
            let rest = first.into_iter().chain(reader.arguments());
            let words = [Node::text(command)].into_iter().chain(rest.cloned());
            Invocation::Command(words.collect())
        }
        (Ok(None), Ok(Some((_, url)))) => Invocation::Url(url.to_owned()),
        _ => Invocation::Unknown,
    }
}

/// An entry that a client lays over another one of the same name.
pub(super) struct Part {
    /// The key and value that switch the server off.
    pub(super) switch: Option<(&'static str, String)>,
    /// The rules about single tools, if the entry has no target of its own or one that is not understood.
    pub(super) tool_rules: Vec<ToolRule>,
    /// The keys that change the server otherwise, if the entry has no target of its own.
    pub(super) others: Vec<String>,
}

/// Reads an entry of `client` in a file of `project` that may lack its target. `None` if it is not understood.
pub(super) fn part(client: Client, entry: &Node, project: Option<&Path>) -> Option<Part> {
    let reader = Reader {
        client,
        entry,
        project,
    };
    let switch = matches!(entry, Node::Map(_)).then(|| reader.switch())?;
    let is_whole = reader
        .first(COMMAND_KEYS)
        .or(reader.first(URL_KEYS))
        .is_some();
    let mut part = Part {
        switch: switch.map(|(key, value)| (key, value.to_json())),
        tool_rules: Vec::new(),
        others: Vec::new(),
    };
    // The rules of a whole entry belong to its program; if that is not known, it may be the same.
    if read(client, entry, project).is_err() {
        part.tool_rules = reader.tool_rules();
    }
    if !is_whole {
        let groups = [DENYING_KEYS, ALLOWING_KEYS, FREEING_KEYS, HARMLESS_KEYS];
        let is_known = |key: &str| groups.iter().any(|keys| keys.contains(&key));
        let keys = entry.members().into_iter().map(|(key, _)| key);
        part.others = keys
            .filter(|key| !is_known(key))
            .map(str::to_owned)
            .collect();
    }
    Some(part)
}

/// Checks for features that only the client can provide to a server.
fn needs_client(client: Client, entry: &Node) -> Result<(), Unmovable> {
    let own = |need| Err(Unmovable::NeedsClient { need, client });
    let has = |key: &str| {
        entry
            .get(key)
            .is_some_and(|value| !matches!(value, Node::Null))
    };
    if has("headersHelper") && client != Client::ClaudeCode {
        return own("gets its headers from a program (`headersHelper`)");
    }
    if has("envFile") {
        return own("gets its variables from a file (`envFile`)");
    }
    if has("sandbox") || entry.get("sandboxEnabled").and_then(Node::as_flag) == Some(true) {
        return own("runs in a sandbox");
    }
    if has("authProviderType") {
        return own("logs in by `authProviderType`");
    }
    if entry
        .get("env_keys")
        .is_some_and(|keys| !keys.items().is_empty())
    {
        return own("gets secrets from the keyring (`env_keys`)");
    }
    if has("extension_name")
        || client == Client::Zed && has("settings") && !has("command") && !has("url")
    {
        return own("comes from an extension and is set up there");
    }
    match entry.get("type").and_then(Node::as_text) {
        Some("ws" | "websocket") => Err(Unmovable::WebSocket),
        Some(kind @ ("builtin" | "platform" | "frontend" | "inline_python"))
            if client == Client::Goose =>
        {
            let kind = kind.to_owned();
            Err(Unmovable::PartOfClient { kind, client })
        }
        _ => Ok(()),
    }
}

struct Reader<'e> {
    client: Client,
    entry: &'e Node,
    project: Option<&'e Path>,
}

impl<'e> Reader<'e> {
    fn first(&self, keys: &[&'static str]) -> Option<(&'static str, &'e Node)> {
        let found = keys
            .iter()
            .find_map(|key| Some((*key, self.entry.get(key)?)));
        found.filter(|(_, value)| !matches!(value, Node::Null))
    }

    /// The key and value that switch it off; a switch that is not understood is one that is off.
    fn switch(&self) -> Option<(&'static str, &'e Node)> {
        let switches = [
            ("disabled", false),
            ("enabled", true),
            ("isActive", true),
            ("active", true),
        ];
        let switches = switches.into_iter();
        let mut written = switches.filter_map(|(key, on)| Some((key, on, self.entry.get(key)?)));
        let off = written.find(|(_, on, value)| ![Node::Null, Node::Flag(*on)].contains(value));
        off.map(|(key, _, value)| (key, value))
    }

    fn is_disabled(&self) -> bool {
        self.switch().is_some()
    }

    fn text(&self, text: &str, role: Role) -> Result<String, Unmovable> {
        match self.project.and_then(Path::to_str) {
            // Both mean the project's directory, if there is one.
            Some(project) => {
                let text = text
                    .replace("${workspaceFolder}", project)
                    .replace("${workspaceRoot}", project);
                translate(self.client, &text, role)
            }
            None => translate(self.client, text, role),
        }
    }

    /// Makes a path absolute.
    ///
    /// # Errors
    /// When it is relative to an unknown directory.
    fn rooted(&self, key: &str, path: String) -> Result<String, Unmovable> {
        match self.project {
            _ if !is_relative(&path) => Ok(path),
            Some(project) => {
                let whole: std::path::PathBuf = project.join(&path).components().collect();
                Ok(whole.to_string_lossy().into_owned())
            }
            None => Err(Unmovable::Relative {
                key: key.to_owned(),
                path,
            }),
        }
    }

    /// The program, and the arguments that are in one list with it.
    fn command(&self) -> Result<Option<(&'e str, Vec<&'e Node>)>, Unmovable> {
        let Some((key, node)) = self.first(COMMAND_KEYS) else {
            return Ok(None);
        };
        let (program, rest) = match node {
            Node::Text(text) => (Some(text.as_str()), Vec::new()),
            Node::List(items) => match items.split_first() {
                Some((first, rest)) => (first.as_text(), rest.iter().collect()),
                None => (None, Vec::new()),
            },
            // Zed's oldest form.
            Node::Map(_) => (node.get("path").and_then(Node::as_text), Vec::new()),
            _ => (None, Vec::new()),
        };
        let program = program.filter(|program| !program.trim().is_empty());
        program
            .map(|program| Some((program, rest)))
            .ok_or(Unmovable::NoProgram(key))
    }

    fn url(&self) -> Result<Option<(&'static str, &'e str)>, Unmovable> {
        let Some((key, node)) = self.first(URL_KEYS) else {
            return Ok(None);
        };
        let url = node.as_text().ok_or_else(|| no_text(key))?;
        Ok(Some((key, url)))
    }

    /// The map with the arguments and variables.
    fn inner(&self) -> &'e Node {
        let inner = self.entry.get("command");
        inner
            .filter(|node| matches!(node, Node::Map(_)))
            .unwrap_or(self.entry)
    }

    fn arguments(&self) -> &'e [Node] {
        let args = self.inner().get("args");
        args.map(Node::items).unwrap_or_default()
    }

    fn local(&self, command: &str, first: Vec<&Node>) -> Result<Target, Unmovable> {
        let inner = self.inner();
        let listed = first.into_iter().chain(self.arguments());
        let args = listed.map(|arg| match arg {
            Node::Text(text) => self.text(text, Role::Command),
            Node::Number(number) => Ok(number.clone()),
            Node::Flag(flag) => Ok(flag.to_string()),
            _ => Err(Unmovable::NoText("an argument".to_owned())),
        });
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let command = self.text(command, Role::Command)?;
        let command = if command.contains(is_separator) {
            self.rooted("command", command)?
        } else {
            command
        };
        let env_node = ENV_KEYS
            .iter()
            .find_map(|key| inner.get(key).or_else(|| self.entry.get(key)));
        let mut env = self.pairs("env", env_node)?;
        for name in self
            .entry
            .get("env_vars")
            .map(Node::items)
            .unwrap_or_default()
        {
            let name = name
                .as_text()
                .ok_or_else(|| Unmovable::Form("env_vars".to_owned()))?;
            // The client passed it on only if it was set.
            env.push((name.to_owned(), format!("${{{name}:-}}")));
        }
        let cwd = match self.first(CWD_KEYS) {
            Some((key, node)) => {
                let written = node.as_text().ok_or_else(|| no_text(key))?;
                Some(self.rooted(&format!("`{key}`"), self.text(written, Role::Command)?)?)
            }
            // Clients start a project's servers in its directory, and people write arguments relative to it.
            None => self
                .project
                .map(|project| project.to_string_lossy().into_owned()),
        };
        Ok(Target::Local {
            command,
            args,
            env,
            cwd,
        })
    }

    fn pairs(&self, what: &str, node: Option<&Node>) -> Result<Vec<(String, String)>, Unmovable> {
        let members = match node {
            None | Some(Node::Null) => return Ok(Vec::new()),
            Some(node @ Node::Map(_)) => node.members(),
            Some(_) => return Err(Unmovable::Form(what.to_owned())),
        };
        let pair = |(name, value): (&str, &Node)| {
            let value = match value {
                Node::Text(text) => self.text(text, Role::Value)?,
                Node::Number(number) => number.clone(),
                Node::Flag(flag) => flag.to_string(),
                _ => return Err(no_text(&format!("{what}.{name}"))),
            };
            Ok((name.to_owned(), value))
        };
        members.into_iter().map(pair).collect()
    }

    /// The time limit in milliseconds; some clients use seconds.
    fn timeout(&self) -> Option<u64> {
        let number = |key: &str| match self.entry.get(key)? {
            Node::Number(number) => number
                .parse::<f64>()
                .ok()
                .filter(|number| *number > 0.0 && *number < 1e9),
            _ => None,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked"
        )]
        let whole = |milliseconds: f64| milliseconds.round() as u64;
        match self.client {
            Client::Codex => number("tool_timeout_sec").map(|seconds| whole(seconds * 1000.0)),
            // This limit is for listing tools only.
            Client::OpenCode => None,
            Client::Zed | Client::Cline | Client::Roo | Client::Goose => {
                number("timeout").map(|seconds| whole(seconds * 1000.0))
            }
            // Claude Code ignores less than a second.
            _ => number("timeout")
                .map(whole)
                .filter(|milliseconds| *milliseconds >= 1000),
        }
    }

    fn left_behind(&self) -> Vec<String> {
        let groups = [
            COMMAND_KEYS,
            URL_KEYS,
            ENV_KEYS,
            CWD_KEYS,
            HEADER_KEYS,
            DENYING_KEYS,
            ALLOWING_KEYS,
            FREEING_KEYS,
            QUIET_KEYS,
        ];
        let is_known = |key: &str| groups.iter().any(|keys| keys.contains(&key));
        self.entry
            .members()
            .into_iter()
            .map(|(key, _)| key.to_owned())
            .filter(|key| !is_known(key))
            .collect()
    }
}

fn no_text(key: &str) -> Unmovable {
    Unmovable::NoText(format!("a `{key}`"))
}

fn is_relative(path: &str) -> bool {
    let is_rooted = path.starts_with("~/")
        || path.starts_with("${")
        || path.starts_with('/')
        || Path::new(path).is_absolute();
    // `C:\` on any system.
    !is_rooted
        && !path
            .get(1..3)
            .is_some_and(|drive| drive == ":\\" || drive == ":/")
        && !path.starts_with("\\\\")
}
