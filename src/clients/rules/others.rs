//! The rules of clients other than Claude Code.

use std::path::Path;

use super::super::cache::FileCache;
use super::super::survey::{Found, Survey};
use super::super::{Node, Surroundings};
use super::{Carried, Mention, Rule, RuleKind, plain};

const OF_AN_AGENT: Carried = Carried::Lost("holds for one agent alone");

/// opencode: `tools` and `permission` have patterns over names such as `github_*`, in the file and in its agents. Of several
/// the last counts there.
pub(super) fn opencode(survey: &Survey, servers: &[&Found], rules: &mut Vec<Rule>) {
    for found in servers {
        let Some(source) = survey.files.get(&found.place.path) else {
            continue;
        };
        let agents = source
            .text
            .node()
            .get("agent")
            .map(Node::members)
            .unwrap_or_default();
        let agents = agents
            .into_iter()
            .map(|(name, agent)| (format!("agent.{name}."), agent));
        for (prefix, node) in [(String::new(), source.text.node())]
            .into_iter()
            .chain(agents)
        {
            for section in ["tools", "permission"] {
                let members = node.get(section).map(Node::members).unwrap_or_default();
                let about: Vec<_> = members
                    .into_iter()
                    .filter_map(|(name, value)| {
                        Some((opencode_tool(name, &found.name)?, name, value))
                    })
                    .collect();
                let is_all_denied = about
                    .iter()
                    .any(|(tool, _, value)| tool == "*" && is_denied(value));
                let freed: Vec<String> = about
                    .iter()
                    .filter(|(_, _, value)| is_allowed(value))
                    .map(|(tool, ..)| tool.clone())
                    .collect();
                for (tool, name, value) in &about {
                    let (kind, carried) = match value {
                        value if is_denied(value) && tool == "*" && !freed.is_empty() => {
                            (RuleKind::Deny, Carried::Only(freed.clone()))
                        }
                        value if is_denied(value) => {
                            (RuleKind::Deny, Carried::Deny(vec![tool.clone()]))
                        }
                        value if is_allowed(value) => (RuleKind::Allow, Carried::Needless),
                        Node::Text(text) if text == "ask" => {
                            (RuleKind::Ask, Carried::Ask(vec![tool.clone()]))
                        }
                        _ => (
                            RuleKind::Deny,
                            Carried::Lost("looks at parameters, which the proxy's rules do not"),
                        ),
                    };
                    // Where all others are denied, those that are freed are what is left.
                    if is_all_denied && kind == RuleKind::Allow {
                        continue;
                    }
                    let carried = match carried {
                        Carried::Needless => Carried::Needless,
                        _ if !prefix.is_empty() => OF_AN_AGENT,
                        carried => carried,
                    };
                    let text = format!("{name}: {}", value.to_json());
                    let mention =
                        Mention::new(&found.place.path, format!("{prefix}{section}"), text, kind);
                    rules.push(mention.about(found, carried));
                }
            }
        }
    }
}

fn is_denied(value: &Node) -> bool {
    *value == Node::Flag(false) || value.as_text() == Some("deny")
}

fn is_allowed(value: &Node) -> bool {
    *value == Node::Flag(true) || value.as_text() == Some("allow")
}

/// The tools of `server` that a pattern is about.
fn opencode_tool(pattern: &str, server: &str) -> Option<String> {
    let server = plain(server);
    let rest = pattern.strip_prefix(server.as_str())?;
    match rest {
        "" | "*" | "_*" | "_" => Some("*".to_owned()),
        _ => rest.strip_prefix('_').map(str::to_owned),
    }
}

/// Codex: `tools.NAME` in a server's table.
pub(super) fn codex(survey: &Survey, servers: &[&Found], rules: &mut Vec<Rule>) {
    for found in servers {
        let Some(source) = survey.files.get(&found.place.path) else {
            continue;
        };
        let path = found.place.path_of(&found.name);
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
                Mention::new(&found.place.path, key, node.to_json(), kind).about(found, carried),
            );
        }
    }
}

/// Zed: `agent.tool_permissions.tools` has keys such as `mcp:github:create_issue`.
pub(super) fn zed(survey: &Survey, servers: &[&Found], rules: &mut Vec<Rule>) {
    for found in servers {
        let Some(source) = survey.files.get(&found.place.path) else {
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
            rules.push(Mention::new(&found.place.path, key, json, kind).about(found, carried));
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
        let Some(node) = cache.json(&path) else {
            continue;
        };
        for (key, kind) in [("deny", RuleKind::Deny), ("allow", RuleKind::Allow)] {
            let listed = node
                .at(&["permissions", key])
                .map(Node::items)
                .unwrap_or_default();
            for rule in listed.iter().filter_map(Node::as_text) {
                let inner = rule
                    .strip_prefix("Mcp(")
                    .and_then(|rest| rest.strip_suffix(')'));
                let Some((server, tool)) =
                    inner.map(|inner| inner.split_once(':').unwrap_or((inner, "*")))
                else {
                    continue;
                };
                let mention = Mention {
                    project: project.clone(),
                    ..Mention::new(&path, format!("permissions.{key}"), rule, kind)
                };
                let is_about = |found: &&&Found| {
                    (server == found.name || server == "*" && tool != "*") && mention.reaches(found)
                };
                for found in servers.iter().filter(is_about) {
                    let carried = if kind == RuleKind::Deny {
                        Carried::Deny(vec![tool.to_owned()])
                    } else {
                        Carried::Needless
                    };
                    rules.push(mention.clone().about(found, carried));
                }
            }
        }
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
        for path in files(&directory.join(".kiro/agents")) {
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

fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    files
}
