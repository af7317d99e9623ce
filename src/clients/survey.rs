//! What there is: every client's files, read once, and the servers in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::approval::{self, Approval};
use super::cache::FileCache;
pub(super) use super::cache::{Source, read_source};
use super::reading::{self, Entry};
use super::rules::{self, Rule};
use super::{Client, Fixed, Node, Place, Scope, Surroundings, Text, fixed};

/// All that was found.
#[derive(Debug)]
pub struct Survey {
    /// The servers, in the order of clients and files.
    pub found: Vec<Found>,
    /// What names single servers or tools of theirs outside of their entries, or in them.
    pub rules: Vec<Rule>,
    /// The servers that are in no list that could be edited.
    pub fixed: Vec<Fixed>,
    /// The files that could not be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
    pub(super) files: BTreeMap<PathBuf, Source>,
    pub(super) places: Vec<Place>,
}

/// A server in a client's file.
#[derive(Debug, Clone)]
pub struct Found {
    /// Where.
    pub place: Place,
    /// Its name there.
    pub name: String,
    /// What it is, or why it has to stay.
    pub entry: Result<Entry, String>,
    /// Whether that is `mcpzip`.
    pub is_mcpzip: bool,
    /// Whether it is a project's, and no file of the user's own says that it may run.
    pub is_unapproved: bool,
}

impl Survey {
    /// Reads the files of `clients`.
    #[must_use]
    pub fn of(clients: &[Client], around: &Surroundings) -> Self {
        let mut survey = Self {
            found: Vec::new(),
            rules: Vec::new(),
            fixed: Vec::new(),
            unreadable: Vec::new(),
            files: BTreeMap::new(),
            places: Vec::new(),
        };
        let cache = FileCache::default();
        for client in clients {
            let user = client.user_place(around);
            let mut places = vec![user.clone()];
            places.extend(client.profile_places(around));
            if let Some(text) = survey.open(&user) {
                // Claude Code has them in the same file, by project.
                let projects = text
                    .node()
                    .get("projects")
                    .map(Node::members)
                    .unwrap_or_default();
                let projects = projects
                    .into_iter()
                    .filter_map(|(key, _)| client.local_place(around, Path::new(key)));
                places.extend(projects.collect::<Vec<_>>());
            }
            places.extend(survey.project_places(*client, around));
            for place in places {
                survey.read(place, around, &cache);
            }
        }
        survey.fixed = fixed::find(&survey, clients, around, &cache);
        survey.rules = rules::find(&survey, clients, around, &cache);
        for (path, problem) in cache.unreadable() {
            if !survey.unreadable.iter().any(|(known, _)| *known == path) {
                survey.unreadable.push((path, problem));
            }
        }
        survey
    }

    /// The files of the project's servers, but for those that are, or are links to, files of the user's own servers: a
    /// migration would take those out of there.
    fn project_places(&mut self, client: Client, around: &Surroundings) -> Vec<Place> {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let own = real(&client.user_place(around).path);
        let users = Client::ALL.map(|client| real(&client.user_place(around).path));
        let mut places = client.project_places(around);
        places.retain(|place| {
            let path = real(&place.path);
            if path != own && users.contains(&path) {
                let problem = "is a link to a file of your own, and is left alone".to_owned();
                self.unreadable.push((place.path.clone(), problem));
            }
            !users.contains(&path)
        });
        places
    }

    /// The file's text; nothing when it is not there or cannot be read, which is noted.
    fn open(&mut self, place: &Place) -> Option<Text> {
        if let Some(source) = self.files.get(&place.path) {
            return Some(source.text.clone());
        }
        if self.unreadable.iter().any(|(path, _)| *path == place.path) {
            return None;
        }
        match place.source() {
            Ok(source) => {
                source.before.as_ref()?;
                let text = source.text.clone();
                self.files.insert(place.path.clone(), source);
                Some(text)
            }
            Err(problem) => {
                self.unreadable.push((place.path.clone(), problem));
                None
            }
        }
    }

    fn read(&mut self, place: Place, around: &Surroundings, cache: &FileCache) {
        let Some(text) = self.open(&place) else {
            return;
        };
        let servers = text
            .node()
            .at(&place.container)
            .map(Node::members)
            .unwrap_or_default();
        for (name, node) in servers {
            let mut entry = reading::read(place.client, node, place.project.as_deref());
            let user = self
                .files
                .get(&place.client.user_place(around).path)
                .map(|source| source.text.node());
            let approval = approval::of(&place, name, user, around, cache);
            if (is_switched_off(&place, name, text.node(), cache) || approval != Approval::Given)
                && let Ok(entry) = &mut entry
            {
                entry.is_disabled = true;
            }
            let is_mcpzip = entry.as_ref().is_ok_and(Entry::is_mcpzip);
            let mut found = Found {
                place: place.clone(),
                name: name.to_owned(),
                entry,
                is_mcpzip,
                is_unapproved: approval == Approval::Missing,
            };
            if let Some(reason) = fixed::blocked(&found, around, cache, None).filter(|_| !is_mcpzip)
            {
                found.entry = Err(reason);
            }
            self.found.push(found);
        }
        self.places.push(place);
    }
}

impl Found {
    /// Where its rules and the user look for it.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.place.scope
    }
}

/// Whether the client keeps a server from starting by a list outside of the server's entry.
fn is_switched_off(place: &Place, name: &str, node: &Node, cache: &FileCache) -> bool {
    let is_in =
        |node: Option<&Node>| node.is_some_and(|list| list.items().contains(&Node::text(name)));
    match place.client {
        Client::GeminiCli => {
            let allowed = node
                .at(&["mcp", "allowed"])
                .filter(|allowed| matches!(allowed, Node::List(_)));
            is_in(node.at(&["mcp", "excluded"]))
                || allowed.is_some_and(|allowed| !is_in(Some(allowed)))
        }
        Client::ClaudeCode if place.scope == Scope::Local => {
            let project = place
                .project
                .as_deref()
                .unwrap_or(Path::new(""))
                .to_string_lossy();
            is_in(node.at(&["projects", &project, "disabledMcpServers"]))
        }
        Client::CopilotCli => {
            let settings = cache.json(&place.path.with_file_name("settings.json"));
            settings.is_some_and(|settings| is_in(settings.get("disabledMcpServers")))
        }
        _ => false,
    }
}
