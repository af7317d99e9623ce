//! The servers in files from which no migration moves them: their client starts them, so that its rules about them count, and if one is
//! mcpzip, the client runs that.

use std::path::{Path, PathBuf};

use super::super::cache::FileCache;
use super::super::fixed::{managed_servers, plugins};
use super::super::model::{Approval, Found, Survey};
use super::super::{Client, ConfigLocation, Node, Scope, Surroundings, Syntax, approval};
use super::projects::has_switches;
use super::{gemini, opencode};

/// A file with servers, and the text before their names.
type Place = (ConfigLocation, String);

/// The servers in files that the survey has not read: of known projects, plugins, extensions and administrators. In a project's file of a
/// client whose entries cannot limit tools, only the entries of mcpzip and those that the user refuses.
pub(in super::super) fn staying(
    survey: &Survey,
    clients: &[Client],
    around: &Surroundings,
    cache: &FileCache,
) -> Vec<Found> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let users = Client::ALL.map(|client| real(&client.user_location(around).path));
    let read = survey.locations.iter();
    let read: Vec<_> = read.map(|location| real(&location.path)).collect();
    let mut all: Vec<Found> = Vec::new();
    let apart = FileCache::default();
    for client in clients {
        let projects = survey.projects.iter();
        let projects = projects.filter_map(|directory| client.project_location(directory));
        let projects = projects.map(|location| (location, String::new()));
        let user = survey.files.get(&client.user_location(around).path);
        let user = user.map(|source| source.text.node());
        let mut known = Vec::new();
        for (location, prefix) in projects.chain(places(*client, survey, around, cache)) {
            let at = real(&location.path);
            let place = (at.clone(), location.container.clone());
            if at.is_none() || users.contains(&at) || read.contains(&at) || known.contains(&place) {
                continue;
            }
            known.push(place);
            let counts = location.project.is_none() || has_switches(*client);
            // A file that only may have an entry of mcpzip is not reported.
            let cache = if counts { cache } else { &apart };
            // One that cannot be read hides the client's servers in its project.
            let Ok(Some(node)) = cache.node(&location.path, location.syntax) else {
                continue;
            };
            let entries = node.at(&location.container).map(Node::members);
            let entries = entries.unwrap_or_default().into_iter();
            let found = entries.map(|(name, entry)| {
                let found = Found::read(location.clone(), name, entry);
                let is_refused =
                    approval::of(&location, name, user, around, cache) == Approval::Refused;
                Found {
                    name: format!("{prefix}{name}"),
                    is_switched_off: found.is_switched_off || is_refused,
                    is_off: found.is_off || is_refused,
                    approval: match is_refused {
                        true => Approval::Refused,
                        false => found.approval,
                    },
                    ..found
                }
            });
            let is_refused = |found: &Found| found.approval == Approval::Refused;
            all.extend(found.filter(|found| counts || found.is_mcpzip || is_refused(found)));
        }
    }
    all
}

/// The files of a client, other than the user's and those of projects, that have servers.
fn places(client: Client, survey: &Survey, around: &Surroundings, cache: &FileCache) -> Vec<Place> {
    let of = |path: PathBuf, project: Option<PathBuf>| ConfigLocation {
        scope: match project {
            Some(_) => Scope::Project,
            None => Scope::User,
        },
        syntax: Syntax::Json,
        path,
        project,
        ..client.user_location(around)
    };
    let settings = match client {
        Client::ClaudeCode => {
            let plugins = plugins(around, cache).into_iter();
            let plugins = plugins.flat_map(|(plugin, directory)| {
                let prefix = format!("plugin:{plugin}:");
                let places = of_plugin(&directory, cache).into_iter();
                places.map(move |(path, container)| (path, container, prefix.clone()))
            });
            let plugins = plugins.map(|(path, container, prefix)| {
                let location = ConfigLocation {
                    container,
                    ..of(path, None)
                };
                (location, prefix)
            });
            let managed = managed_servers(around, cache).into_iter();
            let managed = managed.map(|(path, _)| (of(path, None), String::new()));
            return plugins.chain(managed).collect();
        }
        Client::GeminiCli => gemini::settings(survey, around),
        Client::OpenCode => opencode::settings(survey, around),
        // It also reads the file of Claude Code's projects.
        Client::CopilotCli => {
            let projects = survey.projects.iter();
            let files = projects.map(|project| (project.join(".mcp.json"), Some(project.clone())));
            files.collect()
        }
        _ => return Vec::new(),
    };
    let settings = settings.into_iter();
    let settings = settings.map(|(path, project)| (of(path, project), String::new()));
    settings.collect()
}

/// The files of servers of a plugin of Claude Code in `directory`, each with the path of keys to them.
pub(in super::super) fn of_plugin(
    directory: &Path,
    cache: &FileCache,
) -> Vec<(PathBuf, Vec<String>)> {
    let key = "mcpServers";
    let manifest = directory.join(".claude-plugin/plugin.json");
    let named = cache.json(&manifest);
    let named = named.as_ref().and_then(|node| node.get(key)?.as_text());
    let lists = [Some(".mcp.json"), named].into_iter().flatten();
    let lists = lists.map(|file| {
        let path = directory.join(file);
        let has_key = cache
            .json(&path)
            .is_some_and(|node| node.get(key).is_some());
        let container = has_key.then(|| key.to_owned());
        (path, container.into_iter().collect())
    });
    let inline = (manifest, vec![key.to_owned()]);
    lists.chain([inline]).collect()
}
