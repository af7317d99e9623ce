//! The rules of clients other than Claude Code.

use super::super::cache::FileCache;
use super::super::model::{Found, Survey};
use super::super::{Client, Node, Surroundings, Syntax};
use super::glob::fits;
use super::{Carried, Mention, Rule, RuleKind, files, open, plain};

pub(super) const OF_AN_AGENT: Carried = Carried::Lost("holds for one agent alone");

/// Codex: `tools.NAME` in a server's table.
pub(super) fn codex(survey: &Survey, servers: &[&Found], rules: &mut Vec<Rule>) {
    for found in servers {
        let Some(source) = survey.files.get(&found.location.path) else {
            continue;
        };
        let path = found.location.path_of(&found.name);
        let tools = source
            .text
            .node()
            .at(&path)
            .and_then(|entry| entry.get("tools"));
        for (tool, node) in tools.map(Node::members).unwrap_or_default() {
            let named = || vec![tool.to_owned()];
            let (kind, carried) = match node.get("approval_mode").and_then(Node::as_text) {
                _ if node.get("enabled").and_then(Node::as_flag) == Some(false) => {
                    (RuleKind::Deny, Carried::Deny(named()))
                }
                Some("approve" | "auto") | None => (RuleKind::Allow, Carried::Needless),
                Some(_) => (RuleKind::Ask, Carried::Ask(named())),
            };
            let key = format!("{}.tools.{tool}", path.join("."));
            rules.push(
                Mention::new(&found.location.path, key, node.to_json(), kind).about(found, carried),
            );
        }
    }
}

/// Zed: `agent.tool_permissions.tools` has keys such as `mcp:github:create_issue`.
pub(super) fn zed(survey: &Survey, servers: &[&Found], rules: &mut Vec<Rule>) {
    for found in servers {
        let Some(source) = survey.files.get(&found.location.path) else {
            continue;
        };
        let permissions = source
            .text
            .node()
            .at(&["agent", "tool_permissions", "tools"]);
        for (name, value) in permissions.map(Node::members).unwrap_or_default() {
            let Some(rest) = name
                .strip_prefix("mcp:")
                .and_then(|rest| rest.strip_prefix(found.name.as_str()))
            else {
                continue;
            };
            let tool = match rest.strip_prefix(':') {
                Some(tool) => tool,
                None if rest.is_empty() => "*",
                None => continue,
            };
            let named = || vec![tool.to_owned()];
            let is_plain = value
                .members()
                .iter()
                .all(|(key, value)| *key == "default" || value.is_same(&Node::Null));
            let json = value.to_json();
            let (kind, carried) = match value.get("default").and_then(Node::as_text) {
                Some("deny") => (RuleKind::Deny, Carried::Deny(named())),
                _ if !is_plain && json.contains("deny") => (
                    RuleKind::Deny,
                    Carried::Lost("looks at parameters, which the proxy's rules do not"),
                ),
                Some("confirm") => (RuleKind::Ask, Carried::Ask(named())),
                _ if is_plain => (RuleKind::Allow, Carried::Needless),
                _ => (
                    RuleKind::Ask,
                    Carried::Lost("looks at parameters, which the proxy's rules do not"),
                ),
            };
            let key = format!("agent.tool_permissions.tools.{name}");
            rules.push(Mention::new(&found.location.path, key, json, kind).about(found, carried));
        }
    }
}

/// Cursor: `Mcp(server:tool)` in the permissions of its command line agent, as its documentation has them.
pub(super) fn cursor(
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let user = (around.home.join(".cursor/cli-config.json"), None);
    let project = around
        .directory
        .as_ref()
        .map(|here| (here.join(".cursor/cli.json"), Some(here.clone())));
    for (path, project) in [user].into_iter().chain(project) {
        let Some(node) = open(
            &path,
            Syntax::Json,
            project.as_deref(),
            servers,
            cache,
            rules,
        ) else {
            continue;
        };
        for (key, kind) in [("deny", RuleKind::Deny), ("allow", RuleKind::Allow)] {
            let listed = node.at(&["permissions", key]);
            for item in listed.map(items_of).unwrap_or_default() {
                let text = item.as_text().map_or_else(|| item.to_json(), str::to_owned);
                let mention = Mention {
                    project: project.clone(),
                    ..Mention::new(&path, format!("permissions.{key}"), &text, kind)
                };
                for found in servers.iter().filter(|found| mention.reaches(found)) {
                    if let Some(carried) = cursor_rule(&text, kind, &found.name) {
                        rules.push(mention.clone().about(found, carried));
                    }
                }
            }
        }
    }
}

/// The items of a list, or a lone value that stands where a list should.
fn items_of(node: &Node) -> Vec<Node> {
    match node {
        Node::List(items) => items.clone(),
        Node::Null => Vec::new(),
        other => vec![other.clone()],
    }
}

/// What becomes of a rule of Cursor for `server`; `None` when it is not about it. A denial in a form that is not understood may
/// be about every server.
fn cursor_rule(text: &str, kind: RuleKind, server: &str) -> Option<Carried> {
    let is_plain = |part: &&str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_alphanumeric() || "-_.*?/".contains(c))
    };
    let inner = text
        .strip_prefix("Mcp(")
        .and_then(|rest| rest.strip_suffix(')'));
    let named = inner
        .map(|inner| inner.split_once(':').unwrap_or((inner, "*")))
        .filter(|(server, tool)| is_plain(server) && is_plain(tool));
    match (named, kind) {
        (Some((pattern, tool)), RuleKind::Deny) => {
            if fits(pattern, super::super::entry::NAME) && fits(tool, "execute_tool") {
                return Some(Carried::Lost("would keep Cursor from mcpzip's own tools"));
            }
            fits(pattern, server).then(|| Carried::Deny(vec![tool.to_owned()]))
        }
        (Some((pattern, tool)), _) => {
            let is_about = fits(pattern, server) && (pattern != "*" || tool != "*");
            is_about.then_some(Carried::Needless)
        }
        (None, RuleKind::Deny) => {
            let lower = text.to_lowercase();
            let is_unclear = lower.contains("mcp") || !lower.contains('(');
            is_unclear.then_some(Carried::Lost("is not understood"))
        }
        (None, _) => None,
    }
}

/// Kiro: agents name tools as `@server/tool`.
pub(super) fn kiro(
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let directories = [Some(around.home.as_path()), around.directory.as_deref()];
    for directory in directories.into_iter().flatten() {
        for path in files(&directory.join(".kiro/agents"), "json") {
            let Some(node) = cache.json(&path) else {
                continue;
            };
            for (key, kind) in [
                ("allowedTools", RuleKind::Allow),
                ("tools", RuleKind::Tools),
            ] {
                let listed = node.get(key).map(Node::items).unwrap_or_default();
                for rule in listed.iter().filter_map(Node::as_text) {
                    let server = rule
                        .strip_prefix('@')
                        .map(|rest| rest.split('/').next().unwrap_or_default());
                    for found in servers
                        .iter()
                        .filter(|found| server == Some(found.name.as_str()))
                    {
                        let carried = if kind == RuleKind::Allow {
                            Carried::Needless
                        } else {
                            OF_AN_AGENT
                        };
                        rules.push(Mention::new(&path, key, rule, kind).about(found, carried));
                    }
                }
            }
        }
    }
}

/// Goose: `permission.yaml` names tools as `extension__tool`, for the user and for its own judgement.
pub(super) fn goose(
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let path = Client::Goose
        .user_location(around)
        .path
        .with_file_name("permission.yaml");
    let Some(node) = open(&path, Syntax::Yaml, None, servers, cache, rules) else {
        return;
    };
    // It leaves spaces out of an extension's name, and writes it small.
    let key = |name: &str| {
        let shown = name.chars().filter(|c| !c.is_whitespace());
        plain(&shown.collect::<String>()).to_lowercase()
    };
    for (who, lists) in node.members() {
        for (list, kind) in [
            ("never_allow", RuleKind::Deny),
            ("ask_before", RuleKind::Ask),
            ("always_allow", RuleKind::Allow),
        ] {
            let named = lists.get(list).map(Node::items).unwrap_or_default();
            for rule in named.iter().filter_map(Node::as_text) {
                for found in servers {
                    let start = format!("{}__", key(&found.name));
                    let is_own = rule
                        .get(..start.len())
                        .is_some_and(|own| own.eq_ignore_ascii_case(&start));
                    if !is_own {
                        continue;
                    }
                    let tools = vec![rule[start.len()..].to_owned()];
                    let carried = match kind {
                        RuleKind::Deny => Carried::Deny(tools),
                        RuleKind::Ask => Carried::Ask(tools),
                        _ => Carried::Needless,
                    };
                    let mention = Mention::new(&path, format!("{who}.{list}"), rule, kind);
                    rules.push(mention.about(found, carried));
                }
            }
        }
    }
}

/// Zed: a profile has all tools of servers but for those that it switches off, or only those that it switches on. One that
/// is not the default has no tool of mcpzip unless it has all.
pub(super) fn zed_profiles(survey: &Survey, servers: &[&Found], rules: &mut Vec<Rule>) {
    for found in servers {
        let Some(source) = survey.files.get(&found.location.path) else {
            continue;
        };
        let agent = source.text.node().get("agent");
        let default = super::super::entry::zed_profile(source.text.node());
        let profiles = agent.and_then(|agent| agent.get("profiles"));
        for (name, profile) in profiles.map(Node::members).unwrap_or_default() {
            let has_all = profile
                .get("enable_all_context_servers")
                .and_then(Node::as_flag)
                .unwrap_or(super::super::entry::has_all_servers(name));
            let preset = profile.at(&["context_servers", &found.name]);
            let is_off =
                preset.and_then(|preset| preset.get("enabled")) == Some(&Node::Flag(false));
            let is_on = preset.and_then(|preset| preset.get("enabled")) == Some(&Node::Flag(true));
            let switched = |to: bool| -> Vec<String> {
                let tools = preset.and_then(|preset| preset.get("tools"));
                let tools = tools.map(Node::members).unwrap_or_default();
                let those = tools.iter().filter(|(_, on)| **on == Node::Flag(to));
                those.map(|(tool, _)| (*tool).to_owned()).collect()
            };
            let all = || vec!["*".to_owned()];
            let carried = match has_all {
                _ if is_on => continue,
                _ if is_off => Carried::Deny(all()),
                true if switched(false).is_empty() => continue,
                true => Carried::Deny(switched(false)),
                // Without our entry in it, it has no tool of this server.
                false if name != default => continue,
                false => Carried::Only(switched(true)),
            };
            let key = format!("agent.profiles.{name}");
            let text = preset.map_or(
                "enable_all_context_servers: false".to_owned(),
                Node::to_json,
            );
            let mention = Mention::new(&found.location.path, key, text, RuleKind::Deny);
            rules.push(mention.about(found, carried));
        }
    }
}
