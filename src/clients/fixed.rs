//! Servers that are in no editable list of a client, and administrators' policies about all others.

use std::path::{Path, PathBuf};

use super::cache::FileCache;
use super::model::{Entry, Fixed, Found, Survey, Target, Unmovable};
use super::{Client, Node, Surroundings};

/// The servers that Claude Code does not run, and the only ones that it does.
const DENIED: &str = "deniedMcpServers";
pub(super) const ALLOWED: &str = "allowedMcpServers";

const CONNECTOR: &str = "is a connector of the claude.ai account, which is set up there";
const PLUGIN: &str = "comes with a plugin, and goes with it";
const BUNDLE: &str = "is a bundle (`.mcpb`), which the client installs and starts itself";
const MANAGED: &str = "is set by an administrator (`managed-mcp.json`)";

/// The fixed servers of `clients`.
pub(super) fn find(
    survey: &Survey,
    clients: &[Client],
    around: &Surroundings,
    cache: &FileCache,
) -> Vec<Fixed> {
    let mut found = Vec::new();
    let mut add = |client: Client, path: &Path, name: &str, reason: &'static str| {
        found.push(Fixed {
            client,
            path: path.to_owned(),
            name: name.to_owned(),
            reason,
        });
    };
    if clients.contains(&Client::ClaudeCode) {
        let user = Client::ClaudeCode.user_location(around).path;
        let connected = survey
            .files
            .get(&user)
            .and_then(|source| source.text.node().get("claudeAiMcpEverConnected"));
        for name in connected
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .filter_map(Node::as_text)
        {
            add(Client::ClaudeCode, &user, name, CONNECTOR);
        }
        let path = around
            .claude_directory()
            .join("plugins/installed_plugins.json");
        for (plugin, directory) in plugins(around, cache) {
            for server in plugin_servers(&directory, cache) {
                let name = format!("plugin:{plugin}:{server}");
                add(Client::ClaudeCode, &path, &name, PLUGIN);
            }
        }
        if let Some((path, managed)) = managed_servers(around, cache) {
            for (server, _) in managed
                .get("mcpServers")
                .map(Node::members)
                .unwrap_or_default()
            {
                add(Client::ClaudeCode, &path, server, MANAGED);
            }
        }
    }
    if clients.contains(&Client::ClaudeDesktop) {
        let own = Client::ClaudeDesktop.user_location(around).path;
        let bundles = own.with_file_name("Claude Extensions");
        let mut manifests: Vec<PathBuf> = std::fs::read_dir(&bundles)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("manifest.json"))
            .collect();
        manifests.sort();
        for path in manifests {
            let Some(manifest) = cache.json(&path) else {
                continue;
            };
            let name = ["display_name", "name"]
                .iter()
                .find_map(|key| manifest.get(key)?.as_text());
            add(
                Client::ClaudeDesktop,
                &path,
                name.unwrap_or("a bundle"),
                BUNDLE,
            );
        }
    }
    found
}

/// Claude Code's plugins, each with its directory.
pub(super) fn plugins(around: &Surroundings, cache: &FileCache) -> Vec<(String, PathBuf)> {
    let path = around
        .claude_directory()
        .join("plugins/installed_plugins.json");
    let installed = cache.json(&path).unwrap_or(Node::Null);
    let mut found = Vec::new();
    for (plugin, node) in installed
        .get("plugins")
        .map(Node::members)
        .unwrap_or_default()
    {
        let plugin = plugin.split('@').next().unwrap_or_default();
        let listed = match node {
            Node::List(items) => items,
            one => std::slice::from_ref(one),
        };
        let paths = listed
            .iter()
            .filter_map(|one| one.get("installPath")?.as_text());
        found.extend(paths.map(|path| (plugin.to_owned(), PathBuf::from(path))));
    }
    found
}

fn plugin_servers(directory: &Path, cache: &FileCache) -> Vec<String> {
    let listed = cache.json(&directory.join(".mcp.json"));
    let manifest = cache.json(&directory.join(".claude-plugin/plugin.json"));
    let inline = manifest
        .as_ref()
        .and_then(|manifest| manifest.get("mcpServers"));
    let mut names = Vec::new();
    for node in listed.iter().chain(inline) {
        let servers = node.get("mcpServers").unwrap_or(node);
        names.extend(
            servers
                .members()
                .into_iter()
                .map(|(name, _)| name.to_owned()),
        );
    }
    names.sort();
    names.dedup();
    names
}

/// The servers that an administrator has set. If there are any, Claude Code loads no others.
fn managed_servers(around: &Surroundings, cache: &FileCache) -> Option<(PathBuf, Node)> {
    let path = around.managed.as_ref()?.join("managed-mcp.json");
    let node = cache.json(&path)?;
    Some((path, node))
}

/// The reason why a policy keeps a server from running in its client, if one does: it must not run behind the proxy
/// either. The list of permitted servers in the file `editable` is ignored.
pub(super) fn blocked(
    found: &Found,
    around: &Surroundings,
    cache: &FileCache,
    editable: Option<&Path>,
) -> Option<Unmovable> {
    if found.location.client != Client::ClaudeCode {
        return None;
    }
    if let Some((path, _)) = managed_servers(around, cache) {
        return Some(Unmovable::NotLoaded(path));
    }
    let entry = found.entry.as_ref().ok()?;
    let own = around.claude_directory();
    let project = found
        .location
        .project
        .as_deref()
        .or(around.directory.as_deref())
        .map(|project| project.join(".claude"));
    let directories = [Some(own), project].into_iter().flatten();
    let files = directories
        .flat_map(|at| ["settings.json", "settings.local.json"].map(|file| at.join(file)));
    for path in around.managed_settings().into_iter().chain(files) {
        let Some(node) = cache.json(&path) else {
            continue;
        };
        match policy(&node, &found.name, entry, editable == Some(path.as_path())) {
            Some(DENIED) => return Some(Unmovable::Denied(path)),
            Some(_) => return Some(Unmovable::NotAllowed(path)),
            None => {}
        }
    }
    None
}

/// The list in Claude Code's `settings` that keeps a server from running. The list of permitted servers is ignored if it `is_editable`.
pub(super) fn policy(
    settings: &Node,
    name: &str,
    entry: &Entry,
    is_editable: bool,
) -> Option<&'static str> {
    let matches = |list: &Node| {
        let mut rules = list.items().iter();
        !matches!(list, Node::List(_) | Node::Null)
            || rules.any(|rule| is_meant(rule, name, entry) || is_unclear(rule))
    };
    if settings.get(DENIED).is_some_and(matches) {
        return Some(DENIED);
    }
    let allowed = settings.get(ALLOWED).filter(|list| match list {
        Node::Null => false,
        Node::List(_) => !is_editable,
        _ => true,
    });
    allowed
        .is_some_and(|list| !is_permitted(list, name, entry))
        .then_some(ALLOWED)
}

/// Whether a list of permitted servers contains a server. If the list has commands or URLs, a name alone does not
/// permit such a server.
pub(super) fn is_permitted(list: &Node, name: &str, entry: &Entry) -> bool {
    let key = match &entry.target {
        Target::Local { .. } => "serverCommand",
        Target::Remote { .. } => "serverUrl",
    };
    let rules = list.items();
    if rules.iter().any(|rule| rule.get(key).is_some()) {
        rules.iter().any(|rule| is_meant_by_target(rule, entry))
    } else {
        rules.iter().any(|rule| is_meant(rule, name, entry))
    }
}

/// Whether the servers that a rule of a policy matches are unclear.
fn is_unclear(rule: &Node) -> bool {
    let is_known = |(key, value): (&str, &Node)| match key {
        "serverName" | "serverUrl" => value.as_text().is_some(),
        "serverCommand" => value.items().iter().any(|word| word.as_text().is_some()),
        _ => false,
    };
    let members = rule.members();
    members.is_empty() || !members.into_iter().all(is_known)
}

/// Whether a rule of a policy matches a server: by name, command or URL.
fn is_meant(rule: &Node, name: &str, entry: &Entry) -> bool {
    rule.get("serverName").and_then(Node::as_text) == Some(name) || is_meant_by_target(rule, entry)
}

fn is_meant_by_target(rule: &Node, entry: &Entry) -> bool {
    match &entry.target {
        Target::Local { command, args, .. } => {
            let words = rule
                .get("serverCommand")
                .map(Node::items)
                .unwrap_or_default();
            let line: Vec<Node> = [command].into_iter().chain(args).map(Node::text).collect();
            !words.is_empty() && words == line
        }
        Target::Remote { url, .. } => {
            let pattern = rule
                .get("serverUrl")
                .and_then(Node::as_text)
                .map(|pattern| {
                    let parts: Vec<String> = pattern.split('*').map(regex::escape).collect();
                    format!("^{}$", parts.join(".*"))
                });
            pattern.is_some_and(|pattern| {
                regex::Regex::new(&pattern).is_ok_and(|pattern| pattern.is_match(url))
            })
        }
    }
}
