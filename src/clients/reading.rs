//! A client's entry for a server, in whatever form it has it, as one that `mcpzip` can use.
//!
//! Reading is lenient: forms that belong to one client are pasted into another's file every day. What an entry needs and
//! the proxy cannot give is no oddity but a reason to leave the server where it is, in words for its user.

use std::path::{Path, is_separator};

use super::references::{self, Role, translate};
use super::rules::Carried;
use super::{Client, Node, remote};
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
    /// What restricts or frees single tools.
    pub tool_rules: Vec<ToolRule>,
    /// Whether it was a program that only passed on to a URL.
    pub is_unwrapped: bool,
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
        /// A command that gives more of them.
        headers_helper: Option<Node>,
        /// What a login needs, in our keys.
        oauth: Vec<(&'static str, Node)>,
    },
}

/// Part of an entry that says which tools may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRule {
    /// The key.
    pub key: String,
    /// What becomes of it.
    pub carried: Carried,
    /// Its value.
    pub value: String,
}

const COMMAND_KEYS: &[&str] = &["command", "cmd"];
const URL_KEYS: &[&str] = &["url", "serverUrl", "httpUrl", "uri", "endpoint"];
const ENV_KEYS: &[&str] = &["env", "environment", "envs"];
const CWD_KEYS: &[&str] = &["cwd", "working_directory", "workingDirectory"];
const HEADER_KEYS: &[&str] = &["headers", "http_headers"];
const DENYING_KEYS: &[&str] = &["disabledTools", "disabled_tools", "excludeTools"];
const ALLOWING_KEYS: &[&str] = &["enabled_tools", "includeTools", "available_tools"];
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

/// Reads an entry of `client`, which belongs to `project` if it is one of a project: what is relative there is meant from it.
///
/// # Errors
/// When the server cannot be moved: why not.
pub(super) fn read(client: Client, entry: &Node, project: Option<&Path>) -> Result<Entry, String> {
    if !matches!(entry, Node::Map(_)) {
        return Err("is not an entry for a server".to_owned());
    }
    needs_client(client, entry)?;
    let reader = Reader { client, entry, project };
    let target = match (reader.command()?, reader.url()?) {
        (Some(_), Some(_)) => return Err("has both a command and a URL; which one counts is not clear".to_owned()),
        (None, None) => return Err("has neither a command nor a URL".to_owned()),
        (Some((command, first)), None) => reader.local(command, first)?,
        (None, Some((key, url))) => reader.remote(key, url)?,
    };
    let mut tool_rules = reader.tool_rules();
    let unwrapped = remote::unwrapped(&target);
    let is_unwrapped = unwrapped.is_some();
    let target = unwrapped.map_or(target, |unwrapped| {
        tool_rules.extend(unwrapped.tool_rules);
        unwrapped.target
    });
    Ok(Entry {
        target,
        is_unwrapped,
        is_disabled: reader.flag("disabled") == Some(true) || reader.flag("enabled") == Some(false),
        timeout: reader.timeout(),
        description: entry.get("description").and_then(Node::as_text).map(str::to_owned),
        tool_rules,
        left_behind: reader.left_behind(),
    })
}

/// What only the client can do for a server.
fn needs_client(client: Client, entry: &Node) -> Result<(), String> {
    let own = |what: &str| Err(format!("{what}, which only {} does", client.title()));
    let has = |key: &str| entry.get(key).is_some_and(|value| !matches!(value, Node::Null));
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
    project: Option<&'e Path>,
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
        match self.project.and_then(Path::to_str) {
            // Both mean the project's directory, where there is one.
            Some(project) => {
                let text = text.replace("${workspaceFolder}", project).replace("${workspaceRoot}", project);
                translate(self.client, &text, role)
            }
            None => translate(self.client, text, role),
        }
    }

    /// A path as it is from anywhere.
    ///
    /// # Errors
    /// When it is relative, and it is not known to what.
    fn rooted(&self, key: &str, path: String) -> Result<String, String> {
        match self.project {
            _ if !is_relative(&path) => Ok(path),
            Some(project) => {
                let whole: std::path::PathBuf = project.join(&path).components().collect();
                Ok(whole.to_string_lossy().into_owned())
            }
            None => Err(format!("its {key} `{path}` is relative to the directory that the client runs in")),
        }
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
        let command = if command.contains(is_separator) { self.rooted("command", command)? } else { command };
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
                Some(self.rooted(&format!("`{key}`"), self.text(written, Role::Command)?)?)
            }
            // Clients start a project's servers in it, and people write their arguments so.
            None => self.project.map(|project| project.to_string_lossy().into_owned()),
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
        let headers_helper = self.entry.get("headersHelper").filter(|helper| !matches!(helper, Node::Null)).cloned();
        Ok(Target::Remote { url, is_sse, headers, headers_helper, oauth: self.oauth()? })
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
        let mut rules = Vec::new();
        let mut add = |key: &str, value: &Node, carried: Carried| {
            rules.push(ToolRule { key: key.to_owned(), carried, value: value.to_json() });
        };
        let present = |key: &str| self.entry.get(key).filter(|value| !matches!(value, Node::Null));
        let named = |key: &'static str| Some((key, present(key)?));
        for (key, value) in DENYING_KEYS.iter().filter_map(|key| named(key)) {
            match names(value) {
                Some(tools) if tools.is_empty() => {}
                Some(tools) => add(key, value, Carried::Deny(tools)),
                None => add(key, value, Carried::Lost("is of a form that is not known here")),
            }
        }
        for (key, value) in ALLOWING_KEYS.iter().filter_map(|key| named(key)) {
            match names(value) {
                // There, it means all.
                Some(tools) if tools.is_empty() && key == "available_tools" => {}
                Some(tools) => add(key, value, Carried::Only(tools)),
                None => add(key, value, Carried::Lost("is of a form that is not known here")),
            }
        }
        let says_something = |value: &Node| match value {
            Node::List(items) => !items.is_empty(),
            Node::Flag(flag) => *flag,
            _ => true,
        };
        for (key, value) in FREEING_KEYS.iter().filter_map(|key| named(key)) {
            match (key, value) {
                ("default_tools_approval_mode", Node::Text(mode)) if mode == "prompt" => {
                    add(key, value, Carried::Ask(vec!["*".to_owned()]));
                }
                ("default_tools_enabled", Node::Flag(false)) => {
                    add(key, value, Carried::Lost("leaves tools that are switched on one by one"));
                }
                _ if says_something(value) => add(key, value, Carried::Needless),
                _ => {}
            }
        }
        match (self.client, present("tools")) {
            // Rules for single tools, which are read with the client's others.
            (Client::Codex, Some(Node::Map(_))) | (_, None) => {}
            (_, Some(tools)) if *tools == Node::texts(["*"]) => {}
            // No tool at all is as much a limit as a few.
            (Client::CopilotCli, Some(tools)) if names(tools).is_some() => {
                add("tools", tools, Carried::Only(names(tools).unwrap_or_default()));
            }
            (_, Some(tools)) => add("tools", tools, Carried::Lost("is of a form that is not known here")),
        }
        rules
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
        self.entry.members().into_iter().map(|(key, _)| key.to_owned()).filter(|key| !is_known(key)).collect()
    }
}

/// Names of tools. Some clients have parameters behind them, which widen nothing.
fn names(list: &Node) -> Option<Vec<String>> {
    let Node::List(items) = list else { return None };
    let name = |item: &Node| item.as_text()?.split('(').next().map(|name| name.trim().to_owned());
    items.iter().map(name).collect()
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
            Target::Remote { url, is_sse, headers, headers_helper, oauth } => {
                if *is_sse {
                    members.push(("type", Node::text("sse")));
                }
                members.push(("url", Node::text(url)));
                if !headers.is_empty() {
                    members.push(("headers", pairs(headers)));
                }
                // The same there, under the same name.
                members.extend(headers_helper.iter().map(|helper| ("headersHelper", helper.clone())));
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
pub(super) fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    name.strip_suffix(".exe").or_else(|| name.strip_suffix(".cmd")).unwrap_or(name)
}
