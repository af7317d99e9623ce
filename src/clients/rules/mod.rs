//! Rules that name a server's tools outside of its entry: permissions, hooks and lists of tools.
//!
//! Behind the proxy these names no longer exist, so the rules stop working. A rule that withholds tools or asks the
//! user becomes a rule of mcpzip. A rule that cannot be carried over is reported; if it protects a server, that server
//! stays at the client. The client's own rules are not changed: they have no effect after the migration, and apply
//! again after an undo.

mod claude_code;
mod codex_agents;
mod continue_cli;
mod cursor_switches;
mod gemini;
mod glob;
mod hooks;
mod matcher;
mod opencode;
mod others;
mod projects;
mod rights;
mod staying;
mod vs_code;

use std::path::{Path, PathBuf};

use super::cache::FileCache;
use super::fixed::{ALLOWED, REQUIRED};
use super::listed::{files, listed};
use super::model::{Carried, Found, Outcome, Reach, Rule, RuleKind, Survey, Unmovable};
use super::{Client, Node, Surroundings, Syntax, fixed};

pub(super) use claude_code::refusal as refusal_of_claude_code;
pub(super) use continue_cli::is_hidden as is_hidden_at_continue;
pub(super) use cursor_switches::trusted as trusted_by_cursor;
pub(super) use gemini::{
    SERVER_LISTS, is_disabled as is_disabled_at_gemini, is_hidden as is_hidden_at_gemini,
    is_kept_out, switches as gemini_switches,
};
pub(super) use opencode::is_hidden as is_hidden_at_opencode;
pub(super) use others::{is_hidden_at_cursor, zed_permits};
pub(super) use rights::Rights;
pub(super) use staying::staying;
pub(super) use vs_code::refused_access;

/// Why a hook cannot be carried over. That holds for a hook on all tools, too: it also runs for `execute_tool`,
/// but one that refuses a tool by its name would let that tool through, and no one can tell it from one that only logs.
const HOOK_SEES_EXECUTE_TOOL: &str =
    "a hook sees `execute_tool` now, with the tool's name in its input";

/// A rule as a client's file has it, before it is known which servers it concerns.
#[derive(Clone)]
struct SourceRule {
    path: PathBuf,
    key: String,
    text: String,
    kind: RuleKind,
    reach: Reach,
    /// The project that the rule is limited to.
    project: Option<PathBuf>,
}

impl SourceRule {
    fn new(path: &Path, key: impl Into<String>, text: impl Into<String>, kind: RuleKind) -> Self {
        Self {
            path: path.to_owned(),
            key: key.into(),
            text: text.into(),
            kind,
            reach: Reach::Pattern,
            project: None,
        }
    }

    /// This rule, which names its servers if `is_named`.
    fn named(self, is_named: bool) -> Self {
        let reach = if is_named {
            Reach::Name
        } else {
            Reach::Pattern
        };
        Self { reach, ..self }
    }

    /// This rule, which is a list of the only permitted servers if `is_list`.
    fn permitting(self, is_list: bool) -> Self {
        let reach = if is_list { Reach::Others } else { self.reach };
        Self { reach, ..self }
    }

    fn about(self, found: &Found, carried: Carried) -> Rule {
        let Self {
            path,
            key,
            text,
            kind,
            reach,
            project,
        } = self;
        let project = project.filter(|_| found.location.project.is_none());
        let carried = carried.of(found, project.as_deref());
        let (server, client, location) = (
            found.name.clone(),
            found.location.client,
            found.location.clone(),
        );
        Rule {
            path,
            key,
            text,
            kind,
            reach,
            server,
            client,
            decided: None,
            is_idle: false,
            carried,
            project,
            location,
        }
    }

    /// Whether the rule applies where the server is configured.
    fn reaches(&self, found: &Found) -> bool {
        match (&self.project, &found.location.project) {
            (Some(project), Some(own)) => own.starts_with(project) || project.starts_with(own),
            _ => true,
        }
    }
}

/// The rules of `clients` about the servers that each of them has, from its entries and from its files of rules.
pub(super) fn find(
    survey: &Survey,
    clients: &[Client],
    around: &Surroundings,
    cache: &FileCache,
) -> Vec<Rule> {
    let mut rules = Vec::new();
    let all = survey.found.iter().chain(&survey.staying);
    let all: Vec<&Found> = all.filter(|found| !found.is_mcpzip).collect();
    for found in &all {
        for rule in &found.tool_rules {
            let kind = kind_of(&rule.carried);
            let key = format!(
                "{}.{}",
                found.location.path_of(&found.name).join("."),
                rule.key
            );
            rules.push(
                SourceRule::new(&found.location.path, key, &rule.value, kind)
                    .about(found, rule.carried.clone()),
            );
        }
    }
    projects::add_codex_tools(&survey.staying, cache, &mut rules);
    for client in clients {
        let servers = all.iter().copied();
        let servers: Vec<&Found> = servers
            .filter(|found| found.location.client == *client)
            .collect();
        let mut found = survey.found.iter().chain(&survey.staying);
        // A file that cannot be read is reported also if the client has mcpzip alone.
        if !found.any(|found| found.location.client == *client) {
            continue;
        }
        add_rules(*client, &servers, survey, around, cache, &mut rules);
    }
    rules.sort_by_key(|rule| rule.kind);
    rules
}

/// The kind of a rule in an entry, by its fate.
const fn kind_of(carried: &Carried) -> RuleKind {
    match carried {
        Carried::Ask(_) => RuleKind::Ask,
        Carried::Needless(_) => RuleKind::Allow,
        _ => RuleKind::Deny,
    }
}

/// The rules of a client that withhold or guard `servers`, which it has only through mcpzip: permissions, hooks, lists and policies, and
/// those that are not known.
pub(super) fn elsewhere(
    client: Client,
    servers: &[&Found],
    survey: &Survey,
    around: &Surroundings,
    cache: &FileCache,
) -> Vec<Rule> {
    let mut rules = Vec::new();
    add_rules(client, servers, survey, around, cache, &mut rules);
    for found in servers {
        let mut there = (*found).clone();
        there.location.client = client;
        let policy = match fixed::blocked(&there, around, cache, None) {
            Some(Unmovable::Denied(path)) => (path, "deniedMcpServers", "it denies the server"),
            Some(Unmovable::NotAllowed(path)) => (path, ALLOWED, "it does not have the server"),
            Some(Unmovable::NotRequired(path)) => (path, REQUIRED, "it does not have the server"),
            _ => continue,
        };
        let (path, key, text) = policy;
        let source = SourceRule::new(&path, key, text, RuleKind::Deny);
        let source = source.permitting(key == ALLOWED || key == REQUIRED);
        rules.push(source.about(found, Carried::Deny(vec!["*".to_owned()])));
    }
    rules.retain(is_guard);
    for rule in &mut rules {
        rule.client = client;
    }
    rules
}

/// Whether a rule withholds or guards a server, or is not known.
pub(super) fn is_guard(rule: &Rule) -> bool {
    !matches!(rule.kind, RuleKind::Allow | RuleKind::Tools)
        && !matches!(rule.carried, Carried::Needless(_))
}

/// Adds the rules of `client` about `servers`.
fn add_rules(
    client: Client,
    servers: &[&Found],
    survey: &Survey,
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    match client {
        Client::ClaudeCode => claude_code::find(survey, servers, around, cache, rules),
        Client::OpenCode => opencode::find(survey, servers, around, cache, rules),
        Client::GeminiCli => gemini::find(survey, servers, around, cache, rules),
        Client::Goose => others::goose(survey, servers, around, cache, rules),
        Client::Codex => {
            others::codex(survey, servers, rules);
            codex_agents::find(survey, servers, around, cache, rules);
        }
        Client::Zed => {
            others::zed(survey, servers, around, cache, rules);
            others::zed_profiles(survey, servers, around, rules);
        }
        Client::Cursor => {
            others::cursor(survey, servers, around, cache, rules);
            cursor_switches::find(survey, servers, around, cache, rules);
        }
        Client::Continue => continue_cli::find(servers, around, cache, rules),
        Client::Kiro => others::kiro(survey, servers, around, cache, rules),
        Client::VsCode => vs_code::find(survey, servers, around, cache, rules),
        // These clients have no known rules, apart from entries and hooks.
        Client::ClaudeDesktop
        | Client::Windsurf
        | Client::Cline
        | Client::Roo
        | Client::CopilotCli
        | Client::LmStudio => {}
    }
    projects::find(client, servers, survey, around, cache, rules);
    hooks::find(client, servers, survey, around, cache, rules);
    for path in lists(client, around) {
        let file = RuleFile {
            path: &path,
            project: None,
            servers,
        };
        file.open(Syntax::Json, cache, rules);
    }
    // The entries have switches and lists of tools, too.
    for (path, problem) in survey.unread(client, around) {
        let file = RuleFile {
            path,
            project: None,
            servers,
        };
        file.unread(problem.predicate(), rules);
    }
}

/// The files that say which projects, profiles or servers a client has at all. Without one of them, rules may be missing.
fn lists(client: Client, around: &Surroundings) -> Vec<PathBuf> {
    match client {
        Client::ClaudeCode => around.managed_list().into_iter().collect(),
        Client::Cursor => cursor_switches::trusting(around),
        Client::GeminiCli => vec![around.gemini_trusted_folders()],
        // One that cannot be listed is among its own entries.
        Client::VsCode => {
            let profiles = around.vs_code_profiles();
            let unlisted = listed(&profiles, usize::MAX).contains(&profiles);
            unlisted.then_some(profiles).into_iter().collect()
        }
        Client::CopilotCli => vec![around.copilot_settings()],
        _ => Vec::new(),
    }
}

/// A file with rules, and the servers that they may concern.
struct RuleFile<'f> {
    path: &'f Path,
    /// The project that the file is limited to.
    project: Option<&'f Path>,
    servers: &'f [&'f Found],
}

impl RuleFile<'_> {
    /// The fate of a server that the file switches off.
    fn switched_off(&self) -> Carried {
        match self.project {
            Some(project) => Carried::NotIn(project.to_owned()),
            None => Carried::Deny(vec!["*".to_owned()]),
        }
    }

    /// Reads the file. `None` if it is missing, empty or unreadable. An unreadable file is added to `rules`.
    fn open(&self, syntax: Syntax, cache: &FileCache, rules: &mut Vec<Rule>) -> Option<Node> {
        match cache.node(self.path, syntax) {
            Ok(None | Some(Node::Null)) => None,
            Ok(Some(node @ Node::Map(_))) => Some(node),
            Ok(Some(_)) => {
                self.unread("has no settings that are understood", rules);
                None
            }
            Err(problem) => {
                self.unread(problem.predicate(), rules);
                None
            }
        }
    }

    /// The text of the file. `None` if it is missing or unreadable. An unreadable file is added to `rules`.
    fn text(&self, cache: &FileCache, rules: &mut Vec<Rule>) -> Option<String> {
        let text = cache.text(self.path);
        text.unwrap_or_else(|problem| {
            self.unread(problem.predicate(), rules);
            None
        })
    }

    fn source_rule(
        &self,
        key: impl Into<String>,
        text: impl Into<String>,
        kind: RuleKind,
    ) -> SourceRule {
        SourceRule {
            project: self.project.map(Path::to_owned),
            ..SourceRule::new(self.path, key, text, kind)
        }
    }

    /// Adds a rule for an unreadable file. Servers that it may concern stay at the client. A server for all projects is
    /// not available in the project of the file.
    fn unread(&self, problem: impl Into<String>, rules: &mut Vec<Rule>) {
        let source = self.source_rule("rules", problem, RuleKind::Unread);
        for found in self.servers.iter().filter(|found| source.reaches(found)) {
            let carried = match (self.project, &found.location.project) {
                (Some(project), None) => Carried::NotIn(project.to_owned()),
                _ => Carried::Lost("its rules are not known"),
            };
            let rule = source.clone().about(found, carried);
            // Several readers open the same file.
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }

    /// Adds a rule for a value at `key` whose form is not known.
    fn unclear(&self, key: &str, rules: &mut Vec<Rule>) {
        self.unread(format!("has `{key}` in a form that is not known"), rules);
    }

    /// The value at `keys`. If a value on the way is not a map, a rule for it is added.
    fn at<'n>(&self, node: &'n Node, keys: &[&str], rules: &mut Vec<Rule>) -> Option<&'n Node> {
        let mut node = node;
        for (at, key) in keys.iter().enumerate() {
            match node {
                Node::Map(_) => node = node.get(key)?,
                Node::Null => return None,
                _ => {
                    self.unclear(&keys[..at].join("."), rules);
                    return None;
                }
            }
        }
        Some(node).filter(|node| **node != Node::Null)
    }

    /// The members of the map at `keys`. If the value is not a map, a rule for it is added.
    fn members<'n>(
        &self,
        node: &'n Node,
        keys: &[&str],
        rules: &mut Vec<Rule>,
    ) -> Vec<(&'n str, &'n Node)> {
        match self.at(node, keys, rules) {
            None => Vec::new(),
            Some(map @ Node::Map(_)) => map.members(),
            Some(_) => {
                self.unclear(&keys.join("."), rules);
                Vec::new()
            }
        }
    }

    /// The texts of the list at `keys`, or a single text in its place. If there is anything else, a rule for it is
    /// added.
    fn texts<'n>(&self, node: &'n Node, keys: &[&str], rules: &mut Vec<Rule>) -> Vec<&'n str> {
        let Some(node) = self.at(node, keys, rules) else {
            return Vec::new();
        };
        let items = items(node);
        let texts: Vec<&str> = items.iter().filter_map(Node::as_text).collect();
        if texts.len() < items.len() {
            self.unclear(&keys.join("."), rules);
        }
        texts
    }
}

/// The items of a list, or a single value in its place.
fn items(node: &Node) -> &[Node] {
    match node {
        Node::List(items) => items,
        other => std::slice::from_ref(other),
    }
}

/// A server's name in the form in which clients make it part of a tool's name. Clients in JavaScript replace each UTF-16 unit,
/// of which some characters have two.
fn plain(name: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let parts = name.chars().map(|c| match is_kept(c) {
        true => c.to_string(),
        false => "_".repeat(c.len_utf16()),
    });
    parts.collect()
}

/// [`plain`] of a client in Rust, which replaces each character.
fn plain_by_character(name: &str) -> String {
    let is_wide = |c: char| c.len_utf16() > 1;
    plain(&name.replace(is_wide, "_"))
}
