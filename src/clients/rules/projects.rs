//! A project's entries for servers that the user's own files have: a client lays both over each other, so that a server may be switched
//! off or limited in one project only.

use std::path::Path;

use super::super::cache::FileCache;
use super::super::listed::may_be_there;
use super::super::location::continue_files;
use super::super::model::{Found, Survey};
use super::super::reading::{Part, part};
use super::super::{Client, ConfigLocation, Node, Surroundings};
use super::others::codex_tools;
use super::{Rule, RuleFile, RuleKind, kind_of};

/// Adds the rules in the entries of all known projects. A file that cannot be read may have other servers in the place of the user's.
pub(super) fn find(
    client: Client,
    servers: &[&Found],
    survey: &Survey,
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let own: Vec<&Found> = servers
        .iter()
        .copied()
        .filter(|found| is_for_all(found))
        .collect();
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let user = client.other_places(around).into_iter();
    let user = user.chain([client.user_location(around)]);
    let user: Vec<_> = user.map(|location| real(&location.path)).collect();
    for directory in &survey.projects {
        for location in locations(client, directory) {
            // In the home directory it may be the user's own file.
            let at = real(&location.path);
            if at.is_some() && user.contains(&at) || !may_be_there(&location.path) {
                continue;
            }
            let file = RuleFile {
                path: &location.path,
                project: Some(directory),
                servers: &own,
            };
            let Some(node) = file.open(location.syntax, cache, rules) else {
                continue;
            };
            let (key, entries) = (location.container.join("."), node.at(&location.container));
            // Each of its entries may be in the place of one of the user's.
            if !entries.is_none_or(Node::has_members) {
                file.unclear(&key, rules);
            } else if has_switches(client) {
                add(client, &key, entries, &file, rules);
            }
        }
    }
}

/// The files of servers of the project in `directory`.
fn locations(client: Client, directory: &Path) -> Vec<ConfigLocation> {
    let Some(own) = client.project_location(directory) else {
        return Vec::new();
    };
    let others = match client {
        // It also reads the file of Claude Code's projects.
        Client::CopilotCli => vec![directory.join(".mcp.json")],
        Client::Continue => {
            let mut files = continue_files(directory);
            files.retain(|path| *path != own.path);
            files
        }
        _ => Vec::new(),
    };
    let others = others.into_iter();
    let others = others.map(|path| client.location(own.scope, path, own.project.clone()));
    let others: Vec<ConfigLocation> = others.collect();
    [own].into_iter().chain(others).collect()
}

/// Adds Codex's rules for single tools in the entries of servers that are `staying`.
pub(super) fn add_codex_tools(staying: &[Found], cache: &FileCache, rules: &mut Vec<Rule>) {
    for found in staying {
        let location = &found.location;
        let path = location.path_of(&found.name);
        if location.client == Client::Codex
            && let Ok(Some(node)) = cache.node(&location.path, location.syntax)
            && let Some(entry) = node.at(&path)
        {
            let file = RuleFile {
                path: &location.path,
                project: location.project.as_deref(),
                servers: &[],
            };
            codex_tools(&path.join("."), entry, &file, found, rules);
        }
    }
}

/// Adds the rules in `entries`, which a file has at `key` in addition to the file of the servers.
pub(super) fn add(
    client: Client,
    key: &str,
    entries: Option<&Node>,
    file: &RuleFile<'_>,
    rules: &mut Vec<Rule>,
) {
    let Some(entries) = entries else { return };
    for found in file.servers.iter().filter(|found| is_for_all(found)) {
        let own = RuleFile {
            servers: std::slice::from_ref(found),
            ..*file
        };
        let is_elsewhere = found.location.path != file.path;
        let entry = entries.get(&found.name).filter(|_| is_elsewhere);
        let Some(entry) = entry.filter(|entry| **entry != Node::Null) else {
            continue;
        };
        let key = format!("{key}.{}", found.name);
        let Some(part) = part(client, entry, file.project) else {
            own.unclear(&key, rules);
            continue;
        };
        add_part(&key, part, &own, found, rules);
        if client == Client::Codex {
            codex_tools(&key, entry, &own, found, rules);
        }
    }
}

/// Adds the rules in the part of an entry that a file has at `key`.
pub(super) fn add_part(
    key: &str,
    part: Part,
    file: &RuleFile<'_>,
    found: &Found,
    rules: &mut Vec<Rule>,
) {
    // One that is off in all projects comes over so.
    let is_off = found.is_off && file.project.is_none();
    if let Some((switch, value)) = part.switch.filter(|_| !is_off) {
        let source = file.source_rule(format!("{key}.{switch}"), value, RuleKind::Deny);
        rules.push(source.named(true).about(found, file.switched_off()));
    }
    for rule in part.tool_rules {
        let key = format!("{key}.{}", rule.key);
        let source = file.source_rule(key, rule.value, kind_of(&rule.carried));
        rules.push(source.named(true).about(found, rule.carried));
    }
    if !part.others.is_empty() {
        let keys = part.others.join("`, `");
        file.unread(format!("sets `{keys}` of `{key}` there"), rules);
    }
}

fn is_for_all(found: &Found) -> bool {
    found.location.project.is_none()
}

/// Whether a project's file of servers may switch servers off or limit their tools. The settings files of opencode are read with its other rules.
pub(super) const fn has_switches(client: Client) -> bool {
    match client {
        Client::Codex
        | Client::GeminiCli
        | Client::Zed
        | Client::Roo
        | Client::Kiro
        | Client::CopilotCli => true,
        // They keep the switch elsewhere, or have no files of projects.
        Client::OpenCode
        | Client::ClaudeCode
        | Client::ClaudeDesktop
        | Client::Cursor
        | Client::VsCode
        | Client::Windsurf
        | Client::Cline
        | Client::Continue
        | Client::Goose
        | Client::LmStudio => false,
    }
}
