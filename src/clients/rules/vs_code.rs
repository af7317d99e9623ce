//! VS Code's rules, in the settings of the user, of profiles and of projects: the tools that it always asks about, and which servers
//! it starts at all.

use std::path::PathBuf;

use super::super::cache::FileCache;
use super::super::model::{Found, Survey};
use super::super::{Client, Node, Surroundings, Syntax};
use super::{Carried, Rule, RuleFile, RuleKind};

/// The tools by their names, without the server's: those with `false` are never called without a question. A `.` in a tool's name is
/// written `_`.
const ASKED: &str = "chat.tools.eligibleForAutoApproval";

/// Which servers it starts: `all`, those of its `registry`, or `none`.
const ACCESS: &str = "chat.mcp.access";

/// The switch that [`ACCESS`] replaced.
const ENABLED: &str = "chat.mcp.enabled";

pub(super) fn find(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let user = Client::VsCode.user_location(around).path;
    // A profile may use the servers of the default one.
    let profiles = around.vs_code_profile_directories().into_iter();
    let profiles = profiles.map(|directory| (directory.join("mcp.json"), None));
    let projects = survey.projects.iter();
    let projects = projects.map(|project| (project.join(".vscode/mcp.json"), Some(project)));
    let lists = [(user, None)].into_iter();
    for (list, project) in lists.chain(profiles).chain(projects) {
        let path = list.with_file_name("settings.json");
        let file = RuleFile {
            path: &path,
            project: project.map(PathBuf::as_path),
            servers,
        };
        let Some(settings) = file.open(Syntax::Json, cache, rules) else {
            continue;
        };
        asked(&file, &settings, rules);
        // If the settings of the user or of a profile start no server, none of it moves.
        if project.is_some()
            && let Some((key, value)) = refused_access(&settings)
        {
            let source = file.source_rule(key, value, RuleKind::Deny);
            for found in servers {
                if source.reaches(found) {
                    rules.push(source.clone().about(found, file.switched_off()));
                }
            }
        }
    }
}

/// The setting because of which VS Code does not start every server, with its value.
pub(in super::super) fn refused_access(settings: &Node) -> Option<(&'static str, String)> {
    let access = setting(settings, ACCESS).filter(|access| access.as_text() != Some("all"));
    let switch = setting(settings, ENABLED).filter(|switch| **switch != Node::Flag(true));
    let refused = access
        .map(|value| (ACCESS, value))
        .or(switch.map(|value| (ENABLED, value)));
    refused.map(|(key, value)| (key, value.to_json()))
}

fn asked(file: &RuleFile<'_>, settings: &Node, rules: &mut Vec<Rule>) {
    let Some(listed) = setting(settings, ASKED) else {
        return;
    };
    if !matches!(listed, Node::Map(_)) {
        file.unclear(ASKED, rules);
        return;
    }
    for (name, value) in listed.members() {
        let kind = match value {
            Node::Flag(true) => continue,
            Node::Flag(false) => RuleKind::Ask,
            _ => RuleKind::Deny,
        };
        let source = file.source_rule(format!("{ASKED}.{name}"), value.to_json(), kind);
        for found in file.servers.iter().filter(|found| source.reaches(found)) {
            let tool = match name.rsplit_once('/') {
                None => name,
                Some((server, tool)) if server.eq_ignore_ascii_case(&found.name) => tool,
                Some(_) => continue,
            };
            let carried = match kind {
                RuleKind::Ask => Carried::Ask(names(tool)),
                _ => Carried::UNCLEAR,
            };
            let source = source.clone().named(name.contains('/'));
            rules.push(source.about(found, carried));
        }
    }
}

/// The patterns of the tools that VS Code calls `tool`.
fn names(tool: &str) -> Vec<String> {
    let mut names = vec![tool.to_owned()];
    if tool.contains('_') {
        names.push(tool.replace('_', "?"));
    }
    names
}

/// The value of a setting, whose key may be written in parts.
fn setting<'n>(settings: &'n Node, key: &str) -> Option<&'n Node> {
    let whole = settings.get(key).filter(|value| **value != Node::Null);
    whole.or_else(|| {
        let mut parts = key
            .match_indices('.')
            .map(|(at, _)| (&key[..at], &key[at + 1..]));
        parts.find_map(|(first, rest)| setting(settings.get(first)?, rest))
    })
}
