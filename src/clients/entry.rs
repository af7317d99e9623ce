//! Our entry in a client's file: the command that starts `mcpzip`, and the settings the client needs to use it well.

use std::path::Path;

pub(super) use super::location::NAME;
use super::{Client, ConfigLocation, Entry, Node, Syntax, Target, Text, TextError};
use crate::config::Environment;

/// The tools by which clients reach those of all servers. Beyond them there is `execute_read_tool`, which a client can do without.
pub(super) const META_TOOLS: [&str; 3] = ["search_tools", "describe_tool", "execute_tool"];

/// The switch by which Codex shows a server's tools without its own tool search.
const DIRECT_NAMESPACES: [&str; 3] = ["features", "code_mode", "direct_only_tool_namespaces"];

/// Gemini CLI's lists of the servers that it starts: the current one, and the one of old versions.
pub(super) const GEMINI_ALLOWED: [&[&str]; 2] = [&["mcp", "allowed"], &["allowMCPServers"]];

/// The key for Codex's question before a call.
const APPROVAL: &str = "default_tools_approval_mode";

/// The behaviour of Codex before it calls `execute_tool`; it only knows that this tool may change things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodexApproval {
    /// It asks; if it may not ask, it refuses every call.
    Auto,
    /// It calls without asking.
    Approve,
}

impl CodexApproval {
    /// Its name on the command line and in Codex's file.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Approve => "approve",
        }
    }

    /// The value with this name.
    #[must_use]
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Auto, Self::Approve]
            .into_iter()
            .find(|approval| approval.name() == name)
    }

    /// The value that fits a file of Codex: it asks, unless the user's policy is never to be asked, under which it would
    /// refuse every call.
    pub(super) fn fitting(file: &Node) -> Self {
        let policy = file.get("approval_policy").and_then(Node::as_text);
        match policy {
            Some("never") => Self::Approve,
            _ => Self::Auto,
        }
    }

    /// The consequence for the user, who may prefer the other value.
    const fn warning(self) -> &'static str {
        match self {
            Self::Approve => {
                "Codex will run EVERY tool behind mcpzip without asking, those that delete or send too: it sees one tool, \
                 `execute_tool`, which it would otherwise refuse wherever it may not ask (`approval_policy = \"never\"`, \
                 `codex exec`). `--codex-approval auto` has it ask; `tools.ask` and `tools.deny` of mcpzip hold in any case"
            }
            Self::Auto => {
                "Codex will ask before EVERY call of `execute_tool`, and refuse it where it may not ask (`approval_policy = \
                 \"never\"`, `codex exec`). `\"surface\": {\"read_tool\": \"on\"}` in mcpzip's configuration gives it `execute_read_tool` \
                 as well, which runs only tools that declare to be read-only. `--codex-approval approve` has it run every tool without asking"
            }
        }
    }
}

/// A note for the user about our entry `name` in a file.
pub(super) fn warning(text: &Text, location: &ConfigLocation, name: &str) -> Option<String> {
    let written = text.node().at(&location.path_of(name))?.get(APPROVAL)?;
    let approval = CodexApproval::named(written.as_text()?)?;
    (location.client == Client::Codex).then(|| approval.warning().to_owned())
}

/// A warning about our entry `name` if Codex refuses every call through it because it must ask and may not.
pub(super) fn refusal(settings: &Node, location: &ConfigLocation, name: &str) -> Option<String> {
    let mode = settings
        .at(&location.path_of(name))?
        .get(APPROVAL)?
        .as_text();
    let is_refused = location.client == Client::Codex
        && mode.and_then(CodexApproval::named) == Some(CodexApproval::Auto)
        && CodexApproval::fitting(settings) == CodexApproval::Approve;
    is_refused.then(|| {
        format!(
            "Codex refuses calls through `{name}` wherever it may not ask (`approval_policy = \"never\"`, `codex exec`), as \
             the entry has `{APPROVAL} = \"auto\"`; with \"approve\" it runs every tool without asking"
        )
    })
}

/// The way to start `mcpzip`.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// The program's absolute path.
    pub program: String,
    /// Whether a shell finds the same program by its name.
    pub is_on_path: bool,
    /// The arguments: `serve` and its options.
    pub args: Vec<String>,
    /// The variables that the configuration's servers need, for clients that pass on only some.
    pub variables: Vec<String>,
    /// The behaviour of Codex before each call. `None` chooses the one that fits its file.
    pub approval: Option<CodexApproval>,
    /// The profile of the sessions, which is in `args`, too.
    pub profile: Option<String>,
}

impl Launch {
    /// The way to start this program, with the configuration `config` if that is not in the default location.
    #[must_use]
    pub(crate) fn of(program: &Path, config: Option<&Path>, environment: &Environment) -> Self {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let own = real(program);
        let path = environment.get("PATH").unwrap_or_default().to_owned();
        let file = format!("mcpzip{}", std::env::consts::EXE_SUFFIX);
        let first = std::env::split_paths(&path)
            .map(|directory| directory.join(&file))
            .find(|file| file.is_file());
        let mut args = vec!["serve".to_owned()];
        if let Some(config) = config {
            args.extend(["--config".to_owned(), config.to_string_lossy().into_owned()]);
        }
        let linked = first.filter(|first| real(first) == own);
        // A link that the user made stays valid after an update of what it leads to.
        let program = linked.as_deref().unwrap_or(program);
        Self {
            program: program.to_string_lossy().into_owned(),
            is_on_path: linked.is_some(),
            args,
            variables: Vec::new(),
            approval: None,
            profile: None,
        }
    }

    /// The way to start `mcpzip` for sessions under `profile`.
    #[must_use]
    pub(crate) fn under(mut self, profile: &str) -> Self {
        let words = ["--profile", profile].map(str::to_owned);
        self.args.extend(words);
        self.profile = Some(profile.to_owned());
        self
    }

    /// Why the entry of `client` has the whole path of the program, if the name alone works in a shell.
    #[must_use]
    pub(crate) fn path_note(&self, client: Client) -> Option<String> {
        let title = client.title();
        (self.is_on_path && client.is_graphical()).then(|| {
            format!(
                "the entry of {title} has the whole path of mcpzip, because programs started from the desktop have a shorter PATH"
            )
        })
    }

    /// The command to write: the name alone if a shell finds it, so that it stays valid after an update elsewhere.
    fn command(&self, client: Client) -> &str {
        if self.is_on_path && !client.is_graphical() {
            NAME
        } else {
            &self.program
        }
    }
}

/// Writes the entry as `name` into `text`, the content of `location`'s file.
///
/// # Errors
/// When the text cannot be edited.
pub(super) fn write(
    text: &mut Text,
    location: &ConfigLocation,
    name: &str,
    launch: &Launch,
) -> Result<(), TextError> {
    let mut entry = entry(location.client, launch);
    if location.client == Client::Codex {
        let approval = launch
            .approval
            .unwrap_or(CodexApproval::fitting(text.node()));
        entry.push((APPROVAL, Node::text(approval.name())));
    }
    if matches!(location.syntax, Syntax::Yaml) {
        entry.insert(0, ("name", Node::text(name)));
    }
    let is_first = text
        .node()
        .at(&location.container)
        .is_none_or(|servers| matches!(servers, Node::Null));
    if location.client == Client::Continue && location.syntax == Syntax::Yaml && is_first {
        // A list, which our entry creates.
        text.set(&location.container, &Node::List(vec![Node::map(entry)]))?;
    } else {
        text.set(&location.path_of(name), &Node::map(entry))?;
    }
    if !is_shown_directly(text, location, name) {
        show_directly(text, name);
    }
    admit(text, location, name)
}

/// Adds our entry to the client's lists of permitted servers, if it has any.
fn admit(text: &mut Text, location: &ConfigLocation, name: &str) -> Result<(), TextError> {
    for list in gemini_allowed(location) {
        if let Some(Node::List(allowed)) = text.node().at(&list)
            && !allowed.contains(&Node::text(name))
        {
            let allowed = allowed.iter().cloned().chain([Node::text(name)]).collect();
            text.set(&list, &Node::List(allowed))?;
        }
    }
    if let Some(preset) = zed_preset(text.node(), location, name) {
        let tools = Node::map(META_TOOLS.map(|tool| (tool, Node::Flag(true))));
        text.set(&preset, &Node::map([("tools", tools)]))?;
    }
    Ok(())
}

/// The paths of the lists of the servers that Gemini CLI starts.
fn gemini_allowed(location: &ConfigLocation) -> Vec<Vec<String>> {
    let lists = GEMINI_ALLOWED.iter();
    let lists = lists.filter(|_| location.client == Client::GeminiCli);
    lists
        .map(|keys| keys.iter().map(|key| (*key).to_owned()).collect())
        .collect()
}

/// The path of the tool settings in Zed's default profile, if that profile does not enable all tools.
fn zed_preset(settings: &Node, location: &ConfigLocation, name: &str) -> Option<Vec<String>> {
    if location.client != Client::Zed {
        return None;
    }
    let default = zed_profile(settings);
    let profile = settings.at(&["agent", "profiles", default])?;
    let has_all = profile
        .get("enable_all_context_servers")
        .and_then(Node::as_flag)
        .unwrap_or(has_all_servers(default));
    let path = ["agent", "profiles", default, "context_servers", name];
    (!has_all).then(|| path.map(str::to_owned).to_vec())
}

/// Whether no tool search of the client hides our tools, as far as settings outside of the entry decide that.
pub(super) fn is_shown_directly(text: &Text, location: &ConfigLocation, name: &str) -> bool {
    let own = Node::Text(format!("mcp__{name}"));
    location.client != Client::Codex
        || text
            .node()
            .at(&DIRECT_NAMESPACES)
            .is_some_and(|namespaces| namespaces.items().contains(&own))
}

/// The profile that Zed starts with.
pub(super) fn zed_profile(settings: &Node) -> &str {
    let profile = settings
        .at(&["agent", "default_profile"])
        .and_then(Node::as_text);
    profile.unwrap_or("write")
}

/// Whether one of Zed's own profiles enables the tools of all servers by default.
pub(super) fn has_all_servers(profile: &str) -> bool {
    matches!(profile, "write" | "ask")
}

/// Lets Codex show our tools without its own tool search.
pub(super) fn show_directly(text: &mut Text, name: &str) {
    let mut namespaces = text
        .node()
        .at(&DIRECT_NAMESPACES)
        .map(Node::items)
        .unwrap_or_default()
        .to_vec();
    namespaces.push(Node::Text(format!("mcp__{name}")));
    // `features.code_mode` may be a plain switch. The user's setting then stays, and the tools stay hidden.
    let _ = text.set(&direct_namespaces(), &Node::List(namespaces));
}

/// Removes the entry `name`, and the settings written with it, from `text`.
///
/// # Errors
/// When the text cannot be edited.
pub(super) fn remove(
    text: &mut Text,
    location: &ConfigLocation,
    name: &str,
) -> Result<(), TextError> {
    text.remove(&location.path_of(name))?;
    if let Some(preset) = zed_preset(text.node(), location, name) {
        text.remove(&preset)?;
    }
    for list in gemini_allowed(location) {
        if let Some(Node::List(allowed)) = text.node().at(&list)
            && allowed.contains(&Node::text(name))
        {
            let rest = allowed.iter().filter(|known| **known != Node::text(name));
            let rest = rest.cloned().collect();
            text.set(&list, &Node::List(rest))?;
        }
    }
    if location.client == Client::Codex
        && let Some(namespaces) = text.node().at(&DIRECT_NAMESPACES).map(Node::items)
    {
        let own = Node::Text(format!("mcp__{name}"));
        let rest: Vec<Node> = namespaces
            .iter()
            .filter(|namespace| **namespace != own)
            .cloned()
            .collect();
        if rest.len() < namespaces.len() {
            if rest.is_empty() {
                text.remove(&direct_namespaces())?;
                let table = &direct_namespaces()[..2];
                if text.node().at(table) == Some(&Node::Map(Vec::new())) {
                    text.remove(table)?;
                }
            } else {
                text.set(&direct_namespaces(), &Node::List(rest))?;
            }
        }
    }
    Ok(())
}

/// The paths that [`write()`] and [`remove()`] may change.
pub(super) fn paths(settings: &Node, location: &ConfigLocation, name: &str) -> Vec<Vec<String>> {
    let mut paths = vec![location.path_of(name)];
    paths.extend(zed_preset(settings, location, name));
    paths.extend(gemini_allowed(location));
    if location.client == Client::Codex {
        paths.push(direct_namespaces());
    }
    paths
}

fn direct_namespaces() -> Vec<String> {
    DIRECT_NAMESPACES.map(str::to_owned).to_vec()
}

fn entry(client: Client, launch: &Launch) -> Vec<(&'static str, Node)> {
    let command = Node::text(launch.command(client));
    let args = Node::texts(&launch.args);
    let none = || Node::Map(Vec::new());
    match client {
        Client::ClaudeCode => vec![
            ("type", Node::text("stdio")),
            ("command", command),
            ("args", args),
            ("env", none()),
            // Its own tool search would hide the three tools.
            ("alwaysLoad", Node::Flag(true)),
        ],
        Client::VsCode => vec![
            ("type", Node::text("stdio")),
            ("command", command),
            ("args", args),
        ],
        Client::Codex => {
            let mut entry = vec![("command", command), ("args", args)];
            if !launch.variables.is_empty() {
                // It passes on hardly any variables without being asked.
                entry.push(("env_vars", Node::texts(&launch.variables)));
            }
            entry
        }
        Client::GeminiCli => {
            // It withholds variables that look like secrets.
            let written = launch.variables.iter();
            let variables: Vec<_> = written
                .map(|name| (name, Node::Text(format!("${{{name}}}"))))
                .collect();
            let mut entry = vec![("command", command), ("args", args)];
            if !variables.is_empty() {
                entry.push(("env", Node::map(variables)));
            }
            entry
        }
        Client::Zed => vec![("command", command), ("args", args), ("env", none())],
        Client::OpenCode => {
            let line = [launch.command(client).to_owned()]
                .into_iter()
                .chain(launch.args.iter().cloned());
            vec![
                ("type", Node::text("local")),
                ("command", Node::texts(line)),
                ("enabled", Node::Flag(true)),
            ]
        }
        Client::CopilotCli => {
            vec![
                ("type", Node::text("local")),
                ("command", command),
                ("args", args),
                ("tools", Node::texts(["*"])),
            ]
        }
        Client::Goose => vec![
            ("type", Node::text("stdio")),
            ("enabled", Node::Flag(true)),
            ("cmd", command),
            ("args", args),
            ("envs", none()),
            ("timeout", Node::Number("300".to_owned())),
        ],
        Client::Continue => vec![
            ("type", Node::text("stdio")),
            ("command", command),
            ("args", args),
        ],
        Client::ClaudeDesktop
        | Client::Cursor
        | Client::Windsurf
        | Client::Cline
        | Client::Roo
        | Client::Kiro
        | Client::LmStudio => vec![("command", command), ("args", args)],
    }
}

/// Whether an entry leads to mcpzip: it starts it, or is a URL under its name.
pub(super) fn is_mcpzip(name: &str, entry: &Entry) -> bool {
    let is_url = matches!(entry.target, Target::Remote { .. });
    entry.is_mcpzip() || is_url && name.eq_ignore_ascii_case(NAME)
}
