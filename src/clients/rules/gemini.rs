//! Gemini CLI's rules: `policies/*.toml` of the user, the workspace and the administrator. Tools are named
//! `mcp_SERVER_TOOL` there, or `SERVER__TOOL` in older versions. The rule with the highest priority applies. Settings exclude tools and
//! servers by name.

use std::path::PathBuf;

use super::super::cache::FileCache;
use super::super::entry::NAME;
use super::super::model::{Found, Survey};
use super::super::{Client, Node, Surroundings, Syntax};
use super::glob::{behind, fits, is_about_all};
use super::projects::off;
use super::{Carried, Rule, RuleFile, RuleKind, files, items, plain};

/// Conditions on a call that mcpzip's rules do not have.
const CONDITIONS: &[&str] = &[
    "argsPattern",
    "commandPrefix",
    "commandRegex",
    "toolAnnotations",
];

pub(super) fn find(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    for (path, project) in settings(survey, around) {
        let file = RuleFile {
            path: &path,
            project: project.as_deref(),
            servers,
        };
        excluded(&file, cache, rules);
    }
    let user = (around.home.join(".gemini/policies"), None);
    let system = (around.gemini_system().join("policies"), None);
    let projects = survey.projects.iter();
    let projects =
        projects.map(|project| (project.join(".gemini/policies"), Some(project.clone())));
    let projects: Vec<_> = projects
        .filter(|(directory, _)| *directory != user.0)
        .collect();
    let mut policies = Vec::new();
    for (directory, project) in [user, system].into_iter().chain(projects) {
        for path in files(&directory, "toml") {
            let file = RuleFile {
                path: &path,
                project: project.as_deref(),
                servers,
            };
            let node = file.open(Syntax::Toml, cache, rules);
            policies.extend(node.map(|node| (path, project.clone(), node)));
        }
    }
    let permits_mcpzip = policies.iter().any(|(.., node)| permits_mcpzip(node));
    for (path, project, node) in &policies {
        let file = RuleFile {
            path,
            project: project.as_deref(),
            servers,
        };
        for section in ["rule", "safety_checker"] {
            for rule in node.get(section).map(items).unwrap_or_default() {
                read(section, rule, permits_mcpzip, &file, rules);
            }
        }
    }
}

/// Whether a rule permits mcpzip's own tools. Then a rule about all tools does not apply to them.
fn permits_mcpzip(policies: &Node) -> bool {
    let mut rules = policies.get("rule").map(items).unwrap_or_default().iter();
    rules.any(|rule| {
        let is_allowed = rule.get("decision").and_then(Node::as_text) == Some("allow");
        is_allowed && !tools(rule, NAME).is_empty() && tools(rule, "\u{1}").is_empty()
    })
}

/// The settings files, each with its project.
fn settings(survey: &Survey, around: &Surroundings) -> Vec<(PathBuf, Option<PathBuf>)> {
    let own = Client::GeminiCli.user_location(around).path;
    let system = around.gemini_system_files().map(|path| (path, None));
    let projects = survey.projects.iter().map(|directory| {
        let path = directory.join(".gemini/settings.json");
        (path, Some(directory.clone()))
    });
    let projects: Vec<_> = projects.filter(|(path, _)| *path != own).collect();
    [(own, None)]
        .into_iter()
        .chain(system)
        .chain(projects)
        .collect()
}

/// Reads the tools and servers that settings exclude by name.
fn excluded(file: &RuleFile<'_>, cache: &FileCache, rules: &mut Vec<Rule>) {
    let Some(node) = file.open(Syntax::Json, cache, rules) else {
        return;
    };
    for keys in [&["tools", "exclude"][..], &["excludeTools"]] {
        let named = file.texts(&node, keys, rules);
        // A condition in parentheses may follow the name of a built-in tool.
        let named = named
            .into_iter()
            .map(|name| name.split('(').next().unwrap_or(name));
        let rule = Node::map([("toolName", Node::texts(named))]);
        let source = file.source_rule(keys.join("."), rule.to_json(), RuleKind::Deny);
        for found in file.servers.iter().filter(|found| source.reaches(found)) {
            let tools = tools(&rule, &found.name);
            if !tools.is_empty() {
                rules.push(source.clone().about(found, Carried::Deny(tools)));
            }
        }
    }
    for key in ["excluded", "allowed"] {
        let Some(list) = file.at(&node, &["mcp", key], rules) else {
            continue;
        };
        let source = file.source_rule(format!("mcp.{key}"), list.to_json(), RuleKind::Deny);
        // The lists in the file of a server are read with it.
        let others = file.servers.iter();
        let others = others.filter(|found| file.path != found.location.path);
        for found in others.filter(|found| source.reaches(found)) {
            // A list that is not understood may be about it.
            let is_off = match list.names(&found.name) {
                Some(is_there) => is_there == (key == "excluded"),
                None => true,
            };
            if is_off {
                rules.push(source.clone().about(found, off(file)));
            }
        }
    }
}

fn read(
    section: &str,
    rule: &Node,
    permits_mcpzip: bool,
    file: &RuleFile<'_>,
    rules: &mut Vec<Rule>,
) {
    let kind = match rule.get("decision").and_then(Node::as_text) {
        Some("allow") => RuleKind::Allow,
        Some("ask_user") => RuleKind::Ask,
        _ => RuleKind::Deny,
    };
    let is_named = ["toolName", "mcpName"]
        .iter()
        .all(|key| match rule.get(key) {
            None | Some(Node::Text(_)) => true,
            Some(Node::List(items)) => items.iter().all(|item| item.as_text().is_some()),
            Some(_) => false,
        });
    if !is_named && kind != RuleKind::Allow || !matches!(rule, Node::Map(_)) {
        file.unclear(section, rules);
        return;
    }
    // A safety checker inspects a call before it is made.
    let is_conditional = section != "rule" || CONDITIONS.iter().any(|key| rule.get(key).is_some());
    let source = file.source_rule(section, rule.to_json(), kind);
    for found in file.servers.iter().filter(|found| source.reaches(found)) {
        let tools = tools(rule, &found.name);
        if tools.is_empty() {
            continue;
        }
        // A rule about all tools also applies to mcpzip's three tools.
        let is_about_all = !permits_mcpzip && tools == ["*"] && self::tools(rule, "\u{1}") == ["*"];
        let carried = match kind {
            RuleKind::Allow => Carried::Needless,
            RuleKind::Ask if is_about_all && !is_conditional => Carried::Needless,
            _ if is_conditional => {
                Carried::Lost("looks at parameters or claims, which are not carried over")
            }
            RuleKind::Ask => Carried::Ask(tools),
            _ => Carried::Deny(tools),
        };
        rules.push(source.clone().about(found, carried));
    }
}

/// The tools of `server` that a rule concerns, as patterns.
fn tools(rule: &Node, server: &str) -> Vec<String> {
    let texts = |key: &str| match rule.get(key) {
        None => None,
        Some(Node::Text(text)) => Some(vec![text.clone()]),
        Some(node) => Some(
            node.items()
                .iter()
                .filter_map(Node::as_text)
                .map(str::to_owned)
                .collect(),
        ),
    };
    let named = texts("toolName");
    if named.is_none() && rule.get("mcpName").is_none() {
        return vec!["*".to_owned()];
    }
    if let Some(meant) = texts("mcpName") {
        let is_meant = meant
            .iter()
            .any(|name| fits(name, server) || fits(name, &plain(server)));
        return match named {
            _ if !is_meant => Vec::new(),
            Some(tools) => tools,
            None => vec!["*".to_owned()],
        };
    }
    let server = plain(server);
    let mut tools = Vec::new();
    for pattern in named.unwrap_or_default() {
        for prefix in [
            format!("mcp_{server}_"),
            format!("{server}__"),
            format!("mcp__{server}__"),
        ] {
            tools.extend(behind(&pattern, &prefix));
        }
        let is_everything = is_about_all(&pattern, |server| format!("mcp_{server}_"));
        if is_everything {
            return vec!["*".to_owned()];
        }
    }
    tools.sort();
    tools.dedup();
    tools
}
