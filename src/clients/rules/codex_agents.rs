//! Agents of Codex: each has a file of its own, which is laid over the configuration and may switch servers off or limit their tools for
//! that agent. An administrator's settings are laid over it for all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::cache::FileCache;
use super::super::model::{Found, Survey};
use super::super::reading::{self, part};
use super::super::{Client, Node, Surroundings, Syntax};
use super::others::{OF_AN_AGENT, codex_tools};
use super::{Carried, Rule, RuleFile, RuleKind, files, projects};

/// Adds the rules about `servers` in settings that are laid over the user's, and in the files of agents, of the user and of all known
/// projects.
pub(super) fn find(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    for path in around.codex_overlays() {
        let file = RuleFile {
            path: &path,
            project: None,
            servers,
        };
        if let Some(node) = file.open(Syntax::Toml, cache, rules) {
            let key = "mcp_servers";
            projects::add(Client::Codex, key, node.get(key), &file, rules);
        }
    }
    let user = Client::Codex.user_location(around);
    let projects = survey.projects.iter();
    let projects = projects.filter_map(|directory| Client::Codex.project_location(directory));
    let mut seen = BTreeSet::new();
    for location in [user].into_iter().chain(projects) {
        for path in agents(&location.path, survey, around, cache) {
            let file = RuleFile {
                path: &path,
                project: location.project.as_deref(),
                servers,
            };
            // In the home directory, a project's files are those of the user.
            if seen.insert(path.clone())
                && let Some(node) = file.open(Syntax::Toml, cache, rules)
            {
                add(&node, &file, rules);
            }
        }
    }
}

/// The files of the agents of one configuration: those that it names, and those in the directory next to it.
fn agents(
    config: &Path,
    survey: &Survey,
    around: &Surroundings,
    cache: &FileCache,
) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    below(&config.with_file_name("agents"), &mut paths);
    let known = survey.files.get(config);
    let node = match known.map(|source| source.text.node().clone()) {
        Some(node) => Some(node),
        // The servers of a project stay there if its configuration cannot be read.
        None => cache.node(config, Syntax::Toml).ok().flatten(),
    };
    let named = node.as_ref().and_then(|node| node.get("agents"));
    for (_, agent) in named.map(Node::members).unwrap_or_default() {
        let file = agent.get("config_file").and_then(Node::as_text);
        paths.extend(file.map(|file| match file.strip_prefix("~/") {
            Some(rest) => around.home.join(rest),
            None => config.with_file_name(file),
        }));
    }
    paths
}

/// Adds the files in `directory` and in those below. Like Codex, it follows no links to directories.
fn below(directory: &Path, paths: &mut Vec<PathBuf>) {
    paths.extend(files(directory, "toml"));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        below(&entry.path(), paths);
    }
}

/// Adds the rules in the file of one agent, whose content is `node`.
fn add(node: &Node, file: &RuleFile<'_>, rules: &mut Vec<Rule>) {
    for found in file.servers {
        let key = format!("mcp_servers.{}", found.name);
        let one = RuleFile {
            servers: std::slice::from_ref(found),
            ..*file
        };
        let entry = node.at(&["mcp_servers", &found.name]);
        let is_reached = one.source_rule(&key, "", RuleKind::Deny).reaches(found);
        let Some(entry) = entry.filter(|entry| is_reached && **entry != Node::Null) else {
            continue;
        };
        let Some(mut part) = part(Client::Codex, entry, file.project) else {
            one.unclear(&key, rules);
            continue;
        };
        if let Ok(whole) = reading::read(Client::Codex, entry, file.project) {
            part.tool_rules = whole.tool_rules;
        }
        let mut own = Vec::new();
        projects::add_part(&key, part, &one, found, &mut own);
        codex_tools(&key, entry, &one, found, &mut own);
        for rule in &mut own {
            // A question is asked for all.
            let is_for_all = matches!(rule.carried, Carried::Needless(_) | Carried::Ask(_));
            if rule.kind != RuleKind::Unread && !is_for_all {
                rule.carried = OF_AN_AGENT;
            }
        }
        rules.extend(own);
    }
}
