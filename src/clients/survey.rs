//! Reads all clients' files once and collects their servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::approval;
use super::cache::{FileCache, FileError};
use super::model::{Approval, Unmovable};
use super::{Client, ConfigLocation, Found, Node, Scope, Surroundings, Survey, Text, fixed, rules};

impl Survey {
    /// Reads the files of all clients, because each of them may call what moves, and its rules count. Only servers of `clients`
    /// may move.
    #[must_use]
    pub(crate) fn for_moving(clients: &[Client], around: &Surroundings) -> Self {
        Self {
            movable: clients.to_vec(),
            ..Self::of(&Client::ALL, around)
        }
    }

    /// The servers of the clients whose servers may move.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = &Found> {
        let found = self.found.iter();
        found.filter(|found| self.movable.contains(&found.location.client))
    }

    /// Finds entries that are parts of those in another file, over which their client lays them.
    fn note_parts(&mut self) {
        let places = self.found.iter().filter(|found| found.entry.is_ok());
        let places = places.map(|found| (found.location.clone(), found.name.clone()));
        let places: Vec<(ConfigLocation, String)> = places.collect();
        let mut off = Vec::new();
        for found in &mut self.found {
            let (own, client) = (&found.location, found.location.client);
            let is_whole = |(other, name): &&(ConfigLocation, String)| {
                let is_same = (other.client, other.scope) == (client, own.scope);
                is_same
                    && other.project == own.project
                    && other.path != own.path
                    && *name == found.name
            };
            let is_part = client == Client::OpenCode && found.entry == Err(Unmovable::NoTarget);
            if is_part && let Some((whole, _)) = places.iter().find(is_whole) {
                let name = found.name.clone();
                let switch = found.switch.clone();
                off.extend(switch.map(|switch| (whole.clone(), name.clone(), switch)));
                found.entry = Err(Unmovable::Part { name, client });
            }
        }
        // Both are one server, which is off.
        for (location, name, switch) in off {
            let is_whole = |found: &&mut Found| found.location == location && found.name == name;
            if let Some(whole) = self.found.iter_mut().find(is_whole) {
                (whole.is_switched_off, whole.is_off) = (true, true);
                whole.switch.get_or_insert(switch);
                whole
                    .entry
                    .iter_mut()
                    .for_each(|entry| entry.is_disabled = true);
            }
        }
    }

    /// The files of the user's servers of `client` that cannot be read, with the reasons.
    pub(super) fn unread(
        &self,
        client: Client,
        around: &Surroundings,
    ) -> impl Iterator<Item = (&Path, &FileError)> {
        let mut locations = client.other_places(around);
        locations.push(client.user_location(around));
        let unread = self
            .unreadable
            .iter()
            .map(|(path, problem)| (path.as_path(), problem));
        unread.filter(move |(path, _)| locations.iter().any(|location| location.path == *path))
    }

    /// Reads the files of `clients`.
    #[must_use]
    pub(crate) fn of(clients: &[Client], around: &Surroundings) -> Self {
        let mut survey = Self {
            found: Vec::new(),
            rules: Vec::new(),
            fixed: Vec::new(),
            projects: Vec::new(),
            staying: Vec::new(),
            unreadable: Vec::new(),
            movable: clients.to_vec(),
            files: BTreeMap::new(),
            locations: Vec::new(),
        };
        let cache = FileCache::default();
        for client in clients {
            let user = client.user_location(around);
            let mut locations = vec![user.clone()];
            locations.extend(client.other_places(around));
            if let Some(text) = survey.open(&user) {
                // Claude Code has them in one file, by project.
                let projects = text
                    .node()
                    .get("projects")
                    .map(Node::members)
                    .unwrap_or_default();
                let projects = projects
                    .into_iter()
                    .filter_map(|(key, _)| client.local_location(around, Path::new(key)));
                locations.extend(projects.collect::<Vec<_>>());
            }
            locations.extend(survey.project_locations(*client, around));
            for location in locations {
                survey.read(location, around, &cache);
            }
        }
        survey.note_parts();
        survey.projects = survey.known_projects(around, &cache);
        survey.staying = rules::staying(&survey, clients, around, &cache);
        survey.fixed = fixed::find(&survey, clients, around, &cache);
        survey.rules = rules::find(&survey, clients, around, &cache);
        for (path, problem) in cache.unreadable() {
            if !survey.unreadable.iter().any(|(known, _)| *known == path) {
                survey.unreadable.push((path, problem));
            }
        }
        survey
    }

    /// The directories of the projects that files of Claude Code, Codex, Gemini CLI and Cursor name, and those from the root of the current
    /// project down to the current directory.
    fn known_projects(&self, around: &Surroundings, cache: &FileCache) -> Vec<PathBuf> {
        let root = around.project().unwrap_or_default();
        let inside = around.directory.iter().flat_map(|here| here.ancestors());
        let inside = inside.take_while(|directory| directory.starts_with(&root));
        let mut projects: Vec<PathBuf> = inside.map(Path::to_owned).collect();
        for client in [Client::ClaudeCode, Client::Codex] {
            let location = client.user_location(around);
            let text = match self.files.get(&location.path) {
                Some(source) => Some(source.text.clone()),
                None => location.source().ok().map(|source| source.text),
            };
            let named = text.as_ref().and_then(|text| text.node().get("projects"));
            let named = named.map(Node::members).unwrap_or_default();
            // Most of them may be gone.
            let named = named.into_iter().map(|(key, _)| PathBuf::from(key));
            projects
                .extend(named.filter(|directory| directory.is_absolute() && directory.is_dir()));
        }
        projects.extend(trusted_folders(around, cache));
        projects.extend(rules::trusted_by_cursor(around, cache));
        projects.sort();
        projects.dedup();
        projects
    }

    /// The files of the project's servers, without files (or links to files) of the user's own servers: a migration
    /// would remove servers from them.
    fn project_locations(&mut self, client: Client, around: &Surroundings) -> Vec<ConfigLocation> {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let own = client.other_places(around).into_iter();
        let own = own.chain([client.user_location(around)]);
        let own: Vec<PathBuf> = own.map(|location| real(&location.path)).collect();
        let users = Client::ALL.map(|client| real(&client.user_location(around).path));
        let mut locations = client.project_locations(around);
        locations.retain(|location| {
            let path = real(&location.path);
            if own.contains(&path) {
                return false;
            }
            if users.contains(&path) {
                self.unreadable
                    .push((location.path.clone(), FileError::Link));
            }
            !users.contains(&path)
        });
        locations
    }

    /// The file's text. `None` if it is missing or cannot be read, which is recorded.
    fn open(&mut self, location: &ConfigLocation) -> Option<Text> {
        if let Some(source) = self.files.get(&location.path) {
            return Some(source.text.clone());
        }
        if self
            .unreadable
            .iter()
            .any(|(path, _)| *path == location.path)
        {
            return None;
        }
        match location.source() {
            Ok(source) => {
                source.before.as_ref()?;
                let text = source.text.clone();
                self.files.insert(location.path.clone(), source);
                Some(text)
            }
            Err(problem) => {
                self.unreadable.push((location.path.clone(), problem));
                None
            }
        }
    }

    fn read(&mut self, location: ConfigLocation, around: &Surroundings, cache: &FileCache) {
        let Some(text) = self.open(&location) else {
            return;
        };
        let servers = text.node().at(&location.container);
        let members = servers.map(Node::members).unwrap_or_default();
        if !servers.is_none_or(Node::has_members) {
            let problem = FileError::Form(location.container.join("."));
            self.unreadable.push((location.path.clone(), problem));
        }
        let servers = members;
        for (name, node) in servers {
            let mut found = Found::read(location.clone(), name, node);
            let user = self
                .files
                .get(&location.client.user_location(around).path)
                .map(|source| source.text.node());
            found.approval = approval::of(&location, name, user, around, cache);
            found.is_switched_off |= is_switched_off(&location, name, text.node(), around, cache)
                || found.approval == Approval::Refused;
            found.is_off = found.is_switched_off || found.approval != Approval::Given;
            if let Ok(entry) = &mut found.entry {
                entry.is_disabled = found.is_off;
            }
            let is_of_user = |found: &Found| {
                found.location.client == location.client
                    && found.scope() == Scope::User
                    && found.name == name
            };
            if found.entry == Err(Unmovable::NoTarget)
                && location.project.is_some()
                && self.found.iter().any(is_of_user)
            {
                found.entry = Err(Unmovable::Part {
                    name: name.to_owned(),
                    client: location.client,
                });
            }
            // No session is in a relative directory, and mcpzip could not know which one is meant.
            if location.scope == Scope::Local
                && !found.is_mcpzip
                && let Some(project) = location
                    .project
                    .as_deref()
                    .filter(|path| path.is_relative())
            {
                found.entry = Err(Unmovable::Relative {
                    key: "project".to_owned(),
                    path: project.display().to_string(),
                });
            }
            let reason = fixed::blocked(&found, around, cache, None);
            if let Some(reason) = reason.filter(|_| !found.is_mcpzip) {
                found.entry = Err(reason);
            }
            self.found.push(found);
        }
        self.locations.push(location);
    }
}

/// The directories that the user trusts in Gemini CLI. It reads no settings of the others.
fn trusted_folders(around: &Surroundings, cache: &FileCache) -> Vec<PathBuf> {
    let node = cache.json(&around.gemini_trusted_folders());
    let named = node.as_ref().map(Node::members).unwrap_or_default();
    let is_trusted = |value: &Node| value.as_text().is_some_and(|text| text != "DO_NOT_TRUST");
    let named = named.into_iter().filter(|(_, value)| is_trusted(value));
    let named = named.map(|(key, _)| PathBuf::from(key));
    named
        .filter(|directory| directory.is_absolute() && directory.is_dir())
        .collect()
}

/// Whether a list outside of the server's entry keeps the client from starting it.
fn is_switched_off(
    location: &ConfigLocation,
    name: &str,
    node: &Node,
    around: &Surroundings,
    cache: &FileCache,
) -> bool {
    // A list that is not understood may be about it.
    let may_have = |node: Option<&Node>| node.is_some_and(|list| list.names(name) != Some(false));
    if switched_off_by_name(location.client, name, around, cache).is_some() {
        return true;
    }
    match location.client {
        Client::GeminiCli => rules::is_kept_out(node, name),
        Client::ClaudeCode if location.scope == Scope::Local => {
            let project = location
                .project
                .as_deref()
                .unwrap_or(Path::new(""))
                .to_string_lossy();
            may_have(node.at(&["projects", &project, "disabledMcpServers"]))
        }
        Client::ClaudeCode
        | Client::ClaudeDesktop
        | Client::Cursor
        | Client::VsCode
        | Client::Windsurf
        | Client::Codex
        | Client::Zed
        | Client::OpenCode
        | Client::Cline
        | Client::Roo
        | Client::Continue
        | Client::Goose
        | Client::Kiro
        | Client::CopilotCli
        | Client::LmStudio => false,
    }
}

/// The file in which a command of the client switched the server `name` off, if one did. It has no entries of servers.
pub(super) fn switched_off_by_name(
    client: Client,
    name: &str,
    around: &Surroundings,
    cache: &FileCache,
) -> Option<PathBuf> {
    match client {
        Client::GeminiCli => rules::is_disabled_at_gemini(name, around, cache)
            .then(|| rules::gemini_switches(around)),
        Client::CopilotCli => {
            let path = around.copilot_settings();
            let settings = cache.json(&path)?;
            // A list that is not understood may be about it.
            let list = settings.get("disabledMcpServers")?;
            (list.names(name) != Some(false)).then_some(path)
        }
        _ => None,
    }
}
