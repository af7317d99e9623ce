//! opencode's rules: `tools` and `permission` have patterns for names such as `github_get_issue`, in settings and in
//! agents. The last pattern that matches applies.

use std::path::{Path, PathBuf};

use super::super::cache::FileCache;
use super::super::entry::NAME;
use super::super::listed::{listed, may_be_there};
use super::super::location::opencode_files;
use super::super::model::{Found, Survey};
use super::super::{Client, Node, Surroundings, Syntax, Text};
use super::claude_code::{head, markdown, parts};
use super::glob::{behind, fits, is_about_all};
use super::others::OF_AN_AGENT;
use super::{
    Carried, HOOK_SEES_EXECUTE_TOOL, Rule, RuleFile, RuleKind, SourceRule, plain, projects,
};
use crate::config::env;

/// Parts of the text of a plugin that may examine calls: a hook, or the path of another file.
const HOOKS: &[&str] = &[
    "tool.execute.before",
    "permission.ask",
    "\"./",
    "'./",
    "\"../",
    "'../",
];

/// A pattern, the tools of a server that it matches, and its value.
struct Line<'n> {
    pattern: &'n str,
    tools: Vec<String>,
    value: &'n Node,
}

pub(super) fn find(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let permits_mcpzip = permits_mcpzip(survey);
    for (directory, project) in directories(survey, around) {
        agents(&directory, project.as_deref(), servers, cache, rules);
        for folder in ["plugin", "plugins"].map(|folder| directory.join(folder)) {
            let mut files = listed(&folder, usize::MAX);
            files.retain(|path| *path == folder || !path.is_dir());
            for path in files {
                let file = RuleFile {
                    path: &path,
                    project: project.as_deref(),
                    servers,
                };
                plugin(&file, cache, rules);
            }
        }
    }
    for (path, project) in settings(survey, around) {
        let file = RuleFile {
            path: &path,
            project: project.as_deref(),
            servers,
        };
        if let Some(node) = &file.open(Syntax::Json, cache, rules) {
            add(node, &file, permits_mcpzip, cache, rules);
        }
    }
    if let Some(text) = around.environment.get(env::OPENCODE_CONFIG_CONTENT.name) {
        let file = RuleFile {
            path: Path::new(env::OPENCODE_CONFIG_CONTENT.name),
            project: None,
            servers,
        };
        match Text::parse(Syntax::Json, text) {
            Ok(text) => add(text.node(), &file, permits_mcpzip, cache, rules),
            Err(_) if text.trim().is_empty() => {}
            Err(error) => file.unread(format!("cannot be read: {error}"), rules),
        }
    }
}

/// Adds the rules of settings.
fn add(
    node: &Node,
    file: &RuleFile<'_>,
    permits_mcpzip: bool,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    projects::add(Client::OpenCode, "mcp", node.get("mcp"), file, rules);
    for name in file.texts(node, &["plugin"], rules) {
        let path = name.strip_prefix("file://").unwrap_or(name);
        if path.starts_with(['.', '/']) {
            let path = file.path.with_file_name("").join(path);
            let of_path = RuleFile {
                path: &path,
                ..*file
            };
            plugin(&of_path, cache, rules);
            continue;
        }
        // A package may have a hook, or none.
        for found in file.servers {
            let source = file.source_rule("plugin", name, RuleKind::Tools);
            if source.reaches(found) {
                rules.push(source.about(found, Carried::Lost(HOOK_SEES_EXECUTE_TOOL)));
            }
        }
    }
    let agents = ["agent", "mode"].into_iter().flat_map(|key| {
        let agents = node.get(key).map(Node::members).unwrap_or_default();
        agents
            .into_iter()
            .map(move |(name, agent)| (format!("{key}.{name}."), agent))
    });
    let all = [(String::new(), node)].into_iter().chain(agents);
    for ((prefix, node), section) in
        all.flat_map(|of| ["tools", "permission"].map(|section| (of.clone(), section)))
    {
        let Some(written) = node.get(section).filter(|node| **node != Node::Null) else {
            continue;
        };
        let source = file.source_rule(format!("{prefix}{section}"), "", RuleKind::Deny);
        for found in file.servers.iter().filter(|found| source.reaches(found)) {
            let of = (!prefix.is_empty(), permits_mcpzip);
            about(&source, written, found, of, rules);
        }
    }
}

/// Adds a rule for a plugin that may examine each call: its text has such a hook, or it has further files, which may have one.
fn plugin(file: &RuleFile<'_>, cache: &FileCache, rules: &mut Vec<Rule>) {
    let Some(text) = file.text(cache, rules) else {
        return;
    };
    let Some(sign) = HOOKS.iter().find(|sign| text.contains(**sign)) else {
        return;
    };
    let source = file.source_rule("plugin", *sign, RuleKind::Hook);
    for found in file.servers.iter().filter(|found| source.reaches(found)) {
        let source = source.clone();
        rules.push(source.about(found, Carried::Lost(HOOK_SEES_EXECUTE_TOOL)));
    }
}

/// The directories of agents and plugins, each with its project: those of the user, of an administrator and of projects.
fn directories(survey: &Survey, around: &Surroundings) -> Vec<(PathBuf, Option<PathBuf>)> {
    let user = Client::OpenCode.user_location(around).path;
    let own = user.parent().map(Path::to_owned).into_iter();
    let own = own.chain([around.home.join(".opencode"), around.opencode_managed()]);
    let projects = survey.projects.iter();
    let projects = projects.filter(|project| **project != around.home);
    let projects = projects.map(|project| (project.join(".opencode"), Some(project.clone())));
    own.map(|directory| (directory, None))
        .chain(projects)
        .collect()
}

/// The settings files, each with its project. All of them apply.
pub(super) fn settings(survey: &Survey, around: &Surroundings) -> Vec<(PathBuf, Option<PathBuf>)> {
    let user = Client::OpenCode.user_location(around).path;
    let known = survey.locations.iter();
    let known = known.filter(|location| location.client == Client::OpenCode);
    let mut all: Vec<(PathBuf, Option<PathBuf>)> = known
        .map(|location| (location.path.clone(), location.project.clone()))
        .collect();
    let named = around.environment.get(env::OPENCODE_CONFIG.name);
    let named = named.filter(|path| !path.is_empty());
    all.extend(named.map(|path| (path.into(), None)));
    let mut add = |directory: &Path, project: Option<&Path>| {
        for path in opencode_files(directory) {
            let is_own = !path.ends_with("config.json") || project.is_none();
            let is_there = project.is_none() || may_be_there(&path);
            if is_own && is_there && !all.iter().any(|(known, _)| *known == path) {
                all.push((path, project.map(Path::to_owned)));
            }
        }
    };
    if let Some(directory) = user.parent() {
        add(directory, None);
    }
    add(&around.home.join(".opencode"), None);
    add(&around.opencode_managed(), None);
    for directory in survey.projects.iter().map(PathBuf::as_path) {
        add(directory, Some(directory));
        add(&directory.join(".opencode"), Some(directory));
    }
    all
}

/// Reads the rules of agents in Markdown files below `directory`.
fn agents(
    directory: &Path,
    project: Option<&Path>,
    servers: &[&Found],
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let mut paths = Vec::new();
    for folder in ["agent", "agents", "mode", "modes"] {
        markdown(&directory.join(folder), usize::MAX, &mut paths);
    }
    for path in &paths {
        let file = RuleFile {
            path,
            project,
            servers,
        };
        let Some(text) = file.text(cache, rules) else {
            continue;
        };
        let Some(head) = head(&text) else { continue };
        let head = Node::map(parts(head));
        for section in ["tools", "permission"] {
            let Some(written) = file.at(&head, &[section], rules) else {
                continue;
            };
            let source = file.source_rule(section, "", RuleKind::Deny);
            for found in servers.iter().filter(|found| source.reaches(found)) {
                about(&source, written, found, (true, false), rules);
            }
        }
    }
}

/// Whether a pattern permits mcpzip's own tools by name. Then a pattern for all tools does not apply to them.
fn permits_mcpzip(survey: &Survey) -> bool {
    let own = survey
        .found
        .iter()
        .filter(|found| found.is_mcpzip && found.location.client == Client::OpenCode);
    let own = own.map(|found| found.name.as_str()).chain([NAME]);
    let tools: Vec<String> = own
        .map(|name| format!("{}_execute_tool", plain(name)))
        .collect();
    let is_free = |(pattern, value): (&str, &Node)| {
        let is_own = tools.iter().any(|tool| fits(pattern, tool));
        is_own && is_allowed(value) && !is_about_all(pattern, |server| format!("{server}_"))
    };
    let sections = |node: &Node| {
        let sections = ["tools", "permission"].into_iter();
        let mut members = sections
            .filter_map(|key| node.get(key))
            .flat_map(Node::members);
        members.any(is_free)
    };
    let locations = survey.locations.iter();
    let mut nodes = locations
        .filter(|location| location.client == Client::OpenCode)
        .filter_map(|location| Some(survey.files.get(&location.path)?.text.node()));
    nodes.any(|node| {
        let agents = ["agent", "mode"]
            .into_iter()
            .filter_map(|key| node.get(key));
        let mut agents = agents.flat_map(Node::members);
        sections(node) || agents.any(|(_, agent)| sections(agent))
    })
}

/// Adds the rules of one section for one server. `is_of_agent` is whether the section belongs to one agent,
/// `permits_mcpzip` whether a pattern permits mcpzip's own tools.
fn about(
    source: &SourceRule,
    written: &Node,
    found: &Found,
    (is_of_agent, permits_mcpzip): (bool, bool),
    rules: &mut Vec<Rule>,
) {
    let all = Node::map([("*", written.clone())]);
    let members = match written {
        Node::Map(_) => written.members(),
        _ => all.members(),
    };
    let lines: Vec<Line<'_>> = members
        .into_iter()
        .map(|(pattern, value)| Line {
            pattern,
            tools: tools(pattern, &found.name),
            value,
        })
        .filter(|line| !line.tools.is_empty())
        .collect();
    for (at, line) in lines.iter().enumerate() {
        let is_everything = line.tools == ["*"];
        // A pattern for all tools also applies to mcpzip's tools.
        let is_about_all =
            !permits_mcpzip && is_about_all(line.pattern, |server| format!("{server}_"));
        let freed: Vec<String> = lines[at + 1..]
            .iter()
            .filter(|later| is_allowed(later.value) || is_asked_always(later.value))
            .flat_map(|later| later.tools.clone())
            .collect();
        let (kind, carried) = match line.value {
            _ if is_about_all && is_of_agent => continue,
            value if is_denied(value) && is_everything && !freed.is_empty() => {
                (RuleKind::Deny, Carried::Only(freed))
            }
            value if is_denied(value) => (RuleKind::Deny, Carried::Deny(line.tools.clone())),
            value if is_allowed(value) => {
                // After a denial of all tools, the permitted ones are in the `Only` rule already.
                let is_left = lines[..at]
                    .iter()
                    .any(|earlier| earlier.tools == ["*"] && is_denied(earlier.value));
                if is_left {
                    continue;
                }
                (RuleKind::Allow, Carried::Needless(line.tools.clone()))
            }
            value if is_asked(value) && is_about_all => {
                (RuleKind::Ask, Carried::Needless(line.tools.clone()))
            }
            value if is_asked(value) => (RuleKind::Ask, Carried::Ask(line.tools.clone())),
            _ => (
                RuleKind::Deny,
                Carried::Lost("looks at parameters, which are not carried over"),
            ),
        };
        let carried = match carried {
            Carried::Needless(tools) => Carried::Needless(tools),
            // All others are asked, too.
            Carried::Ask(tools) => Carried::Ask(tools),
            _ if is_of_agent => OF_AN_AGENT,
            carried => carried,
        };
        let source = SourceRule {
            text: format!("{}: {}", line.pattern, line.value.to_json()),
            kind,
            ..source.clone()
        };
        let rest = line.pattern.strip_prefix(&plain(&found.name));
        let is_named = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
        rules.push(source.named(is_named).about(found, carried));
    }
}

/// The pattern that denies the tools of mcpzip, here named `name`, in the settings that apply in every project. opencode merges the files, each
/// over those before it, and the last pattern that matches decides.
pub(in super::super) fn is_hidden(
    name: &str,
    survey: &Survey,
    around: &Surroundings,
    cache: &FileCache,
) -> Option<String> {
    let tool = format!("{}_execute_tool", plain(name));
    let files = merged(around).into_iter();
    let files = files.filter_map(|path| match survey.files.get(&path) {
        Some(source) => Some((path, source.text.node().clone())),
        None => Some((path.clone(), cache.json(&path)?)),
    });
    let files: Vec<(PathBuf, Node)> = files.collect();
    ["tools", "permission"].into_iter().find_map(|section| {
        let mut lines: Vec<(&str, &Node, &Path)> = Vec::new();
        for (path, node) in &files {
            let path = path.as_path();
            let members = match node.get(section) {
                None | Some(Node::Null) => continue,
                Some(written @ Node::Map(_)) => written.members(),
                Some(value) => {
                    lines.clear();
                    vec![("*", value)]
                }
            };
            for (pattern, value) in members {
                match lines.iter_mut().find(|(known, ..)| *known == pattern) {
                    Some(line) => (line.1, line.2) = (value, path),
                    None => lines.push((pattern, value, path)),
                }
            }
        }
        let last = lines
            .into_iter()
            .rfind(|(pattern, ..)| fits(pattern, &tool));
        let (pattern, value, path) = last?;
        is_denied(value).then(|| format!("`{section}: {pattern}` in {}", path.display()))
    })
}

/// The files that apply in every project, in the order in which opencode merges them.
fn merged(around: &Surroundings) -> Vec<PathBuf> {
    let user = Client::OpenCode.user_location(around).path;
    let mut files = user.parent().map(opencode_files).unwrap_or_default();
    let named = around.environment.get(env::OPENCODE_CONFIG.name);
    let named = named.filter(|path| !path.is_empty());
    files.extend(named.map(PathBuf::from));
    let own = opencode_files(&around.home.join(".opencode"));
    let managed = opencode_files(&around.opencode_managed());
    files.extend(own.into_iter().skip(1).chain(managed.into_iter().skip(1)));
    files
}

fn is_denied(value: &Node) -> bool {
    *value == Node::Flag(false) || value.as_text() == Some("deny")
}

/// Whether it only asks, also about some parameters alone.
fn is_asked(value: &Node) -> bool {
    let members = value.members();
    let is_part = |part: &Node| is_asked(part) || is_allowed(part);
    value.as_text() == Some("ask")
        || members.iter().any(|(_, part)| is_asked(part))
            && members.iter().all(|(_, part)| is_part(part))
}

/// Whether it asks or allows, with any parameters: what a map leaves out stays as the lines before have it.
fn is_asked_always(value: &Node) -> bool {
    is_asked(value) && (value.members().is_empty() || value.get("*").is_some())
}

fn is_allowed(value: &Node) -> bool {
    *value == Node::Flag(true) || value.as_text() == Some("allow")
}

/// The tools of `server` that a pattern concerns, as patterns.
fn tools(pattern: &str, server: &str) -> Vec<String> {
    let server = plain(server);
    let prefix = format!("{server}_");
    if pattern == server || pattern == prefix {
        return vec!["*".to_owned()];
    }
    behind(pattern, &prefix)
}
