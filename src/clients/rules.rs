//! What names a server's tools outside of its entry: permission rules, hooks, lists of tools.
//!
//! Behind the proxy these names are gone, so each of these stops working. Most only cost a question more; one that kept
//! something from running must not be lost in silence.

use std::path::{Path, PathBuf};

use regex::Regex;

use super::survey::{Found, Survey};
use super::{Client, Node, Surroundings, Syntax};

/// A rule about servers or tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The file it is in.
    pub path: PathBuf,
    /// The keys that lead to it there.
    pub key: String,
    /// As it is written.
    pub text: String,
    /// What it does.
    pub kind: RuleKind,
    /// The client's name for the server that it is about.
    pub server: String,
    /// Whose server.
    pub client: Client,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleKind {
    /// Keeps tools from being used.
    Deny,
    /// A program that looks at each call before it is made.
    Hook,
    /// Has the user asked.
    Ask,
    /// Lets tools be used without a question.
    Allow,
    /// Says which tools an agent, a command or a skill has.
    Tools,
}

impl RuleKind {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Hook => "hook",
            Self::Ask => "ask",
            Self::Allow => "allow",
            Self::Tools => "tools",
        }
    }

    /// Whether a migration would take away what it protects.
    #[must_use]
    pub const fn protects(self) -> bool {
        matches!(self, Self::Deny | Self::Hook)
    }
}

/// A name in a rule, before it is known whose it is.
struct Mention {
    path: PathBuf,
    key: String,
    text: String,
    kind: RuleKind,
}

pub(super) fn find(survey: &Survey, clients: &[Client], around: &Surroundings) -> Vec<Rule> {
    let mut rules = Vec::new();
    for found in survey.found.iter().filter(|found| !found.is_mcpzip) {
        let Ok(entry) = &found.entry else { continue };
        for rule in &entry.tool_rules {
            let kind = if rule.is_limit { RuleKind::Deny } else { RuleKind::Allow };
            let key = found.place.path_of(&found.name).join(".");
            let mention = Mention {
                path: found.place.path.clone(),
                key: format!("{key}.{}", rule.key),
                text: rule.value.clone(),
                kind,
            };
            rules.push(mention.about(found));
        }
    }
    for client in clients {
        let servers: Vec<&Found> =
            survey.found.iter().filter(|found| found.place.client == *client && !found.is_mcpzip).collect();
        if servers.is_empty() {
            continue;
        }
        match client {
            Client::ClaudeCode => claude_code(survey, &servers, around, &mut rules),
            Client::OpenCode => opencode(survey, &servers, &mut rules),
            Client::Codex => codex(survey, &servers, &mut rules),
            Client::Zed => zed(survey, &servers, &mut rules),
            _ => {}
        }
    }
    rules.sort_by_key(|rule| rule.kind);
    rules
}

impl Mention {
    fn about(self, found: &Found) -> Rule {
        let Self { path, key, text, kind } = self;
        Rule { path, key, text, kind, server: found.name.clone(), client: found.place.client }
    }
}

/// Settings, hooks, agents, commands and skills, the user's and those of every project that is known.
fn claude_code(survey: &Survey, servers: &[&Found], around: &Surroundings, rules: &mut Vec<Rule>) {
    let own = around.claude_directory();
    let user = Client::ClaudeCode.user_place(around).path;
    let projects = survey.files.get(&user).and_then(|source| source.text.node().get("projects"));
    let projects = projects.map(Node::members).unwrap_or_default();
    let mut directories = vec![own];
    directories.extend(around.directory.iter().flat_map(|here| here.ancestors()).map(|above| above.join(".claude")));
    directories.extend(projects.iter().map(|(key, _)| Path::new(key).join(".claude")));
    directories.sort();
    directories.dedup();
    let mut mentions = Vec::new();
    for directory in &directories {
        for file in ["settings.json", "settings.local.json"] {
            settings(&directory.join(file), &mut mentions);
        }
        frontmatter(directory, &mut mentions);
    }
    for (project, node) in &projects {
        for tool in node.get("allowedTools").map(Node::items).unwrap_or_default().iter().filter_map(Node::as_text) {
            let (path, text) = (user.clone(), tool.to_owned());
            mentions.push(Mention {
                path,
                key: format!("projects.{project}.allowedTools"),
                text,
                kind: RuleKind::Allow,
            });
        }
        let off = node.get("disabledMcpServers").map(Node::items).unwrap_or_default();
        for found in servers.iter().filter(|found| off.contains(&Node::text(&found.name))) {
            let key = format!("projects.{project}.disabledMcpServers");
            let text = found.name.clone();
            rules.push(Mention { path: user.clone(), key, text, kind: RuleKind::Deny }.about(found));
        }
    }
    for mention in mentions {
        for found in servers.iter().filter(|found| names_server(&mention.text, &found.name)) {
            let Mention { path, key, text, kind } = &mention;
            let mention = Mention { path: path.clone(), key: key.clone(), text: text.clone(), kind: *kind };
            rules.push(mention.about(found));
        }
    }
}

fn settings(path: &Path, mentions: &mut Vec<Mention>) {
    let Ok(text) = std::fs::read_to_string(path) else { return };
    let Ok(text) = super::Text::parse(Syntax::Json, &text) else { return };
    let node = text.node();
    for (key, kind) in [("deny", RuleKind::Deny), ("ask", RuleKind::Ask), ("allow", RuleKind::Allow)] {
        let listed = node.at(&["permissions", key]).map(Node::items).unwrap_or_default();
        for rule in listed.iter().filter_map(Node::as_text).filter(|rule| rule.contains("mcp__")) {
            let key = format!("permissions.{key}");
            mentions.push(Mention { path: path.to_owned(), key, text: rule.to_owned(), kind });
        }
    }
    for (event, hooks) in node.get("hooks").map(Node::members).unwrap_or_default() {
        // Only those before a call can keep it from being made.
        let is_before = matches!(event, "PreToolUse" | "PermissionRequest");
        let kind = if is_before { RuleKind::Hook } else { RuleKind::Tools };
        let matchers = hooks.items().iter().filter_map(|hook| hook.get("matcher")?.as_text());
        for matcher in matchers.filter(|matcher| matcher.contains("mcp__")) {
            let key = format!("hooks.{event}");
            mentions.push(Mention { path: path.to_owned(), key, text: matcher.to_owned(), kind });
        }
    }
}

/// The lists of tools in the heads of agents, commands and skills.
fn frontmatter(directory: &Path, mentions: &mut Vec<Mention>) {
    let mut files = Vec::new();
    for folder in ["agents", "commands", "skills"] {
        markdown(&directory.join(folder), 0, &mut files);
    }
    for path in files {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let Some(head) = text.strip_prefix("---").and_then(|rest| rest.split("\n---").next()) else { continue };
        let mut key = "";
        for line in head.lines() {
            if let Some((name, _)) = line.split_once(':')
                && !line.starts_with([' ', '-', '\t'])
            {
                key = name.trim();
            }
            let kind = match key {
                "disallowedTools" | "disallowed-tools" => RuleKind::Deny,
                "tools" | "allowed-tools" => RuleKind::Tools,
                _ => continue,
            };
            let is_word = |c: char| c.is_ascii_alphanumeric() || "_-*".contains(c);
            for name in line.split(|c: char| !is_word(c)).filter(|word| word.starts_with("mcp__")) {
                mentions.push(Mention { path: path.clone(), key: key.to_owned(), text: name.to_owned(), kind });
            }
        }
    }
}

fn markdown(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && depth < 4 {
            markdown(&path, depth + 1, files);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            files.push(path);
        }
    }
}

/// Whether a rule, or a hook's pattern, is about the server or tools of it. One about all servers stays true behind the
/// proxy, unless it names tools.
fn names_server(rule: &str, server: &str) -> bool {
    let known: String =
        server.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' }).collect();
    rule.split('|').any(|part| {
        let Some((_, rest)) = part.split_once("mcp__") else { return false };
        let rest = rest.split('(').next().unwrap_or_default().trim_end_matches(['$', ')']);
        if rest == known || rest.strip_prefix(known.as_str()).is_some_and(|tool| tool.starts_with("__")) {
            return true;
        }
        let (written, tool) = rest.split_once("__").unwrap_or((rest, ""));
        let is_any = |text: &str| matches!(text, "" | "*" | ".*" | ".+");
        if is_any(written) {
            return !is_any(tool);
        }
        let pattern = if written.contains(".*") { written.to_owned() } else { written.replace('*', ".*") };
        Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|pattern| pattern.is_match(&known))
    })
}

/// `tools` and `permission` have globs over names such as `github_*`, in the file and in its agents.
fn opencode(survey: &Survey, servers: &[&Found], rules: &mut Vec<Rule>) {
    for found in servers {
        let Some(source) = survey.files.get(&found.place.path) else { continue };
        let start = format!("{}_", found.name);
        let agents = source.text.node().get("agent").map(Node::members).unwrap_or_default();
        let agents = agents.into_iter().map(|(name, agent)| (format!("agent.{name}."), agent));
        for (prefix, node) in [(String::new(), source.text.node())].into_iter().chain(agents) {
            for section in ["tools", "permission"] {
                for (name, value) in node.get(section).map(Node::members).unwrap_or_default() {
                    let kind = match value {
                        Node::Flag(false) => RuleKind::Deny,
                        Node::Flag(true) => RuleKind::Allow,
                        Node::Text(text) if text == "deny" => RuleKind::Deny,
                        Node::Text(text) if text == "ask" => RuleKind::Ask,
                        _ => RuleKind::Allow,
                    };
                    let is_about =
                        name.starts_with(&start) || name.trim_end_matches('*').trim_end_matches('_') == found.name;
                    if is_about {
                        let key = format!("{prefix}{section}");
                        let text = format!("{name}: {}", value.to_json());
                        rules.push(Mention { path: found.place.path.clone(), key, text, kind }.about(found));
                    }
                }
            }
        }
    }
}

/// `tools.NAME.approval_mode` in a server's table.
fn codex(survey: &Survey, servers: &[&Found], rules: &mut Vec<Rule>) {
    for found in servers {
        let Some(source) = survey.files.get(&found.place.path) else { continue };
        let path = found.place.path_of(&found.name);
        let tools = source.text.node().at(&path).and_then(|entry| entry.get("tools"));
        for (tool, node) in tools.map(Node::members).unwrap_or_default() {
            let mode = node.get("approval_mode").and_then(Node::as_text);
            let kind = if mode == Some("approve") { RuleKind::Allow } else { RuleKind::Ask };
            let key = format!("{}.tools.{tool}", path.join("."));
            rules.push(Mention { path: found.place.path.clone(), key, text: node.to_json(), kind }.about(found));
        }
    }
}

/// `agent.tool_permissions.tools` has keys such as `mcp:github:create_issue`.
fn zed(survey: &Survey, servers: &[&Found], rules: &mut Vec<Rule>) {
    for found in servers {
        let Some(source) = survey.files.get(&found.place.path) else { continue };
        let permissions = source.text.node().at(&["agent", "tool_permissions", "tools"]);
        for (name, value) in permissions.map(Node::members).unwrap_or_default() {
            if name == format!("mcp:{}", found.name) || name.starts_with(&format!("mcp:{}:", found.name)) {
                let json = value.to_json();
                let kind = if json.contains("deny") { RuleKind::Deny } else { RuleKind::Ask };
                let key = format!("agent.tool_permissions.tools.{name}");
                rules.push(Mention { path: found.place.path.clone(), key, text: json, kind }.about(found));
            }
        }
    }
}
