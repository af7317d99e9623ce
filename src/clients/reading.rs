//! A client's entry for a server, in whatever form it has it, as one that `mcpzip` can use.
//!
//! Reading is lenient: forms that belong to one client are pasted into another's file every day. What an entry needs and
//! the proxy cannot give is no oddity but a reason to leave the server where it is, in words for its user.

use std::path::{Path, is_separator};

use super::references::{self, Role, translate};
use super::{Client, Node};
use crate::config::{secret_arguments, secret_parameters};
use crate::secret::{Secret, is_secret_name};

/// A server as `mcpzip` can use it; all texts have references in our form.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// How it is reached.
    pub target: Target,
    /// Kept and not used.
    pub is_disabled: bool,
    /// How long a call may take, in milliseconds.
    pub timeout: Option<u64>,
    /// What it is for.
    pub description: Option<String>,
    /// What would restrict or free single tools, as it is written; the proxy knows no such rule.
    pub tool_rules: Vec<ToolRule>,
    /// The keys that have no counterpart and change nothing of what the server is.
    pub left_behind: Vec<String>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A process.
    Local {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its variables.
        env: Vec<(String, String)>,
        /// Where it runs.
        cwd: Option<String>,
    },
    /// A URL.
    Remote {
        /// The endpoint.
        url: String,
        /// Whether it is said to speak the older HTTP+SSE.
        is_sse: bool,
        /// Sent with each request.
        headers: Vec<(String, String)>,
        /// What a login needs, in our keys.
        oauth: Vec<(&'static str, Node)>,
    },
}

/// Part of an entry that says which tools may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRule {
    /// The key.
    pub key: String,
    /// Whether it keeps tools from being used; otherwise it frees them from questions.
    pub is_limit: bool,
    /// Its value.
    pub value: String,
}

const COMMAND_KEYS: &[&str] = &["command", "cmd"];
const URL_KEYS: &[&str] = &["url", "serverUrl", "httpUrl", "uri", "endpoint"];
const ENV_KEYS: &[&str] = &["env", "environment", "envs"];
const CWD_KEYS: &[&str] = &["cwd", "working_directory", "workingDirectory"];
const HEADER_KEYS: &[&str] = &["headers", "http_headers"];
const LIMIT_KEYS: &[&str] =
    &["disabledTools", "disabled_tools", "enabled_tools", "includeTools", "excludeTools", "available_tools"];
const FREEING_KEYS: &[&str] =
    &["autoApprove", "alwaysAllow", "trust", "default_tools_approval_mode", "default_tools_enabled"];

/// Keys that are read elsewhere here, or mean nothing outside of their client.
const QUIET_KEYS: &[&str] = &[
    "type",
    "args",
    "disabled",
    "enabled",
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

/// Reads the entry `name` of `client`.
///
/// # Errors
/// When the server cannot be moved: why not.
pub(super) fn read(client: Client, entry: &Node) -> Result<Entry, String> {
    if !matches!(entry, Node::Map(_)) {
        return Err("is not an entry for a server".to_owned());
    }
    needs_client(client, entry)?;
    let reader = Reader { client, entry };
    let target = match (reader.command()?, reader.url()?) {
        (Some(_), Some(_)) => return Err("has both a command and a URL; which one counts is not clear".to_owned()),
        (None, None) => return Err("has neither a command nor a URL".to_owned()),
        (Some((command, first)), None) => reader.local(command, first)?,
        (None, Some((key, url))) => reader.remote(key, url)?,
    };
    Ok(Entry {
        target,
        is_disabled: reader.flag("disabled") == Some(true) || reader.flag("enabled") == Some(false),
        timeout: reader.timeout(),
        description: entry.get("description").and_then(Node::as_text).map(str::to_owned),
        tool_rules: reader.tool_rules(),
        left_behind: reader.left_behind(),
    })
}

/// What only the client can do for a server.
fn needs_client(client: Client, entry: &Node) -> Result<(), String> {
    let own = |what: &str| Err(format!("{what}, which only {} does", client.title()));
    let has = |key: &str| entry.get(key).is_some_and(|value| !matches!(value, Node::Null));
    if has("headersHelper") {
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
    if entry.get("env_keys").is_some_and(|keys| !keys.items().is_empty()) {
        return own("gets secrets from the keyring (`env_keys`)");
    }
    if has("extension_name") || client == Client::Zed && has("settings") && !has("command") && !has("url") {
        return own("comes from an extension and is set up there");
    }
    match entry.get("type").and_then(Node::as_text) {
        Some("ws" | "websocket") => Err("speaks over WebSocket, which mcpzip does not".to_owned()),
        Some(kind @ ("builtin" | "platform" | "frontend" | "inline_python")) if client == Client::Goose => {
            Err(format!("is a part of {} (`{kind}`)", client.title()))
        }
        _ => Ok(()),
    }
}

struct Reader<'e> {
    client: Client,
    entry: &'e Node,
}

impl<'e> Reader<'e> {
    fn first(&self, keys: &[&'static str]) -> Option<(&'static str, &'e Node)> {
        let found = keys.iter().find_map(|key| Some((*key, self.entry.get(key)?)));
        found.filter(|(_, value)| !matches!(value, Node::Null))
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.entry.get(key).and_then(Node::as_flag)
    }

    fn text(&self, text: &str, role: Role) -> Result<String, String> {
        translate(self.client, text, role)
    }

    /// The program, and the arguments that stand in one list with it.
    fn command(&self) -> Result<Option<(&'e str, Vec<&'e Node>)>, String> {
        let Some((key, node)) = self.first(COMMAND_KEYS) else { return Ok(None) };
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
        program.map(|program| Some((program, rest))).ok_or_else(|| format!("has a `{key}` that names no program"))
    }

    fn url(&self) -> Result<Option<(&'static str, &'e str)>, String> {
        let Some((key, node)) = self.first(URL_KEYS) else { return Ok(None) };
        let url = node.as_text().ok_or_else(|| format!("has a `{key}` that is no text"))?;
        Ok(Some((key, url)))
    }

    fn local(&self, command: &str, first: Vec<&Node>) -> Result<Target, String> {
        let inner = self.entry.get("command").filter(|node| matches!(node, Node::Map(_))).unwrap_or(self.entry);
        let listed = first.into_iter().chain(inner.get("args").map(Node::items).unwrap_or_default());
        let args = listed.map(|arg| match arg {
            Node::Text(text) => self.text(text, Role::Command),
            Node::Number(number) => Ok(number.clone()),
            Node::Flag(flag) => Ok(flag.to_string()),
            _ => Err("has an argument that is no text".to_owned()),
        });
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let command = self.text(command, Role::Command)?;
        if is_relative(&command) && command.contains(is_separator) {
            return Err(format!("its command `{command}` is relative to the directory that the client runs in"));
        }
        let env_node = ENV_KEYS.iter().find_map(|key| inner.get(key).or_else(|| self.entry.get(key)));
        let mut env = self.pairs("env", env_node)?;
        for name in self.entry.get("env_vars").map(Node::items).unwrap_or_default() {
            let name = name.as_text().ok_or("has a form of `env_vars` that is not known here")?;
            // It was handed on where it was set; there, an empty one is the nearest to none.
            env.push((name.to_owned(), format!("${{{name}:-}}")));
        }
        let cwd = match self.first(CWD_KEYS) {
            Some((key, node)) => {
                let written = node.as_text().ok_or_else(|| format!("has a `{key}` that is no text"))?;
                let cwd = self.text(written, Role::Command)?;
                if is_relative(&cwd) {
                    return Err(format!("its `{key}` `{cwd}` is relative to the directory that the client runs in"));
                }
                Some(cwd)
            }
            None => None,
        };
        Ok(Target::Local { command, args, env, cwd })
    }

    fn remote(&self, key: &str, url: &str) -> Result<Target, String> {
        let url = self.text(url.trim(), Role::Value)?;
        let is_http = ["http://", "https://"].iter().any(|scheme| url.to_ascii_lowercase().starts_with(scheme));
        if !is_http && !url.starts_with("${") {
            let scheme = url.split("://").next().unwrap_or_default();
            return Err(format!("is reached by `{scheme}`, which mcpzip does not speak"));
        }
        let kind = ["type", "transport", "transportType"].iter().find_map(|key| self.entry.get(key)?.as_text());
        let is_sse = match kind.map(|kind| kind.to_ascii_lowercase().replace(['-', '_'], "")) {
            Some(kind) => match kind.as_str() {
                "sse" => true,
                "http" | "streamablehttp" | "remote" | "mcp" => false,
                other => return Err(format!("is of type `{other}`, which is not known")),
            },
            // `url` alone is the older transport there.
            None => self.client == Client::GeminiCli && key == "url",
        };
        let mut headers = Vec::new();
        for key in HEADER_KEYS {
            headers.extend(self.pairs(key, self.entry.get(key))?);
        }
        headers.extend(self.pairs("headers", self.entry.at(&["requestOptions", "headers"]))?);
        for (name, variable) in self.entry.get("env_http_headers").map(Node::members).unwrap_or_default() {
            let variable = variable.as_text().ok_or("has `env_http_headers` that are no texts")?;
            headers.push((name.to_owned(), format!("${{{variable}}}")));
        }
        if let Some(variable) = self.entry.get("bearer_token_env_var").and_then(Node::as_text) {
            headers.push(("Authorization".to_owned(), format!("Bearer ${{{variable}}}")));
        }
        Ok(Target::Remote { url, is_sse, headers, oauth: self.oauth()? })
    }

    fn oauth(&self) -> Result<Vec<(&'static str, Node)>, String> {
        let oauth =
            self.entry.get("oauth").or_else(|| self.entry.get("auth")).filter(|node| matches!(node, Node::Map(_)));
        let mut ours: Vec<(&'static str, Node)> = Vec::new();
        for (key, value) in oauth.map(Node::members).unwrap_or_default() {
            let known = match key {
                "clientId" | "client_id" | "CLIENT_ID" => "client_id",
                "clientSecret" | "client_secret" | "CLIENT_SECRET" => "client_secret",
                "callbackPort" | "redirectPort" => "redirect_port",
                "scopes" | "scope" => "scopes",
                "enabled" => continue,
                _ => return Err(format!("logs in with `{key}`, which mcpzip has no word for")),
            };
            ours.push((known, self.translated(value)?));
        }
        if let Some(scopes) = self.entry.get("scopes") {
            ours.push(("scopes", self.translated(scopes)?));
        }
        for (_, value) in ours.iter_mut().filter(|(key, _)| *key == "scopes") {
            if let Node::Text(text) = value {
                *value = Node::texts(text.split_whitespace());
            }
        }
        Ok(ours)
    }

    fn translated(&self, node: &Node) -> Result<Node, String> {
        Ok(match node {
            Node::Text(text) => Node::Text(self.text(text, Role::Value)?),
            Node::List(items) => Node::List(items.iter().map(|item| self.translated(item)).collect::<Result<_, _>>()?),
            other => other.clone(),
        })
    }

    fn pairs(&self, what: &str, node: Option<&Node>) -> Result<Vec<(String, String)>, String> {
        let members = match node {
            None | Some(Node::Null) => return Ok(Vec::new()),
            Some(node @ Node::Map(_)) => node.members(),
            Some(_) => return Err(format!("has a form of `{what}` that is not known here")),
        };
        let pair = |(name, value): (&str, &Node)| {
            let value = match value {
                Node::Text(text) => self.text(text, Role::Value)?,
                Node::Number(number) => number.clone(),
                Node::Flag(flag) => flag.to_string(),
                _ => return Err(format!("has a `{what}.{name}` that is no text")),
            };
            Ok((name.to_owned(), value))
        };
        members.into_iter().map(pair).collect()
    }

    /// Clients count in seconds or milliseconds.
    fn timeout(&self) -> Option<u64> {
        let number = |key: &str| match self.entry.get(key)? {
            Node::Number(number) => number.parse::<f64>().ok().filter(|number| *number > 0.0 && *number < 1e9),
            _ => None,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
        let whole = |milliseconds: f64| milliseconds.round() as u64;
        match self.client {
            Client::Codex => number("tool_timeout_sec").map(|seconds| whole(seconds * 1000.0)),
            // For listing tools only.
            Client::OpenCode => None,
            Client::Zed | Client::Cline | Client::Roo | Client::Goose => {
                number("timeout").map(|seconds| whole(seconds * 1000.0))
            }
            // Claude Code ignores less than a second.
            _ => number("timeout").map(whole).filter(|milliseconds| *milliseconds >= 1000),
        }
    }

    fn tool_rules(&self) -> Vec<ToolRule> {
        let rule = |key: &str, is_limit: bool, value: &Node| ToolRule {
            key: key.to_owned(),
            is_limit,
            value: value.to_json(),
        };
        let says_something = |value: &Node| match value {
            Node::Null => false,
            Node::List(items) => !items.is_empty(),
            Node::Flag(flag) => *flag,
            _ => true,
        };
        let mut rules = Vec::new();
        for (keys, is_limit) in [(LIMIT_KEYS, true), (FREEING_KEYS, false)] {
            let found = keys.iter().filter_map(|key| Some((*key, self.entry.get(key)?)));
            rules.extend(
                found.filter(|(_, value)| says_something(value)).map(|(key, value)| rule(key, is_limit, value)),
            );
        }
        // No tool at all is as much a limit as a few; `["*"]` is none.
        if let Some(tools) = self.entry.get("tools")
            && *tools != Node::texts(["*"])
            && !matches!((self.client, tools), (_, Node::Null) | (Client::Codex, Node::Map(_)))
        {
            rules.push(rule("tools", true, tools));
        }
        for rule in rules.iter_mut().filter(|rule| rule.key == "default_tools_approval_mode") {
            rule.is_limit = rule.value.contains("prompt");
        }
        rules
    }

    fn left_behind(&self) -> Vec<String> {
        let groups = [COMMAND_KEYS, URL_KEYS, ENV_KEYS, CWD_KEYS, HEADER_KEYS, LIMIT_KEYS, FREEING_KEYS, QUIET_KEYS];
        let is_known = |key: &str| groups.iter().any(|keys| keys.contains(&key));
        self.entry.members().into_iter().map(|(key, _)| key.to_owned()).filter(|key| !is_known(key)).collect()
    }
}

fn is_relative(path: &str) -> bool {
    let is_rooted =
        path.starts_with("~/") || path.starts_with("${") || path.starts_with('/') || Path::new(path).is_absolute();
    // `C:\` on any system.
    !is_rooted && !path.get(1..3).is_some_and(|drive| drive == ":\\" || drive == ":/") && !path.starts_with("\\\\")
}

impl Entry {
    /// As `mcpzip` has it in its configuration.
    #[must_use]
    pub fn to_node(&self) -> Node {
        let pairs = |pairs: &[(String, String)]| Node::map(pairs.iter().map(|(key, value)| (key, Node::text(value))));
        let mut members: Vec<(&str, Node)> = Vec::new();
        match &self.target {
            Target::Local { command, args, env, cwd } => {
                members.push(("command", Node::text(command)));
                if !args.is_empty() {
                    members.push(("args", Node::texts(args)));
                }
                if !env.is_empty() {
                    members.push(("env", pairs(env)));
                }
                members.extend(cwd.iter().map(|cwd| ("cwd", Node::text(cwd))));
            }
            Target::Remote { url, is_sse, headers, oauth } => {
                if *is_sse {
                    members.push(("type", Node::text("sse")));
                }
                members.push(("url", Node::text(url)));
                if !headers.is_empty() {
                    members.push(("headers", pairs(headers)));
                }
                if !oauth.is_empty() {
                    members.push(("oauth", Node::map(oauth.iter().cloned())));
                }
            }
        }
        members.extend(self.timeout.map(|time| ("timeout", Node::Text(format!("{time}ms")))));
        members.extend(self.description.iter().map(|text| ("description", Node::text(text))));
        if self.is_disabled {
            members.push(("disabled", Node::Flag(true)));
        }
        Node::map(members)
    }

    /// The variables that it refers to.
    #[must_use]
    pub fn variables(&self) -> Vec<String> {
        references::variables(&self.to_node().to_json())
    }

    /// What nobody else should see.
    #[must_use]
    pub fn secrets(&self) -> Vec<Secret<String>> {
        let of_pairs = |pairs: &[(String, String)]| {
            let secret = pairs.iter().filter(|(name, value)| is_secret_name(name) && !value.starts_with("${"));
            let parts = secret.map(|(_, value)| value.rsplit_once(' ').map_or(value.as_str(), |(_, last)| last));
            parts
                .filter(|value| !value.starts_with("${"))
                .map(|value| Secret::new(value.to_owned()))
                .collect::<Vec<_>>()
        };
        match &self.target {
            Target::Local { args, env, .. } => [of_pairs(env), secret_arguments(args)].concat(),
            Target::Remote { url, headers, .. } => [of_pairs(headers), secret_parameters(url)].concat(),
        }
    }

    /// Whether it is `mcpzip`, whatever starts it.
    #[must_use]
    pub fn is_mcpzip(&self) -> bool {
        let words = self.words();
        // A directory of that name is often an argument; a program of that name is told what to do.
        let is_told = |pair: &[&str]| program_name(pair[0]) == "mcpzip" && matches!(pair[1], "serve" | "--config");
        words.first().is_some_and(|first| is_own(program_name(first)))
            || words.windows(2).any(is_told)
            || words.contains(&"compressed-mcp-proxy")
    }

    /// The other proxy that it is, if it is one: programs that stand before several servers themselves.
    #[must_use]
    pub fn other_proxy(&self) -> Option<&str> {
        const PROXIES: &[&str] = &[
            "mcp-proxy",
            "mcp-proxy-server",
            "mcp-compressor",
            "mcphub",
            "mcp-hub",
            "metamcp",
            "mcpjungle",
            "1mcp",
            "mcp-router",
            "mcp-gateway",
            "mcp-aggregator",
            "mcpproxy",
            "lazy-mcp",
        ];
        let words = self.words();
        let is_path = |word: &str| word.starts_with(['/', '.', '~']) || word.contains('\\');
        let named = words.iter().enumerate().filter(|(at, word)| *at == 0 || !is_path(word));
        let named = named.map(|(_, word)| program_name(word)).find(|name| PROXIES.contains(name));
        let is_gateway = |three: &[&str]| program_name(three[0]) == "docker" && three[1..] == ["mcp", "gateway"];
        named.or_else(|| words.windows(3).any(is_gateway).then_some("docker mcp gateway"))
    }

    fn words(&self) -> Vec<&str> {
        match &self.target {
            // A shell's argument is a command line of its own.
            Target::Local { command, args, .. } => {
                let words = args.iter().flat_map(|arg| arg.split([' ', '\'', '"', ';', '&', '|']));
                [command.as_str()].into_iter().chain(words.filter(|word| !word.is_empty())).collect()
            }
            Target::Remote { .. } => Vec::new(),
        }
    }
}

fn is_own(program: &str) -> bool {
    matches!(program, "mcpzip" | "compressed-mcp-proxy")
}

/// A program's name in a path or a package's: no directory, no ending, no version.
fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    name.strip_suffix(".exe").or_else(|| name.strip_suffix(".cmd")).unwrap_or(name)
}
